use std::sync::Arc;

use k8s_openapi::{api::batch::v1::Job, apimachinery::pkg::apis::meta::v1::Time};
use lockstep_api::{Gates, jobset::JobSet};
use serde::Deserialize;
use serde_json::{Value, json};

use super::pair;
use crate::plan::jobset::{Options, Plan, Step, View, Waiting, plan, sets::route, world::World};

/// A plan for a set with this spec and status, read as the controller reads it.
fn planned(spec: &Value, status: &Value) -> Plan {
    let object = json!({"metadata": {"name": "js", "namespace": "ns", "uid": "u"},
        "spec": spec, "status": status});
    let view = View::new(read(&object), Gates::ALL);
    plan(&view, &Options::default(), "2026-11-15T12:00:00Z".parse().unwrap())
}

/// A set that no webhook has seen, as the controller reads it.
fn read(object: &Value) -> JobSet {
    let mut jobset = JobSet::deserialize(object).unwrap();
    jobset.fill_in();
    jobset
}

/// Two groups of one Job each, with what a definition fills in and nothing that a webhook does.
fn bare(more: Value) -> World {
    let pods = json!({"containers": [{"name": "c", "image": "i",
        "volumeMounts": [{"name": "data", "mountPath": "/data"}]}]});
    let template = json!({"spec": {"template": {"spec": pods}}});
    let group = |name: &str| json!({"name": name, "groupName": "default", "replicas": 1, "template": template});
    let mut spec = json!({"replicatedJobs": [group("a"), group("b")],
        "volumeClaimPolicies": [{"templates": [{"metadata": {"name": "data"}}]}]});
    for (key, value) in more.as_object().unwrap() {
        spec[key] = value.clone();
    }
    let filled = read(&json!({"metadata": {"name": "js"}, "spec": spec}));
    let mut world = World::new(json!({}));
    world.edit(|jobset| jobset.spec = filled.spec);
    world
}

// rule: jobset 0.3
#[test]
fn a_set_that_no_webhook_has_seen_runs_as_if_one_had() {
    for network in [Value::Null, json!({})] {
        let mut world = bare(json!({"network": network}));
        world.settle();
        let asked = ["service", "claims", "create js-a-0", "create js-b-0", "status"];
        assert_eq!(world.asked(), asked, "in any order, and with names");
        assert_eq!(world.conditions(), Vec::<String>::new());
        let service = world.service.as_ref().unwrap().spec.as_ref().unwrap();
        assert_eq!(service.publish_not_ready_addresses, Some(true));
        assert!(world.claims[0].metadata.owner_references.is_some(), "it goes with the set");
        let spec = world.jobs["js-a-0"].spec.as_ref().unwrap();
        assert_eq!(spec.completion_mode.as_deref(), Some("Indexed"));
        let pod = spec.template.spec.as_ref().unwrap();
        assert_eq!(pod.restart_policy.as_deref(), Some("OnFailure"));
        assert_eq!(pod.subdomain.as_deref(), Some("js"));
        world.complete("js-a-0");
        world.settle();
        assert_eq!(world.status().terminal_state, "", "all of them must be complete");
        world.complete("js-b-0");
        world.settle();
        assert_eq!(world.status().terminal_state, "Completed");
    }
    let rules = json!([{"name": "", "action": "RestartJobSet"}]);
    let mut world = bare(json!({"failurePolicy": {"maxRestarts": 1, "rules": rules}}));
    world.settle();
    world.fail("js-b-0", "BackoffLimitExceeded", "");
    world.settle();
    assert_eq!(world.status().conditions[0].reason, "FailurePolicy_failurePolicyRule0");
}

#[test]
fn what_nobody_can_mean_is_done_nothing_for() {
    let pods = json!({"spec": {"template": {"spec": {"containers": []}}}});
    let groups = json!([{"name": "a", "template": pods}]);
    let a = "create js-a-0";
    let cases: [(Value, &[&str]); 6] = [
        (json!({}), &["service"]),
        (json!({"replicatedJobs": groups}), &["service", a]),
        (json!({"replicatedJobs": [{"name": "a"}]}), &["service", a]),
        (
            json!({"replicatedJobs": [{"name": "a", "replicas": -3, "template": pods}]}),
            &["service"],
        ),
        // Values of a newer version: as if they were not there.
        (
            json!({"replicatedJobs": groups, "successPolicy": {"operator": "New"},
               "startupPolicy": {"startupPolicyOrder": "New"},
               "failurePolicy": {"restartStrategy": "New", "rules": [{"action": "New"}]}}),
            &["service", a],
        ),
        (
            json!({"replicatedJobs": [{"name": "b", "template": pods,
               "dependsOn": [{"name": "x", "status": "New"}]}]}),
            &["service"],
        ),
    ];
    let statuses = [json!({}), json!({"restarts": -1, "replicatedJobsStatus": [{"name": "gone"}]})];
    for (spec, want) in cases {
        for status in &statuses {
            let steps = planned(&spec, status).steps;
            let made: Vec<String> = steps.iter().flat_map(made).collect();
            assert_eq!(made, want, "{spec} {status}");
        }
    }
}

/// What a step makes, if it makes anything.
fn made(step: &Step) -> Vec<String> {
    if let Step::CreateJobs(jobs) = step {
        let names = jobs.iter().map(|job| job.metadata.name.clone().unwrap());
        return names.map(|name| format!("create {name}")).collect();
    }
    assert!(matches!(step, Step::CreateService(_) | Step::WriteStatus(_)), "{step:?}");
    let is_service = matches!(step, Step::CreateService(_));
    is_service.then(|| "service".to_owned()).into_iter().collect()
}

// rule: jobset 0.3, jobset 2.4, jobset 3.2, jobset Q19
#[test]
fn sets_that_are_not_ours_are_left_alone() {
    let plan = planned(&json!({"managedBy": "other-controller"}), &json!({}));
    assert_eq!(plan.steps, vec![]);
    assert_eq!(plan.waiting, Some(Waiting::ManagedBy("other-controller".into())));
    let ours = json!({"managedBy": "jobset.sigs.k8s.io/jobset-controller"});
    assert_eq!(
        planned(&ours, &json!({})).steps.iter().flat_map(made).collect::<Vec<_>>(),
        ["service"]
    );
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
