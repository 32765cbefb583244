use lockstep_api::jobset::JobSet;
use lockstep_api::labels::jobset::{EXCLUSIVE_TOPOLOGY, NODE_SELECTOR};
use serde_json::{Value, json};

use super::{counts, group, pair};
use crate::plan::jobset::{Options, Waiting, world::World};

const SUSPENDED: &str = "Suspended=True SuspendedJobs: jobset is suspended";

// rule: jobset 3.14
#[test]
fn a_set_that_is_created_suspended_has_all_its_jobs_and_none_runs() {
    let mut world = pair(json!({"suspend": true,
        "startupPolicy": {"startupPolicyOrder": "InOrder"}}));
    world.settle();
    assert_eq!(world.jobs.len(), 3);
    assert!(world.jobs.values().all(|job| job.spec.as_ref().unwrap().suspend == Some(true)));
    assert_eq!(world.conditions(), [SUSPENDED]);
    assert_eq!(world.events(), ["SuspendedJobs jobset is suspended"]);
    assert_eq!(counts(&world), ["workers: 0/0/0/0/2", "driver: 0/0/0/0/1"]);
    assert_eq!(world.waiting, Some(Waiting::Suspended));
    // In order, it counts as suspended until all of it has started.
    world.asked();
    world.edit(|jobset| jobset.spec.suspend = Some(false));
    world.settle();
    assert!(world.asked().contains(&"resume js-driver-0".to_owned()));
    assert_eq!(world.conditions()[0], SUSPENDED);
    world.ready(&["js-driver-0"]);
    world.settle();
    assert!(world.asked().contains(&"resume js-workers-1".to_owned()));
    world.ready(&["js-workers-0", "js-workers-1"]);
    world.settle();
    assert_eq!(world.conditions()[0], "Suspended=False ResumeJobs: jobset is resumed");
}

// rule: jobset 3.14
#[test]
fn jobs_go_on_with_the_templates_as_they_are_by_then() {
    let mut world = pair(json!({}));
    world.settle();
    world.ready(&["js-driver-0", "js-workers-0", "js-workers-1"]);
    world.settle();
    world.asked();
    world.edit(|jobset| jobset.spec.suspend = Some(true));
    world.settle();
    assert_eq!(
        world.asked(),
        ["suspend js-driver-0", "suspend js-workers-0", "suspend js-workers-1", "status", "status"]
    );
    world.edit(|jobset| {
        jobset.spec.suspend = Some(false);
        let template = &mut jobset.spec.replicated_jobs[1].template;
        let pods = &mut template.spec.as_mut().unwrap().template;
        let labels = pods.metadata.get_or_insert_default().labels.get_or_insert_default();
        labels.insert("queue".to_owned(), "q".to_owned());
        let pod = pods.spec.as_mut().unwrap();
        pod.node_selector.get_or_insert_default().insert("zone".to_owned(), "z".to_owned());
        pod.tolerations = serde_json::from_value(json!([{"key": "k", "operator": "Exists"}])).ok();
    });
    world.settle();
    // Templates may change only while a Job has no start.
    let asked = world.asked();
    assert_eq!(asked[..3], ["clear js-driver-0", "clear js-workers-0", "clear js-workers-1"]);
    assert!(asked.contains(&"resume js-workers-1".to_owned()), "{asked:?}");
    let pods = &world.jobs["js-workers-1"].spec.as_ref().unwrap().template;
    let labels = pods.metadata.as_ref().unwrap().labels.as_ref().unwrap();
    assert_eq!(
        (labels["queue"].as_str(), labels["jobset.sigs.k8s.io/jobset-name"].as_str()),
        ("q", "js")
    );
    let pod = pods.spec.as_ref().unwrap();
    assert_eq!(pod.node_selector.as_ref().unwrap()["zone"], "z");
    assert_eq!(pod.tolerations.as_ref().unwrap().len(), 1);
    assert_eq!(world.conditions(), ["Suspended=False ResumeJobs: jobset is resumed"]);
}

/// Makes the pods of the first replicated job look like this, and like nothing else.
fn dress(jobset: &mut JobSet, look: &Value) {
    let pods = &mut jobset.spec.replicated_jobs[0].template.spec.as_mut().unwrap().template;
    let mut wanted = serde_json::to_value(&*pods).unwrap();
    wanted["metadata"] = look["metadata"].clone();
    for field in ["nodeSelector", "tolerations", "schedulingGates"] {
        wanted["spec"][field] = look["spec"][field].clone();
    }
    *pods = serde_json::from_value(wanted).unwrap();
}

// rule: jobset 3.14
#[test]
fn nothing_is_left_of_a_flavor_that_a_set_was_admitted_to_before() {
    let apart = json!({EXCLUSIVE_TOPOLOGY: "rack", NODE_SELECTOR: "true"});
    for annotations in [json!({}), apart] {
        let spec = json!({"replicatedJobs": [group("driver", 1, json!({}))]});
        let mut world = World::with(Options::default(), annotations, spec);
        let look = |world: &World| {
            let pods = &world.jobs["js-driver-0"].spec.as_ref().unwrap().template;
            serde_json::to_value(pods).unwrap()
        };
        world.edit(|jobset| jobset.spec.suspend = Some(true));
        world.settle();
        let bare = look(&world);
        let first = json!({
            "metadata": {"labels": {"podset": "driver"}, "annotations": {"workload": "w"}},
            "spec": {"nodeSelector": {"zone": "a", "disk": "ssd"},
                     "tolerations": [{"key": "a", "operator": "Exists"}],
                     "schedulingGates": [{"name": "g"}]},
        });
        let second = json!({"spec": {"nodeSelector": {"zone": "b"},
                                     "tolerations": [{"key": "b", "operator": "Exists"}]}});
        for flavor in [&first, &second] {
            world.edit(|jobset| {
                jobset.spec.suspend = Some(false);
                dress(jobset, flavor);
            });
            world.settle();
            // The queue gives the set back the look that its user gave it.
            world.edit(|jobset| {
                jobset.spec.suspend = Some(true);
                dress(jobset, &json!({}));
            });
            world.settle();
        }
        let dressed = look(&world);
        assert_eq!(dressed["metadata"], bare["metadata"], "what is the set's or the Job's stays");
        let mut selector = json!({"zone": "b"});
        let own = bare["spec"]["nodeSelector"].as_object().cloned().unwrap_or_default();
        selector.as_object_mut().unwrap().extend(own);
        assert_eq!(dressed["spec"]["nodeSelector"], selector);
        let mut tolerations = vec![json!({"key": "b", "operator": "Exists"})];
        tolerations.extend(bare["spec"]["tolerations"].as_array().cloned().unwrap_or_default());
        assert_eq!(dressed["spec"]["tolerations"], json!(tolerations));
        assert_eq!(dressed["spec"]["schedulingGates"], Value::Null);
    }
}

// rule: jobset 3.12, jobset 3.14
#[test]
fn a_set_that_was_never_suspended_does_not_say_so() {
    let mut world = pair(json!({"suspend": false}));
    world.settle();
    assert_eq!(world.conditions(), Vec::<String>::new());
}

// rule: jobset 3.14
#[test]
fn what_depends_on_others_waits_even_while_suspended() {
    let waiting = json!({"dependsOn": [{"name": "driver", "status": "Ready"}]});
    let groups = json!([group("driver", 1, json!({})), group("workers", 1, waiting)]);
    let mut world = World::new(json!({"suspend": true, "replicatedJobs": groups}));
    world.settle();
    assert_eq!(world.jobs.keys().collect::<Vec<_>>(), ["js-driver-0"]);
    world.edit(|jobset| jobset.spec.suspend = Some(false));
    world.settle();
    world.ready(&["js-driver-0"]);
    world.settle();
    assert_eq!(world.jobs["js-workers-0"].spec.as_ref().unwrap().suspend, Some(false));
}

// rule: jobset 3.12
#[test]
fn a_restart_is_over_when_the_set_is_suspended() {
    let mut world = pair(json!({"failurePolicy": {"maxRestarts": 1}}));
    world.settle();
    world.fail("js-driver-0", "BackoffLimitExceeded", "");
    world.settle();
    world.edit(|jobset| jobset.spec.suspend = Some(true));
    world.settle();
    let restarting = "RestartingJobSet=False JobSetSuspended: jobset is suspended";
    assert_eq!(world.conditions(), [restarting, SUSPENDED]);
}
