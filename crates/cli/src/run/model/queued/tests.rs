use serde_json::json;

use super::*;
use crate::{
    exit::Exit,
    queueing::workload::tests::{admitted, condition, object},
    run::model::State as RunState,
};

const LATE: &str = "Exceeded the PodsReady timeout default/job-train-1a2b3";

fn job(is_suspended: bool, status: Value) -> Value {
    json!({"kind": "Job", "metadata": {"namespace": "default", "name": "train", "uid": "train",
        "labels": {"kueue.x-k8s.io/queue-name": "team"}},
        "spec": {"suspend": is_suspended, "parallelism": 4, "completions": 4}, "status": status})
}

fn run(is_private: bool) -> Model {
    let mut model = Model::new(is_private);
    model.add(&job(true, json!({"conditions": [condition("Suspended", true, "", "")]})));
    model
}

fn of(conditions: Vec<Value>) -> Value {
    json!({ "conditions": conditions })
}

fn waits(reason: &str, message: &str) -> Value {
    of(vec![
        condition("QuotaReserved", false, "WaitingForQuota", "m"),
        condition("lockstep.dev/Waiting", true, reason, message),
    ])
}

fn notes(seen: &Seen) -> Vec<&str> {
    seen.notes.iter().map(|note| note.text.as_str()).collect()
}

#[test]
fn a_job_in_a_queue_is_not_suspended_for_ever() {
    let mut model = run(true);
    let seen = model.see_job(&job(true, json!({})));
    assert!(seen.notes.is_empty(), "a queue starts it: {seen:?}");
    assert_eq!(model.state(), RunState::Stalled, "its Workload is on its way");
    let cases = [
        ("not looked at", json!({}), RunState::Going),
        ("waits for others", waits("NotEnoughQuota", "m"), RunState::Going),
        ("can never fit", waits("NeverFits", "m"), RunState::Stalled),
        ("there is no such queue", waits("QueueMissing", "m"), RunState::Stalled),
        ("waits before it is tried again", waits("BackOff", "m"), RunState::Going),
        ("may start", admitted("4", Some((false, "WaitForStart"))), RunState::Going),
        (
            "cannot be started",
            of(vec![condition("Finished", true, "FailedToStart", "m")]),
            RunState::Stalled,
        ),
    ];
    for (name, status, want) in cases {
        let mut model = run(true);
        model.see_workload(&object("train", 0, status.clone()));
        assert_eq!(model.state(), want, "{name}");
        let mut shared = run(false);
        shared.see_workload(&object("train", 0, status));
        let is_over = matches!(shared.state(), RunState::Over(_));
        assert!(!is_over, "somebody may help on a cluster of others: {name}");
    }
}

#[test]
fn a_job_that_a_user_suspended_still_is() {
    let mut model = Model::new(true);
    let mut plain = job(true, json!({"conditions": [condition("Suspended", true, "", "")]}));
    plain["metadata"]["labels"] = json!({});
    model.add(&plain);
    model.see_job(&plain);
    assert_eq!(model.state(), RunState::Over(Exit::Failed));
}

#[test]
fn why_it_waits_is_told_once_for_each_reason() {
    let mut model = run(true);
    let new = of(vec![condition("PodsReady", false, "WaitForStart", "m")]);
    assert!(model.see_workload(&object("train", 0, new)).notes.is_empty(), "nobody looked yet");
    let short = waits("NotEnoughQuota", "asks for 4 cpu, 1 free\nraise it by 3");
    let seen = model.see_workload(&object("train", 0, short.clone()));
    let want = "job/train waits in LocalQueue team: NotEnoughQuota: asks for 4 cpu, 1 free";
    assert_eq!(notes(&seen), [want]);
    assert!(!seen.notes[0].is_error, "waiting is what queues are for");
    assert!(model.see_workload(&object("train", 0, short)).notes.is_empty(), "told already");
    let unfinished = model.unfinished();
    assert!(unfinished[0].ends_with(&want["job/train ".len()..]), "{unfinished:?}");
    let seen = model.see_workload(&object("train", 0, waits("NeverFits", "too big\nask less")));
    let want = ["job/train waits in LocalQueue team: NeverFits: too big", "  to go on: ask less"];
    assert_eq!(notes(&seen), want);
    assert!(seen.notes[0].is_error);
}

#[test]
fn where_many_wait_numbers_are_not_told_again() {
    for (count, want) in [(3, 1), (NUMBERS_TOLD + 1, 0)] {
        let mut model = Model::new(true);
        for number in 0..count {
            let name = format!("train-{number}");
            let mut one = job(true, json!({}));
            one["metadata"]["name"] = json!(name);
            one["metadata"]["uid"] = json!(name);
            model.add(&one);
            let seen = model.see_workload(&object(&name, 0, waits("NotEnoughQuota", "1 free")));
            assert_eq!(seen.notes.len(), 1);
        }
        let seen = model.see_workload(&object("train-0", 0, waits("NotEnoughQuota", "2 free")));
        assert_eq!(seen.notes.len(), want, "{count} wait");
        let seen = model.see_workload(&object("train-0", 0, waits("BackOff", "m")));
        assert_eq!(seen.notes.len(), 1, "another reason is news");
    }
}

#[test]
fn evictions_and_returns_are_told_with_cause_and_time() {
    let mut model = run(true);
    let seen = model.see_workload(&object("train", 0, admitted("4", None)));
    assert_eq!(notes(&seen), ["job/train was admitted by ClusterQueue pool"]);
    let mut late = admitted("4", Some((false, "WaitForStart")));
    late["conditions"].as_array_mut().expect("conditions").push(condition(
        "Evicted",
        true,
        "PodsReadyTimeout",
        LATE,
    ));
    late["requeueState"] = json!({"count": 1, "requeueAt": "2026-01-01T00:02:00Z"});
    let seen = model.see_workload(&object("train", 0, late.clone()));
    let want = format!(
        "job/train was evicted at 2026-01-01T00:01:00Z: PodsReadyTimeout: {LATE}; it is tried again \
         at 2026-01-01T00:02:00Z"
    );
    assert_eq!(notes(&seen), [want.as_str()]);
    assert!(model.see_workload(&object("train", 0, late)).notes.is_empty(), "told already");
    assert_eq!(model.state(), RunState::Going);
    let again = of(vec![
        condition("Evicted", true, "PodsReadyTimeout", LATE),
        condition("Requeued", true, "BackoffFinished", "The workload backoff was finished"),
    ]);
    let seen = model.see_workload(&object("train", 0, again));
    assert_eq!(
        notes(&seen)[0],
        "job/train is back in LocalQueue team: BackoffFinished: The workload backoff was finished"
    );
}

#[test]
fn deactivation_ends_a_run_wherever_it_is() {
    for is_private in [true, false] {
        let mut model = run(is_private);
        model.see_workload(&object("train", 0, admitted("4", Some((false, "WaitForStart")))));
        let reason = "DeactivatedDueToRequeuingLimitExceeded";
        let mut off = object(
            "train",
            0,
            of(vec![condition("Evicted", true, reason, "The workload is deactivated due to m")]),
        );
        off["spec"]["active"] = json!(false);
        off["status"]["schedulingStats"] = json!({"evictions": [
            {"reason": "PodsReadyTimeout", "underlyingCause": "WaitForStart", "count": 3}]});
        let seen = model.see_workload(&off);
        let want = format!(
            "job/train is deactivated: {reason}: The workload is deactivated due to m; evicted 3 \
             times for PodsReadyTimeout (WaitForStart)"
        );
        assert_eq!(notes(&seen), [want.as_str()]);
        assert!(seen.notes[0].is_error);
        assert_eq!(model.state(), RunState::Over(Exit::Failed));
        let mut going = model.clone();
        going.see_pod(&json!({"metadata": {"namespace": "default", "name": "p", "uid": "p",
            "ownerReferences": [{"kind": "Job", "name": "train", "uid": "train",
                "controller": true}]}, "status": {"phase": "Running"}}));
        assert_eq!(going.state(), RunState::Going, "its pods are still being ended");
    }
}

#[test]
fn pods_without_a_place_are_waited_for_while_a_clock_runs() {
    let unplaced = json!({"metadata": {"namespace": "default", "name": "p", "uid": "p",
        "ownerReferences": [{"kind": "Job", "name": "train", "uid": "train", "controller": true}]},
        "status": {"phase": "Pending", "conditions": [{"reason": "Unschedulable"}]}});
    for (ready, want) in
        [(None, RunState::Stalled), (Some((false, "WaitForStart")), RunState::Going)]
    {
        let mut model = run(true);
        model.see_workload(&object("train", 0, admitted("4", ready)));
        model.see_job(&job(false, json!({"startTime": "2026-01-01T00:01:00Z", "active": 1})));
        model.see_pod(&unplaced);
        assert_eq!(model.state(), want, "{ready:?}");
    }
}

#[test]
fn workloads_of_others_and_of_before_do_not_count() {
    let mut model = run(true);
    let mut foreign = object("train", 0, waits("NeverFits", "m"));
    foreign["metadata"]["ownerReferences"][0]["uid"] = json!("another");
    assert!(model.see_workload(&foreign).notes.is_empty());
    assert!(model.workloads.is_empty());
    model.see_workload(&object("train", 0, waits("NotEnoughQuota", "m")));
    let mut before = object("train", 0, of(vec![condition("Finished", true, "OutOfSync", "m")]));
    before["metadata"]["uid"] = json!("before");
    model.see_workload(&before);
    assert_eq!(model.state(), RunState::Going);
    model.workload_gone("w-train");
    assert_eq!(model.state(), RunState::Stalled, "it gets another one");
    assert!(model.has_workload(&("default".to_owned(), "job-train-1a2b3".to_owned())));
}

#[test]
fn a_run_that_is_being_ended_tells_nothing_of_queues() {
    let mut model = run(true);
    model.begin_stop();
    assert!(model.see_workload(&object("train", 0, waits("NeverFits", "m"))).notes.is_empty());
    assert!(model.has_stopped());
}
