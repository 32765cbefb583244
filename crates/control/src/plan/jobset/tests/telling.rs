//! What is told of a set: events, conditions that are over, counts.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::pair;
use crate::plan::jobset::{Event, Step, world::World};

const ALL: [&str; 3] = ["js-driver-0", "js-workers-0", "js-workers-1"];

/// All reasons that JobSet tells of, and whether as a warning.
const REASONS: [(&str, bool); 21] = [
    ("AllJobsCompleted", false),
    ("FailedJobs", true),
    ("FailJobSetFailurePolicyAction", true),
    ("ReachedMaxRestarts", true),
    ("SuspendedJobs", false),
    ("ResumeJobs", false),
    ("FailurePolicy_r", true),
    ("DefaultFailurePolicy", true),
    ("JobsReady", false),
    ("JobSetCompleted", false),
    ("JobSetFailed", false),
    ("JobSetSuspended", false),
    ("InOrderStartupPolicyInProgress", false),
    ("InOrderStartupPolicyCompleted", false),
    ("RestartJobSetFailurePolicyAction", true),
    ("RestartJobSetAndIgnoreMaxRestartsFailurePolicyAction", true),
    ("RestartJobFailurePolicyAction", true),
    ("RestartJobAndIgnoreMaxRestartsFailurePolicyAction", true),
    ("JobCreationFailed", true),
    ("HeadlessServiceCreationFailed", true),
    ("PVCCreationFailed", true),
];

/// Those that are ours.
const OWN: [(&str, bool); 7] = [
    ("RestartReplicatedJobFailurePolicyAction", true),
    ("FailJobFailurePolicyAction", true),
    ("SuccessPolicyOverruled", true),
    ("InvalidMessagePattern", true),
    ("InvalidJobSet", true),
    ("UpdateRefused", true),
    ("StatusFieldDropped", true),
];

/// What happens to a set.
type Happening = fn(&mut World);

fn fail(world: &mut World) {
    world.settle();
    world.tick(1);
    fail_now(world);
}

fn fail_now(world: &mut World) {
    world.fail("js-workers-0", "BackoffLimitExceeded", "");
    world.settle();
    world.collect();
    world.settle();
}

fn complete(world: &mut World) {
    ALL.iter().for_each(|name| world.complete(name));
    world.settle();
}

fn ready(world: &mut World) {
    for name in ALL {
        world.ready(&[name]);
        world.settle();
    }
}

fn suspend(world: &mut World, is_suspended: bool) {
    world.edit(|jobset| jobset.spec.suspend = Some(is_suspended));
    world.settle();
}

/// A set with a policy of one rule.
fn ruled(action: &str, pattern: &str) -> World {
    let rule = json!({"name": "r", "action": action, "onJobFailureMessagePatterns": [pattern]});
    pair(json!({"failurePolicy": {"maxRestarts": 1, "rules": [rule]}}))
}

/// A set that has been restarted once, and all of whose Jobs run.
fn restarted() -> World {
    let mut world = pair(json!({"failurePolicy": {"maxRestarts": 1}}));
    fail(&mut world);
    world
}

// rule: jobset 3.13
#[test]
fn reasons_of_events_are_those_jobset_has_and_few_of_ours() {
    let mut worlds = Vec::new();
    let begin = |more: Value| {
        let mut world = pair(more);
        world.settle();
        world
    };
    let mut plain = begin(json!({}));
    suspend(&mut plain, true);
    suspend(&mut plain, false);
    complete(&mut plain);
    worlds.push(plain);
    let mut without = begin(json!({}));
    fail(&mut without);
    worlds.push(without);
    let mut ordered = begin(json!({"startupPolicy": {"startupPolicyOrder": "InOrder"}}));
    ordered.ready(&["js-driver-0"]);
    ordered.settle();
    ordered.ready(&["js-workers-0", "js-workers-1"]);
    ordered.settle();
    worlds.push(ordered);
    let ends: [Happening; 4] = [ready, complete, fail, |world| suspend(world, true)];
    for end in ends {
        let mut world = restarted();
        end(&mut world);
        worlds.push(world);
    }
    for action in [
        "FailJobSet",
        "RestartJobSet",
        "RestartJobSetAndIgnoreMaxRestarts",
        "RestartJob",
        "RestartJobAndIgnoreMaxRestarts",
        "RestartReplicatedJob",
        "FailJob",
    ] {
        let mut world = ruled(action, "");
        fail(&mut world);
        worlds.push(world);
    }
    let mut both = begin(json!({"successPolicy": {"operator": "Any"}}));
    both.complete("js-driver-0");
    fail_now(&mut both);
    worlds.push(both);
    let mut unclear = ruled("FailJobSet", "(");
    unclear.settle();
    worlds.push(unclear);
    let at_once = [
        Event::jobs_not_created(&[("js-a-0".to_owned(), "no".to_owned())]),
        Event::service_not_created("no"),
        Event::claims_not_created("no"),
        Event::beyond_not_kept(),
        Event::invalid("no"),
        Event::not_written("no"),
    ];
    let events = worlds.iter().flat_map(|world| &world.events).chain(&at_once);
    let told: BTreeMap<&str, bool> =
        events.map(|event| (event.reason.as_str(), event.is_warning)).collect();
    assert_eq!(told, REASONS.into_iter().chain(OWN).collect());
}

// rule: jobset Q9, jobset Q25
#[test]
fn a_restart_that_is_over_says_why_and_says_so_again_when_that_changes() {
    let mut world = restarted();
    world.events();
    world.tick(10);
    ready(&mut world);
    assert_eq!(world.conditions(), ["RestartingJobSet=False JobsReady: all jobs are ready"]);
    assert_eq!(world.events(), ["JobsReady all jobs are ready"]);
    let since = world.status().conditions[0].last_transition_time.clone();
    let cases: [(Happening, &str, &str); 3] = [
        (complete, "JobSetCompleted", "jobset completed successfully"),
        (fail, "JobSetFailed", "jobset failed"),
        (|world| suspend(world, true), "JobSetSuspended", "jobset is suspended"),
    ];
    for (end, reason, message) in cases {
        let mut world = restarted();
        world.tick(10);
        ready(&mut world);
        world.tick(10);
        world.events();
        end(&mut world);
        assert_eq!(
            world.conditions()[0],
            format!("RestartingJobSet=False {reason}: {message}"),
            "in the place of the one before"
        );
        assert_eq!(world.status().conditions[0].last_transition_time, since, "{reason}");
        let told = world.events();
        assert!(told.contains(&format!("{reason} {message}")), "{told:?}");
    }
}

// rule: jobset Q25
#[test]
fn a_set_that_goes_on_says_so() {
    let mut world = pair(json!({"suspend": true}));
    world.settle();
    world.events();
    suspend(&mut world, false);
    assert_eq!(world.events(), ["ResumeJobs jobset is resumed"]);
}

// rule: jobset Q24
#[test]
fn the_end_of_a_set_is_counted_when_it_is_written_and_not_again() {
    let ends: [Happening; 2] = [
        |world| ALL.iter().for_each(|name| world.complete(name)),
        |world| {
            world.fail("js-driver-0", "BackoffLimitExceeded", "");
        },
    ];
    for end in ends {
        let mut world = pair(json!({}));
        world.settle();
        end(&mut world);
        let steps = world.plan().steps;
        let at = |is: fn(&Step) -> bool| steps.iter().position(is).unwrap();
        let written = at(|step| matches!(step, Step::WriteStatus(_)));
        assert!(at(|step| matches!(step, Step::Note(_))) > written, "a write that fails is none");
        world.settle();
        world.collect();
        world.settle();
        assert_eq!(world.facts.len(), 1);
    }
}
