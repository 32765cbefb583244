//! What is heard late, from elsewhere, or only from others.

use std::sync::Arc;

use k8s_openapi::api::batch::v1::Job;
use serde_json::json;

use super::driving::{carry_out, driver, jobs_of, key, next, refusal, started};
use super::group;
use crate::plan::jobset::{Ended, Step, Waiting, world::World};
use crate::plan::{Key, RefusalKind};

fn events(steps: &[Step]) -> Vec<&str> {
    let mut reasons = Vec::new();
    for step in steps {
        if let Step::Emit(event) = step {
            reasons.push(event.reason.as_str());
        }
    }
    reasons
}

// rule: jobset 3.1
#[test]
fn a_job_of_another_namespace_that_names_the_set_as_its_owner_is_not_its_job() {
    let (mut sets, mut world) = started();
    let mut foreign = world.jobs.values().next().unwrap().clone();
    world.complete(foreign.metadata.name.as_deref().unwrap());
    foreign.status.clone_from(&world.jobs[foreign.metadata.name.as_ref().unwrap()].status);
    foreign.metadata.namespace = Some("elsewhere".to_owned());
    foreign.metadata.uid = Some("foreign".to_owned());
    foreign.metadata.resource_version = Some("999".to_owned());
    let foreign = Arc::new(foreign);
    sets.job_seen(&foreign, world.now);
    assert!(sets.next(world.now).is_none(), "it is no news for the set");
    let gone = Key { namespace: "elsewhere".to_owned(), ..Key::of(&foreign.metadata) };
    sets.job_gone(&gone, "foreign", world.now);
    assert!(sets.next(world.now).is_none());

    // Nor if it was heard of before the set.
    let mut late = driver(&world);
    late.jobset_gone(&key(), world.jobset.metadata.uid.as_deref().unwrap());
    late.job_seen(&foreign, world.now);
    late.jobset_seen(&world.jobset, world.now);
    let plan = next(&mut late, world.now);
    assert_eq!(jobs_of(&plan).len(), world.jobs.len(), "all are to be made: {:?}", plan.steps);
}

/// A set of one Job that goes away as soon as it has ended, and one that goes on.
fn fleeting() -> World {
    let mut quick = group("quick", 1, json!({}));
    quick["template"]["spec"]["ttlSecondsAfterFinished"] = 0.into();
    World::new(json!({"replicatedJobs": [quick, group("slow", 1, json!({}))]}))
}

#[test]
fn an_end_that_another_leader_has_noted_counts_for_one_that_comes_later() {
    let mut world = fleeting();
    world.settle();
    let before = world.jobset.clone();
    let running: Vec<Job> = world.jobs.values().cloned().collect();
    world.complete("js-quick-0");
    world.settle();
    let noted = world.status().lockstep.unwrap().ended_jobs;
    assert_eq!((noted[0].name.as_str(), noted[0].succeeded.as_str()), ("quick", "0"));
    let quick = world.jobs.remove("js-quick-0").unwrap();
    let uid = quick.metadata.uid.clone().unwrap();

    // It had seen the Job run, and hears of the note before the end or after it.
    for is_note_first in [true, false] {
        let mut sets = driver(&world);
        sets.jobset_gone(&key(), world.jobset.metadata.uid.as_deref().unwrap());
        sets.jobset_seen(&before, world.now);
        sets.service_seen(&world.service.as_ref().unwrap().metadata);
        for job in &running {
            sets.job_seen(&Arc::new(job.clone()), world.now);
        }
        if is_note_first {
            sets.jobset_seen(&world.jobset, world.now);
        }
        sets.job_gone(&Key::of(&quick.metadata), &uid, world.now);
        if !is_note_first {
            sets.jobset_seen(&world.jobset, world.now);
        }
        let plan = next(&mut sets, world.now);
        assert_eq!(plan.waiting, Some(Waiting::Running), "{is_note_first}: {:?}", plan.steps);
    }
}

#[test]
fn a_service_that_went_before_its_creation_was_answered_is_made_again() {
    let mut world = fleeting();
    let mut sets = driver(&world);
    let plan = next(&mut sets, world.now);
    for step in plan.steps {
        world.carry_out(step);
    }
    sets.status_written(&key(), &world.jobset);
    for job in world.jobs.values() {
        sets.job_written(&key(), job.clone(), world.now);
    }
    let service = world.service.take().unwrap();
    let uid = service.metadata.uid.clone().unwrap_or_default();
    sets.service_gone(&Key::of(&service.metadata), &uid, world.now);
    sets.service_created(&key(), &service);
    sets.done(&key(), world.now);
    let plan = next(&mut sets, world.now);
    let is_made = |step: &Step| matches!(step, Step::CreateService(_));
    assert!(plan.steps.iter().any(is_made), "{:?}", plan.steps);
}

#[test]
fn a_set_that_cannot_be_worked_on_says_so_once_and_is_no_success() {
    let (mut sets, mut world) = started();
    let odd = world.jobs.values_mut().next().unwrap();
    odd.metadata.labels.as_mut().unwrap().remove("jobset.sigs.k8s.io/restart-attempt");
    odd.metadata.resource_version = Some("1000".to_owned());
    let odd = odd.clone();
    sets.job_seen(&Arc::new(odd.clone()), world.now);
    let plan = next(&mut sets, world.now);
    assert_eq!(events(&plan.steps), ["InvalidJobSet"]);
    assert_eq!(sets.done(&key(), world.now), Some(Ended::Error));

    let mut again = odd;
    again.metadata.resource_version = Some("1001".to_owned());
    sets.job_seen(&Arc::new(again), world.now);
    let plan = next(&mut sets, world.now);
    assert_eq!(events(&plan.steps), Vec::<&str>::new(), "the same is told once");
    assert!(matches!(plan.waiting, Some(Waiting::Invalid(_))));
}

#[test]
fn a_status_that_the_api_does_not_take_is_told() {
    let mut world = fleeting();
    let mut sets = driver(&world);
    let plan = next(&mut sets, world.now);
    carry_out(&mut sets, &mut world, plan);
    let told = |kind| sets.failed(&key(), &refusal(kind), world.now).map(|event| event.reason);
    let kinds = [RefusalKind::Refused, RefusalKind::Conflict, RefusalKind::Other];
    assert_eq!(kinds.map(told), [Some("UpdateRefused".to_owned()), None, None]);
}
