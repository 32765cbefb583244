//! Evictions: the job stops, then its quota is given back.

use serde_json::{Value, json};

use super::super::world::{World, job_key};
use super::super::{JobKey, Kind, Waiting};
use super::{counts, group, job_spec, one_job, one_set, start};

const LATE: (&str, &str) = ("PodsReadyTimeout", "Exceeded the PodsReady timeout ns/a");

/// A Job that runs with one pod and is evicted.
fn evicted((reason, message): (&str, &str)) -> (World, JobKey) {
    let (mut world, key) = one_job();
    start(&mut world);
    world.edit_job(&key, |job| job["status"] = json!({"active": 1}));
    world.settle();
    world.tick(10);
    world.say("Evicted", true, reason, message);
    world.settle();
    (world, key)
}

// rule: queueing 2.6.1
#[test]
fn quota_is_held_while_pods_run() {
    let (mut world, key) = evicted(LATE);
    assert_eq!(world.job(&key)["spec"]["suspend"], true);
    assert!(world.condition("QuotaReserved").starts_with("True"));
    assert_eq!(world.waiting(&key), Some(Waiting::PodsActive));
    world.edit_job(&key, |job| job["status"]["active"] = 0.into());
    world.settle();
    assert!(world.condition("QuotaReserved").starts_with("False"));
}

// rule: queueing 2.6.2
// rule: queueing 3.7.1
#[test]
fn what_is_written_when_quota_is_given_back() {
    let deactivated = "The workload is deactivated";
    let over = "The workload is deactivated due to exceeding the maximum number of re-queuing \
                retries";
    let cases: [(&str, &str, bool, &str, &str); 5] = [
        ("PodsReadyTimeout", LATE.1, true, "False", "PendingEvaluation"),
        ("Preempted", "make room", true, "True", "PendingEvaluation"),
        ("NodeFailures", "a node is gone", true, "True", "PendingEvaluation"),
        ("Deactivated", deactivated, false, "False", "Deactivated"),
        ("DeactivatedDueToRequeuingLimitExceeded", over, false, "False", "Deactivated"),
    ];
    for (reason, message, is_active, requeued, why) in cases {
        let (mut world, key) = evicted((reason, message));
        world.edit_workload(|workload| workload["spec"]["active"] = is_active.into());
        world.asked();
        world.edit_job(&key, |job| job["status"]["active"] = 0.into());
        assert!(world.pass());
        assert!(world.pass());
        assert_eq!(world.asked(), ["patch a", "ask a", "write status"], "all of it at once");
        assert_eq!(world.condition("Requeued"), format!("{requeued} {reason}: {message}"));
        let told = if is_active { message } else { deactivated };
        assert_eq!(world.condition("QuotaReserved"), format!("False {why}: {told}"));
        let admitted = "False NoReservation: The workload has no reservation";
        assert_eq!(world.condition("Admitted"), admitted);
        let status = &world.workload()["status"];
        assert_eq!(status["admission"], Value::Null);
        assert_eq!(status["accumulatedPastExecutionTimeSeconds"], 10);
        let waits = "False WaitForStart: Not all pods are ready or succeeded";
        assert_eq!(world.condition("PodsReady"), waits);
        world.settle();
        assert_eq!(world.condition("PodsReady"), waits);
    }
}

// rule: queueing 2.6.3
#[test]
fn pods_that_still_run_are_looked_at_again_without_being_told() {
    let (mut world, _) = evicted(LATE);
    let again = world.driver.next_due().unwrap();
    assert_eq!(again.as_second() - world.now.as_second(), 5);
    world.tick(5);
    world.settle();
    assert!(world.driver.next_due().is_some(), "and again");
}

/// A JobSet of one Job that runs and is evicted. Its status is not written again.
fn evicted_set() -> (World, JobKey) {
    let spec = json!({"replicatedJobs": [group("w", 1, json!({}))]});
    let (mut world, key) = one_set(spec);
    start(&mut world);
    let uid = world.job(&key)["metadata"]["uid"].clone();
    let owner = json!([{"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "name": "js",
                        "uid": uid, "controller": true}]);
    let mut spec = job_spec(2, 2);
    spec["suspend"] = false.into();
    world.create(Kind::Job, "js-w-0", json!({"ownerReferences": owner}), spec);
    world.edit_job(&job_key("js-w-0"), |job| job["status"] = json!({"active": 2}));
    counts(&mut world, &key, &[("w", [1, 0, 0, 1])]);
    world.settle();
    world.say("Evicted", true, LATE.0, LATE.1);
    world.settle();
    assert_eq!(world.waiting(&key), Some(Waiting::PodsActive));
    (world, key)
}

// rule: queueing 2.6.3
#[test]
fn a_set_that_never_reports_again_gives_its_quota_back() {
    let (mut world, key) = evicted_set();
    let child = job_key("js-w-0");
    world.tick(100);
    world.settle();
    assert!(world.condition("QuotaReserved").starts_with("True"), "its Job does run");
    world.edit_job(&child, |job| {
        job["spec"]["suspend"] = true.into();
        job["status"] = json!({"active": 0});
    });
    world.settle();
    assert_eq!(world.job(&key)["status"]["replicatedJobsStatus"][0]["active"], 1);
    assert!(world.condition("QuotaReserved").starts_with("False"), "what it says is old");
}

// rule: queueing 2.6.1
#[test]
fn a_set_is_believed_for_a_while() {
    let (mut world, key) = evicted_set();
    world.delete_job(&job_key("js-w-0"));
    world.settle();
    assert_eq!(world.waiting(&key), Some(Waiting::PodsActive));
    for _ in 0..6 {
        assert!(world.condition("QuotaReserved").starts_with("True"));
        world.tick(5);
        world.settle();
    }
    assert!(world.condition("QuotaReserved").starts_with("False"));
}

// rule: queueing 2.3.9
#[test]
fn after_an_eviction_the_next_start_is_a_start() {
    let (mut world, key) = one_job();
    start(&mut world);
    world.edit_job(&key, |job| job["status"] = json!({"active": 2, "ready": 2}));
    world.settle();
    world.edit_job(&key, |job| job["status"] = json!({"active": 2, "ready": 1}));
    world.settle();
    assert!(world.condition("PodsReady").starts_with("False WaitForRecovery"));
    world.say("Evicted", true, LATE.0, LATE.1);
    world.edit_job(&key, |job| job["status"] = json!({"active": 0}));
    world.settle();
    assert!(world.condition("PodsReady").starts_with("False WaitForStart"));
    world.admit(json!({"cpu": "spot"}));
    world.settle();
    assert_eq!(world.job(&key)["spec"]["suspend"], false, "it starts again");
    assert!(world.condition("PodsReady").starts_with("False WaitForStart"));
}

#[test]
fn who_is_admitted_again_at_once_is_not_ready_by_what_was_true_before() {
    let (mut world, key) = one_set(json!({"startupPolicy": {"startupPolicyOrder": "InOrder"}}));
    start(&mut world);
    counts(&mut world, &key, &[("driver", [1, 0, 0, 1]), ("workers", [2, 0, 0, 2])]);
    world.settle();
    assert!(world.condition("PodsReady").starts_with("True Started"));
    assert!(world.condition("lockstep.dev/StartupStage").starts_with("False Started"));
    world.tick(10);
    world.say("Evicted", true, "Preempted", "make room");
    world.settle();
    counts(&mut world, &key, &[("driver", [0, 0, 0, 0]), ("workers", [0, 0, 0, 0])]);
    while world.condition("QuotaReserved").starts_with("True") {
        assert!(world.pass());
    }
    // The scheduler is quicker than any pass over the job.
    let waits = "False WaitForStart: Not all pods are ready or succeeded";
    assert_eq!(world.condition("PodsReady"), waits);
    assert_eq!(world.condition("lockstep.dev/StartupStage"), "");
    world.admit(json!({"cpu": "spot"}));
    world.settle();
    assert_eq!(world.condition("PodsReady"), waits, "a start, not a recovery");
}

#[test]
fn pods_that_are_on_their_way_out_hold_quota() {
    let (mut world, key) = evicted(LATE);
    world.edit_job(&key, |job| job["status"] = json!({"active": 0, "terminating": 1}));
    world.settle();
    assert!(world.condition("QuotaReserved").starts_with("True"));
    assert_eq!(world.waiting(&key), Some(Waiting::PodsActive));
    world.edit_job(&key, |job| job["status"] = json!({"active": 0, "terminating": 0}));
    world.settle();
    assert!(world.condition("QuotaReserved").starts_with("False"));
}

#[test]
fn pods_that_never_go_hold_quota_for_as_long_as_they_should_take() {
    let (mut world, key) = evicted(LATE);
    // The grace of its pods, and some more.
    let grace = &world.job(&key)["spec"]["template"]["spec"]["terminationGracePeriodSeconds"];
    assert_eq!(*grace, 30);
    world.edit_job(&key, |job| job["status"] = json!({"active": 0, "terminating": 1}));
    world.settle();
    for _ in 0..12 {
        assert!(world.condition("QuotaReserved").starts_with("True"));
        assert_eq!(world.waiting(&key), Some(Waiting::PodsActive));
        world.tick(5);
        world.settle();
    }
    assert!(world.condition("QuotaReserved").starts_with("False"), "their node may be gone");
}

#[test]
fn quota_is_held_while_nobody_knows_whether_the_job_was_started() {
    let (mut world, key) = one_job();
    world.admit(json!({}));
    // Of the patch that starts it nobody hears but that it was refused. Then comes the eviction.
    world.pass_unheard();
    assert_eq!(world.job(&key)["spec"]["suspend"], false);
    world.say("Evicted", true, "Preempted", "make room");
    for _ in 0..3 {
        world.tick(5);
        while world.pass() {}
        assert!(world.condition("QuotaReserved").starts_with("True"), "its pods may start");
    }
    world.edit_job(&key, |job| job["status"] = json!({"active": 2}));
    world.settle();
    assert_eq!(world.job(&key)["spec"]["suspend"], true);
    assert_eq!(world.waiting(&key), Some(Waiting::PodsActive));
    world.edit_job(&key, |job| job["status"] = json!({"active": 0}));
    world.settle();
    assert!(world.condition("QuotaReserved").starts_with("False"));
}

// rule: queueing 3.7.1
#[test]
fn a_job_that_is_deactivated_stops_and_comes_back_when_it_is_admitted_again() {
    let (mut world, key) = evicted(("Deactivated", "The workload is deactivated"));
    world.edit_workload(|workload| workload["spec"]["active"] = false.into());
    world.edit_job(&key, |job| job["status"]["active"] = 0.into());
    world.settle();
    assert_eq!(world.waiting(&key), Some(Waiting::Deactivated { deleted_at: None }));
    assert_eq!(world.driver.next_due(), None);
    world.edit_workload(|workload| workload["spec"]["active"] = true.into());
    world.settle();
    assert_eq!(world.waiting(&key), Some(Waiting::Pending { queue: "lq".into() }));
    world.admit(json!({"cpu": "spot"}));
    world.settle();
    assert_eq!(world.job(&key)["spec"]["suspend"], false);
}
