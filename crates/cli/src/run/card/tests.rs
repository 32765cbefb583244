use serde_json::{Value, json};

use super::*;
use crate::golden;

fn job(name: &str, reason: &str, message: &str) -> Value {
    let condition = json!({"type": "Failed", "status": "True", "reason": reason,
        "message": message});
    json!({"kind": "Job", "metadata": {"namespace": "default", "name": name, "uid": name},
        "spec": {"backoffLimit": 2, "activeDeadlineSeconds": 30, "backoffLimitPerIndex": 1,
            "maxFailedIndexes": 3},
        "status": {"startTime": "2026-01-01T00:00:00Z", "conditions": [condition]}})
}

fn worker(job: &str, index: u32, code: i64, second: u32) -> Value {
    let metadata = json!({"namespace": "default", "name": format!("{job}-{index}-x"),
        "uid": format!("{job}-{index}"),
        "labels": {"batch.kubernetes.io/job-completion-index": index.to_string()},
        "ownerReferences": [{"kind": "Job", "name": job, "uid": job, "controller": true}]});
    let ended = json!({"exitCode": code, "reason": "Error",
        "finishedAt": format!("2026-01-01T00:00:{second:02}Z")});
    json!({"kind": "Pod", "metadata": metadata, "spec": {"nodeName": "here"}, "status": {
        "phase": "Failed", "containerStatuses": [{"name": "main", "state": {"terminated": ended}}]}})
}

#[test]
fn a_card_says_who_failed_how_and_which_rule_decided() {
    let mut model = Model::new(true);
    let message = "Container main for pod default/policy-2-x failed with exit code 42 matching \
                   FailJob rule at index 1";
    model.add(&job("policy", "PodFailurePolicy", message));
    model.add(&job("limit", "BackoffLimitExceeded", "Job has reached the specified backoff limit"));
    model.add(&job("late", "DeadlineExceeded", "Job was active longer than specified deadline"));
    for (index, code, second) in [(0, 1, 1), (2, 42, 9)] {
        model.see_pod(&worker("policy", index, code, second));
    }
    let mut bystander = worker("policy", 3, 143, 10);
    bystander["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:10Z");
    model.see_pod(&bystander);
    for index in 0..5 {
        model.see_pod(&worker("limit", index, 139, 10 - index));
    }
    let stuck = json!({"phase": "Pending", "containerStatuses": [{"name": "c", "state":
        {"waiting": {"reason": "CreateContainerConfigError", "message": "no command"}}}]});
    let bare = |name: &str, status: Value| json!({"kind": "Pod", "metadata": {"namespace": "default", "name": name}, "status": status});
    model.add(&bare("stuck", stuck));
    model.add(&bare("fine", json!({"phase": "Succeeded"})));
    model.add(&bare(
        "slow",
        json!({"phase": "Failed", "reason": "DeadlineExceeded",
        "message": "Pod was active on the node longer than the specified deadline"}),
    ));
    let mut evidence = Evidence::default();
    let named = id(
        model.pods.values().find(|pod| pod.name == "policy-2-x").expect("it is there"),
        &End::of(&worker("policy", 2, 42, 9)["status"]["containerStatuses"][0]).expect("it ended"),
    );
    let said = ["step 41", "Traceback", "  boom"].map(ToOwned::to_owned);
    evidence.tails.insert(named, said.into());
    let text = lines(&model, &evidence, Paint::new(false)).join("\n") + "\n";
    golden::check("run-card.txt", &text);
    let wanted = containers(&model);
    assert_eq!(wanted.len(), 5, "three of one, two of another: {wanted:?}");
}

#[test]
fn a_pod_that_was_started_too_often_is_named_with_whoever_ended_it() {
    let mut model = Model::new(true);
    model.add(&job("live", "BackoffLimitExceeded", "Job has reached the specified backoff limit"));
    let mut pod = worker("live", 0, 143, 9);
    pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:10Z");
    let ended = pod["status"]["containerStatuses"][0]["state"].take();
    pod["status"]["phase"] = json!("Running");
    pod["status"]["containerStatuses"][0] =
        json!({"name": "main", "restartCount": 2, "state": {"running": {}}, "lastState": ended});
    model.see_pod(&pod);
    model.pod_gone("default", "live-0-x", "live-0");
    let mut evidence = Evidence::default();
    let killed = "Killing: Container main failed liveness probe, will be restarted".to_owned();
    evidence.causes.insert("live-0".to_owned(), vec![killed]);
    let text = lines(&model, &evidence, Paint::new(false)).join("\n");
    let want = "\
  pod      live-0-x, index 0, on node here
  because  Killing: Container main failed liveness probe, will be restarted
  restarts 2
  ended    container main ended with exit code 143 (SIGTERM), before its last start";
    assert!(text.ends_with(want), "{text}");
    assert_eq!(containers(&model).len(), 1);
}
