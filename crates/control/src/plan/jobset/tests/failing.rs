use lockstep_api::Gates;
use serde_json::{Value, json};

use super::pair;
use crate::plan::jobset::{Fact, Options, Step, Waiting, world::World};

const FIRST: &str = "(first failed job: js-workers-0)";

/// A world in which the workers' first Job has failed, with this policy.
fn failed(policy: Value) -> World {
    let mut world = pair(json!({"failurePolicy": policy}));
    world.settle();
    world.ready(&["js-driver-0", "js-workers-0", "js-workers-1"]);
    world.settle();
    world.tick(5);
    world.fail("js-workers-0", "BackoffLimitExceeded", "pod out of memory");
    world.asked();
    world
}

fn rule(action: &str, more: Value) -> Value {
    let mut rule = json!({"name": "r", "action": action});
    for (key, value) in more.as_object().unwrap() {
        rule[key] = value.clone();
    }
    rule
}

// rule: jobset 3.8
#[test]
fn without_a_policy_a_failed_job_fails_the_set() {
    let mut world = pair(json!({}));
    world.settle();
    world.tick(5);
    world.fail("js-workers-1", "BackoffLimitExceeded", "");
    world.tick(5);
    world.fail("js-workers-0", "BackoffLimitExceeded", "");
    world.asked();
    world.settle();
    let message = "jobset failed due to one or more job failures (first failed job: js-workers-1)";
    assert_eq!(world.conditions(), [format!("Failed=True FailedJobs: {message}")]);
    assert_eq!(world.events(), [format!("!FailedJobs {message}")]);
    assert_eq!(
        (world.status().terminal_state.as_str(), &world.facts[..]),
        ("Failed", &[Fact::Failed][..])
    );
    assert_eq!(world.asked(), ["status", "delete js-driver-0"]);
}

// rule: jobset 3.8, jobset 3.12
#[test]
fn each_action_does_what_it_is_called() {
    let applying = |action: &str| format!("applying {action} failure policy action {FIRST}");
    let cases = [
        ("RestartJobSet", 2, 1, 1, vec![], vec![]),
        ("RestartJobSetAndIgnoreMaxRestarts", 0, 1, 0, vec![], vec![]),
        ("RestartJob", 2, 0, 0, vec![1, 0], vec![1, 0]),
        ("RestartJobAndIgnoreMaxRestarts", 0, 0, 0, vec![1, 0], vec![]),
        ("RestartReplicatedJob", 2, 0, 0, vec![1, 1], vec![1, 0]),
    ];
    for (action, most, restarts, counted, single, single_counted) in cases {
        let mut world = failed(json!({"maxRestarts": most, "rules": [rule(action, json!({}))]}));
        world.settle();
        let status = world.status();
        assert_eq!(status.restarts, restarts, "{action}");
        assert_eq!(status.restarts_count_towards_max, counted, "{action}");
        let workers = &status.replicated_jobs_status[0];
        assert_eq!(workers.job_restarts, single, "{action}");
        assert_eq!(workers.job_restarts_count_towards_max, single_counted, "{action}");
        let told = format!("!{action}FailurePolicyAction {}", applying(action));
        let restarting = format!("RestartingJobSet=True FailurePolicy_r: {}", applying(action));
        if restarts > 0 {
            assert_eq!(world.conditions(), [restarting]);
            let first = format!("!FailurePolicy_r {}", applying(action));
            assert_eq!(world.events(), [first, told]);
        } else {
            assert_eq!(world.conditions(), Vec::<String>::new(), "{action}");
            assert_eq!(world.events(), [told]);
        }
    }
    let mut world = failed(json!({"maxRestarts": 9, "rules": [rule("FailJobSet", json!({}))]}));
    world.settle();
    let want = format!("Failed=True FailJobSetFailurePolicyAction: {}", applying("FailJobSet"));
    assert_eq!(world.conditions(), [want]);
}

// rule: jobset 3.8
#[test]
fn restarts_end_at_their_limit() {
    let message = format!("jobset failed due to reaching max number of restarts {FIRST}");
    for action in ["RestartJobSet", "RestartJob", "RestartReplicatedJob"] {
        let mut world = failed(json!({"maxRestarts": 0, "rules": [rule(action, json!({}))]}));
        world.settle();
        assert_eq!(world.conditions(), [format!("Failed=True ReachedMaxRestarts: {message}")]);
    }
    // Restarts of single Jobs and of the whole set count together.
    let rules = json!([rule("RestartJob", json!({"targetReplicatedJobs": ["workers"]}))]);
    let mut world = failed(json!({"maxRestarts": 1, "rules": rules}));
    world.settle();
    world.collect();
    world.settle();
    world.fail("js-driver-0", "BackoffLimitExceeded", "");
    world.settle();
    assert!(world.conditions()[0].starts_with("Failed=True ReachedMaxRestarts"));
}

// rule: jobset 3.8, jobset Q16
#[test]
fn the_first_rule_that_matches_decides() {
    let targets = |name: &str| json!({"targetReplicatedJobs": [name]});
    let fail = |more: Value| rule("FailJobSet", more);
    let cases: [(&str, Value, bool); 9] = [
        ("any", fail(json!({})), true),
        ("its reason", fail(json!({"onJobFailureReasons": ["BackoffLimitExceeded"]})), true),
        ("another reason", fail(json!({"onJobFailureReasons": ["DeadlineExceeded"]})), false),
        ("its group", fail(targets("workers")), true),
        ("another group", fail(targets("driver")), false),
        ("a message", fail(json!({"onJobFailureMessagePatterns": ["out of .*ry$"]})), true),
        ("another message", fail(json!({"onJobFailureMessagePatterns": ["^out"]})), false),
        ("no expression", fail(json!({"onJobFailureMessagePatterns": ["("]})), false),
        ("one of two", fail(json!({"onJobFailureMessagePatterns": ["(", "memory"]})), true),
    ];
    for (what, rule, is_match) in cases {
        let mut world = failed(json!({"maxRestarts": 1, "rules": [rule]}));
        world.settle();
        let reason = world.status().conditions[0].reason.clone();
        let want = if is_match { "FailJobSetFailurePolicyAction" } else { "DefaultFailurePolicy" };
        assert_eq!(reason, want, "{what}");
    }
}

// rule: jobset 3.4, jobset 3.6, jobset 3.8, jobset 3.12
#[test]
fn a_restart_replaces_all_jobs_and_ends_when_they_are_ready() {
    let mut world = failed(json!({"maxRestarts": 1}));
    world.complete("js-driver-0");
    world.settle();
    let asked =
        ["status", "delete js-driver-0", "delete js-workers-0", "delete js-workers-1", "status"];
    assert_eq!(world.asked(), asked);
    assert_eq!(world.waiting, Some(Waiting::JobsTerminating { total: 3 }));
    // Each comes back as soon as the one before it is gone.
    world.jobs.remove("js-workers-1");
    world.settle();
    assert_eq!(world.asked(), ["create js-workers-1"]);
    let attempt = "jobset.sigs.k8s.io/restart-attempt";
    let made = world.jobs["js-workers-1"].metadata.labels.as_ref().unwrap();
    assert_eq!(made[attempt], "1");
    world.collect();
    world.settle();
    world.events();
    world.ready(&["js-driver-0", "js-workers-0", "js-workers-1"]);
    world.settle();
    assert_eq!(world.conditions(), ["RestartingJobSet=False JobsReady: all jobs are ready"]);
    assert_eq!(world.events(), ["JobsReady all jobs are ready"]);
}

// rule: jobset 3.6
#[test]
fn a_blocking_restart_waits_until_all_are_gone() {
    let mut world = failed(json!({"maxRestarts": 1, "restartStrategy": "BlockingRecreate"}));
    world.settle();
    world.asked();
    world.jobs.remove("js-workers-1");
    world.settle();
    assert_eq!(world.asked(), Vec::<String>::new());
    world.collect();
    world.settle();
    assert_eq!(world.asked(), ["create js-driver-0", "create js-workers-0", "create js-workers-1"]);
}

// rule: jobset 3.4, jobset 3.8
#[test]
fn a_job_that_is_restarted_alone_leaves_the_others_be() {
    let mut world = failed(json!({"maxRestarts": 1, "rules": [rule("RestartJob", json!({}))]}));
    world.settle();
    assert_eq!(world.asked(), ["status", "delete js-workers-0", "status"]);
    world.collect();
    world.settle();
    assert_eq!(world.asked(), ["create js-workers-0"]);
    let labels = world.jobs["js-workers-0"].metadata.labels.as_ref().unwrap();
    assert_eq!(labels["jobset.sigs.k8s.io/job-restart-attempt"], "1");
    assert_eq!(labels["jobset.sigs.k8s.io/restart-attempt"], "0");
}

// rule: jobset 3.2
#[test]
fn events_are_told_after_what_they_tell_is_written() {
    let world = failed(json!({"maxRestarts": 1}));
    let steps = world.plan().steps;
    let [Step::WriteStatus(write), Step::Emit(_), Step::Emit(_)] = steps.as_slice() else {
        panic!("{steps:?}");
    };
    assert_eq!((write.uid.as_str(), write.status.restarts), ("set", 1));
    assert_eq!(Some(&write.resource_version), world.jobset.metadata.resource_version.as_ref());
}

// rule: jobset Q4
#[test]
fn failure_comes_before_success() {
    let mut world = pair(json!({"successPolicy": {"operator": "Any"}}));
    world.settle();
    world.complete("js-driver-0");
    world.fail("js-workers-0", "BackoffLimitExceeded", "");
    world.events();
    world.settle();
    assert_eq!(world.status().terminal_state, "Failed");
    let overruled = "!SuccessPolicyOverruled the success policy is met as well: a failure that is \
                     seen at the same time comes first";
    assert_eq!(world.events().last().unwrap(), overruled);
}

/// An action of ours: the Job stays failed, the others go on.
#[test]
fn a_job_may_be_left_failed() {
    let rules = json!([rule("FailJob", json!({"targetReplicatedJobs": ["workers"]}))]);
    let policy = json!({"maxRestarts": 1, "rules": rules});
    let mut world = failed(policy.clone());
    world.settle();
    assert_eq!(world.status().terminal_state, "");
    assert_eq!(world.status().restarts, 0);
    // Nothing that is left can make the set complete: it fails, and says because of which Job.
    world.complete("js-driver-0");
    world.settle();
    assert_eq!(world.status().terminal_state, "");
    world.complete("js-workers-1");
    world.settle();
    let message = format!("jobset failed due to one or more job failures {FIRST}");
    assert_eq!(world.conditions(), [format!("Failed=True FailedJobs: {message}")]);

    let mut world = pair(json!({"failurePolicy": policy,
        "successPolicy": {"operator": "All", "targetReplicatedJobs": ["driver"]}}));
    world.settle();
    world.fail("js-workers-0", "BackoffLimitExceeded", "");
    world.complete("js-driver-0");
    world.settle();
    assert_eq!(world.status().terminal_state, "Completed");
}

// rule: jobset 0.2
#[test]
fn without_the_feature_a_job_cannot_be_restarted_alone() {
    let mut world = failed(json!({"maxRestarts": 1, "rules": [rule("RestartJob", json!({}))]}));
    let gates = Gates { restart_job: false, ..Gates::ALL };
    world.options = Options { gates, ..Options::default() };
    world.settle();
    let why = "RestartJob failure policy action cannot be used when the feature gate RestartJob \
               is disabled";
    assert_eq!(world.waiting, Some(Waiting::Invalid(why.to_owned())));
}

#[test]
fn a_group_with_more_jobs_than_one_restarts_as_a_whole() {
    let mut world = failed(json!({"maxRestarts": 1,
        "rules": [rule("RestartReplicatedJob", json!({}))]}));
    world.settle();
    let asked = ["status", "delete js-workers-0", "delete js-workers-1", "status"];
    assert_eq!(world.asked(), asked);
}
