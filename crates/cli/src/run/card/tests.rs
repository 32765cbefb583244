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
fn the_card_of_a_set_names_rule_job_and_pod() {
    use crate::run::jobset::tests::{condition, object, status};
    let child = |attempt: i32, reason: &str| {
        let mut job = job("train-workers-1", reason, "Job has reached the specified backoff limit");
        job["metadata"]["uid"] = json!(format!("train-workers-1-{attempt}"));
        job["metadata"]["labels"] = json!({"jobset.sigs.k8s.io/jobset-name": "train",
            "jobset.sigs.k8s.io/jobset-uid": "train",
            "jobset.sigs.k8s.io/replicatedjob-name": "workers",
            "jobset.sigs.k8s.io/restart-attempt": attempt.to_string()});
        job
    };
    let suffix = "(first failed job: train-workers-1)";
    let set = |restarts: i32, kind: &str, reason: &str, message: &str| {
        let mut set = object(status(restarts, restarts, 0, 0));
        set["spec"]["failurePolicy"]["rules"] = json!([
            {"name": "bug", "action": "FailJobSet", "onJobFailureReasons": ["PodFailurePolicy"]},
            {"name": "worker", "action": "RestartJobSet", "targetReplicatedJobs": ["workers"]}]);
        let message = format!("{message} {suffix}");
        set["status"]["conditions"] = json!([condition(kind, true, reason, &message)]);
        set
    };
    let mut model = Model::new(true);
    model.add(&set(0, "RestartingJobSet", "", ""));
    for attempt in 0..7 {
        model.see_job(&child(attempt, "BackoffLimitExceeded"));
        let applying = "applying RestartJobSet failure policy action";
        model.see_set(&set(attempt + 1, "RestartingJobSet", "FailurePolicy_worker", applying));
    }
    model.see_job(&child(7, "BackoffLimitExceeded"));
    let mut pod = worker("train-workers-1", 0, 137, 5);
    pod["metadata"]["ownerReferences"][0]["uid"] = json!("train-workers-1-7");
    pod["metadata"]["labels"]["jobset.sigs.k8s.io/jobset-name"] = json!("train");
    model.see_pod(&pod);
    let reached = "jobset failed due to reaching max number of restarts";
    model.see_set(&set(7, "Failed", "ReachedMaxRestarts", reached));
    let mut text = lines(&model, &Evidence::default(), Paint::new(false)).join("\n") + "\n\n";

    let mut model = Model::new(true);
    model.add(&set(0, "RestartingJobSet", "", ""));
    model.see_job(&child(0, "PodFailurePolicy"));
    let failing = "applying FailJobSet failure policy action";
    model.see_set(&set(0, "Failed", "FailJobSetFailurePolicyAction", failing));
    text.push_str(&lines(&model, &Evidence::default(), Paint::new(false)).join("\n"));
    text.push_str("\n\n");

    // A Job that was left failed, and then nothing else was left; and one that nobody saw.
    for is_seen in [true, false] {
        let left = |kind: &str, reason: &str, message: &str| {
            let mut set = set(0, kind, reason, message);
            set["spec"]["failurePolicy"]["rules"][1]["action"] = json!("FailJob");
            set
        };
        let mut model = Model::new(true);
        model.add(&left("RestartingJobSet", "", ""));
        if is_seen {
            model.see_job(&child(0, "BackoffLimitExceeded"));
        }
        let failing = "jobset failed due to one or more job failures";
        model.see_set(&left("Failed", "FailedJobs", failing));
        text.push_str(&lines(&model, &Evidence::default(), Paint::new(false)).join("\n"));
        text.push_str("\n\n");
    }

    let mut held = Model::new(true);
    held.add(&object(status(0, 0, 0, 0)));
    text.push_str(&lines(&held, &Evidence::default(), Paint::new(false)).join("\n"));
    text.push('\n');
    golden::check("run-card-jobset.txt", &text);
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

#[test]
fn the_card_of_a_job_that_a_queue_gave_up_says_why_and_how_to_go_on() {
    use crate::queueing::workload::tests::{condition, object};
    let mut text = String::new();
    for is_private in [true, false] {
        let mut model = Model::new(is_private);
        for name in ["late", "large"] {
            model.add(&json!({"kind": "Job", "spec": {"suspend": true}, "metadata": {
                "namespace": "default", "name": name, "uid": name,
                "labels": {"kueue.x-k8s.io/queue-name": "team"}}}));
        }
        let mut off = object(
            "late",
            0,
            json!({"conditions": [condition("Evicted", true,
            "DeactivatedDueToRequeuingLimitExceeded", "The workload is deactivated due to \
            exceeding the maximum number of re-queuing retries")]}),
        );
        off["spec"]["active"] = json!(false);
        off["status"]["schedulingStats"] = json!({"evictions": [
            {"reason": "PodsReadyTimeout", "underlyingCause": "WaitForStart", "count": 3}]});
        let mut pod = worker("late", 0, 0, 0);
        pod["status"] = json!({"phase": "Pending", "conditions": [{"reason": "Unschedulable",
            "message": "0/1 nodes are available: 1 Insufficient cpu."}]});
        model.see_pod(&pod);
        model.pod_gone("default", "late-0-x", "late-0");
        model.see_workload(&off);
        model.see_workload(&object(
            "large",
            0,
            json!({"conditions": [condition(
            "lockstep.dev/Waiting", true, "NeverFits", "can never fit into ClusterQueue pool: \
            asks for 40 cpu, 12 at most\nraise nominalQuota of cpu of ClusterQueue pool by 28")]}),
        ));
        text.push_str(if is_private { "--- a cluster of its own\n" } else { "--- --cluster\n" });
        text.push_str(&lines(&model, &Evidence::default(), Paint::new(false)).join("\n"));
        text.push('\n');
    }
    golden::check("run-card-queued.txt", &text);
}

#[test]
fn the_card_of_a_set_that_restarted_in_place_names_the_limit_and_the_worker() {
    use crate::run::jobset::{
        in_place::tests::{restart, restarting},
        tests::condition,
    };
    let mut text = String::new();
    let reached = "jobset failed due to reaching max number of restarts (first failed job: \
                   train-workers-0)";
    let stuck = "jobset failed because its workers do not get anywhere: they failed 11 times in a \
                 row soon after they were started: last train-workers-0-1 exited with code 1";
    for (reason, message) in [("ReachedMaxRestarts", reached), ("NoProgress", stuck)] {
        let mut model = Model::new(true);
        model.add(&restarting(json!({"epoch": 0, "phase": "Running", "restarts": 0})));
        let mut child = job("train-workers-0", "", "");
        child["metadata"]["labels"] = json!({"jobset.sigs.k8s.io/jobset-name": "train",
            "jobset.sigs.k8s.io/jobset-uid": "train",
            "jobset.sigs.k8s.io/replicatedjob-name": "workers",
            "jobset.sigs.k8s.io/restart-attempt": "0"});
        child["status"]["conditions"] = json!([]);
        model.see_job(&child);
        for (index, code) in [(0, 143), (1, 1)] {
            let mut pod = worker("train-workers-0", index, code, 5);
            pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:10Z");
            model.see_pod(&pod);
        }
        let mut failed = restarting(json!({"epoch": 2, "phase": "Failed", "restarts": 4,
            "lastRestarts": [restart(1), restart(2)]}));
        failed["metadata"]["annotations"]["alpha.jobset.sigs.k8s.io/inplace-restarts"] = json!("4");
        failed["status"]["conditions"] = json!([condition("Failed", true, reason, message)]);
        model.see_set(&failed);
        text.push_str(&lines(&model, &Evidence::default(), Paint::new(false)).join("\n"));
        text.push_str("\n\n");
    }
    golden::check("run-card-in-place.txt", &text);
}
