//! What a failed Job leads to, cell by cell: every action, every way a rule can match or not, every
//! state of the limits.

use serde_json::{Value, json};

use super::{group, pair};
use crate::plan::jobset::{Options, world::World};

/// What a cell ends with.
#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    /// The set fails, because the rule says so.
    FailNow,
    /// The set fails: no restart is left.
    Spent,
    /// The set fails: the rule itself has no restart left.
    RuleSpent,
    /// Everything restarts, as the rule says; whether that counts.
    All(bool),
    /// Everything restarts, as no rule says anything: that counts.
    Default,
    /// The failed Job alone restarts; whether that counts.
    One(bool),
    /// All Jobs of the failed Job's group restart: that counts once.
    Group,
    /// Nothing happens.
    Left,
}

use End::{All, Default, FailNow, Group, Left, One, RuleSpent, Spent};

/// How far the limits are used up when the Job fails.
#[derive(Clone, Copy, Debug)]
enum Limit {
    /// One restart of two was used.
    Left,
    /// One restart of one was used, for the whole set.
    SpentOnSet,
    /// One restart of one was used, for a single Job.
    SpentOnJob,
    /// None was ever allowed.
    Zero,
    /// The set has restarts left, the rule has not.
    RuleSpent,
}

const LIMITS: [Limit; 5] =
    [Limit::Left, Limit::SpentOnSet, Limit::SpentOnJob, Limit::Zero, Limit::RuleSpent];

/// What each action ends with when its rule matches: one column for each limit.
const ACTIONS: [(&str, [End; 5]); 7] = [
    ("FailJobSet", [FailNow; 5]),
    ("RestartJobSet", [All(true), Spent, Spent, Spent, RuleSpent]),
    (
        "RestartJobSetAndIgnoreMaxRestarts",
        [All(false), All(false), All(false), All(false), RuleSpent],
    ),
    ("RestartJob", [One(true), Spent, Spent, Spent, RuleSpent]),
    ("RestartJobAndIgnoreMaxRestarts", [One(false), One(false), One(false), One(false), RuleSpent]),
    ("RestartReplicatedJob", [Group, Spent, Spent, Spent, RuleSpent]),
    ("FailJob", [Left; 5]),
];

/// The same when no rule matches.
const NO_RULE: [End; 5] = [Default, Spent, Spent, Spent, Default];

const REASON: &str = "PodFailurePolicy";
const MESSAGE: &str = "Container main for pod ns/js-workers-0-1 failed with exit code 143";

/// What a rule asks of a Job, and whether the failed one is like that. Nothing asked is a match.
fn asks(field: &str, hit: Value, miss: Value) -> [(String, Value, bool); 3] {
    [
        (format!("no {field}"), json!({}), true),
        (format!("{field} hit"), json!({field: hit}), true),
        (format!("{field} miss"), json!({field: miss}), false),
    ]
}

/// Every way to ask: the words, the members of the rule, whether it matches.
fn questions() -> Vec<(String, Value, bool)> {
    let targets = asks("targetReplicatedJobs", json!(["workers"]), json!(["driver"]));
    let reasons = asks(
        "onJobFailureReasons",
        json!(["DeadlineExceeded", REASON]),
        json!(["BackoffLimitExceeded"]),
    );
    let patterns = asks(
        "onJobFailureMessagePatterns",
        json!(["nothing like it", "exit code 1[34]3$"]),
        json!(["^exit code"]),
    );
    let mut all = Vec::new();
    for target in &targets {
        for reason in &reasons {
            for pattern in &patterns {
                let asked = [target, reason, pattern];
                let name = asked.map(|one| one.0.as_str()).join(", ");
                let mut members = json!({});
                for (_, part, _) in asked {
                    members.as_object_mut().unwrap().extend(part.as_object().unwrap().clone());
                }
                all.push((name, members, asked.iter().all(|one| one.2)));
            }
        }
    }
    all
}

fn rule(name: &str, action: &str, more: &Value) -> Value {
    let mut rule = json!({"name": name, "action": action});
    rule.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    rule
}

/// A set with these rules, its limits used up so far, whose Jobs are all ready.
fn world(rules: &Value, limit: Limit) -> World {
    let most = match limit {
        Limit::Left => 2,
        Limit::SpentOnSet | Limit::SpentOnJob => 1,
        Limit::Zero => 0,
        Limit::RuleSpent => 9,
    };
    let (restarts, counted, single, rules_used) = match limit {
        Limit::Left | Limit::SpentOnSet => (3, 1, json!([]), json!({})),
        Limit::SpentOnJob => (0, 0, json!([0, 1]), json!({})),
        Limit::Zero => (0, 0, json!([]), json!({})),
        Limit::RuleSpent => (3, 1, json!([]), json!({"r": 1})),
    };
    let notes = json!({"lockstep.dev/max-restarts.r": "1"});
    let notes = if matches!(limit, Limit::RuleSpent) { notes } else { json!({}) };
    let spec = json!({
        "replicatedJobs": [group("driver", 1, json!({})), group("workers", 2, json!({}))],
        "failurePolicy": {"maxRestarts": most, "rules": rules},
    });
    let mut world = World::with(Options::default(), notes, spec);
    world.edit(|jobset| {
        let status = json!({
            "restarts": restarts, "restartsCountTowardsMax": counted,
            "replicatedJobsStatus": [{"name": "workers", "ready": 0, "succeeded": 0, "failed": 0,
                "active": 0, "suspended": 0, "jobRestarts": single,
                "jobRestartsCountTowardsMax": single}],
            "lockstep": {"ruleRestarts": rules_used},
        });
        jobset.status = serde_json::from_value(status).unwrap();
    });
    world.settle();
    world.ready(&["js-driver-0", "js-workers-0", "js-workers-1"]);
    world.settle();
    world.tick(5);
    world
}

/// Restarts, those that count, and the same of the workers' Jobs.
type Counters = (i32, i32, Vec<i32>, Vec<i32>);

fn counters(world: &World) -> Counters {
    let status = world.status();
    let mut entries = status.replicated_jobs_status.into_iter();
    let workers = entries.find(|entry| entry.name == "workers").unwrap();
    let (single, counted) = (workers.job_restarts, workers.job_restarts_count_towards_max);
    (status.restarts, status.restarts_count_towards_max, single, counted)
}

/// These counters after a restart of the workers' Jobs with these indexes.
fn bumped(before: &Counters, indexes: &[usize], counts: bool) -> Counters {
    let mut after = before.clone();
    after.2.resize(2, 0);
    indexes.iter().for_each(|index| after.2[*index] += 1);
    if counts {
        after.3.resize(2, 0);
        after.3[0] += 1;
    }
    after
}

/// Goes on until nothing is left to do, and checks that `js-workers-0` was what failed, and that
/// this is where it led to.
fn ends(mut world: World, cell: &str, action: &str, want: End) {
    let before = counters(&world);
    world.asked();
    world.events();
    world.settle();
    let all = ["js-driver-0", "js-workers-0", "js-workers-1"];
    let first = "(first failed job: js-workers-0)";
    let applying = format!("applying {action} failure policy action {first}");
    let spent = "jobset failed due to reaching max number of restarts";
    let action_event = || vec![format!("!{action}FailurePolicyAction {applying}")];
    let failed = |reason: &str, message: &str| {
        let conditions = vec![format!("Failed=True {reason}: {message}")];
        // What has ended stays to be looked at.
        let deleted = vec!["js-driver-0", "js-workers-1"];
        (conditions, vec![format!("!{reason} {message}")], deleted, before.clone())
    };
    let restarted = |reason: &str, counts: bool| {
        let conditions = vec![format!("RestartingJobSet=True {reason}: {applying}")];
        let mut events = vec![format!("!{reason} {applying}")];
        events.extend(action_event());
        let mut after = before.clone();
        after.0 += 1;
        after.1 += i32::from(counts);
        (conditions, events, all.to_vec(), after)
    };
    let (conditions, events, deleted, after) = match want {
        FailNow => failed("FailJobSetFailurePolicyAction", &applying),
        Spent => failed("ReachedMaxRestarts", &format!("{spent} {first}")),
        RuleSpent => {
            failed("ReachedMaxRestarts", &format!("{spent} of failure policy rule r {first}"))
        }
        All(counts) => restarted("FailurePolicy_r", counts),
        Default => restarted("DefaultFailurePolicy", true),
        One(counts) => (vec![], action_event(), all[1..2].to_vec(), bumped(&before, &[0], counts)),
        Group => (vec![], action_event(), all[1..].to_vec(), bumped(&before, &[0, 1], true)),
        Left => (vec![], action_event(), vec![], before.clone()),
    };
    assert_eq!(world.conditions(), conditions, "{cell}: conditions");
    assert_eq!(world.events(), events, "{cell}: events");
    assert_eq!(counters(&world), after, "{cell}: counters");
    let is_over = matches!(want, FailNow | Spent | RuleSpent);
    let state = if is_over { "Failed" } else { "" };
    assert_eq!(world.status().terminal_state, state, "{cell}: terminal state");
    let asked = |world: &mut World, what: &str| -> Vec<String> {
        let asked = world.asked().into_iter();
        asked.filter_map(|one| one.strip_prefix(what).map(str::to_owned)).collect()
    };
    assert_eq!(asked(&mut world, "delete "), deleted, "{cell}: deleted");
    world.collect();
    world.settle();
    let created = if is_over { vec![] } else { deleted };
    assert_eq!(asked(&mut world, "create "), created, "{cell}: created again");
    assert_eq!(world.events(), Vec::<String>::new(), "{cell}: one action for one failure");
}

// rule: jobset 3.8, jobset 3.12, jobset Q10, jobset Q11
#[test]
fn every_cell_of_actions_matches_and_limits_ends_as_it_should() {
    for (action, matching) in ACTIONS {
        for (asked, members, is_match) in questions() {
            for (column, limit) in LIMITS.into_iter().enumerate() {
                let cell = format!("{action}, {asked}, {limit:?}");
                let mut world = world(&json!([rule("r", action, &members)]), limit);
                world.fail("js-workers-0", REASON, MESSAGE);
                match is_match {
                    true => ends(world, &cell, action, matching[column]),
                    false => ends(world, &cell, "RestartJobSet", NO_RULE[column]),
                }
            }
        }
    }
}

// rule: jobset 3.8
#[test]
fn of_two_rules_the_first_that_matches_acts_whatever_the_other_says() {
    let (workers, driver) =
        (json!({"targetReplicatedJobs": ["workers"]}), json!({"targetReplicatedJobs": ["driver"]}));
    for (action, matching) in ACTIONS {
        for (other, _) in ACTIONS {
            let hit = rule("r", action, &workers);
            let orders = [
                ("before", json!([hit, rule("late", other, &json!({}))])),
                ("after", json!([rule("early", other, &driver), hit])),
            ];
            for (order, rules) in orders {
                let mut world = world(&rules, Limit::Left);
                world.fail("js-workers-0", REASON, MESSAGE);
                ends(world, &format!("{action} {order} {other}"), action, matching[0]);
            }
        }
    }
}

// rule: jobset 1.4, jobset 3.8
#[test]
fn every_reason_that_a_job_can_fail_for_can_be_asked_for() {
    let reasons = [
        "BackoffLimitExceeded",
        "DeadlineExceeded",
        "FailedIndexes",
        "MaxFailedIndexesExceeded",
        "PodFailurePolicy",
    ];
    for asked in reasons {
        for given in reasons {
            let more = json!({"onJobFailureReasons": [asked]});
            let mut world = world(&json!([rule("r", "FailJobSet", &more)]), Limit::Left);
            world.fail("js-workers-0", given, "");
            let want = if asked == given { FailNow } else { Default };
            let action = if asked == given { "FailJobSet" } else { "RestartJobSet" };
            ends(world, &format!("{asked} asked for, {given} given"), action, want);
        }
    }
}

// rule: jobset 3.8
#[test]
fn a_rule_acts_for_the_job_of_its_own_that_failed_first() {
    let workers = json!({"targetReplicatedJobs": ["workers"]});
    for (action, matching) in ACTIONS {
        if matching[0] == Left {
            continue;
        }
        // The driver failed before, but a rule for the driver comes later.
        let rules = json!([rule("r", action, &workers), rule("late", "FailJobSet", &json!({}))]);
        let mut world = world(&rules, Limit::Left);
        for job in ["js-driver-0", "js-workers-0", "js-workers-1"] {
            world.fail(job, REASON, MESSAGE);
            world.tick(1);
        }
        let plan = world.plan();
        plan.steps.into_iter().for_each(|step| world.carry_out(step));
        let told = world.events();
        let first = "(first failed job: js-workers-0)";
        assert!(!told.is_empty() && told.iter().all(|one| one.ends_with(first)), "{told:?}");
    }
}

// rule: jobset 3.8
#[test]
fn jobs_that_fail_together_are_restarted_one_after_the_other_and_each_counts() {
    let mut world = world(&json!([rule("r", "RestartJob", &json!({}))]), Limit::Left);
    world.fail("js-workers-1", REASON, MESSAGE);
    world.fail("js-workers-0", REASON, MESSAGE);
    world.asked();
    world.settle();
    // One of two restarts was left: the second Job ends the set.
    let (restarts, _, single, counted) = counters(&world);
    assert_eq!((restarts, single, counted), (3, vec![1, 0], vec![1, 0]));
    let message = "jobset failed due to reaching max number of restarts (first failed job: \
                   js-workers-1)";
    assert_eq!(world.conditions(), [format!("Failed=True ReachedMaxRestarts: {message}")]);
}

// rule: jobset 3.8
#[test]
fn a_job_that_is_left_failed_does_not_hide_one_that_is_not() {
    let rules = json!([
        rule("leave", "FailJob", &json!({"targetReplicatedJobs": ["driver"]})),
        rule("r", "RestartJob", &json!({})),
    ]);
    let mut world = world(&rules, Limit::Left);
    world.fail("js-driver-0", REASON, MESSAGE);
    world.settle();
    world.tick(1);
    world.fail("js-workers-0", REASON, MESSAGE);
    ends(world, "FailJob, then RestartJob", "RestartJob", One(true));
}

// rule: jobset 3.8
#[test]
fn a_policy_without_rules_or_limit_fails_the_set_with_its_first_job() {
    let mut world = pair(json!({"failurePolicy": {}}));
    world.settle();
    world.fail("js-workers-0", REASON, MESSAGE);
    ends(world, "an empty policy", "RestartJobSet", Spent);
}

/// A limit of nought is a limit.
#[test]
fn a_rule_that_may_never_restart_fails_the_set_at_once() {
    for (action, matching) in ACTIONS {
        let spec = json!({
            "replicatedJobs": [group("driver", 1, json!({})), group("workers", 2, json!({}))],
            "failurePolicy": {"maxRestarts": 9, "rules": [rule("r", action, &json!({}))]},
        });
        let notes = json!({"lockstep.dev/max-restarts.r": "0"});
        let mut world = World::with(Options::default(), notes, spec);
        world.settle();
        world.fail("js-workers-0", REASON, MESSAGE);
        ends(world, action, action, matching[4]);
    }
}
