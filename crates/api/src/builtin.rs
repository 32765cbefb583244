//! Every kind that is served, under the names and with the verbs a Kubernetes API server lists.

use std::sync::Arc;

use crate::{
    definition::{self, DefinitionStrategy},
    gates::Gates,
    job::{CronJobStrategy, JobStrategy},
    jobset::{self, JobSetStrategy},
    kinds::{
        binding::BindingStrategy,
        config_map::ConfigMapStrategy,
        disruption_budget::DisruptionBudgetStrategy,
        endpoint_slice::EndpointSliceStrategy,
        endpoints::EndpointsStrategy,
        event::{CoreEventStrategy, EventStrategy},
        lease::LeaseStrategy,
        limit_range::LimitRangeStrategy,
        namespace::NamespaceStrategy,
        node::NodeStrategy,
        priority_class::PriorityClassStrategy,
        rbac::{RoleBindingStrategy, RoleStrategy},
        resource_quota::ResourceQuotaStrategy,
        secret::SecretStrategy,
        service::ServiceStrategy,
        service_account::ServiceAccountStrategy,
        volume_claim::VolumeClaimStrategy,
    },
    kueue::{self, OldQueueingStrategy, QueueingStrategy},
    pod::PodStrategy,
    rbac,
    resource::{Registry, Resource, Scope, Subresource},
    strategy::Strategy,
};

const ALL: &[&str] =
    &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
const ALL_BUT_COLLECTIONS: &[&str] =
    &["create", "delete", "get", "list", "patch", "update", "watch"];
const STATUS: &[&str] = &["get", "patch", "update"];
const CREATE: &[&str] = &["create"];
/// What is opened rather than read: by GET for those who upgrade, by POST for others.
const CONNECT: &[&str] = &["create", "get"];

/// All built-in resources, with every feature on.
pub fn registry() -> Registry {
    registry_with(Gates::default())
}

/// All built-in resources, with some features off perhaps.
pub fn registry_with(gates: Gates) -> Registry {
    let mut registry = Registry::default();
    for resource in core().into_iter().chain(groups(gates)).chain(roles()).chain(queueing()) {
        registry.insert(resource);
    }
    registry
}

fn core() -> Vec<Resource> {
    use Scope::{Cluster, Namespaced};
    let core = ("", "v1");
    vec![
        resource(core, "bindings", "Binding", Namespaced, BindingStrategy).verbs(CREATE),
        resource(core, "configmaps", "ConfigMap", Namespaced, ConfigMapStrategy).short("cm"),
        resource(core, "endpoints", "Endpoints", Namespaced, EndpointsStrategy).short("ep"),
        resource(core, "events", "Event", Namespaced, CoreEventStrategy).short("ev"),
        resource(core, "limitranges", "LimitRange", Namespaced, LimitRangeStrategy).short("limits"),
        resource(core, "namespaces", "Namespace", Cluster, NamespaceStrategy)
            .short("ns")
            .verbs(ALL_BUT_COLLECTIONS)
            .below("finalize", &["update"])
            .below("status", STATUS),
        resource(core, "nodes", "Node", Cluster, NodeStrategy).short("no").below("status", STATUS),
        resource(
            core,
            "persistentvolumeclaims",
            "PersistentVolumeClaim",
            Namespaced,
            VolumeClaimStrategy,
        )
        .short("pvc")
        .below("status", STATUS),
        resource(core, "pods", "Pod", Namespaced, PodStrategy)
            .short("po")
            .category("all")
            .below_as("attach", ("", "v1", "PodAttachOptions"), CONNECT)
            .below_as("binding", ("", "v1", "Binding"), CREATE)
            .below_as("eviction", ("policy", "v1", "Eviction"), CREATE)
            .below_as("exec", ("", "v1", "PodExecOptions"), CONNECT)
            .below("log", &["get"])
            .below_as("portforward", ("", "v1", "PodPortForwardOptions"), CONNECT)
            .below("status", STATUS),
        resource(core, "resourcequotas", "ResourceQuota", Namespaced, ResourceQuotaStrategy)
            .short("quota")
            .below("status", STATUS),
        resource(core, "secrets", "Secret", Namespaced, SecretStrategy),
        resource(core, "serviceaccounts", "ServiceAccount", Namespaced, ServiceAccountStrategy)
            .short("sa")
            .below_as("token", ("authentication.k8s.io", "v1", "TokenRequest"), CREATE),
        resource(core, "services", "Service", Namespaced, ServiceStrategy)
            .short("svc")
            .category("all")
            .below("status", STATUS),
    ]
    .into_iter()
    .map(|draft| draft.0)
    .collect()
}

fn groups(gates: Gates) -> Vec<Resource> {
    use Scope::{Cluster, Namespaced};
    vec![
        resource(
            (definition::GROUP, "v1"),
            definition::PLURAL,
            "CustomResourceDefinition",
            Cluster,
            DefinitionStrategy,
        )
        .short("crd")
        .short("crds")
        .category("api-extensions")
        .below("status", STATUS),
        resource(("batch", "v1"), "cronjobs", "CronJob", Namespaced, CronJobStrategy)
            .short("cj")
            .category("all")
            .below("status", STATUS),
        resource(("batch", "v1"), "jobs", "Job", Namespaced, JobStrategy::new(gates))
            .category("all")
            .below("status", STATUS),
        resource(("coordination.k8s.io", "v1"), "leases", "Lease", Namespaced, LeaseStrategy),
        resource(
            ("discovery.k8s.io", "v1"),
            "endpointslices",
            "EndpointSlice",
            Namespaced,
            EndpointSliceStrategy,
        ),
        resource(("events.k8s.io", "v1"), "events", "Event", Namespaced, EventStrategy).short("ev"),
        resource(
            (jobset::GROUP, jobset::VERSION),
            jobset::PLURAL,
            jobset::KIND,
            Namespaced,
            JobSetStrategy::new(gates),
        )
        .below("status", STATUS),
        resource(
            ("policy", "v1"),
            "poddisruptionbudgets",
            "PodDisruptionBudget",
            Namespaced,
            DisruptionBudgetStrategy,
        )
        .short("pdb")
        .below("status", STATUS),
        resource(
            ("scheduling.k8s.io", "v1"),
            "priorityclasses",
            "PriorityClass",
            Cluster,
            PriorityClassStrategy,
        )
        .short("pc"),
    ]
    .into_iter()
    .map(|draft| draft.0)
    .collect()
}

/// Who may do what.
fn roles() -> impl Iterator<Item = Resource> {
    use Scope::{Cluster, Namespaced};
    let rbac = (rbac::GROUP, "v1");
    [
        resource(
            rbac,
            "clusterrolebindings",
            "ClusterRoleBinding",
            Cluster,
            RoleBindingStrategy(Cluster),
        ),
        resource(rbac, "clusterroles", "ClusterRole", Cluster, RoleStrategy(Cluster)),
        resource(rbac, "rolebindings", "RoleBinding", Namespaced, RoleBindingStrategy(Namespaced)),
        resource(rbac, "roles", "Role", Namespaced, RoleStrategy(Namespaced)),
    ]
    .into_iter()
    .map(|draft| draft.0)
}

/// The kinds of queueing, in both versions.
fn queueing() -> impl Iterator<Item = Resource> {
    let older = kueue::KINDS.into_iter().map(|kind| {
        let strategy = OldQueueingStrategy(kind);
        queueing_kind(kueue::OLD_VERSION, kind, strategy)
    });
    let stored = kueue::KINDS.into_iter().map(|kind| {
        let strategy = QueueingStrategy(kind);
        queueing_kind(kueue::VERSION, kind, strategy)
    });
    older.chain(stored)
}

fn queueing_kind(
    version: &'static str,
    kind: &'static kueue::Kind,
    strategy: impl Strategy + 'static,
) -> Resource {
    let version = (kueue::GROUP, version);
    let mut draft = resource(version, kind.plural, kind.name, kind.scope, strategy);
    for name in kind.short_names {
        draft = draft.short(name);
    }
    if kind.has_status {
        draft = draft.below("status", STATUS);
    }
    draft.0
}

struct Draft(Resource);

/// A resource with all verbs and nothing below it; its table has its plural name.
fn resource(
    (group, version): (&'static str, &'static str),
    plural: &'static str,
    kind: &'static str,
    scope: Scope,
    strategy: impl Strategy + 'static,
) -> Draft {
    Draft(Resource {
        group: group.into(),
        version: version.into(),
        plural: plural.into(),
        singular: kind.to_lowercase().into(),
        kind: kind.into(),
        short_names: Vec::new(),
        categories: Vec::new(),
        scope,
        verbs: ALL,
        subresources: Vec::new(),
        table: plural.into(),
        strategy: Arc::new(strategy),
    })
}

impl Draft {
    fn verbs(mut self, verbs: &'static [&'static str]) -> Self {
        self.0.verbs = verbs;
        self
    }

    fn short(mut self, name: &'static str) -> Self {
        self.0.short_names.push(name.into());
        self
    }

    fn category(mut self, name: &'static str) -> Self {
        self.0.categories.push(name.into());
        self
    }

    /// Adds a subresource whose requests carry the parent's kind.
    fn below(mut self, name: &'static str, verbs: &'static [&'static str]) -> Self {
        self.0.subresources.push(Subresource { name: name.into(), kind: None, verbs });
        self
    }

    /// Adds a subresource whose requests carry another kind: (group, version, kind).
    fn below_as(
        mut self,
        name: &'static str,
        (group, version, kind): (&'static str, &'static str, &'static str),
        verbs: &'static [&'static str],
    ) -> Self {
        let kind = Some((group.into(), version.into(), kind.into()));
        self.0.subresources.push(Subresource { name: name.into(), kind, verbs });
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resources_have_the_names_clients_know() {
        let registry = registry();
        let listed: Vec<String> = registry.iter().map(|one| format!("{one:?}")).collect();
        assert_eq!(
            listed,
            [
                "v1/bindings",
                "v1/configmaps",
                "v1/endpoints",
                "v1/events",
                "v1/limitranges",
                "v1/namespaces",
                "v1/nodes",
                "v1/persistentvolumeclaims",
                "v1/pods",
                "v1/resourcequotas",
                "v1/secrets",
                "v1/serviceaccounts",
                "v1/services",
                "apiextensions.k8s.io/v1/customresourcedefinitions",
                "batch/v1/cronjobs",
                "batch/v1/jobs",
                "coordination.k8s.io/v1/leases",
                "discovery.k8s.io/v1/endpointslices",
                "events.k8s.io/v1/events",
                "jobset.x-k8s.io/v1alpha2/jobsets",
                "kueue.x-k8s.io/v1beta1/clusterqueues",
                "kueue.x-k8s.io/v1beta1/localqueues",
                "kueue.x-k8s.io/v1beta1/resourceflavors",
                "kueue.x-k8s.io/v1beta1/workloadpriorityclasses",
                "kueue.x-k8s.io/v1beta1/workloads",
                "kueue.x-k8s.io/v1beta2/clusterqueues",
                "kueue.x-k8s.io/v1beta2/localqueues",
                "kueue.x-k8s.io/v1beta2/resourceflavors",
                "kueue.x-k8s.io/v1beta2/workloadpriorityclasses",
                "kueue.x-k8s.io/v1beta2/workloads",
                "policy/v1/poddisruptionbudgets",
                "rbac.authorization.k8s.io/v1/clusterrolebindings",
                "rbac.authorization.k8s.io/v1/clusterroles",
                "rbac.authorization.k8s.io/v1/rolebindings",
                "rbac.authorization.k8s.io/v1/roles",
                "scheduling.k8s.io/v1/priorityclasses",
            ]
        );
        assert_eq!(registry.get("", "v1", "endpoints").unwrap().singular, "endpoints");
    }

    #[test]
    fn both_kinds_of_events_share_a_table() {
        let registry = registry();
        let core = registry.get("", "v1", "events").unwrap();
        let newer = registry.get("events.k8s.io", "v1", "events").unwrap();
        assert_eq!(core.table, newer.table);
    }
}
