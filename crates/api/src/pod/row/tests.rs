//! Tables for the cells of a pod.

use serde_json::{Value, json};

use super::*;

const NOW: i64 = 1_000_000;

fn cells(pod: Value) -> Vec<String> {
    let row = row(pod.as_object().unwrap(), Timestamp::from_second(NOW).unwrap());
    row.iter().map(|cell| cell.as_str().unwrap().to_owned()).collect()
}

fn seconds_ago(seconds: i64) -> String {
    Timestamp::from_second(NOW - seconds).unwrap().to_string()
}

fn pod(spec: Value, status: Value) -> Value {
    json!({"metadata": {"name": "p", "creationTimestamp": seconds_ago(63)}, "spec": spec, "status": status})
}

#[test]
fn a_fresh_pod() {
    let got = cells(pod(json!({"containers": [{}, {}]}), json!({"phase": "Pending"})));
    assert_eq!(got, ["p", "0/2", "Pending", "0", "63s", "<none>", "<none>", "<none>", "<none>"]);
}

#[test]
fn a_running_pod_with_a_restarted_sidecar() {
    let got = cells(pod(
        json!({
            "nodeName": "n", "containers": [{"name": "c"}],
            "initContainers": [{"name": "i"}, {"name": "s", "restartPolicy": "Always"}],
            "readinessGates": [{"conditionType": "x"}, {"conditionType": "y"}],
        }),
        json!({
            "phase": "Running", "podIPs": [{"ip": "10.1.1.1"}], "nominatedNodeName": "m",
            "conditions": [{"type": "x", "status": "True"}],
            "initContainerStatuses": [
                {"name": "i", "restartCount": 9, "state": {"terminated": {"exitCode": 0}}},
                {"name": "s", "restartCount": 1, "started": true, "ready": true, "state": {"running": {}},
                 "lastState": {"terminated": {"finishedAt": seconds_ago(50)}}},
            ],
            "containerStatuses": [
                {"name": "c", "restartCount": 1, "ready": true, "state": {"running": {}},
                 "lastState": {"terminated": {"finishedAt": seconds_ago(5)}}},
            ],
        }),
    ));
    assert_eq!(got, ["p", "2/2", "Running", "2 (5s ago)", "63s", "10.1.1.1", "n", "m", "1/2"]);
}

#[test]
fn the_status_cell() {
    let main = |state: Value| json!({"phase": "Running", "containerStatuses": [{"name": "c", "state": state}]});
    let init = |state: Value| json!({"phase": "Pending", "initContainerStatuses": [{"name": "i", "state": state}]});
    let two = |a: Value, b: Value, ready: bool| {
        json!({
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": if ready { "True" } else { "False" }}],
            "containerStatuses": [
                {"name": "c", "state": a}, {"name": "d", "ready": true, "state": b},
            ],
        })
    };
    let completed = json!({"terminated": {"exitCode": 0, "reason": "Completed"}});
    let failed = json!({"terminated": {"exitCode": 1, "reason": "Error"}});
    let running = json!({"running": {}});
    let cases = [
        (json!({"phase": "Failed", "reason": "Evicted"}), "Evicted"),
        (main(json!({"waiting": {"reason": "CrashLoopBackOff"}})), "CrashLoopBackOff"),
        (main(json!({"waiting": {}})), "Running"),
        (main(json!({"terminated": {"exitCode": 3}})), "ExitCode:3"),
        (main(json!({"terminated": {"exitCode": 137, "signal": 9}})), "Signal:9"),
        (main(json!({"terminated": {"exitCode": 137, "reason": "OOMKilled"}})), "OOMKilled"),
        (two(completed.clone(), running.clone(), true), "Running"),
        (two(completed.clone(), running, false), "NotReady"),
        (two(completed.clone(), failed, false), "Error"),
        (two(completed.clone(), completed, false), "Completed"),
        (init(json!({"waiting": {"reason": "PodInitializing"}})), "Init:0/1"),
        (init(json!({"waiting": {"reason": "ErrImagePull"}})), "Init:ErrImagePull"),
        (init(json!({"terminated": {"exitCode": 2}})), "Init:ExitCode:2"),
        (init(json!({"terminated": {"exitCode": 2, "signal": 15}})), "Init:Signal:15"),
        (init(json!({"terminated": {"exitCode": 2, "reason": "Error"}})), "Init:Error"),
    ];
    let spec = json!({"containers": [{"name": "c"}], "initContainers": [{"name": "i"}]});
    for (status, want) in cases {
        assert_eq!(cells(pod(spec.clone(), status.clone()))[2], want, "{status}");
    }
}

#[test]
fn a_pod_on_its_way_out() {
    let mut it = pod(json!({}), json!({"phase": "Running"}));
    it["metadata"]["deletionTimestamp"] = json!(seconds_ago(0));
    assert_eq!(cells(it.clone())[2], "Terminating");
    it["status"]["reason"] = json!("NodeLost");
    assert_eq!(cells(it.clone())[2], "Unknown");
    it["status"] = json!({"phase": "Succeeded"});
    assert_eq!(cells(it)[2], "Succeeded");
}

#[test]
fn restarts_of_init_containers_count_until_they_are_done() {
    let got = cells(pod(
        json!({"containers": [{"name": "c"}], "initContainers": [{"name": "i"}]}),
        json!({
            "phase": "Pending",
            "initContainerStatuses": [{"name": "i", "restartCount": 3, "state": {"waiting": {"reason": "CrashLoopBackOff"}},
                "lastState": {"terminated": {"finishedAt": seconds_ago(130)}}}],
        }),
    ));
    assert_eq!(got[2..4], ["Init:CrashLoopBackOff", "3 (2m10s ago)"]);
}
