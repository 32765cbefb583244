//! What the account of an operator may do: what this crate asks of a cluster, and no more.

use lockstep_api::{jobset, kueue};
use serde_json::{Value, json};

use super::{NAME, Options, labels, metadata};
use crate::lease::{JOBSET_LEASE, KUEUE_LEASE};

/// Something that may be done.
#[derive(Debug)]
struct Right {
    group: &'static str,
    resources: &'static [&'static str],
    verbs: &'static [&'static str],
    /// Only with those of such names, unless there are none here.
    names: &'static [&'static str],
    place: Place,
    need: Need,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Everywhere,
    /// In the namespace of the operator alone.
    Here,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Need {
    Always,
    InPlace,
}

impl Right {
    const fn new(
        group: &'static str,
        resources: &'static [&'static str],
        verbs: &'static [&'static str],
    ) -> Self {
        let (names, place, need): (&[&str], _, _) = (&[], Place::Everywhere, Need::Always);
        Self { group, resources, verbs, names, place, need }
    }

    const fn in_place(self) -> Self {
        Self { need: Need::InPlace, ..self }
    }

    const fn here(self) -> Self {
        Self { place: Place::Here, ..self }
    }

    const fn named(self, names: &'static [&'static str]) -> Self {
        Self { names, ..self }
    }

    fn rule(&self) -> Value {
        let mut rule = json!({
            "apiGroups": [self.group], "resources": self.resources, "verbs": self.verbs,
        });
        if !self.names.is_empty() {
            rule["resourceNames"] = json!(self.names);
        }
        rule
    }
}

const LEASES: &str = "coordination.k8s.io";

/// All of it, in the order of the documentation, which says what each is for. What is created has
/// no name that could be told before.
const RIGHTS: [Right; 24] = [
    Right::new(jobset::GROUP, &["jobsets"], &["list", "watch", "patch", "delete"]),
    Right::new(jobset::GROUP, &["jobsets/status"], &["patch"]),
    Right::new(jobset::GROUP, &["jobsets/finalizers"], &["update"]),
    Right::new("batch", &["jobs"], &["get", "list", "watch", "create", "patch", "delete"]),
    Right::new("batch", &["jobs/status"], &["patch"]),
    Right::new("batch", &["jobs/finalizers"], &["update"]),
    Right::new("", &["services"], &["get", "list", "watch", "create"]),
    Right::new("", &["persistentvolumeclaims"], &["get", "create"]),
    Right::new("", &["events"], &["create", "patch"]),
    Right::new("", &["pods"], &["list", "watch", "delete"]).in_place(),
    Right::new("", &["secrets"], &["get", "create", "patch"]).in_place(),
    Right::new("", &["configmaps"], &["get", "create", "update"]).in_place(),
    Right::new(
        kueue::GROUP,
        &["workloads"],
        &["get", "list", "watch", "create", "patch", "delete"],
    ),
    Right::new(kueue::GROUP, &["workloads/status"], &["patch"]),
    Right::new(kueue::GROUP, &["clusterqueues", "resourceflavors"], &["list", "watch", "patch"]),
    Right::new(kueue::GROUP, &["localqueues", "workloadpriorityclasses"], &["list", "watch"]),
    Right::new(kueue::GROUP, &["clusterqueues/status", "localqueues/status"], &["patch"]),
    Right::new("scheduling.k8s.io", &["priorityclasses"], &["list", "watch"]),
    Right::new("", &["namespaces"], &["get", "list", "watch"]),
    Right::new("", &["limitranges"], &["list", "watch"]),
    Right::new("node.k8s.io", &["runtimeclasses"], &["list", "watch"]),
    Right::new(LEASES, &["leases"], &["get", "update"]).named(&[KUEUE_LEASE]),
    Right::new(LEASES, &["leases"], &["create"]),
    Right::new(LEASES, &["leases"], &["get", "update"]).named(&[JOBSET_LEASE]).here(),
];

/// The roles with them, and what gives them to the account.
pub(super) fn documents(options: &Options) -> Vec<Value> {
    let rules = |place: Place| -> Vec<Value> {
        let is_needed = |right: &&Right| right.need == Need::Always || options.has_in_place;
        let here = RIGHTS.iter().filter(|right| right.place == place);
        here.filter(is_needed).map(Right::rule).collect()
    };
    let everywhere = json!({"name": NAME, "labels": labels()});
    let api_version = "rbac.authorization.k8s.io/v1";
    let subjects =
        json!([{"kind": "ServiceAccount", "name": NAME, "namespace": options.namespace}]);
    let role =
        |kind: &str| json!({"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": NAME});
    vec![
        json!({
            "apiVersion": api_version,
            "kind": "ClusterRole",
            "metadata": everywhere,
            "rules": rules(Place::Everywhere),
        }),
        json!({
            "apiVersion": api_version,
            "kind": "ClusterRoleBinding",
            "metadata": everywhere,
            "roleRef": role("ClusterRole"),
            "subjects": subjects,
        }),
        json!({
            "apiVersion": api_version,
            "kind": "Role",
            "metadata": metadata(NAME, options),
            "rules": rules(Place::Here),
        }),
        json!({
            "apiVersion": api_version,
            "kind": "RoleBinding",
            "metadata": metadata(NAME, options),
            "roleRef": role("Role"),
            "subjects": subjects,
        }),
    ]
}
