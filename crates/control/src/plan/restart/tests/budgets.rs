//! Restarts that count, and jobs that are suspended, resized or made anew.

use super::*;

// rule: in-place-restart F24
// rule: in-place-restart S6
// rule: in-place-restart S8
#[test]
fn one_restart_too_many_is_never_told_and_ends_the_gang() {
    let mut gang = Gang::running(Terms { max_restarts: 1, ..terms(2) });
    gang.exits(0, 1);
    gang.settle();
    gang.exits(0, 1);
    gang.settle();
    assert_eq!(gang.phase(), Phase::Failed(Reason::ReachedMaxRestarts));
    assert_eq!((gang.runs(), gang.record().epoch), (vec![None; 2], 1));
    assert_eq!(gang.record().restarts.counted, 2);
    assert!(gang.asked.contains(&Effect::Fail(Reason::ReachedMaxRestarts)));
    assert!(gang.seats.values().all(|seat| seat.exit.is_none()), "their pods end them");
    // What comes afterwards changes nothing.
    gang.reboot(0);
    gang.lead();
    gang.pass(Duration::from_secs(1000));
    assert_eq!((gang.runs(), gang.record().restarts.counted), (vec![None; 2], 2));
}

// rule: in-place-restart F24
#[test]
fn making_everything_anew_is_a_restart_and_may_be_one_too_many() {
    let mut gang = Gang::running(Terms { max_restarts: 1, ..terms(2) });
    gang.lose_pod(0);
    gang.pass(Duration::from_secs(121));
    assert_eq!(gang.phase(), Phase::Failed(Reason::ReachedMaxRestarts));
    assert!(!gang.asked.iter().any(|effect| matches!(effect, Effect::Recreate { .. })));
}

// rule: in-place-restart F25
#[test]
fn the_count_is_the_highest_that_anybody_knows() {
    let mut gang = Gang::running(terms(2));
    gang.store = None;
    gang.seats.clear();
    gang.terms.restarts = Restarts { total: 2, counted: 2 };
    gang.leader = None;
    gang.lead();
    assert_eq!(gang.record().restarts.counted, 2, "the job's own copy");
    gang.join(0);
    gang.join(1);
    gang.exits(0, 1);
    gang.settle();
    assert_eq!(gang.record().restarts.counted, 3);
}

// rule: in-place-restart F21
#[test]
fn a_job_that_is_suspended_is_charged_nothing() {
    let mut gang = Gang::running(Terms { max_restarts: 1, ..terms(2) });
    gang.exits(0, 1);
    gang.seat_of(1).is_deaf = true;
    gang.settle();
    assert_eq!(gang.phase(), Phase::Stopping);
    let now = gang.now;
    gang.leader().suspended(true, now);
    gang.settle();
    assert_eq!(gang.phase(), Phase::Suspended);
    assert_eq!(gang.leader().waiting(), Some(Waiting::Suspended));
    gang.terms.is_suspended = true;
    // All pods go, which is nobody's failure.
    gang.lose_pod(0);
    gang.lose_pod(1);
    gang.pass(Duration::from_secs(500));
    gang.lead();
    assert_eq!((gang.phase(), gang.asked.len()), (Phase::Suspended, 0));

    gang.terms.is_suspended = false;
    let now = gang.now;
    gang.leader().suspended(false, now);
    gang.settle();
    assert_eq!((gang.phase(), gang.generation()), (Phase::Forming, 1));
    gang.join(0);
    gang.join(1);
    assert_eq!(gang.phase(), Phase::Running);
    assert_eq!(gang.record().restarts.counted, 1);
}

// rule: in-place-restart F23
// rule: in-place-restart S11
#[test]
fn a_job_that_makes_its_pods_anew_in_the_middle_of_a_restart_restarts_once() {
    let mut gang = Gang::running(terms(2));
    gang.seat_of(1).is_deaf = true;
    gang.exits(0, 1);
    gang.settle();
    assert_eq!(gang.phase(), Phase::Stopping);
    let now = gang.now;
    gang.leader().regenerated(2, true, now);
    gang.settle();
    assert_eq!((gang.phase(), gang.generation()), (Phase::Forming, 2));
    // The agents of the pods before have no say any more.
    gang.pass(Duration::from_secs(10));
    assert_eq!((gang.phase(), gang.runs()), (Phase::Forming, vec![None; 2]));
    gang.lose_pod(0);
    gang.lose_pod(1);
    gang.join(0);
    gang.join(1);
    assert_eq!((gang.phase(), gang.runs()), (Phase::Running, vec![Some(2); 2]));
    assert_eq!(gang.record().restarts.counted, 2);
    assert!(!gang.asked.iter().any(|effect| matches!(effect, Effect::Recreate { .. })));
}

fn resize(gang: &mut Gang, slots: u32) {
    gang.terms = Terms { completion: Completion::all(slots), ..terms(slots) };
    let (terms, now) = (gang.terms.clone(), gang.now);
    gang.leader().amended(terms, now);
    gang.settle();
}

// rule: in-place-restart F39
#[test]
fn another_number_of_workers_is_another_epoch() {
    let mut gang = Gang::running(terms(3));
    resize(&mut gang, 2);
    assert_eq!((gang.record().slots, gang.record().epoch), (2, 1));
    // What is removed is of another epoch, and must be gone before this one begins.
    assert_eq!((gang.phase(), gang.runs()), (Phase::Stopping, vec![None; 3]));
    assert_eq!(gang.leader().waiting(), Some(Waiting::Strays { count: 1 }));
    gang.lose_pod(2);
    assert_eq!(gang.runs(), [Some(1); 2]);
    assert_eq!(gang.record().restarts.total, 0);
    gang.exits(0, 0);
    gang.exits(1, 0);
    gang.settle();
    assert_eq!(gang.phase(), Phase::Succeeding);
}

// rule: in-place-restart F39
#[test]
fn a_leader_that_comes_after_a_worker_was_removed_waits_for_it_too() {
    let mut gang = Gang::running(terms(3));
    gang.seat_of(2).hears = false;
    gang.seat_of(2).speaks = false;
    gang.terms = Terms { completion: Completion::all(2), ..terms(2) };
    gang.lead();
    assert_eq!((gang.record().slots, gang.runs()), (2, vec![None, None, Some(0)]));
    gang.pass(Duration::from_secs(30));
    assert_eq!(gang.runs(), [None, None, Some(0)]);
    gang.lose_pod(2);
    assert_eq!(gang.runs(), [Some(1); 2]);
}

#[test]
fn a_worker_that_is_there_before_its_place_is_written_down_is_not_sent_away() {
    let mut gang = Gang::running(terms(2));
    gang.is_store_up = false;
    resize(&mut gang, 3);
    gang.join(2);
    assert_eq!((gang.record().slots, gang.runs()), (2, vec![Some(0), Some(0), None]));
    gang.is_store_up = true;
    gang.pass(Duration::from_secs(3));
    assert_eq!(gang.record().slots, 3);
    gang.connect(2);
    gang.settle();
    assert_eq!((gang.phase(), gang.runs()), (Phase::Running, vec![Some(1); 3]));
}

#[test]
fn a_pod_that_is_gone_holds_up_nothing_when_its_place_comes_back() {
    let mut gang = Gang::running(terms(3));
    let removed = gang.seats[&2].identity;
    resize(&mut gang, 2);
    gang.lose_pod(2);
    resize(&mut gang, 3);
    // What it said last arrives late.
    let now = gang.now;
    let mut agent = Agent::new(removed, Duration::from_secs(2), now);
    agent.connected(now);
    let Some(AgentEffect::Send(report)) = agent.effects().next() else { panic!("no report") };
    let link = gang.next_id();
    gang.leader().heard(link, &report, now);
    gang.settle();
    gang.join(2);
    assert_eq!((gang.phase(), gang.runs()), (Phase::Running, vec![Some(2); 3]));
}

// rule: in-place-restart F39
#[test]
fn a_leader_that_came_while_there_were_more_needs_no_more_than_there_are() {
    let mut gang = Gang::running(terms(2));
    let suspend = |gang: &mut Gang, is_suspended: bool| {
        gang.terms.is_suspended = is_suspended;
        let now = gang.now;
        gang.leader().suspended(is_suspended, now);
        gang.settle();
    };
    suspend(&mut gang, true);
    gang.lose_pod(0);
    gang.lose_pod(1);
    // There are three for a while, in which nothing is written and another leader comes.
    gang.terms = Terms { completion: Completion::all(3), slots: 3, is_suspended: true, ..terms(2) };
    gang.lead();
    gang.terms = Terms { is_suspended: true, ..terms(2) };
    let (two, now) = (gang.terms.clone(), gang.now);
    gang.leader().amended(two, now);
    suspend(&mut gang, false);
    gang.join(0);
    gang.join(1);
    assert_eq!((gang.phase(), gang.record().slots), (Phase::Running, 2));
    gang.exits(0, 0);
    gang.exits(1, 0);
    gang.settle();
    assert_eq!(gang.phase(), Phase::Succeeding);
}
