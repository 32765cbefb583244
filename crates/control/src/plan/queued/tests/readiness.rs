//! When jobs are ready, and what `PodsReady` says.

use std::sync::Arc;

use serde_json::{Value, json};

use super::super::world::typed;
use super::super::{Object, Settings, Waiting, ready};
use super::{counts, job_spec, job_with, one_job, one_set, queued, start};

// rule: queueing 2.2.1
#[test]
fn a_job_is_ready_by_pods_that_are_ready_or_have_succeeded() {
    let uncounted = json!({"uncountedTerminatedPods": {"succeeded": ["u"], "failed": ["f"]}});
    let cases: [(&str, Value, Value, bool); 9] = [
        ("no status", json!([2, 2]), Value::Null, false),
        ("all ready", json!([2, 2]), json!({"ready": 2}), true),
        ("one ready", json!([2, 2]), json!({"ready": 1}), false),
        ("one ready, one succeeded", json!([2, 2]), json!({"ready": 1, "succeeded": 1}), true),
        ("not counted yet", json!([1, 1]), uncounted, true),
        ("failed ones do not count", json!([2, 2]), json!({"ready": 1, "failed": 5}), false),
        ("more than enough", json!([2, 5]), json!({"ready": 2, "succeeded": 3}), true),
        ("fewer completions", json!([5, 2]), json!({"ready": 2}), true),
        ("no completions", json!([3, null]), json!({"ready": 3}), true),
    ];
    for (name, sizes, status, is_ready) in cases {
        let job = json!({
            "spec": {"parallelism": sizes[0], "completions": sizes[1],
                     "template": {"spec": {"containers": []}}},
            "status": status,
        });
        assert_eq!(ready::is_ready(&Object::Job(Arc::new(typed(&job)))), is_ready, "{name}");
    }
}

// rule: queueing 2.2.2
#[test]
fn a_jobset_is_ready_by_its_jobs_with_equality() {
    let status = |ready: i32, succeeded: i32| {
        json!([{"name": "w", "ready": ready, "succeeded": succeeded, "failed": 0, "active": 0,
                "suspended": 0}])
    };
    let cases: [(&str, i32, Value, bool); 7] = [
        ("nothing is known", 2, json!([]), false),
        ("no Jobs", 0, json!([]), true),
        ("all ready", 2, status(2, 0), true),
        ("one succeeded", 2, status(1, 1), true),
        ("one missing", 2, status(1, 0), false),
        ("too many", 2, status(2, 1), false),
        ("all succeeded", 2, status(0, 2), true),
    ];
    for (name, replicas, entries, is_ready) in cases {
        let set = json!({
            "spec": {"replicatedJobs": [{"name": "w", "replicas": replicas}]},
            "status": {"restarts": 0, "replicatedJobsStatus": entries},
        });
        assert_eq!(ready::is_ready(&Object::JobSet(Arc::new(typed(&set)))), is_ready, "{name}");
    }
}

const STARTED: &str = "True Started: All pods reached readiness and the workload is running";
const RECOVERED: &str = "True Recovered: All pods reached readiness and the workload is running";
const STARTS: &str = "False WaitForStart: Not all pods are ready or succeeded";
const RECOVERS: &str = "False WaitForRecovery: At least one pod has failed, waiting for recovery";

// rule: queueing 2.3.1
// rule: queueing 2.3.2
// rule: queueing 2.3.3
// rule: queueing 2.3.4
// rule: queueing 2.3.5
// rule: queueing 2.3.6
// rule: queueing 2.3.7
#[test]
fn pods_ready_follows_from_admission_readiness_and_what_it_was() {
    let before = |status: &'static str, reason: &'static str| Some((status, reason));
    let cases = [
        ("not admitted, new", false, false, None, STARTS),
        ("not admitted, was ready", false, true, before("True", "Started"), STARTS),
        ("not admitted, was recovering", false, false, before("False", "WaitForRecovery"), STARTS),
        ("ready, new", true, true, None, STARTED),
        ("ready, was starting", true, true, before("False", "WaitForStart"), STARTED),
        ("ready, stays", true, true, before("True", "Started"), STARTED),
        ("ready, old words", true, true, before("False", "PodsReady"), STARTED),
        ("ready, was recovering", true, true, before("False", "WaitForRecovery"), RECOVERED),
        ("ready, had recovered", true, true, before("True", "Recovered"), RECOVERED),
        ("not ready, new", true, false, None, STARTS),
        ("not ready, was ready", true, false, before("True", "Started"), RECOVERS),
        ("not ready, had recovered", true, false, before("True", "Recovered"), RECOVERS),
        ("not ready, old words", true, false, before("True", "PodsReady"), RECOVERS),
        ("not ready, recovering", true, false, before("False", "WaitForRecovery"), RECOVERS),
        ("not ready, starting", true, false, before("False", "WaitForStart"), STARTS),
        ("not ready, old words too", true, false, before("False", "PodsReady"), STARTS),
    ];
    for (name, is_admitted, is_ready, before, expected) in cases {
        let (mut world, key) = one_job();
        if is_admitted {
            start(&mut world);
        }
        world.edit_workload(|workload| {
            let known = workload["status"]["conditions"].as_array().unwrap().clone();
            let kept = known.into_iter().filter(|one| one["type"] != "PodsReady");
            workload["status"]["conditions"] = kept.collect::<Vec<Value>>().into();
        });
        if let Some((status, reason)) = before {
            world.say("PodsReady", status == "True", reason, "");
        }
        if is_ready {
            world.edit_job(&key, |job| job["status"] = json!({"ready": 2}));
        }
        world.settle();
        let told = world.condition("PodsReady");
        // Words alone are no reason to write.
        let is_same = before
            .is_some_and(|(status, reason)| expected.starts_with(&format!("{status} {reason}: ")));
        let head = expected.split(": ").next().unwrap();
        assert_eq!(told, if is_same { format!("{head}: ") } else { expected.into() }, "{name}");
    }
}

// rule: queueing 2.3.8
#[test]
fn pods_ready_is_written_alone_and_not_after_the_end() {
    let (mut world, key) = one_job();
    start(&mut world);
    let generation = world.workload()["metadata"]["generation"].clone();
    world.edit_job(&key, |job| job["status"] = json!({"ready": 2, "active": 2}));
    world.say("Evicted", true, "Preempted", "make room");
    assert!(world.pass());
    assert_eq!(world.asked(), ["write status"], "the eviction comes after");
    assert_eq!(world.condition("PodsReady"), STARTED);
    let conditions = world.workload()["status"]["conditions"].as_array().unwrap();
    let written = conditions.iter().find(|one| one["type"] == "PodsReady").unwrap();
    assert_eq!(written["observedGeneration"], generation);
    let (mut world, key) = one_job();
    start(&mut world);
    world.edit_job(&key, |job| {
        job["status"] = json!({"succeeded": 2, "conditions": [
            {"type": "Complete", "status": "True", "message": "done"}]});
    });
    world.settle();
    assert_eq!(world.condition("PodsReady"), STARTS, "nobody touches it any more");
}

#[test]
fn the_time_of_pods_ready_is_that_of_its_last_flip() {
    let (mut world, key) = one_job();
    let time = |world: &super::World| {
        let conditions = world.workload()["status"]["conditions"].as_array().unwrap();
        let found = conditions.iter().find(|one| one["type"] == "PodsReady").unwrap();
        found["lastTransitionTime"].as_str().unwrap().to_owned()
    };
    let pending = time(&world);
    world.tick(60);
    start(&mut world);
    assert_eq!(time(&world), pending, "it was false before it was admitted");
    world.tick(60);
    world.edit_job(&key, |job| job["status"] = json!({"ready": 2}));
    world.settle();
    let ready = time(&world);
    assert_ne!(ready, pending);
    world.tick(60);
    world.edit_job(&key, |job| job["status"] = json!({"ready": 1}));
    world.settle();
    assert_ne!(time(&world), ready, "the clock of a recovery starts anew");
}

#[test]
fn nobody_waits_for_pods_where_that_is_off() {
    let settings = Settings { wait_for_pods_ready: None, ..Settings::default() };
    let (mut world, key) = job_with(settings, queued(), job_spec(1, 1));
    start(&mut world);
    world.edit_job(&key, |job| job["status"] = json!({"ready": 1}));
    world.settle();
    assert_eq!(world.condition("PodsReady"), "");
    assert_eq!(world.waiting(&key), Some(Waiting::Running));
    // Somebody waits for this one.
    let name = world.workload_names().remove(0);
    let now = world.now;
    world.driver.wait_seen(&super::super::world::key(&name), Some(Default::default()), now);
    world.settle();
    assert_eq!(world.condition("PodsReady"), STARTED);
}

#[test]
fn a_set_that_starts_at_once_has_no_stages() {
    let (mut world, key) = one_set(json!({}));
    start(&mut world);
    counts(&mut world, &key, &[("driver", [1, 0, 0, 1]), ("workers", [1, 0, 0, 2])]);
    world.settle();
    assert_eq!(world.condition("lockstep.dev/StartupStage"), "");
    counts(&mut world, &key, &[("driver", [1, 0, 0, 1]), ("workers", [2, 0, 0, 2])]);
    world.settle();
    assert_eq!(world.condition("PodsReady"), STARTED);
}
