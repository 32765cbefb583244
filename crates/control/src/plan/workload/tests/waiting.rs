//! How long pods may take.

use lockstep_api::kueue::UnhealthyNode;
use lockstep_api::reasons::kueue::pods_ready;

use super::*;

// rule: queueing 2.4.1
#[test]
fn the_clock_of_a_start_runs_from_the_admission() {
    let mut world = World::new();
    world.say(conditions::PODS_READY, false, pods_ready::WAIT_FOR_START);
    world.later(5000);
    let mut world = world.admitted();
    assert_eq!(world.rest().next, Some(at(6300)), "not from when it was first not ready");
    world.later(299);
    world.settle();
    assert!(!world.status().is_true(conditions::EVICTED));
    world.later(1);
    world.settle();
    let words = "Exceeded the PodsReady timeout ns/w";
    assert_eq!(world.said(conditions::EVICTED), ("True", evicted::PODS_READY_TIMEOUT, words));
}

// rule: queueing 2.4.1
// rule: queueing 2.4.4
#[test]
fn the_clock_of_a_recovery_runs_from_each_loss() {
    let mut world = World::new().admitted();
    world.say(conditions::PODS_READY, true, pods_ready::STARTED);
    world.later(5000);
    assert_eq!(world.rest().next, None, "who is ready may be for ever");
    for _ in 0..3 {
        world.say(conditions::PODS_READY, false, pods_ready::WAIT_FOR_RECOVERY);
        let lost = world.now;
        assert_eq!(world.rest().next, Some(at(lost.as_second() + 300)));
        world.later(299);
        assert!(world.rest().steps.is_empty());
        world.say(conditions::PODS_READY, true, pods_ready::RECOVERED);
        assert_eq!(world.rest().next, None);
    }
    world.say(conditions::PODS_READY, false, pods_ready::WAIT_FOR_RECOVERY);
    world.later(300);
    world.settle();
    assert_eq!(world.said(conditions::EVICTED).1, evicted::PODS_READY_TIMEOUT);
    let stats = world.status().scheduling_stats.clone().expect("statistics");
    assert_eq!(stats.evictions[0].underlying_cause, pods_ready::WAIT_FOR_RECOVERY);
}

// rule: queueing 2.4.2
#[test]
fn without_a_recovery_timeout_nobody_is_evicted_for_it() {
    let mut world = World::new().admitted();
    world.say(conditions::PODS_READY, false, pods_ready::WAIT_FOR_RECOVERY);
    world.around.wait.as_mut().expect("waits").recovery_timeout = None;
    world.later(1_000_000);
    let plan = world.rest();
    assert_eq!((plan.next, world.status().is_true(conditions::EVICTED)), (None, false));
}

// rule: queueing 2.4.3
#[test]
fn who_has_only_reserved_quota_has_no_timeout() {
    let mut world = World::new().admitted();
    world.status().conditions.retain(|known| known.type_ != conditions::ADMITTED);
    world.status().admission_checks = vec![lockstep_api::kueue::AdmissionCheckState {
        name: "check".to_owned(),
        state: "Pending".to_owned(),
        ..Default::default()
    }];
    world.later(1_000_000);
    assert_eq!(world.rest().next, None);
}

#[test]
fn where_nobody_waits_for_pods_there_is_no_timeout() {
    let mut world = World::new().admitted();
    world.around.wait = None;
    world.later(1_000_000);
    assert_eq!(world.rest().next, None);
}

/// Seam: start order × ready timeout. The clock starts anew with each stage.
#[test]
fn each_stage_of_a_start_has_the_whole_time() {
    let mut world = World::new().admitted();
    world.say(conditions::PODS_READY, false, pods_ready::WAIT_FOR_START);
    world.later(299);
    world.say(conditions::STAGE, true, "Starting");
    assert_eq!(world.rest().next, Some(at(1599)));
    world.later(300);
    world.settle();
    assert_eq!(world.said(conditions::EVICTED).1, evicted::PODS_READY_TIMEOUT);
}

/// Seam: start order × ready timeout. What waits for another stage to complete is not late.
#[test]
fn a_stage_that_waits_for_the_end_of_another_has_no_clock() {
    let mut world = World::new().admitted();
    world.say(conditions::PODS_READY, false, pods_ready::WAIT_FOR_START);
    world.say(conditions::STAGE, true, "Depending");
    world.later(1_000_000);
    assert_eq!(world.rest().next, None);
    assert!(!world.status().is_true(conditions::EVICTED));
}

// rule: queueing 2.5.3
#[test]
fn an_eviction_is_one_write() {
    let mut world = World::new().admitted();
    world.status().admission_checks = vec![lockstep_api::kueue::AdmissionCheckState {
        name: "check".to_owned(),
        state: "Ready".to_owned(),
        ..Default::default()
    }];
    world.status().cluster_name = Some("far".to_owned());
    world.status().nominated_cluster_names = vec!["far".to_owned(), "near".to_owned()];
    world.status().unhealthy_nodes = vec![UnhealthyNode { name: "node".to_owned() }];
    world.later(300);
    let plan = world.plan();
    let writes = plan.steps.iter().filter(|step| step.is_change()).count();
    assert_eq!(writes, 1, "{plan:?}");
    world.settle();
    let state = world.requeue_state().expect("a state");
    assert_eq!(state.count, Some(1));
    assert_eq!(state.requeue_at.as_ref().map(|at| at.0), Some(at(1360)));
    let status = world.workload.status.clone().expect("a status");
    let counted = &status.scheduling_stats.as_ref().expect("statistics").evictions[0];
    assert_eq!(
        (counted.reason.as_str(), counted.underlying_cause.as_str(), counted.count),
        (evicted::PODS_READY_TIMEOUT, pods_ready::WAIT_FOR_START, 1),
    );
    let words = "Exceeded the PodsReady timeout ns/w";
    assert_eq!(world.events, [Event::normal("EvictedDueToPodsReadyTimeout", words)]);
    let check = &status.admission_checks[0];
    assert_eq!(check.state, "Pending");
    assert_eq!(check.message, "Reset to Pending after eviction. Previously: Ready");
    assert!(status.is_true(conditions::QUOTA_RESERVED), "quota is held until the job has stopped");
    assert!(status.is_true(conditions::ADMITTED));
    assert!(status.admission.is_some());
    assert_eq!((&status.cluster_name, status.nominated_cluster_names.len()), (&None, 0));
    assert_eq!(status.unhealthy_nodes, []);
    assert_eq!(world.condition(conditions::EVICTED).observed_generation, Some(3));
}

#[test]
fn the_whole_time_of_a_workload_is_limited() {
    let mut world = World::new().admitted();
    world.workload.spec.maximum_execution_time_seconds = Some(1000);
    world.status().accumulated_past_execution_time_seconds = Some(600);
    world.say(conditions::PODS_READY, true, pods_ready::STARTED);
    assert_eq!(world.rest().next, Some(at(1400)), "what it has run before counts");
    world.later(400);
    world.settle();
    assert_eq!(
        world.said(conditions::EVICTED),
        (
            "True",
            "DeactivatedDueToMaximumExecutionTimeExceeded",
            "The workload is deactivated due to exceeding the maximum execution time",
        )
    );
    assert_eq!(world.workload.spec.active, Some(false));
    assert_eq!(
        world.events[0],
        Event::warning(
            "MaximumExecutionTimeExceeded",
            "The maximum execution time (1000s) exceeded",
        )
    );
}

#[test]
fn who_has_had_all_its_time_has_it_again_when_made_active() {
    let mut world = World::new().admitted();
    world.workload.spec.maximum_execution_time_seconds = Some(1000);
    world.status().accumulated_past_execution_time_seconds = Some(600);
    world.say(conditions::PODS_READY, true, pods_ready::STARTED);
    world.later(400);
    let Step::WriteStatus(first) = world.plan().steps.remove(0) else { panic!("a write") };
    assert!(first.is_true(conditions::DEACTIVATION_TARGET));
    assert_eq!(first.accumulated_past_execution_time_seconds, None);
    world.settle();
    world.later(10);
    world.released();
    world.settle();
    assert_eq!(world.status().accumulated_past_execution_time_seconds, None);
    world.workload.spec.active = Some(true);
    world.settle();
    let mut world = world.admitted();
    world.say(conditions::EVICTED, false, "QuotaReserved");
    assert_eq!(world.rest().next, Some(at(2410)), "not at once");
    assert_eq!(world.workload.spec.active, Some(true));
}

#[test]
fn of_two_limits_the_earlier_counts() {
    let mut world = World::new().admitted();
    world.workload.spec.maximum_execution_time_seconds = Some(100);
    assert_eq!(world.rest().next, Some(at(1100)));
    world.workload.spec.maximum_execution_time_seconds = Some(1000);
    assert_eq!(world.rest().next, Some(at(1300)));
}
