//! The workload that a job gets.

use serde_json::{Value, json};

use super::super::world::{World, job_key};
use super::super::{Kind, Settings, Waiting};
use super::{group, job_spec, job_with, one_job, one_set, queued};

// rule: queueing 3.2.1
// rule: queueing 3.2.2
#[test]
fn a_suspended_job_gets_a_workload() {
    let mut meta = queued();
    meta["labels"]["team"] = "red".into();
    meta["labels"]["kueue.x-k8s.io/max-exec-time-seconds"] = "600".into();
    meta["annotations"] = json!({
        "provreq.kueue.x-k8s.io/maxRunDurationSeconds": "5",
        "kueue.x-k8s.io/admission-gated-by": "me",
        "lockstep.dev/pods-ready-timeout": "5m",
        "lockstep.dev/wait-for-pods-ready": "true",
        "other": "no",
    });
    let settings = Settings { label_keys_to_copy: vec!["team".into()], ..Settings::default() };
    let (mut world, key) = job_with(settings, meta, job_spec(2, 5));
    assert_eq!(world.asked()[0], "create workload");
    let name = world.workload_names().remove(0);
    assert!(name.starts_with("job-a-") && name.len() == "job-a-".len() + 5, "{name}");
    assert_eq!(world.events(), [format!("CreatedWorkload Created Workload: ns/{name}")]);
    let workload = world.workload();
    let uid = &world.job(&key)["metadata"]["uid"];
    assert_eq!(
        workload["metadata"]["ownerReferences"],
        json!([{"apiVersion": "batch/v1", "kind": "Job", "name": "a", "uid": uid,
                "controller": true, "blockOwnerDeletion": true}])
    );
    assert_eq!(workload["metadata"]["finalizers"], json!(["kueue.x-k8s.io/resource-in-use"]));
    let labels = json!({"kueue.x-k8s.io/job-uid": uid, "team": "red"});
    assert_eq!(workload["metadata"]["labels"], labels);
    let annotations = json!({
        "provreq.kueue.x-k8s.io/maxRunDurationSeconds": "5",
        "kueue.x-k8s.io/admission-gated-by": "me",
        "lockstep.dev/pods-ready-timeout": "5m",
        "lockstep.dev/wait-for-pods-ready": "true",
    });
    assert_eq!(workload["metadata"]["annotations"], annotations);
    let spec = &workload["spec"];
    assert_eq!(spec["queueName"], "lq");
    assert_eq!(spec["maximumExecutionTimeSeconds"], 600);
    assert_eq!(spec["active"], true);
    assert_eq!(spec["priority"], 0);
    assert_eq!(world.waiting(&key), Some(Waiting::Pending { queue: "lq".into() }));
}

// rule: queueing 3.2.4
#[test]
fn a_job_is_one_pod_set_without_what_its_controller_added() {
    let cases: [(Value, i32, Value); 4] = [
        (json!({"parallelism": 3, "completions": 2}), 2, Value::Null),
        (json!({"parallelism": 2, "completions": 5}), 2, Value::Null),
        (json!({"parallelism": 4, "completions": null}), 4, Value::Null),
        (json!({"parallelism": 4, "completions": 4, "least": "2"}), 4, json!(2)),
    ];
    for (sizes, count, least) in cases {
        let mut spec = job_spec(1, 1);
        let mut meta = queued();
        for (field, value) in sizes.as_object().unwrap() {
            match field.as_str() {
                "least" => {
                    meta["annotations"] =
                        json!({"kueue.x-k8s.io/job-min-parallelism": value.clone()});
                }
                _ if value.is_null() => drop(spec.as_object_mut().unwrap().remove(field)),
                _ => spec[field] = value.clone(),
            }
        }
        let (world, key) = job_with(Settings::default(), meta, spec);
        let sets = world.workload()["spec"]["podSets"].as_array().unwrap();
        assert_eq!(sets.len(), 1);
        assert_eq!(sets[0]["name"], "main");
        assert_eq!(sets[0]["count"], count, "{sizes}");
        assert_eq!(sets[0]["minCount"], least, "{sizes}");
        let template = &sets[0]["template"];
        let labels = json!({"app": "train", "batch.kubernetes.io/job-name": "a"});
        assert_eq!(template["metadata"]["labels"], labels);
        assert_eq!(template["spec"], world.job(&key)["spec"]["template"]["spec"]);
    }
}

// rule: queueing 3.2.5
#[test]
fn a_jobset_is_one_pod_set_for_each_replicated_job() {
    let (mut world, _) = one_set(json!({"replicatedJobs": [
        group("driver", 1, json!({})), group("workers", 3, json!({})),
    ]}));
    let sets = world.workload()["spec"]["podSets"].as_array().unwrap();
    let told: Vec<(&Value, &Value)> =
        sets.iter().map(|set| (&set["name"], &set["count"])).collect();
    assert_eq!(told, [(&json!("driver"), &json!(2)), (&json!("workers"), &json!(6))]);
    let name = world.workload_names().remove(0);
    assert!(name.starts_with("jobset-js-"), "{name}");
    assert_eq!(world.events()[0], format!("CreatedWorkload Created Workload: ns/{name}"));
    let owner = &world.workload()["metadata"]["ownerReferences"][0];
    assert_eq!(owner["apiVersion"], "jobset.x-k8s.io/v1alpha2");
}

// rule: queueing 3.2.3
#[test]
fn the_priority_comes_from_the_class_the_pods_or_the_default() {
    let class =
        |group: &str, kind: &str, name: &str| json!({"group": group, "kind": kind, "name": name});
    let of_pods = |name| class("scheduling.k8s.io", "PriorityClass", name);
    let cases = [
        (
            "own class",
            Some("gold"),
            Some("pods"),
            true,
            100,
            class("kueue.x-k8s.io", "WorkloadPriorityClass", "gold"),
        ),
        ("class of the pods", None, Some("pods"), true, 7, of_pods("pods")),
        ("the default", None, None, true, 3, of_pods("usual")),
        ("no default", None, None, false, 0, Value::Null),
    ];
    for (name, own, pods, has_default, value, class) in cases {
        let mut world = World::new(Settings::default());
        world.class("gold", 100);
        world.pod_class("pods", 7, false);
        if has_default {
            world.pod_class("usual", 3, true);
            world.pod_class("usual-too", 5, true);
        }
        let (mut meta, mut spec) = (queued(), job_spec(1, 1));
        if let Some(own) = own {
            meta["labels"]["kueue.x-k8s.io/priority-class"] = own.into();
        }
        if let Some(pods) = pods {
            spec["template"]["spec"]["priorityClassName"] = pods.into();
        }
        world.create(Kind::Job, "a", meta, spec);
        world.settle();
        assert_eq!(world.workload()["spec"]["priority"], value, "{name}");
        assert_eq!(world.workload()["spec"]["priorityClassRef"], class, "{name}");
    }
}

// rule: queueing 3.2.3
#[test]
fn a_class_that_is_missing_is_told_once_and_waited_for() {
    let mut meta = queued();
    meta["labels"]["kueue.x-k8s.io/priority-class"] = "gold".into();
    let (mut world, key) = job_with(Settings::default(), meta, job_spec(1, 1));
    assert_eq!(world.workload_names(), Vec::<String>::new());
    assert_eq!(world.waiting(&key), Some(Waiting::PriorityClassMissing("gold".into())));
    let told = "!WorkloadPriorityClassNotFound workloadpriorityclasses.kueue.x-k8s.io \"gold\" \
                not found";
    assert_eq!(world.events(), [told]);
    world.edit_job(&key, |job| job["metadata"]["labels"]["more"] = "x".into());
    world.settle();
    assert_eq!(world.events(), Vec::<String>::new());
    world.class("gold", 9);
    world.settle();
    assert_eq!(world.workload()["spec"]["priority"], 9);
}

// rule: queueing 3.2.3
#[test]
fn a_class_of_pods_that_is_missing_is_told_and_waited_for() {
    let mut spec = job_spec(1, 1);
    spec["template"]["spec"]["priorityClassName"] = "pods".into();
    let (mut world, key) = job_with(Settings::default(), queued(), spec);
    assert_eq!(world.workload_names(), Vec::<String>::new());
    assert_eq!(world.waiting(&key), Some(Waiting::PodClassMissing("pods".into())));
    let told = "!PriorityClassNotFound priorityclasses.scheduling.k8s.io \"pods\" not found";
    assert_eq!(world.events(), [told]);
    world.pod_class("pods", 4, false);
    world.settle();
    assert_eq!(world.workload()["spec"]["priority"], 4);
}

#[test]
fn a_job_whose_pods_still_run_gets_its_workload_when_they_are_gone() {
    let mut world = World::new(Settings::default());
    world.create(Kind::Job, "a", json!({}), job_spec(1, 1));
    let key = job_key("a");
    world.edit_job(&key, |job| {
        job["status"] = json!({"active": 1});
        job["metadata"]["labels"] = queued()["labels"].clone();
    });
    world.settle();
    assert_eq!(world.waiting(&key), Some(Waiting::PodsActive));
    assert!(world.driver.next_due().is_some(), "it is looked at again without being told");
    world.edit_job(&key, |job| job["status"] = json!({"active": 0}));
    world.settle();
    assert_eq!(world.workload_names().len(), 1);
}

#[test]
fn an_elastic_job_is_warned() {
    let mut meta = queued();
    meta["annotations"] = json!({"kueue.x-k8s.io/elastic-job": "true"});
    let (mut world, _) = job_with(Settings::default(), meta, job_spec(1, 1));
    assert!(world.events()[1].starts_with("!ElasticJobNotImplemented"));
}

#[test]
fn annotations_of_the_job_reach_its_workload_later_too() {
    let (mut world, key) = one_job();
    world.edit_job(&key, |job| {
        job["metadata"]["annotations"] =
            json!({"lockstep.dev/pods-ready-timeout": "1m", "kueue.x-k8s.io/admission-gated-by": "x"});
    });
    world.settle();
    let annotations = world.workload()["metadata"]["annotations"].clone();
    assert_eq!(annotations["lockstep.dev/pods-ready-timeout"], "1m");
    assert_eq!(annotations["kueue.x-k8s.io/admission-gated-by"], "x");
    world.edit_job(&key, |job| job["metadata"]["annotations"] = json!({}));
    world.settle();
    let annotations = &world.workload()["metadata"]["annotations"];
    assert_eq!(annotations["kueue.x-k8s.io/admission-gated-by"], Value::Null, "the gate is open");
    assert_eq!(annotations["lockstep.dev/pods-ready-timeout"], "1m", "may be the workload's own");
}
