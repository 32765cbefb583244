//! How many pods a Job has, which indexes they have, and which go.

use k8s_openapi::api::core::v1::Pod;
use serde_json::json;

use crate::plan::job::{
    HoldingUp, Options, Waiting,
    tests::indexed,
    world::{Luck, World, index_of, is_tracked},
};

// rule: job 2.2, job 3.14, job 3.3.12
#[test]
fn a_job_has_as_many_pods_as_it_still_needs_and_may_have() {
    // Parallelism, completions, how many have succeeded; how many are wanted then.
    let cases = [
        (json!(null), json!(null), 0, 1),
        (json!(3), json!(null), 0, 3),
        (json!(null), json!(3), 0, 1),
        (json!(0), json!(3), 0, 0),
        (json!(0), json!(null), 0, 0),
        (json!(5), json!(3), 0, 3),
        (json!(2), json!(5), 0, 2),
        (json!(2), json!(5), 2, 2),
        (json!(4), json!(5), 3, 2),
    ];
    for (parallelism, completions, succeeded, want) in cases {
        let name = format!("{parallelism} {completions} {succeeded}");
        let mut world = World::new(json!({"parallelism": parallelism, "completions": completions}));
        world.settle();
        for _ in 0..succeeded {
            let pod = world.active().remove(0);
            world.end(&pod, 0);
            world.settle();
        }
        assert_eq!(world.active().len(), want, "{name}");
        if want == 0 {
            assert_eq!(world.waiting, Some(Waiting::NoParallelism), "{name}");
        }
    }
}

// rule: job 3.14, job 3.6.8
#[test]
fn a_work_queue_drains_after_its_first_success() {
    let mut world = World::new(json!({"parallelism": 3}));
    world.settle();
    let pods = world.active();
    world.end(&pods[0], 0);
    world.settle();
    assert_eq!(world.waiting, Some(Waiting::Draining { active: 2 }));
    world.end(&pods[1], 1);
    world.settle();
    assert_eq!(
        (world.active().len(), world.status().failed),
        (1, Some(1)),
        "counted, not replaced"
    );
    world.end(&pods[2], 0);
    world.settle();
    assert!(world.is_finished());
    assert_eq!(world.status().succeeded, Some(2));
}

// rule: job 2.3, job 3.14, job 6.1.6
#[test]
fn an_indexed_job_starts_the_smallest_indexes_that_are_missing() {
    let mut world = World::new(indexed(6, json!({"parallelism": 3})));
    world.settle();
    assert_eq!(world.active_indexes(), [0, 1, 2]);
    world.end(&world.of_index(1), 0);
    world.settle();
    assert_eq!(world.active_indexes(), [0, 2, 3]);
    world.end(&world.of_index(2), 1);
    world.tick(10);
    world.settle();
    assert_eq!(world.active_indexes(), [0, 2, 3], "a failed index is tried again");
    world.end(&world.of_index(0), 0);
    world.end(&world.of_index(3), 0);
    world.settle();
    assert_eq!(world.active_indexes(), [2, 4, 5]);
    let status = world.status();
    assert_eq!(status.completed_indexes.as_deref(), Some("0,1,3"));
    assert_eq!((status.succeeded, status.failed, status.failed_indexes), (Some(3), Some(1), None));
}

// rule: job 2.2, job 2.3, job 6.1.10, job 1.2.3
#[test]
fn a_pod_is_replaced_when_it_is_deleted_or_only_when_it_has_ended() {
    for (policy, waits) in [("TerminatingOrFailed", false), ("Failed", true)] {
        for spec in [json!({}), indexed(1, json!({}))] {
            let mut spec = spec;
            spec["podReplacementPolicy"] = json!(policy);
            spec["backoffLimit"] = json!(6);
            let options =
                Options { pod_backoff_base: std::time::Duration::ZERO, ..Default::default() };
            let mut world = World::with(options, spec);
            world.settle();
            let pod = world.active().remove(0);
            world.run(&pod);
            world.settle();
            world.delete_pod(&pod);
            world.settle();
            assert_eq!(world.active().len(), usize::from(!waits), "{policy}");
            assert_eq!(world.status().terminating, Some(1), "{policy}");
            if waits {
                let Some(Waiting::PodsTerminating { holding_up, pods, .. }) = &world.waiting else {
                    panic!("{:?}", world.waiting)
                };
                assert_eq!((holding_up, pods), (&HoldingUp::Replacement, &vec![pod.clone()]));
                assert!(is_tracked(world.pod(&pod)), "not failed yet, so not counted");
            } else {
                assert_eq!(world.status().failed, Some(1), "deleted is failed");
            }
            world.end(&pod, 143);
            world.settle();
            assert_eq!(world.active().len(), 1, "{policy}");
            assert_eq!(world.status().failed, Some(1), "{policy}: once");
        }
    }
}

// rule: job 3.14, job 2.4, job 6.1.8
#[test]
fn fewer_pods_in_parallel_delete_the_surplus_and_count_nothing() {
    let mut world = World::new(json!({"parallelism": 8, "completions": 8, "backoffLimit": 2}));
    world.settle();
    let pods = world.active();
    pods[..3].iter().for_each(|pod| world.run(pod));
    world.settle();
    world.change(json!({"parallelism": 3}));
    world.settle();
    assert_eq!(world.active(), pods[..3], "the pods that run are worth more");
    world.change(json!({"parallelism": 0}));
    world.settle();
    world.end_terminating();
    world.settle();
    assert_eq!(world.active().len(), 0);
    assert_eq!((world.status().failed, world.conditions().len()), (None, 0));
}

// rule: job 3.14, job 1.6.10
#[test]
fn an_elastic_job_shrinks_and_grows() {
    let mut world = World::new(indexed(4, json!({})));
    world.settle();
    world.end(&world.of_index(3), 0);
    world.end(&world.of_index(0), 0);
    world.settle();
    world.change(json!({"completions": 2, "parallelism": 2}));
    world.settle();
    assert_eq!(world.active_indexes(), [1]);
    let status = world.status();
    assert_eq!((status.succeeded, status.completed_indexes.as_deref()), (Some(1), Some("0")));
    assert_eq!(status.failed, None);
    world.change(json!({"completions": 5, "parallelism": 5}));
    world.settle();
    assert_eq!(world.active_indexes(), [1, 2, 3, 4], "what was cut off runs again");
    world.succeed_all();
    world.settle();
    assert_eq!(world.status().completed_indexes.as_deref(), Some("0-4"));
    assert!(world.is_finished());
}

// rule: job 2.2, job 2.5
#[test]
fn a_pass_creates_and_deletes_no_more_than_it_may_and_the_next_follows_at_once() {
    let options = Options { pods_per_pass_max: 4, ..Default::default() };
    let mut world = World::with(options, json!({"parallelism": 10, "completions": 10}));
    world.pass();
    assert_eq!(world.active().len(), 4);
    world.pass();
    assert_eq!(world.active().len(), 8);
    world.settle();
    assert_eq!((world.active().len(), world.status().active), (10, Some(10)));
    world.change(json!({"parallelism": 1}));
    world.deliver(usize::MAX);
    world.pass();
    assert_eq!(world.active().len(), 6);
    world.settle();
    assert_eq!(world.active().len(), 1);
}

fn clone_of(world: &mut World, name: &str, index: Option<&str>) {
    let model = world.pods.values().next().unwrap().clone();
    world.add_pod(name, |pod| {
        pod.metadata.labels = model.metadata.labels;
        pod.metadata.owner_references = model.metadata.owner_references;
        pod.metadata.finalizers = model.metadata.finalizers;
        pod.metadata.annotations = index.map(|index| {
            [("batch.kubernetes.io/job-completion-index".to_owned(), index.to_owned())].into()
        });
    });
}

// rule: job 2.4, job 2.2
#[test]
fn pods_without_a_place_go_first() {
    let mut world = World::new(indexed(3, json!({})));
    world.settle();
    let kept = world.active();
    kept.iter().for_each(|pod| world.run(pod));
    clone_of(&mut world, "none", None);
    clone_of(&mut world, "broken", Some("one"));
    clone_of(&mut world, "negative", Some("-1"));
    clone_of(&mut world, "beyond", Some("3"));
    clone_of(&mut world, "twin", Some("1"));
    world.settle();
    assert_eq!(world.active(), kept);
    assert_eq!(world.status().failed, None);
}

/// What is so, and since when.
type Facts = &'static [(&'static str, i64)];

// rule: job 2.4
#[test]
fn of_two_pods_the_one_that_has_come_less_far_goes() {
    let change = |pod: &mut Pod, what: &str, seconds: i64| {
        let time = jiff::Timestamp::from_second(1_000_000 + seconds).unwrap();
        let time = k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(time);
        let status = pod.status.get_or_insert_default();
        match what {
            "assigned" => pod.spec.get_or_insert_default().node_name = Some("n".into()),
            "running" => status.phase = Some("Running".into()),
            "unknown" => status.phase = Some("Unknown".into()),
            "ready" => {
                status.conditions = Some(vec![k8s_openapi::api::core::v1::PodCondition {
                    type_: "Ready".into(),
                    status: "True".into(),
                    last_transition_time: Some(time),
                    ..Default::default()
                }]);
            }
            "restarted" => {
                status.container_statuses = Some(vec![Default::default()]);
                status.container_statuses.as_mut().unwrap()[0].restart_count = 1;
            }
            "created" => pod.metadata.creation_timestamp = Some(time),
            _ => unreachable!(),
        }
    };
    // What is said of the pod that stays, and of the one that goes.
    let cases: [(&str, Facts, Facts); 7] = [
        ("unassigned before assigned", &[("assigned", 0)], &[("running", 0)]),
        ("pending before unknown", &[("unknown", 0)], &[("created", 9)]),
        ("unknown before running", &[("running", 0)], &[("unknown", 0)]),
        ("not ready before ready", &[("ready", 0)], &[("created", 0)]),
        ("ready for less time", &[("ready", 1)], &[("ready", 5)]),
        ("restarted more", &[("created", 5)], &[("created", 5), ("restarted", 0)]),
        ("newer", &[("created", 1)], &[("created", 5)]),
    ];
    for (name, stays, goes) in cases {
        let mut world = World::new(json!({"parallelism": 2, "completions": 2}));
        world.settle();
        let pods = world.active();
        for (pod, what) in pods.iter().zip([stays, goes]) {
            let mut pod = world.pod(pod).clone();
            for (what, seconds) in what {
                change(&mut pod, what, *seconds);
            }
            world.put_pod(pod);
        }
        world.change(json!({"parallelism": 1}));
        world.settle();
        assert_eq!(world.active(), pods[..1], "{name}");
    }
}

// rule: job 2.5, job 3.12
#[test]
fn after_a_failed_create_the_rest_is_not_tried_and_the_status_tells_the_truth() {
    let mut world = World::new(json!({"parallelism": 10, "completions": 10}));
    world.lucks = [Luck::Fine, Luck::Refused].into();
    world.pass();
    assert_eq!(world.active().len(), 2, "one, then one of two; four were not tried");
    assert_eq!(world.events.last().unwrap().reason, "SuccessfulCreate");
    let failed = &world.events[1];
    assert_eq!((failed.reason.as_str(), failed.is_warning), ("FailedCreate", true));
    assert_eq!(failed.message, "Error creating: no luck");
    assert_eq!(world.driver.next_due(), Some(world.now + jiff::SignedDuration::from_secs(1)));
    world.tick(1);
    world.pass();
    assert_eq!(world.log[2], "status", "what has happened so far is told first");
    world.settle();
    assert_eq!((world.active().len(), world.status().active), (10, Some(10)));
    let created: Vec<(&str, u64)> = world
        .facts
        .iter()
        .filter(|fact| fact.metric.name() == "job_pods_creation_total")
        .map(|fact| (fact.values[1].as_str(), fact.count))
        .collect();
    assert_eq!(created.iter().filter(|one| **one == ("failed", 1)).count(), 1);
    assert_eq!(
        created.iter().filter(|one| **one == ("succeeded", 1)).count(),
        10,
        "no failure twice"
    );
}

// rule: job 2.4
#[test]
fn a_pod_that_was_let_go_and_not_deleted_is_tracked_again() {
    let mut world = World::new(json!({"parallelism": 2, "completions": 2}));
    world.settle();
    world.change(json!({"parallelism": 1}));
    world.deliver(usize::MAX);
    world.lucks = [Luck::Fine, Luck::Refused].into();
    world.pass();
    assert_eq!(world.active().len(), 2);
    assert_eq!(world.pods.values().filter(|pod| is_tracked(pod)).count(), 1);
    world.change(json!({"parallelism": 2}));
    let later = world.now + jiff::SignedDuration::from_secs(5);
    world.settle_until(later);
    assert!(world.pods.values().all(is_tracked));
    world.succeed_all();
    world.settle();
    assert_eq!(world.status().succeeded, Some(2));
}

// rule: job 2.1, job 6.1.17, job 3.3.11
#[test]
fn pods_of_indexes_carry_their_index_and_belong_to_no_scheduling_group() {
    let mut world = World::new(indexed(2, json!({})));
    world.settle();
    let pod = world.pod(&world.of_index(1));
    assert_eq!(index_of(pod), 1);
    assert_eq!(
        pod.metadata.labels.as_ref().unwrap()["batch.kubernetes.io/job-completion-index"],
        "1"
    );
    assert_eq!(pod.metadata.generate_name.as_deref(), Some("j-1-"));
    assert_eq!(pod.spec.as_ref().unwrap().hostname.as_deref(), Some("j-1"));
    let pod = serde_json::to_value(pod).unwrap();
    assert_eq!(pod["spec"].get("schedulingGroup"), None);
}

// rule: job 2.1
#[test]
fn pods_without_any_labels_are_not_created() {
    let mut world = World::new(json!({}));
    let mut job = world.job.clone().unwrap();
    let spec = job.spec.as_mut().unwrap();
    spec.template.metadata = None;
    spec.selector = Some(Default::default());
    world.put_job(job);
    world.settle();
    assert_eq!(world.active().len(), 0);
    let why = "unable to create pods, no labels".to_owned();
    assert_eq!(world.waiting, Some(Waiting::Invalid(why)));
}
