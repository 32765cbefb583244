//! Stopping jobs, and what their templates look like then.

use serde_json::{Value, json};

use super::super::world::{World, job_key};
use super::super::{JobKey, Kind, Settings, Waiting};
use super::{counts, job_spec, one_job, one_set, queued, start};

/// A Job that runs, with one pod, and its template before.
fn running() -> (World, JobKey, Value) {
    let (mut world, key) = one_job();
    let template = world.job(&key)["spec"]["template"].clone();
    start(&mut world);
    let now = world.now.to_string();
    world.edit_job(&key, |job| job["status"] = json!({"active": 1, "startTime": now}));
    world.settle();
    world.asked();
    (world, key, template)
}

fn evict(world: &mut World) {
    world.say("Evicted", true, "PodsReadyTimeout", "Exceeded the PodsReady timeout ns/a");
}

// rule: queueing 3.5.1
#[test]
fn a_job_is_stopped_in_three_writes_and_looks_as_before() {
    let (mut world, key, template) = running();
    evict(&mut world);
    assert!(world.pass());
    let job = world.job(&key);
    assert_eq!(job["spec"]["suspend"], true);
    assert_eq!(job["metadata"]["annotations"]["kueue.x-k8s.io/stopping"], "true");
    assert_ne!(job["spec"]["template"], template);
    assert_eq!(world.events(), ["Stopped Exceeded the PodsReady timeout ns/a"]);
    assert!(world.pass());
    assert_eq!(world.job(&key)["status"]["startTime"], Value::Null);
    world.settle();
    assert_eq!(world.waiting(&key), Some(Waiting::PodsActive), "templates of pods that run stay");
    world.edit_job(&key, |job| job["status"]["active"] = 0.into());
    assert!(world.pass());
    let job = world.job(&key);
    assert_eq!(job["spec"]["template"], template, "to the letter");
    assert_eq!(job["metadata"]["annotations"]["kueue.x-k8s.io/stopping"], Value::Null);
    assert_eq!(world.asked(), ["patch a", "clear a", "patch a"]);
    world.settle();
    assert_eq!(world.events(), Vec::<String>::new(), "told once");
}

// rule: queueing 3.5.1
#[test]
fn a_stop_goes_on_where_a_crash_ended_it() {
    for passes in 0..=7 {
        let (mut world, key, template) = running();
        evict(&mut world);
        for at in 0..passes {
            if at == 3 {
                world.edit_job(&key, |job| job["status"]["active"] = 0.into());
            }
            world.pass();
        }
        world.crash();
        world.edit_job(&key, |job| job["status"]["active"] = 0.into());
        world.settle();
        let job = world.job(&key);
        assert_eq!(job["spec"]["template"], template, "after {passes} passes");
        assert_eq!(job["metadata"]["annotations"]["kueue.x-k8s.io/stopping"], Value::Null);
        assert_eq!(world.events(), ["Stopped Exceeded the PodsReady timeout ns/a"]);
        assert!(world.condition("QuotaReserved").starts_with("False"), "after {passes} passes");
    }
}

// rule: queueing 3.5.1
#[test]
fn a_stop_whose_cause_is_gone_is_carried_to_its_end() {
    let (mut world, key, _) = running();
    world.edit_job(&key, |job| job["spec"]["parallelism"] = 1.into());
    assert!(world.pass());
    world.edit_job(&key, |job| job["spec"]["parallelism"] = 2.into());
    world.settle();
    assert_eq!(world.waiting(&key), Some(Waiting::PodsActive));
    world.edit_job(&key, |job| job["status"] = json!({"active": 0}));
    world.settle();
    let job = world.job(&key);
    assert_eq!(job["metadata"]["annotations"]["kueue.x-k8s.io/stopping"], Value::Null);
    assert_eq!(job["spec"]["suspend"], false, "and it starts again");
}

// rule: queueing 3.5.1
#[test]
fn a_job_without_start_is_stopped_in_two_writes() {
    let (mut world, key) = one_job();
    start(&mut world);
    evict(&mut world);
    world.settle();
    assert_eq!(world.asked()[..2], ["patch a", "patch a"]);
    assert_eq!(world.job(&key)["spec"]["suspend"], true);
}

// rule: queueing 3.5.2
#[test]
fn a_jobset_is_stopped_in_one_patch_and_looks_as_before() {
    let (mut world, key) = one_set(json!({}));
    let before = world.job(&key)["spec"].clone();
    start(&mut world);
    counts(&mut world, &key, &[("driver", [1, 0, 0, 1]), ("workers", [2, 0, 0, 2])]);
    world.settle();
    world.asked();
    evict(&mut world);
    assert!(world.pass());
    assert_eq!(world.asked(), ["patch js"]);
    assert_eq!(world.events(), ["Stopped Exceeded the PodsReady timeout ns/a"]);
    let mut after = world.job(&key)["spec"].clone();
    // An empty map is none.
    for at in 0..2 {
        let template = &mut after["replicatedJobs"][at]["template"]["spec"]["template"];
        if template["metadata"] == json!({}) {
            template.as_object_mut().unwrap().remove("metadata");
        }
    }
    assert_eq!(after, before);
}

// rule: queueing 3.5.2
#[test]
fn a_jobset_of_another_shape_is_stopped_without_being_restored() {
    let (mut world, key) = one_set(json!({}));
    start(&mut world);
    world.edit_workload(|workload| {
        workload["spec"]["podSets"].as_array_mut().unwrap().truncate(1);
    });
    assert!(world.pass());
    assert_eq!(world.job(&key)["spec"]["suspend"], true);
    let label = "/spec/replicatedJobs/1/template/spec/template/metadata/labels";
    assert!(world.job(&key).pointer(label).is_some());
    let told = "Stopped No matching Workload; restoring pod templates according to existent \
                Workload";
    assert_eq!(world.events(), [told]);
}

// rule: queueing 3.5.3
#[test]
fn nobody_runs_who_was_not_admitted() {
    let mut world = World::new(Settings::default());
    let mut spec = job_spec(1, 1);
    spec["suspend"] = false.into();
    world.create(Kind::Job, "a", queued(), spec);
    world.settle();
    let key = job_key("a");
    assert_eq!(world.job(&key)["spec"]["suspend"], true);
    let told = "Stopped Missing Workload; unable to restore pod templates";
    assert_eq!(world.events()[0], told, "it came without");
    world.edit_job(&key, |job| job["spec"]["suspend"] = false.into());
    world.settle();
    assert_eq!(world.events(), ["Stopped Not admitted by cluster queue"]);
    assert_eq!(world.job(&key)["spec"]["suspend"], true);
}

// rule: queueing 3.5.3
// rule: queueing 3.6.2
#[test]
fn a_workload_that_is_deleted_lets_its_job_stop_first() {
    let (mut world, key, template) = running();
    let name = world.workload_names().remove(0);
    let uid = world.workload()["metadata"]["uid"].clone();
    world.delete_workload(&name);
    world.settle();
    assert_eq!(world.events(), ["Stopped Workload is deleted"]);
    assert_eq!(world.workload()["metadata"]["uid"], uid, "quota is held while pods run");
    assert_eq!(world.waiting(&key), Some(Waiting::PodsActive));
    world.edit_job(&key, |job| job["status"]["active"] = 0.into());
    world.settle();
    assert_eq!(world.job(&key)["spec"]["template"], template);
    assert_ne!(world.workload()["metadata"]["uid"], uid, "there is another one");
    assert_eq!(world.events(), [format!("CreatedWorkload Created Workload: ns/{name}")]);
}
