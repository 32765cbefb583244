use lockstep_api::{Gates, labels::jobset as keys};
use serde_json::{Value, json};

use super::{group, pair};
use crate::plan::jobset::{Options, world::World};

fn job(world: &World, name: &str) -> Value {
    serde_json::to_value(&world.jobs[name]).unwrap()
}

// rule: jobset 2.2, jobset 3.17, jobset Q23
#[test]
fn jobs_and_pods_say_where_they_belong() {
    let mut world = World::new(json!({
        "replicatedJobs": [
            group("a", 2, json!({"groupName": "g"})),
            group("b", 1, json!({})),
            group("c", 3, json!({"groupName": "g"})),
        ],
        "coordinator": {"replicatedJob": "a", "jobIndex": 1, "podIndex": 1},
    }));
    world.settle();
    let made = job(&world, "js-c-1");
    let want = json!({
        "jobset.sigs.k8s.io/jobset-name": "js",
        "jobset.sigs.k8s.io/jobset-uid": "set",
        "jobset.sigs.k8s.io/replicatedjob-name": "c",
        "jobset.sigs.k8s.io/replicatedjob-replicas": "3",
        "jobset.sigs.k8s.io/global-replicas": "6",
        "jobset.sigs.k8s.io/job-index": "1",
        "jobset.sigs.k8s.io/job-global-index": "4",
        "jobset.sigs.k8s.io/job-key": lockstep_api::jobset::names::job_key("ns", "js-c-1"),
        "jobset.sigs.k8s.io/restart-attempt": "0",
        "jobset.sigs.k8s.io/job-restart-attempt": "0",
        "jobset.sigs.k8s.io/group-name": "g",
        "jobset.sigs.k8s.io/group-replicas": "5",
        "jobset.sigs.k8s.io/job-group-index": "3",
        "jobset.sigs.k8s.io/coordinator": "js-a-1-1.js",
    });
    for found in [
        &made["metadata"]["labels"],
        &made["metadata"]["annotations"],
        &made["spec"]["template"]["metadata"]["annotations"],
    ] {
        assert_eq!(*found, want);
    }
    let labels = &made["spec"]["template"]["metadata"]["labels"];
    assert!(want.as_object().unwrap().iter().all(|(key, value)| labels[key] == *value));
    let owner = json!([{"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "name": "js",
        "uid": "set", "controller": true, "blockOwnerDeletion": true}]);
    assert_eq!(made["metadata"]["ownerReferences"], owner);
}

// rule: jobset 2.2, jobset 3.6
#[test]
fn templates_are_kept_but_for_what_is_ours() {
    let mut one = group("a", 1, json!({}));
    one["template"]["metadata"] = json!({"labels": {"x": "y", keys::JOBSET_NAME: "liar"},
        "annotations": {"p": "q"}, "name": "ignored", "finalizers": ["a/b"]});
    one["template"]["spec"]["suspend"] = true.into();
    one["template"]["spec"]["template"]["metadata"] = json!({"labels": {"pod": "z"}});
    one["template"]["spec"]["template"]["spec"]["subdomain"] = "mine".into();
    let mut world = World::new(json!({"replicatedJobs": [one.clone()],
        "network": {"subdomain": "net"}}));
    world.settle();
    let made = job(&world, "js-a-0");
    let labels = &made["metadata"]["labels"];
    assert_eq!((&labels["x"], &labels[keys::JOBSET_NAME]), (&json!("y"), &json!("js")));
    assert_eq!(made["metadata"]["annotations"]["p"], "q");
    assert_eq!(made["metadata"].get("finalizers"), None);
    assert_eq!(made["spec"]["suspend"], false);
    let pods = &made["spec"]["template"];
    assert_eq!(
        (&pods["metadata"]["labels"]["pod"], &pods["spec"]["subdomain"]),
        (&json!("z"), &json!("net"))
    );
    let network = json!({"enableDNSHostnames": false});
    let mut world = World::new(json!({"replicatedJobs": [one], "network": network}));
    world.settle();
    assert_eq!(job(&world, "js-a-0")["spec"]["template"]["spec"]["subdomain"], "mine");
    assert!(world.service.is_none());
}

// rule: jobset 3.9, jobset Q21
#[test]
fn pods_reach_each_other_through_a_headless_service() {
    let mut world = pair(json!({"network": {"publishNotReadyAddresses": false}}));
    world.settle();
    let service = serde_json::to_value(&world.service).unwrap();
    let owner = json!([{"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "name": "js",
        "uid": "set", "controller": true, "blockOwnerDeletion": true}]);
    assert_eq!(
        service,
        json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": {"name": "js", "namespace": "ns", "ownerReferences": owner},
            "spec": {"clusterIP": "None", "publishNotReadyAddresses": false,
                     "selector": {"jobset.sigs.k8s.io/jobset-name": "js"}},
        })
    );
    world.service = None;
    world.asked();
    world.settle();
    assert_eq!(world.asked(), ["service"], "one that is deleted comes back");
}

// rule: jobset 2.3, jobset 3.6
#[test]
fn jobs_that_want_nodes_for_themselves_say_so() {
    let set = json!({keys::EXCLUSIVE_TOPOLOGY: "rack", keys::NODE_SELECTOR: "true"});
    let mut own = group("b", 1, json!({}));
    own["template"]["metadata"] = json!({"annotations": {keys::EXCLUSIVE_TOPOLOGY: "zone"}});
    let spec = json!({"replicatedJobs": [group("a", 1, json!({})), own]});
    let mut world = World::with(Options::default(), set, spec);
    world.settle();
    let made = job(&world, "js-a-0");
    for meta in [&made["metadata"], &made["spec"]["template"]["metadata"]] {
        assert_eq!(meta["annotations"][keys::EXCLUSIVE_TOPOLOGY], "rack");
        assert_eq!(meta["annotations"][keys::NODE_SELECTOR], "true");
    }
    let pod = &made["spec"]["template"]["spec"];
    assert_eq!(pod["nodeSelector"], json!({keys::NAMESPACED_JOB: "ns_js-a-0"}));
    let toleration = json!([{"key": keys::NO_SCHEDULE, "operator": "Exists",
        "effect": "NoSchedule"}]);
    assert_eq!(pod["tolerations"], toleration);
    let annotations = &job(&world, "js-b-0")["metadata"]["annotations"];
    assert_eq!(annotations[keys::EXCLUSIVE_TOPOLOGY], "zone");
}

// rule: jobset 3.6
#[test]
fn claims_are_mounted_where_a_container_names_them() {
    let mut mounting = group("a", 1, json!({}));
    mounting["template"]["spec"]["template"]["spec"]["containers"][0]["volumeMounts"] =
        json!([{"name": "data", "mountPath": "/data"}]);
    let mut world = World::new(json!({
        "replicatedJobs": [mounting, group("b", 1, json!({}))],
        "volumeClaimPolicies": [{"templates": [{"metadata": {"name": "data"}}]}],
    }));
    world.settle();
    let volumes = json!([{"name": "data", "persistentVolumeClaim": {"claimName": "data-js"}}]);
    assert_eq!(job(&world, "js-a-0")["spec"]["template"]["spec"]["volumes"], volumes);
    assert_eq!(job(&world, "js-b-0")["spec"]["template"]["spec"].get("volumes"), None);
}

// rule: jobset 3.10
#[test]
fn claims_are_made_once_and_stay_if_they_are_to() {
    let mut mounting = group("a", 1, json!({}));
    mounting["template"]["spec"]["template"]["spec"]["containers"][0]["volumeMounts"] =
        json!([{"name": "data", "mountPath": "/a"}, {"name": "kept", "mountPath": "/b"}]);
    let spec = json!({"accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}}});
    let mut world = World::new(json!({
        "suspend": true,
        "replicatedJobs": [mounting],
        "volumeClaimPolicies": [
            {"templates": [{"metadata": {"name": "data", "labels": {"a": "b"},
                                         "annotations": {"c": "d"}}, "spec": spec}]},
            {"templates": [{"metadata": {"name": "kept"}}],
             "retentionPolicy": {"whenDeleted": "Retain"}},
        ],
    }));
    world.settle();
    let owner = json!([{"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "name": "js",
        "uid": "set", "controller": true, "blockOwnerDeletion": true}]);
    let made = serde_json::to_value(&world.claims).unwrap();
    assert_eq!(made[0]["spec"], spec);
    assert_eq!(
        made[0]["metadata"],
        json!({"name": "data-js", "namespace": "ns", "ownerReferences": owner,
            "labels": {"a": "b", "jobset.sigs.k8s.io/jobset-name": "js"},
            "annotations": {"c": "d"}})
    );
    assert_eq!(
        made[1]["metadata"],
        json!({"name": "kept-js", "namespace": "ns",
            "labels": {"jobset.sigs.k8s.io/jobset-name": "js"}})
    );
    let asked = world.asked();
    assert_eq!(asked[..3], ["service", "claims", "create js-a-0"]);
    assert_eq!(asked.iter().filter(|what| *what == "claims").count(), 1);
}

// rule: jobset 3.15.1, jobset Q29
#[test]
fn jobs_that_run_grow_and_shrink_with_their_group() {
    let mut world = pair(json!({}));
    world.settle();
    world.complete("js-workers-0");
    world.settle();
    world.asked();
    world.edit(|jobset| {
        let template = &mut jobset.spec.replicated_jobs[1].template;
        let spec = template.spec.as_mut().unwrap();
        (spec.parallelism, spec.completions) = (Some(4), Some(4));
    });
    world.settle();
    assert_eq!(world.asked(), ["resize js-workers-1"], "only what has not ended");
    let spec = world.jobs["js-workers-1"].spec.as_ref().unwrap();
    assert_eq!((spec.parallelism, spec.completions), (Some(4), Some(4)));
    // What is not given is no opinion.
    world.edit(|jobset| {
        let template = &mut jobset.spec.replicated_jobs[1].template;
        let spec = template.spec.as_mut().unwrap();
        (spec.parallelism, spec.completions) = (None, None);
    });
    world.settle();
    assert_eq!(world.asked(), Vec::<String>::new());
}

// rule: jobset 0.2, jobset 2.2
#[test]
fn without_the_feature_jobs_do_not_count_their_own_restarts() {
    let gates = Gates { restart_job: false, ..Gates::ALL };
    let options = Options { gates, ..Options::default() };
    let spec = json!({"replicatedJobs": [group("a", 1, json!({}))]});
    let mut world = World::with(options, json!({}), spec);
    world.settle();
    let made = job(&world, "js-a-0");
    assert_eq!(made["metadata"]["labels"].get(keys::JOB_RESTART_ATTEMPT), None);
}
