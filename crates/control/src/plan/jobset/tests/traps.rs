//! Traps of JobSet that whoever writes a controller falls into.

use k8s_openapi::api::core::v1::{Node, Pod};
use lockstep_api::{
    Gates,
    jobset::{JobSetStrategy, pattern_fault},
    strategy::{Json, Strategy, WriteContext},
};
use serde_json::{Value, json};

use super::{group, pair};
use crate::plan::{
    exclusive::{self, Surroundings},
    jobset::{Options, Step, Waiting, world::World},
};

const JOBSET: JobSetStrategy = JobSetStrategy::new(Gates::ALL);

fn labels(world: &World, key: &str) -> Vec<String> {
    let all = world.jobs.values().map(|job| &job.metadata.labels.as_ref().unwrap()[key]);
    all.cloned().collect()
}

/// A set with this spec as the definition alone fills it in.
fn object(spec: &Value) -> Json {
    let value = json!({"metadata": {"name": "js", "namespace": "ns"}, "spec": spec});
    let mut object = value.as_object().unwrap().clone();
    JOBSET.fill_defaults(&mut object);
    object
}

/// A set with this spec as the webhook fills it in.
fn created(spec: &Value) -> Json {
    let mut object = object(spec);
    let now = "2026-11-15T12:00:00Z".parse().unwrap();
    JOBSET.prepare_create(&mut object, &WriteContext { now, uid: "set".into(), user: "me".into() });
    object
}

fn refused(spec: &Value) -> Vec<String> {
    JOBSET.validate_create(&created(spec)).iter().map(ToString::to_string).collect()
}

// rule: jobset Q3
#[test]
fn a_coordinator_that_changes_is_known_to_jobs_made_from_then_on() {
    let spec = |name: &str| {
        json!({"replicatedJobs": [group("driver", 1, json!({})), group("workers", 2, json!({}))],
            "coordinator": {"replicatedJob": name}, "failurePolicy": {"maxRestarts": 1}})
    };
    let errors = JOBSET.validate_update(&created(&spec("workers")), &created(&spec("driver")));
    assert_eq!(errors, vec![]);
    let key = "jobset.sigs.k8s.io/coordinator";
    let mut world = World::new(spec("driver"));
    world.settle();
    world.asked();
    world.edit(|jobset| {
        jobset.spec.coordinator.as_mut().unwrap().replicated_job = "workers".to_owned();
    });
    world.settle();
    assert_eq!(world.asked(), Vec::<String>::new());
    assert_eq!(labels(&world, key), vec!["js-driver-0-0.js"; 3]);
    world.fail("js-driver-0", "BackoffLimitExceeded", "");
    world.settle();
    world.collect();
    world.settle();
    assert_eq!(labels(&world, key), vec!["js-workers-0-0.js"; 3]);
}

// rule: jobset 2.4, jobset Q13
#[test]
fn the_flag_for_node_selectors_on_a_group_alone_reaches_its_job_and_not_its_pods() {
    let (topology, flag) =
        ("alpha.jobset.sigs.k8s.io/exclusive-topology", "alpha.jobset.sigs.k8s.io/node-selector");
    let mut one = group("a", 1, json!({}));
    one["template"]["metadata"] = json!({"annotations": {flag: "true"}});
    let spec = json!({"replicatedJobs": [one]});
    let mut world = World::with(Options::default(), json!({topology: "rack"}), spec);
    world.settle();
    let job = serde_json::to_value(&world.jobs["js-a-0"]).unwrap();
    let annotations = &job["metadata"]["annotations"];
    assert_eq!((&annotations[topology], &annotations[flag]), (&json!("rack"), &json!("true")));
    let pods = &job["spec"]["template"];
    let selector = json!({"alpha.jobset.sigs.k8s.io/namespaced-job": "ns_js-a-0"});
    assert_eq!(pods["spec"]["nodeSelector"], selector);
    let toleration = json!([{"key": "alpha.jobset.sigs.k8s.io/no-schedule", "operator": "Exists",
        "effect": "NoSchedule"}]);
    assert_eq!(pods["spec"]["tolerations"], toleration);
    let annotations = &pods["metadata"]["annotations"];
    assert_eq!((&annotations[topology], annotations.get(flag)), (&json!("rack"), None));
    // So its pods are kept apart by affinity, too.
    let mut pod = json!({"metadata": pods["metadata"], "spec": pods["spec"]});
    pod["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"] = "0".into();
    pod["spec"]["priority"] = 7.into();
    let leader: Pod = serde_json::from_value(pod.clone()).unwrap();
    let mut object = pod.as_object().unwrap().clone();
    exclusive::admit(&leader, &Nothing).unwrap().apply(&mut object);
    assert!(object["spec"]["affinity"]["podAntiAffinity"].is_object());
    assert_eq!(object["metadata"]["labels"]["jobset.sigs.k8s.io/priority"], "7");
}

struct Nothing;

impl Surroundings for Nothing {
    fn pods_named(&self, _: &str) -> Vec<Pod> {
        Vec::new()
    }

    fn node(&self, _: &str) -> Option<Node> {
        None
    }
}

// rule: jobset Q16
#[test]
fn expressions_are_read_as_go_reads_them() {
    let both = ["(?i)oom", r"exit code \d+", r"^\pL", "a{2,3}", r"\bkilled\b", "(?s)a.b", r"a\{b"];
    let only_go = ["a{", "{x}", r"\Qa.b\E", "[[a]", r"\101"];
    for pattern in both.into_iter().chain(only_go) {
        assert_eq!(pattern_fault(pattern), None, "{pattern}");
    }
    let neither = [r"(a)\1", "a(?=b)", "(", "*"];
    let only_rust = ["(?x)a", "a**", r"\u0041", r"\p{Alphabetic}", "a{1001}"];
    for pattern in neither.into_iter().chain(only_rust) {
        assert!(pattern_fault(pattern).is_some(), "{pattern}");
    }
}

// rule: jobset Q17
#[test]
fn a_restart_that_is_decided_twice_is_decided_on_the_same_version() {
    let mut world = pair(json!({"failurePolicy": {"maxRestarts": 5}}));
    world.settle();
    world.fail("js-driver-0", "BackoffLimitExceeded", "");
    let decided = world.plan().steps;
    let version = |steps: &[Step]| {
        let Step::WriteStatus(write) = &steps[0] else { return None };
        Some((write.resource_version.clone(), write.status.restarts))
    };
    let known = world.jobset.metadata.resource_version.clone().unwrap();
    assert_eq!(version(&decided), Some((known.clone(), 1)));
    assert_eq!(version(&world.plan().steps), Some((known.clone(), 1)));
    decided.into_iter().for_each(|step| world.carry_out(step));
    let now = world.jobset.metadata.resource_version.clone().unwrap();
    assert_ne!(now, known, "so the second is refused");
    world.settle();
    assert_eq!(world.status().restarts, 1);
}

// rule: jobset Q22
#[test]
fn lengths_are_counted_in_bytes() {
    let name = "\u{20ac}".repeat(43);
    let rules = json!([{"name": name, "action": "FailJobSet"}]);
    let found = refused(&json!({"failurePolicy": {"rules": rules}}));
    assert!(found[0].contains("invalid failure policy rule name of length 129,"), "{found:?}");
    let manager = format!("acme.io/{}", "\u{e9}".repeat(30));
    let found = refused(&json!({"managedBy": manager}));
    let want = "spec.managedBy: Too long: may not be more than 63 bytes";
    assert!(found.contains(&want.to_owned()), "{found:?}");
}

// rule: jobset Q23
#[test]
fn numbers_in_names_and_labels_are_plain_decimals() {
    let groups = [group("a", 1000, json!({})), group("b", 12, json!({}))];
    let mut world = World::new(json!({"replicatedJobs": groups}));
    world.settle();
    let labels = world.jobs["js-b-11"].metadata.labels.as_ref().unwrap();
    let want = [
        ("job-index", "11"),
        ("job-global-index", "1011"),
        ("global-replicas", "1012"),
        ("replicatedjob-replicas", "12"),
        ("group-replicas", "1012"),
        ("job-group-index", "1011"),
        ("restart-attempt", "0"),
        ("job-restart-attempt", "0"),
    ];
    for (key, number) in want {
        assert_eq!(labels[&format!("jobset.sigs.k8s.io/{key}")], number, "{key}");
    }
}

// rule: jobset Q26
#[test]
fn when_single_restarts_are_switched_off_their_counts_vanish_and_jobs_stay() {
    let rule = json!({"name": "r", "action": "RestartJob"});
    let mut world = pair(json!({"failurePolicy": {"maxRestarts": 3, "rules": [rule]}}));
    world.settle();
    world.fail("js-workers-1", "BackoffLimitExceeded", "");
    world.settle();
    world.collect();
    world.settle();
    let counts = |world: &World| world.status().replicated_jobs_status[0].job_restarts.clone();
    let key = "jobset.sigs.k8s.io/job-restart-attempt";
    assert_eq!(
        (counts(&world), labels(&world, key)),
        (vec![0, 1], ["0", "0", "1"].map(String::from).to_vec())
    );
    world.options.gates = Gates { restart_job: false, ..Gates::ALL };
    world.asked();
    world.settle();
    assert_eq!(world.asked(), ["status"]);
    assert_eq!(counts(&world), Vec::<i32>::new());
    assert_eq!(world.waiting, Some(Waiting::Running));
    // Not even a label that is no number matters then.
    let job = world.jobs.get_mut("js-workers-0").unwrap();
    job.metadata.labels.as_mut().unwrap().insert(key.to_owned(), "x".to_owned());
    world.settle();
    assert_eq!((world.asked(), &world.waiting), (vec![], &Some(Waiting::Running)));
}

// rule: jobset Q30
#[test]
fn rules_with_an_empty_name_and_an_empty_network_pass_the_definition() {
    let rules = json!([{"name": "", "action": "FailJobSet"}]);
    let spec = json!({"network": {}, "failurePolicy": {"rules": rules}});
    // What is checked beyond the definition is checked only when that has passed.
    let found = JOBSET.validate_create(&object(&spec));
    let found: Vec<String> = found.iter().map(ToString::to_string).collect();
    let want = "<nil>: Internal error: invalid failure policy rule name of length 0, ";
    assert!(!found.is_empty() && found[0].starts_with(want), "{found:?}");
    assert!(found.iter().all(|one| one.starts_with("<nil>: Internal error: ")), "{found:?}");
    assert_eq!(refused(&spec), Vec::<String>::new(), "and then it is filled in");
}
