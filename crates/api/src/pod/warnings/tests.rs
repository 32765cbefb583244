//! Tables for warnings.

use serde_json::{Value, json};

use super::*;

fn of(pod: Value) -> Vec<String> {
    warnings_for_pod(pod.as_object().unwrap())
}

fn of_spec(spec: Value) -> Vec<String> {
    of(json!({"metadata": {"name": "p"}, "spec": spec}))
}

#[test]
fn a_plain_pod_gives_no_warning() {
    assert_eq!(of_spec(json!({"containers": [{"name": "c", "image": "i"}]})), Vec::<String>::new());
}

#[test]
fn names_with_dots_make_odd_host_names() {
    assert_eq!(
        of(json!({"metadata": {"name": "a.b"}})),
        [
            "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is recommended: [must not contain dots]"
        ]
    );
}

#[test]
fn variables_that_hide_others() {
    let env = json!([
        {"name": "A", "value": "1"}, {"name": "A", "value": "$(A)2"}, {"name": "A", "value": "3"},
    ]);
    assert_eq!(
        of_spec(json!({"containers": [{"name": "c", "env": env}]})),
        [
            "spec.containers[0].env[2]: hides previous definition of \"A\", which may be dropped when using apply"
        ]
    );
}

#[test]
fn ports_that_collide() {
    let port =
        |name: &str, number: i32| json!({"name": name, "containerPort": number, "protocol": "TCP"});
    assert_eq!(
        of_spec(json!({"containers": [
            {"name": "a", "ports": [port("x", 80), {"containerPort": 9, "protocol": "UDP", "hostIP": "1.1.1.1"}]},
            {"name": "b", "ports": [port("x", 80), {"containerPort": 80, "protocol": "TCP", "hostPort": 80}]},
        ]})),
        [
            "spec.containers[0].ports[1]: hostIP set without hostPort: {Name: HostPort:0 ContainerPort:9 Protocol:UDP HostIP:1.1.1.1}",
            "spec.containers[1].ports[0]: duplicate port definition with spec.containers[0].ports[0]",
            "spec.containers[1].ports[1]: overlapping port definition with spec.containers[0].ports[0]",
            "spec.containers[1].ports[1]: overlapping port definition with spec.containers[1].ports[0]",
            "spec.containers[1].ports[0]: duplicate port name \"x\" with spec.containers[0].ports[0], services and probes that select ports by name will use spec.containers[0].ports[0]",
        ]
    );
}

#[test]
fn files_that_overlap() {
    let items = json!([{"key": "a", "path": "d"}, {"key": "b", "path": "d/e/"}]);
    assert_eq!(
        of_spec(json!({"volumes": [
            {"name": "m", "configMap": {"name": "x", "items": items}},
            {"name": "p", "projected": {"sources": [
                {}, {"secret": {"name": "s", "items": [{"key": "a", "path": "t"}]}}, {"serviceAccountToken": {"path": "t"}},
            ]}},
        ]})),
        [
            "volume \"m\" (ConfigMap \"x\"): overlapping paths: \"d/e\" with \"d\"",
            "volume \"p\" (Projected) has no sources provided",
            "volume \"p\" (Projected): overlapping paths: \"t\" (ServiceAccountToken) with \"t\" (Secret \"s\")",
        ]
    );
}

#[test]
fn what_nothing_serves_any_more() {
    assert_eq!(
        of(json!({
            "metadata": {"name": "p", "annotations": {"security.alpha.kubernetes.io/sysctls": "x", "seccomp.security.alpha.kubernetes.io/pod": "y"}},
            "spec": {
                "nodeSelector": {"beta.kubernetes.io/os": "linux"},
                "volumes": [{"name": "v", "gitRepo": {"repository": "r"}}],
                "terminationGracePeriodSeconds": -1,
                "overhead": {"memory": "1500m"},
                "imagePullSecrets": [{"name": "a"}, {"name": "a"}, {}],
            },
        })),
        [
            "spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use \"kubernetes.io/os\" instead",
            "metadata.annotations[security.alpha.kubernetes.io/sysctls]: non-functional in v1.11+; use the \"sysctls\" field instead",
            "spec.volumes[0].gitRepo: deprecated in v1.11, and disabled by default in v1.33+",
            "spec.imagePullSecrets[1].name: duplicate name \"a\"",
            "spec.imagePullSecrets[2].name: invalid empty name \"\"",
            "spec.overhead[memory]: fractional byte value \"1500m\" is invalid, must be an integer",
            "metadata.annotations[seccomp.security.alpha.kubernetes.io/pod]: non-functional in v1.27+; use the \"seccompProfile\" field instead",
            "spec.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1",
        ]
    );
}

#[test]
fn terms_that_match_nothing() {
    let template = json!({"spec": {
        "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}],
        "affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": {"topologyKey": "zone"}}]}},
    }});
    assert_eq!(
        warnings_for_template(template.as_object().unwrap(), "spec.template"),
        [
            "spec.template.spec.topologySpreadConstraints[0].labelSelector: a null labelSelector results in matching no pod",
            "spec.template.spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].podAffinityTerm.labelSelector: a null labelSelector results in matching no pod",
        ]
    );
}
