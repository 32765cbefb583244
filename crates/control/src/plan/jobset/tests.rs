//! Whole histories of JobSets, step by step.

mod beyond;
mod building;
mod cells;
mod driving;
mod failing;
mod hearing;
mod in_order;
mod odd;
mod starting;
mod suspending;
mod telling;
mod traps;

use serde_json::{Value, json};

use super::{Fact, Waiting, world::World};

/// A replicated job with these members.
fn group(name: &str, replicas: i32, more: Value) -> Value {
    let mut group = json!({"name": name, "replicas": replicas, "template": {"spec": {
        "parallelism": 2, "completions": 2,
        "template": {"spec": {"restartPolicy": "Never",
                              "containers": [{"name": "c", "image": "i"}]}},
    }}});
    for (key, value) in more.as_object().unwrap() {
        group[key] = value.clone();
    }
    group
}

/// A set of one driver and two workers, with these members of its spec.
fn pair(more: Value) -> World {
    let mut spec =
        json!({"replicatedJobs": [group("driver", 1, json!({})), group("workers", 2, json!({}))]});
    for (key, value) in more.as_object().unwrap() {
        spec[key] = value.clone();
    }
    World::new(spec)
}

/// `name: ready/succeeded/failed/active/suspended` of every replicated job.
fn counts(world: &World) -> Vec<String> {
    let entries = world.status().replicated_jobs_status;
    let text = |one: &lockstep_api::jobset::ReplicatedJobStatus| {
        let numbers = [one.ready, one.succeeded, one.failed, one.active, one.suspended];
        format!("{}: {}", one.name, numbers.map(|number| number.to_string()).join("/"))
    };
    entries.iter().map(text).collect()
}

// rule: jobset 3.3, jobset 3.5, jobset 3.7, jobset 3.12
#[test]
fn a_set_runs_from_start_to_end() {
    let mut world = pair(json!({}));
    world.settle();
    let asked = world.asked();
    assert_eq!(
        asked,
        ["service", "create js-driver-0", "create js-workers-0", "create js-workers-1", "status"]
    );
    assert_eq!(counts(&world), ["workers: 0/0/0/0/0", "driver: 0/0/0/0/0"]);
    assert_eq!(world.waiting, Some(Waiting::Running));
    world.ready(&["js-driver-0", "js-workers-0"]);
    world.settle();
    assert_eq!(counts(&world), ["workers: 1/0/0/1/0", "driver: 1/0/0/1/0"]);
    assert_eq!(world.conditions(), Vec::<String>::new());
    for name in ["js-driver-0", "js-workers-0"] {
        world.complete(name);
        world.settle();
        assert_eq!(world.conditions(), Vec::<String>::new());
    }
    world.complete("js-workers-1");
    world.settle();
    assert_eq!(
        world.conditions(),
        ["Completed=True AllJobsCompleted: jobset completed successfully"]
    );
    assert_eq!(world.events(), ["AllJobsCompleted jobset completed successfully"]);
    assert_eq!(world.facts, [Fact::Completed]);
    assert_eq!(world.status().terminal_state, "Completed");
    assert_eq!(counts(&world), ["workers: 0/2/0/0/0", "driver: 0/1/0/0/0"]);
    assert_eq!(world.waiting, Some(Waiting::Finished { condition: "Completed".into() }));
    assert_eq!(world.jobs.len(), 3, "finished Jobs stay");
}

// rule: jobset 3.7, jobset Q6
#[test]
fn success_is_what_the_policy_says() {
    let targets = |names: &[&str]| json!({"operator": "All", "targetReplicatedJobs": names});
    let any = |names: &[&str]| json!({"operator": "Any", "targetReplicatedJobs": names});
    let cases: [(Value, &[&str], bool); 8] = [
        (any(&[]), &["js-workers-1"], true),
        (any(&["driver"]), &["js-workers-0", "js-workers-1"], false),
        (any(&["driver"]), &["js-driver-0"], true),
        (targets(&["driver"]), &["js-driver-0"], true),
        (targets(&["workers"]), &["js-workers-0"], false),
        (targets(&["workers"]), &["js-workers-0", "js-workers-1"], true),
        (targets(&[]), &["js-workers-0", "js-workers-1"], false),
        (targets(&[]), &[], false),
    ];
    for (policy, complete, is_complete) in cases {
        let mut world = pair(json!({"successPolicy": policy}));
        world.settle();
        complete.iter().for_each(|name| world.complete(name));
        world.asked();
        world.settle();
        let is_finished = world.status().terminal_state == "Completed";
        assert_eq!(is_finished, is_complete, "{policy} {complete:?}");
        let deleted = world.jobs.values().filter(|j| j.metadata.deletion_timestamp.is_some());
        let left = if is_complete { 3 - complete.len() } else { 0 };
        assert_eq!(deleted.count(), left, "active Jobs of a finished set are deleted");
    }
}

// rule: jobset 3.11
#[test]
fn a_finished_set_is_deleted_after_a_while() {
    let mut world = pair(json!({"ttlSecondsAfterFinished": 10,
        "successPolicy": {"operator": "Any"}}));
    world.settle();
    world.complete("js-driver-0");
    world.settle();
    assert_eq!(world.plan().next.map(|at| at.as_second() - world.now.as_second()), Some(10));
    world.tick(9);
    world.settle();
    assert!(!world.is_deleted);
    world.tick(1);
    world.settle();
    assert!(world.is_deleted);
}
