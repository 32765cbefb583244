//! When a workload comes back.

use super::*;

fn evicted() -> World {
    let mut world = World::new().admitted();
    world.later(300);
    world.settle();
    world
}

// rule: queueing 2.7.1
// rule: queueing 2.7.2
#[test]
fn who_was_evicted_comes_back_after_a_while() {
    let mut world = evicted();
    assert_eq!(world.rest().next, Some(at(1360)));
    world.released();
    world.later(59);
    let plan = world.rest();
    assert_eq!(plan.waiting, Some(Waiting::BackOff { until: at(1360) }));
    assert_eq!(world.said(conditions::REQUEUED).0, "False");
    world.later(1);
    world.settle();
    assert_eq!(
        world.said(conditions::REQUEUED),
        ("True", "BackoffFinished", "The workload backoff was finished",)
    );
    let state = world.requeue_state().expect("the count stays");
    assert_eq!((state.count, state.requeue_at.is_none()), (Some(1), true));
}

#[test]
fn a_job_that_stops_late_does_not_wait_again() {
    let mut world = evicted();
    world.later(1000);
    world.settle();
    assert!(world.requeue_state().expect("a state").requeue_at.is_some(), "it still holds quota");
    world.released();
    world.settle();
    assert_eq!(world.said(conditions::REQUEUED).0, "True");
}

// rule: queueing 2.5.4
#[test]
fn each_time_takes_longer_and_no_time_goes_back() {
    let mut world = World::new();
    let mut waits = Vec::new();
    for _ in 0..4 {
        world = world.admitted();
        world.say(conditions::EVICTED, false, "QuotaReserved");
        world.later(300);
        world.settle();
        let at = world.requeue_state().and_then(|state| state.requeue_at.clone()).expect("a time");
        waits.push(at.0.as_second() - world.now.as_second());
        world.released();
        world.later(10_000);
        world.settle();
    }
    assert_eq!(waits, [60, 120, 240, 480]);
    let mut world = World::new().admitted();
    world.later(300);
    // Somebody has asked for a later time meanwhile, which has not come when it is evicted.
    world.status().requeue_state =
        Some(RequeueState { count: None, requeue_at: Some(k8s_time(at(1300))) });
    world.around.wait.as_mut().expect("waits").requeuing =
        Requeuing { base: Duration::ZERO, ..Requeuing::default() };
    world.settle();
    let known = world.requeue_state().and_then(|state| state.requeue_at.clone());
    assert_eq!(known.map(|known| known.0), Some(at(1300)));
}

// rule: queueing 2.5.1
// rule: queueing 2.5.2
#[test]
fn who_has_come_back_too_often_is_deactivated() {
    for limit in 0..3 {
        let mut world = World::new();
        world.around.wait.as_mut().expect("waits").requeuing.limit = Some(limit);
        for _ in 0..limit {
            world = world.admitted();
            world.say(conditions::EVICTED, false, "QuotaReserved");
            world.later(300);
            world.settle();
            assert_eq!(world.said(conditions::EVICTED).1, evicted::PODS_READY_TIMEOUT);
            world.released();
            world.later(10_000);
            world.settle();
        }
        world = world.admitted();
        world.say(conditions::EVICTED, false, "QuotaReserved");
        world.events.clear();
        world.later(300);
        let Step::WriteStatus(first) = world.plan().steps.remove(0) else { panic!("a write") };
        let target = first.condition(conditions::DEACTIVATION_TARGET).expect("a target");
        assert_eq!(
            (target.status.as_str(), target.reason.as_str(), target.message.as_str()),
            (
                "True",
                "RequeuingLimitExceeded",
                "exceeding the maximum number of re-queuing retries"
            ),
        );
        assert!(!first.is_true(conditions::EVICTED), "that comes after");
        world.settle();
        assert_eq!(world.workload.spec.active, Some(false));
        let words = "The workload is deactivated due to exceeding the maximum number of \
                     re-queuing retries";
        let reason = "DeactivatedDueToRequeuingLimitExceeded";
        assert_eq!(world.said(conditions::EVICTED), ("True", reason, words));
        let told = "EvictedDueToDeactivatedDueToRequeuingLimitExceeded";
        assert_eq!(world.events, [Event::normal(told, words)]);
        let status = world.workload.status.as_ref().expect("a status");
        assert!(status.condition(conditions::DEACTIVATION_TARGET).is_none());
        assert_eq!(status.requeue_state, None);
        let stats = &status.scheduling_stats.as_ref().expect("statistics").evictions;
        let last = stats.last().expect("one");
        assert_eq!(
            (last.reason.as_str(), last.underlying_cause.as_str()),
            ("Deactivated", "RequeuingLimitExceeded"),
        );
    }
}

// rule: queueing 2.9.1
#[test]
fn readiness_does_not_reset_the_count() {
    let mut world = evicted();
    world.released();
    world.later(10_000);
    world.settle();
    let mut world = world.admitted();
    world.say(conditions::EVICTED, false, "QuotaReserved");
    world.say(conditions::PODS_READY, true, "Started");
    world.later(10_000);
    world.settle();
    assert_eq!(world.requeue_state().and_then(|state| state.count), Some(1));
    world.workload.spec.active = Some(false);
    world.settle();
    assert_eq!(world.requeue_state(), None);
}

// rule: queueing 2.9.2
#[test]
fn who_was_deactivated_comes_back_when_made_active() {
    for limit in [None, Some(0)] {
        let mut world = World::new().admitted();
        world.around.wait.as_mut().expect("waits").requeuing.limit = limit;
        if limit.is_some() {
            world.later(300);
        } else {
            world.workload.spec.active = Some(false);
        }
        world.settle();
        world.released();
        world.settle();
        assert_eq!(world.said(conditions::REQUEUED).0, "False");
        world.workload.spec.active = Some(true);
        world.settle();
        let want = ("True", "Reactivated", "The workload was reactivated");
        assert_eq!(world.said(conditions::REQUEUED), want, "limit {limit:?}");
        let want = ("False", "PendingEvaluation");
        let (status, reason, _) = world.said(conditions::QUOTA_RESERVED);
        assert_eq!((status, reason), want);
        assert_eq!(world.workload.spec.active, Some(true), "it is not deactivated again");
    }
}

#[test]
fn who_was_preempted_is_not_kept_out() {
    let mut world = World::new().admitted();
    world.say(conditions::EVICTED, true, evicted::PREEMPTED);
    world.released();
    world.say(conditions::REQUEUED, true, evicted::PREEMPTED);
    let before = world.workload.clone();
    world.settle();
    assert_eq!(world.workload.status, before.status);
}
