//! Kinds that are known by name and refused with what to use instead.
//!
//! They are listed in discovery and have an OpenAPI schema, because a client sends nothing of a
//! kind it cannot find, and says then that a definition is missing. There are never any objects:
//! lists are empty, watches wait, and whoever creates one is told.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    names,
    resource::{Registry, Resource, Scope},
    strategy::{Column, Json, Strategy},
    table,
};

/// A kind that is refused.
#[derive(Debug)]
pub struct Refused {
    /// API group, empty for core.
    pub group: &'static str,
    /// API version.
    pub version: &'static str,
    /// Plural name.
    pub plural: &'static str,
    /// Kind.
    pub kind: &'static str,
    short: &'static str,
    scope: Scope,
    /// Why there are none, and what to use instead.
    pub instead: &'static str,
}

const VERBS: &[&str] =
    &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

const REPLICAS: &str = "this cluster runs jobs and keeps no set of replicas alive: use a Job or a \
    JobSet for workers, and a Pod with restartPolicy Always for a service";
const STATEFUL: &str = "this cluster runs jobs and keeps no set of replicas alive: use an Indexed \
    Job or a JobSet, whose pods have stable names, and PersistentVolumeClaims";
const EVERYWHERE: &str =
    "this cluster is one machine: use a Pod with restartPolicy Always, or a Job";
const ROUTES: &str = "nothing is routed from outside: use kubectl port-forward, or the addresses \
    of pods";
const TRAFFIC: &str = "traffic between pods is not restricted: they are processes of one user of \
    one machine";
const SCALE: &str = "nothing is scaled by load: set the parallelism of a Job or the replicas of a \
    JobSet";
const VOLUMES: &str = "volumes are folders of this machine: a PersistentVolumeClaim needs nothing \
    else";
const WEBHOOKS: &str = "nobody outside is asked about requests: leave it out";
const POLICIES: &str = "requests are checked and changed by what is built in alone: leave it out";
const TEMPLATES: &str = "nobody makes pods of it: put the template into a Job or a JobSet";
const REVISIONS: &str = "nothing here is rolled out or back: leave it out";
const SERVERS: &str = "no other API server is asked: use a CustomResourceDefinition";
const CERTIFICATES: &str = "certificates are not signed on request: use the token of a \
    ServiceAccount";
const FLOWS: &str = "all clients share one limit of requests at a time: leave it out";
const ADDRESSES: &str = "the cluster picks the addresses of services itself, out of the loopback \
    ones: leave it out";
const RUNTIMES: &str = "containers are processes of this machine: leave it out, and \
    runtimeClassName";
const DEVICES: &str = "devices are not claimed: ask for them in the resources of a container, such \
    as nvidia.com/gpu";

const ADMISSION: (&str, &str) = ("admissionregistration.k8s.io", "v1");
const DEVICE: (&str, &str) = ("resource.k8s.io", "v1");
const FLOW: (&str, &str) = ("flowcontrol.apiserver.k8s.io", "v1");
const STORAGE: (&str, &str) = ("storage.k8s.io", "v1");

/// All of them.
pub const KINDS: &[Refused] = &[
    cluster(("", "v1"), "persistentvolumes", "PersistentVolume", "pv", VOLUMES),
    namespaced(("", "v1"), "podtemplates", "PodTemplate", "", TEMPLATES),
    namespaced(("", "v1"), "replicationcontrollers", "ReplicationController", "rc", REPLICAS),
    cluster(ADMISSION, "mutatingadmissionpolicies", "MutatingAdmissionPolicy", "", POLICIES),
    cluster(
        ADMISSION,
        "mutatingadmissionpolicybindings",
        "MutatingAdmissionPolicyBinding",
        "",
        POLICIES,
    ),
    cluster(
        ADMISSION,
        "mutatingwebhookconfigurations",
        "MutatingWebhookConfiguration",
        "",
        WEBHOOKS,
    ),
    cluster(ADMISSION, "validatingadmissionpolicies", "ValidatingAdmissionPolicy", "", POLICIES),
    cluster(
        ADMISSION,
        "validatingadmissionpolicybindings",
        "ValidatingAdmissionPolicyBinding",
        "",
        POLICIES,
    ),
    cluster(
        ADMISSION,
        "validatingwebhookconfigurations",
        "ValidatingWebhookConfiguration",
        "",
        WEBHOOKS,
    ),
    cluster(("apiregistration.k8s.io", "v1"), "apiservices", "APIService", "", SERVERS),
    namespaced(("apps", "v1"), "controllerrevisions", "ControllerRevision", "", REVISIONS),
    namespaced(("apps", "v1"), "daemonsets", "DaemonSet", "ds", EVERYWHERE),
    namespaced(("apps", "v1"), "deployments", "Deployment", "deploy", REPLICAS),
    namespaced(("apps", "v1"), "replicasets", "ReplicaSet", "rs", REPLICAS),
    namespaced(("apps", "v1"), "statefulsets", "StatefulSet", "sts", STATEFUL),
    autoscaler("v1"),
    autoscaler("v2"),
    cluster(
        ("certificates.k8s.io", "v1"),
        "certificatesigningrequests",
        "CertificateSigningRequest",
        "csr",
        CERTIFICATES,
    ),
    cluster(FLOW, "flowschemas", "FlowSchema", "", FLOWS),
    cluster(FLOW, "prioritylevelconfigurations", "PriorityLevelConfiguration", "", FLOWS),
    cluster(("networking.k8s.io", "v1"), "ingressclasses", "IngressClass", "", ROUTES),
    namespaced(("networking.k8s.io", "v1"), "ingresses", "Ingress", "ing", ROUTES),
    cluster(("networking.k8s.io", "v1"), "ipaddresses", "IPAddress", "ip", ADDRESSES),
    namespaced(("networking.k8s.io", "v1"), "networkpolicies", "NetworkPolicy", "netpol", TRAFFIC),
    cluster(("networking.k8s.io", "v1"), "servicecidrs", "ServiceCIDR", "", ADDRESSES),
    cluster(("node.k8s.io", "v1"), "runtimeclasses", "RuntimeClass", "", RUNTIMES),
    cluster(DEVICE, "deviceclasses", "DeviceClass", "", DEVICES),
    namespaced(DEVICE, "resourceclaims", "ResourceClaim", "", DEVICES),
    namespaced(DEVICE, "resourceclaimtemplates", "ResourceClaimTemplate", "", DEVICES),
    cluster(DEVICE, "resourceslices", "ResourceSlice", "", DEVICES),
    cluster(STORAGE, "csidrivers", "CSIDriver", "", VOLUMES),
    cluster(STORAGE, "csinodes", "CSINode", "", VOLUMES),
    namespaced(STORAGE, "csistoragecapacities", "CSIStorageCapacity", "", VOLUMES),
    cluster(STORAGE, "storageclasses", "StorageClass", "sc", VOLUMES),
    cluster(STORAGE, "volumeattachments", "VolumeAttachment", "", VOLUMES),
    cluster(STORAGE, "volumeattributesclasses", "VolumeAttributesClass", "vac", VOLUMES),
];

const fn namespaced(
    (group, version): (&'static str, &'static str),
    plural: &'static str,
    kind: &'static str,
    short: &'static str,
    instead: &'static str,
) -> Refused {
    Refused { group, version, plural, kind, short, scope: Scope::Namespaced, instead }
}

const fn cluster(
    version: (&'static str, &'static str),
    plural: &'static str,
    kind: &'static str,
    short: &'static str,
    instead: &'static str,
) -> Refused {
    Refused { scope: Scope::Cluster, ..namespaced(version, plural, kind, short, instead) }
}

const fn autoscaler(version: &'static str) -> Refused {
    let version = ("autoscaling", version);
    namespaced(version, "horizontalpodautoscalers", "HorizontalPodAutoscaler", "hpa", SCALE)
}

/// What to use instead of a kind that is refused.
pub fn instead_of(group: &str, version: &str, kind: &str) -> Option<&'static str> {
    let is_meant = |one: &&Refused| (one.group, one.version, one.kind) == (group, version, kind);
    KINDS.iter().find(is_meant).map(|one| one.instead)
}

/// Adds the kinds to what a server knows by name, but for those it really serves.
pub fn register(registry: &mut Registry) {
    for refused in KINDS {
        if registry.get(refused.group, refused.version, refused.plural).is_some() {
            continue;
        }
        registry.insert(Resource {
            group: refused.group.into(),
            version: refused.version.into(),
            plural: refused.plural.into(),
            singular: refused.kind.to_lowercase().into(),
            kind: refused.kind.into(),
            short_names: Some(refused.short)
                .filter(|name| !name.is_empty())
                .map(Into::into)
                .into_iter()
                .collect(),
            // Not even where upstream has one: `kubectl get all` need not ask for what never is.
            categories: Vec::new(),
            scope: refused.scope,
            verbs: VERBS,
            subresources: Vec::new(),
            table: refused.plural.into(),
            strategy: Arc::new(RefusedStrategy(refused)),
        });
    }
}

/// The OpenAPI schema of a kind that is refused: its name as upstream has it, and a schema that
/// takes anything, as it is for the server to say what is wrong.
pub(crate) fn schema(resource: &Resource) -> Option<(String, Value)> {
    let instead = resource.strategy.refusal()?;
    let (group, version, kind) = (&resource.group, &resource.version, &resource.kind);
    let package = match group.split('.').next() {
        None | Some("") => "api.core",
        // Of another program that is built into the server.
        Some("apiregistration") => "kube-aggregator.pkg.apis.apiregistration",
        Some(group) => &format!("api.{group}"),
    };
    let schema = json!({
        "type": "object",
        "description": format!("Not served: {instead}."),
        "x-kubernetes-preserve-unknown-fields": true,
        "x-kubernetes-group-version-kind": [{"group": group, "version": version, "kind": kind}],
    });
    Some((format!("io.k8s.{package}.{version}.{kind}"), schema))
}

/// There are no objects of such a kind, so there is nothing to decide about them.
#[derive(Debug)]
struct RefusedStrategy(&'static Refused);

impl Strategy for RefusedStrategy {
    fn refusal(&self) -> Option<&'static str> {
        Some(self.0.instead)
    }

    fn validate_name(&self, name: &str, is_prefix: bool) -> Vec<String> {
        names::name_is_dns_subdomain(name, is_prefix)
    }

    fn columns(&self) -> &'static [Column] {
        table::NAME_AND_AGE
    }

    fn row(&self, object: &Json, now: Timestamp) -> Vec<Value> {
        table::name_and_age(object, now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{builtin, openapi};

    #[test]
    fn no_kind_that_is_served_is_refused() {
        let mut registry = builtin::registry();
        let served: Vec<String> = registry.iter().map(|one| format!("{one:?}")).collect();
        register(&mut registry);
        for resource in registry.iter() {
            let is_served = served.contains(&format!("{resource:?}"));
            assert_eq!(resource.strategy.refusal().is_none(), is_served, "{resource:?}");
        }
        for one in KINDS {
            let is_served = builtin::registry().get(one.group, one.version, one.plural).is_some();
            assert!(!is_served, "{} is served", one.kind);
        }
    }

    #[test]
    fn a_kind_that_is_refused_is_found_by_its_version() {
        assert_eq!(instead_of("apps", "v1", "Deployment"), Some(REPLICAS));
        assert_eq!(instead_of("apps", "v1beta1", "Deployment"), None);
        assert_eq!(instead_of("batch", "v1", "Job"), None);
    }

    /// kubectl sends nothing of a kind that it finds no schema for.
    #[test]
    fn documents_have_kinds_that_are_refused() {
        let mut registry = builtin::registry();
        register(&mut registry);
        let documents = openapi::documents(&registry);
        let apps = documents.iter().find(|one| one.path == "apis/apps/v1").expect("apps/v1");
        let apps: Value = serde_json::from_str(&apps.body).expect("JSON");
        let schema = &apps["components"]["schemas"]["io.k8s.api.apps.v1.Deployment"];
        let mark = json!([{"group": "apps", "version": "v1", "kind": "Deployment"}]);
        assert_eq!(schema["x-kubernetes-group-version-kind"], mark);
        let patch = &apps["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"];
        assert!(patch["patch"].is_object());
        let all: Value =
            serde_json::from_str(&openapi::v2::document(&registry).json).expect("JSON");
        assert!(all["definitions"]["io.k8s.api.apps.v1.Deployment"].is_object());
    }
}
