//! Leaders that die, stand still or are two.

use super::*;

// rule: in-place-restart F9
// rule: in-place-restart S9
#[test]
fn a_new_leader_disturbs_nobody() {
    let mut gang = Gang::running(terms(3));
    gang.leader = None;
    gang.pass(Duration::from_secs(1000));
    assert_eq!(gang.runs(), [Some(0); 3]);
    gang.lead();
    assert_eq!((gang.runs(), gang.record().restarts.total), (vec![Some(0); 3], 0));
}

// rule: in-place-restart F9
// rule: in-place-restart S12
#[test]
fn a_failure_nobody_has_heard_of_is_heard_of_later() {
    let mut gang = Gang::running(terms(3));
    gang.leader = None;
    gang.exits(1, 5);
    gang.pass(Duration::from_secs(100));
    assert_eq!(gang.runs(), [Some(0), None, Some(0)], "it stays down, the others run on");
    gang.lead();
    assert_eq!(gang.runs(), [Some(1); 3]);
    assert_eq!(gang.restarted()[0].cause, Cause::Exited(5));
}

// rule: in-place-restart F10
#[test]
fn what_was_written_and_not_told_is_told_by_the_next_leader() {
    let mut gang = Gang::running(terms(3));
    // The record of the restart is written, and the leader dies before it hears that.
    let record = gang.record();
    gang.store = Some(Record {
        revision: record.revision + 1,
        ..record.next_epoch(Phase::Stopping).charged(true)
    });
    gang.leader = None;
    gang.exits(0, 1);
    gang.settle();
    gang.lead();
    assert_eq!(gang.runs(), [Some(1); 3]);
    assert_eq!(gang.record().restarts.counted, 1, "charged once");
}

// rule: in-place-restart F13
// rule: in-place-restart S7
#[test]
fn an_earlier_leader_is_neither_listened_to_nor_can_it_write() {
    let mut gang = Gang::running(terms(2));
    let mut old = gang.leader.take().expect("there is one");
    gang.lead();
    // The agents have heard the new one: orders of the old one change nothing.
    let now = gang.now;
    let stale = old.record().next_epoch(Phase::Stopping).order();
    gang.seat_of(0).agent.ordered(&stale, now);
    assert_eq!(gang.seat_of(0).agent.effects().count(), 0);
    assert_eq!(gang.runs(), [Some(0); 2]);
    // A report with the new fence makes it step down, and so does the store.
    let mut told = old.clone();
    gang.seat_of(0).agent.connected(now);
    let Some(AgentEffect::Send(report)) = gang.seat_of(0).agent.effects().next() else {
        panic!("no report")
    };
    told.heard(7, &report, now);
    assert_eq!(told.effects().collect::<Vec<_>>(), [Effect::StepDown(2)]);
    old.refused(2);
    assert_eq!(old.effects().collect::<Vec<_>>(), [Effect::StepDown(2)]);
    old.tick(now + Duration::from_secs(100));
    assert_eq!((old.effects().count(), old.deadline()), (0, None));
}

#[test]
fn a_leader_that_was_replaced_takes_no_pods_from_the_next() {
    let mut gang = Gang::running(terms(2));
    gang.seat_of(1).is_deaf = true;
    gang.exits(0, 1);
    gang.settle();
    let mut old = gang.leader.clone().expect("there is one");
    gang.lead();
    // It stood still until long after its deadlines, and hears nobody.
    let later = gang.now + Duration::from_secs(500);
    old.lost(1, gang.seats[&1].link, later);
    old.tick(later);
    let effects: Vec<Effect> = old.effects().collect();
    let does = |wanted: fn(&Effect) -> bool| effects.iter().any(wanted);
    assert!(does(|effect| matches!(effect, Effect::Commit(..))), "{effects:?}");
    assert!(!does(|effect| matches!(effect, Effect::Replace(_))), "first it has to write");
}

// rule: in-place-restart F26
#[test]
fn each_leader_has_its_own_clock() {
    let mut gang = Gang::running(terms(2));
    gang.lose_pod(0);
    gang.pass(Duration::from_secs(100));
    // The next one has another clock, which has just begun, and measures its own time.
    gang.now = Moment::default();
    gang.seats.values_mut().for_each(|seat| {
        seat.agent = Agent::new(seat.identity, Duration::from_secs(2), Moment::default());
    });
    gang.lead();
    gang.pass(Duration::from_secs(110));
    assert_eq!(gang.phase(), Phase::Stopping);
    gang.pass(Duration::from_secs(11));
    assert_eq!(gang.phase(), Phase::Recreating);
}

// rule: in-place-restart F44
#[test]
fn a_release_that_was_told_to_some_is_told_to_the_rest() {
    let mut gang = Gang::running(terms(4));
    for slot in [1, 3] {
        gang.seat_of(slot).hears = false;
    }
    // They hear the order to stop, and not the release.
    gang.exits(0, 1);
    for slot in [1, 3] {
        let order = gang.record().next_epoch(Phase::Stopping).order();
        let now = gang.now;
        gang.seat_of(slot).agent.ordered(&order, now);
    }
    gang.settle();
    assert_eq!(gang.runs(), [Some(1), None, Some(1), None]);
    gang.leader = None;
    for slot in [1, 3] {
        gang.seat_of(slot).hears = true;
    }
    gang.lead();
    assert_eq!(gang.runs(), [Some(1); 4]);
    assert_eq!(gang.record().restarts.total, 1);
}

#[test]
fn an_agent_that_was_started_anew_while_nobody_led_is_a_failure() {
    let mut gang = Gang::running(terms(2));
    gang.exits(0, 1);
    gang.settle();
    let identity = Identity { session: 999, ..gang.seats[&1].identity };
    let now = gang.now;
    let seat = gang.seat_of(1);
    seat.agent = Agent::new(identity, Duration::from_secs(2), now);
    seat.runs = None;
    gang.leader = None;
    gang.lead();
    assert_eq!(gang.runs(), [Some(2); 2]);
}

#[test]
fn a_promise_to_one_leader_is_none_to_the_next() {
    let mut gang = Gang::running(terms(2));
    gang.lose_pod(0);
    gang.leader = None;
    gang.take_over();
    // The promise of worker 1 was to the leader before: it is asked for again.
    gang.join(0);
    assert_eq!((gang.phase(), gang.runs()), (Phase::Stopping, vec![None; 2]));
    gang.connect(1);
    gang.settle();
    assert_eq!(gang.runs(), [Some(1); 2]);
}

#[test]
fn nothing_is_released_before_the_pods_are_known() {
    let mut gang = Gang::running(terms(2));
    gang.exits(0, 1);
    gang.seat_of(1).is_deaf = true;
    gang.settle();
    gang.fence += 1;
    gang.leader = Some(Orchestrator::lead(gang.terms.clone(), gang.fence, gang.store));
    gang.settle();
    gang.connect(0);
    gang.connect(1);
    gang.pass(Duration::from_secs(3));
    assert_eq!((gang.phase(), gang.runs()), (Phase::Stopping, vec![None; 2]));
    assert_eq!(gang.leader().waiting(), Some(Waiting::Pods));
    let now = gang.now;
    gang.leader().pods_known(now);
    gang.settle();
    assert_eq!(gang.runs(), [Some(1); 2]);
}

// rule: in-place-restart F13
#[test]
fn what_an_earlier_leader_decides_during_a_take_over_is_not_overwritten() {
    let mut gang = Gang::running(terms(2));
    // The next one has read the record when the one before decides once more.
    let found = gang.store;
    let mut next = Orchestrator::lead(gang.terms.clone(), 2, found);
    gang.exits(0, 1);
    gang.settle();
    assert_eq!((gang.runs(), gang.record().epoch), (vec![Some(1); 2], 1));
    let Some(Effect::Commit(record, expected)) = next.effects().next() else { panic!("no record") };
    assert!(!expected.allows(gang.store.as_ref(), &record));
    // Its own record, of which it has not heard, it may write again.
    assert!(expected.allows(found.as_ref(), &record));
    let again = Record { revision: record.revision + 1, ..record };
    assert!(expected.allows(Some(&record), &again));
    // It reads once more, and goes on from there.
    gang.lead();
    assert_eq!((gang.runs(), gang.record().epoch), (vec![Some(1); 2], 1));
}
