//! What becomes of a workload, pass by pass.

mod deactivating;
mod late_together;
mod queues;
mod requeuing;
mod together;
mod waiting;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, OwnerReference};
use lockstep_api::kueue::{
    Admission, PriorityClassRef, RequeueState, Requeuing, WaitForPodsReady, Workload,
    WorkloadPriorityClass, WorkloadStatus,
};
use lockstep_api::reasons::kueue::{evicted, quota_reserved, workload as conditions};

use super::*;
use crate::plan::queue::{LocalQueueAround, QueueAround, Stop};
use crate::plan::{Event, Key, Refusal, RefusalKind};

/// A workload, its queues, and a clock.
struct World {
    workload: Workload,
    around: Around,
    options: Options,
    company: Company,
    priority: Option<i32>,
    now: Timestamp,
    events: Vec<Event>,
    is_deleted: bool,
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn local(stop: Stop) -> LocalQueueAround {
    LocalQueueAround::There { stop, is_terminating: false, is_active: stop == Stop::No }
}

fn wait(timeout: u64) -> WaitForPodsReady {
    WaitForPodsReady {
        timeout: Duration::from_secs(timeout),
        recovery_timeout: Some(Duration::from_secs(timeout)),
        ..WaitForPodsReady::default()
    }
}

impl World {
    fn new() -> Self {
        let mut workload = Workload::default();
        workload.metadata.name = Some("w".to_owned());
        workload.metadata.namespace = Some("ns".to_owned());
        workload.metadata.uid = Some("uid".to_owned());
        workload.metadata.generation = Some(3);
        workload.metadata.resource_version = Some("1".to_owned());
        workload.metadata.owner_references = Some(vec![OwnerReference::default()]);
        "lq".clone_into(&mut workload.spec.queue_name);
        let cluster_queue = QueueAround {
            name: "cq".to_owned(),
            is_missing: false,
            stop: Stop::No,
            is_terminating: false,
            is_active: true,
        };
        let around = Around {
            local_queue: local(Stop::No),
            cluster_queue: Some(cluster_queue),
            is_admitting: false,
            is_found: false,
            wait: Some(wait(300)),
        };
        Self {
            workload,
            around,
            options: Options::default(),
            company: Company::default(),
            priority: None,
            now: at(1000),
            events: Vec::new(),
            is_deleted: false,
        }
    }

    fn queue(&mut self) -> &mut QueueAround {
        self.around.cluster_queue.as_mut().expect("a queue")
    }

    fn status(&mut self) -> &mut WorkloadStatus {
        self.workload.status.get_or_insert_default()
    }

    fn say(&mut self, kind: &str, is_true: bool, reason: &str) {
        let now = self.now;
        self.status().say((kind, is_true), (reason, "words"), Some(3), now);
    }

    /// The workload holds quota and may run, as of now.
    fn admitted(mut self) -> Self {
        self.status().admission =
            Some(Admission { cluster_queue: "cq".to_owned(), ..Admission::default() });
        self.say(conditions::QUOTA_RESERVED, true, quota_reserved::RESERVED);
        self.say(conditions::ADMITTED, true, "Admitted");
        self
    }

    /// What a job does when it has stopped.
    fn released(&mut self) {
        let evicted = self.condition(conditions::EVICTED).clone();
        let now = self.now;
        let status = self.status();
        status.admission = None;
        status.say(
            (conditions::QUOTA_RESERVED, false),
            (quota_reserved::PENDING_EVALUATION, &evicted.message),
            None,
            now,
        );
        status.add_execution_time(now);
        status.say((conditions::ADMITTED, false), ("NoReservation", ""), None, now);
        status.say((conditions::REQUEUED, false), (&evicted.reason, &evicted.message), None, now);
    }

    fn plan(&self) -> Plan {
        let Self { around, options, now, company, priority, .. } = self;
        let (now, company, priority) = (*now, *company, *priority);
        plan(&self.workload, &Scene { around, company, priority, options, now, chance: 0.0 })
    }

    /// Carries out plans until one has nothing to do.
    fn settle(&mut self) {
        let _nothing = self.rest();
    }

    /// Carries out plans until one has nothing to do, and returns that one.
    fn rest(&mut self) -> Plan {
        for _ in 0..10 {
            let plan = self.plan();
            if !plan.steps.iter().any(Step::is_change) {
                assert!(plan.waiting.is_some(), "nothing to do, and no reason");
                return plan;
            }
            for step in plan.steps {
                match step {
                    Step::WriteStatus(status) => self.workload.status = Some(*status),
                    Step::Deactivate => self.workload.spec.active = Some(false),
                    Step::SetPriority(value) => self.workload.spec.priority = Some(value),
                    Step::RemoveFinalizer => self.workload.metadata.finalizers = None,
                    Step::Delete => {
                        self.is_deleted = true;
                        return Plan::default();
                    }
                    Step::Emit(event) => self.events.push(event),
                    Step::Note(_) => {}
                }
            }
        }
        panic!("there is always something to do: {:?}", self.workload.status);
    }

    fn condition(&self, kind: &str) -> &Condition {
        let status = self.workload.status.as_ref().expect("a status");
        status.condition(kind).unwrap_or_else(|| panic!("{kind} of {status:?}"))
    }

    /// Status, reason and message of a condition.
    fn said(&self, kind: &str) -> (&str, &str, &str) {
        let Condition { status, reason, message, .. } = self.condition(kind);
        (status, reason, message)
    }

    fn requeue_state(&self) -> Option<&RequeueState> {
        self.workload.status.as_ref()?.requeue_state.as_ref()
    }

    fn later(&mut self, seconds: i64) {
        self.now = at(self.now.as_second() + seconds);
    }
}

#[test]
fn a_pass_over_what_has_not_changed_is_not_asked_for() {
    let world = World::new().admitted();
    let mut driver = Workloads::new(Options::default());
    let workload = Arc::new(world.workload.clone());
    driver.seen(&workload, world.now);
    let around = |_: &Workload| world.around.clone();
    let (key, plan) = driver.next((world.now, 0.0), around).expect("a pass");
    assert_eq!((key.to_string().as_str(), plan.steps), ("ns/w", Vec::new()));
    assert_eq!(driver.done(&key, world.now), Some(Ended::Success));
    assert_eq!(driver.next_due(), Some(at(1300)), "the pods have until then");
    driver.seen(&workload, world.now);
    assert_eq!(driver.next_due(), Some(at(1300)), "nothing is new");
    driver.touch(&key, world.now);
    assert_eq!(driver.next_due(), Some(world.now), "its queue is");
    driver.gone(&key, "uid", world.now);
    assert_eq!(driver.next_due(), None);
}

#[test]
fn a_version_that_was_refused_is_not_decided_on_again() {
    let mut world = World::new().admitted();
    world.later(300);
    let mut driver = Workloads::new(Options::default());
    driver.seen(&Arc::new(world.workload.clone()), world.now);
    let around = |_: &Workload| world.around.clone();
    let (key, plan) = driver.next((world.now, 0.0), around).expect("a pass");
    assert!(matches!(plan.steps[0], Step::WriteStatus(_)));
    let refusal = Refusal { kind: RefusalKind::Conflict, message: String::new() };
    assert_eq!(driver.refused(&key, &refusal, world.now), None);
    driver.done(&key, world.now);
    let due = driver.next_due().expect("another pass");
    assert!(due > world.now);
    let mut newer = world.workload.clone();
    newer.metadata.resource_version = Some("2".to_owned());
    driver.seen(&Arc::new(newer), world.now);
    let (key, plan) = driver.next((world.now, 0.0), around).expect("a pass");
    assert_eq!(key, Key { namespace: "ns".to_owned(), name: "w".to_owned() });
    assert!(matches!(plan.steps[0], Step::WriteStatus(_)));
}

// rule: queueing 3.10.2
#[test]
fn what_comes_first_is_done_first() {
    let mut world = World::new().admitted();
    world.later(1000);
    world.workload.spec.maximum_execution_time_seconds = Some(1);
    world.queue().stop = Stop::HoldAndDrain;
    world.around.local_queue = local(Stop::HoldAndDrain);
    world.status().requeue_state =
        Some(RequeueState { count: Some(1), requeue_at: Some(k8s_time(at(5000))) });
    let mut order = Vec::new();
    let mut note =
        |world: &World, what: &str| order.push(format!("{what}: {:?}", world.plan().waiting));
    note(&world, "back-off");
    world.status().requeue_state = None;
    world.settle();
    assert_eq!(world.said(conditions::EVICTED).1, evicted::LOCAL_QUEUE_STOPPED);
    world.workload.spec.active = Some(false);
    world.settle();
    assert_eq!(world.requeue_state(), None);
    note(&world, "inactive");
    world.say(conditions::FINISHED, true, "Succeeded");
    note(&world, "finished");
    world.workload.metadata.deletion_timestamp = Some(k8s_time(at(1)));
    note(&world, "deleted");
    assert_eq!(
        order,
        [
            "back-off: Some(BackOff { until: 1970-01-01T01:23:20Z })",
            "inactive: Some(Inactive)",
            "finished: Some(Finished)",
            "deleted: Some(BeingDeleted)",
        ]
    );
}

fn k8s_time(at: Timestamp) -> k8s_openapi::apimachinery::pkg::apis::meta::v1::Time {
    k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(at)
}

#[test]
fn finished_workloads_are_kept_as_long_as_asked_for_whoever_made_them() {
    let owner = OwnerReference { controller: Some(true), ..OwnerReference::default() };
    let cases = [
        ("that of a job", Some(vec![owner]), "Succeeded"),
        ("an orphan", None, "OwnerNotFound"),
        ("one that was prebuilt", Some(vec![OwnerReference::default()]), "OutOfSync"),
    ];
    for (what, owners, reason) in cases {
        let mut world = World::new().admitted();
        world.workload.metadata.owner_references = owners;
        world.say(conditions::FINISHED, true, reason);
        assert_eq!(world.rest().next, None, "{what} is kept for ever");
        world.options.keep_finished = Some(Duration::from_secs(60));
        assert_eq!(world.rest().next, Some(at(1060)), "{what}");
        world.later(60);
        world.settle();
        assert!(world.is_deleted, "{what}");
    }
}

// rule: queueing 1.7.1
#[test]
fn who_names_a_class_follows_its_value_whoever_made_it() {
    let class = |value| {
        let mut class = WorkloadPriorityClass { value, ..WorkloadPriorityClass::default() };
        class.metadata.name = Some("gold".to_owned());
        class
    };
    let named = |group: &str, kind: &str| PriorityClassRef {
        group: group.to_owned(),
        kind: kind.to_owned(),
        name: "gold".to_owned(),
    };
    let ours = named("kueue.x-k8s.io", "WorkloadPriorityClass");
    let of_pods = named("scheduling.k8s.io", "PriorityClass");
    let cases = [
        ("one that waits", Some(ours.clone()), World::new(), Some(50)),
        ("one that runs", Some(ours.clone()), World::new().admitted(), Some(50)),
        ("one that names a class of pods", Some(of_pods), World::new(), Some(5)),
        ("one that names none", None, World::new(), Some(5)),
    ];
    for (what, named, world, wanted) in cases {
        let mut workload = world.workload.clone();
        workload.metadata.owner_references = None;
        workload.spec.priority_class_ref = named;
        workload.spec.priority = Some(5);
        let mut driver = Workloads::new(Options::default());
        driver.priority_class_seen(&class(5), world.now);
        driver.seen(&Arc::new(workload.clone()), world.now);
        let mut run = |driver: &mut Workloads| {
            let around = |_: &Workload| world.around.clone();
            while let Some((key, plan)) = driver.next((world.now, 0.0), around) {
                for step in plan.steps {
                    let Step::SetPriority(value) = step else { panic!("{what}: {step:?}") };
                    workload.spec.priority = Some(value);
                    workload.metadata.resource_version = Some("2".to_owned());
                    driver.written(&Arc::new(workload.clone()), world.now);
                }
                driver.done(&key, world.now);
            }
            workload.spec.priority
        };
        assert_eq!(run(&mut driver), Some(5), "{what}");
        driver.priority_class_seen(&class(50), world.now);
        assert_eq!(run(&mut driver), wanted, "{what}");
        driver.priority_class_gone("gold");
        driver.touch(&Key { namespace: "ns".to_owned(), name: "w".to_owned() }, world.now);
        assert_eq!(run(&mut driver), wanted, "{what}: it keeps what it has");
        driver.gone(&Key::of(&world.workload.metadata), "uid", world.now);
        driver.priority_class_seen(&class(7), world.now);
        assert_eq!(driver.next_due(), None, "{what}: nobody is left");
    }
    let mut world = World::new();
    world.workload.spec.priority = Some(5);
    world.priority = Some(50);
    world.say(conditions::FINISHED, true, "Succeeded");
    world.settle();
    assert_eq!(world.workload.spec.priority, Some(5), "what has ended follows nobody");
}

#[test]
fn what_has_no_owner_lets_go_of_itself() {
    let mut world = World::new();
    let finalizer = lockstep_api::labels::kueue::RESOURCE_IN_USE.to_owned();
    world.workload.metadata.finalizers = Some(vec![finalizer]);
    world.workload.metadata.deletion_timestamp = Some(k8s_time(at(1)));
    world.settle();
    assert!(world.workload.metadata.finalizers.is_some(), "that is for its job to do");
    world.workload.metadata.owner_references = None;
    world.settle();
    assert!(world.workload.metadata.finalizers.is_none());
}
