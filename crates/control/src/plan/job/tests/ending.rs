//! How Jobs end: which reason decides, and what becomes of their pods.

use jiff::SignedDuration;
use k8s_openapi::api::{batch::v1::JobCondition, core::v1::PodCondition};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::plan::job::{
    HoldingUp, Step, Waiting,
    tests::{indexed, texts},
    world::{Luck, World, is_tracked},
};

fn fail_on_3() -> Value {
    json!({"rules": [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [3]}}]})
}

/// The interim condition, with its message.
fn verdict(world: &World) -> String {
    let status = world.status();
    let conditions = status.conditions.iter().flatten();
    let mut interim = conditions.filter(|one| {
        one.status == "True" && ["FailureTarget", "SuccessCriteriaMet"].contains(&&*one.type_)
    });
    let one = interim.next().expect("the end is decided");
    assert_eq!(interim.next(), None, "one end");
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    format!("{} {}: {}", one.type_, text(&one.reason), text(&one.message))
}

/// A case: what it shows, the spec, the exit codes of the pods, and what is said.
type Case = (&'static str, Value, Vec<i32>, &'static str);

fn failures() -> Vec<Case> {
    let per_index = |more: Value| {
        let mut spec = indexed(2, more);
        spec["backoffLimitPerIndex"] = json!(0);
        spec
    };
    let none_failed = json!({"maxFailedIndexes": 0});
    let none_failed_in_time = json!({"maxFailedIndexes": 0, "activeDeadlineSeconds": 9});
    let first_succeeded = json!({"successPolicy": {"rules": [{"succeededIndexes": "0"}]}});
    vec![
        (
            "a rule before the limit and the deadline",
            json!({"backoffLimit": 0, "podFailurePolicy": fail_on_3(), "activeDeadlineSeconds": 9}),
            vec![3],
            "FailureTarget PodFailurePolicy: Container c for pod ns/",
        ),
        (
            "the limit before the deadline",
            json!({"backoffLimit": 0, "activeDeadlineSeconds": 9}),
            vec![1],
            "FailureTarget BackoffLimitExceeded: Job has reached the specified backoff limit",
        ),
        (
            "the deadline before failed indexes",
            per_index(none_failed_in_time),
            vec![1, 0],
            "FailureTarget DeadlineExceeded: Job was active longer than specified deadline",
        ),
        (
            "too many failed indexes before all ended",
            per_index(none_failed),
            vec![1, 0],
            "MaxFailedIndexesExceeded: Job has exceeded the specified maximal number of failed",
        ),
        (
            "failed indexes before a success policy",
            per_index(first_succeeded),
            vec![0, 1],
            "FailureTarget FailedIndexes: Job has failed indexes",
        ),
    ]
}

fn successes() -> Vec<Case> {
    let rules = json!({"rules": [{"succeededIndexes": "9"}, {"succeededIndexes": "0"}]});
    let matched = "SuccessCriteriaMet SuccessPolicy: Matched rules at index 1";
    let reached =
        "SuccessCriteriaMet CompletionsReached: Reached expected number of succeeded pods";
    let two = json!({"completions": 2, "parallelism": 2});
    vec![
        (
            "a success policy before completions",
            indexed(10, json!({"successPolicy": rules})),
            vec![0; 9],
            matched,
        ),
        ("completions", indexed(2, json!({})), vec![0, 0], reached),
        ("completions without indexes", two, vec![0, 0], reached),
        ("a work queue", json!({"parallelism": 2}), vec![0, 1], reached),
    ]
}

// rule: job 3.6, job 3.6.3, job 3.6.4, job 3.6.5, job 3.6.6, job 3.6.7, job 3.6.8, job 3.3.17
#[test]
fn of_many_reasons_to_end_the_first_in_order_decides() {
    for (name, spec, codes, want) in failures().into_iter().chain(successes()) {
        let mut world = World::new(spec);
        world.settle();
        for (pod, code) in world.active().into_iter().zip(codes) {
            world.end(&pod, code);
        }
        world.tick(10);
        world.settle();
        let got = verdict(&world);
        assert!(got.contains(want), "{name}: {got}");
    }
}

fn condition(kind: &str, status: &str) -> JobCondition {
    JobCondition {
        type_: kind.into(),
        status: status.into(),
        reason: Some("Before".into()),
        message: Some("so it was".into()),
        ..JobCondition::default()
    }
}

// rule: job 3.6.1, job 3.6.2, job 4.2
#[test]
fn what_is_decided_stays_decided() {
    let cases = [
        // The criteria were met; then every pod fails.
        ("SuccessCriteriaMet", 1, ["SuccessCriteriaMet/Before", "Complete/Before"]),
        // The Job was to fail; then every pod succeeds.
        ("FailureTarget", 0, ["FailureTarget/Before", "Failed/Before"]),
    ];
    for (kind, code, want) in cases {
        let mut world = World::new(json!({"parallelism": 2, "completions": 2, "backoffLimit": 0}));
        world.settle();
        let mut job = world.job.clone().unwrap();
        job.status.as_mut().unwrap().conditions = Some(vec![condition(kind, "True")]);
        for pod in world.active() {
            world.end(&pod, code);
        }
        world.put_job(job);
        world.settle();
        assert_eq!(world.conditions(), want, "{kind}");
    }
}

// rule: job 3.6.2, job 3.5
#[test]
fn conditions_set_to_false_by_hand_are_replaced_not_doubled() {
    let mut world = World::new(json!({"backoffLimit": 0}));
    world.settle();
    let mut job = world.job.clone().unwrap();
    let by_hand = vec![condition("FailureTarget", "False"), condition("Mine", "True")];
    job.status.as_mut().unwrap().conditions = Some(by_hand);
    world.put_job(job);
    world.fail_all();
    world.settle();
    let kinds: Vec<(String, String)> = world
        .status()
        .conditions
        .unwrap()
        .into_iter()
        .map(|one| (one.type_, one.reason.unwrap()))
        .collect();
    let want = [
        ("FailureTarget", "BackoffLimitExceeded"),
        ("Mine", "Before"),
        ("Failed", "BackoffLimitExceeded"),
    ];
    assert_eq!(kinds, want.map(|(kind, reason)| (kind.to_owned(), reason.to_owned())));
}

// rule: job 3.3.18, job 4.2, job 6.1.7
#[test]
fn a_success_is_written_down_before_any_pod_is_deleted_and_survives_a_refusal() {
    let policy = json!({"rules": [{"succeededIndexes": "0"}]});
    let mut world = World::new(indexed(8, json!({"successPolicy": policy, "backoffLimit": 6})));
    world.settle();
    let pods = world.active();
    pods.iter().for_each(|pod| world.run(pod));
    world.end(&pods[0], 0);
    world.deliver(usize::MAX);
    let (key, plan) = world.driver.next(world.now).unwrap();
    let Step::WriteStatus(write) = &plan.steps[0] else { panic!("{plan:?}") };
    let written = write.status.conditions.as_ref().unwrap();
    assert!(written.iter().any(|one| one.type_ == "SuccessCriteriaMet"));
    let delete = plan.steps.iter().position(|step| matches!(step, Step::Delete { .. }));
    assert!(delete.is_some_and(|at| at > 0));
    // The status is written, the last of the deletions is refused, and the controller dies.
    world.lucks = [Luck::Fine; 14].into_iter().chain([Luck::Refused; 4]).collect();
    world.carry_out(&key, &plan, usize::MAX);
    world.lucks.clear();
    world.restart();
    world.settle();
    world.end_terminating();
    world.settle();
    assert_eq!(world.conditions(), ["SuccessCriteriaMet/SuccessPolicy", "Complete/SuccessPolicy"]);
    let status = world.status();
    assert_eq!((status.succeeded, status.failed), (Some(1), None), "our deletions are no failures");
    assert_eq!(status.completed_indexes.as_deref(), Some("0"));
}

// rule: job 4.2, job 6.1.1
#[test]
fn the_decision_outlives_the_pod_that_made_it() {
    let mut world = World::new(json!({"podFailurePolicy": fail_on_3()}));
    world.settle();
    let pod = world.active().remove(0);
    world.end(&pod, 3);
    world.deliver(usize::MAX);
    let (key, plan) = world.driver.next(world.now).unwrap();
    world.carry_out(&key, &plan, 1);
    assert!(is_tracked(world.pod(&pod)), "written down, and no more");
    // The pod is deleted while nobody looks, and somebody takes its finalizer off.
    world.delete_pod(&pod);
    let mut gone = world.pod(&pod).clone();
    gone.metadata.finalizers = None;
    world.put_pod(gone);
    world.restart();
    world.settle();
    assert_eq!(world.conditions(), ["FailureTarget/PodFailurePolicy", "Failed/PodFailurePolicy"]);
    assert_eq!(world.status().failed, Some(1));
    assert!(world.log.contains(&"relist".to_owned()), "not seen is not gone: the API was asked");
}

// rule: job 6.1.8, job 6.1.7
#[test]
fn pods_of_a_failed_job_keep_their_finalizers_until_they_are_listed() {
    let mut world = World::new(json!({"parallelism": 3, "completions": 3, "backoffLimit": 0}));
    world.settle();
    let pods = world.active();
    pods.iter().for_each(|pod| world.run(pod));
    world.end(&pods[0], 1);
    world.deliver(usize::MAX);
    let (key, plan) = world.driver.next(world.now).unwrap();
    let Step::WriteStatus(write) = &plan.steps[0] else { panic!("{plan:?}") };
    let listed = write.status.uncounted_terminated_pods.clone().unwrap().failed.unwrap();
    assert_eq!(listed.len(), 3, "running pods fail with the Job");
    let deletes = plan.steps.iter().find_map(|step| {
        let Step::Delete { pods, strip_finalizer_first } = step else { return None };
        Some((pods.len(), *strip_finalizer_first))
    });
    assert_eq!(deletes, Some((2, false)));
    world.carry_out(&key, &plan, usize::MAX);
    world.driver.done(&key, world.now);
    world.settle();
    assert_eq!(world.status().failed, Some(3));
}

// rule: job 3.7, job 3.6.4, job 6.1.9
#[test]
fn restarts_reach_the_limit_and_failures_exceed_it() {
    // Limit, restarts of the two pods, whether the Job fails.
    let cases = [(0, [0, 0], false), (0, [1, 0], true), (2, [1, 0], false), (2, [1, 1], true)];
    for (limit, restarts, fails) in cases {
        let mut world =
            World::new(json!({"parallelism": 2, "completions": 2, "backoffLimit": limit,
            "template": {"spec": {"restartPolicy": "OnFailure",
                "containers": [{"name": "c", "image": "i"}]}}}));
        world.settle();
        for (pod, restarts) in world.active().into_iter().zip(restarts) {
            let mut pod = world.pod(&pod).clone();
            let status = pod.status.get_or_insert_default();
            status.phase = Some("Running".into());
            status.container_statuses = Some(vec![Default::default()]);
            status.container_statuses.as_mut().unwrap()[0].restart_count = restarts;
            world.put_pod(pod);
        }
        world.settle();
        let want: &[&str] = if fails { &["FailureTarget/BackoffLimitExceeded"] } else { &[] };
        assert_eq!(world.conditions(), want, "limit {limit}, restarts {restarts:?}");
    }
    for (limit, fails) in [(2, true), (3, false)] {
        let mut world =
            World::new(json!({"parallelism": 3, "completions": 3, "backoffLimit": limit}));
        world.settle();
        world.fail_all();
        world.settle();
        assert_eq!(world.is_finished(), fails, "three failures, limit {limit}");
    }
}

// rule: job 3.6.5, job 3.7, job 3.1
#[test]
fn the_deadline_counts_from_the_start_and_may_move() {
    let mut world = World::new(json!({"activeDeadlineSeconds": 10}));
    world.settle();
    let start = world.now;
    let deadline = start + SignedDuration::from_secs(10);
    assert_eq!(
        world.waiting,
        Some(Waiting::Running { active: 1, ready: 0, deadline: Some(deadline) })
    );
    assert_eq!(world.driver.next_due(), Some(deadline), "woken then, also while pods are pending");
    world.tick(9);
    world.change(json!({"activeDeadlineSeconds": 30}));
    world.settle();
    world.tick(5);
    world.settle();
    assert_eq!(world.conditions(), [""; 0]);
    world.settle_until(start + SignedDuration::from_secs(30));
    assert_eq!(world.conditions().last().unwrap(), "FailureTarget/DeadlineExceeded");
    let mut world = World::new(json!({"activeDeadlineSeconds": 0}));
    world.settle();
    assert_eq!(world.conditions(), ["FailureTarget/DeadlineExceeded", "Failed/DeadlineExceeded"]);
    assert!(world.log.iter().all(|what| !what.starts_with("create")), "no pods for no time");
}

// rule: job 3.14, job 1.6.20, job 3.3.18
#[test]
fn a_job_without_work_completes_at_once() {
    for (suspend, starts) in [(false, true), (true, false)] {
        let mut world = World::new(json!({"completions": 0, "suspend": suspend}));
        world.settle();
        assert_eq!(
            world.conditions(),
            ["SuccessCriteriaMet/CompletionsReached", "Complete/CompletionsReached"]
        );
        assert_eq!(world.status().start_time.is_some(), starts);
        let (ready, terminating) = (world.status().ready, world.status().terminating);
        assert_eq!((ready, terminating), (Some(0), Some(0)));
    }
}

// rule: job 1.6.20
#[test]
fn a_suspended_elastic_job_that_is_scaled_down_to_what_is_done_completes() {
    let mut world = World::new(indexed(3, json!({})));
    world.settle();
    world.end(&world.of_index(0), 0);
    world.settle();
    world.change(json!({"suspend": true}));
    world.settle();
    assert_eq!(world.status().start_time, None);
    world.change(json!({"completions": 1, "parallelism": 1}));
    world.settle();
    assert_eq!(world.conditions().last().unwrap(), "Complete/CompletionsReached");
    assert!(world.status().start_time.is_some());
}

// rule: job 3.15
#[test]
fn a_job_that_is_deleted_lets_its_pods_go_and_counts_those_that_ended() {
    let mut world = World::new(json!({"parallelism": 3, "completions": 5}));
    world.settle();
    let pods = world.active();
    world.end(&pods[0], 0);
    world.end(&pods[1], 1);
    world.delete_job();
    world.log.clear();
    world.settle();
    let status = world.status();
    assert_eq!((status.succeeded, status.failed, status.active), (Some(1), Some(1), Some(1)));
    assert!(!world.pods.values().any(is_tracked));
    assert!(
        world.log.iter().all(|what| !what.starts_with("create") && !what.starts_with("delete"))
    );
    assert_eq!(world.waiting, Some(Waiting::BeingDeleted));
}

/// Its node writes how a pod ends while we take the finalizer off: with thousands of them, each
/// that had to be the version we know would be tried twice.
#[test]
fn pods_of_a_job_that_is_deleted_are_let_go_in_any_version() {
    let mut world = World::new(json!({"parallelism": 2, "completions": 2}));
    world.settle();
    world.delete_job();
    let bound = |step: &Step| {
        let Step::RemoveFinalizers(pods) = step else { return 0 };
        pods.iter().filter(|pod| pod.version.is_some()).count()
    };
    world.deliver(usize::MAX);
    let steps = world.pass().expect("a pass").steps;
    let let_go = |step: &Step| matches!(step, Step::RemoveFinalizers(pods) if pods.len() == 2);
    assert!(steps.iter().any(let_go), "{steps:?}");
    assert_eq!(steps.iter().map(bound).sum::<usize>(), 0);
}

// rule: job 3.12
#[test]
fn a_job_with_more_successes_than_wanted_says_so() {
    let mut world = World::new(json!({"parallelism": 2, "completions": 2}));
    world.settle();
    world.succeed_all();
    // A third pod of the Job, from a controller that did not know better.
    let owner = world.pods.values().next().unwrap().clone();
    world.add_pod("third", |pod| {
        pod.metadata.labels = owner.metadata.labels;
        pod.metadata.owner_references = owner.metadata.owner_references;
        pod.metadata.finalizers = owner.metadata.finalizers;
    });
    world.end("third", 0);
    world.settle();
    assert_eq!(world.status().succeeded, Some(3));
    assert_eq!(
        texts(&world)[2..],
        [
            "TooManySucceededPods Too many succeeded pods running after completion count reached",
            "Completed Job completed"
        ]
    );
    let warnings: Vec<bool> = world.events[2..].iter().map(|event| event.is_warning).collect();
    assert_eq!(warnings, [true, false]);
}

// rule: job 3.3.18, job 4.2
#[test]
fn the_end_waits_for_pods_that_are_still_terminating() {
    let policy = json!({"rules": [{"succeededCount": 1}]});
    let mut world = World::new(indexed(2, json!({"successPolicy": policy})));
    world.settle();
    let (first, second) = (world.of_index(0), world.of_index(1));
    world.run(&second);
    world.end(&first, 0);
    world.settle();
    let waiting = Waiting::PodsTerminating {
        holding_up: HoldingUp::Complete,
        pods: vec![second.clone()],
        total: 1,
    };
    assert_eq!(world.waiting, Some(waiting));
    assert_eq!(
        world.waiting.as_ref().unwrap().to_string(),
        format!("1 terminating before the Job is complete: {second}")
    );
    assert_eq!(world.conditions(), ["SuccessCriteriaMet/SuccessPolicy"]);
    world.end(&second, 143);
    world.settle();
    assert_eq!(world.conditions().last().unwrap(), "Complete/SuccessPolicy");
    assert_eq!(world.status().failed, None, "on success by policy nothing more counts");
}

// rule: job 4.1, job 4.3
#[test]
fn success_policies_can_be_turned_off() {
    let policy = json!({"rules": [{"succeededCount": 1}]});
    let options = crate::plan::job::Options { job_success_policy: false, ..Default::default() };
    let mut world = World::with(options, indexed(2, json!({"successPolicy": policy})));
    world.settle();
    world.end(&world.of_index(0), 0);
    world.settle();
    assert_eq!(world.conditions(), [""; 0]);
    world.end(&world.of_index(1), 0);
    world.settle();
    assert_eq!(world.conditions(), ["SuccessCriteriaMet/", "Complete/"], "without a reason then");
}

// rule: job 3.11
#[test]
fn a_pod_that_a_rule_ignores_while_it_stops_counts_if_it_ends_otherwise() {
    let on_disruption = json!({"action": "Ignore",
        "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]});
    let mut policy = fail_on_3();
    policy["rules"].as_array_mut().unwrap().push(on_disruption);
    let spec = json!({"parallelism": 2, "completions": 2, "podFailurePolicy": policy});
    let mut world = World::new(spec);
    world.settle();
    let [evicted, fatal] = world.active().try_into().unwrap();
    world.run(&evicted);
    let mut pod = world.pod(&evicted).clone();
    pod.metadata.deletion_timestamp = Some(Time(world.now));
    let condition = json!({"type": "DisruptionTarget", "status": "True"});
    let condition = PodCondition::deserialize(condition).unwrap();
    pod.status.as_mut().unwrap().conditions = Some(vec![condition]);
    world.put_pod(pod);
    world.settle();
    // That the Job fails is seen before the end of the pod, which is no disruption after all.
    world.end(&fatal, 3);
    world.end(&evicted, 1);
    world.deliver(1);
    world.pass();
    assert!(is_tracked(world.pod(&evicted)), "nobody has seen how it ended");
    let later = world.now + SignedDuration::from_secs(60);
    world.settle_until(later);
    assert_eq!(world.conditions(), ["FailureTarget/PodFailurePolicy", "Failed/PodFailurePolicy"]);
    assert_eq!(world.status().failed, Some(2));
}
