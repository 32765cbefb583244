//! The roles every cluster has, and who has them from the first moment: those of Kubernetes, as far
//! as they are about something that is served here.

use lockstep_api::{json::text, rbac, strategy::Json};
use serde_json::{Value, json};

const READ: [&str; 3] = ["get", "list", "watch"];
const WRITE: [&str; 5] = ["create", "delete", "deletecollection", "patch", "update"];

/// Group, and what belongs to a namespace in it.
const VIEWED: [(&str, &[&str]); 11] = [
    (
        "",
        &[
            "configmaps",
            "endpoints",
            "events",
            "limitranges",
            "persistentvolumeclaims",
            "persistentvolumeclaims/status",
            "pods",
            "pods/log",
            "pods/status",
            "replicationcontrollers",
            "replicationcontrollers/scale",
            "replicationcontrollers/status",
            "resourcequotas",
            "resourcequotas/status",
            "serviceaccounts",
            "services",
            "services/status",
        ],
    ),
    (
        "apps",
        &[
            "controllerrevisions",
            "daemonsets",
            "daemonsets/status",
            "deployments",
            "deployments/scale",
            "deployments/status",
            "replicasets",
            "replicasets/scale",
            "replicasets/status",
            "statefulsets",
            "statefulsets/scale",
            "statefulsets/status",
        ],
    ),
    ("autoscaling", &["horizontalpodautoscalers", "horizontalpodautoscalers/status"]),
    ("batch", &["cronjobs", "cronjobs/status", "jobs", "jobs/status"]),
    ("discovery.k8s.io", &["endpointslices"]),
    ("events.k8s.io", &["events"]),
    ("jobset.x-k8s.io", &["jobsets", "jobsets/status"]),
    ("kueue.x-k8s.io", &["localqueues", "localqueues/status", "workloads", "workloads/status"]),
    ("metrics.k8s.io", &["nodes", "pods"]),
    ("networking.k8s.io", &["ingresses", "ingresses/status", "networkpolicies"]),
    ("policy", &["poddisruptionbudgets", "poddisruptionbudgets/status"]),
];

const EDITED: [(&str, &[&str]); 10] = [
    (
        "",
        &[
            "configmaps",
            "events",
            "persistentvolumeclaims",
            "pods",
            "pods/attach",
            "pods/eviction",
            "pods/exec",
            "pods/portforward",
            "replicationcontrollers",
            "replicationcontrollers/scale",
            "secrets",
            "serviceaccounts",
            "services",
        ],
    ),
    (
        "apps",
        &[
            "daemonsets",
            "deployments",
            "deployments/scale",
            "replicasets",
            "replicasets/scale",
            "statefulsets",
            "statefulsets/scale",
        ],
    ),
    ("autoscaling", &["horizontalpodautoscalers"]),
    ("batch", &["cronjobs", "jobs"]),
    ("coordination.k8s.io", &["leases"]),
    ("events.k8s.io", &["events"]),
    ("jobset.x-k8s.io", &["jobsets"]),
    ("kueue.x-k8s.io", &["localqueues", "workloads"]),
    ("networking.k8s.io", &["ingresses", "networkpolicies"]),
    ("policy", &["poddisruptionbudgets"]),
];

/// Who may learn by which key tokens of service accounts are signed, and where that is.
const ISSUER_DISCOVERY: &str = "system:service-account-issuer-discovery";
const ISSUER_PATHS: [&str; 4] = [
    "/.well-known/openid-configuration",
    "/.well-known/openid-configuration/",
    "/openid/v1/jwks",
    "/openid/v1/jwks/",
];

/// All ClusterRoles of a new cluster.
pub(super) fn cluster_roles() -> Vec<Value> {
    let everything = json!([
        { "apiGroups": ["*"], "resources": ["*"], "verbs": ["*"] },
        { "nonResourceURLs": ["*"], "verbs": ["*"] },
    ]);
    let paths = |paths: &[&str]| json!([{ "nonResourceURLs": paths, "verbs": ["get"] }]);
    let discovery = [
        "/api",
        "/api/*",
        "/apis",
        "/apis/*",
        "/healthz",
        "/livez",
        "/openapi",
        "/openapi/*",
        "/readyz",
        "/version",
        "/version/",
    ];
    let about_oneself = json!([
        {
            "apiGroups": ["authorization.k8s.io"],
            "resources": ["selfsubjectaccessreviews", "selfsubjectrulesreviews"],
            "verbs": ["create"],
        },
        {
            "apiGroups": ["authentication.k8s.io"],
            "resources": ["selfsubjectreviews"],
            "verbs": ["create"],
        },
    ]);
    let about_others = json!([
        {
            "apiGroups": ["authentication.k8s.io"],
            "resources": ["tokenreviews"],
            "verbs": ["create"],
        },
        {
            "apiGroups": ["authorization.k8s.io"],
            "resources": ["subjectaccessreviews"],
            "verbs": ["create"],
        },
    ]);
    let public = paths(&["/healthz", "/livez", "/readyz", "/version", "/version/"]);
    let all_verbs = [READ.as_slice(), &WRITE].concat();
    let own = json!([
        {
            "apiGroups": ["rbac.authorization.k8s.io"],
            "resources": ["roles", "rolebindings"],
            "verbs": all_verbs,
        },
        {
            "apiGroups": ["authorization.k8s.io"],
            "resources": ["localsubjectaccessreviews"],
            "verbs": ["create"],
        },
    ]);
    let mut edited = rules(&EDITED, &WRITE);
    edited.push(rule("", &["secrets", "pods/attach", "pods/exec", "pods/portforward"], &READ));
    edited.push(rule("coordination.k8s.io", &["leases"], &READ));
    edited.push(rule("", &["serviceaccounts"], &["impersonate"]));
    edited.push(rule("", &["serviceaccounts/token"], &["create"]));
    with_sums(vec![
        role("cluster-admin", &[], &everything),
        role("system:discovery", &[], &paths(&discovery)),
        role("system:monitoring", &[], &paths(&["/healthz", "/livez", "/metrics", "/readyz"])),
        role("system:basic-user", &[], &about_oneself),
        role("system:public-info-viewer", &[], &public),
        role("system:auth-delegator", &[], &about_others),
        role(ISSUER_DISCOVERY, &[], &paths(&ISSUER_PATHS)),
        sum("admin", &["admin"], &[]),
        sum("edit", &["edit"], &["admin"]),
        sum("view", &["view"], &["edit"]),
        role("system:aggregate-to-admin", &["admin"], &own),
        role("system:aggregate-to-edit", &["edit"], &json!(edited)),
        role("system:aggregate-to-view", &["view"], &json!(viewed())),
    ])
}

/// Gives those that are put together from others their rules, so that they hold from the first
/// moment; the controller of aggregation follows later changes.
fn with_sums(mut roles: Vec<Value>) -> Vec<Value> {
    for name in ["view", "edit", "admin"] {
        let all: Vec<Json> = roles.iter().filter_map(Value::as_object).cloned().collect();
        for role in &mut roles {
            let Value::Object(role) = role else { continue };
            if text(role, &["metadata", "name"]) == name
                && let Some(rules) = rbac::aggregated(role, &all)
            {
                role.insert("rules".to_owned(), rules.into());
            }
        }
    }
    roles
}

/// All ClusterRoleBindings of a new cluster.
pub(super) fn cluster_role_bindings() -> Vec<Value> {
    let known = "system:authenticated";
    vec![
        binding("cluster-admin", &["system:masters"]),
        binding("system:basic-user", &[known]),
        binding("system:discovery", &[known]),
        binding("system:monitoring", &["system:monitoring"]),
        binding("system:public-info-viewer", &[known, "system:unauthenticated"]),
        binding(ISSUER_DISCOVERY, &["system:serviceaccounts"]),
    ]
}

fn viewed() -> Vec<Value> {
    let mut rules = rules(&VIEWED, &READ);
    rules.push(rule("", &["namespaces"], &READ));
    rules
}

fn rules(groups: &[(&str, &[&str])], verbs: &[&str]) -> Vec<Value> {
    groups.iter().map(|(group, resources)| rule(group, resources, verbs)).collect()
}

fn rule(group: &str, resources: &[&str], verbs: &[&str]) -> Value {
    json!({ "apiGroups": [group], "resources": resources, "verbs": verbs })
}

/// A role with rules of its own, which are also part of others.
fn role(name: &str, part_of: &[&str], rules: &Value) -> Value {
    json!({ "metadata": metadata(name, part_of), "rules": rules })
}

/// A role that is put together from others, and may itself be part of one.
fn sum(name: &str, of: &[&str], part_of: &[&str]) -> Value {
    let selectors: Vec<Value> =
        of.iter().map(|of| json!({ "matchLabels": { aggregate_to(of): "true" } })).collect();
    json!({
        "metadata": metadata(name, part_of),
        "aggregationRule": { "clusterRoleSelectors": selectors },
        "rules": [],
    })
}

fn metadata(name: &str, part_of: &[&str]) -> Value {
    let mut labels = json!({ "kubernetes.io/bootstrapping": "rbac-defaults" });
    for role in part_of {
        labels[aggregate_to(role)] = "true".into();
    }
    let annotations = json!({ "rbac.authorization.kubernetes.io/autoupdate": "true" });
    json!({ "name": name, "labels": labels, "annotations": annotations })
}

fn aggregate_to(role: &str) -> String {
    format!("rbac.authorization.k8s.io/aggregate-to-{role}")
}

fn binding(role: &str, groups: &[&str]) -> Value {
    let group = "rbac.authorization.k8s.io";
    let subjects: Vec<Value> = groups
        .iter()
        .map(|name| json!({ "kind": "Group", "apiGroup": group, "name": name }))
        .collect();
    json!({
        "metadata": metadata(role, &[]),
        "roleRef": { "apiGroup": group, "kind": "ClusterRole", "name": role },
        "subjects": subjects,
    })
}
