//! Failed pods are replaced after a while: the whole Job, or each index by itself.

use jiff::SignedDuration;
use serde_json::json;

use crate::plan::job::{
    HoldingUp, Waiting,
    tests::indexed,
    world::{Luck, World, is_tracked},
};

fn seconds(seconds: i64) -> SignedDuration {
    SignedDuration::from_secs(seconds)
}

// rule: job 3.9, job 3.3.16, job 6.1.11
#[test]
fn each_failure_doubles_the_delay_and_a_success_ends_it() {
    let mut world = World::new(json!({"completions": 3, "backoffLimit": 20}));
    world.settle();
    for want in [10, 20, 40, 80, 160, 320, 600, 600] {
        let failed_at = world.now;
        world.fail_all();
        // Measured from the end of the pod, not from when it is seen.
        world.tick(3);
        world.settle();
        let until = failed_at + seconds(want);
        assert_eq!(world.waiting, Some(Waiting::BackOff { until, index: None }));
        assert_eq!(world.driver.next_due(), Some(until));
        assert_eq!(world.active().len(), 0);
        assert_eq!(world.status().active, None, "the number of pods there are");
        world.settle_until(until);
        assert_eq!(world.active().len(), 1, "after {want} seconds");
    }
    world.succeed_all();
    world.settle();
    assert_eq!(world.active().len(), 1, "a success starts the next at once");
    world.tick(1);
    world.fail_all();
    world.settle();
    let until = world.now + seconds(10);
    assert_eq!(world.waiting, Some(Waiting::BackOff { until, index: None }));
}

// rule: job 3.9
#[test]
fn failures_count_only_after_the_last_success() {
    let mut world = World::new(json!({"parallelism": 4, "completions": 9, "backoffLimit": 20}));
    world.settle();
    let pods = world.active();
    world.end(&pods[0], 1);
    world.tick(5);
    world.end(&pods[1], 0);
    world.tick(5);
    world.end(&pods[2], 1);
    world.end(&pods[3], 1);
    world.settle();
    let until = world.now + seconds(20);
    assert_eq!(world.waiting, Some(Waiting::BackOff { until, index: None }), "two after it");
}

#[test]
fn a_pod_that_was_deleted_is_replaced_at_once_where_all_workers_wait_for_it() {
    let spec = |env: &str| {
        json!({"parallelism": 4, "completions": 4, "completionMode": "Indexed",
               "backoffLimit": i32::MAX, "podReplacementPolicy": "Failed",
               "template": {"spec": {"restartPolicy": "Never", "containers": [
                   {"name": "c", "image": "i", "env": [{"name": env, "value": "x"}]}]}}})
    };
    for (env, is_in_place) in [("LOCKSTEP_ORCHESTRATOR", true), ("OTHER", false)] {
        let mut world = World::new(spec(env));
        world.settle();
        for name in world.active() {
            world.run(&name);
            world.delete_pod(&name);
        }
        world.end_terminating();
        world.settle();
        let count = if is_in_place { 4 } else { 0 };
        assert_eq!(world.active().len(), count, "{env}: {:?}", world.waiting);
        // One that ends of itself is another matter.
        if is_in_place {
            world.fail_all();
            world.settle();
            assert!(matches!(world.waiting, Some(Waiting::BackOff { .. })), "{:?}", world.waiting);
        }
    }
}

// rule: job 3.9, job 6.1.11
#[test]
fn the_back_off_survives_a_restart_as_far_as_pods_tell() {
    let mut world = World::new(json!({"backoffLimit": 20}));
    world.settle();
    for _ in 0..3 {
        world.fail_all();
        world.settle();
        let due = world.driver.next_due().unwrap();
        let before = world.driver.next_due();
        world.restart();
        world.settle();
        assert_eq!(world.driver.next_due(), before);
        world.settle_until(due);
        assert_eq!(world.active().len(), 1);
    }
}

// rule: job 3.1, job 3.3.2, job 6.1.11
#[test]
fn a_new_job_of_the_same_name_starts_at_once() {
    let mut world = World::new(json!({"backoffLimit": 20}));
    world.settle();
    for _ in 0..3 {
        world.fail_all();
        world.settle_until(world.now + seconds(100));
    }
    world.fail_all();
    world.settle();
    world.remove_job();
    world.create_job(json!({}));
    world.settle();
    let uid = world.job.as_ref().unwrap().metadata.uid.clone().unwrap();
    let active = world.active();
    assert_eq!(active.len(), 1);
    let owners = world.pod(&active[0]).metadata.owner_references.clone().unwrap();
    assert_eq!(owners[0].uid, uid);
}

// rule: job 3.9, job 3.11, job 6.1.11
#[test]
fn ignored_failures_are_not_counted_and_still_delay() {
    let policy = json!({"rules": [{"action": "Ignore", "onPodConditions":
        [{"type": "DisruptionTarget"}]}]});
    let mut world = World::new(json!({"podFailurePolicy": policy, "backoffLimit": 0}));
    world.settle();
    for want in [10, 20] {
        let pod = world.active().remove(0);
        let mut failed = world.pod(&pod).clone();
        let status = failed.status.get_or_insert_default();
        status.conditions = Some(vec![k8s_openapi::api::core::v1::PodCondition {
            type_: "DisruptionTarget".into(),
            status: "True".into(),
            ..Default::default()
        }]);
        world.put_pod(failed);
        let mut ended = world.pod(&pod).clone();
        let status = ended.status.as_mut().unwrap();
        status.phase = Some("Failed".into());
        status.conditions.as_mut().unwrap().push(k8s_openapi::api::core::v1::PodCondition {
            type_: "Ready".into(),
            status: "False".into(),
            last_transition_time: Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(
                world.now,
            )),
            ..Default::default()
        });
        world.put_pod(ended);
        world.settle();
        let until = world.now + seconds(want);
        assert_eq!(world.waiting, Some(Waiting::BackOff { until, index: None }));
        assert!(!is_tracked(world.pod(&pod)), "let go uncounted");
        assert_eq!(world.status().failed, None);
        world.settle_until(until);
        assert_eq!(world.active().len(), 1);
    }
    let handled: Vec<u64> = world
        .facts
        .iter()
        .filter(|fact| fact.values == ["Ignore"])
        .map(|fact| fact.count)
        .collect();
    assert_eq!(handled, [1, 1]);
}

// rule: job 3.10, job 6.1.4
#[test]
fn each_index_fails_by_itself_and_its_pods_know_how_often() {
    let mut world = World::new(indexed(3, json!({"backoffLimitPerIndex": 1})));
    world.settle();
    assert_eq!(world.status().failed_indexes.as_deref(), Some(""), "empty, and not absent");
    let count = |world: &World, index: i32| {
        let pod = world.pod(&world.of_index(index)).clone();
        let annotations = pod.metadata.annotations.unwrap();
        let ignored = annotations.get("batch.kubernetes.io/job-index-ignored-failure-count");
        let counted = annotations["batch.kubernetes.io/job-index-failure-count"].clone();
        (counted, ignored.cloned())
    };
    assert_eq!(count(&world, 1), ("0".to_owned(), None));
    let first = world.of_index(1);
    world.end(&first, 1);
    world.settle();
    let until = world.now + seconds(10);
    assert_eq!(world.waiting, Some(Waiting::BackOff { until, index: Some(1) }));
    assert!(is_tracked(world.pod(&first)), "kept until the index has a new pod");
    assert_eq!(world.status().failed, None, "and counted then");
    world.settle_until(until);
    assert_eq!(count(&world, 1), ("1".to_owned(), None));
    assert!(!is_tracked(world.pod(&first)));
    assert_eq!(world.status().failed, Some(1));
    world.end(&world.of_index(1), 1);
    world.settle();
    let status = world.status();
    assert_eq!((status.failed_indexes.as_deref(), status.failed), (Some("1"), Some(2)));
    assert_eq!(world.active_indexes(), [0, 2], "one failed index does not fail the Job");
    world.succeed_all();
    world.settle();
    assert_eq!(world.conditions(), ["FailureTarget/FailedIndexes", "Failed/FailedIndexes"]);
    assert_eq!(world.status().completed_indexes.as_deref(), Some("0,2"));
}

// rule: job 3.10, job 2.3
#[test]
fn indexes_back_off_apart() {
    let mut world = World::new(indexed(2, json!({"backoffLimitPerIndex": 5})));
    world.settle();
    world.end(&world.of_index(0), 1);
    world.settle();
    world.tick(6);
    world.end(&world.of_index(1), 1);
    world.settle();
    let until = world.now + seconds(4);
    assert_eq!(world.waiting, Some(Waiting::BackOff { until, index: Some(0) }));
    world.settle_until(until);
    assert_eq!(world.active_indexes(), [0], "only the one whose time has come");
    world.settle_until(until + seconds(6));
    assert_eq!(world.active_indexes(), [0, 1]);
    world.end(&world.of_index(0), 1);
    world.settle();
    let until = world.now + seconds(20);
    assert_eq!(world.waiting, Some(Waiting::BackOff { until, index: Some(0) }), "its second");
}

// rule: job 3.10, job 3.11, job 3.6.6
#[test]
fn rules_fail_an_index_at_once_or_ignore_its_failure() {
    let policy = json!({"rules": [
        {"action": "FailIndex", "onExitCodes": {"operator": "In", "values": [3]}},
        {"action": "Ignore", "onExitCodes": {"operator": "In", "values": [42]}}]});
    let spec =
        json!({"backoffLimitPerIndex": 2, "maxFailedIndexes": 1, "podFailurePolicy": policy});
    let mut world = World::new(indexed(3, spec));
    world.settle();
    world.end(&world.of_index(0), 3);
    world.settle();
    assert_eq!(world.status().failed_indexes.as_deref(), Some("0"));
    world.end(&world.of_index(1), 42);
    world.settle_until(world.now + seconds(10));
    let pod = world.pod(&world.of_index(1)).clone();
    let annotations = pod.metadata.annotations.unwrap();
    assert_eq!(annotations["batch.kubernetes.io/job-index-failure-count"], "0");
    assert_eq!(annotations["batch.kubernetes.io/job-index-ignored-failure-count"], "1");
    assert_eq!(world.status().failed, Some(1), "the ignored one is not counted");
    world.end(&world.of_index(2), 3);
    world.settle();
    assert_eq!(world.conditions()[0], "FailureTarget/MaxFailedIndexesExceeded");
}

// rule: job 3.10
#[test]
fn an_index_whose_pod_is_stopped_with_its_job_has_not_failed() {
    let spec =
        json!({"backoffLimit": 0, "backoffLimitPerIndex": 0, "podReplacementPolicy": "Failed"});
    let mut world = World::new(indexed(2, spec));
    world.settle();
    world.end(&world.of_index(0), 1);
    world.deliver(usize::MAX);
    // The status is written, and nothing is done about the pods yet.
    world.lucks = [Luck::Fine, Luck::Refused, Luck::Refused, Luck::Refused].into();
    drop(world.pass());
    assert_eq!(world.conditions(), ["FailureTarget/BackoffLimitExceeded"]);
    let listed = world.status().uncounted_terminated_pods.unwrap().failed.unwrap();
    assert_eq!(listed.len(), 2, "both count as failed");
    world.lucks.clear();
    world.settle_until(world.now + seconds(10));
    world.end_terminating();
    world.settle();
    assert_eq!(world.conditions().last().unwrap(), "Failed/BackoffLimitExceeded");
    assert_eq!(world.status().failed_indexes.as_deref(), Some("0"));
}

// rule: job 2.3
#[test]
fn a_job_with_no_index_left_but_that_of_a_terminating_pod_waits_for_that_pod() {
    let spec = json!({"backoffLimitPerIndex": 0, "podReplacementPolicy": "Failed"});
    let mut world = World::new(indexed(2, spec));
    world.settle();
    world.end(&world.of_index(0), 1);
    let held = world.of_index(1);
    world.delete_pod(&held);
    world.settle();
    let holding_up = HoldingUp::Replacement;
    let want = Waiting::PodsTerminating { holding_up, pods: vec![held], total: 1 };
    assert_eq!(world.waiting, Some(want));
}

// rule: job 3.10
#[test]
fn numbers_on_pods_that_make_no_sense_count_as_none() {
    for text in ["-1", "many", "2147483648", ""] {
        let mut world = World::new(indexed(1, json!({"backoffLimitPerIndex": 1})));
        world.settle();
        let name = world.of_index(0);
        let mut pod = world.pod(&name).clone();
        let annotations = pod.metadata.annotations.as_mut().unwrap();
        annotations.insert("batch.kubernetes.io/job-index-failure-count".into(), text.into());
        world.put_pod(pod);
        world.end(&name, 1);
        world.settle_until(world.now + seconds(10));
        assert_eq!(world.active_indexes(), [0], "{text:?}");
    }
}
