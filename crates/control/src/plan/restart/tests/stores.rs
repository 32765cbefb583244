//! Stores that cannot be reached, are slow, behind or empty.

use super::*;

// rule: in-place-restart F14
// rule: in-place-restart F15
// rule: in-place-restart S9
#[test]
fn without_a_store_nobody_is_stopped_and_the_failed_stay_down() {
    let mut gang = Gang::running(terms(3));
    gang.is_store_up = false;
    gang.exits(0, 1);
    gang.pass(Duration::from_secs(500));
    assert_eq!(gang.runs(), [None, Some(0), Some(0)]);
    assert_eq!(gang.leader().waiting(), Some(Waiting::Store));
    gang.is_store_up = true;
    gang.pass(Duration::from_secs(3));
    assert_eq!(gang.runs(), [Some(1); 3]);
    assert_eq!(gang.record().restarts.total, 1);
}

// rule: in-place-restart F16
// rule: in-place-restart S6
#[test]
fn a_store_that_is_behind_is_brought_up_to_what_the_agents_have_seen() {
    let mut gang = Gang::running(terms(3));
    let behind = gang.store;
    gang.exits(0, 1);
    gang.settle();
    gang.store = behind;
    gang.leader = None;
    gang.lead();
    assert_eq!((gang.runs(), gang.record().epoch), (vec![Some(1); 3], 1));
    assert_eq!(gang.record().restarts, Restarts { total: 1, counted: 1 }, "nothing is lost");
    assert!(gang.seats.values().all(|seat| seat.starts.len() <= 2), "nobody was disturbed");
    gang.exits(1, 1);
    gang.settle();
    assert_eq!((gang.runs(), gang.record().restarts.counted), (vec![Some(2); 3], 2));
}

// rule: in-place-restart F17
#[test]
fn a_store_that_lost_everything_is_filled_from_what_the_agents_have_seen() {
    let mut gang = Gang::running(terms(3));
    gang.exits(0, 1);
    gang.settle();
    gang.store = None;
    gang.leader = None;
    gang.take_over();
    assert_eq!(gang.phase(), Phase::Forming);
    gang.connect(1);
    gang.settle();
    assert_eq!((gang.phase(), gang.record().epoch), (Phase::Running, 1));
    gang.connect(0);
    gang.connect(2);
    gang.settle();
    assert_eq!((gang.runs(), gang.record().restarts.counted), (vec![Some(1); 3], 1));
}

// rule: in-place-restart F17
#[test]
fn a_leader_with_an_earlier_fence_than_the_agents_know_starts_over() {
    let mut gang = Gang::running(terms(2));
    gang.leader = None;
    gang.lead();
    gang.store = None;
    gang.fence = 0;
    gang.leader = None;
    gang.lead();
    assert_eq!(gang.asked, [Effect::StepDown(2)]);
    gang.fence = 2;
    gang.leader = None;
    gang.lead();
    assert_eq!((gang.runs(), gang.phase()), (vec![Some(0); 2], Phase::Running));
}

#[test]
fn a_store_that_has_lost_the_end_is_told_of_it() {
    let mut gang = Gang::running(Terms { max_restarts: 0, ..terms(2) });
    let behind = gang.store;
    gang.exits(0, 1);
    gang.settle();
    let failed = Phase::Failed(Reason::ReachedMaxRestarts);
    assert_eq!(gang.phase(), failed);
    gang.store = behind;
    gang.leader = None;
    gang.lead();
    assert_eq!((gang.phase(), gang.runs()), (failed, vec![None; 2]));

    let mut gang = Gang::running(terms(2));
    let behind = gang.store;
    gang.exits(0, 0);
    gang.exits(1, 0);
    gang.settle();
    gang.store = behind;
    gang.leader = None;
    gang.seats.remove(&1);
    let done = gang.seats.remove(&0).expect("it was there").identity.pod;
    gang.take_over();
    let now = gang.now;
    gang.leader().pod_gone(0, done, Some(1), now);
    gang.settle();
    assert_eq!(gang.phase(), Phase::Succeeding, "nobody completes before success is decided");
}

// rule: in-place-restart L4
#[test]
fn a_gang_that_runs_writes_nothing_and_hears_only_signs_of_life() {
    let mut gang = Gang::running(terms(3));
    let (writes, broadcasts) = (gang.writes, gang.broadcasts);
    gang.pass(Duration::from_secs(3600));
    assert_eq!((gang.writes, gang.broadcasts), (writes, broadcasts));
    assert_eq!(gang.leader().deadline(), None);
    assert_eq!(gang.leader().waiting(), None);
}

#[test]
fn an_answer_that_was_lost_is_asked_for_again_under_a_later_version() {
    let mut leader = Orchestrator::lead(terms(1), 1, None);
    let Some(Effect::Commit(first, _)) = leader.effects().next() else { panic!("no record") };
    leader.not_committed(first.version(), Moment::default());
    let at = leader.deadline().expect("it tries again");
    leader.tick(at);
    let Some(Effect::Commit(second, _)) = leader.effects().next() else { panic!("no record") };
    assert!(second.version() > first.version());
    assert_eq!(second.rank(), first.rank());
    // The first answer comes late: it is about something else.
    leader.committed(first.version(), at);
    assert!(leader.is_writing());
    leader.committed(second.version(), at);
    assert!(!leader.is_writing());
}

// rule: in-place-restart S8
#[test]
fn an_end_that_was_learned_from_pods_stays_when_somebody_knows_of_a_later_epoch() {
    let mut gang = Gang::running(terms(2));
    gang.exits(0, 1);
    gang.settle();
    gang.exits(0, 0);
    gang.exits(1, 0);
    gang.seat_of(1).hears = false;
    gang.settle();
    let done = gang.seats.remove(&0).expect("it was there").identity.pod;
    gang.store = None;
    gang.leader = None;
    gang.take_over();
    let now = gang.now;
    gang.leader().pod_gone(0, done, Some(1), now);
    gang.settle();
    assert_eq!((gang.phase(), gang.record().epoch), (Phase::Succeeding, 0));
    gang.seat_of(1).hears = true;
    gang.connect(1);
    gang.settle();
    assert_eq!((gang.phase(), gang.record().epoch), (Phase::Succeeding, 1));
    assert_eq!(gang.seat_of(1).exit, Some(0));
}
