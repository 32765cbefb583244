//! The driver: expectations, refusals, odd objects.

use std::sync::Arc;

use serde_json::{Value, json};

use super::super::world::{World, job_key, key, set_key, typed};
use super::super::{Kind, QueuedJobs, Settings, Step, Waiting};
use super::{job_spec, one_job, queued, start};
use crate::plan::{Refusal, RefusalKind};

fn refusal(kind: RefusalKind) -> Refusal {
    Refusal { kind, message: "no".to_owned() }
}

/// A driver that has been told of one job, in the middle of the pass that creates its workload.
fn creating() -> (World, QueuedJobs, Value) {
    let mut world = World::new(Settings::default());
    world.create(Kind::Job, "a", queued(), job_spec(1, 1));
    let mut driver = world.driver.clone();
    let (_, plan) = driver.next(world.now).unwrap();
    let [Step::CreateWorkload(workload), Step::Emit(_)] = &plan.steps[..] else {
        panic!("{plan:?}");
    };
    let mut created = serde_json::to_value(workload).unwrap();
    created["metadata"]["uid"] = "w".into();
    created["metadata"]["resourceVersion"] = "100".into();
    (world, driver, created)
}

#[test]
fn no_second_workload_is_made_before_the_first_has_been_heard_of() {
    let (world, mut driver, created) = creating();
    driver.workload_written(&job_key("a"), typed(&created), world.now);
    driver.done(&job_key("a"), world.now);
    while let Some((key, plan)) = driver.next(world.now) {
        assert!(!plan.steps.iter().any(|step| matches!(step, Step::CreateWorkload(_))));
        driver.done(&key, world.now);
    }
    // A listing that began before says nothing about it; one that began after does.
    assert_eq!(driver.workloads_listed(world.now), []);
    assert_eq!(driver.workloads_of(&job_key("a")).count(), 1);
    driver.workloads_listing();
    assert_eq!(driver.workloads_listed(world.now).len(), 1);
    assert_eq!(driver.workloads_of(&job_key("a")).count(), 0);
}

#[test]
fn what_no_watch_ever_told_of_is_missed_by_a_listing_and_others_are_told() {
    let (world, mut driver, mut created) = creating();
    driver.workload_written(&job_key("a"), typed(&created), world.now);
    driver.done(&job_key("a"), world.now);
    // The scheduler admits it: an answer too.
    created["metadata"]["resourceVersion"] = "101".into();
    driver.workload_written_elsewhere(&Arc::new(typed(&created)), world.now);
    let name = key(created["metadata"]["name"].as_str().unwrap());
    let version = |driver: &QueuedJobs| driver.workload(&name)?.metadata.resource_version.clone();
    assert_eq!(version(&driver), Some("101".to_owned()));
    driver.workloads_listing();
    assert_eq!(driver.workloads_listed(world.now), [(name.clone(), "w".to_owned())]);
    driver.workload_written_elsewhere(&Arc::new(typed(&created)), world.now);
    assert_eq!(version(&driver), None, "a late answer does not bring it back");
    // One that a watch has told of is for the watch to tell the end of.
    driver.workload_seen(&Arc::new(typed(&created)), world.now);
    driver.workload_written_elsewhere(&Arc::new(typed(&created)), world.now);
    driver.workloads_listing();
    assert_eq!(driver.workloads_listed(world.now), []);
}

#[test]
fn a_late_answer_about_what_is_gone_is_no_news() {
    let (world, mut driver, created) = creating();
    let name = created["metadata"]["name"].as_str().unwrap();
    driver.workload_gone(&key(name), "w", world.now);
    driver.workload_written(&job_key("a"), typed(&created), world.now);
    assert_eq!(driver.workloads_of(&job_key("a")).count(), 0);
}

#[test]
fn a_workload_that_is_there_already_is_the_jobs_or_a_failure() {
    let (world, mut driver, created) = creating();
    let refused = refusal(RefusalKind::AlreadyExists);
    let told =
        driver.workload_not_created(&job_key("a"), &refused, Some(typed(&created)), world.now);
    assert_eq!(told, None);
    assert_eq!(driver.workloads_of(&job_key("a")).count(), 1);
    let (world, mut driver, mut created) = creating();
    created["metadata"]["ownerReferences"][0]["uid"] = "other".into();
    let told =
        driver.workload_not_created(&job_key("a"), &refused, Some(typed(&created)), world.now);
    assert_eq!(told.unwrap().reason, "FailedCreateWorkload");
    driver.done(&job_key("a"), world.now);
    assert!(driver.next(world.now).is_none(), "not at once");
    assert!(driver.next_due().is_some(), "but again");
}

#[test]
fn what_has_changed_meanwhile_is_decided_on_when_it_has_been_seen() {
    let (mut world, key) = one_job();
    world.admit(json!({}));
    let now = world.now;
    while let Some((job, plan)) = world.driver.next(now) {
        assert!(plan.steps.iter().any(|step| !matches!(step, Step::Emit(_))));
        world.driver.refused(&job, &refusal(RefusalKind::Conflict), now);
        world.driver.done(&job, now);
    }
    assert!(world.driver.next_due().is_some(), "it is looked at again even so");
    world.edit_job(&key, |job| job["metadata"]["labels"]["x"] = "y".into());
    world.settle();
    assert_eq!(world.job(&key)["spec"]["suspend"], false);
}

#[test]
fn what_the_api_does_not_want_is_told() {
    let (mut world, key) = one_job();
    world.admit(json!({}));
    let now = world.now;
    drop(world.driver.next(now).unwrap());
    let told = world.driver.refused(&key, &refusal(RefusalKind::Refused), now);
    assert_eq!(told.unwrap().reason, "UpdateRefused");
}

#[test]
fn nothing_is_decided_before_all_is_known() {
    let mut driver = QueuedJobs::new(Settings::default());
    let world = World::new(Settings::default());
    let job = json!({"metadata": {"name": "a", "namespace": "ns", "uid": "u"}});
    driver.job_seen(&Arc::new(typed(&job)), world.now);
    assert!(driver.next(world.now).is_none());
    assert_eq!(driver.next_due(), None);
}

#[test]
fn old_news_are_none() {
    let (mut world, key) = one_job();
    let old = world.workload().clone();
    world.admit(json!({}));
    world.settle();
    let now = world.now;
    world.driver.workload_seen(&Arc::new(typed(&old)), now);
    world.settle();
    assert_eq!(world.job(&key)["spec"]["suspend"], false);
    assert_eq!(world.waiting(&key), Some(Waiting::PodsNotReady));
}

#[test]
fn odd_objects_do_no_harm() {
    let label = queued()["labels"].clone();
    let jobs = [
        json!({}),
        json!({"spec": {"template": {}}}),
        json!({"spec": {"parallelism": -5, "completions": -1, "template": {}, "suspend": true}}),
        json!({"spec": {"suspend": true, "parallelism": i32::MAX, "template": {}},
               "status": {"succeeded": i32::MAX, "ready": i32::MAX, "active": -1}}),
    ];
    let sets = [
        json!({}),
        json!({"spec": {"suspend": true, "replicatedJobs": [{}, {"name": "X", "replicas": -3}]}}),
        json!({"spec": {"suspend": true, "replicatedJobs": [
            {"name": "a", "replicas": i32::MAX, "dependsOn": [{"name": "none"}],
             "template": {"spec": {"parallelism": i32::MAX, "template": {}}}}]},
            "status": {"replicatedJobsStatus": [{"name": "b", "ready": -1}],
                       "lockstep": {"inPlace": {"phase": "?"}}}}),
    ];
    let jobs = jobs.into_iter().map(|job| (Kind::Job, job));
    for (kind, mut object) in jobs.chain(sets.into_iter().map(|set| (Kind::JobSet, set))) {
        object["metadata"] = json!({"name": "a", "namespace": "ns", "uid": "u", "labels": label});
        let mut world = World::new(Settings::default());
        let mut key = job_key("a");
        if kind == Kind::JobSet {
            key = set_key("a");
        }
        world.put_job(key.clone(), object);
        let now = world.now;
        for _ in 0..10 {
            let Some((key, _)) = world.driver.next(now) else { break };
            world.driver.done(&key, now);
        }
        assert!(world.driver.job(&key).is_some());
    }
    let (mut world, _) = one_job();
    for status in [
        json!({"conditions": [
        {"type": "Admitted", "status": "True", "reason": "", "message": "",
         "lastTransitionTime": "2026-11-17T12:00:00Z"}]}),
        json!({}),
    ] {
        world.edit_workload(|workload| workload["status"] = status);
        for _ in 0..10 {
            let now = world.now;
            let Some((key, _)) = world.driver.next(now) else { break };
            world.driver.done(&key, now);
        }
    }
}

// rule: queueing 3.10.1
#[test]
fn the_order_of_steps_over_a_job() {
    let (mut world, key) = one_job();
    world.class("gold", 3);
    world.admit(json!({"cpu": "spot"}));
    // Everything at once: the end comes before all else.
    world.edit_job(&key, |job| {
        job["metadata"]["labels"]["kueue.x-k8s.io/priority-class"] = "gold".into();
        job["status"] = json!({"succeeded": 1, "ready": 1,
            "conditions": [{"type": "Failed", "status": "True", "message": "m"}]});
    });
    world.say("Evicted", true, "Preempted", "make room");
    world.asked();
    world.settle();
    assert_eq!(world.asked(), ["write status", "patch workload"], "its end, and its finalizer");
    assert_eq!(world.condition("Finished"), "True Failed: m");
    // Without the end: what is reclaimable, whether pods are ready, then the eviction.
    let (mut world, key) = one_job();
    start(&mut world);
    world.edit_job(&key, |job| job["status"] = json!({"succeeded": 1, "ready": 1}));
    world.say("Evicted", true, "Preempted", "make room");
    let mut told = Vec::new();
    while world.pass() {
        let is_released = world.condition("QuotaReserved").starts_with("False");
        let is_ready = world.condition("PodsReady").starts_with("True");
        let is_reclaimed = !world.workload()["status"]["reclaimablePods"].is_null();
        told.push((is_reclaimed, is_ready, is_released));
    }
    told.dedup();
    let (yes, no) = (true, false);
    let order = [(yes, no, no), (yes, yes, no), (yes, no, yes)];
    assert_eq!(told, order, "each in a pass of its own");
    assert_eq!(world.job(&key)["spec"]["suspend"], true);
}

#[test]
fn workloads_that_vanish_again_and_again_are_made_anew_ever_more_slowly() {
    let (mut world, key) = one_job();
    let lose = |world: &mut World| {
        let name = world.workload()["metadata"]["name"].as_str().unwrap().to_owned();
        world.delete_workload(&name);
        while world.pass() {}
        world.workload_names().len()
    };
    assert_eq!(lose(&mut world), 1, "the first time at once");
    for delay_ms in [200, 400, 800] {
        assert_eq!(lose(&mut world), 0, "{delay_ms}");
        let due = world.driver.next_due().unwrap();
        assert_eq!(due.duration_since(world.now).as_millis(), delay_ms);
        world.now = due;
        world.settle();
        assert_eq!(world.workload_names().len(), 1, "{delay_ms}");
    }
    // Whoever has news of the job knows that it is there.
    world.edit_job(&key, |job| job["metadata"]["labels"]["x"] = "y".into());
    assert_eq!(lose(&mut world), 1);
}
