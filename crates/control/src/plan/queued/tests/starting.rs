//! Starting jobs whose workload was admitted.

use serde_json::{Value, json};

use super::super::world::World;
use super::super::{JobKey, Kind, Settings, Waiting};
use super::{flavor, group, job_spec, job_with, one_job, one_set, queued};

// rule: queueing 3.4.1
#[test]
fn an_admitted_job_starts_with_what_it_was_given() {
    let (mut world, key) = one_job();
    world.events();
    let name = world.workload_names().remove(0);
    world.edit_workload(|workload| {
        workload["status"]["admissionChecks"] = json!([
            {"name": "check", "state": "Ready", "message": "", "podSetUpdates": [
                {"name": "main", "labels": {"zone": "z"}, "annotations": {"by": "check"},
                 "nodeSelector": {"rack": "r1"},
                 "tolerations": [{"key": "own", "operator": "Exists"}]},
            ]},
        ]);
    });
    world.admit(json!({"cpu": "spot", "memory": "spot"}));
    world.settle();
    assert_eq!(world.events(), ["Started Admitted by clusterQueue cq"]);
    let spec = &world.job(&key)["spec"];
    assert_eq!(spec["suspend"], false);
    let meta = &spec["template"]["metadata"];
    let labels = meta["labels"].as_object().unwrap();
    for (label, value) in [
        ("app", "train"),
        ("zone", "z"),
        ("kueue.x-k8s.io/podset", "main"),
        ("kueue.x-k8s.io/local-queue-name", "lq"),
        ("kueue.x-k8s.io/cluster-queue-name", "cq"),
    ] {
        assert_eq!(labels[label], value, "{label}");
    }
    let annotations = json!({"note": "mine", "by": "check", "kueue.x-k8s.io/workload": name});
    assert_eq!(meta["annotations"], annotations);
    let pods = &spec["template"]["spec"];
    assert_eq!(pods["nodeSelector"], json!({"disk": "ssd", "pool": "spot", "rack": "r1"}));
    let tolerations = json!([
        {"key": "own", "operator": "Exists"},
        {"key": "spot", "operator": "Exists", "effect": "NoSchedule"},
    ]);
    assert_eq!(pods["tolerations"], tolerations, "each once");
    assert_eq!(world.waiting(&key), Some(Waiting::PodsNotReady));
}

// rule: queueing 3.4.1
#[test]
fn a_jobset_starts_with_one_patch_that_leaves_the_rest_as_it_is() {
    let (mut world, key) = one_set(json!({}));
    // A field that nobody here knows.
    world.edit_job(&key, |set| set["spec"]["replicatedJobs"][1]["new"] = "kept".into());
    world.settle();
    world.asked();
    world.events();
    world.admit(json!({"cpu": "spot"}));
    world.settle();
    let jobs = &world.job(&key)["spec"]["replicatedJobs"];
    assert_eq!(jobs[1]["new"], "kept");
    for (at, name) in ["driver", "workers"].into_iter().enumerate() {
        let template = &jobs[at]["template"]["spec"]["template"];
        assert_eq!(template["metadata"]["labels"]["kueue.x-k8s.io/podset"], name);
        assert_eq!(template["spec"]["nodeSelector"], json!({"pool": "spot"}));
        assert_eq!(template["spec"]["tolerations"], flavor()["tolerations"]);
    }
    assert_eq!(world.job(&key)["spec"]["suspend"], false);
    assert_eq!(world.events(), ["Started Admitted by clusterQueue cq"]);
    assert_eq!(world.asked().iter().filter(|one| *one == "patch js").count(), 1);
}

// rule: queueing 3.4.2
#[test]
fn a_key_with_another_value_ends_the_workload() {
    let mut spec = job_spec(1, 1);
    spec["template"]["spec"]["nodeSelector"] = json!({"pool": "own"});
    let of_job = job_with(Settings::default(), queued(), spec);
    let of_set = one_set(json!({"replicatedJobs": [group("w", 1, json!({"template": {"spec": {
        "template": {"spec": {"restartPolicy": "Never", "nodeSelector": {"pool": "own"},
                              "containers": [{"name": "c", "image": "i"}]}},
    }}}))]}));
    for (mut world, key) in [of_job, of_set] {
        world.admit(json!({"cpu": "spot"}));
        world.settle();
        assert_eq!(
            world.condition("Finished"),
            "True FailedToStart: invalid admission check PodSetUpdate: conflict for nodeSelector: \
             conflict for key=pool, value1=own, value2=spot"
        );
        assert_eq!(world.job(&key)["spec"]["suspend"], true, "{key}");
        assert_eq!(world.workload()["metadata"]["finalizers"], json!([]));
        let reason = "FailedToStart".to_owned();
        assert_eq!(world.waiting(&key), Some(Waiting::WorkloadFinished { reason }));
    }
}

#[test]
fn a_flavor_that_is_missing_is_waited_for() {
    let (mut world, key) = one_job();
    world.admit(json!({"cpu": "new"}));
    world.settle();
    assert_eq!(world.waiting(&key), Some(Waiting::FlavorMissing("new".into())));
    world.flavor("new", json!({"nodeLabels": {"pool": "new"}}));
    world.settle();
    assert_eq!(world.job(&key)["spec"]["suspend"], false);
}

#[test]
fn a_job_that_has_a_start_loses_it_before_its_template_changes() {
    let (mut world, key) = one_job();
    world.edit_job(&key, |job| job["status"]["startTime"] = "2026-11-17T11:00:00Z".into());
    world.admit(json!({"cpu": "spot"}));
    world.asked();
    world.settle();
    let asked = world.asked();
    let of_job: Vec<&String> = asked.iter().filter(|one| one.ends_with(" a")).collect();
    assert_eq!(of_job, ["clear a", "patch a"]);
}

#[test]
fn whoever_is_deactivated_is_not_started_first() {
    let (mut world, key) = one_job();
    world.edit_workload(|workload| workload["spec"]["active"] = false.into());
    world.admit(json!({"cpu": "spot"}));
    world.settle();
    assert_eq!(world.job(&key)["spec"]["suspend"], true);
}

#[test]
fn a_queue_whose_name_is_no_label_is_not_put_on_pods() {
    let (mut world, key) = one_job();
    world.admit(json!({}));
    world.edit_workload(|workload| {
        workload["status"]["admission"]["clusterQueue"] = "team.queue".into();
    });
    world.settle();
    let labels = &world.job(&key)["spec"]["template"]["metadata"]["labels"];
    assert_eq!(labels["kueue.x-k8s.io/cluster-queue-name"], Value::Null);
    assert_eq!(labels["kueue.x-k8s.io/local-queue-name"], "lq");
}

#[test]
fn a_job_that_may_be_smaller_has_as_many_pods_as_were_admitted() {
    let mut meta = queued();
    meta["annotations"] = json!({
        "kueue.x-k8s.io/job-min-parallelism": "2",
        "kueue.x-k8s.io/job-completions-equal-parallelism": "true",
    });
    let mut spec = job_spec(4, 4);
    spec["completionMode"] = "Indexed".into();
    let (mut world, key): (World, JobKey) = job_with(Settings::default(), meta, spec);
    world.admit(json!({"cpu": "spot"}));
    world.edit_workload(|workload| {
        workload["status"]["admission"]["podSetAssignments"][0]["count"] = 3.into();
    });
    world.settle();
    let sizes = |world: &World| {
        let spec = &world.job(&key)["spec"];
        (spec["parallelism"].as_i64(), spec["completions"].as_i64())
    };
    assert_eq!(sizes(&world), (Some(3), Some(3)));
    world.say("Evicted", true, "Preempted", "make room");
    world.settle();
    assert_eq!(sizes(&world), (Some(4), Some(4)), "and as it asked for after it was stopped");
    assert_eq!(key.kind, Kind::Job);
}
