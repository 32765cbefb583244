//! One workload for a job, whatever changes.

use serde_json::{Value, json};

use super::super::world::key as named;
use super::super::{Settings, Waiting};
use super::{job_spec, job_with, one_job, one_set, queued, start};

// rule: queueing 3.3.1
#[test]
fn one_workload_is_kept_and_others_go() {
    let (mut world, _) = one_job();
    world.events();
    let mut other = world.workload().clone();
    let kept = world.workload_names().remove(0);
    other["metadata"]["name"] = "z".into();
    other["metadata"]["uid"] = Value::Null;
    world.put_workload(other);
    world.asked();
    world.settle();
    assert_eq!(world.workload_names(), [kept]);
    assert_eq!(world.asked()[..2], ["patch workload", "delete workload"]);
    assert_eq!(world.events(), ["DeletedWorkload Deleted not matching Workload: ns/z"]);
}

// rule: queueing 3.3.2
#[test]
fn a_changed_suspended_job_updates_its_workload() {
    type Change = fn(&mut Value);
    let cases: [(&str, Change, &str, Value); 6] = [
        ("size", |job| job["spec"]["parallelism"] = 1.into(), "/spec/podSets/0/count", json!(1)),
        (
            "resources",
            |job| {
                job["spec"]["template"]["spec"]["containers"][0]["resources"] =
                    json!({"requests": {"cpu": "3"}});
            },
            "/spec/podSets/0/template/spec/containers/0/resources/requests/cpu",
            json!("3"),
        ),
        (
            "selector",
            |job| job["spec"]["template"]["spec"]["nodeSelector"] = json!({"disk": "hdd"}),
            "/spec/podSets/0/template/spec/nodeSelector/disk",
            json!("hdd"),
        ),
        (
            "label",
            |job| job["spec"]["template"]["metadata"]["labels"]["app"] = "eval".into(),
            "/spec/podSets/0/template/metadata/labels/app",
            json!("eval"),
        ),
        (
            "class of the pods",
            |job| job["spec"]["template"]["spec"]["priorityClassName"] = "pods".into(),
            "/spec/priority",
            json!(7),
        ),
        (
            "limit of time",
            |job| {
                job["metadata"]["labels"]["kueue.x-k8s.io/max-exec-time-seconds"] = "60".into();
            },
            "/spec/maximumExecutionTimeSeconds",
            json!(60),
        ),
    ];
    for (name, change, path, expected) in cases {
        let (mut world, key) = one_job();
        world.pod_class("pods", 7, false);
        world.edit_workload(|workload| workload["spec"]["active"] = false.into());
        let uid = world.workload()["metadata"]["uid"].clone();
        world.settle();
        world.events();
        world.edit_job(&key, change);
        world.settle();
        assert_eq!(world.workload().pointer(path), Some(&expected), "{name}");
        assert_eq!(world.workload()["metadata"]["uid"], uid, "{name}");
        assert_eq!(world.workload()["spec"]["active"], false, "{name}: as users want it");
        let workload = world.workload_names().remove(0);
        let told = format!(
            "UpdatedWorkload Updated not matching Workload for suspended job: ns/{workload}"
        );
        assert_eq!(world.events(), [told], "{name}");
    }
}

// rule: queueing 3.3.3
#[test]
fn a_changed_running_job_is_stopped_first() {
    let (mut world, key) = one_job();
    start(&mut world);
    world.edit_job(&key, |job| job["status"] = json!({"active": 2}));
    world.settle();
    let uid = world.workload()["metadata"]["uid"].clone();
    world.edit_job(&key, |job| job["spec"]["parallelism"] = 1.into());
    world.settle();
    let told = "Stopped No matching Workload; restoring pod templates according to existent \
                Workload";
    assert_eq!(world.events(), [told]);
    assert_eq!(world.waiting(&key), Some(Waiting::PodsActive), "quota is held while pods run");
    assert_eq!(world.workload()["metadata"]["uid"], uid);
    world.edit_job(&key, |job| job["status"]["active"] = 0.into());
    world.settle();
    assert_eq!(world.job(&key)["spec"]["template"]["spec"]["nodeSelector"], json!({"disk": "ssd"}));
    assert_ne!(world.workload()["metadata"]["uid"], uid);
    assert_eq!(world.workload()["spec"]["podSets"][0]["count"], 1);
    let name = world.workload_names().remove(0);
    let told = [
        format!("DeletedWorkload Deleted not matching Workload: ns/{name}"),
        format!("CreatedWorkload Created Workload: ns/{name}"),
    ];
    assert_eq!(world.events(), told);
}

// rule: queueing 3.3.3
#[test]
fn a_running_job_without_workload_is_stopped() {
    let (mut world, key) = one_job();
    start(&mut world);
    world.edit_workload(|workload| {
        workload["metadata"]["finalizers"] = json!([]);
        workload["metadata"]["deletionTimestamp"] = "2026-11-17T12:00:00Z".into();
    });
    world.settle();
    assert_eq!(world.events()[0], "Stopped Missing Workload; unable to restore pod templates");
    assert_eq!(world.job(&key)["spec"]["suspend"], true);
}

#[test]
fn tolerations_that_others_add_do_not_stop_what_runs() {
    let (mut world, key) = one_set(json!({}));
    start(&mut world);
    world.edit_job(&key, |set| {
        set["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]["tolerations"] =
            json!([{"key": "more", "operator": "Exists"}]);
    });
    world.settle();
    assert_eq!(world.job(&key)["spec"]["suspend"], false);
}

// rule: queueing 3.3.4
#[test]
fn the_queue_follows_the_job_while_it_holds_no_quota() {
    let (mut world, key) = one_job();
    let to = |world: &mut super::World, queue: &str| {
        let queue = queue.to_owned();
        world.edit_job(&key, |job| {
            job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = queue.into();
        });
        world.settle();
    };
    to(&mut world, "other");
    assert_eq!(world.workload()["spec"]["queueName"], "other");
    start(&mut world);
    to(&mut world, "third");
    assert_eq!(world.workload()["spec"]["queueName"], "other");
}

// rule: queueing 3.3.4
#[test]
fn the_class_and_its_value_follow_even_while_it_runs() {
    let mut meta = queued();
    meta["labels"]["kueue.x-k8s.io/priority-class"] = "gold".into();
    let mut world = super::World::new(Settings::default());
    world.flavor("spot", super::flavor());
    world.class("gold", 5);
    world.create(super::Kind::Job, "a", meta, job_spec(1, 1));
    world.settle();
    start(&mut world);
    world.class("gold", 50);
    world.settle();
    assert_eq!(world.workload()["spec"]["priority"], 5, "for a pass over the workload to follow");
    world.class("iron", 1);
    let key = super::job_key("a");
    world.edit_job(&key, |job| {
        job["metadata"]["labels"]["kueue.x-k8s.io/priority-class"] = "iron".into();
    });
    world.settle();
    assert_eq!(world.workload()["spec"]["priority"], 1);
    assert_eq!(world.workload()["spec"]["priorityClassRef"]["name"], "iron");
    assert_eq!(world.job(&key)["spec"]["suspend"], false);
}

// rule: queueing 3.3.4
#[test]
fn a_workload_that_holds_quota_gets_no_class_that_it_had_not() {
    let (mut world, key) = one_job();
    world.class("gold", 5);
    start(&mut world);
    world.edit_job(&key, |job| {
        job["metadata"]["labels"]["kueue.x-k8s.io/priority-class"] = "gold".into();
    });
    world.settle();
    assert_eq!(world.workload()["spec"]["priority"], 0);
}

/// A job that is to use Workload `mine`.
fn prebuilt(by_label: bool) -> (super::World, super::JobKey) {
    let mut meta = queued();
    let at = if by_label { "labels" } else { "annotations" };
    meta[at]["kueue.x-k8s.io/prebuilt-workload-name"] = "mine".into();
    job_with(Settings::default(), meta, job_spec(2, 2))
}

/// Somebody makes Workload `mine` for the job.
fn make(world: &mut super::World, key: &super::JobKey, count: i32) {
    let template = world.job(key)["spec"]["template"].clone();
    world.put_workload(json!({
        "metadata": {"name": "mine"},
        "spec": {"queueName": "lq", "podSets": [
            {"name": "main", "count": count, "template": {"spec": template["spec"]}}]},
    }));
}

// rule: queueing 3.9.1
#[test]
fn a_prebuilt_workload_is_waited_for_and_adopted() {
    for by_label in [true, false] {
        let (mut world, key) = prebuilt(by_label);
        assert_eq!(world.workload_names(), Vec::<String>::new());
        assert_eq!(world.waiting(&key), Some(Waiting::PrebuiltMissing(named("mine"))));
        make(&mut world, &key, 2);
        world.settle();
        let uid = &world.job(&key)["metadata"]["uid"];
        let meta = &world.workload()["metadata"];
        assert_eq!(meta["ownerReferences"][0]["uid"], *uid);
        assert_eq!(meta["labels"]["kueue.x-k8s.io/job-uid"], *uid);
        start(&mut world);
        assert_eq!(world.job(&key)["spec"]["suspend"], false);
        world.say("Evicted", true, "Preempted", "make room");
        world.settle();
        assert_eq!(world.job(&key)["spec"]["suspend"], true);
    }
}

// rule: queueing 3.9.1
#[test]
fn a_job_does_not_run_without_its_prebuilt_workload() {
    let (mut world, key) = prebuilt(true);
    world.edit_job(&key, |job| job["spec"]["suspend"] = false.into());
    world.settle();
    assert_eq!(world.events(), ["Stopped missing workload"]);
    assert_eq!(world.job(&key)["spec"]["suspend"], true);
    make(&mut world, &key, 2);
    world.edit_workload(|workload| {
        workload["metadata"]["ownerReferences"] = json!([{
            "apiVersion": "batch/v1", "kind": "Job", "name": "b", "uid": "other",
            "controller": true}]);
    });
    world.tick(1);
    world.settle();
    assert_eq!(world.waiting(&key), Some(Waiting::PrebuiltMissing(named("mine"))), "another's");
}

// rule: queueing 3.9.1
#[test]
fn a_prebuilt_workload_that_is_not_the_jobs_is_out_of_sync() {
    let (mut world, key) = prebuilt(true);
    make(&mut world, &key, 3);
    world.settle();
    let told = "True OutOfSync: The prebuilt workload is out of sync with its user job";
    assert_eq!(world.condition("Finished"), told);
    let reason = "OutOfSync".to_owned();
    assert_eq!(world.waiting(&key), Some(Waiting::WorkloadFinished { reason }));
    world.edit_job(&key, |job| job["spec"]["suspend"] = false.into());
    world.settle();
    assert_eq!(world.events(), ["Stopped missing workload"]);
}
