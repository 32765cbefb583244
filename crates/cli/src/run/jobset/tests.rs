use serde_json::json;

use super::*;
use crate::run::member::Member;

/// A JobSet of a driver and two workers that depend on it, which may restart three times.
pub(crate) fn object(status: Value) -> Value {
    let group = |name: &str, replicas: u32| {
        json!({"name": name, "replicas": replicas, "template": {"spec": {"completions": 2,
            "parallelism": 2, "completionMode": "Indexed",
            "template": {"spec": {"containers": [{"name": "main"}]}}}}})
    };
    let mut workers = group("workers", 2);
    workers["dependsOn"] = json!([{"name": "driver", "status": "Ready"}]);
    json!({"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet",
        "metadata": {"namespace": "default", "name": "train", "uid": "train",
            "creationTimestamp": "2026-01-01T00:00:55Z"},
        "spec": {"replicatedJobs": [group("driver", 1), workers], "failurePolicy": {
            "maxRestarts": 3, "rules": [
                {"name": "maintenance", "action": "RestartJobSetAndIgnoreMaxRestarts",
                    "onJobFailureReasons": ["PodFailurePolicy"]},
                {"name": "alone", "action": "RestartJob", "targetReplicatedJobs": ["workers"]}]}},
        "status": status})
}

/// The status of a JobSet in an attempt: driver and workers that are ready.
pub(crate) fn status(restarts: i32, counted: i32, driver: i32, workers: i32) -> Value {
    let entry = |name: &str, ready: i32| {
        json!({"name": name, "ready": ready, "succeeded": 0, "failed": 0, "active": ready,
            "suspended": 0})
    };
    json!({"restarts": restarts, "restartsCountTowardsMax": counted,
        "replicatedJobsStatus": [entry("workers", workers), entry("driver", driver)]})
}

pub(crate) fn condition(kind: &str, is_true: bool, reason: &str, message: &str) -> Value {
    json!({"type": kind, "status": if is_true { "True" } else { "False" }, "reason": reason,
        "message": message, "lastTransitionTime": "2026-01-01T00:02:00Z"})
}

#[test]
fn what_is_final_counts_most() {
    let cases: [(&[(&str, bool)], Phase); 6] = [
        (&[], Phase::Running),
        (&[("Suspended", true)], Phase::Suspended),
        (&[("RestartingJobSet", true)], Phase::Restarting),
        (&[("RestartingJobSet", false)], Phase::Running),
        (&[("RestartingJobSet", true), ("Completed", true)], Phase::Completed),
        (&[("Suspended", true), ("Failed", true)], Phase::Failed),
    ];
    for (conditions, want) in cases {
        let mut status = status(0, 0, 1, 2);
        status["conditions"] =
            conditions.iter().map(|(kind, is_true)| condition(kind, *is_true, "R", "m")).collect();
        assert_eq!(JobSet::read(&object(status)).phase, want, "{conditions:?}");
    }
    assert_eq!(JobSet::read(&object(json!({}))).phase, Phase::Pending);
    assert_eq!(JobSet::read(&json!({"spec": 7, "status": "odd"})).phase, Phase::Pending);
}

#[test]
fn the_budget_says_what_is_used_and_left() {
    let cases = [
        (status(0, 0, 1, 2), "0 of 3 restarts used, 3 left"),
        (status(3, 1, 1, 2), "1 of 3 restarts used, 2 left; 2 more did not count"),
        (status(4, 4, 1, 2), "4 of 3 restarts used, 0 left"),
    ];
    for (status, want) in cases {
        assert_eq!(JobSet::read(&object(status)).budget().as_deref(), Some(want));
    }
    let mut alone = status(1, 1, 1, 2);
    alone["replicatedJobsStatus"][0]["jobRestarts"] = json!([0, 2]);
    alone["replicatedJobsStatus"][0]["jobRestartsCountTowardsMax"] = json!([0, 1]);
    let set = JobSet::read(&object(alone));
    assert_eq!(set.budget().as_deref(), Some("2 of 3 restarts used, 1 left"));
    assert_eq!(set.progress(), "attempt 1; driver 1/1 ready; workers 2/2 ready, 2 restarted alone");
    let mut without = object(json!({}));
    without["spec"]["failurePolicy"] = Value::Null;
    assert_eq!(JobSet::read(&without).budget(), None);
}

#[test]
fn what_is_held_back_says_by_whom() {
    let set = JobSet::read(&object(status(0, 0, 0, 0)));
    let want = "replicated job workers waits for driver to be ready";
    assert_eq!(set.why_holds_back().as_deref(), Some(want));
    assert_eq!(JobSet::read(&object(status(0, 0, 1, 0))).why_holds_back(), None);
    let mut in_order = status(0, 0, 0, 0);
    in_order["conditions"] = json!([condition(
        "JobSetStartupPolicyCompleted",
        false,
        "StartupPolicyInOrder",
        "replicated job driver is starting"
    )]);
    let said = JobSet::read(&object(in_order)).why_holds_back();
    assert_eq!(said.as_deref(), Some("replicated job driver is starting"));
}

#[test]
fn a_set_that_nobody_will_end_says_so() {
    let cases = [
        (json!({"suspend": true}), Some("is suspended")),
        (json!({"managedBy": "a/b"}), Some("is left to a/b")),
        (json!({"managedBy": MANAGED_BY_SELF}), None),
        (json!({"replicatedJobs": []}), Some("has no Jobs")),
    ];
    for (spec, want) in cases {
        let mut set = object(json!({}));
        for (key, value) in spec.as_object().expect("a map") {
            set["spec"][key] = value.clone();
        }
        let said = JobSet::read(&set).hindrance();
        let is_right = match (&said, want) {
            (Some(said), Some(want)) => said.starts_with(want),
            (said, want) => said.is_none() && want.is_none(),
        };
        assert!(is_right, "{spec}: {said:?}");
    }
}

fn member(group: &str, attempt: i32) -> Member {
    Member { set: "train".to_owned(), group: group.to_owned(), attempt, ..Member::default() }
}

fn why(reason: &str) -> Why {
    Why { reason: reason.to_owned(), message: "said so".to_owned() }
}

#[test]
fn every_restart_is_remembered_with_its_cause() {
    let mut first = JobSet::read(&object(status(0, 0, 1, 2)));
    first.history.failed("train-driver-0", &member("driver", 0), &why("PodFailurePolicy"));
    let mut restarted = status(1, 0, 0, 0);
    let message = "applying RestartJobSetAndIgnoreMaxRestarts failure policy action \
                   (first failed job: train-driver-0)";
    restarted["conditions"] =
        json!([condition("RestartingJobSet", true, "FailurePolicy_maintenance", message)]);
    let mut second = JobSet::read(&object(restarted));
    let new = second.go_on_from(&first);
    assert_eq!(new.len(), 1);
    let want = "job/train-driver-0 failed (PodFailurePolicy): rule maintenance says \
                RestartJobSetAndIgnoreMaxRestarts";
    assert_eq!(second.restart_words(&new[0]), want);
    assert!(second.clone().go_on_from(&second).is_empty(), "told already");

    // One Job by itself: no condition says which rule, but its failure does.
    second.history.failed("train-workers-1", &member("workers", 1), &why("BackoffLimitExceeded"));
    let mut alone = status(1, 0, 1, 2);
    alone["replicatedJobsStatus"][0]["jobRestarts"] = json!([0, 1]);
    let mut third = JobSet::read(&object(alone));
    let new = third.go_on_from(&second);
    assert_eq!(new[0].jobs, ["train-workers-1"]);
    let want = "job/train-workers-1 failed (BackoffLimitExceeded): rule alone says RestartJob";
    assert_eq!(third.restart_words(&new[0]), want);
    assert_eq!(third.history.restarts.len(), 2);

    // Two at once, of which only the last is told, by no rule.
    let mut later = status(3, 2, 0, 0);
    let message = "applying RestartJobSet failure policy action (first failed job: train-driver-0)";
    later["conditions"] =
        json!([condition("RestartingJobSet", true, "DefaultFailurePolicy", message)]);
    later["replicatedJobsStatus"][0]["jobRestarts"] = json!([0, 1]);
    let mut fourth = JobSet::read(&object(later));
    let new = fourth.go_on_from(&third);
    let words: Vec<String> = new.iter().map(|restart| fourth.restart_words(restart)).collect();
    let last = "job/train-driver-0 failed: no rule matches, so RestartJobSet";
    assert_eq!(words, ["a Job failed", last]);
}

#[test]
fn what_was_written_down_about_restarts_counts_most() {
    let first = JobSet::read(&object(status(0, 0, 1, 2)));
    let mut later = status(2, 1, 1, 2);
    later["replicatedJobsStatus"][0]["jobRestarts"] = json!([1, 0]);
    later["lockstep"] = json!({"ruleRestarts": {"alone": 1}, "lastRestarts": [
        {"attempt": 0, "action": "RestartJobSet", "job": "train-driver-0", "reason": "R"},
        {"attempt": 1, "rule": "maintenance", "action": "RestartJobSetAndIgnoreMaxRestarts",
            "job": "train-driver-0", "reason": "PodFailurePolicy"},
        {"attempt": 2, "rule": "alone", "action": "RestartJob", "job": "train-workers-0"}]});
    let mut later = object(later);
    later["metadata"]["annotations"] = json!({"lockstep.dev/max-restarts.alone": "4"});
    let mut later = JobSet::read(&later);
    let new = later.go_on_from(&first);
    let words: Vec<String> = new.iter().map(|restart| later.restart_words(restart)).collect();
    assert_eq!(
        words,
        [
            "job/train-driver-0 failed (R): no rule matches, so RestartJobSet",
            "job/train-driver-0 failed (PodFailurePolicy): rule maintenance says \
             RestartJobSetAndIgnoreMaxRestarts",
            "job/train-workers-0 failed: rule alone says RestartJob",
        ]
    );
    let budget = "1 of 3 restarts used, 2 left; 1 more did not count; rule alone used 1 of 4";
    assert_eq!(later.budget().as_deref(), Some(budget));
}

#[test]
fn a_set_that_restarts_for_ever_does_not_grow_for_ever() {
    let mut set = JobSet::read(&object(status(0, 0, 1, 2)));
    for attempt in 0..3_000 {
        set.history.failed("train-driver-0", &member("driver", attempt), &why("R"));
        let mut next = JobSet::read(&object(status(attempt + 1, 0, 1, 2)));
        next.go_on_from(&set);
        set = next;
    }
    assert_eq!(set.history.restarts.len(), 100);
    assert_eq!(set.history.forgotten, 2_900);
    assert!(set.history.failure("train-driver-0").is_some());
}

#[test]
fn of_many_failures_the_oldest_are_forgotten_whatever_their_names() {
    let mut set = JobSet::read(&object(status(0, 0, 1, 2)));
    // The names of later ones sort before those of earlier ones.
    for number in (0..2_010).rev() {
        let job = format!("train-workers-{number:04}");
        set.history.failed(&job, &member("workers", 0), &why("first"));
        set.history.failed(&job, &member("workers", 0), &why("told twice"));
    }
    let known = |number: i32| set.history.failure(&format!("train-workers-{number:04}"));
    assert!((0..2_000).all(|number| known(number).is_some()));
    assert!((2_000..2_010).all(|number| known(number).is_none()));
    assert_eq!(known(0).map(|failure| failure.why.reason.as_str()), Some("told twice"));
}
