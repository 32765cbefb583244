//! Tables for what the server does to pods.

use serde_json::{Value, json};

use super::*;

fn object(value: Value) -> Json {
    value.as_object().unwrap().clone()
}

fn context() -> WriteContext {
    WriteContext { now: Timestamp::UNIX_EPOCH, uid: "u".to_owned(), user: "me".to_owned() }
}

#[test]
fn a_new_pod_is_pending_whatever_it_says() {
    let mut pod = object(json!({
        "spec": {"containers": [{"name": "c"}]},
        "status": {"phase": "Running", "podIP": "1.2.3.4"},
    }));
    PodStrategy.prepare_create(&mut pod, &context());
    assert_eq!(pod["status"], json!({"phase": "Pending", "qosClass": "BestEffort"}));
}

#[test]
fn a_gated_pod_says_so() {
    let mut pod = object(json!({"spec": {"schedulingGates": [{"name": "x/y"}]}}));
    PodStrategy.prepare_create(&mut pod, &context());
    assert_eq!(
        pod["status"]["conditions"],
        json!([{
            "type": "PodScheduled", "status": "False", "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates",
            "lastProbeTime": null, "lastTransitionTime": "1970-01-01T00:00:00Z",
        }])
    );
    assert_eq!(PodStrategy.row(&pod, Timestamp::UNIX_EPOCH)[2], "SchedulingGated");
}

#[test]
fn label_keys_become_selectors() {
    let mut pod = object(json!({
        "metadata": {"labels": {"hash": "1", "job": "j"}},
        "spec": {
            "topologySpreadConstraints": [
                {"matchLabelKeys": ["hash", "missing"], "labelSelector": {}},
                {"matchLabelKeys": ["hash"]},
            ],
            "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
                {"mismatchLabelKeys": ["job"], "labelSelector": {"matchExpressions": [{"key": "a", "operator": "Exists"}]}},
            ]}},
        },
    }));
    merge_label_keys(&mut pod);
    assert_eq!(
        pod["spec"]["topologySpreadConstraints"],
        json!([
            {"matchLabelKeys": ["hash", "missing"], "labelSelector": {"matchExpressions": [{"key": "hash", "operator": "In", "values": ["1"]}]}},
            {"matchLabelKeys": ["hash"]},
        ])
    );
    let term = &pod["spec"]["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        [0];
    assert_eq!(
        term["labelSelector"]["matchExpressions"],
        json!([{"key": "a", "operator": "Exists"}, {"key": "job", "operator": "NotIn", "values": ["j"]}])
    );
}

#[test]
fn grace_is_what_was_asked_for_or_the_pods_own() {
    let pod = |node: &str, phase: &str| {
        object(json!({
            "spec": {"nodeName": node, "terminationGracePeriodSeconds": 30},
            "status": {"phase": phase},
        }))
    };
    let cases = [
        ("the pod's own", pod("n", "Running"), None, 30),
        ("asked for", pod("n", "Running"), Some(5), 5),
        ("none asked for", pod("n", "Running"), Some(0), 0),
        ("negative means one second", pod("n", "Running"), Some(-1), 1),
        ("not scheduled", pod("", "Pending"), Some(5), 0),
        ("over", pod("n", "Succeeded"), None, 0),
        ("failed", pod("n", "Failed"), Some(9), 0),
    ];
    for (name, pod, requested, want) in cases {
        assert_eq!(PodStrategy.grace_period(&pod, requested), Some(want), "{name}");
    }
}

#[test]
fn fields_can_be_selected_by() {
    let pod = object(json!({
        "spec": {"nodeName": "n", "hostNetwork": true, "restartPolicy": "Never"},
        "status": {"phase": "Running", "podIPs": [{"ip": "10.0.0.1"}]},
    }));
    let value = |field| PodStrategy.field_value(&pod, field);
    assert_eq!(value("spec.nodeName"), "n");
    assert_eq!(value("spec.hostNetwork"), "true");
    assert_eq!(value("spec.restartPolicy"), "Never");
    assert_eq!(value("status.podIP"), "10.0.0.1");
    assert_eq!(value("status.nominatedNodeName"), "");
    assert_eq!(PodStrategy.field_value(&Json::new(), "spec.hostNetwork"), "false");
}

#[test]
fn updates_keep_priority_and_status() {
    let old = object(json!({
        "spec": {"priority": 7, "preemptionPolicy": "Never"}, "status": {"phase": "Running"},
    }));
    let mut new = object(json!({"spec": {}, "status": {"phase": "Failed"}}));
    PodStrategy.prepare_update(&mut new, &old, &context());
    assert_eq!(new["status"], json!({"phase": "Running"}));
    assert_eq!(new["spec"]["priority"], 7);
    assert_eq!(new["spec"]["preemptionPolicy"], "Never");
}

#[test]
fn status_writers_do_not_forget_what_the_server_set() {
    let old = object(json!({"status": {
        "qosClass": "Burstable", "observedGeneration": 3,
        "conditions": [{"type": "Ready", "observedGeneration": 2}],
    }}));
    let mut new = object(json!({"status": {"conditions": [{"type": "Ready"}, {"type": "Other"}]}}));
    PodStrategy.prepare_status_update(&mut new, &old, &context());
    assert_eq!(
        new["status"],
        json!({
            "qosClass": "Burstable", "observedGeneration": 3,
            "conditions": [{"type": "Ready", "observedGeneration": 2}, {"type": "Other"}],
        })
    );
}

#[test]
fn one_address_and_the_list_of_them_agree() {
    let cases = [
        (json!({}), json!({})),
        (json!({"podIP": "1.1.1.1"}), json!({"podIP": "1.1.1.1", "podIPs": [{"ip": "1.1.1.1"}]})),
        (
            json!({"podIPs": [{"ip": "1.1.1.1"}, {"ip": "::1"}]}),
            json!({"podIP": "1.1.1.1", "podIPs": [{"ip": "1.1.1.1"}, {"ip": "::1"}]}),
        ),
        (
            json!({"podIP": "2.2.2.2", "podIPs": [{"ip": "1.1.1.1"}]}),
            json!({"podIP": "2.2.2.2", "podIPs": [{"ip": "2.2.2.2"}]}),
        ),
    ];
    for (status, want) in cases {
        let mut pod = object(json!({"status": status}));
        mirror_pod_ip(&mut pod);
        assert_eq!(pod["status"], want);
    }
}
