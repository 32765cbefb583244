//! The driver, with an API that answers late, twice or not at all.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::batch::v1::Job;
use lockstep_api::jobset::JobSet;
use serde_json::json;

use super::{group, pair};
use crate::plan::jobset::{Ended, JobRef, JobSets, Options, Plan, Step, Waiting, world::World};
use crate::plan::{Key, Refusal, RefusalKind};

/// A driver that has heard of the set of a world and of nothing else.
pub(super) fn driver(world: &World) -> JobSets {
    let mut sets = JobSets::new(Options::default());
    sets.jobset_seen(&world.jobset, world.now);
    sets.jobs_listing();
    sets.jobs_listed(world.now);
    sets.services_listing();
    sets.services_listed(world.now);
    assert_eq!(sets.next_due(), None, "not all has been listed");
    sets.jobsets_listed();
    sets
}

pub(super) fn key() -> Key {
    Key { namespace: "ns".to_owned(), name: "js".to_owned() }
}

pub(super) fn next(sets: &mut JobSets, now: Timestamp) -> Plan {
    let (found, plan) = sets.next(now).expect("a pass is due");
    assert_eq!(found, key());
    plan
}

pub(super) fn refusal(kind: RefusalKind) -> Refusal {
    Refusal { kind, message: "no".to_owned() }
}

pub(super) fn jobs_of(plan: &Plan) -> Vec<String> {
    let mut names = Vec::new();
    for step in &plan.steps {
        if let Step::CreateJobs(jobs) = step {
            names.extend(jobs.iter().filter_map(|job| job.metadata.name.clone()));
        }
    }
    names
}

/// Carries out a plan in the world and tells the driver the answers.
pub(super) fn carry_out(sets: &mut JobSets, world: &mut World, plan: Plan) {
    for step in plan.steps {
        let is_status = matches!(step, Step::WriteStatus(_));
        let is_service = matches!(step, Step::CreateService(_));
        world.carry_out(step);
        if is_status {
            sets.status_written(&key(), &world.jobset);
        }
        if is_service {
            sets.service_created(&key(), world.service.as_ref().unwrap());
        }
        for job in world.jobs.values() {
            sets.job_written(&key(), job.clone(), world.now);
        }
    }
    sets.done(&key(), world.now);
}

/// A driver and a world in which all Jobs were made, and the watch has told nothing so far.
pub(super) fn started() -> (JobSets, World) {
    let mut world = pair(json!({"failurePolicy": {"maxRestarts": 1}}));
    let mut sets = driver(&world);
    let plan = next(&mut sets, world.now);
    carry_out(&mut sets, &mut world, plan);
    let rest = next(&mut sets, world.now);
    assert_eq!((rest.steps.len(), rest.waiting), (0, Some(Waiting::Running)));
    assert_eq!(sets.done(&key(), world.now), Some(Ended::Success));
    assert!(sets.next(world.now).is_none());
    (sets, world)
}

#[test]
fn answers_are_known_before_the_watch_tells() {
    let (mut sets, mut world) = started();
    // What the watch tells then is no news.
    for job in world.jobs.values() {
        sets.job_seen(&Arc::new(job.clone()), world.now);
    }
    sets.jobset_seen(&world.jobset, world.now);
    assert!(sets.next(world.now).is_none());
    world.ready(&["js-driver-0"]);
    sets.job_seen(&Arc::new(world.jobs["js-driver-0"].clone()), world.now);
    let plan = next(&mut sets, world.now);
    assert!(matches!(plan.steps[..], [Step::WriteStatus(_)]));
}

#[test]
fn jobs_of_a_set_may_be_told_before_the_set() {
    let mut world = pair(json!({}));
    world.settle();
    let mut sets = JobSets::new(Options::default());
    for job in world.jobs.values() {
        sets.job_seen(&Arc::new(job.clone()), world.now);
    }
    sets.service_seen(&world.service.as_ref().unwrap().metadata);
    sets.jobs_listed(world.now);
    sets.services_listed(world.now);
    sets.jobset_seen(&world.jobset, world.now);
    sets.jobsets_listed();
    let plan = next(&mut sets, world.now);
    assert_eq!((plan.steps.len(), plan.waiting), (0, Some(Waiting::Running)));
}

// rule: jobset Q18
#[test]
fn a_job_that_is_there_already_is_taken_if_it_is_ours_and_told_of_if_not() {
    for (uid, is_failure) in [("set", false), ("another", true)] {
        let mut world = pair(json!({}));
        let mut sets = driver(&world);
        let _ = next(&mut sets, world.now);
        world.settle();
        let mut found: Job = world.jobs["js-driver-0"].clone();
        found.metadata.owner_references.as_mut().unwrap()[0].uid = uid.to_owned();
        let refused = refusal(RefusalKind::AlreadyExists);
        let told = sets.job_not_created(&key(), &refused, Some(found), world.now);
        assert_eq!(told, is_failure, "{uid}");
        let ended = sets.done(&key(), world.now);
        assert_eq!(ended == Some(Ended::Error), is_failure, "{uid}");
        let later = world.now.checked_add(SignedDuration::from_secs(100)).unwrap();
        let plan = next(&mut sets, later);
        assert_eq!(jobs_of(&plan).contains(&"js-driver-0".to_owned()), is_failure, "{uid}");
    }
}

#[test]
fn a_pass_that_fails_is_tried_again_later_and_later() {
    let world = pair(json!({}));
    let mut sets = driver(&world);
    let mut now = world.now;
    let mut delays = Vec::new();
    for _ in 0..4 {
        let _ = next(&mut sets, now);
        sets.job_not_created(&key(), &refusal(RefusalKind::Refused), None, now);
        assert_eq!(sets.done(&key(), now), Some(Ended::Error));
        let due = sets.next_due().unwrap();
        delays.push(due.duration_since(now).as_millis());
        now = due;
    }
    assert_eq!(delays, [200, 400, 800, 1600]);
}

// rule: jobset 3.8, jobset Q17
#[test]
fn a_restart_is_decided_once_however_old_the_view() {
    let (mut sets, mut world) = started();
    world.tick(1);
    world.fail("js-workers-0", "BackoffLimitExceeded", "");
    sets.job_seen(&Arc::new(world.jobs["js-workers-0"].clone()), world.now);
    let plan = next(&mut sets, world.now);
    assert!(matches!(plan.steps[0], Step::WriteStatus(_)));
    // Somebody else has changed the set meanwhile.
    world.edit(|jobset| jobset.metadata.labels = Some([("a".to_owned(), "b".to_owned())].into()));
    sets.failed(&key(), &refusal(RefusalKind::Conflict), world.now);
    sets.done(&key(), world.now);
    world.tick(1);
    if let Some((_, plan)) = sets.next(world.now) {
        assert!(matches!(plan.steps[0], Step::WriteStatus(_)), "the news may never come");
        sets.failed(&key(), &refusal(RefusalKind::Conflict), world.now);
        sets.done(&key(), world.now);
    }
    sets.jobset_seen(&world.jobset, world.now);
    let plan = next(&mut sets, world.now);
    carry_out(&mut sets, &mut world, plan);
    assert_eq!(world.status().restarts, 1);
}

#[test]
fn a_job_that_only_an_answer_told_of_is_gone_when_a_listing_does_not_show_it() {
    let (mut sets, mut world) = started();
    sets.jobs_listing();
    for (name, job) in &world.jobs {
        if name != "js-driver-0" {
            sets.job_seen(&Arc::new(job.clone()), world.now);
        }
    }
    sets.jobs_listed(world.now);
    world.jobs.remove("js-driver-0");
    let plan = next(&mut sets, world.now);
    assert_eq!(jobs_of(&plan), ["js-driver-0"]);
}

#[test]
fn a_late_answer_about_a_job_that_is_gone_is_no_news() {
    let (mut sets, mut world) = started();
    world.tick(1);
    world.fail("js-workers-0", "BackoffLimitExceeded", "");
    sets.job_seen(&Arc::new(world.jobs["js-workers-0"].clone()), world.now);
    let plan = next(&mut sets, world.now);
    carry_out(&mut sets, &mut world, plan);
    let plan = next(&mut sets, world.now);
    let Some(Step::DeleteJobs(jobs)) = plan.steps.first() else { panic!("{plan:?}") };
    let JobRef { name, uid, .. } = jobs[0].clone();
    let answer = world.jobs[&name].clone();
    sets.job_gone(&Key { namespace: "ns".to_owned(), name: name.clone() }, &uid, world.now);
    sets.job_written(&key(), answer, world.now);
    sets.done(&key(), world.now);
    let plan = next(&mut sets, world.now);
    assert_eq!(jobs_of(&plan), [name]);
}

// rule: jobset 3.1
#[test]
fn a_service_that_is_gone_is_made_again() {
    let (mut sets, world) = started();
    let service = Key { namespace: "ns".to_owned(), name: "js".to_owned() };
    let uid = world.service.as_ref().unwrap().metadata.uid.clone().unwrap_or_default();
    sets.service_gone(&service, "another", world.now);
    assert!(sets.next(world.now).is_none());
    sets.service_gone(&service, &uid, world.now);
    let plan = next(&mut sets, world.now);
    assert!(matches!(plan.steps[..], [Step::CreateService(_)]));
}

#[test]
fn a_set_of_the_same_name_is_another_one() {
    let (mut sets, world) = started();
    let mut other: JobSet = world.jobset.clone();
    other.metadata.uid = Some("second".to_owned());
    other.metadata.resource_version = Some("1000".to_owned());
    other.status = None;
    sets.jobset_seen(&other, world.now);
    let plan = next(&mut sets, world.now);
    assert_eq!(jobs_of(&plan).len(), 3, "Jobs of the first are not its own");
    sets.jobset_gone(&key(), "set");
    assert!(sets.view(&key()).is_some());
    sets.jobset_gone(&key(), "second");
    assert!(sets.view(&key()).is_none());
}

#[test]
fn a_field_that_the_api_drops_is_told_of_once_and_not_written_for_ever() {
    let mut workers = group("workers", 2, json!({}));
    workers["template"]["spec"]["ttlSecondsAfterFinished"] = 10.into();
    let mut world = World::new(json!({"replicatedJobs": [workers],
        "failurePolicy": {"maxRestarts": 1}}));
    let mut sets = driver(&world);
    let plan = next(&mut sets, world.now);
    carry_out(&mut sets, &mut world, plan);
    let _ = next(&mut sets, world.now);
    sets.done(&key(), world.now);

    world.complete("js-workers-0");
    sets.job_seen(&Arc::new(world.jobs["js-workers-0"].clone()), world.now);
    let plan = next(&mut sets, world.now);
    plan.steps.into_iter().for_each(|step| world.carry_out(step));
    let kept = world.jobset.status.as_mut().unwrap().lockstep.take();
    assert_eq!(kept.unwrap().ended_jobs[0].succeeded, "0");
    let event = sets.status_written(&key(), &world.jobset).unwrap();
    assert_eq!(event.reason, "StatusFieldDropped");
    assert_eq!(sets.status_written(&key(), &world.jobset), None);
    sets.done(&key(), world.now);

    // The Job is still one to be noted.
    let plan = next(&mut sets, world.now);
    assert_eq!((plan.steps, plan.waiting), (vec![], Some(Waiting::Running)));
    sets.done(&key(), world.now);
    assert!(sets.next(world.now).is_none());

    // What JobSet has a field for is written all the same.
    world.fail("js-workers-1", "BackoffLimitExceeded", "");
    sets.job_seen(&Arc::new(world.jobs["js-workers-1"].clone()), world.now);
    let plan = next(&mut sets, world.now);
    let Some(Step::WriteStatus(write)) = plan.steps.first() else { panic!("{plan:?}") };
    assert_eq!((write.status.restarts, &write.status.lockstep), (1, &None));
}

// rule: jobset 3.10
#[test]
fn refused_claims_are_told_of_together() {
    let policy = |names: &[&str]| {
        let spec = json!({"accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}}});
        let template = |name: &&str| json!({"metadata": {"name": name}, "spec": spec});
        json!({"templates": names.iter().map(template).collect::<Vec<_>>()})
    };
    let policies = json!([policy(&["a", "b"]), policy(&["c"])]);
    let mut mounting = group("g", 1, json!({}));
    let mounts = ["a", "b", "c"].map(|name| json!({"name": name, "mountPath": format!("/{name}")}));
    mounting["template"]["spec"]["template"]["spec"]["containers"][0]["volumeMounts"] =
        json!(mounts);
    let world = World::new(json!({"replicatedJobs": [mounting], "volumeClaimPolicies": policies}));
    let mut sets = driver(&world);
    let sizes = |plan: &Plan| {
        let mut sizes = Vec::new();
        for step in &plan.steps {
            if let Step::CreateClaims(claims) = step {
                sizes.extend(claims.iter().map(Vec::len));
            }
        }
        sizes
    };
    let plan = next(&mut sets, world.now);
    assert_eq!(sizes(&plan), [2, 1], "those of a policy are together");
    sets.claim_created(&key(), "a-js");
    let refusal = |kind, why: &str| Refusal { kind, message: why.to_owned() };
    let refusals = [
        refusal(RefusalKind::Other, "no b"),
        refusal(RefusalKind::NamespaceTerminating, "is going"),
        refusal(RefusalKind::Refused, "no c"),
    ];
    let told = sets.claims_not_created(&key(), &refusals).unwrap();
    assert_eq!((told.reason.as_str(), told.message.as_str()), ("PVCCreationFailed", "no b\nno c"));
    assert_eq!(sets.claims_not_created(&key(), &refusals[1..2]), None);
    assert_eq!(sets.done(&key(), world.now), Some(Ended::Error));
    let later = world.now.checked_add(SignedDuration::from_secs(60)).unwrap();
    assert_eq!(sizes(&next(&mut sets, later)), [1, 1], "what is there is not asked for again");
}

#[test]
fn waiting_for_news_is_no_success() {
    let (mut sets, mut world) = started();
    let base = sets.options().api_backoff_base;
    let delay = |sets: &JobSets, now: Timestamp| {
        let due = sets.next_due().expect("it is tried again");
        due.duration_since(now).unsigned_abs()
    };
    let news = |sets: &mut JobSets, world: &mut World| {
        world.ready(&["js-driver-0"]);
        sets.job_seen(&Arc::new(world.jobs["js-driver-0"].clone()), world.now);
        next(sets, world.now)
    };
    let _ = news(&mut sets, &mut world);
    sets.failed(&key(), &refusal(RefusalKind::Other), world.now);
    sets.done(&key(), world.now);
    assert_eq!(delay(&sets, world.now), base);
    let _ = news(&mut sets, &mut world);
    sets.failed(&key(), &refusal(RefusalKind::Conflict), world.now);
    sets.done(&key(), world.now);
    let plan = news(&mut sets, &mut world);
    assert_eq!(plan.waiting, Some(Waiting::CatchingUp));
    sets.done(&key(), world.now);
    world.tick(10);
    assert_ne!(next(&mut sets, world.now).waiting, Some(Waiting::CatchingUp));
    sets.failed(&key(), &refusal(RefusalKind::Other), world.now);
    sets.done(&key(), world.now);
    assert_eq!(delay(&sets, world.now), base * 2);
}
