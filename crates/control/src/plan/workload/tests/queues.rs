//! What the queues of a workload mean for it.

use super::*;

// rule: queueing 1.3.7
// rule: queueing 1.3.8
// rule: queueing 1.3.11
#[test]
fn what_is_in_the_way_is_said() {
    let fine = World::new().around.cluster_queue.expect("a queue");
    let missing = QueueAround { is_missing: true, is_active: false, ..fine.clone() };
    let held = QueueAround { stop: Stop::Hold, is_active: false, ..fine.clone() };
    let inactive = QueueAround { is_active: false, ..fine.clone() };
    let ending = QueueAround { is_terminating: true, is_active: false, ..fine.clone() };
    let open = local(Stop::No);
    let gone = LocalQueueAround::Missing;
    let cases = [
        (gone, None, "Misconfigured", "LocalQueue lq doesn't exist"),
        (open, Some(missing), "Misconfigured", "ClusterQueue cq doesn't exist"),
        (local(Stop::Hold), Some(fine), "Suspended", "LocalQueue lq is inactive"),
        (open, Some(held), "Suspended", "ClusterQueue cq is inactive"),
        (open, Some(inactive), "Suspended", "ClusterQueue cq is inactive"),
        (open, Some(ending), "Suspended", "ClusterQueue cq is inactive"),
    ];
    for (local_queue, cluster_queue, reason, message) in cases {
        let mut world = World::new();
        world.around = Around { local_queue, cluster_queue, ..world.around };
        world.settle();
        assert_eq!(world.said(conditions::QUOTA_RESERVED), ("False", reason, message));
        world.around = World::new().around;
        world.settle();
        assert_eq!(
            world.said(conditions::QUOTA_RESERVED),
            (
                "False",
                "PendingEvaluation",
                "Workload is pending evaluation in the scheduling queue",
            )
        );
    }
    let mut world = World::new();
    world.gate("a.b/c");
    world.settle();
    let want = ("False", "AdmissionGated", "Admission is gated by: a.b/c");
    assert_eq!(world.said(conditions::QUOTA_RESERVED), want);
}

impl World {
    fn gate(&mut self, by: &str) {
        let gate = lockstep_api::labels::kueue::ADMISSION_GATED_BY.to_owned();
        self.workload.metadata.annotations = Some([(gate, by.to_owned())].into());
    }
}

#[test]
fn a_gate_is_told_when_it_is_seen_and_when_it_is_gone() {
    let mut world = World::new();
    world.gate("a,b");
    world.settle();
    world.gate("b");
    world.settle();
    assert_eq!(world.said(conditions::QUOTA_RESERVED).2, "Admission is gated by: b");
    let gated = Event::normal("AdmissionGated", "Workload admission is gated by: a,b");
    assert_eq!(world.events, [gated], "another gate is no news");
    world.events.clear();
    world.gate("");
    world.settle();
    let message = "AdmissionGatedBy cleared, waiting for quota reservation";
    let want = ("False", "PendingEvaluation", message);
    assert_eq!(world.said(conditions::QUOTA_RESERVED), want);
    let message = "Admission gate cleared, workload is now admissible";
    let cleared = Event::normal("AdmissionGateCleared", message);
    assert_eq!(world.events, std::slice::from_ref(&cleared));
    // Also when something else is in the way by then.
    world.gate("a");
    world.settle();
    world.events.clear();
    world.gate("");
    world.queue().is_active = false;
    world.settle();
    assert_eq!(world.said(conditions::QUOTA_RESERVED).1, "Suspended");
    assert_eq!(world.events, [cleared]);
}

#[test]
fn a_job_on_hold_stays_so_whatever_becomes_of_its_queue() {
    let mut world = World::new();
    world.say(conditions::QUOTA_RESERVED, false, quota_reserved::ON_HOLD);
    world.queue().is_active = false;
    world.settle();
    assert_eq!(world.said(conditions::QUOTA_RESERVED).1, "OnHold");
}

// rule: queueing 1.3.13
#[test]
fn a_new_workload_says_nothing_before_it_was_tried() {
    let mut world = World::new();
    world.settle();
    assert_eq!(world.workload.status, None);
}

// rule: queueing 1.3.15
#[test]
fn what_the_scheduler_said_stays() {
    for reason in [
        quota_reserved::WAITING_FOR_QUOTA,
        quota_reserved::NO_MATCHING_FLAVOR,
        quota_reserved::EXCEEDS_MAX_QUOTA,
        quota_reserved::WAITING_FOR_PREEMPTED,
        quota_reserved::WAITING_FOR_PODS_READY,
        quota_reserved::PENDING_EVALUATION,
    ] {
        let mut world = World::new();
        world.say(conditions::QUOTA_RESERVED, false, reason);
        world.settle();
        assert_eq!(world.said(conditions::QUOTA_RESERVED), ("False", reason, "words"));
    }
}

// rule: queueing 1.3.16
#[test]
fn admitted_follows_from_what_is_reserved() {
    let mut world = World::new();
    world.say(conditions::QUOTA_RESERVED, true, quota_reserved::RESERVED);
    world.settle();
    let want = ("True", "Admitted", "The workload is admitted");
    assert_eq!(world.said(conditions::ADMITTED), want);
    world.later(42);
    world.say(conditions::QUOTA_RESERVED, false, quota_reserved::WAITING_FOR_QUOTA);
    world.settle();
    let want = ("False", "NoReservation", "The workload has no reservation");
    assert_eq!(world.said(conditions::ADMITTED), want);
    assert_eq!(world.status().accumulated_past_execution_time_seconds, Some(42));
}

#[test]
fn who_is_admitted_when_its_checks_are_ready_is_told() {
    let mut world = World::new().admitted();
    world.status().conditions.retain(|known| known.type_ != conditions::ADMITTED);
    let check = lockstep_api::kueue::AdmissionCheckState {
        state: "Pending".to_owned(),
        ..Default::default()
    };
    world.status().admission_checks = vec![check];
    world.later(7);
    world.settle();
    assert_eq!(world.events, []);
    "Ready".clone_into(&mut world.status().admission_checks[0].state);
    world.settle();
    let message = "Admitted by ClusterQueue cq, wait time since reservation was 7s";
    assert_eq!(world.events, [Event::normal("Admitted", message)]);
}

#[test]
fn those_who_run_are_evicted_when_a_queue_is_drained_and_come_back_with_it() {
    let calm = World::new().around;
    let mut stopped = calm.cluster_queue.clone().expect("a queue");
    stopped.stop = Stop::HoldAndDrain;
    stopped.is_active = false;
    let cases = [
        (
            Around { local_queue: local(Stop::HoldAndDrain), ..calm.clone() },
            ("LocalQueueStopped", "The LocalQueue is stopped"),
            ("LocalQueueRestarted", "The LocalQueue was restarted after being stopped"),
        ),
        (
            Around { cluster_queue: Some(stopped), ..calm.clone() },
            ("ClusterQueueStopped", "The ClusterQueue is stopped"),
            ("ClusterQueueRestarted", "The ClusterQueue was restarted after being stopped"),
        ),
    ];
    for (around, (reason, message), (back, words)) in cases {
        let mut world = World::new().admitted();
        world.around = around;
        world.settle();
        assert_eq!(world.said(conditions::EVICTED), ("True", reason, message));
        world.released();
        world.settle();
        assert_eq!(world.said(conditions::REQUEUED).0, "False", "not while it is stopped");
        world.around = calm.clone();
        world.settle();
        assert_eq!(world.said(conditions::REQUEUED), ("True", back, words));
    }
}

#[test]
fn nothing_is_said_while_an_admission_is_being_written() {
    let mut world = World::new();
    world.say(conditions::REQUEUED, false, "ClusterQueueStopped");
    world.around.is_admitting = true;
    world.settle();
    assert_eq!(world.said(conditions::REQUEUED).0, "False");
    world.around.is_admitting = false;
    world.settle();
    assert_eq!(world.said(conditions::REQUEUED).0, "True", "it was not admitted after all");
}

#[test]
fn those_who_run_go_on_when_a_queue_only_holds() {
    let mut world = World::new().admitted();
    world.queue().stop = Stop::Hold;
    world.queue().is_active = false;
    world.settle();
    assert!(world.status().is_true(conditions::ADMITTED));
    assert!(!world.status().is_true(conditions::EVICTED));
    let mut world = World::new().admitted();
    world.status().conditions.retain(|known| known.type_ != conditions::ADMITTED);
    world.queue().stop = Stop::Hold;
    world.queue().is_active = false;
    world.settle();
    let (status, reason, _) = world.said(conditions::QUOTA_RESERVED);
    assert_eq!((status, reason), ("False", "Suspended"), "who has not begun gives way");
    assert_eq!(world.status().admission, None);
}

// What is written first; what is said of a queue that is missing follows.
#[test]
fn who_has_not_begun_gives_way_when_its_queue_is_gone() {
    let ending = LocalQueueAround::There { stop: Stop::No, is_terminating: true, is_active: false };
    let stopped = local(Stop::Hold);
    let cases = [
        (LocalQueueAround::Missing, "LocalQueue lq is terminating or missing"),
        (ending, "LocalQueue lq is terminating or missing"),
        (stopped, "LocalQueue lq is stopped"),
    ];
    for (local_queue, message) in cases {
        let mut world = World::new().admitted();
        world.around.local_queue = local_queue;
        assert!(!world.plan().steps.iter().any(Step::is_change), "who runs goes on: {message}");
        world.status().conditions.retain(|known| known.type_ != conditions::ADMITTED);
        let Step::WriteStatus(status) = world.plan().steps.remove(0) else { panic!("a write") };
        let said = status.condition(conditions::QUOTA_RESERVED).expect("it is said");
        let said = (said.status.as_str(), said.reason.as_str(), said.message.as_str());
        assert_eq!(said, ("False", "Suspended", message));
        assert_eq!(status.admission, None, "{message}");
    }
}
