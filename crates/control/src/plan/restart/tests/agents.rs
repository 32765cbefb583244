//! What an agent does on its own.

use super::*;

fn agent() -> Agent {
    let identity = Identity { slot: 0, pod: 1, session: 1, generation: 1 };
    Agent::new(identity, Duration::from_secs(2), Moment::default())
}

fn order(fence: u64, epoch: u32, duty: Duty, by: u64) -> Order {
    let rank = Rank { generation: 1, epoch, duty };
    let restarts = Restarts { total: epoch, counted: epoch };
    Order { fence, rank, by, restarts, is_rejoining: true }
}

fn effects(agent: &mut Agent) -> Vec<AgentEffect> {
    let is_send = |effect: &AgentEffect| matches!(effect, AgentEffect::Send(_));
    agent.effects().filter(|effect| !is_send(effect)).collect()
}

fn started(epoch: u32) -> Agent {
    let mut agent = agent();
    let now = Moment::default();
    agent.ordered(&order(1, epoch, Duty::Hold, 1), now);
    agent.ordered(&order(1, epoch, Duty::Run, 1), now);
    agent.spawned(now);
    assert_eq!(effects(&mut agent).len(), 1);
    agent
}

// rule: in-place-restart S3
#[test]
fn an_agent_that_was_not_waited_for_does_not_run() {
    let now = Moment::default();
    let mut fresh = agent();
    fresh.ordered(&order(1, 0, Duty::Run, 1), now);
    assert_eq!(effects(&mut fresh), []);
    // Nor if it had promised to wait to another leader.
    let mut other = agent();
    other.ordered(&order(1, 0, Duty::Hold, 1), now);
    other.ordered(&order(2, 0, Duty::Run, 2), now);
    assert_eq!(effects(&mut other), []);
    // One that had runs, whoever tells it.
    let mut same = agent();
    same.ordered(&order(1, 0, Duty::Hold, 1), now);
    same.ordered(&order(2, 0, Duty::Run, 1), now);
    let restarts = Restarts::default();
    assert_eq!(effects(&mut same), [AgentEffect::Spawn { epoch: 0, restarts }]);
}

// rule: in-place-restart F39
#[test]
fn one_that_was_sent_away_comes_back_for_a_later_leader_only() {
    let now = Moment::default();
    let cases = [
        ("the same leader", order(1, 3, Duty::Hold, 1), false),
        ("a later one", order(2, 3, Duty::Hold, 2), true),
        ("a later one that is behind", order(2, 2, Duty::Hold, 2), false),
        ("a later one, elsewhere", order(2, 3, Duty::Retire, 2), false),
    ];
    for (name, next, is_back) in cases {
        let mut agent = agent();
        agent.ordered(&order(1, 3, Duty::Retire, 1), now);
        agent.ordered(&next, now);
        let run = Order { rank: Rank { duty: Duty::Run, ..next.rank }, ..next };
        agent.ordered(&run, now);
        let is_started = !effects(&mut agent).is_empty();
        assert_eq!(is_started, is_back, "{name}");
    }
}

// rule: in-place-restart S1
// rule: in-place-restart S5
#[test]
fn orders_that_are_late_or_doubled_change_nothing() {
    let now = Moment::default();
    let late = [
        order(1, 3, Duty::Hold, 1),
        order(1, 3, Duty::Run, 1),
        order(1, 2, Duty::Finish, 1),
        order(2, 2, Duty::Hold, 2),
        order(0, 9, Duty::Hold, 0),
    ];
    for order in late {
        let mut agent = started(3);
        agent.ordered(&order, now);
        assert_eq!(effects(&mut agent), [], "{order:?}");
    }
}

#[test]
fn a_worker_is_stopped_for_a_later_epoch_or_the_end_of_its_part() {
    let now = Moment::default();
    for (order, exit) in [
        (order(1, 4, Duty::Hold, 1), None),
        (order(1, 3, Duty::Fail, 1), None),
        (order(1, 3, Duty::Retire, 1), None),
        (order(1, 3, Duty::Surrender, 1), Some(143)),
    ] {
        let mut agent = started(3);
        agent.ordered(&order, now);
        assert_eq!(effects(&mut agent), [AgentEffect::Terminate], "{order:?}");
        agent.gone(now);
        let exits: Vec<AgentEffect> = exit.map(AgentEffect::Exit).into_iter().collect();
        assert_eq!(effects(&mut agent), exits, "{order:?}");
    }
}

#[test]
fn who_is_told_that_its_part_is_over_takes_no_further_orders() {
    let mut agent = started(3);
    let now = Moment::default();
    agent.ordered(&order(1, 3, Duty::Retire, 1), now);
    agent.gone(now);
    effects(&mut agent);
    agent.ordered(&order(1, 4, Duty::Hold, 1), now);
    agent.ordered(&order(1, 4, Duty::Run, 1), now);
    assert_eq!(effects(&mut agent), []);
}

// rule: in-place-restart F28
#[test]
fn what_a_worker_leaves_behind_is_killed_before_it_counts_as_stopped() {
    let mut agent = started(0);
    let now = Moment::default();
    agent.effects().for_each(drop);
    agent.exited(Some(Cause::Exited(1)), now);
    let sent: Vec<AgentEffect> = agent.effects().collect();
    let [AgentEffect::Kill, AgentEffect::Send(report)] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!(report.worker, Worker::Failed(0, Cause::Exited(1)), "told at once");
    agent.ordered(&order(1, 1, Duty::Hold, 1), now);
    agent.tick(now + Duration::from_millis(100));
    let Some(AgentEffect::Send(report)) = agent.effects().next() else { panic!("no report") };
    assert_eq!(report.worker, Worker::Stopping);
    agent.gone(now);
    let Some(AgentEffect::Send(report)) = agent.effects().last() else { panic!("no report") };
    assert_eq!(report.worker, Worker::Idle);
}

#[test]
fn a_pod_that_is_deleted_ends_its_worker_in_its_own_time_and_without_success() {
    let mut agent = started(0);
    let now = Moment::default();
    agent.terminated(now);
    assert_eq!(effects(&mut agent), [AgentEffect::Terminate]);
    agent.tick(now + Duration::from_secs(25));
    assert_eq!(effects(&mut agent), [], "whoever deletes the pod keeps the time");
    agent.gone(now);
    assert_eq!(effects(&mut agent), [AgentEffect::Exit(143)]);

    // A success that the gang does not share is none, or the index would count as done.
    let mut agent = started(0);
    agent.exited(None, now);
    agent.gone(now);
    effects(&mut agent);
    agent.terminated(now);
    assert_eq!(effects(&mut agent), [AgentEffect::Exit(143)]);
}

#[test]
fn a_worker_that_cannot_be_started_has_failed() {
    let mut agent = agent();
    let now = Moment::default();
    agent.ordered(&order(1, 0, Duty::Hold, 1), now);
    agent.ordered(&order(1, 0, Duty::Run, 1), now);
    agent.not_spawned("no such file".into(), now);
    let Some(AgentEffect::Send(report)) = agent.effects().last() else { panic!("no report") };
    assert_eq!(report.worker, Worker::Failed(0, Cause::NotStarted("no such file".into())));
}

#[test]
fn an_order_that_is_carried_out_at_once_has_one_answer() {
    let mut agent = started(0);
    let now = Moment::default();
    agent.effects().for_each(drop);
    agent.ordered(&order(1, 1, Duty::Hold, 1), now);
    agent.gone(now + Duration::from_millis(20));
    let sends = agent.effects().filter(|effect| matches!(effect, AgentEffect::Send(_)));
    assert_eq!(sends.count(), 1);
}

#[test]
fn an_agent_shows_that_it_is_there() {
    let mut agent = started(0);
    agent.effects().for_each(drop);
    let mut sends = 0;
    for _ in 0..6 {
        let at = agent.deadline();
        agent.tick(at);
        sends += agent.effects().count();
        assert!(at.since(Moment::default()) <= Duration::from_secs(60));
    }
    assert_eq!(sends, 6);
}
