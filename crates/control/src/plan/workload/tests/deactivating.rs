//! Workloads that are made inactive.

use super::*;

// rule: queueing 3.7.1
#[test]
fn who_is_made_inactive_is_evicted() {
    let mut world = World::new().admitted();
    world.workload.spec.active = Some(false);
    world.settle();
    let words = "The workload is deactivated";
    assert_eq!(world.said(conditions::EVICTED), ("True", "Deactivated", words));
    assert_eq!(world.events, [Event::normal("EvictedDueToDeactivated", words)]);
    assert!(world.status().is_true(conditions::QUOTA_RESERVED), "until its job has stopped");
    world.released();
    world.settle();
    assert_eq!(world.said(conditions::QUOTA_RESERVED), ("False", "Deactivated", words));
    assert_eq!(world.said(conditions::REQUEUED).1, "Deactivated");
}

// rule: queueing 1.3.10
#[test]
fn one_that_never_had_quota_says_that_it_is_not_active() {
    let mut world = World::new();
    world.workload.spec.active = Some(false);
    world.settle();
    let want = ("False", "Deactivated", "The workload is deactivated");
    assert_eq!(world.said(conditions::QUOTA_RESERVED), want);
}

#[test]
fn one_that_backs_off_may_be_deactivated_and_comes_back_at_once() {
    let mut world = World::new().admitted();
    world.later(300);
    world.settle();
    world.released();
    world.workload.spec.active = Some(false);
    world.settle();
    assert_eq!(world.requeue_state(), None);
    world.workload.spec.active = Some(true);
    world.settle();
    assert_eq!(world.said(conditions::REQUEUED).0, "True");
}

#[test]
fn who_is_evicted_already_is_not_evicted_again() {
    for reason in [evicted::PODS_READY_TIMEOUT, evicted::PREEMPTED, evicted::LOCAL_QUEUE_STOPPED] {
        let mut world = World::new().admitted();
        world.say(conditions::EVICTED, true, reason);
        world.say(conditions::DEACTIVATION_TARGET, true, "RequeuingLimitExceeded");
        world.status().requeue_state = Some(RequeueState { count: Some(3), requeue_at: None });
        world.workload.spec.active = Some(false);
        world.settle();
        assert_eq!(world.said(conditions::EVICTED), ("True", reason, "words"));
        assert_eq!(world.events, []);
        assert_eq!(world.status().scheduling_stats, None, "nor is it counted again");
        assert_eq!(world.status().condition(conditions::DEACTIVATION_TARGET), None);
        assert_eq!(world.requeue_state(), None);
        world.released();
        world.settle();
        let want = ("False", "Deactivated", "The workload is deactivated");
        assert_eq!(world.said(conditions::QUOTA_RESERVED), want);
    }
}
