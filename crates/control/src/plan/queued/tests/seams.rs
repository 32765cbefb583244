//! Where start order, restarts and success policies meet queues.

use serde_json::{Value, json};

use super::super::Settings;
use super::super::world::World;
use super::{JobKey, counts, group, job_spec, job_with, one_set, queued, start};

const STAGE: &str = "lockstep.dev/StartupStage";

fn time(world: &World, kind: &str) -> String {
    let conditions = world.workload()["status"]["conditions"].as_array().unwrap();
    let found = conditions.iter().find(|one| one["type"] == kind).unwrap();
    found["lastTransitionTime"].as_str().unwrap().to_owned()
}

#[test]
fn start_order_and_timeout_every_stage_has_a_time_of_its_own() {
    let (mut world, key) = one_set(json!({"startupPolicy": {"startupPolicyOrder": "InOrder"}}));
    assert_eq!(world.condition(STAGE), "", "nothing starts before it is admitted");
    start(&mut world);
    assert_eq!(world.condition(STAGE), "True Starting: replicated job driver is starting (1 of 2)");
    let first = time(&world, STAGE);
    world.tick(100);
    counts(&mut world, &key, &[("driver", [0, 0, 0, 1]), ("workers", [0, 0, 0, 0])]);
    world.settle();
    assert_eq!(time(&world, STAGE), first, "still the same");
    counts(&mut world, &key, &[("driver", [1, 0, 0, 1]), ("workers", [0, 0, 0, 0])]);
    world.settle();
    assert_eq!(
        world.condition(STAGE),
        "True Starting: replicated job workers is starting (2 of 2)"
    );
    assert_eq!(time(&world, STAGE), world.now.to_string());
    assert!(world.condition("PodsReady").starts_with("False WaitForStart"), "not before all are");
    counts(&mut world, &key, &[("driver", [1, 0, 0, 1]), ("workers", [2, 0, 0, 2])]);
    world.settle();
    assert_eq!(world.condition(STAGE), "False Started: all replicated jobs are ready");
    assert!(world.condition("PodsReady").starts_with("True Started"));
    world.say("Evicted", true, "Preempted", "make room");
    counts(&mut world, &key, &[("driver", [0, 0, 0, 0]), ("workers", [0, 0, 0, 0])]);
    world.settle();
    assert_eq!(world.condition(STAGE), "");
}

#[test]
fn what_waits_for_something_to_complete_is_not_late() {
    let depends = |status: &str| json!({"dependsOn": [{"name": "driver", "status": status}]});
    let set = |status: &str| {
        one_set(json!({"replicatedJobs": [
            group("driver", 1, json!({})), group("workers", 2, depends(status)),
        ]}))
    };
    let (mut world, key) = set("Complete");
    start(&mut world);
    assert_eq!(world.condition(STAGE), "True Starting: replicated job driver is starting (1 of 2)");
    counts(&mut world, &key, &[("driver", [1, 0, 0, 1])]);
    world.settle();
    assert_eq!(
        world.condition(STAGE),
        "True Depending: replicated job workers waits for driver to complete (2 of 2)"
    );
    world.tick(10_000);
    counts(&mut world, &key, &[("driver", [0, 1, 0, 0])]);
    world.settle();
    assert_eq!(
        world.condition(STAGE),
        "True Starting: replicated job workers is starting (2 of 2)"
    );
    assert_eq!(time(&world, STAGE), world.now.to_string());
    let (mut world, key) = set("Ready");
    start(&mut world);
    counts(&mut world, &key, &[("driver", [1, 0, 0, 1])]);
    world.settle();
    assert_eq!(
        world.condition(STAGE),
        "True Starting: replicated job workers is starting (2 of 2)"
    );
}

/// A JobSet whose pods are all ready, ten seconds ago.
fn ready_set() -> (World, JobKey) {
    let (mut world, key) = one_set(json!({"failurePolicy": {"maxRestarts": 3}}));
    start(&mut world);
    all_ready(&mut world, &key);
    assert!(world.condition("PodsReady").starts_with("True Started"));
    world.tick(10);
    (world, key)
}

fn all_ready(world: &mut World, key: &JobKey) {
    counts(world, key, &[("driver", [1, 0, 0, 1]), ("workers", [2, 0, 0, 2])]);
    world.settle();
}

fn some_ready(world: &mut World, key: &JobKey) {
    counts(world, key, &[("driver", [1, 0, 0, 1]), ("workers", [1, 0, 0, 1])]);
    world.settle();
}

fn restarted(world: &mut World, key: &JobKey) {
    let record = json!({"attempt": 0, "time": world.now.to_string(), "action": "RestartJobSet",
                        "job": "js-workers-0"});
    world.edit_job(key, |set| set["status"]["lockstep"]["lastRestarts"] = json!([record]));
}

#[test]
fn restart_and_recovery_a_restart_is_no_loss_of_pods_until_its_time_is_over() {
    let (mut world, key) = ready_set();
    restarted(&mut world, &key);
    some_ready(&mut world, &key);
    assert!(world.condition("PodsReady").starts_with("True Started"), "a known state");
    assert_eq!(world.condition(STAGE), "True Restarting: a restart is in progress");
    let due = world.driver.next_due().unwrap();
    assert_eq!(due.as_second() - world.now.as_second(), 30 * 60, "with a time of its own");
    world.tick(30 * 60 - 1);
    some_ready(&mut world, &key);
    assert!(world.condition("PodsReady").starts_with("True Started"));
    world.tick(1);
    world.settle();
    assert!(world.condition("PodsReady").starts_with("False WaitForRecovery"), "it is over");
    all_ready(&mut world, &key);
    assert!(world.condition("PodsReady").starts_with("True Recovered"));
    assert_eq!(world.condition(STAGE), "False Started: all replicated jobs are ready");
}

#[test]
fn restart_and_recovery_pods_that_are_lost_after_a_restart_are_lost() {
    let (mut world, key) = ready_set();
    restarted(&mut world, &key);
    some_ready(&mut world, &key);
    world.tick(20);
    all_ready(&mut world, &key);
    assert_eq!(world.condition(STAGE), "False Started: all replicated jobs are ready");
    world.tick(20);
    some_ready(&mut world, &key);
    assert!(world.condition("PodsReady").starts_with("False WaitForRecovery"));
}

#[test]
fn restart_and_recovery_pods_that_are_lost_without_a_restart_are_lost() {
    let (mut world, key) = ready_set();
    some_ready(&mut world, &key);
    assert!(world.condition("PodsReady").starts_with("False WaitForRecovery"));
    assert_eq!(world.condition(STAGE), "");
}

#[test]
fn restart_in_place_and_readiness_the_barrier_is_restart_time() {
    let phase = |world: &mut World, key: &JobKey, phase: &str| {
        world.edit_job(key, |set| {
            set["status"]["lockstep"]["inPlace"] =
                json!({"epoch": 1, "restarts": 1, "phase": phase});
        });
    };
    for restarting in ["Stopping", "Forming", "Recreating"] {
        let (mut world, key) = ready_set();
        phase(&mut world, &key, restarting);
        some_ready(&mut world, &key);
        assert!(world.condition("PodsReady").starts_with("True"), "{restarting}");
        assert_eq!(world.condition(STAGE), "True Restarting: a restart is in progress");
        let due = world.driver.next_due().unwrap();
        assert_eq!(due.as_second() - world.now.as_second(), 30 * 60);
        world.tick(60);
        phase(&mut world, &key, "Running");
        all_ready(&mut world, &key);
        assert!(world.condition(STAGE).starts_with("False Started"));
    }
    let (mut world, key) = ready_set();
    phase(&mut world, &key, "Running");
    some_ready(&mut world, &key);
    assert!(world.condition("PodsReady").starts_with("False WaitForRecovery"));
}

#[test]
fn success_policy_and_readmission_only_what_is_still_needed_must_be_ready() {
    let (mut world, key) = job_with(Settings::default(), queued(), job_spec(3, 5));
    start(&mut world);
    let annotation = |world: &World| {
        world.job(&key)["metadata"]["annotations"]["lockstep.dev/succeeded-at-start"].clone()
    };
    assert_eq!(annotation(&world), Value::Null);
    world.edit_job(&key, |job| {
        job["status"] = json!({"succeeded": 3, "active": 0,
                               "uncountedTerminatedPods": {"succeeded": ["u"]}});
    });
    world.settle();
    world.say("Evicted", true, "Preempted", "make room");
    world.settle();
    world.admit(json!({"cpu": "spot"}));
    world.settle();
    assert_eq!(annotation(&world), "4", "of five; with what is not counted yet");
    assert!(world.condition("PodsReady").starts_with("False WaitForStart"), "none of it runs");
    world.edit_job(&key, |job| job["status"] = json!({"succeeded": 4, "ready": 1, "active": 1}));
    world.settle();
    assert!(world.condition("PodsReady").starts_with("True Started"));
    world.say("Evicted", true, "Preempted", "make room");
    world.edit_job(&key, |job| job["status"] = json!({"succeeded": 4, "active": 0}));
    world.settle();
    assert_eq!(annotation(&world), Value::Null, "it stands still");
}
