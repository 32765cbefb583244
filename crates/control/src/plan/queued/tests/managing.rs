//! Which jobs queues have a say in.

use serde_json::{Value, json};

use super::super::world::{World, job_key, set_key};
use super::super::{Kind, Settings, Step, Waiting};
use super::{group, job_spec, one_job, queued, start};

// rule: queueing 3.1.1
#[test]
fn jobs_are_queued_by_label_and_namespace_or_all_of_them() {
    let all = Settings { manage_without_queue_name: true, ..Settings::default() };
    let no_jobs = Settings { jobs: false, ..Settings::default() };
    let selector = "team=red".parse_selector();
    let red = Settings { managed_namespaces: selector, ..Settings::default() };
    let usual = Settings::default();
    let cases: [(&str, Settings, Value, Value, Option<Waiting>); 8] = [
        ("label", usual.clone(), queued(), json!({}), None),
        ("no label", usual.clone(), json!({}), json!({}), Some(Waiting::NotQueued)),
        ("all", all, json!({}), json!({}), None),
        ("other kind", no_jobs, queued(), json!({}), Some(Waiting::KindNotManaged)),
        ("namespace", red.clone(), queued(), json!({"team": "red"}), None),
        ("other namespace", red, queued(), json!({}), Some(Waiting::NamespaceNotManaged)),
        (
            "an empty label is none",
            usual.clone(),
            json!({"labels": {"kueue.x-k8s.io/queue-name": ""}}),
            json!({}),
            Some(Waiting::NotQueued),
        ),
        (
            "system",
            usual,
            queued(),
            json!({"kubernetes.io/metadata.name": "kube-system"}),
            Some(Waiting::NamespaceNotManaged),
        ),
    ];
    for (name, settings, meta, labels, left) in cases {
        let mut world = World::new(settings);
        world.namespace("ns", labels);
        world.create(Kind::Job, "a", meta, job_spec(1, 1));
        world.settle();
        assert_eq!(world.workload_names().is_empty(), left.is_some(), "{name}");
        if left.is_some() {
            assert_eq!(world.waiting(&job_key("a")), left, "{name}");
        }
    }
}

trait Parse {
    fn parse_selector(&self) -> lockstep_api::selector::LabelSelector;
}

impl Parse for str {
    fn parse_selector(&self) -> lockstep_api::selector::LabelSelector {
        lockstep_api::selector::LabelSelector::parse(self).unwrap()
    }
}

// rule: queueing 3.1.1
#[test]
fn a_namespace_that_changes_is_looked_at_again() {
    let selector = "team=red".parse_selector();
    let red = Settings { managed_namespaces: selector, ..Settings::default() };
    let mut world = World::new(red);
    world.create(Kind::Job, "a", queued(), job_spec(1, 1));
    world.settle();
    assert_eq!(world.workload_names().len(), 0);
    world.namespace("ns", json!({"team": "red"}));
    world.settle();
    assert_eq!(world.workload_names().len(), 1);
}

#[test]
fn a_job_that_leaves_its_queue_holds_no_quota_for_nothing() {
    let leave = |job: &mut Value| job["metadata"]["labels"] = json!({});
    let (mut world, key) = one_job();
    world.edit_job(&key, leave);
    world.settle();
    assert_eq!(world.workload_names().len(), 0, "it waited");
    assert_eq!(world.waiting(&key), Some(Waiting::NotQueued));
    let (mut world, key) = one_job();
    start(&mut world);
    world.edit_job(&key, leave);
    world.settle();
    assert_eq!(world.workload_names().len(), 1, "it runs");
    world.edit_job(&key, |job| {
        job["status"] = json!({"conditions": [{"type": "Complete", "status": "True"}]});
    });
    world.settle();
    assert!(world.condition("Finished").starts_with("True Succeeded"));
}

fn owned(world: &World, key: &super::JobKey) -> Value {
    let owner = world.job(key);
    json!({"ownerReferences": [{
        "apiVersion": key.kind.api_version(), "kind": key.kind.as_str(), "name": key.key.name,
        "uid": owner["metadata"]["uid"], "controller": true}]})
}

/// A set that waits in a queue, and a Job of it that runs.
fn family(meta: Value) -> World {
    let mut world = World::new(Settings::default());
    world.flavor("spot", super::flavor());
    let spec = json!({"suspend": true, "replicatedJobs": [group("w", 1, json!({}))]});
    world.create(Kind::JobSet, "js", meta, spec);
    world.settle();
    let meta = owned(&world, &set_key("js"));
    let mut spec = job_spec(1, 1);
    spec["suspend"] = false.into();
    world.events();
    world.create(Kind::Job, "js-w-0", meta, spec);
    world.settle();
    world
}

// rule: queueing 3.1.2
#[test]
fn a_child_has_no_workload_and_runs_only_while_that_of_its_owner_is_admitted() {
    let mut world = family(queued());
    let child = job_key("js-w-0");
    assert_eq!(world.workload_names().len(), 1);
    assert_eq!(world.events(), ["Suspended Kueue managed child job suspended"]);
    assert_eq!(world.job(&child)["spec"]["suspend"], true);
    assert_eq!(world.waiting(&child), Some(Waiting::PartOf(set_key("js"))));
    start(&mut world);
    world.edit_job(&child, |job| job["spec"]["suspend"] = false.into());
    world.settle();
    assert_eq!(world.job(&child)["spec"]["suspend"], false);
    assert_eq!(world.events(), Vec::<String>::new());
}

// rule: queueing 3.1.2
#[test]
fn a_child_of_what_is_not_queued_is_left_alone() {
    let mut world = family(json!({}));
    let child = job_key("js-w-0");
    assert_eq!(world.job(&child)["spec"]["suspend"], false);
    assert_eq!(world.waiting(&child), Some(Waiting::NotQueued));
    world.edit_job(&set_key("js"), |set| set["metadata"]["labels"] = queued()["labels"].clone());
    world.settle();
    assert_eq!(world.job(&child)["spec"]["suspend"], true, "now it is");
}

#[test]
fn a_child_that_is_seen_before_its_owner_waits_for_it() {
    let mut world = World::new(Settings::default());
    let mut meta = queued();
    meta["ownerReferences"] = json!([{"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet",
        "name": "js", "uid": "set", "controller": true}]);
    world.create(Kind::Job, "js-w-0", meta, job_spec(1, 1));
    world.settle();
    let child = job_key("js-w-0");
    assert_eq!(world.waiting(&child), Some(Waiting::OwnerUnknown(set_key("js"))));
    world.put_job(set_key("js"), json!({
        "metadata": {"name": "js", "namespace": "ns", "uid": "set", "labels": queued()["labels"]},
        "spec": {"suspend": true, "replicatedJobs": [group("w", 1, json!({}))]},
    }));
    world.settle();
    assert_eq!(world.waiting(&child), Some(Waiting::PartOf(set_key("js"))));
}

// rule: queueing 3.1.2
#[test]
fn who_has_too_many_ancestors_or_is_its_own_is_told() {
    let mut world = World::new(Settings::default());
    let mut meta = queued();
    for at in 0..12 {
        world.create(Kind::Job, &format!("j{at}"), meta, job_spec(1, 1));
        meta = owned(&world, &job_key(&format!("j{at}")));
    }
    world.settle();
    assert_eq!(world.waiting(&job_key("j10")), Some(Waiting::PartOf(job_key("j0"))));
    assert_eq!(world.waiting(&job_key("j11")), Some(Waiting::NestingTooDeep));
    let told = "!JobNestingTooDeep Terminated search for Kueue-managed Job because ancestor depth \
                exceeded limit of 10";
    assert!(world.events().contains(&told.to_owned()));
    let own = owned(&world, &job_key("j11"));
    world.edit_job(&job_key("j0"), |job| {
        job["metadata"]["ownerReferences"] = own["ownerReferences"].clone();
    });
    world.settle();
    assert_eq!(world.waiting(&job_key("j5")), Some(Waiting::PartOf(job_key("j0"))), "not its news");
    world.edit_job(&job_key("j5"), |job| job["metadata"]["labels"] = json!({"x": "y"}));
    world.settle();
    assert_eq!(world.waiting(&job_key("j5")), Some(Waiting::NestingTooDeep));
}

#[test]
fn a_child_is_stopped_only_if_the_workload_is_what_it_was_seen_as() {
    let mut world = family(queued());
    let child = job_key("js-w-0");
    world.edit_job(&child, |job| job["spec"]["suspend"] = false.into());
    let (key, plan) = world.driver.next(world.now).unwrap();
    assert_eq!(key, child);
    let [Step::PatchWorkload { patch, .. }, Step::PatchJob { .. }, Step::Emit(_)] = &plan.steps[..]
    else {
        panic!("{plan:?}");
    };
    let version = &world.workload()["metadata"]["resourceVersion"];
    let uid = &world.workload()["metadata"]["uid"];
    assert_eq!(*patch, json!({"metadata": {"uid": uid, "resourceVersion": version}}));
}
