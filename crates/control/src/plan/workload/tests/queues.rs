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
    let gate = lockstep_api::labels::kueue::ADMISSION_GATED_BY.to_owned();
    world.workload.metadata.annotations = Some([(gate, "a.b/c".to_owned())].into());
    world.settle();
    let want = ("False", "AdmissionGated", "Admission is gated by: a.b/c");
    assert_eq!(world.said(conditions::QUOTA_RESERVED), want);
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
