//! The end of jobs and workloads.

use std::time::Duration;

use serde_json::{Value, json};

use super::super::{Settings, Waiting};
use super::{counts, group, job_spec, job_with, one_job, one_set, queued, start};

fn ended(kind: &str, message: &str) -> Value {
    json!([{"type": "Suspended", "status": "False"},
           {"type": kind, "status": "True", "reason": "r", "message": message}])
}

// rule: queueing 3.6.1
#[test]
fn a_job_that_has_ended_ends_its_workload() {
    let sets = |kind: &str| {
        json!([{"type": kind, "status": "True", "reason": "r", "message": "m",
                "lastTransitionTime": "2026-11-17T12:00:00Z"}])
    };
    let cases = [
        (
            one_job(),
            ended("Complete", "Reached expected number of succeeded pods"),
            "True Succeeded: Reached expected number of succeeded pods",
        ),
        (one_job(), ended("Failed", "no more"), "True Failed: no more"),
        (one_set(json!({})), sets("Completed"), "True Succeeded: m"),
        (one_set(json!({})), sets("Failed"), "True Failed: m"),
    ];
    for ((mut world, key), conditions, expected) in cases {
        start(&mut world);
        world.edit_job(&key, |job| job["status"]["conditions"] = conditions);
        world.settle();
        assert_eq!(world.condition("Finished"), expected, "{key}");
        let name = world.workload_names().remove(0);
        let told = format!("FinishedWorkload Workload 'ns/{name}' is declared finished");
        assert_eq!(world.events(), [told]);
        assert_eq!(world.workload()["metadata"]["finalizers"], json!([]));
        assert_eq!(world.waiting(&key), Some(Waiting::Finished));
        assert_eq!(world.driver.next_due(), None);
    }
}

// rule: queueing 3.6.2
#[test]
fn a_job_that_goes_lets_its_workload_go() {
    let (mut world, key) = one_job();
    world.edit_job(&key, |job| {
        job["metadata"]["deletionTimestamp"] = "2026-11-17T12:00:00Z".into();
        job["metadata"]["finalizers"] = json!(["foregroundDeletion"]);
    });
    world.settle();
    assert_eq!(world.workload()["metadata"]["finalizers"], json!([]));
    let (mut world, key) = one_job();
    world.delete_job(&key);
    world.settle();
    assert_eq!(world.workload()["metadata"]["finalizers"], json!([]));
    let name = world.workload_names().remove(0);
    world.delete_workload(&name);
    world.settle();
    assert_eq!(world.driver.keys().count(), 0, "nothing is remembered of it");
}

// rule: queueing 3.6.2
#[test]
fn a_workload_whose_job_is_gone_without_it_is_ended() {
    let (mut world, key) = one_job();
    world.edit_workload(|workload| workload["metadata"]["ownerReferences"] = json!([]));
    world.edit_job(&key, |job| {
        job["metadata"]["deletionTimestamp"] = "2026-11-17T12:00:00Z".into();
    });
    world.settle();
    assert_eq!(world.condition("Finished"), "", "it may come back");
    world.delete_job(&key);
    world.settle();
    assert_eq!(
        world.condition("Finished"),
        "True OwnerNotFound: The workload's owner no longer exists"
    );
    assert_eq!(world.workload()["metadata"]["finalizers"], json!([]));
}

#[test]
fn a_workload_that_was_never_a_jobs_is_nobodys_business() {
    let mut world = super::World::new(Settings::default());
    world.put_workload(json!({"metadata": {"name": "bare"}, "spec": {"podSets": []}}));
    world.settle();
    assert_eq!(world.asked(), Vec::<String>::new());
    assert_eq!(world.driver.keys().count(), 0);
}

#[test]
fn a_job_of_the_same_name_does_not_take_the_workload_of_the_one_before() {
    let (mut world, key) = one_job();
    let mut old = world.workload().clone();
    let mut again = world.job(&key).clone();
    world.delete_job(&key);
    again["metadata"]["uid"] = "again".into();
    world.put_job(key.clone(), again);
    world.settle();
    assert_eq!(world.workload_names().len(), 2);
    old["metadata"]["ownerReferences"] = Value::Null;
    let name = old["metadata"]["name"].as_str().unwrap().to_owned();
    world.delete_workload(&name);
    world.settle();
    let owner = &world.workload()["metadata"]["ownerReferences"][0];
    assert_eq!(owner["uid"], "again");
}

// rule: queueing 3.6.3
#[test]
fn pods_that_are_not_needed_any_more_are_told() {
    let cases: [(i32, i32, bool, Value, Value); 8] = [
        (3, 5, false, json!({"succeeded": 2}), Value::Null),
        (3, 5, false, json!({"succeeded": 3}), json!(1)),
        (3, 5, false, json!({"succeeded": 5}), json!(3)),
        (1, 1, false, json!({"succeeded": 1}), Value::Null),
        (3, 3, false, json!({"succeeded": 1}), json!(1)),
        (5, 3, false, json!({"succeeded": 1}), json!(1)),
        (3, 5, true, json!({"completedIndexes": "0-1,7", "failedIndexes": "1,3"}), json!(1)),
        (3, 5, true, json!({"succeeded": 5}), Value::Null),
    ];
    for (parallelism, completions, is_indexed, status, expected) in cases {
        let mut spec = job_spec(parallelism, completions);
        if is_indexed {
            spec["completionMode"] = "Indexed".into();
            spec["backoffLimitPerIndex"] = 1.into();
        }
        let (mut world, key) = job_with(Settings::default(), queued(), spec);
        start(&mut world);
        world.edit_job(&key, |job| job["status"] = status.clone());
        world.settle();
        let told = &world.workload()["status"]["reclaimablePods"];
        let expected = match expected.is_null() {
            true => Value::Null,
            false => json!([{"name": "main", "count": expected}]),
        };
        assert_eq!(*told, expected, "{status}");
    }
}

// rule: queueing 3.6.3
#[test]
fn jobs_of_a_set_that_are_complete_give_their_quota_back_unless_they_may_come_again() {
    let told = |policy: Value| {
        let mut more =
            json!({"replicatedJobs": [group("a", 2, json!({})), group("b", 1, json!({}))]});
        if !policy.is_null() {
            more["failurePolicy"] = policy;
        }
        let (mut world, key) = one_set(more);
        start(&mut world);
        counts(&mut world, &key, &[("a", [1, 1, 0, 1]), ("b", [1, 0, 0, 1])]);
        world.settle();
        world.workload()["status"]["reclaimablePods"].clone()
    };
    assert_eq!(told(Value::Null), json!([{"name": "a", "count": 2}]));
    assert_eq!(told(json!({"maxRestarts": 1})), Value::Null);
}

// rule: queueing 3.6.3
#[test]
fn what_was_given_back_is_not_taken_again_while_it_runs() {
    let (mut world, key) = one_set(json!({}));
    start(&mut world);
    counts(&mut world, &key, &[("driver", [0, 1, 0, 0]), ("workers", [2, 0, 0, 2])]);
    world.settle();
    counts(&mut world, &key, &[("driver", [1, 0, 0, 1]), ("workers", [2, 0, 0, 2])]);
    world.settle();
    let told = &world.workload()["status"]["reclaimablePods"];
    assert_eq!(*told, json!([{"name": "driver", "count": 2}]));
}

// rule: queueing 2.9.3
#[test]
fn a_job_that_a_limit_has_deactivated_is_deleted_when_asked_for() {
    let limit = "DeactivatedDueToRequeuingLimitExceeded";
    for (reason, is_deleted) in [(limit, true), ("Deactivated", false)] {
        let keep_deactivated = Some(Duration::from_secs(60));
        let settings = Settings { keep_deactivated, ..Settings::default() };
        let (mut world, key) = job_with(settings, queued(), job_spec(1, 1));
        start(&mut world);
        world.edit_workload(|workload| workload["spec"]["active"] = false.into());
        world.say("Evicted", true, reason, "The workload is deactivated");
        world.settle();
        let deleted_at = is_deleted.then(|| world.driver.next_due().unwrap());
        assert_eq!(world.waiting(&key), Some(Waiting::Deactivated { deleted_at }));
        world.tick(59);
        world.settle();
        assert!(!world.asked().contains(&"delete a".to_owned()));
        world.tick(1);
        world.settle();
        assert_eq!(world.asked().contains(&"delete a".to_owned()), is_deleted, "{reason}");
    }
}

#[test]
fn a_workload_that_is_deleted_after_the_end_of_its_job_is_not_made_again() {
    let (mut world, key) = one_job();
    start(&mut world);
    world.edit_job(&key, |job| job["status"]["conditions"] = ended("Complete", ""));
    world.settle();
    let name = world.workload_names().remove(0);
    assert_eq!(world.workload()["metadata"]["finalizers"], json!([]), "nothing holds it back");
    world.delete_workload(&name);
    world.settle();
    assert_eq!(world.workload_names().len(), 0);
    assert_eq!(world.waiting(&key), Some(Waiting::Finished));
}
