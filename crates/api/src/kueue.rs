//! kueue.x-k8s.io: Workloads, and the queues they wait in.
//!
//! The types are those of v1beta2, which is what is stored; v1beta1 is served by conversion.

mod convert;
pub mod jobs;
mod kinds;
pub mod names;
mod rules;
mod status;
mod strategy;
#[cfg(test)]
mod tests;
mod types;
pub mod wait;

pub use kinds::{
    CLUSTER_QUEUE, KINDS, Kind, LOCAL_QUEUE, PRIORITY_CLASS, RESOURCE_FLAVOR, WORKLOAD,
};
pub(crate) use kinds::{OLD_SCHEMA_PREFIX, SCHEMA_PREFIX};
pub use status::whole_second;
pub use strategy::{OldQueueingStrategy, QueueingStrategy};
pub use types::*;
pub use wait::{Requeuing, RequeuingTimestamp, WaitForPodsReady};

/// The API group.
pub const GROUP: &str = "kueue.x-k8s.io";
/// The version that is stored.
pub const VERSION: &str = "v1beta2";
/// The version that is served by conversion.
pub const OLD_VERSION: &str = "v1beta1";
/// What clients of the older version are told.
pub const OLD_VERSION_WARNING: &str = "This version is deprecated. Use v1beta2 instead.";
/// Group and version that is stored.
pub const API_VERSION: &str = "kueue.x-k8s.io/v1beta2";

/// How many pod sets a workload may have.
pub const POD_SETS_MAX: usize = 18;
/// The name of a pod set that has been given none.
pub const DEFAULT_POD_SET: &str = "main";
/// The resource that counts pods. Nobody may ask for it: where a queue covers it, it is charged.
pub const PODS_RESOURCE: &str = "pods";
