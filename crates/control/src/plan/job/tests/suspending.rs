//! Suspending and resuming.

use lockstep_api::labels::kueue::WORKLOAD;
use serde_json::{Value, json};

use crate::plan::job::{
    HoldingUp, Waiting,
    tests::{indexed, texts},
    world::{Luck, World, has_ended, is_tracked},
};

fn suspended(world: &World) -> Option<(String, String, String)> {
    let conditions = world.status().conditions.unwrap_or_default();
    let one = conditions.into_iter().find(|one| one.type_ == "Suspended")?;
    Some((one.status, one.reason.unwrap(), one.message.unwrap()))
}

fn strings(status: &str, reason: &str, message: &str) -> (String, String, String) {
    (status.into(), reason.into(), message.into())
}

// rule: job 3.8, job 6.1.13, job 1.6.29, job 6.1.7, job 6.1.8
#[test]
fn a_running_job_is_suspended_and_resumed() {
    let mut world = World::new(json!({"parallelism": 2, "completions": 2}));
    world.settle();
    assert_eq!(suspended(&world), None, "nothing is said of what never was");
    let start = world.status().start_time.unwrap();
    let pods = world.active();
    pods.iter().for_each(|pod| world.run(pod));
    world.settle();
    world.tick(60);
    world.change(json!({"suspend": true}));
    world.log.clear();
    world.settle();
    assert_eq!(
        world.log,
        [
            "status".to_owned(),
            format!("strip {}", pods[0]),
            format!("delete {}", pods[0]),
            format!("strip {}", pods[1]),
            format!("delete {}", pods[1]),
            "status".to_owned()
        ],
        "finalizers first: these are no failures"
    );
    assert_eq!(suspended(&world), Some(strings("True", "JobSuspended", "Job suspended")));
    let status = world.status();
    assert_eq!((status.start_time, status.active, status.ready), (None, None, Some(0)));
    assert_eq!(status.terminating, Some(2));
    let Some(Waiting::PodsTerminating { holding_up: HoldingUp::Suspension, total: 2, .. }) =
        world.waiting
    else {
        panic!("{:?}", world.waiting);
    };
    world.end_terminating();
    world.settle();
    assert_eq!(world.waiting, Some(Waiting::Suspended));
    assert_eq!(world.status().failed, None);
    world.tick(60);
    world.change(json!({"suspend": false}));
    world.settle();
    assert_eq!(suspended(&world), Some(strings("False", "JobResumed", "Job resumed")));
    let again = world.status().start_time.unwrap();
    assert!(again.0 > start.0 && again.0 == world.now);
    assert_eq!(world.active().len(), 2);
    let told: Vec<String> =
        texts(&world).into_iter().filter(|text| text.contains("Job ")).collect();
    assert_eq!(told, ["Suspended Job suspended", "Resumed Job resumed"]);
}

// rule: job 3.8, job 6.1.2
#[test]
fn a_job_created_suspended_starts_when_it_is_resumed() {
    let mut world = World::new(indexed(2, json!({"suspend": true})));
    world.settle();
    assert_eq!(world.active().len(), 0);
    let status = world.status();
    assert_eq!((status.start_time, status.ready, status.terminating), (None, Some(0), Some(0)));
    assert!(status.uncounted_terminated_pods.is_some());
    world.change(json!({"suspend": false}));
    world.settle();
    assert_eq!(world.active_indexes(), [0, 1]);
    assert_eq!(world.status().start_time.unwrap().0, world.now);
}

// rule: job 3.8
#[test]
fn the_suspension_is_recorded_even_if_pods_cannot_be_deleted() {
    let mut world = World::new(json!({}));
    world.settle();
    world.change(json!({"suspend": true}));
    world.deliver(usize::MAX);
    world.lucks = [Luck::Fine, Luck::Refused].into();
    world.pass();
    assert_eq!(suspended(&world).unwrap().0, "True");
    assert_eq!(world.active().len(), 1);
    assert_eq!(world.events.last().unwrap().reason, "FailedPatch", "users are told why it stays");
    let later = world.now + jiff::SignedDuration::from_secs(5);
    world.settle_until(later);
    assert_eq!(world.active().len(), 0, "tried again");
}

// rule: job 3.8
#[test]
fn a_job_that_ends_while_it_is_suspended_is_not_marked_suspended() {
    let mut world = World::new(json!({}));
    world.settle();
    world.succeed_all();
    world.change(json!({"suspend": true}));
    world.settle();
    assert_eq!(world.conditions().last().unwrap(), "Complete/CompletionsReached");
    assert_eq!(suspended(&world), None);
    assert!(world.status().start_time.is_some());
}

// rule: job 3.8, job 3.3
#[test]
fn a_work_queue_that_is_suspended_while_it_drains_has_ended() {
    let mut world = World::new(json!({"parallelism": 3}));
    world.settle();
    let start = world.status().start_time;
    world.tick(5);
    let pods = world.active();
    world.end(&pods[0], 0);
    world.settle();
    assert_eq!(world.active().len(), 2, "they may go on");
    world.change(json!({"suspend": true}));
    world.settle();
    world.end_terminating();
    world.settle();
    assert_eq!(world.conditions().last().unwrap(), "Complete/CompletionsReached");
    assert_eq!(suspended(&world), None);
    assert_eq!((world.status().start_time, world.status().succeeded), (start, Some(1)));
    assert!(!world.events.iter().any(|event| event.reason == "Suspended"));
}

// rule: job 3.8, job 3.7
#[test]
fn the_deadline_rests_while_suspended_and_starts_anew() {
    let mut world = World::new(json!({"activeDeadlineSeconds": 10}));
    world.settle();
    world.tick(8);
    world.change(json!({"suspend": true}));
    world.settle();
    world.tick(100);
    world.settle();
    world.change(json!({"suspend": false}));
    world.settle();
    world.tick(8);
    world.settle();
    assert!(!world.conditions().iter().any(|one| one.starts_with("FailureTarget")));
    world.tick(2);
    world.settle();
    assert!(world.conditions().contains(&"FailureTarget/DeadlineExceeded".to_owned()));
}

// rule: job 1.6.29
#[test]
fn a_suspended_condition_that_somebody_wrote_by_hand_does_not_move_the_start() {
    let mut world = World::new(json!({}));
    world.settle();
    let start = world.status().start_time;
    let mut job = world.job.clone().unwrap();
    job.status.as_mut().unwrap().conditions =
        Some(vec![k8s_openapi::api::batch::v1::JobCondition {
            type_: "Suspended".into(),
            status: "False".into(),
            reason: Some("Mine".into()),
            ..Default::default()
        }]);
    world.put_job(job);
    world.tick(5);
    world.settle();
    assert_eq!(suspended(&world), Some(strings("False", "JobResumed", "Job resumed")));
    assert_eq!(world.status().start_time, start);
}

/// An Indexed Job of which the leader decides, its pods running; started by a queue if it is to be.
fn led(is_queued: bool, more: Value) -> World {
    let mut spec = indexed(3, json!({"successPolicy": {"rules": [{"succeededIndexes": "0"}]}}));
    let annotations = if is_queued { json!({WORKLOAD: "job-j-12345"}) } else { json!({}) };
    spec["template"] = json!({"metadata": {"annotations": annotations}, "spec": {
        "restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}});
    for (field, value) in more.as_object().unwrap() {
        spec[field] = value.clone();
    }
    let mut world = World::new(spec);
    world.settle();
    world.active().iter().for_each(|pod| world.run(pod));
    world.settle();
    world
}

/// Lets all pods that are asked to end do so, with exit code 0.
fn end_well(world: &mut World) {
    let names: Vec<String> = world.pods.keys().cloned().collect();
    for name in names {
        let pod = world.pod(&name);
        if pod.metadata.deletion_timestamp.is_some() && !has_ended(pod) {
            world.end(&name, 0);
        }
    }
    world.settle();
}

// rule: job 3.8
#[test]
fn success_policy_and_readmission_exits_during_an_eviction_are_no_successes() {
    for is_queued in [true, false] {
        let mut world = led(is_queued, json!({}));
        let worker = world.of_index(1);
        world.end(&worker, 0);
        world.settle();
        world.change(json!({"suspend": true}));
        world.settle();
        end_well(&mut world);
        assert_eq!(world.conditions(), ["Suspended/JobSuspended"], "the leader has not succeeded");
        let status = world.status();
        assert_eq!(status.completed_indexes.as_deref(), Some("1"), "what ended before it has");
        assert_eq!((status.succeeded, status.failed), (Some(1), None));
        world.change(json!({"suspend": false}));
        world.settle();
        assert_eq!(world.active_indexes(), [0, 2], "they run again");
        world.end(&world.of_index(0), 0);
        world.settle();
        assert!(world.conditions().contains(&"SuccessCriteriaMet/SuccessPolicy".to_owned()));
    }
}

#[test]
fn success_policy_and_readmission_nor_are_exits_of_pods_that_others_are_ending() {
    let policies = [
        json!({"podReplacementPolicy": "Failed"}),
        json!({"podFailurePolicy": {"rules": [{"action": "Ignore",
            "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]}}),
    ];
    for (policy, is_queued) in policies.iter().flat_map(|one| [(one, true), (one, false)]) {
        let mut world = led(is_queued, policy.clone());
        let leader = world.of_index(0);
        world.delete_pod(&leader);
        world.settle();
        assert!(is_tracked(world.pod(&leader)), "how it ends would count");
        world.change(json!({"suspend": true}));
        world.settle();
        end_well(&mut world);
        let has_succeeded = world.conditions().contains(&"Complete/SuccessPolicy".to_owned());
        assert_eq!(has_succeeded, !is_queued, "batch/v1 counts it: {policy}");
        if is_queued {
            assert_eq!(world.status().completed_indexes, None);
            assert_eq!(world.waiting, Some(Waiting::Suspended), "nothing is left to wait for");
        }
    }
}
