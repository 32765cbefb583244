use std::sync::Arc;

use lockstep_api::{jobset::InPlaceRestart, labels::jobset as keys};
use serde_json::{Value, json};

use super::super::{AgentSource, Way, Wiring, terms};
use super::*;
use crate::plan::Key;
use crate::plan::jobset::{JobSets, Options, world::World};
use crate::plan::restart::{Record, Restarts};

fn options() -> Options {
    let way = Way::Orchestrator { address: "127.0.0.1:7411".to_owned(), ca: "PEM".to_owned() };
    let wiring = Wiring { way, agent: AgentSource::Path("/bin/lockstep".to_owned()) };
    Options { in_place: Some(wiring), ..Options::default() }
}

fn spec(more: &Value) -> Value {
    let mut spec = json!({"replicatedJobs": [{"name": "w", "replicas": 2, "template": {"spec": {
        "parallelism": 2, "completions": 2,
        "template": {"spec": {"restartPolicy": "Never", "containers": [
            {"name": "c", "image": "i", "command": ["train"]}]}},
    }}}]});
    for (key, value) in more.as_object().unwrap() {
        spec[key] = value.clone();
    }
    spec
}

fn asking(more: &Value) -> World {
    World::with(options(), json!({keys::IN_PLACE_TIMEOUT: "60s"}), spec(more))
}

/// A set whose workers run.
fn running(more: &Value) -> World {
    let mut world = asking(more);
    world.settle();
    world.gang = Some(gang(&world));
    world.settle();
    world.ready(&["js-w-0", "js-w-1"]);
    world.settle();
    world.asked();
    world.events();
    world
}

fn gang(world: &World) -> Gang {
    let record = Record { phase: Phase::Running, ..Record::new(1, &terms(&world.jobset)) };
    let (waiting, workers, restarts) = Default::default();
    Gang { record, waiting, workers, restarts, last_failure: None }
}

fn count(world: &World) -> Option<&str> {
    world.jobset.metadata.annotations.as_ref()?.get(keys::IN_PLACE_RESTARTS).map(String::as_str)
}

fn restart(epoch: i32) -> InPlaceRestart {
    InPlaceRestart {
        epoch,
        worker: "js-w-0-1".to_owned(),
        cause: "exited with code 1".to_owned(),
        decided_micros: 1500,
        running_micros: 700,
        ..InPlaceRestart::default()
    }
}

#[test]
fn a_set_that_asks_gets_its_counter_then_its_leader_then_its_jobs() {
    let mut world = asking(&json!({}));
    world.settle();
    assert_eq!(world.asked(), ["annotate 0"]);
    assert_eq!(world.waiting, Some(Waiting::RestartRecord));
    world.gang = Some(gang(&world));
    world.settle();
    let want = ["service", "ticket 1", "create js-w-0", "create js-w-1", "status"];
    assert_eq!(world.asked(), want);
    let job = serde_json::to_value(&world.jobs["js-w-1"]).unwrap();
    assert_eq!(job["spec"]["backoffLimit"], i32::MAX);
    let worker = &job["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(worker["command"], json!(["/bin/lockstep", "agent", "--", "train"]));
    let ticket =
        worker["env"].as_array().unwrap().iter().find(|it| it["name"] == "LOCKSTEP_TICKET");
    assert_eq!(ticket.unwrap()["valueFrom"]["secretKeyRef"]["key"], "ticket-1");
}

#[test]
fn sets_that_do_not_ask_or_that_nobody_could_lead_are_left_alone() {
    let mut plain = World::with(options(), json!({}), spec(&json!({})));
    plain.settle();
    let mut alone =
        World::with(Options::default(), json!({keys::IN_PLACE_TIMEOUT: "60s"}), spec(&json!({})));
    alone.settle();
    for world in [plain, alone] {
        assert_eq!(count(&world), None);
        let job = serde_json::to_value(&world.jobs["js-w-0"]).unwrap();
        let worker = &job["spec"]["template"]["spec"]["containers"][0];
        assert_eq!(worker["command"], json!(["train"]));
    }
}

#[test]
fn jobs_that_were_there_before_it_was_asked_for_go_on_without_agents() {
    let mut world = World::with(options(), json!({}), spec(&json!({})));
    world.settle();
    world.asked();
    world.edit(|jobset| {
        let asks = (keys::IN_PLACE_TIMEOUT.to_owned(), "60s".to_owned());
        jobset.metadata.annotations.get_or_insert_default().extend([asks]);
    });
    world.settle();
    assert_eq!(world.asked(), Vec::<String>::new());
}

#[test]
fn what_no_api_has_checked_is_refused_here() {
    let mut world = asking(&json!({}));
    world.edit(|jobset| {
        let job = jobset.spec.replicated_jobs[0].template.spec.as_mut().unwrap();
        job.template.spec.as_mut().unwrap().containers[0].command = None;
    });
    let refused = |world: &mut World| {
        world.settle();
        assert_eq!(world.asked(), Vec::<String>::new());
        let Some(Waiting::Invalid(why)) = &world.waiting else { panic!("{:?}", world.waiting) };
        assert!(why.contains("containers[0].command: Required value"), "{why}");
    };
    refused(&mut world);
    // Nor does a count help that it brings along.
    world.edit(|jobset| {
        let zero = (keys::IN_PLACE_RESTARTS.to_owned(), "0".to_owned());
        jobset.metadata.annotations.get_or_insert_default().extend([zero]);
    });
    refused(&mut world);
}

#[test]
fn each_restart_is_counted_then_told_and_nothing_else_changes() {
    let mut world = running(&json!({"failurePolicy": {"maxRestarts": 3}}));
    let gang = world.gang.as_mut().unwrap();
    gang.record.epoch = 1;
    gang.record.restarts = Restarts { total: 1, counted: 1 };
    gang.restarts.push(restart(1));
    world.settle();
    assert_eq!(world.asked(), ["annotate 1", "status"]);
    let want = "!InPlaceRestart restarted 4 workers in place in 2 ms, epoch 1: js-w-0-1 exited with \
                code 1";
    assert_eq!(world.events(), [want]);
    let told = world.status().lockstep.unwrap().in_place.unwrap();
    assert_eq!((told.epoch, told.restarts, told.phase.as_str()), (1, 1, "Running"));
    assert_eq!(told.last_restarts.len(), 1);
    assert_eq!(world.status().restarts, 0);
    // Told once, however often it is heard.
    world.gang.as_mut().unwrap().waiting = "1 workers are missing: 3".to_owned();
    world.settle();
    assert_eq!((world.events(), world.asked()), (vec![], vec!["status".to_owned()]));
    let waits = Waiting::Workers("1 workers are missing: 3".to_owned());
    assert_eq!(world.waiting, Some(waits));
    for epoch in 2..40 {
        world.gang.as_mut().unwrap().restarts.push(restart(epoch));
    }
    world.settle();
    let told = world.status().lockstep.unwrap().in_place.unwrap().last_restarts;
    assert_eq!((told.len(), told[0].epoch), (RESTARTS_MAX, 24));
}

#[test]
fn one_restart_too_many_is_counted_and_fails_the_set() {
    let mut world = running(&json!({"failurePolicy": {"maxRestarts": 1}}));
    let gang = world.gang.as_mut().unwrap();
    gang.record.phase = Phase::Failed(Reason::ReachedMaxRestarts);
    gang.record.restarts = Restarts { total: 2, counted: 2 };
    gang.last_failure =
        Some(("js-w-1".to_owned(), "js-w-1-0".to_owned(), "exited with code 3".to_owned()));
    world.settle();
    assert_eq!(count(&world), Some("2"));
    assert_eq!(world.asked(), ["annotate 2", "status", "delete js-w-0", "delete js-w-1"]);
    let want = "Failed=True ReachedMaxRestarts: jobset failed due to reaching max number of \
                restarts (first failed job: js-w-1)";
    assert!(world.conditions().contains(&want.to_owned()), "{:?}", world.conditions());
    // The end is the end: whatever is heard later changes no counter.
    world.gang.as_mut().unwrap().record.restarts.counted = 9;
    world.collect();
    world.settle();
    assert_eq!(count(&world), Some("2"));
}

#[test]
fn workers_that_get_nowhere_fail_the_set_with_why() {
    let mut world = running(&json!({"failurePolicy": {"maxRestarts": 100}}));
    let gang = world.gang.as_mut().unwrap();
    gang.record.phase = Phase::Failed(Reason::NoProgress);
    gang.record.stalled = 11;
    gang.last_failure =
        Some(("js-w-1".to_owned(), "js-w-1-0".to_owned(), "exited with code 3".to_owned()));
    world.settle();
    let want = "Failed=True NoProgress: jobset failed because its workers do not get anywhere: \
                they failed 11 times in a row soon after they were started: last js-w-1-0 exited \
                with code 3";
    assert!(world.conditions().contains(&want.to_owned()), "{:?}", world.conditions());
}

#[test]
fn without_a_failure_policy_the_first_failure_is_the_last() {
    let mut world = running(&json!({}));
    let gang = world.gang.as_mut().unwrap();
    gang.record.phase = Phase::Failed(Reason::ReachedMaxRestarts);
    gang.record.restarts = Restarts { total: 1, counted: 1 };
    world.settle();
    let want = "Failed=True FailedJobs: jobset failed due to one or more job failures";
    assert!(world.conditions().contains(&want.to_owned()), "{:?}", world.conditions());
}

#[test]
fn what_cannot_be_restarted_in_place_is_made_anew_and_counted_once() {
    let mut world = running(&json!({"failurePolicy": {"maxRestarts": 3}}));
    let gang = world.gang.as_mut().unwrap();
    gang.record.generation = 2;
    gang.record.phase = Phase::Recreating;
    gang.record.restarts = Restarts { total: 2, counted: 2 };
    world.settle();
    let want = ["annotate 2", "status", "delete js-w-0", "delete js-w-1"];
    assert_eq!(world.asked()[..4], want);
    assert_eq!((world.status().restarts, world.status().restarts_count_towards_max), (1, 0));
    let kept = world.status().lockstep.unwrap().last_restarts;
    assert_eq!((kept[0].action.as_str(), kept[0].attempt), ("Recreate", 0));
    world.collect();
    world.settle();
    assert!(world.asked().contains(&"ticket 2".to_owned()));
    assert_eq!(count(&world), Some("2"));
}

#[test]
fn the_set_and_its_gang_share_one_budget() {
    let mut world = running(&json!({"failurePolicy": {"maxRestarts": 2}}));
    let gang = world.gang.as_mut().unwrap();
    gang.record.restarts = Restarts { total: 1, counted: 1 };
    world.settle();
    world.fail("js-w-0", "PodFailurePolicy", "");
    world.settle();
    assert_eq!((world.status().restarts, count(&world)), (1, Some("2")), "both are counted");
    world.collect();
    world.settle();
    world.fail("js-w-0", "PodFailurePolicy", "");
    world.settle();
    let want = "Failed=True ReachedMaxRestarts: jobset failed due to reaching max number of \
                restarts (first failed job: js-w-0)";
    assert!(world.conditions().contains(&want.to_owned()), "{:?}", world.conditions());
}

#[test]
fn a_count_that_somebody_has_dropped_is_written_again() {
    let mut world = running(&json!({"failurePolicy": {"maxRestarts": 3}}));
    world.gang.as_mut().unwrap().record.restarts = Restarts { total: 2, counted: 2 };
    world.settle();
    world.asked();
    let drop_count = |world: &mut World| {
        world.edit(|jobset| {
            let annotations = jobset.metadata.annotations.as_mut().unwrap();
            annotations.remove(keys::IN_PLACE_RESTARTS).unwrap();
        });
    };
    drop_count(&mut world);
    // Whoever has just come asks the gang first.
    let gang = world.gang.take();
    world.settle();
    assert_eq!((world.asked(), &world.waiting), (vec![], &Some(Waiting::RestartRecord)));
    world.gang = gang;
    world.settle();
    assert_eq!(world.asked(), ["annotate 2"]);
    // The same where the API keeps nothing of it in the status: the Jobs have agents.
    world.edit(|jobset| jobset.status.as_mut().unwrap().lockstep = None);
    drop_count(&mut world);
    world.settle();
    assert_eq!(world.asked(), ["annotate 0", "annotate 2", "status"]);
}

#[test]
fn a_count_that_a_set_brings_along_is_that_of_another() {
    let annotations = json!({keys::IN_PLACE_TIMEOUT: "60s", keys::IN_PLACE_RESTARTS: "4"});
    let more = json!({"failurePolicy": {"maxRestarts": 3}});
    let mut world = World::with(options(), annotations, spec(&more));
    assert!(!in_place::has_begun(&world.jobset), "nobody leads it yet");
    world.settle();
    assert_eq!((world.asked(), count(&world)), (vec!["annotate 0".to_owned()], Some("0")));
    assert!(in_place::has_begun(&world.jobset));
    world.gang = Some(gang(&world));
    world.settle();
    assert!(world.jobs.contains_key("js-w-0"), "{:?}", world.asked());
}

#[test]
fn who_leads_again_asks_the_gang_before_anything_is_counted() {
    let mut world = running(&json!({"failurePolicy": {"maxRestarts": 3}}));
    let mut sets = JobSets::new(options());
    sets.jobset_seen(&world.jobset, world.now);
    for job in world.jobs.values() {
        sets.job_seen(&Arc::new(job.clone()), world.now);
    }
    sets.jobsets_listed();
    sets.jobs_listed(world.now);
    sets.services_listed(world.now);
    let key = Key::of(&world.jobset.metadata);
    let known = Arc::new(world.gang.clone().unwrap());
    sets.gang_seen(&key, "set", Arc::clone(&known), world.now);
    // Meanwhile somebody else leads, and counts a restart.
    world.edit(|jobset| {
        let one = (keys::IN_PLACE_RESTARTS.to_owned(), "1".to_owned());
        jobset.metadata.annotations.get_or_insert_default().extend([one]);
    });
    sets.jobset_seen(&world.jobset, world.now);
    sets.gangs_lost();
    let (_, plan) = sets.next(world.now).unwrap();
    assert_eq!((plan.steps, plan.waiting), (vec![], Some(Waiting::RestartRecord)));
    sets.done(&key, world.now);
    let mut fresh = Gang::clone(&known);
    fresh.record.restarts = Restarts { total: 1, counted: 1 };
    sets.gang_seen(&key, "set", Arc::new(fresh), world.now);
    let (_, plan) = sets.next(world.now).unwrap();
    assert!(!plan.steps.iter().any(|step| matches!(step, Step::Annotate(_))), "{plan:?}");
}
