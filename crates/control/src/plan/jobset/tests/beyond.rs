use jiff::SignedDuration;
use serde_json::{Value, json};

use super::{counts, group, pair};
use crate::plan::jobset::{Options, Waiting, world::World};

/// A set whose workers may be restarted for ever and whose parameter server twice.
fn limited() -> World {
    let rule = |name: &str, target: &str| {
        json!({"name": name, "action": "RestartJobSetAndIgnoreMaxRestarts",
               "targetReplicatedJobs": [target]})
    };
    let jobs = [group("ps", 1, json!({})), group("workers", 1, json!({}))];
    let spec = json!({
        "replicatedJobs": jobs,
        "failurePolicy": {"rules": [rule("server", "ps"), rule("worker", "workers")]},
    });
    World::with(Options::default(), json!({"lockstep.dev/max-restarts.server": "2"}), spec)
}

fn fail_and_restart(world: &mut World, job: &str) {
    world.settle();
    world.tick(1);
    world.fail(job, "BackoffLimitExceeded", "why");
    world.settle();
    world.collect();
    world.settle();
}

#[test]
fn a_rule_restarts_no_more_often_than_the_set_allows() {
    let mut world = limited();
    for _ in 0..4 {
        fail_and_restart(&mut world, "js-workers-0");
    }
    for _ in 0..2 {
        fail_and_restart(&mut world, "js-ps-0");
    }
    let status = world.status();
    assert_eq!((status.restarts, status.terminal_state.as_str()), (6, ""));
    let kept = status.lockstep.unwrap();
    assert_eq!(json!(kept.rule_restarts), json!({"server": 2, "worker": 4}));
    fail_and_restart(&mut world, "js-ps-0");
    let last = world.conditions().pop().unwrap();
    assert_eq!(
        last,
        "Failed=True ReachedMaxRestarts: jobset failed due to reaching max number of restarts of \
         failure policy rule server (first failed job: js-ps-0)"
    );
    assert_eq!(world.status().restarts, 6, "what is refused does not count");
}

#[test]
fn the_last_restarts_are_remembered_with_their_causes() {
    let mut world = limited();
    for _ in 0..20 {
        fail_and_restart(&mut world, "js-workers-0");
    }
    let kept = world.status().lockstep.unwrap();
    let attempts: Vec<i32> = kept.last_restarts.iter().map(|one| one.attempt).collect();
    assert_eq!(attempts, (4..20).collect::<Vec<_>>());
    let last = json!(kept.last_restarts.last());
    let wanted = json!({"attempt": 19, "rule": "worker", "job": "js-workers-0",
        "action": "RestartJobSetAndIgnoreMaxRestarts", "reason": "BackoffLimitExceeded",
        "message": "why", "time": last["time"]});
    assert_eq!(last, wanted);
}

/// A set whose workers go away ten seconds after they have ended.
fn fleeting(policy: Value) -> World {
    let mut workers = group("workers", 2, json!({}));
    workers["template"]["spec"]["ttlSecondsAfterFinished"] = 10.into();
    let jobs = [group("driver", 1, json!({})), workers];
    World::new(json!({"replicatedJobs": jobs, "failurePolicy": policy}))
}

#[test]
fn a_finished_job_that_its_own_time_to_live_has_taken_away_counts_and_is_not_run_again() {
    let mut world = fleeting(json!({"maxRestarts": 1}));
    world.settle();
    world.complete("js-workers-0");
    world.settle();
    world.tick(10);
    world.jobs.remove("js-workers-0");
    world.asked();
    world.settle();
    assert_eq!(world.asked(), Vec::<String>::new());
    assert_eq!(counts(&world), ["workers: 0/1/0/0/0", "driver: 0/0/0/0/0"]);
    assert_eq!(world.waiting, Some(Waiting::Running));

    // The next attempt runs all of it.
    world.fail("js-driver-0", "BackoffLimitExceeded", "");
    world.settle();
    world.collect();
    world.settle();
    assert_eq!(world.jobs.len(), 3);
    assert_eq!(counts(&world), ["workers: 0/0/0/0/0", "driver: 0/0/0/0/0"]);
    for name in ["js-workers-0", "js-workers-1", "js-driver-0"] {
        world.complete(name);
        world.settle();
        world.jobs.remove(name).filter(|_| name != "js-driver-0");
    }
    assert_eq!(world.status().terminal_state, "Completed");
}

#[test]
fn a_failed_job_that_was_left_so_counts_when_it_is_gone() {
    let rule = json!({"name": "leave", "action": "FailJob", "targetReplicatedJobs": ["workers"]});
    let mut world = fleeting(json!({"maxRestarts": 1, "rules": [rule]}));
    world.settle();
    world.fail("js-workers-1", "BackoffLimitExceeded", "");
    world.settle();
    world.tick(10);
    world.jobs.remove("js-workers-1");
    world.asked();
    world.settle();
    assert_eq!(world.asked(), Vec::<String>::new());
    assert_eq!(counts(&world), ["workers: 0/0/1/0/0", "driver: 0/0/0/0/0"]);
}

#[test]
fn a_set_that_has_ended_counts_its_jobs_as_they_ended() {
    for (name, want) in [("js-workers-1", "workers: 0/0/1/0/0"), ("", "workers: 0/1/0/0/0")] {
        let mut world = fleeting(json!({"maxRestarts": 0}));
        world.settle();
        world.complete("js-workers-0");
        world.settle();
        if !name.is_empty() {
            // Somebody takes away what was complete; what had failed goes by itself.
            world.fail(name, "BackoffLimitExceeded", "");
            world.settle();
            let mut view = world.view();
            let uid = world.jobs["js-workers-0"].metadata.uid.clone().unwrap();
            assert!(view.job_gone("js-workers-0", &uid, world.now));
            let plan = crate::plan::jobset::plan(&view, &world.options, world.now);
            plan.steps.into_iter().for_each(|step| world.carry_out(step));
        }
        world.tick(10);
        world.jobs.retain(|name, _| !name.starts_with("js-workers"));
        world.settle();
        assert_eq!(counts(&world)[0], want);
    }
}

#[test]
fn a_finished_job_that_somebody_deletes_before_its_time_is_run_again() {
    let mut world = fleeting(json!({"maxRestarts": 1}));
    world.settle();
    world.complete("js-workers-0");
    world.settle();
    let mut view = world.view();
    let uid = world.jobs["js-workers-0"].metadata.uid.clone().unwrap();
    let early = world.now.checked_add(SignedDuration::from_secs(9)).unwrap();
    assert!(view.job_gone("js-workers-0", &uid, early));
    let plan = crate::plan::jobset::plan(&view, &world.options, early);
    world.jobs.remove("js-workers-0");
    plan.steps.into_iter().for_each(|step| world.carry_out(step));
    assert!(world.asked().contains(&"create js-workers-0".to_owned()));
    world.settle();
    assert_eq!(counts(&world), ["workers: 0/0/0/0/0", "driver: 0/0/0/0/0"]);
}

#[test]
fn a_pattern_that_is_no_expression_is_told_of_when_the_set_begins() {
    let rule = json!({"name": "r", "action": "FailJobSet",
                      "onJobFailureMessagePatterns": ["fine.*", "(never"]});
    let mut world = pair(json!({"failurePolicy": {"rules": [rule]}}));
    world.settle();
    let told = world.events();
    assert_eq!(
        told,
        ["!InvalidMessagePattern failure policy rule r: the message pattern \"(never\" matches \
          nothing, because it is no regular expression: missing closing ): `(never`"]
    );
    world.ready(&["js-driver-0"]);
    world.settle();
    assert_eq!(world.events(), Vec::<String>::new());
}

#[test]
fn each_job_that_is_left_failed_is_told_once() {
    let rules = json!([{"name": "leave", "action": "FailJob"}]);
    let mut world = pair(json!({"failurePolicy": {"rules": rules}}));
    world.settle();
    world.events();
    let told = |name: &str| {
        let action = "applying FailJob failure policy action";
        vec![format!("!FailJobFailurePolicyAction {action} (first failed job: {name})")]
    };
    for name in ["js-workers-1", "js-workers-0"] {
        world.tick(1);
        world.fail(name, "BackoffLimitExceeded", "why");
        world.settle();
        assert_eq!(world.events(), told(name));
        world.tick(1);
        world.settle();
        assert_eq!(world.events(), Vec::<String>::new());
    }
}

#[test]
fn of_more_jobs_than_the_status_can_keep_restarts_of_none_is_restarted_alone() {
    let rules = json!([{"name": "all", "action": "RestartReplicatedJob"}]);
    let jobs = [group("workers", 2, json!({}))];
    let spec = json!({"replicatedJobs": jobs,
        "failurePolicy": {"maxRestarts": 3, "rules": rules}});
    let mut world = World::new(spec);
    // Nobody has checked it.
    world.edit(|jobset| jobset.spec.replicated_jobs[0].replicas = 1025);
    world.settle();
    world.fail("js-workers-7", "BackoffLimitExceeded", "why");
    let plan = world.plan();
    let Some(Waiting::Invalid(why)) = plan.waiting else { panic!("{:?}", plan.steps.len()) };
    assert_eq!(
        why,
        "RestartReplicatedJob failure policy action cannot be used with replicated job workers: \
         it has 1025 Jobs, and restarts are kept of 1024"
    );
}
