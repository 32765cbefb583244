//! Counting: each pod once, at most so many at a time, and no more work than there is news.

use std::time::Duration;

use serde_json::json;

use crate::plan::job::{
    Fact, Options,
    tests::indexed,
    world::{Luck, World, is_tracked},
};

// rule: job 3.5, job 3.3.13, job 3.3.14, job 3.3.19
#[test]
fn more_pods_than_a_status_may_list_are_counted_in_turns_without_waiting() {
    for spec in [json!({"parallelism": 10, "completions": 10}), indexed(10, json!({}))] {
        let options = Options { uncounted_max: 4, ..Default::default() };
        let mut world = World::with(options, spec);
        world.settle();
        world.succeed_all();
        world.deliver(usize::MAX);
        world.pass();
        assert_eq!(world.pods.values().filter(|pod| is_tracked(pod)).count(), 6);
        let start = world.now;
        world.settle();
        assert!(world.is_finished() && world.now == start);
        assert_eq!(world.status().succeeded, Some(10));
    }
}

// rule: job 3.5
#[test]
fn a_finalizer_that_cannot_be_removed_holds_up_that_pod_only() {
    let mut world = World::new(json!({"parallelism": 2, "completions": 4}));
    world.settle();
    world.succeed_all();
    world.deliver(usize::MAX);
    world.lucks = [Luck::Fine, Luck::Refused].into();
    world.pass();
    assert_eq!(world.events.last().unwrap().reason, "FailedPatch");
    assert!(world.events.last().unwrap().message.contains("no luck"));
    // New pods do not wait for it, though it is refused again and again.
    world.lucks = [Luck::Fine, Luck::Fine, Luck::Fine, Luck::Refused].into();
    world.tick(1);
    world.pass();
    assert_eq!(world.active().len(), 2, "{:?}", world.log);
    let status = world.status();
    assert_eq!(status.succeeded, Some(1), "the one that went is a number");
    assert_eq!(status.uncounted_terminated_pods.unwrap().succeeded.unwrap().len(), 1);
    world.lucks.clear();
    let later = world.now + jiff::SignedDuration::from_secs(5);
    world.settle_until(later);
    assert_eq!(world.status().succeeded, Some(2));
}

// rule: job 3.5, job 6.1.1
#[test]
fn a_crash_between_any_two_steps_counts_nothing_twice() {
    for step in 0..8 {
        for answered in [true, false] {
            let mut world = World::new(json!({"parallelism": 3, "completions": 3}));
            world.settle();
            let pods = world.active();
            world.end(&pods[0], 0);
            world.end(&pods[1], 1);
            world.deliver(usize::MAX);
            if !answered {
                world.lucks = (0..step).map(|_| Luck::Fine).chain([Luck::Unanswered]).collect();
            }
            let (key, plan) = world.driver.next(world.now).unwrap();
            world.carry_out(&key, &plan, step);
            world.lucks.clear();
            world.restart();
            let later = world.now + jiff::SignedDuration::from_secs(20);
            world.settle_until(later);
            let status = world.status();
            assert_eq!((status.succeeded, status.failed), (Some(1), Some(1)), "step {step}");
            assert_eq!(world.active().len(), 2);
        }
    }
}

// rule: job 3.5, job 3.4
#[test]
fn a_listed_pod_that_is_the_jobs_no_longer_is_counted_once_all_the_same() {
    let mut world = World::new(json!({"parallelism": 2, "completions": 2}));
    world.settle();
    let name = world.active().remove(0);
    world.end(&name, 0);
    world.deliver(usize::MAX);
    let (key, plan) = world.driver.next(world.now).unwrap();
    world.carry_out(&key, &plan, 1);
    // Somebody takes it away from the Job while the controller is down.
    let mut taken = world.pod(&name).clone();
    taken.metadata.owner_references = None;
    taken.metadata.labels = None;
    world.put_pod(taken);
    world.restart();
    world.settle();
    assert_eq!(world.status().succeeded, Some(1));
    assert_eq!(world.status().uncounted_terminated_pods, Some(Default::default()));
    assert!(!is_tracked(world.pod(&name)));
}

// rule: job 1.4, job 3.3.8, job 6.1.2
#[test]
fn the_first_status_says_all_there_is_to_say() {
    let mut world = World::new(indexed(1, json!({"backoffLimitPerIndex": 1})));
    world.settle();
    let status = serde_json::to_value(world.status()).unwrap();
    let want = json!({"active": 1, "ready": 0, "terminating": 0, "failedIndexes": "",
        "uncountedTerminatedPods": {}, "startTime": "2026-11-15T12:00:00Z"});
    assert_eq!(status, want);
    let mut world = World::new(json!({}));
    world.settle();
    world.succeed_all();
    world.settle();
    let status = serde_json::to_value(world.status()).unwrap();
    let condition = |kind: &str| {
        json!({"type": kind, "status": "True", "reason": "CompletionsReached",
            "message": "Reached expected number of succeeded pods",
            "lastProbeTime": "2026-11-15T12:00:00Z", "lastTransitionTime": "2026-11-15T12:00:00Z"})
    };
    let want = json!({"succeeded": 1, "ready": 0, "terminating": 0, "uncountedTerminatedPods": {},
        "startTime": "2026-11-15T12:00:00Z", "completionTime": "2026-11-15T12:00:00Z",
        "conditions": [condition("SuccessCriteriaMet"), condition("Complete")]});
    assert_eq!(status, want);
}

/// What a big Job costs per pod that ends, in pods looked at.
fn cost_per_end(pods: i32, spec: serde_json::Value) -> u64 {
    let options = Options {
        pods_per_pass_max: 100_000,
        pod_backoff_base: Duration::ZERO,
        ..Options::default()
    };
    let mut world = World::with(options, spec);
    for _ in 0..4 {
        world.deliver(usize::MAX);
        world.pass();
    }
    assert_eq!(i32::try_from(world.active().len()).unwrap(), pods);
    let before = world.driver.view(&world.key()).unwrap().work().pods_tallied;
    let mut visited = 0;
    for name in world.active().into_iter().step_by(3).take(20) {
        world.end(&name, 0);
        world.deliver(usize::MAX);
        while let Some(plan) = world.pass() {
            visited += plan.pods_visited;
            world.deliver(usize::MAX);
        }
    }
    let view = world.driver.view(&world.key()).unwrap();
    assert_eq!(view.work().rebuilds, 1, "added up once, when the Job was first seen");
    view.work().pods_tallied - before + u64::try_from(visited).unwrap()
}

#[test]
fn a_pod_that_ends_costs_the_same_however_many_there_are() {
    let plain = |pods: i32| json!({"parallelism": pods, "completions": pods});
    assert_eq!(cost_per_end(60, plain(60)), cost_per_end(600, plain(600)));
    let of = |pods: i32| indexed(pods, json!({}));
    assert_eq!(cost_per_end(60, of(60)), cost_per_end(600, of(600)));
    assert!(cost_per_end(600, of(600)) <= 20 * 6);
}

fn sum(world: &World, name: &str, values: &[&str]) -> u64 {
    let is_it = |fact: &&Fact| fact.metric.name() == name && fact.values == values;
    world.facts.iter().filter(is_it).map(|fact| fact.count).sum()
}

// rule: job 3.13, job 3.3.7
#[test]
fn what_happens_is_counted_once_it_is_written() {
    let spec = json!({"backoffLimitPerIndex": 0, "podReplacementPolicy": "TerminatingOrFailed"});
    let mut world = World::new(indexed(3, spec));
    world.settle();
    assert_eq!(sum(&world, "job_pods_creation_total", &["new", "succeeded"]), 3);
    world.end(&world.of_index(0), 1);
    world.succeed_all();
    world.settle();
    let cases = [
        ("jobs_finished_total", vec!["Indexed", "failed", "FailedIndexes"], 1),
        ("job_pods_finished_total", vec!["Indexed", "succeeded"], 2),
        ("job_pods_finished_total", vec!["Indexed", "failed"], 1),
        ("job_finished_indexes_total", vec!["succeeded", "perIndex"], 2),
        ("job_finished_indexes_total", vec!["failed", "perIndex"], 1),
        ("terminated_pods_tracking_finalizer_total", vec!["add"], 3),
        ("terminated_pods_tracking_finalizer_total", vec!["delete"], 3),
        ("job_syncs_total", vec!["Indexed", "error", "reconciling"], 0),
    ];
    for (name, values, want) in cases {
        assert_eq!(sum(&world, name, &values), want, "{name} {values:?}");
    }
    assert!(sum(&world, "job_syncs_total", &["Indexed", "success", "pods_created"]) >= 1);
    assert!(sum(&world, "job_syncs_total", &["Indexed", "success", "tracking"]) >= 1);
    assert!(sum(&world, "job_syncs_total", &["Indexed", "success", "reconciling"]) >= 1);
}

// rule: job 3.13
#[test]
fn recreated_pods_are_counted_by_the_reason() {
    for (policy, reason) in
        [("Failed", "recreate_failed"), ("TerminatingOrFailed", "recreate_terminating_or_failed")]
    {
        let mut world = World::new(json!({"podReplacementPolicy": policy}));
        world.settle();
        world.fail_all();
        let later = world.now + jiff::SignedDuration::from_secs(10);
        world.settle_until(later);
        assert_eq!(sum(&world, "job_pods_creation_total", &[reason, "succeeded"]), 1, "{policy}");
    }
    let policy = json!({"rules": [{"action": "Count",
        "onExitCodes": {"operator": "In", "values": [1]}}]});
    let mut world = World::new(json!({"podFailurePolicy": policy}));
    world.settle();
    world.fail_all();
    world.settle();
    assert_eq!(sum(&world, "pod_failures_handled_by_failure_policy_total", &["Count"]), 1);
}
