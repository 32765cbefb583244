//! Replicated jobs that start one after the other, in every situation of KEP-104.

use serde_json::{Value, json};

use super::{counts, group};
use crate::plan::jobset::{Waiting, world::World};

const SUSPENDED: &str = "Suspended=True SuspendedJobs: jobset is suspended";

/// The state of the start-up as the conditions say it: the one in progress, the one that is over,
/// and the one that names the replicated job.
fn startup(world: &World) -> [String; 3] {
    let conditions = world.status().conditions;
    ["StartupPolicyInProgress", "StartupPolicyCompleted", "JobSetStartupPolicyCompleted"].map(
        |kind| {
            let found = conditions.iter().find(|one| one.type_ == kind);
            found.map_or_else(
                || "-".to_owned(),
                |one| match kind {
                    "JobSetStartupPolicyCompleted" => format!("{} {}", one.status, one.message),
                    _ => one.status.clone(),
                },
            )
        },
    )
}

fn starting(name: &str) -> [String; 3] {
    ["True".into(), "-".into(), format!("False replicated job {name} is starting")]
}

fn started() -> [String; 3] {
    ["False".into(), "True".into(), "True startup policy successful".into()]
}

/// A set of these replicated jobs that start in order.
fn set(groups: &[Value], more: Value) -> World {
    let mut spec = json!({"startupPolicy": {"startupPolicyOrder": "InOrder"},
        "replicatedJobs": groups});
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let mut world = World::new(spec);
    world.settle();
    world
}

/// A queue, two drivers and two workers, as in story 2.
fn three(more: Value) -> World {
    let groups = [("queue", 1), ("drivers", 2), ("workers", 2)];
    set(&groups.map(|(name, replicas)| group(name, replicas, json!({}))), more)
}

/// What was asked about Jobs since the last time.
fn asked(world: &mut World) -> Vec<String> {
    let all = world.asked().into_iter();
    all.filter(|one| one.contains(" js-")).collect()
}

/// Everything ready that runs, as far as it comes.
fn all_ready(world: &mut World) {
    for _ in 0..4 {
        let names: Vec<String> = world.jobs.keys().cloned().collect();
        for name in names {
            let spec = world.jobs[&name].spec.as_ref();
            if spec.and_then(|spec| spec.suspend) != Some(true) {
                world.ready(&[&name]);
            }
        }
        world.settle();
    }
}

/// What the Job controller does to Jobs that are suspended: their pods end.
fn pods_end(world: &mut World) {
    for job in world.jobs.values_mut() {
        if job.spec.as_ref().and_then(|spec| spec.suspend) == Some(true) {
            job.status = None;
        }
    }
}

fn suspend(world: &mut World, is_on: bool) {
    world.edit(|jobset| jobset.spec.suspend = Some(is_on));
    world.settle();
}

// rule: jobset 3.6, jobset 3.15
#[test]
fn one_group_alone_starts_and_is_then_started() {
    let mut world = set(&[group("only", 2, json!({}))], json!({}));
    assert_eq!(asked(&mut world), ["create js-only-0", "create js-only-1"]);
    world.ready(&["js-only-1"]);
    world.settle();
    assert_eq!(startup(&world), starting("only"));
    let waiting = Waiting::Starting { replicated_job: "only".into(), started: 1, replicas: 2 };
    assert_eq!(world.waiting, Some(waiting));
    world.ready(&["js-only-0"]);
    world.settle();
    assert_eq!(startup(&world), started());
}

// rule: jobset 3.6, jobset 3.15
#[test]
fn of_many_groups_each_waits_until_all_of_the_one_before_is_ready() {
    let mut world = three(json!({}));
    assert_eq!(asked(&mut world), ["create js-queue-0"]);
    world.ready(&["js-queue-0"]);
    world.settle();
    assert_eq!(asked(&mut world), ["create js-drivers-0", "create js-drivers-1"]);
    assert_eq!(startup(&world), starting("drivers"));
    world.ready(&["js-drivers-1"]);
    world.settle();
    assert_eq!(asked(&mut world), Vec::<String>::new(), "one of two is not all");
    world.ready(&["js-drivers-0"]);
    world.settle();
    assert_eq!(asked(&mut world), ["create js-workers-0", "create js-workers-1"]);
    assert_eq!(startup(&world), starting("workers"));
    world.ready(&["js-workers-0", "js-workers-1"]);
    world.settle();
    assert_eq!(startup(&world), started());
}

// rule: jobset 3.15
#[test]
fn a_group_that_was_over_before_it_was_seen_ready_has_started() {
    let mut world = three(json!({}));
    world.complete("js-queue-0");
    world.settle();
    assert_eq!(startup(&world), starting("drivers"));
    assert!(world.jobs.contains_key("js-drivers-1"));
}

// rule: jobset 3.12
#[test]
fn any_order_says_nothing_of_a_start() {
    let order = json!({"startupPolicy": {"startupPolicyOrder": "AnyOrder"}});
    let mut world = three(order);
    assert_eq!(world.jobs.len(), 5);
    all_ready(&mut world);
    assert_eq!(world.conditions(), Vec::<String>::new());
}

// rule: jobset 3.14, jobset Q8
#[test]
fn a_set_that_is_suspended_half_way_goes_on_from_its_first_group() {
    let mut world = three(json!({}));
    world.ready(&["js-queue-0"]);
    world.settle();
    world.ready(&["js-drivers-0"]);
    world.settle();
    assert_eq!(startup(&world), starting("drivers"));
    asked(&mut world);
    suspend(&mut world, true);
    assert_eq!(
        asked(&mut world),
        [
            // Order holds nothing back that is suspended.
            "create js-workers-0",
            "create js-workers-1",
            "suspend js-drivers-0",
            "suspend js-drivers-1",
            "suspend js-queue-0",
        ]
    );
    pods_end(&mut world);
    world.settle();
    assert_eq!(counts(&world), ["workers: 0/0/0/0/2", "queue: 0/0/0/0/1", "drivers: 0/0/0/0/2"]);
    assert_eq!(world.waiting, Some(Waiting::Suspended));
    let is_suspended = |world: &World| {
        let mut conditions = world.status().conditions.into_iter();
        conditions.find(|one| one.type_ == "Suspended").unwrap().status == "True"
    };
    assert!(is_suspended(&world));

    // Each group goes on when the one before it is ready again, also the one that was before.
    world.edit(|jobset| jobset.spec.suspend = Some(false));
    let turns: [(&str, &[&str]); 3] = [
        ("queue", &["js-queue-0"]),
        ("drivers", &["js-drivers-0", "js-drivers-1"]),
        ("workers", &["js-workers-0", "js-workers-1"]),
    ];
    for (name, jobs) in turns {
        world.settle();
        let want: Vec<String> = jobs.iter().map(|job| format!("resume {job}")).collect();
        assert_eq!(asked(&mut world), want);
        assert_eq!((startup(&world), is_suspended(&world)), (starting(name), true));
        world.ready(jobs);
    }
    world.settle();
    assert_eq!((startup(&world), is_suspended(&world)), (started(), false));
}

// rule: jobset 3.14
#[test]
fn a_set_that_had_started_starts_again_in_order_when_it_goes_on() {
    let mut world = three(json!({}));
    all_ready(&mut world);
    assert_eq!(startup(&world), started());
    suspend(&mut world, true);
    let [_, _, named] = startup(&world);
    assert_eq!(named, "False replicated job queue is starting");
    pods_end(&mut world);
    world.settle();
    asked(&mut world);
    suspend(&mut world, false);
    assert_eq!(asked(&mut world), ["resume js-queue-0"]);
    assert_eq!(startup(&world)[..2], ["True", "False"]);
    all_ready(&mut world);
    assert_eq!(startup(&world), started());
}

/// What a Job says of its pods may be older than its suspension.
#[test]
fn a_suspended_job_whose_pods_were_ready_has_not_started() {
    let mut world = three(json!({}));
    all_ready(&mut world);
    suspend(&mut world, true);
    asked(&mut world);
    suspend(&mut world, false);
    assert_eq!(asked(&mut world), Vec::<String>::new(), "pods of before are still there");
    assert_eq!(world.waiting, Some(Waiting::PodsOfBefore { job: "js-queue-0".into() }));
    assert_eq!(startup(&world)[..2], ["True", "False"]);
    assert!(world.conditions().contains(&SUSPENDED.to_owned()));
    pods_end(&mut world);
    world.settle();
    assert_eq!(asked(&mut world), ["resume js-queue-0"]);
}

/// The same for what depends on others.
#[test]
fn what_depends_on_a_suspended_job_waits_until_that_is_ready_again() {
    let waiting = json!({"dependsOn": [{"name": "driver", "status": "Ready"}]});
    let groups = [group("driver", 1, json!({})), group("workers", 1, waiting)];
    let mut world = World::new(json!({"replicatedJobs": groups}));
    world.settle();
    all_ready(&mut world);
    assert_eq!(world.jobs.len(), 2);
    suspend(&mut world, true);
    asked(&mut world);
    suspend(&mut world, false);
    assert_eq!(asked(&mut world), Vec::<String>::new(), "pods of before are still there");
    assert_eq!(world.waiting, Some(Waiting::PodsOfBefore { job: "js-driver-0".into() }));
    assert!(world.conditions().contains(&SUSPENDED.to_owned()), "{:?}", world.conditions());
    pods_end(&mut world);
    world.settle();
    assert_eq!(asked(&mut world), ["resume js-driver-0"]);
    world.ready(&["js-driver-0"]);
    world.settle();
    assert_eq!(asked(&mut world), ["resume js-workers-0"]);
}

// rule: jobset 3.8, jobset 3.15
#[test]
fn a_restart_half_way_begins_with_the_first_group() {
    for strategy in ["Recreate", "BlockingRecreate"] {
        let policy = json!({"maxRestarts": 1, "restartStrategy": strategy});
        let mut world = three(json!({"failurePolicy": policy}));
        world.ready(&["js-queue-0"]);
        world.settle();
        world.fail("js-drivers-1", "BackoffLimitExceeded", "");
        world.settle();
        assert_eq!(world.status().restarts, 1);
        // Drivers are gone before the queue is: they wait for its next attempt all the same.
        world.jobs.retain(|name, _| name == "js-queue-0");
        asked(&mut world);
        world.settle();
        assert_eq!(asked(&mut world), Vec::<String>::new(), "{strategy}");
        world.collect();
        world.settle();
        assert_eq!(asked(&mut world), ["create js-queue-0"], "{strategy}");
        assert_eq!(startup(&world), starting("queue"), "{strategy}");
        world.ready(&["js-queue-0"]);
        world.settle();
        assert_eq!(asked(&mut world), ["create js-drivers-0", "create js-drivers-1"]);
    }
}

// rule: jobset 3.8
#[test]
fn a_job_that_restarts_alone_half_way_is_waited_for() {
    let rules = json!([{"name": "r", "action": "RestartJobAndIgnoreMaxRestarts"}]);
    let mut world = three(json!({"failurePolicy": {"rules": rules}}));
    world.ready(&["js-queue-0"]);
    world.settle();
    world.fail("js-queue-0", "BackoffLimitExceeded", "");
    world.settle();
    world.collect();
    asked(&mut world);
    world.settle();
    assert_eq!(asked(&mut world), ["create js-queue-0"]);
    world.ready(&["js-drivers-0", "js-drivers-1"]);
    world.settle();
    assert_eq!(asked(&mut world), Vec::<String>::new(), "the queue is not ready");
    world.ready(&["js-queue-0"]);
    world.settle();
    assert_eq!(asked(&mut world), ["create js-workers-0", "create js-workers-1"]);
}

// rule: jobset 3.7
#[test]
fn a_set_that_is_complete_before_all_has_started_starts_nothing_more() {
    let policy = json!({"operator": "Any", "targetReplicatedJobs": ["queue"]});
    let mut world = three(json!({"successPolicy": policy}));
    asked(&mut world);
    world.complete("js-queue-0");
    world.settle();
    assert_eq!(world.status().terminal_state, "Completed");
    assert_eq!(asked(&mut world), Vec::<String>::new());
    assert_eq!(startup(&world), starting("queue"), "not all was ready, and none will be");
}

// rule: jobset 3.8, jobset Q5
#[test]
fn a_failure_while_it_starts_fails_the_set_and_starts_nothing_more() {
    let mut world = three(json!({}));
    asked(&mut world);
    world.fail("js-queue-0", "BackoffLimitExceeded", "");
    world.settle();
    assert_eq!(world.status().terminal_state, "Failed");
    assert_eq!(asked(&mut world), Vec::<String>::new());
    assert_eq!(startup(&world), starting("queue"));
}

// rule: jobset 3.15
#[test]
fn a_job_that_is_left_failed_while_it_starts_does_not_hold_up_the_rest() {
    let rules = json!([{"name": "r", "action": "FailJob", "targetReplicatedJobs": ["queue"]}]);
    let mut world = three(json!({"failurePolicy": {"rules": rules}}));
    world.fail("js-queue-0", "BackoffLimitExceeded", "");
    world.settle();
    assert_eq!(startup(&world), starting("drivers"));
    all_ready(&mut world);
    assert_eq!((startup(&world), world.status().terminal_state.as_str()), (started(), ""));
}

// rule: jobset 3.15, jobset Q12
#[test]
fn groups_of_none_have_started_wherever_they_stand() {
    let none = |name: &str| group(name, 0, json!({}));
    let some = |name: &str| group(name, 1, json!({}));
    let mut world = set(&[none("a"), some("b"), none("c"), some("d"), none("e")], json!({}));
    assert_eq!(asked(&mut world), ["create js-b-0"]);
    world.ready(&["js-b-0"]);
    world.settle();
    assert_eq!(asked(&mut world), ["create js-d-0"]);
    assert_eq!(startup(&world), starting("d"));
    world.ready(&["js-d-0"]);
    world.settle();
    assert_eq!(startup(&world), started());

    let world = set(&[none("a")], json!({}));
    assert_eq!(startup(&world), ["-", "True", "True startup policy successful"]);
    assert_eq!(world.status().terminal_state, "");
}

fn resize(world: &mut World, which: usize, size: i32) {
    world.edit(|jobset| {
        let template = &mut jobset.spec.replicated_jobs[which].template;
        let spec = template.spec.as_mut().unwrap();
        (spec.parallelism, spec.completions) = (Some(size), Some(size));
    });
    world.settle();
}

// rule: jobset 3.15, jobset 3.15.1
#[test]
fn a_group_that_grows_while_it_starts_is_waited_for_at_its_new_size() {
    let mut world = three(json!({}));
    asked(&mut world);
    resize(&mut world, 0, 3);
    assert_eq!(asked(&mut world), ["resize js-queue-0"]);
    world.jobs.get_mut("js-queue-0").unwrap().status.get_or_insert_default().ready = Some(2);
    world.settle();
    assert_eq!(startup(&world), starting("queue"), "two of three");
    world.ready(&["js-queue-0"]);
    world.settle();
    assert_eq!(asked(&mut world), ["create js-drivers-0", "create js-drivers-1"]);
    // What is made later has the size of then.
    resize(&mut world, 2, 5);
    assert_eq!(asked(&mut world), Vec::<String>::new());
    world.ready(&["js-drivers-0", "js-drivers-1"]);
    world.settle();
    let spec = world.jobs["js-workers-1"].spec.as_ref().unwrap();
    assert_eq!((spec.parallelism, spec.completions), (Some(5), Some(5)));
}

// rule: jobset 3.15.1
#[test]
fn a_group_that_grows_after_the_start_takes_nothing_away() {
    let mut world = three(json!({}));
    all_ready(&mut world);
    asked(&mut world);
    resize(&mut world, 0, 3);
    assert_eq!(asked(&mut world), ["resize js-queue-0"]);
    assert_eq!(startup(&world), ["True", "False", "True startup policy successful"]);
    world.ready(&["js-queue-0"]);
    world.settle();
    assert_eq!(startup(&world), started());
}
