use std::sync::Arc;

use k8s_openapi::{api::batch::v1::Job, apimachinery::pkg::apis::meta::v1::Time};
use lockstep_api::{Gates, jobset::JobSet};
use serde::Deserialize;
use serde_json::{Value, json};

use super::pair;
use crate::plan::jobset::{Options, View, Waiting, plan, sets::route};

/// What a plan for this object is made of.
fn planned(spec: Value, status: Value) -> (usize, Option<Waiting>) {
    let object = json!({"metadata": {"name": "js", "namespace": "ns", "uid": "u"},
        "spec": spec, "status": status});
    let view = View::new(JobSet::deserialize(object).unwrap(), Gates::ALL);
    let plan = plan(&view, &Options::default(), "2026-11-15T12:00:00Z".parse().unwrap());
    (plan.steps.len(), plan.waiting)
}

// rule: jobset 0.3
#[test]
fn objects_that_nobody_filled_in_do_no_harm() {
    let pods = json!({"spec": {"template": {"spec": {"containers": []}}}});
    let groups = json!([{"name": "a", "template": pods}]);
    let cases = [
        json!({}),
        json!({"replicatedJobs": groups}),
        json!({"replicatedJobs": groups, "network": {}}),
        json!({"replicatedJobs": [{"name": "a"}]}),
        json!({"replicatedJobs": [{"name": "a", "replicas": -3, "template": pods}]}),
        json!({"replicatedJobs": groups, "successPolicy": {"operator": "New"},
               "startupPolicy": {"startupPolicyOrder": "New"},
               "failurePolicy": {"restartStrategy": "New", "rules": [{"action": "New"}]}}),
        json!({"replicatedJobs": [{"name": "b", "template": pods,
               "dependsOn": [{"name": "x", "status": "New"}]}]}),
    ];
    for spec in cases {
        planned(spec.clone(), json!({}));
        planned(spec, json!({"restarts": -1, "replicatedJobsStatus": [{"name": "gone"}]}));
    }
}

// rule: jobset 3.2, jobset Q19
#[test]
fn sets_that_are_not_ours_are_left_alone() {
    let (steps, waiting) = planned(json!({"managedBy": "other-controller"}), json!({}));
    assert_eq!((steps, waiting), (0, Some(Waiting::ManagedBy("other-controller".into()))));
    let ours = json!({"managedBy": "jobset.sigs.k8s.io/jobset-controller"});
    assert_eq!(planned(ours, json!({"restarts": 0})).1, Some(Waiting::Running));
    let mut world = pair(json!({}));
    world.edit(|jobset| {
        let now = "2026-11-15T12:00:00Z".parse().unwrap();
        jobset.metadata.deletion_timestamp = Some(Time(now));
    });
    world.settle();
    assert_eq!((world.asked(), world.waiting), (vec![], Some(Waiting::BeingDeleted)));
}

// rule: jobset 3.4
#[test]
fn a_job_that_belongs_nowhere_stops_the_set_and_is_named() {
    let key = |name: &str| format!("jobset.sigs.k8s.io/{name}");
    let cases = [
        (
            "restart-attempt",
            None,
            "job js-driver-0: label jobset.sigs.k8s.io/restart-attempt is \
                                   missing",
        ),
        (
            "restart-attempt",
            Some("x"),
            "job js-driver-0: label jobset.sigs.k8s.io/restart-attempt \
                                        must be a number, and is \"x\"",
        ),
        ("job-index", Some("7"), "job js-driver-0: index 7 is none of replicated job driver"),
    ];
    for (label, value, why) in cases {
        let mut world = pair(json!({}));
        world.settle();
        world.asked();
        let job = world.jobs.get_mut("js-driver-0").unwrap();
        let labels = job.metadata.labels.get_or_insert_default();
        match value {
            None => drop(labels.remove(&key(label))),
            Some(value) => drop(labels.insert(key(label), value.to_owned())),
        }
        world.settle();
        assert_eq!(world.waiting, Some(Waiting::Invalid(why.to_owned())));
        assert_eq!(world.asked(), Vec::<String>::new());
    }
    // A Job from before its label existed stays.
    let mut world = pair(json!({}));
    world.settle();
    let job = world.jobs.get_mut("js-driver-0").unwrap();
    job.metadata.labels.get_or_insert_default().remove(&key("job-restart-attempt"));
    world.settle();
    assert_eq!(world.waiting, Some(Waiting::Running));
}

// rule: jobset 3.1
#[test]
fn jobs_are_found_by_the_uid_of_their_controller() {
    let owned = |change: fn(&mut Value)| {
        let mut owner = json!({"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet",
            "name": "js", "uid": "u", "controller": true});
        change(&mut owner);
        let job = json!({"metadata": {"name": "j", "ownerReferences": [owner]}});
        route::owner(&Job::deserialize(job).unwrap()) == Some("u")
    };
    assert!(owned(|_| ()));
    assert!(!owned(|owner| owner["uid"] = "other".into()));
    assert!(!owned(|owner| owner["controller"] = false.into()));
    assert!(!owned(|owner| owner["kind"] = "Job".into()));
    assert!(!owned(|owner| owner["apiVersion"] = "jobset.x-k8s.io/v1".into()));
}

// rule: jobset Q7
#[test]
fn a_job_that_somebody_deletes_comes_back_when_it_is_gone() {
    let mut world = pair(json!({}));
    world.settle();
    world.asked();
    let job = world.jobs.get_mut("js-driver-0").unwrap();
    job.metadata.deletion_timestamp = Some(Time("2026-11-15T12:00:00Z".parse().unwrap()));
    world.settle();
    assert_eq!(world.asked(), Vec::<String>::new());
    world.collect();
    world.settle();
    assert_eq!(world.asked(), ["create js-driver-0"]);
}

#[test]
fn old_news_changes_nothing() {
    let mut world = pair(json!({}));
    world.settle();
    let old = world.jobs["js-driver-0"].clone();
    world.ready(&["js-driver-0"]);
    world.settle();
    let mut view = world.view();
    view.job_seen(Arc::new(old));
    view.job_gone("js-driver-0", "another", world.now);
    let plan = plan(&view, &world.options, world.now);
    assert_eq!(plan.steps, vec![]);
}
