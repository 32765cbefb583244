//! Workers that fail, and what becomes of the others.

use super::*;

// rule: in-place-restart F1
// rule: in-place-restart F34
#[test]
fn all_restart_when_one_fails_and_nobody_outside_is_asked() {
    let mut gang = Gang::running(terms(4));
    let writes = gang.writes;
    gang.exits(2, 7);
    gang.settle();
    assert_eq!(gang.runs(), [Some(1); 4]);
    assert_eq!(gang.record().restarts, Restarts { total: 1, counted: 1 });
    let [waterfall] = gang.restarted()[..] else { panic!("{:?}", gang.asked) };
    assert_eq!((waterfall.epoch, waterfall.slot), (1, 2));
    assert_eq!(waterfall.cause, Cause::Exited(7));
    assert_eq!(waterfall.parts().len(), 5);
    // Two records, whatever the number of workers, and nothing of the API.
    assert_eq!(gang.writes - writes, 2);
    assert_eq!(gang.asked.len(), 1);
}

// rule: in-place-restart F2
#[test]
fn failures_at_once_are_one_restart() {
    let mut gang = Gang::running(terms(4));
    [0, 1, 3].into_iter().for_each(|slot| gang.exits(slot, 1));
    gang.settle();
    assert_eq!(gang.runs(), [Some(1); 4]);
    assert_eq!(gang.record().restarts, Restarts { total: 1, counted: 1 });
}

// rule: in-place-restart F2
#[test]
fn a_failure_while_the_others_stop_is_part_of_the_restart() {
    let mut gang = Gang::running(terms(3));
    gang.seat_of(1).is_deaf = true;
    gang.exits(0, 1);
    gang.settle();
    assert_eq!((gang.phase(), gang.record().epoch), (Phase::Stopping, 1));
    // It fails on its own before it is killed.
    gang.exits(1, 9);
    gang.settle();
    assert_eq!(gang.runs(), [Some(1); 3]);
    assert_eq!(gang.record().restarts.total, 1);
}

// rule: in-place-restart F3
#[test]
fn a_failure_right_after_the_release_is_one_more_epoch_and_no_recreation() {
    let mut gang = Gang::running(terms(3));
    gang.exits(0, 1);
    gang.settle();
    gang.exits(1, 1);
    gang.settle();
    assert_eq!(gang.runs(), [Some(2); 3]);
    assert_eq!(gang.record().restarts, Restarts { total: 2, counted: 2 });
    assert!(!gang.asked.iter().any(|effect| matches!(effect, Effect::Recreate { .. })));
}

// rule: in-place-restart F4
#[test]
fn epochs_that_get_nowhere_end_the_gang() {
    let mut gang = Gang::running(Terms { max_restarts: 1000, stalled_max: 4, ..terms(2) });
    // One that ran for long enough has got somewhere.
    gang.pass(Duration::from_secs(40));
    gang.exits(0, 1);
    gang.settle();
    for _ in 0..4 {
        assert_eq!(gang.phase(), Phase::Running);
        gang.exits(0, 1);
        gang.settle();
    }
    assert_eq!(gang.phase(), Phase::Running);
    gang.exits(0, 1);
    gang.settle();
    assert_eq!(gang.phase(), Phase::Failed(Reason::NoProgress));
    assert_eq!(gang.runs(), [None; 2]);
    assert!(gang.asked.contains(&Effect::Fail(Reason::NoProgress)));
}

// rule: in-place-restart F29
#[test]
fn a_worker_that_has_succeeded_takes_part_in_a_restart() {
    let mut gang = Gang::running(terms(3));
    gang.exits(0, 0);
    gang.settle();
    assert_eq!(gang.runs(), [None, Some(0), Some(0)]);
    assert_eq!(gang.seat_of(0).exit, None);
    gang.exits(1, 1);
    gang.settle();
    assert_eq!(gang.runs(), [Some(1); 3]);
}

// rule: in-place-restart F29
#[test]
fn where_workers_do_not_rejoin_one_that_has_succeeded_may_go() {
    let mut gang = Gang::running(Terms { is_rejoining: false, ..terms(3) });
    gang.exits(0, 0);
    gang.settle();
    assert_eq!(gang.seat_of(0).exit, Some(0));
    let (pod, now) = (gang.seat_of(0).identity.pod, gang.now);
    gang.seats.remove(&0);
    gang.leader().pod_gone(0, pod, Some(1), now);
    gang.exits(1, 1);
    gang.settle();
    assert_eq!((gang.phase(), gang.runs()), (Phase::Running, vec![Some(1); 2]));
    gang.exits(1, 0);
    gang.exits(2, 0);
    gang.settle();
    assert_eq!(gang.phase(), Phase::Succeeding);
}

// rule: in-place-restart F29
#[test]
fn what_was_done_before_all_pods_were_made_anew_is_done_again() {
    let mut gang = Gang::running(Terms { is_rejoining: false, ..terms(2) });
    gang.exits(0, 0);
    gang.settle();
    let done = [0, 1].map(|slot| gang.seats.remove(&slot).expect("it was there").identity.pod);
    let now = gang.now;
    // The end of the other one is heard of when the job has been restarted already.
    gang.leader().pod_gone(0, done[0], Some(1), now);
    gang.leader().regenerated(2, true, now);
    gang.settle();
    gang.leader().pod_gone(1, done[1], Some(1), now);
    gang.settle();
    assert_eq!(gang.phase(), Phase::Forming, "nobody of this generation is done");
    gang.join(0);
    gang.join(1);
    assert_eq!((gang.phase(), gang.runs()), (Phase::Running, vec![Some(1); 2]));
    assert_eq!(gang.record().restarts.counted, 1);
}

/// Worker 0 of three has succeeded, and something that it had started is left.
fn succeeded_alone(is_rejoining: bool) -> Gang {
    let mut gang = Gang::running(Terms { is_rejoining, ..terms(3) });
    gang.seat_of(0).is_stuck = true;
    gang.exits(0, 0);
    gang.pass(Duration::from_secs(5));
    assert_eq!((gang.phase(), gang.seat_of(0).exit), (Phase::Running, None));
    gang
}

// rule: in-place-restart F29
#[test]
fn a_success_of_its_own_is_not_taken_for_that_of_the_gang() {
    let mut gang = succeeded_alone(false);
    // Its agent says all that it knows once more, also to the next leader.
    gang.lead();
    gang.pass(Duration::from_secs(5));
    assert_eq!((gang.phase(), gang.runs()[1..].to_vec()), (Phase::Running, vec![Some(0); 2]));
}

// rule: in-place-restart F29
#[test]
fn a_worker_that_has_succeeded_alone_leaves_also_when_a_restart_overtakes_it() {
    for (is_rejoining, exit) in [(false, Some(0)), (true, None)] {
        let mut gang = succeeded_alone(is_rejoining);
        gang.exits(1, 1);
        gang.settle();
        assert_eq!(gang.phase(), Phase::Stopping);
        let now = gang.now;
        let seat = gang.seat_of(0);
        (seat.is_stuck, seat.runs) = (false, None);
        seat.agent.gone(now);
        gang.settle();
        assert_eq!(gang.seat_of(0).exit, exit, "rejoining: {is_rejoining}");
        let starts = if is_rejoining { vec![0, 1] } else { vec![0] };
        assert_eq!(gang.seat_of(0).starts, starts, "rejoining: {is_rejoining}");
    }
}

#[test]
fn a_worker_that_was_let_go_proves_nothing_when_others_are_to_stay() {
    let mut gang = Gang::running(Terms { is_rejoining: false, ..terms(3) });
    gang.exits(0, 0);
    gang.settle();
    let (pod, now) = (gang.seat_of(0).identity.pod, gang.now);
    gang.seats.remove(&0);
    gang.leader().pod_gone(0, pod, Some(1), now);
    gang.terms.is_rejoining = true;
    let terms = gang.terms.clone();
    gang.leader().amended(terms, now);
    gang.settle();
    assert_eq!(gang.phase(), Phase::Running, "two of three have not succeeded");
    gang.take_over();
    gang.leader().pod_gone(0, pod, Some(1), now);
    gang.settle();
    assert_ne!(gang.phase(), Phase::Succeeding, "nor for the next leader");
}

// rule: in-place-restart F30
#[test]
fn all_leave_with_success_when_all_have_it() {
    let mut gang = Gang::running(terms(3));
    for slot in 0..3 {
        assert_eq!(gang.phase(), Phase::Running);
        gang.exits(slot, 0);
        gang.settle();
    }
    assert_eq!(gang.phase(), Phase::Succeeding);
    assert!(gang.seats.values().all(|seat| seat.exit == Some(0)));
}

// rule: in-place-restart F31
#[test]
fn the_first_decision_that_is_written_stands() {
    let mut gang = Gang::running(terms(2));
    gang.exits(0, 0);
    gang.settle();
    gang.is_store_up = false;
    gang.exits(1, 1);
    gang.settle();
    gang.is_store_up = true;
    gang.pass(Duration::from_secs(3));
    assert_eq!((gang.phase(), gang.runs()), (Phase::Running, vec![Some(1); 2]));

    gang.exits(0, 0);
    gang.exits(1, 0);
    gang.settle();
    assert_eq!(gang.phase(), Phase::Succeeding);
    // A pod that is lost now is replaced, and its agent only told that all is done.
    gang.lose_pod(0);
    gang.join(0);
    assert_eq!(gang.phase(), Phase::Succeeding);
    assert_eq!((gang.seat_of(0).exit, gang.seat_of(0).starts.len()), (Some(0), 0));
}

#[test]
fn one_group_may_be_enough_and_then_the_others_keep_their_own_ending() {
    let completion = Completion::all(1);
    let mut gang = Gang::running(Terms { completion, ..terms(3) });
    gang.exits(0, 0);
    gang.settle();
    assert_eq!(gang.phase(), Phase::Succeeding);
    assert_eq!((gang.seat_of(0).exit, gang.runs()), (Some(0), vec![None, Some(0), Some(0)]));
    gang.exits(1, 3);
    gang.settle();
    assert_eq!((gang.seat_of(1).exit, gang.phase()), (Some(3), Phase::Succeeding));
}

#[test]
fn any_of_several_groups_may_be_enough() {
    let completion = Completion { groups: vec![0..2, 2..4], is_any: true };
    let mut gang = Gang::running(Terms { completion, ..terms(4) });
    gang.exits(0, 0);
    gang.exits(3, 0);
    gang.settle();
    assert_eq!(gang.phase(), Phase::Running);
    gang.exits(2, 0);
    gang.settle();
    assert_eq!(gang.phase(), Phase::Succeeding);
}

#[test]
fn a_failure_that_its_job_ignores_is_not_counted() {
    let rule = ExitRule { slots: 0..2, is_in: true, codes: vec![42], verdict: Verdict::Ignore };
    let mut gang = Gang::running(Terms { rules: vec![rule], max_restarts: 0, ..terms(2) });
    gang.exits(0, 42);
    gang.settle();
    assert_eq!(gang.runs(), [Some(1); 2]);
    assert_eq!(gang.record().restarts, Restarts { total: 1, counted: 0 });
}

#[test]
fn a_failure_that_fails_its_job_is_handed_to_the_failure_policy() {
    let rule = ExitRule { slots: 0..2, is_in: true, codes: vec![42], verdict: Verdict::Surrender };
    let mut gang = Gang::running(Terms { rules: vec![rule], ..terms(2) });
    gang.exits(0, 42);
    gang.settle();
    assert_eq!(gang.phase(), Phase::Surrendered(0));
    // The pod ends as the worker did, the other is left alone.
    assert_eq!((gang.seat_of(0).exit, gang.runs()), (Some(42), vec![None, Some(0)]));
    let waiting = gang.leader().waiting();
    assert_eq!(waiting, Some(Waiting::FailurePolicy { slot: 0 }));
    // The policy restarts the job, which counts as the job's own restart does.
    let now = gang.now;
    gang.leader().regenerated(2, true, now);
    gang.settle();
    gang.lose_pod(0);
    gang.lose_pod(1);
    gang.join(0);
    gang.join(1);
    assert_eq!(gang.runs(), [Some(1); 2]);
    assert_eq!((gang.generation(), gang.record().restarts.counted), (2, 1));
}

#[test]
fn what_follows_from_a_failure_that_the_policy_has_is_no_failure_of_its_own() {
    let rule = ExitRule { slots: 0..3, is_in: true, codes: vec![42], verdict: Verdict::Surrender };
    let mut gang = Gang::running(Terms { rules: vec![rule], ..terms(3) });
    gang.exits(0, 42);
    gang.settle();
    // Its Job takes the pod beside it along, and another worker misses its peer.
    gang.lose_pod(1);
    gang.exits(2, 1);
    gang.settle();
    assert_eq!(gang.phase(), Phase::Surrendered(0));
    let now = gang.now;
    gang.leader().regenerated(2, false, now);
    gang.settle();
    assert_eq!(gang.record().restarts, Restarts::default(), "the job counts it itself");
}

#[test]
fn who_is_to_leave_is_told_again_when_the_first_word_was_lost() {
    let rule = ExitRule { slots: 0..2, is_in: true, codes: vec![42], verdict: Verdict::Surrender };
    let mut gang = Gang::running(Terms { rules: vec![rule], ..terms(2) });
    gang.seat_of(0).hears = false;
    gang.exits(0, 42);
    gang.settle();
    assert_eq!((gang.phase(), gang.seat_of(0).exit), (Phase::Surrendered(0), None));
    gang.seat_of(0).hears = true;
    gang.drop_link(0);
    gang.connect(0);
    gang.settle();
    assert_eq!(gang.seat_of(0).exit, Some(42));
    // The same by another leader.
    let rule = ExitRule { slots: 0..2, is_in: true, codes: vec![42], verdict: Verdict::Surrender };
    let mut gang = Gang::running(Terms { rules: vec![rule], ..terms(2) });
    gang.seat_of(0).hears = false;
    gang.exits(0, 42);
    gang.settle();
    gang.seat_of(0).hears = true;
    gang.lead();
    gang.connect(0);
    gang.settle();
    assert_eq!(gang.seat_of(0).exit, Some(42));
}

#[test]
fn a_policy_that_decides_nothing_is_not_waited_for_for_ever() {
    let rule = ExitRule { slots: 0..2, is_in: true, codes: vec![42], verdict: Verdict::Surrender };
    let mut gang = Gang::running(Terms { rules: vec![rule], ..terms(2) });
    gang.exits(0, 42);
    gang.settle();
    gang.exits(1, 1);
    gang.pass(gang.terms.timeout / 2);
    assert_eq!(gang.phase(), Phase::Surrendered(0));
    gang.pass(gang.terms.timeout);
    assert_ne!(gang.phase(), Phase::Surrendered(0));
    assert_eq!(gang.record().restarts.counted, 1);
}

fn surrendered(max_restarts: u32) -> Gang {
    let rule = ExitRule { slots: 0..3, is_in: true, codes: vec![42], verdict: Verdict::Surrender };
    let mut gang = Gang::running(Terms { rules: vec![rule], max_restarts, ..terms(3) });
    gang.exits(0, 42);
    gang.settle();
    assert_eq!(gang.phase(), Phase::Surrendered(0));
    // Its Job has another pod, which goes with it.
    gang.lose_pod(0);
    gang.lose_pod(1);
    assert_eq!(gang.phase(), Phase::Surrendered(0));
    gang
}

fn remade(gang: &mut Gang, times: u32) {
    gang.terms.remade = times;
    let (terms, now) = (gang.terms.clone(), gang.now);
    gang.leader().amended(terms, now);
    gang.settle();
}

#[test]
fn a_job_that_the_policy_makes_anew_is_counted_by_the_set_alone() {
    let mut gang = surrendered(0);
    remade(&mut gang, 1);
    assert_eq!((gang.phase(), gang.runs()), (Phase::Stopping, vec![None]));
    gang.join(0);
    gang.join(1);
    assert_eq!((gang.phase(), gang.runs()), (Phase::Running, vec![Some(1); 3]));
    assert_eq!(gang.record().restarts, Restarts { total: 1, counted: 0 });
    // What fails later is nothing that the set has counted.
    gang.lose_pod(2);
    assert_eq!(gang.phase(), Phase::Failed(Reason::ReachedMaxRestarts));
}

#[test]
fn the_next_leader_knows_what_the_set_has_counted() {
    let mut gang = surrendered(0);
    gang.leader = None;
    gang.terms.remade = 1;
    gang.lead();
    gang.join(0);
    gang.join(1);
    assert_eq!((gang.phase(), gang.runs()), (Phase::Running, vec![Some(1); 3]));
    assert_eq!(gang.record().restarts, Restarts { total: 1, counted: 0 });
    // It is known from then on, also to who comes next.
    gang.lead();
    gang.exits(2, 1);
    gang.settle();
    assert_eq!(gang.phase(), Phase::Failed(Reason::ReachedMaxRestarts));
}

#[test]
fn a_worker_that_comes_back_without_the_policy_is_counted() {
    let mut gang = surrendered(3);
    gang.join(1);
    gang.join(0);
    assert_eq!((gang.phase(), gang.runs()), (Phase::Running, vec![Some(1); 3]));
    assert_eq!(gang.record().restarts, Restarts { total: 1, counted: 1 });
}

#[test]
fn a_pod_that_was_taken_away_in_a_way_that_its_job_ignores_is_not_counted() {
    let mut gang = Gang::running(Terms { max_restarts: 0, ..terms(2) });
    let (pod, now) = (gang.seat_of(0).identity.pod, gang.now);
    gang.leader().pod_excused(0, pod, true);
    gang.settle();
    assert_eq!(gang.runs(), [Some(0); 2], "it runs for as long as it may");
    gang.leader().pod_ending(0, pod, now);
    gang.settle();
    assert_eq!(gang.phase(), Phase::Stopping);
    gang.lose_pod(0);
    gang.join(0);
    assert_eq!((gang.phase(), gang.runs()), (Phase::Running, vec![Some(1); 2]));
    assert_eq!(gang.record().restarts, Restarts { total: 1, counted: 0 });
    // The excuse was that of the pod before, and another may be taken back.
    let pod = gang.seat_of(1).identity.pod;
    gang.leader().pod_excused(1, pod, true);
    gang.leader().pod_excused(1, pod, false);
    gang.lose_pod(1);
    assert_eq!(gang.phase(), Phase::Failed(Reason::ReachedMaxRestarts));
}

// rule: in-place-restart F42
#[test]
fn a_worker_that_hangs_has_failed() {
    let mut gang = Gang::running(terms(2));
    let now = gang.now;
    gang.seat_of(1).agent.hung(now);
    gang.settle();
    assert_eq!(gang.runs(), [Some(1); 2]);
    assert_eq!(gang.restarted()[0].cause, Cause::Hung);
}

// rule: in-place-restart F43
#[test]
fn nothing_runs_before_all_are_there_so_nothing_can_fail() {
    let mut gang = Gang::led(terms(3));
    gang.join(0);
    gang.join(1);
    gang.reboot(0);
    gang.lose_pod(1);
    gang.join(1);
    assert_eq!((gang.phase(), gang.runs()), (Phase::Forming, vec![None; 2]));
    assert_eq!(gang.leader().waiting(), Some(Waiting::Members { count: 1, slots: vec![2] }));
    gang.join(2);
    assert_eq!((gang.phase(), gang.runs()), (Phase::Running, vec![Some(0); 3]));
    assert_eq!(gang.record().restarts.total, 0);
}
