//! The stories and the test scenarios of KEP-3998, by their names.

use serde_json::{Value, json};

use crate::plan::job::{
    Options,
    tests::indexed,
    world::{Luck, World, is_active},
};

/// The Job of story 1: the leader decides.
fn story_1() -> Value {
    indexed(10, json!({"successPolicy": {"rules": [{"succeededIndexes": "0"}]}}))
}

/// The Job of story 2: the leader, or enough of the workers.
fn story_2() -> Value {
    indexed(
        10,
        json!({"successPolicy": {"rules": [
            {"succeededIndexes": "0"},
            {"succeededCount": 5, "succeededIndexes": "1-9"},
        ]}}),
    )
}

/// A world whose pods run.
fn running(spec: Value) -> World {
    let mut world = World::new(spec);
    world.settle();
    for pod in world.active() {
        world.run(&pod);
    }
    world.settle();
    world
}

/// Ends pods of these indexes and lets the Job go on until nothing moves.
fn end(world: &mut World, indexes: &[i32], code: i32) {
    for index in indexes {
        world.end(&world.of_index(*index), code);
    }
    world.settle();
}

/// The Job has succeeded by this rule with these indexes, and nothing of it runs.
fn check_success(world: &mut World, rule: usize, completed: &str) {
    assert_eq!(world.conditions()[0], "SuccessCriteriaMet/SuccessPolicy");
    assert!(!world.pods.values().any(is_active), "lingering pods are terminated");
    world.end_terminating();
    world.settle();
    assert_eq!(world.conditions(), ["SuccessCriteriaMet/SuccessPolicy", "Complete/SuccessPolicy"]);
    let status = world.status();
    assert_eq!(status.completed_indexes.as_deref(), Some(completed));
    let want = format!("Matched rules at index {rule}");
    for condition in status.conditions.unwrap() {
        assert_eq!(condition.message.as_deref(), Some(&*want));
    }
    let reason = |reason: &str| {
        let facts = world.facts.iter().filter(|fact| fact.metric.name() == "jobs_finished_total");
        facts.filter(|fact| fact.values == ["Indexed", "succeeded", reason]).count()
    };
    assert_eq!((reason("SuccessPolicy"), reason("CompletionsReached")), (1, 0));
}

// rule: job 4.1, job 4.2
#[test]
fn story_1_ends_when_the_leader_succeeds_and_not_before() {
    let mut world = running(story_1());
    end(&mut world, &[1, 2, 3, 4, 5, 6, 7, 8, 9], 0);
    assert_eq!(world.conditions(), [""; 0], "workers do not decide");
    end(&mut world, &[0], 0);
    check_success(&mut world, 0, "0-9");
    let mut world = running(story_1());
    end(&mut world, &[0], 0);
    check_success(&mut world, 0, "0");
    assert_eq!(world.status().failed, None, "terminated workers have not failed");
}

// rule: job 4.1, job 4.2
#[test]
fn story_2_ends_when_the_leader_or_enough_workers_succeed() {
    let mut world = running(story_2());
    end(&mut world, &[0], 0);
    check_success(&mut world, 0, "0");
    let mut world = running(story_2());
    end(&mut world, &[2, 4, 5, 9], 0);
    assert_eq!(world.conditions(), [""; 0]);
    end(&mut world, &[7], 0);
    check_success(&mut world, 1, "2,4,5,7,9");
}

// rule: job 4.1
#[test]
fn success_with_some_indexes_failed() {
    let mut world = running(story_1());
    end(&mut world, &[3, 4], 1);
    end(&mut world, &[0], 0);
    check_success(&mut world, 0, "0");
    assert_eq!(world.status().failed, Some(2));
}

// rule: job 4.1
#[test]
fn succeeded_indexes_when_some_indexes_remain_pending() {
    let policy = json!({"rules": [{"succeededIndexes": "1"}]});
    let mut world = running(indexed(5, json!({"parallelism": 2, "successPolicy": policy})));
    end(&mut world, &[1], 0);
    check_success(&mut world, 0, "1");
    assert!(world.all.len() <= 2, "indexes that were never started are not started any more");
}

// rule: job 4.1
#[test]
fn succeeded_count_when_some_indexes_remain_pending() {
    let policy = json!({"rules": [{"succeededCount": 1}]});
    let mut world = running(indexed(5, json!({"parallelism": 2, "successPolicy": policy})));
    end(&mut world, &[0], 0);
    check_success(&mut world, 0, "0");
}

// rule: job 4.1, job 3.10
#[test]
fn some_indexes_of_a_job_with_backoff_limit_per_index_fail() {
    let policy = json!({"rules": [{"succeededIndexes": "2"}]});
    let spec = json!({"backoffLimitPerIndex": 0, "successPolicy": policy});
    let mut world = running(indexed(4, spec));
    end(&mut world, &[0, 1], 1);
    assert_eq!(world.status().failed_indexes.as_deref(), Some("0,1"));
    assert_eq!(world.conditions(), [""; 0]);
    end(&mut world, &[2], 0);
    check_success(&mut world, 0, "2");
    assert_eq!(
        world.status().failed_indexes.as_deref(),
        Some("0,1"),
        "our deletions fail no index"
    );
}

// rule: job 4.2
#[test]
fn all_indexes_succeeded() {
    let policy = json!({"rules": [{"succeededIndexes": "0-2"}]});
    let mut world = running(indexed(3, json!({"successPolicy": policy})));
    world.succeed_all();
    world.settle();
    check_success(&mut world, 0, "0-2");
}

// rule: job 4.2, job 3.6.8
#[test]
fn a_job_without_a_success_policy_reaches_its_completions() {
    let mut world = running(indexed(3, json!({})));
    world.succeed_all();
    world.settle();
    assert_eq!(
        world.conditions(),
        ["SuccessCriteriaMet/CompletionsReached", "Complete/CompletionsReached"]
    );
    let finished = ["Indexed", "succeeded", "CompletionsReached"];
    assert!(world.facts.iter().any(|fact| fact.values == finished));
}

// rule: job 4.2, job 3.10
#[test]
fn an_index_that_fails_after_the_decision_is_listed_as_failed() {
    let policy = json!({"backoffLimitPerIndex": 0,
        "successPolicy": {"rules": [{"succeededIndexes": "1"}]}});
    let mut world = World::new(indexed(2, policy));
    world.settle();
    let (first, second) = (world.of_index(0), world.of_index(1));
    world.end(&second, 0);
    world.deliver(usize::MAX);
    world.lucks = [Luck::Fine, Luck::Refused].into();
    world.pass();
    assert_eq!(world.conditions(), ["SuccessCriteriaMet/SuccessPolicy"]);
    // It could not be let go, and fails before anybody tries again.
    world.end(&first, 1);
    world.settle();
    assert_eq!(world.conditions().last().unwrap(), "Complete/SuccessPolicy");
    let status = world.status();
    assert_eq!((status.failed, status.failed_indexes.as_deref()), (Some(1), Some("0")));
}

// rule: job 4.2, job 3.6
#[test]
fn success_and_failure_in_the_same_pass_end_failed() {
    let spec = json!({"backoffLimit": 0, "successPolicy": {"rules": [{"succeededIndexes": "0"}]}});
    let mut world = running(indexed(3, spec));
    world.end(&world.of_index(0), 0);
    world.end(&world.of_index(1), 1);
    world.settle();
    world.end_terminating();
    world.settle();
    let want = ["FailureTarget/BackoffLimitExceeded", "Failed/BackoffLimitExceeded"];
    assert_eq!(world.conditions(), want);
    assert_eq!(world.status().completed_indexes.as_deref(), Some("0"), "what was done is told");
}

// rule: job 4.2
#[test]
fn a_job_that_met_its_criteria_never_fails_whatever_its_pods_do() {
    let spec = json!({"backoffLimit": 0, "activeDeadlineSeconds": 5, "successPolicy":
        {"rules": [{"succeededIndexes": "0"}]}});
    let mut world = running(indexed(3, spec));
    end(&mut world, &[0], 0);
    assert_eq!(world.conditions(), ["SuccessCriteriaMet/SuccessPolicy"]);
    world.tick(60);
    world.end_terminating();
    world.restart();
    world.settle();
    check_success(&mut world, 0, "0");
}

// rule: job 4.1, job 4.3
#[test]
fn the_gate_on_off_and_on_again_leaves_finished_jobs_untouched() {
    let off = Options { job_success_policy: false, ..Options::default() };
    let mut finished = running(story_1());
    end(&mut finished, &[0], 0);
    check_success(&mut finished, 0, "0");
    let before = finished.status();
    let mut going = running(story_1());
    for (options, decides) in [(off, false), (Options::default(), true)] {
        finished.restart_with(options.clone());
        finished.settle();
        assert_eq!(finished.status(), before);
        going.restart_with(options);
        going.settle();
        if !decides {
            end(&mut going, &[0], 0);
        }
        assert_eq!(going.conditions().is_empty(), !decides);
    }
    check_success(&mut going, 0, "0");
}
