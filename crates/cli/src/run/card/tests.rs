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
    let mut tails = Tails::new();
    let named = ["default", "policy-2-x", "main"].map(ToOwned::to_owned);
    tails.insert(named, ["step 41", "Traceback", "  boom"].map(ToOwned::to_owned).into());
    let text = lines(&model, &tails, Paint::new(false)).join("\n") + "\n";
    golden::check("run-card.txt", &text);
    let wanted = containers(&model);
    assert_eq!(wanted.len(), 5, "three of one, two of another: {wanted:?}");
}
