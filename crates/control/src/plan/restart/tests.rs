//! Both machines together: a gang at one desk, without a network in between.

mod agents;
mod budgets;
mod failing;
mod leading;
mod lost;
mod stores;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use super::*;

/// One agent with its worker and its connection.
struct Seat {
    agent: Agent,
    identity: Identity,
    link: u64,
    /// The leader it is connected to.
    fence: u64,
    /// What its worker was started for, while there is one.
    runs: Option<u32>,
    /// A worker that does not end when it is asked to.
    is_deaf: bool,
    /// One that cannot be killed either.
    is_stuck: bool,
    /// Whether orders reach it, and reports are heard.
    hears: bool,
    speaks: bool,
    /// What its container has ended with.
    exit: Option<i32>,
    /// How often a worker was started, and for which epochs.
    starts: Vec<u32>,
}

/// A gang of which every message arrives, unless a test wants otherwise.
struct Gang {
    now: Moment,
    terms: Terms,
    leader: Option<Orchestrator>,
    store: Option<Record>,
    is_store_up: bool,
    fence: u64,
    seats: BTreeMap<u32, Seat>,
    ids: u64,
    /// What was asked of the world around, in order.
    asked: Vec<Effect>,
    /// Orders that were sent to everybody.
    broadcasts: u32,
    writes: u32,
}

fn terms(slots: u32) -> Terms {
    Terms::new(slots, 3, Duration::from_secs(60))
}

impl Gang {
    /// A gang that has been released for the first time.
    fn running(terms: Terms) -> Self {
        let slots = terms.slots;
        let mut gang = Self::led(terms);
        (0..slots).for_each(|slot| gang.join(slot));
        gang.settle();
        assert_eq!(gang.phase(), Phase::Running);
        gang
    }

    /// A gang that has a leader and nobody else.
    fn led(terms: Terms) -> Self {
        let mut gang = Self {
            now: Moment::default(),
            terms,
            leader: None,
            store: None,
            is_store_up: true,
            fence: 0,
            seats: BTreeMap::new(),
            ids: 0,
            asked: Vec::new(),
            broadcasts: 0,
            writes: 0,
        };
        gang.lead();
        gang
    }

    fn next_id(&mut self) -> u64 {
        self.ids += 1;
        self.ids
    }

    /// A leader takes over, and all agents find it.
    fn lead(&mut self) {
        self.take_over();
        let slots: Vec<u32> = self.seats.keys().copied().collect();
        slots.into_iter().for_each(|slot| self.connect(slot));
        self.settle();
    }

    /// A leader takes over that nobody has found yet.
    fn take_over(&mut self) {
        self.fence += 1;
        let mut leader = Orchestrator::lead(self.terms.clone(), self.fence, self.store);
        for (slot, seat) in &self.seats {
            leader.pod_seen(*slot, seat.identity.pod, self.now);
        }
        leader.pods_known(self.now);
        self.leader = Some(leader);
        self.settle();
    }

    /// A pod with an agent takes this place, and connects.
    fn join(&mut self, slot: u32) {
        let (pod, session) = (self.next_id(), self.next_id());
        self.seat(Identity { slot, pod, session, generation: self.generation() });
    }

    fn seat(&mut self, identity: Identity) {
        let agent = Agent::new(identity, self.terms.grace, self.now);
        let seat = Seat {
            agent,
            identity,
            link: 0,
            fence: 0,
            runs: None,
            is_deaf: false,
            is_stuck: false,
            hears: true,
            speaks: true,
            exit: None,
            starts: Vec::new(),
        };
        let slot = identity.slot;
        self.seats.insert(slot, seat);
        let now = self.now;
        self.leader().pod_seen(slot, identity.pod, now);
        self.connect(slot);
        self.settle();
    }

    /// The container of a worker is started anew in its pod.
    fn reboot(&mut self, slot: u32) {
        let session = self.next_id();
        let identity = Identity { session, ..self.seats[&slot].identity };
        self.drop_link(slot);
        self.seat(identity);
    }

    fn connect(&mut self, slot: u32) {
        let (link, now, fence) = (self.next_id(), self.now, self.fence);
        let seat = self.seats.get_mut(&slot).unwrap();
        (seat.link, seat.fence) = (link, fence);
        seat.agent.connected(now);
    }

    fn drop_link(&mut self, slot: u32) {
        let (link, now) = (self.seats[&slot].link, self.now);
        self.leader().lost(slot, link, now);
    }

    /// The pod of a worker is gone, and its agent with it.
    fn lose_pod(&mut self, slot: u32) {
        let seat = self.seats.remove(&slot).unwrap();
        let now = self.now;
        self.leader().pod_gone(slot, seat.identity.pod, None, now);
        self.settle();
    }

    fn leader(&mut self) -> &mut Orchestrator {
        self.leader.as_mut().expect("the test has a leader")
    }

    fn seat_of(&mut self, slot: u32) -> &mut Seat {
        self.seats.get_mut(&slot).expect("the test has this worker")
    }

    fn exits(&mut self, slot: u32, code: i32) {
        let now = self.now;
        let seat = self.seat_of(slot);
        assert!(seat.runs.is_some(), "worker {slot} does not run");
        seat.agent.exited((code != 0).then_some(Cause::Exited(code)), now);
    }

    /// Lets everything happen that can happen now.
    fn settle(&mut self) {
        for _ in 0..1000 {
            let is_quiet = !self.settle_agents() & !self.settle_leader();
            if is_quiet {
                return;
            }
        }
        panic!("it never ends");
    }

    /// Lets time pass, with everything that it brings.
    fn pass(&mut self, span: Duration) {
        let end = self.now + span;
        self.settle();
        loop {
            let deadlines = self.seats.values().filter(|seat| seat.exit.is_none());
            let deadlines = deadlines.map(|seat| seat.agent.deadline());
            let leader = self.leader.as_ref().and_then(Orchestrator::deadline);
            let next = deadlines.chain(leader).min().filter(|at| *at <= end);
            let Some(next) = next else { break };
            self.now = self.now.max(next);
            let now = self.now;
            if let Some(leader) = &mut self.leader {
                leader.tick(now);
            }
            self.seats.values_mut().for_each(|seat| seat.agent.tick(now));
            self.settle();
        }
        self.now = end;
    }

    fn settle_agents(&mut self) -> bool {
        let mut has_moved = false;
        let slots: Vec<u32> = self.seats.keys().copied().collect();
        for slot in slots {
            let effects: Vec<AgentEffect> = self.seat_of(slot).agent.effects().collect();
            for effect in effects {
                has_moved = true;
                self.carry_out(slot, effect);
            }
        }
        has_moved
    }

    fn carry_out(&mut self, slot: u32, effect: AgentEffect) {
        let now = self.now;
        let seat = self.seat_of(slot);
        match effect {
            AgentEffect::Spawn { epoch, .. } => {
                assert_eq!(seat.runs, None, "worker {slot} is started twice");
                seat.runs = Some(epoch);
                seat.starts.push(epoch);
                seat.agent.spawned(now);
            }
            AgentEffect::Terminate if seat.is_deaf || seat.is_stuck => {}
            AgentEffect::Kill if seat.is_stuck => {}
            AgentEffect::Terminate | AgentEffect::Kill => {
                seat.runs = None;
                seat.agent.gone(now);
            }
            AgentEffect::Send(report) => {
                let link = seat.link;
                let is_heard = seat.speaks && seat.fence == self.fence;
                if let Some(leader) = self.leader.as_mut().filter(|_| is_heard) {
                    leader.heard(link, &report, now);
                }
            }
            AgentEffect::Exit(code) => seat.exit = Some(code),
        }
    }

    fn settle_leader(&mut self) -> bool {
        let Some(leader) = &mut self.leader else { return false };
        let mut effects: VecDeque<Effect> = leader.effects().collect();
        let has_moved = !effects.is_empty();
        while let Some(effect) = effects.pop_front() {
            self.lead_out(effect);
        }
        has_moved
    }

    fn lead_out(&mut self, effect: Effect) {
        let now = self.now;
        match effect {
            Effect::Commit(record, expected) => {
                let version = record.version();
                if !self.is_store_up {
                    self.leader().not_committed(version, now);
                } else if !expected.allows(self.store.as_ref(), &record) {
                    let fence = self.store.map_or(0, |found| found.fence);
                    self.leader().refused(fence);
                } else {
                    self.writes += 1;
                    self.store = Some(record);
                    self.leader().committed(version, now);
                }
            }
            Effect::Broadcast(order) => {
                self.broadcasts += 1;
                let fence = self.fence;
                for seat in self.seats.values_mut() {
                    if seat.hears && seat.fence == fence {
                        seat.agent.ordered(&order, now);
                    }
                }
            }
            Effect::Tell(link, order) => {
                let mut seats = self.seats.values_mut();
                if let Some(seat) = seats.find(|seat| seat.link == link && seat.hears) {
                    seat.agent.ordered(&order, now);
                }
            }
            Effect::Close(_) => {}
            Effect::Replace(_)
            | Effect::Recreate { .. }
            | Effect::Fail(_)
            | Effect::Restarted(_)
            | Effect::StepDown(_) => self.asked.push(effect),
        }
    }

    fn record(&self) -> Record {
        *self.leader.as_ref().expect("the test has a leader").record()
    }

    fn phase(&self) -> Phase {
        self.record().phase
    }

    fn generation(&self) -> u32 {
        self.leader.as_ref().map_or(1, |leader| leader.record().generation)
    }

    /// What each worker runs.
    fn runs(&self) -> Vec<Option<u32>> {
        self.seats.values().map(|seat| seat.runs).collect()
    }

    fn restarted(&self) -> Vec<&Waterfall> {
        let all = self.asked.iter();
        all.filter_map(|effect| if let Effect::Restarted(it) = effect { Some(it) } else { None })
            .collect()
    }

    fn replaced(&self) -> Vec<u32> {
        let all = self.asked.iter();
        all.filter_map(|effect| if let Effect::Replace(it) = effect { Some(it) } else { None })
            .flatten()
            .map(|(slot, _)| *slot)
            .collect()
    }
}
