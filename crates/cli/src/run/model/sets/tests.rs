use serde_json::{Value, json};

use crate::{
    exit::Exit,
    run::{
        jobset::{
            in_place::tests::restarting,
            tests::{condition, object, status},
        },
        model::{Model, Seen, State},
    },
};

fn run_of_set() -> Model {
    let mut model = Model::new(true);
    model.add(&object(json!({})));
    model.set_prefixes(true);
    model
}

/// A Job of the set, of an attempt.
fn job(name: &str, group: &str, attempt: i32, status: Value) -> Value {
    let labels = json!({"jobset.sigs.k8s.io/jobset-name": "train",
        "jobset.sigs.k8s.io/jobset-uid": "train",
        "jobset.sigs.k8s.io/replicatedjob-name": group,
        "jobset.sigs.k8s.io/restart-attempt": attempt.to_string()});
    json!({"kind": "Job", "metadata": {"namespace": "default", "name": name,
        "uid": format!("{name}-{attempt}"), "labels": labels}, "spec": {}, "status": status})
}

/// A pod of such a Job.
fn pod(job: &str, group: &str, attempt: i32, status: Value) -> Value {
    let mut pod = self::job(&format!("{job}-0-{attempt}"), group, attempt, status);
    pod["kind"] = json!("Pod");
    pod["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"] = json!("0");
    pod["metadata"]["ownerReferences"] = json!([{"kind": "Job", "name": job,
        "uid": format!("{job}-{attempt}"), "controller": true}]);
    pod["spec"] = json!({"containers": [{"name": "main"}]});
    pod
}

fn texts(seen: &Seen) -> Vec<&str> {
    seen.notes.iter().map(|note| note.text.as_str()).collect()
}

fn failed(reason: &str) -> Value {
    json!({"conditions": [{"type": "Failed", "status": "True", "reason": reason, "message": "m"}]})
}

#[test]
fn a_run_of_a_set_is_over_when_the_set_is() {
    let ended = |kind: &str| {
        let mut ended = status(0, 0, 1, 2);
        ended["conditions"] = json!([condition(kind, true, "R", "m")]);
        ended
    };
    let mut model = run_of_set();
    assert_eq!(model.state(), State::Going);
    model.see_job(&job("train-driver-0", "driver", 0, failed("BackoffLimitExceeded")));
    assert_eq!(model.state(), State::Going, "what a Job comes to is not the end");
    let seen = model.see_set(&object(ended("Completed")));
    assert_eq!(texts(&seen), ["jobset/train succeeded (R: m)"]);
    assert_eq!(model.state(), State::Over(Exit::Success));
    let mut model = run_of_set();
    model.see_set(&object(ended("Failed")));
    assert_eq!(model.state(), State::Over(Exit::Failed));
    let mut model = run_of_set();
    model.set_gone("default", "train", "train");
    assert_eq!(model.state(), State::Over(Exit::Failed));
}

#[test]
fn jobs_of_the_next_attempt_take_the_place_of_those_before() {
    let mut model = run_of_set();
    let running = json!({"phase": "Running", "containerStatuses": [
        {"name": "main", "restartCount": 0, "state": {"running": {}}}]});
    // The pod is heard of before its Job is.
    let seen = model.see_pod(&pod("train-driver-0", "driver", 0, running.clone()));
    assert_eq!(seen.logs[0].label, "train-driver-0-0#0");
    let seen = model.see_job(&job("train-driver-0", "driver", 0, failed("PodFailurePolicy")));
    assert_eq!(texts(&seen), ["job/train-driver-0 failed (PodFailurePolicy: m)"]);
    let mut restarting = status(1, 0, 0, 0);
    let message = "applying RestartJobSetAndIgnoreMaxRestarts failure policy action \
                   (first failed job: train-driver-0)";
    restarting["conditions"] =
        json!([condition("RestartingJobSet", true, "FailurePolicy_maintenance", message)]);
    let seen = model.see_set(&object(restarting));
    let want = "jobset/train restarts, attempt 1: job/train-driver-0 failed (PodFailurePolicy): \
                rule maintenance says RestartJobSetAndIgnoreMaxRestarts; 0 of 3 restarts used, 3 \
                left; 1 more did not count";
    assert_eq!(texts(&seen), [want]);
    let lines = model.unfinished();
    let why = "waits for 1 Job of the attempt before to end";
    assert!(lines[0].ends_with(why), "{lines:?}");
    model.job_gone("default", "train-driver-0", "train-driver-0-0");
    let why = "replicated job workers waits for driver to be ready";
    assert!(model.unfinished()[0].ends_with(why), "{:?}", model.unfinished());
    model.see_job(&job("train-driver-0", "driver", 1, json!({"active": 1})));
    assert_eq!(model.jobs.len(), 1);
    let seen = model.see_pod(&pod("train-driver-0", "driver", 1, running));
    assert_eq!(seen.logs[0].label, "train-driver-0-0#1");
    assert_eq!(model.state(), State::Going);
}

/// The set with other rules.
fn with_rules(rules: Value, status: Value) -> Value {
    let mut set = object(status);
    set["spec"]["failurePolicy"]["rules"] = rules;
    set
}

#[test]
fn a_job_that_a_rule_leaves_failed_is_told_with_the_rule() {
    let rules = json!([
        {"name": "bug", "action": "FailJobSet", "onJobFailureReasons": ["PodFailurePolicy"]},
        {"name": "leave", "action": "FailJob", "onJobFailureMessagePatterns": ["^m"],
            "targetReplicatedJobs": ["workers"]}]);
    let mut model = Model::new(true);
    model.add(&with_rules(rules.clone(), status(1, 0, 1, 2)));
    let gone = job("train-workers-0", "workers", 0, failed("BackoffLimitExceeded"));
    let seen = model.see_job(&gone);
    assert_eq!(texts(&seen).len(), 1, "nothing answers a Job of the attempt before");
    let left = job("train-workers-0", "workers", 1, failed("BackoffLimitExceeded"));
    let seen = model.see_job(&left);
    let want = "jobset/train leaves job/train-workers-0: rule leave says FailJob, for a message \
                like \"^m\" and for replicated job workers";
    assert_eq!(texts(&seen), ["job/train-workers-0 failed (BackoffLimitExceeded: m)", want],);
    assert!(texts(&model.see_job(&left)).is_empty(), "told already");
    let seen = model.see_job(&job("train-driver-0", "driver", 1, failed("Other")));
    assert_eq!(texts(&seen).len(), 1, "no rule leaves it");

    let mut ended = status(1, 0, 0, 0);
    let message = "jobset failed due to one or more job failures (first failed job: \
                   train-workers-0)";
    ended["conditions"] = json!([condition("Failed", true, "FailedJobs", message)]);
    let seen = model.see_set(&with_rules(rules, ended));
    let want = format!(
        "jobset/train failed (FailedJobs: {message}): rule leave says FailJob, for a message like \
         \"^m\" and for replicated job workers"
    );
    assert_eq!(texts(&seen), [want]);
}

#[test]
fn a_set_that_a_rule_fails_is_told_with_the_rule() {
    let bug = json!([{"name": "bug", "action": "FailJobSet", "onJobFailureReasons": ["Why"]}]);
    let any = json!([{"name": "any", "action": "FailJobSet"}]);
    let message = "applying FailJobSet failure policy action (first failed job: train-driver-0)";
    let cases = [
        (bug, "Why", ": rule bug says FailJobSet, for the reason Why"),
        (any.clone(), "Why", ": rule any says FailJobSet, which matches every failure"),
        // Nobody told of the Job: no rule is made up.
        (any, "", ""),
    ];
    for (rules, reason, want) in cases {
        let mut model = Model::new(true);
        model.add(&with_rules(rules.clone(), status(0, 0, 1, 2)));
        if !reason.is_empty() {
            model.see_job(&job("train-driver-0", "driver", 0, failed(reason)));
        }
        let mut ended = status(0, 0, 0, 0);
        ended["conditions"] =
            json!([condition("Failed", true, "FailJobSetFailurePolicyAction", message)]);
        let seen = model.see_set(&with_rules(rules, ended));
        let want = format!("jobset/train failed (FailJobSetFailurePolicyAction: {message}){want}");
        assert_eq!(texts(&seen), [want]);
    }
}

#[test]
fn a_set_that_has_failed_waits_for_news_of_the_job_it_failed_of() {
    let rules = json!([{"name": "any", "action": "FailJobSet"}]);
    let message = "applying FailJobSet failure policy action (first failed job: train-driver-0)";
    let mut ended = status(0, 0, 0, 0);
    ended["conditions"] =
        json!([condition("Failed", true, "FailJobSetFailurePolicyAction", message)]);
    let mut model = Model::new(true);
    model.add(&with_rules(rules.clone(), status(0, 0, 1, 2)));
    model.see_job(&job("train-driver-0", "driver", 0, json!({"active": 1})));
    model.see_set(&with_rules(rules, ended));
    let mut gone = model.clone();
    assert_eq!(model.state(), State::Stalled);
    let seen = model.see_job(&job("train-driver-0", "driver", 0, failed("Why")));
    let want = "jobset/train failed of job/train-driver-0: rule any says FailJobSet, which matches \
                every failure";
    assert_eq!(texts(&seen), ["job/train-driver-0 failed (Why: m)", want]);
    assert_eq!(model.state(), State::Over(Exit::Failed));
    gone.job_gone("default", "train-driver-0", "train-driver-0-0");
    assert_eq!(gone.state(), State::Over(Exit::Failed), "nothing will be told of it");
}

#[test]
fn pods_of_attempts_long_past_are_forgotten() {
    let mut model = run_of_set();
    for attempt in 0..10 {
        model.see_set(&object(status(attempt, 0, 1, 2)));
        model.see_pod(&pod("train-driver-0", "driver", attempt, json!({"phase": "Failed"})));
    }
    assert!(model.pods.len() <= 3, "{}", model.pods.len());
}

#[test]
fn what_is_of_another_set_of_the_name_is_not_ours() {
    let mut model = run_of_set();
    let mut other = job("train-driver-0", "driver", 0, json!({}));
    other["metadata"]["labels"]["jobset.sigs.k8s.io/jobset-uid"] = json!("other");
    model.see_job(&other);
    assert!(model.jobs.is_empty());
}

#[test]
fn a_set_that_nothing_moves_is_stalled() {
    let mut model = run_of_set();
    model.see_set(&object(status(0, 0, 0, 0)));
    let unplaced = json!({"phase": "Pending", "conditions": [{"reason": "Unschedulable",
        "message": "0/1 nodes are available"}]});
    model.see_job(&job("train-driver-0", "driver", 0, json!({"active": 1})));
    assert_eq!(model.state(), State::Going, "its pods may come");
    model.see_pod(&pod("train-driver-0", "driver", 0, unplaced));
    assert_eq!(model.state(), State::Stalled);
    let said = &model.unfinished()[0];
    assert!(said.ends_with("cannot be placed: 0/1 nodes are available"), "{said}");

    let mut refused = run_of_set();
    let event = json!({"involvedObject": {"kind": "JobSet", "namespace": "default",
        "name": "train", "uid": "train"}, "reason": "JobCreationFailed",
        "message": "job \"x\" creation failed with error: Job.batch \"x\" is invalid: y"});
    assert_eq!(refused.see_event(&event).notes.len(), 1);
    assert!(refused.see_event(&event).notes.is_empty(), "told already");
    assert_eq!(refused.state(), State::Doomed);
}

fn not_created(why: &str) -> Value {
    json!({"involvedObject": {"kind": "JobSet", "namespace": "default", "name": "train",
        "uid": "train"}, "reason": "JobCreationFailed", "message": why})
}

#[test]
fn a_set_whose_jobs_are_invalid_can_never_start() {
    let invalid = "job \"a\" creation failed with error: Job.batch \"a\" is invalid: must be x";
    let forbidden = "job \"b\" creation failed with error: jobs \"b\" is forbidden: no room";
    let away = "job \"c\" creation failed with error: timeout";
    let both = format!("{invalid}\n{away}");
    for (why, want) in [
        (invalid, State::Doomed),
        (both.as_str(), State::Doomed),
        (forbidden, State::Stalled),
        (away, State::Going),
    ] {
        let mut model = run_of_set();
        let seen = model.see_event(&not_created(why));
        assert_eq!(texts(&seen).len(), 1);
        assert_eq!(model.state(), want, "{why}");
        let says_job = model.unfinished()[0].contains("is invalid: must be x");
        assert_eq!(says_job, want == State::Doomed);
    }
    // As long as another Job of it runs, something may come of it.
    let mut model = run_of_set();
    model.see_job(&job("train-driver-0", "driver", 0, json!({"active": 1})));
    model.see_event(&not_created(invalid));
    model.see_set(&object(status(0, 0, 1, 0)));
    assert_eq!(model.state(), State::Going);
    let complete = json!({"conditions": [{"type": "Complete", "status": "True"}]});
    model.see_job(&job("train-driver-0", "driver", 0, complete));
    assert_eq!(model.state(), State::Doomed);
    // On a cluster of others somebody may help.
    let mut shared = Model::new(false);
    shared.add(&object(json!({})));
    shared.see_event(&not_created(invalid));
    assert_eq!(shared.state(), State::Going);
}

#[test]
fn a_set_whose_jobs_are_invalid_has_stopped_when_it_is_suspended() {
    let invalid = "job \"a\" creation failed with error: Job.batch \"a\" is invalid: must be x";
    let mut model = run_of_set();
    model.see_event(&not_created(invalid));
    assert!(!model.has_stopped(), "its Jobs may still be about to start");
    let mut asleep = object(json!({}));
    asleep["spec"]["suspend"] = json!(true);
    model.see_pod(&pod("train-driver-0", "driver", 0, json!({"phase": "Running"})));
    model.see_set(&asleep);
    assert!(!model.has_stopped(), "a pod is being ended");
    model.see_pod(&pod("train-driver-0", "driver", 0, json!({"phase": "Failed"})));
    assert!(model.has_stopped());
}

#[test]
fn a_pod_that_was_asked_to_end_is_not_told_as_a_failure() {
    let end = |code: i64| {
        json!({"phase": "Failed", "containerStatuses": [{"name": "main", "state":
            {"terminated": {"exitCode": code, "reason": "Error"}}}]})
    };
    let deleting = |status: Value| {
        let mut pod = pod("train-driver-0", "driver", 0, status);
        pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:30Z");
        pod
    };
    let killed = "pod/train-driver-0-0-0 was stopped: container main ended with exit code 137 \
                  (SIGKILL)";
    for (code, want) in [(143, "pod/train-driver-0-0-0 was stopped"), (137, killed)] {
        let mut model = run_of_set();
        model.see_pod(&deleting(json!({"phase": "Running"})));
        assert_eq!(texts(&model.see_pod(&deleting(end(code)))), [want]);
        assert!(texts(&model.see_pod(&deleting(end(code)))).is_empty(), "told already");
    }
    // One that failed by itself stays a failure when it is cleaned up.
    let mut model = run_of_set();
    model.see_pod(&pod("train-driver-0", "driver", 0, json!({"phase": "Running"})));
    let seen = model.see_pod(&pod("train-driver-0", "driver", 0, end(143)));
    let want = "pod/train-driver-0-0-0 failed: container main ended with exit code 143 (SIGTERM)";
    assert_eq!(texts(&seen), [want]);
    assert!(texts(&model.see_pod(&deleting(end(143)))).is_empty());
}

#[test]
fn a_suspended_set_stands_still_once_its_pods_have_ended() {
    let mut model = run_of_set();
    let mut asleep = object(status(0, 0, 0, 0));
    asleep["spec"]["suspend"] = json!(true);
    model.see_pod(&pod("train-driver-0", "driver", 0, json!({"phase": "Running"})));
    let seen = model.see_set(&asleep);
    let want = "jobset/train is suspended: set spec.suspend to false to start it";
    assert_eq!(texts(&seen), ["jobset/train is running", want]);
    assert_eq!(model.state(), State::Going, "a pod is being ended");
    model.see_pod(&pod("train-driver-0", "driver", 0, json!({"phase": "Failed"})));
    asleep["status"]["conditions"] =
        json!([condition("Suspended", true, "SuspendedJobs", "jobset is suspended")]);
    model.see_set(&asleep);
    assert_eq!(model.state(), State::Over(Exit::Failed));
}

#[test]
fn a_gang_that_forms_does_not_run_and_stands_still_when_one_of_it_cannot_start() {
    let told = |phase: &str| {
        let mut set = restarting(json!({"epoch": 0, "restarts": 0, "phase": phase}));
        set["metadata"]["annotations"]["alpha.jobset.sigs.k8s.io/inplace-restarts"] = json!("0");
        set
    };
    let mut model = run_of_set();
    let want = "jobset/train has started; its workers run when all of them are there";
    assert_eq!(texts(&model.see_set(&told("Forming"))), [want]);
    for (name, group) in [("train-driver-0", "driver"), ("train-workers-0", "workers")] {
        model.see_job(&job(name, group, 0, json!({"active": 1})));
    }
    model.see_pod(&pod("train-driver-0", "driver", 0, json!({"phase": "Running"})));
    assert_eq!(model.state(), State::Going, "the others may come");
    let unplaced = json!({"phase": "Pending", "conditions": [{"reason": "Unschedulable",
        "message": "0/1 nodes are available"}]});
    model.see_pod(&pod("train-workers-0", "workers", 0, unplaced.clone()));
    assert_eq!(model.state(), State::Stalled, "what has started waits for it");
    model.see_pod(&pod("train-workers-0", "workers", 0, json!({"phase": "Running"})));
    assert_eq!(model.state(), State::Going);
    assert_eq!(texts(&model.see_set(&told("Running"))), ["jobset/train is running"]);
    // Once they have run, the gang has its own deadlines.
    model.see_pod(&pod("train-workers-0", "workers", 0, unplaced));
    assert_eq!(model.state(), State::Going);
}

#[test]
fn a_restart_in_place_is_told_with_where_its_time_went() {
    use crate::run::jobset::in_place::tests::{restart, restarting};
    let told = |epoch: i32, phase: &str, waiting: &str, restarts: Value| {
        restarting(json!({"epoch": epoch, "restarts": epoch, "phase": phase, "waiting": waiting,
            "lastRestarts": restarts}))
    };
    let mut model = run_of_set();
    model.see_set(&told(0, "Running", "", json!([])));
    let seen = model.see_set(&told(1, "Stopping", "2 workers are being stopped: 0, 5", json!([])));
    let waits = "jobset/train: the workers wait: 2 workers are being stopped: 0, 5";
    assert_eq!(texts(&seen), [waits]);
    let fewer = told(1, "Stopping", "1 workers are being stopped: 5", json!([]));
    assert!(texts(&model.see_set(&fewer)).is_empty(), "what for is told already");
    assert!(model.unfinished()[0].ends_with("1 workers are being stopped: 5"));
    let seen = model.see_set(&told(1, "Running", "", json!([restart(1)])));
    let want = [
        "jobset/train restarted 6 workers in place in 23.0 ms (epoch 1): train-workers-0-1 exited \
         with code 1; 1 of 3 restarts used, 2 left",
        "  detected 0.4 ms, decided 1.2 ms, stopped 12.3 ms, barrier 0.1 ms, released 0.8 ms, \
         running 8.1 ms",
    ];
    assert_eq!(texts(&seen), want);
    assert!(texts(&model.see_set(&told(1, "Running", "", json!([restart(1)])))).is_empty());

    let stale = told(2, "Stopping", "1 workers are missing: 4", json!([restart(1)]));
    assert_eq!(texts(&model.see_set(&stale)).len(), 1);
    let mut anew = told(3, "Recreating", "1 workers are missing: 4", json!([restart(1)]));
    anew["metadata"]["annotations"]["alpha.jobset.sigs.k8s.io/inplace-restarts"] = json!("3");
    anew["status"]["restarts"] = json!(1);
    anew["status"]["lockstep"]["lastRestarts"] = json!([{"attempt": 0, "action": "Recreate",
        "reason": "InPlaceRestartFailed", "job": "train-workers-0",
        "message": "train-workers-0-1 its pod was lost"}]);
    let want = "jobset/train restarts, attempt 1: train-workers-0-1: its pod was lost, and not all \
                workers came back in place; 3 of 3 restarts used, 0 left";
    assert_eq!(texts(&model.see_set(&anew)), [want], "what was said of before is told already");
}

#[test]
fn a_set_whose_workers_failed_in_place_is_explained_when_their_pods_have_ended() {
    use crate::run::jobset::in_place::tests::restarting;
    let mut model = run_of_set();
    model.see_job(&job("train-workers-0", "workers", 0, json!({"active": 1})));
    model.see_pod(&pod("train-workers-0", "workers", 0, json!({"phase": "Running"})));
    let mut failed = restarting(json!({"epoch": 1, "restarts": 2, "phase": "Failed"}));
    failed["status"]["conditions"] = json!([condition("Failed", true, "NoProgress", "m")]);
    model.see_set(&failed);
    assert_eq!(model.state(), State::Stalled);
    model.see_pod(&pod("train-workers-0", "workers", 0, json!({"phase": "Failed"})));
    assert_eq!(model.state(), State::Over(Exit::Failed));
}
