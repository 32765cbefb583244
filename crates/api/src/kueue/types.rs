//! The shapes of the kinds of kueue.x-k8s.io/v1beta2. The OpenAPI schemas and the
//! CustomResourceDefinitions are made of these types (see [`crate::custom`]), their comments
//! included.
//!
//! Nothing here is refused for what it lacks: objects may reach a controller that no webhook has
//! filled in, and values of fields with a fixed set of values may be newer than this code.

mod admission;
mod cluster_queue;
mod expressions;
mod local_queue;
mod priority_class;
mod resource_flavor;
mod workload;

pub use admission::*;
pub use cluster_queue::*;
pub use local_queue::*;
pub use priority_class::*;
pub use resource_flavor::*;
pub use workload::*;

/// What names of queues, cohorts and flavors look like.
const NAME: &str = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$";
/// What names of pod sets look like.
const POD_SET_NAME: &str = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$";

/// A kind of this group: what k8s-openapi has for its own.
macro_rules! kind {
    ($type:ident, $kind:literal, $plural:literal, $scope:ident) => {
        impl k8s_openapi::Resource for $type {
            const API_VERSION: &'static str = crate::kueue::API_VERSION;
            const GROUP: &'static str = crate::kueue::GROUP;
            const KIND: &'static str = $kind;
            const VERSION: &'static str = crate::kueue::VERSION;
            const URL_PATH_SEGMENT: &'static str = $plural;
            type Scope = k8s_openapi::$scope;
        }

        impl k8s_openapi::Metadata for $type {
            type Ty = k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

            fn metadata(&self) -> &Self::Ty {
                &self.metadata
            }

            fn metadata_mut(&mut self) -> &mut Self::Ty {
                &mut self.metadata
            }
        }
    };
}

kind!(Workload, "Workload", "workloads", NamespaceResourceScope);
kind!(ClusterQueue, "ClusterQueue", "clusterqueues", ClusterResourceScope);
kind!(LocalQueue, "LocalQueue", "localqueues", NamespaceResourceScope);
kind!(ResourceFlavor, "ResourceFlavor", "resourceflavors", ClusterResourceScope);
kind!(
    WorkloadPriorityClass,
    "WorkloadPriorityClass",
    "workloadpriorityclasses",
    ClusterResourceScope
);
