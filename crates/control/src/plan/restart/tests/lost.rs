//! Agents, pods and connections that are lost, late or there twice.

use super::*;

// rule: in-place-restart F5
#[test]
fn all_stop_at_once_when_a_pod_is_lost_and_wait_for_the_next() {
    let mut gang = Gang::running(terms(3));
    gang.lose_pod(1);
    assert_eq!((gang.phase(), gang.runs()), (Phase::Stopping, vec![None; 2]));
    assert_eq!(gang.leader().waiting(), Some(Waiting::Replacements { count: 1, slots: vec![1] }));
    gang.pass(Duration::from_secs(50));
    assert_eq!(gang.replaced(), [0; 0], "there is nothing to replace");
    gang.join(1);
    assert_eq!(gang.runs(), [Some(1); 3]);
    assert_eq!(gang.restarted()[0].cause, Cause::PodLost);
}

// rule: in-place-restart F5
#[test]
fn a_pod_that_is_being_deleted_is_lost_already() {
    let mut gang = Gang::running(terms(2));
    let (pod, now) = (gang.seat_of(0).identity.pod, gang.now);
    gang.leader().pod_ending(0, pod, now);
    gang.settle();
    assert_eq!((gang.phase(), gang.runs()), (Phase::Stopping, vec![None; 2]));
    // It is there and waits, but it will not stay.
    assert_eq!(gang.leader().waiting(), Some(Waiting::Members { count: 1, slots: vec![0] }));
}

// rule: in-place-restart F5
// rule: in-place-restart S4
#[test]
fn nobody_is_released_while_an_earlier_pod_may_still_run() {
    let mut gang = Gang::running(terms(2));
    let old = gang.seats.remove(&0).unwrap();
    gang.join(0);
    assert_eq!((gang.phase(), gang.runs()), (Phase::Stopping, vec![None; 2]));
    assert_eq!(gang.leader().waiting(), Some(Waiting::EarlierPods { slots: vec![0] }));

    // The old one comes back, has no say, and is told to stop.
    let now = gang.now;
    let mut agent = old.agent;
    agent.connected(now);
    let Some(AgentEffect::Send(report)) = agent.effects().next() else { panic!("no report") };
    gang.leader().heard(99, &report, now);
    let told = gang
        .leader()
        .effects()
        .find_map(|effect| if let Effect::Tell(99, order) = effect { Some(order) } else { None });
    agent.ordered(&told.expect("it is told something"), now);
    assert!(agent.effects().any(|effect| effect == AgentEffect::Terminate));

    gang.leader().pod_gone(0, old.identity.pod, None, now);
    gang.settle();
    assert_eq!(gang.runs(), [Some(1); 2]);
}

// rule: in-place-restart F6
// rule: in-place-restart F35
#[test]
fn a_container_that_is_restarted_has_lost_its_worker() {
    let mut gang = Gang::running(terms(3));
    gang.reboot(1);
    assert_eq!(gang.runs(), [Some(1); 3]);
    assert_eq!(gang.restarted()[0].cause, Cause::AgentRestarted);
    assert_eq!(gang.seat_of(1).starts, [1]);
}

// rule: in-place-restart F7
// rule: in-place-restart F36
#[test]
fn an_agent_may_say_who_it_is_as_often_as_it_likes() {
    let mut gang = Gang::running(terms(2));
    for _ in 0..3 {
        gang.connect(0);
        gang.settle();
    }
    assert_eq!((gang.runs(), gang.record().restarts.total), (vec![Some(0); 2], 0));
}

// rule: in-place-restart F8
// rule: in-place-restart F33
#[test]
fn an_agent_that_does_not_answer_is_replaced_when_it_is_needed_and_not_before() {
    let mut gang = Gang::running(terms(3));
    gang.seat_of(2).hears = false;
    gang.pass(Duration::from_secs(300));
    assert_eq!(gang.runs(), [Some(0); 3]);
    gang.exits(0, 1);
    gang.settle();
    assert_eq!(gang.runs(), [None, None, Some(0)]);
    let waiting = gang.leader().waiting();
    assert_eq!(waiting, Some(Waiting::Stops { count: 1, slots: vec![2] }));
    gang.pass(Duration::from_secs(8));
    assert_eq!(gang.replaced(), [2]);
    gang.lose_pod(2);
    gang.join(2);
    assert_eq!(gang.runs(), [Some(1); 3]);
    assert_eq!(gang.record().restarts.counted, 1);
}

// rule: in-place-restart F18
#[test]
fn an_order_that_was_lost_is_sent_again_to_those_who_have_not_answered() {
    let mut gang = Gang::running(terms(3));
    gang.seat_of(1).hears = false;
    gang.exits(0, 1);
    gang.settle();
    let broadcasts = gang.broadcasts;
    gang.seat_of(1).hears = true;
    gang.pass(Duration::from_millis(600));
    assert_eq!(gang.runs(), [Some(1); 3]);
    assert_eq!(gang.broadcasts - broadcasts, 1, "only the release is for everybody");
}

// rule: in-place-restart F19
// rule: in-place-restart F32
#[test]
fn an_agent_that_was_cut_off_hears_on_its_return_what_it_has_missed() {
    let mut gang = Gang::running(terms(3));
    gang.seat_of(1).hears = false;
    gang.seat_of(1).speaks = false;
    gang.drop_link(1);
    gang.pass(Duration::from_secs(100));
    assert_eq!(gang.runs(), [Some(0); 3], "nobody is disturbed because one cannot be heard");
    gang.exits(0, 1);
    gang.settle();
    assert_eq!(gang.runs(), [None, Some(0), None]);
    gang.seat_of(1).hears = true;
    gang.seat_of(1).speaks = true;
    gang.connect(1);
    gang.settle();
    assert_eq!(gang.runs(), [Some(1); 3]);
}

#[test]
fn who_comes_late_has_its_own_time_to_stop() {
    let mut gang = Gang::running(terms(3));
    for slot in [1, 2] {
        gang.seat_of(slot).speaks = false;
        gang.drop_link(slot);
    }
    gang.take_over();
    gang.connect(0);
    gang.settle();
    gang.exits(0, 1);
    gang.settle();
    // Thousands look for a new leader: one finds it when the others should have stopped, and its
    // worker takes what time it may.
    gang.pass(Duration::from_millis(6_500));
    gang.seat_of(1).speaks = true;
    gang.seat_of(1).is_deaf = true;
    gang.connect(1);
    gang.settle();
    gang.pass(Duration::from_millis(1_500));
    assert_eq!(gang.replaced(), [0; 0], "it came half a second before");
    gang.pass(Duration::from_secs(1));
    gang.seat_of(2).speaks = true;
    gang.connect(2);
    gang.settle();
    assert_eq!((gang.phase(), gang.runs()), (Phase::Running, vec![Some(1); 3]));
}

#[test]
fn thousands_have_the_time_that_it_takes_to_come_back() {
    let mut gang = Gang::running(terms(1_000));
    // All connections are lost at once, and the first to come back has failed.
    for slot in 1..1_000 {
        gang.seat_of(slot).hears = false;
        gang.seat_of(slot).speaks = false;
        gang.drop_link(slot);
    }
    gang.exits(0, 1);
    gang.settle();
    assert_eq!(gang.phase(), Phase::Stopping);
    gang.pass(Duration::from_millis(7_900));
    assert_eq!(gang.replaced(), [0; 0], "a second more than a few would have");
    gang.pass(Duration::from_millis(200));
    assert_eq!(gang.replaced().len(), 999, "but not for ever");
}

// rule: in-place-restart F20
#[test]
fn those_who_do_not_come_are_replaced_and_then_everything_is() {
    let mut gang = Gang::running(terms(3));
    gang.seat_of(2).hears = false;
    gang.exits(0, 1);
    gang.pass(Duration::from_secs(8));
    assert_eq!(gang.replaced(), [2]);
    // Its pod does not go.
    gang.pass(Duration::from_secs(61));
    assert_eq!((gang.phase(), gang.generation()), (Phase::Recreating, 2));
    assert_eq!(gang.record().restarts.counted, 2);
    assert!(gang.asked.contains(&Effect::Recreate { generation: 2 }));

    let pods: Vec<(u32, u64)> =
        gang.seats.iter().map(|(slot, seat)| (*slot, seat.identity.pod)).collect();
    gang.seats.clear();
    for (slot, pod) in pods {
        let now = gang.now;
        gang.leader().pod_gone(slot, pod, None, now);
        gang.join(slot);
    }
    assert_eq!((gang.phase(), gang.runs()), (Phase::Running, vec![Some(2); 3]));
}

/// A pod takes a place, with an agent that can be heard and hears nothing.
fn join_deaf(gang: &mut Gang, slot: u32) -> u64 {
    let (pod, session, link) = (gang.next_id(), gang.next_id(), gang.next_id());
    let (now, generation) = (gang.now, gang.generation());
    let mut agent = Agent::new(Identity { slot, pod, session, generation }, gang.terms.grace, now);
    agent.connected(now);
    let Some(AgentEffect::Send(report)) = agent.effects().next() else { panic!("no report") };
    gang.leader().pod_seen(slot, pod, now);
    gang.leader().heard(link, &report, now);
    gang.settle();
    pod
}

// rule: in-place-restart F20
#[test]
fn pods_that_are_replaced_again_and_again_do_not_put_off_the_next_rung_for_ever() {
    let mut gang = Gang::running(terms(3));
    for slot in [1, 2] {
        gang.seat_of(slot).hears = false;
    }
    gang.exits(0, 1);
    // One comes again and again, and hears nothing; of another each pod is no better than the last.
    let again = |gang: &mut Gang| {
        gang.drop_link(1);
        gang.connect(1);
        gang.pass(Duration::from_secs(5));
    };
    gang.pass(Duration::from_secs(5));
    again(&mut gang);
    assert_eq!(gang.replaced(), [2]);
    gang.lose_pod(2);
    for _ in 0..10 {
        let pod = join_deaf(&mut gang, 2);
        again(&mut gang);
        again(&mut gang);
        let now = gang.now;
        gang.leader().pod_gone(2, pod, None, now);
        gang.settle();
    }
    assert!(gang.replaced().len() > 5, "{:?}", gang.replaced());
    assert_eq!(gang.phase(), Phase::Stopping);
    gang.pass(Duration::from_secs(11));
    assert_eq!(gang.phase(), Phase::Recreating, "twice the timeout is over");
}

// rule: in-place-restart F5
#[test]
fn lost_pods_have_a_rung_of_their_own_to_be_replaced() {
    let mut gang = Gang::running(terms(3));
    gang.lose_pod(0);
    gang.lose_pod(1);
    gang.pass(Duration::from_secs(70));
    assert_eq!(gang.phase(), Phase::Stopping, "their Jobs have put it off");
    let waiting = gang.leader().waiting().expect("it says so");
    assert_eq!(waiting, Waiting::Replacements { count: 2, slots: vec![0, 1] });
    assert!(waiting.to_string().starts_with("2 workers have no pod: 0, 1. "), "{waiting}");
    gang.join(0);
    // This one is there, and has not started.
    let identity = Identity { slot: 1, pod: 900, session: 901, generation: 1 };
    let now = gang.now;
    gang.leader().pod_seen(1, identity.pod, now);
    gang.pass(Duration::from_secs(20));
    assert_eq!((gang.phase(), gang.replaced()), (Phase::Stopping, vec![]));
    gang.seat(identity);
    assert_eq!((gang.phase(), gang.runs()), (Phase::Running, vec![Some(1); 3]));
    assert_eq!(gang.record().restarts.counted, 1);
}

#[test]
fn a_pod_that_was_made_for_a_restart_is_not_replaced_before_it_has_started() {
    let mut gang = Gang::running(terms(2));
    gang.lose_pod(0);
    gang.pass(Duration::from_secs(55));
    let identity = Identity { slot: 0, pod: 900, session: 901, generation: 1 };
    let now = gang.now;
    gang.leader().pod_seen(0, identity.pod, now);
    gang.pass(Duration::from_secs(10));
    assert_eq!((gang.phase(), gang.replaced()), (Phase::Stopping, vec![]));
    gang.seat(identity);
    assert_eq!((gang.phase(), gang.runs()), (Phase::Running, vec![Some(1); 2]));
}

// rule: in-place-restart F12
// rule: in-place-restart F11
#[test]
fn everything_old_is_asked_to_go_until_it_has() {
    let mut gang = Gang::running(terms(2));
    gang.lose_pod(0);
    gang.pass(Duration::from_secs(121));
    assert_eq!(gang.phase(), Phase::Recreating);
    assert_eq!(gang.store.map(|record| record.generation), Some(2), "written before it is asked");
    gang.pass(Duration::from_secs(11));
    let asked = gang.asked.iter().filter(|it| **it == Effect::Recreate { generation: 2 });
    assert_eq!(asked.count(), 3);
    // A leader that comes after goes on with it, and asks for nothing newer.
    gang.asked.clear();
    gang.lead();
    assert_eq!(gang.asked, [Effect::Recreate { generation: 2 }]);
    // Agents of the generation before have no say.
    assert_eq!((gang.phase(), gang.runs()), (Phase::Recreating, vec![None]));
}

// rule: in-place-restart F27
#[test]
fn a_worker_that_does_not_listen_is_killed_and_one_that_survives_is_replaced() {
    let mut gang = Gang::running(terms(3));
    gang.seat_of(1).is_deaf = true;
    gang.exits(0, 1);
    gang.pass(Duration::from_millis(1900));
    assert_eq!(gang.runs(), [None, Some(0), None]);
    gang.pass(Duration::from_millis(200));
    assert_eq!(gang.runs(), [Some(1); 3], "killed after its grace of two seconds");

    let slow = Terms { grace: Duration::from_secs(20), ..terms(2) };
    let mut gang = Gang::running(slow);
    gang.seat_of(1).is_stuck = true;
    gang.exits(0, 1);
    gang.pass(Duration::from_secs(24));
    assert_eq!(gang.replaced(), [0; 0]);
    // Before the time for stops is over, as soon as it is known to be of no use to wait.
    gang.terms.grace = Duration::from_secs(20);
    gang.pass(Duration::from_secs(7));
    assert_eq!(gang.replaced(), [1]);
}

// rule: in-place-restart F38
#[test]
fn of_two_agents_in_one_place_the_later_connection_speaks() {
    let mut gang = Gang::running(terms(2));
    let now = gang.now;
    let twin = Identity { session: 9999, ..gang.seats[&0].identity };
    let mut agent = Agent::new(twin, Duration::from_secs(2), now);
    agent.connected(now);
    let Some(AgentEffect::Send(report)) = agent.effects().next() else { panic!("no report") };
    // On a connection that is older than the one in use it is not listened to.
    gang.leader().heard(0, &report, now);
    gang.settle();
    assert_eq!((gang.runs(), gang.phase()), (vec![Some(0); 2], Phase::Running));
}
