use serde_json::{Value, json};

use super::*;
use crate::run::jobset::tests::{condition, object, status};

/// A set of six workers that restart in place, of which one has failed once.
pub(crate) fn restarting(told: Value) -> Value {
    let mut status = status(0, 0, 1, 2);
    status["lockstep"] = json!({"inPlace": told});
    let mut set = object(status);
    set["metadata"]["annotations"] = json!({
        "alpha.jobset.sigs.k8s.io/inplace-timeout": "60s",
        "alpha.jobset.sigs.k8s.io/inplace-restarts": "1"});
    set["spec"]["replicatedJobs"][1]["dependsOn"] = Value::Null;
    set
}

/// How a worker was restarted for an epoch.
pub(crate) fn restart(epoch: i32) -> Value {
    json!({"epoch": epoch, "time": "2026-01-01T00:01:00Z", "worker": "train-workers-0-1",
        "cause": "exited with code 1", "detectedMicros": 431, "decidedMicros": 1_238,
        "stoppedMicros": 12_312, "gatheredMicros": 60, "releasedMicros": 805,
        "runningMicros": 8_104})
}

fn told(phase: &str, epoch: i32, workers: Value) -> Value {
    json!({"epoch": epoch, "restarts": epoch, "phase": phase, "workers": workers})
}

#[test]
fn a_restart_is_told_once_with_its_parts() {
    let before = JobSet::read(&restarting(told("Running", 0, json!([]))));
    let mut now = told("Running", 1, json!([]));
    now["lastRestarts"] = json!([restart(1)]);
    let now = JobSet::read(&restarting(now));
    let [new] = now.restarted_in_place_since(&before) else { panic!("one is new") };
    let [head, parts] = now.in_place_note(new);
    let want = "restarted 6 workers in place in 23.0 ms (epoch 1): train-workers-0-1 exited with \
                code 1; 1 of 3 restarts used, 2 left";
    assert_eq!(head, want);
    let want = "detected 0.4 ms, decided 1.2 ms, stopped 12.3 ms, barrier 0.1 ms, released 0.8 ms, \
                running 8.1 ms";
    assert_eq!(parts, want);
    assert!(now.restarted_in_place_since(&now).is_empty(), "it is told already");
    assert_eq!(
        now.last_in_place().as_deref(),
        Some("took 23.0 ms (epoch 1): train-workers-0-1 exited with code 1")
    );
    let lost = InPlaceRestart {
        worker: "w-0-3".to_owned(),
        cause: "its pod was lost".to_owned(),
        ..InPlaceRestart::default()
    };
    assert_eq!(cause(&lost), "w-0-3: its pod was lost");
}

#[test]
fn what_workers_do_is_said_where_not_all_run() {
    let group = |state: &str, epoch: Value, count: i32, places: &str| json!({"state": state, "epoch": epoch, "count": count, "places": places});
    let cases = [
        ("Running", json!([group("Running", json!(2), 6, "0-5")]), "epoch 2, Running"),
        ("Running", json!([]), "epoch 2, Running"),
        (
            "Running",
            json!([group("Running", json!(2), 2, "4-5"), group("Succeeded", json!(2), 4, "0-3")]),
            "epoch 2, Running: 2 running (4-5), 4 succeeded (0-3)",
        ),
        // Said of the epoch before: what they do now is not known yet.
        ("Running", json!([group("Running", json!(1), 6, "0-5")]), "epoch 2, Running"),
        ("Stopping", json!([group("Running", json!(1), 6, "0-5")]), "epoch 2, Stopping"),
        ("Running", json!([group("Stopping", Value::Null, 6, "0-5")]), "epoch 2, Running"),
        ("Succeeding", json!([group("Running", json!(2), 6, "0-5")]), "epoch 2, Succeeding"),
        (
            "Stopping",
            json!([
                group("Stopping", Value::Null, 1, "5"),
                group("Waiting", Value::Null, 5, "0-4")
            ]),
            "epoch 2, Stopping: 1 stopping (5), 5 waiting (0-4)",
        ),
    ];
    for (phase, workers, want) in cases {
        let set = JobSet::read(&restarting(told(phase, 2, workers)));
        assert_eq!(set.workers_words().as_deref(), Some(want));
    }
    assert_eq!(JobSet::read(&object(status(0, 0, 1, 2))).workers_words(), None);
    let missing = json!([group("Missing", Value::Null, 6, "0-5")]);
    let forming = JobSet::read(&restarting(told("Forming", 0, missing.clone())));
    let mut running = JobSet::read(&restarting(told("Running", 0, missing.clone())));
    running.go_on_from(&forming);
    assert_eq!(running.workers_words().as_deref(), Some("epoch 0, Running"), "nobody has looked");
    let mut lost = JobSet::read(&restarting(told("Running", 0, json!([]))));
    lost.go_on_from(&running);
    let mut now = JobSet::read(&restarting(told(
        "Running",
        0,
        json!([group("Missing", Value::Null, 1, "5")]),
    )));
    now.go_on_from(&lost);
    assert_eq!(now.workers_words().as_deref(), Some("epoch 0, Running: 1 missing (5)"));
}

#[test]
fn why_workers_wait_is_said_only_while_they_do() {
    let waits = |phase: &str, waiting: &str| {
        let mut told = told(phase, 1, json!([]));
        told["waiting"] = json!(waiting);
        JobSet::read(&restarting(told))
    };
    let missing = waits("Stopping", "3 workers are missing: 0, 1, 2");
    let want = "the workers wait: 3 workers are missing: 0, 1, 2";
    assert_eq!(missing.why_workers_wait().as_deref(), Some(want));
    assert_eq!(waits("Stopping", "").why_workers_wait(), None);
    assert_eq!(waits("Running", "3 workers are missing: 0, 1, 2").why_workers_wait(), None);
    let fewer = waits("Stopping", "2 workers are missing: 1, 2");
    assert_eq!(missing.kind_of_wait(), fewer.kind_of_wait(), "told once for all of them");
    let stops = waits("Stopping", "3 workers are being stopped: 0, 1, 2");
    assert_ne!(missing.kind_of_wait(), stops.kind_of_wait());
}

#[test]
fn restarts_in_place_are_part_of_the_budget() {
    let budget = |counted: &str, restarts: i32, change: &dyn Fn(&mut Value)| {
        let mut set = restarting(json!({"epoch": 1, "phase": "Running", "restarts": restarts}));
        set["metadata"]["annotations"]["alpha.jobset.sigs.k8s.io/inplace-restarts"] =
            json!(counted);
        change(&mut set);
        JobSet::read(&set).budget().expect("it has a policy")
    };
    assert_eq!(budget("2", 2, &|_| ()), "2 of 3 restarts used, 1 left");
    assert_eq!(budget("1", 3, &|_| ()), "1 of 3 restarts used, 2 left; 2 more did not count");
    // One of the set's own: the annotation has it, the workers have not.
    let own = |set: &mut Value| {
        set["status"]["restarts"] = json!(1);
        set["status"]["restartsCountTowardsMax"] = json!(1);
    };
    assert_eq!(budget("2", 1, &own), "2 of 3 restarts used, 1 left");
    let anew = |set: &mut Value| {
        set["status"]["restarts"] = json!(1);
        set["status"]["lockstep"]["lastRestarts"] = json!([{"attempt": 0, "action": "Recreate",
            "reason": "InPlaceRestartFailed", "job": "train-workers-0"}]);
    };
    assert_eq!(budget("2", 2, &anew), "2 of 3 restarts used, 1 left");
    let failed = |set: &mut Value| {
        set["status"]["conditions"] = json!([condition("Failed", true, "ReachedMaxRestarts", "m")]);
    };
    assert_eq!(budget("4", 4, &failed), "3 of 3 restarts used, 0 left", "the fourth never was");
    let mut set = restarting(json!({"phase": "Failed", "restarts": 4, "lastRestarts":
        [restart(1)]}));
    assert_eq!(JobSet::read(&set).restarts_cut_short(), 0, "it has not ended");
    failed(&mut set);
    assert_eq!(JobSet::read(&set).restarts_cut_short(), 2);
}

#[test]
fn a_restart_of_the_set_counts_before_its_annotation_has_it() {
    let set = |counted: &str, own: i32| {
        let mut set = restarting(json!({"epoch": 2, "phase": "Running", "restarts": 2}));
        set["metadata"]["annotations"]["alpha.jobset.sigs.k8s.io/inplace-restarts"] =
            json!(counted);
        set["spec"]["failurePolicy"]["maxRestarts"] = json!(9);
        set["status"]["restarts"] = json!(own);
        set["status"]["restartsCountTowardsMax"] = json!(own);
        JobSet::read(&set)
    };
    let mut known = set("2", 0);
    for (counted, own, want) in [
        ("2", 1, "3 of 9 restarts used, 6 left"),
        ("2", 2, "4 of 9 restarts used, 5 left"),
        ("4", 2, "4 of 9 restarts used, 5 left"),
        ("4", 3, "5 of 9 restarts used, 4 left"),
    ] {
        let mut next = set(counted, own);
        next.go_on_from(&known);
        assert_eq!(next.budget().as_deref(), Some(want));
        known = next;
    }
}

#[test]
fn times_are_as_precise_as_they_are_long() {
    let cases = [
        (-5, "0.0 ms"),
        (431, "0.4 ms"),
        (99_949, "99.9 ms"),
        (99_950, "100 ms"),
        (345_678, "346 ms"),
        (999_499, "999 ms"),
        (999_500, "1.00 s"),
        (3_009_556, "3.01 s"),
        (75_000_000, "75.00 s"),
    ];
    for (micros, want) in cases {
        assert_eq!(span(micros), want);
    }
}
