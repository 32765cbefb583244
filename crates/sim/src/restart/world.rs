//! One world: its clock, its events, and the end of it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::time::Duration;

use lockstep_control::plan::restart::{Duty, ExitRule, Phase, Record, Terms, Verdict};

use super::check::{Checks, Fact, Rules};
use super::events::{Event, Link, PodNews};
use super::fleet::Pod;
use super::leader::Leader;
use super::trouble::Trouble;
use super::vault::Vault;
use super::{Broken, Outcome, Setup};
use crate::chance::Chance;

/// When nothing has come to an end by now, it never will.
const END: u64 = 3 * 3600 * 1_000_000;
/// How long a worker of a quiet world takes to succeed.
const WORK_QUIET: u64 = 200 * 1_000_000;
/// How long a gang may take to leave once its end is decided.
const LEAVE_WITHIN: u64 = 600 * 1_000_000;

/// One world.
pub(super) struct World {
    pub(super) now: u64,
    pub(super) chance: Chance,
    pub(super) terms: Terms,
    /// How long a worker takes to succeed.
    pub(super) work: u64,
    pub(super) failures_left: u32,
    /// From when on nothing goes wrong any more.
    pub(super) calm_at: u64,
    pub(super) is_lossy: bool,
    pub(super) restarts_containers: bool,
    pub(super) pods: BTreeMap<u64, Pod>,
    pub(super) done: BTreeSet<u32>,
    /// What each agent was last asked for.
    pub(super) asked: BTreeMap<u64, (u32, Duty)>,
    pub(super) leaders: BTreeMap<u64, Leader>,
    pub(super) leading: Option<u64>,
    pub(super) fence: u64,
    pub(super) vault: Vault,
    pub(super) vault_generation: u32,
    pub(super) last_written: Option<Record>,
    pub(super) late_releases: u32,
    /// How often something was written that changed nothing.
    pub(super) idle_writes: u32,
    /// Whether the job has failed, as everybody can see.
    pub(super) has_failed: bool,
    /// Whether the user has deleted it.
    pub(super) is_deleted: bool,
    /// What waits for the next restart to happen in the middle of it.
    pub(super) ambush: Vec<Trouble>,
    pub(super) nature: Nature,
    pub(super) broken: Option<Broken>,
    pub(super) api_slow_until: u64,
    pub(super) outcome: Outcome,
    pub(super) scheduled: u64,
    pub(super) checks: Checks,
    /// Since when the end is decided.
    ended_at: Option<u64>,
    is_told: bool,
    ids: u64,
    queue: BinaryHeap<Reverse<(u64, u64)>>,
    events: BTreeMap<u64, Event>,
    /// When the last message of a connection arrives, each way: connections keep the order.
    pub(super) arrivals: BTreeMap<(Link, bool), u64>,
}

/// What a world is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Nature {
    /// Whatever is drawn happens.
    Drawn,
    /// Nothing happens but what is done to it from outside.
    Quiet,
    /// The same, and the first worker cannot be stopped at first.
    Slow,
}

/// Runs one world to its end.
pub(super) fn run(setup: &Setup) -> Outcome {
    let mut world = World::new(setup, Nature::Drawn);
    world.begin(setup.seed);
    while !world.is_done()
        && let Some(event) = world.next()
    {
        world.happen(event);
    }
    world.finish()
}

impl World {
    pub(super) fn new(setup: &Setup, nature: Nature) -> Self {
        let mut chance = Chance::new(setup.seed, "restart");
        let slots = setup.slots.unwrap_or_else(|| 3 + chance.below(3));
        let max_restarts = chance.weighted(&[(1, 0), (2, 1), (3, 3), (4, 20)]);
        let mut terms = Terms::new(slots, max_restarts, Duration::from_secs(60));
        terms.stalled_max = chance.pick(&[3, 10, 100]);
        terms.is_rejoining = !setup.is_parting;
        let restarts_containers = chance.percent(50);
        if !restarts_containers && chance.percent(40) {
            let rule = |code, verdict| ExitRule {
                slots: 0..slots,
                is_in: true,
                codes: vec![code],
                verdict,
            };
            terms.rules = vec![rule(42, Verdict::Surrender), rule(137, Verdict::Ignore)];
        }
        let mut work = u64::from(1 + chance.below(40)) * 1_000_000;
        if nature != Nature::Drawn {
            (terms.max_restarts, terms.rules, work) = (20, Vec::new(), WORK_QUIET);
        }
        let Terms { max_restarts, is_rejoining, .. } = terms;
        let checks = Checks::new(Rules { max_restarts, is_rejoining });
        Self {
            now: 0,
            failures_left: match nature {
                Nature::Drawn => chance.weighted(&[(3, 0), (4, 1), (3, 3), (1, 12)]),
                Nature::Quiet | Nature::Slow => 0,
            },
            is_lossy: chance.percent(40),
            terms,
            calm_at: work * 3,
            work,
            restarts_containers,
            chance,
            pods: BTreeMap::new(),
            done: BTreeSet::new(),
            asked: BTreeMap::new(),
            leaders: BTreeMap::new(),
            leading: None,
            fence: 0,
            vault: Vault::default(),
            vault_generation: 1,
            last_written: None,
            late_releases: 0,
            idle_writes: 0,
            has_failed: false,
            is_deleted: false,
            ambush: Vec::new(),
            nature,
            broken: setup.broken,
            api_slow_until: 0,
            outcome: Outcome::default(),
            scheduled: 0,
            checks,
            ended_at: None,
            is_told: setup.is_told,
            ids: 0,
            queue: BinaryHeap::new(),
            events: BTreeMap::new(),
            arrivals: BTreeMap::new(),
        }
    }

    pub(super) fn begin(&mut self, seed: u64) {
        self.after(1, Event::Elect);
        for slot in 0..self.terms.slots {
            let delay = self.micros(1_000, 2_000_000);
            self.after(delay, Event::CreatePod { slot });
        }
        if self.nature == Nature::Drawn {
            self.plan_trouble();
            self.plan_changes(seed);
        }
    }

    /// When the next thing happens.
    pub(super) fn next_at(&self) -> Option<u64> {
        self.queue.peek().map(|Reverse((at, _))| *at)
    }

    /// The next thing that happens, now.
    pub(super) fn next(&mut self) -> Option<Event> {
        let Reverse((at, id)) = self.queue.pop()?;
        self.now = at;
        self.outcome.events += 1;
        self.events.remove(&id)
    }

    /// Whether nothing of interest can happen any more.
    pub(super) fn is_done(&mut self) -> bool {
        if !self.checks.violations().is_empty() {
            return true;
        }
        if self.now > END {
            self.stuck();
            return true;
        }
        self.ended_at = if self.is_over() { self.ended_at.or(Some(self.now)) } else { None };
        // Whatever comes late to a job that was deleted comes to nothing: that is to be seen.
        !self.is_deleted && self.ended_at.is_some_and(|ended_at| self.has_left(ended_at))
    }

    /// Whether the end is decided.
    pub(super) fn is_over(&self) -> bool {
        let has_ended = self.last_written.is_some_and(|record| record.phase.is_terminal());
        self.has_failed || self.is_deleted || has_ended
    }

    pub(super) fn happen(&mut self, event: Event) {
        // What reaches a leader that does not run waits until it does.
        let leader = event.leader();
        if let Some(until) = leader.and_then(|leader| self.paused_until(leader)) {
            self.at(until, event);
            return;
        }
        match event {
            Event::Boot { pod } => self.boot(pod),
            Event::Dial { pod, session, tries } => self.dialled(pod, session, tries),
            Event::AgentTick { pod, session } => self.agent_tick(pod, session),
            Event::Spawned { pod, epoch } => self.spawned(pod, epoch),
            Event::Exited { pod, process, code } => self.exited(pod, process, code),
            Event::Gone { pod, process } => self.gone(pod, process),
            Event::ToAgent { pod, session, link, order } => {
                if self.arrives(pod, session, link) {
                    self.deliver_order(pod, session, &order);
                }
            }
            Event::ToLeader { link, report } => {
                self.deliver_report(link.leader, link.number, &report);
            }
            Event::LinkLost { link, slot } => {
                if let Some(leader) = self.leaders.get_mut(&link.leader) {
                    leader.links.remove(&link.number);
                }
                self.leader(link.leader, |machine, now| machine.lost(slot, link.number, now));
            }
            Event::LeaderTick { leader } => self.leader_tick(leader),
            Event::Store { leader, record, expected } => self.store(leader, record, expected),
            Event::Stored { leader, version, answer } => self.stored(leader, version, answer),
            Event::News { leader, slot, pod, news } => self.heard_news(leader, slot, pod, news),
            Event::CreatePod { slot } => self.create_pod(slot),
            Event::DeletePod { pod } => self.delete_pod(pod),
            Event::EndPod { pod, is_forced } => self.end_pod(pod, is_forced),
            Event::Sweep { generation } => self.sweep(generation),
            Event::Remind { leader } => self.remind(leader),
            Event::Elect => {
                if self.leading.is_none() {
                    self.elect();
                }
            }
            Event::Depose { leader } => self.depose(leader),
            Event::Policy => self.policy(),
            Event::Resume => self.resume(),
            Event::Amend { leader } => self.amend(leader),
            Event::Resized => self.resized(),
            Event::Forget => self.forget(),
            Event::Trouble(trouble) => self.trouble(trouble),
        }
    }

    // Pods, as the Jobs of the gang make them.

    fn create_pod(&mut self, slot: u32) {
        let is_taken = self.pods.values().any(|pod| pod.slot == slot && !pod.is_gone);
        let is_over = self.has_failed
            || self.is_deleted
            || slot >= self.terms.slots
            || self.last_written.is_some_and(|record| record.phase == Phase::Suspended);
        if is_taken || is_over || self.done.contains(&slot) {
            return;
        }
        let (number, generation) = (self.next_id(), self.vault_generation);
        self.tell(|| format!("pod {number} for worker {slot}, generation {generation}"));
        self.pods.insert(number, Pod::new(slot, generation));
        self.tell_leaders_of_pod(slot, number, PodNews::Seen);
        let delay = self.micros(100_000, 3_000_000);
        self.after(delay, Event::Boot { pod: number });
    }

    /// A slot without a pod gets one.
    pub(super) fn fill(&mut self, slot: u32) {
        let delay = self.micros(100_000, 5_000_000) + self.api_delay();
        self.after(delay, Event::CreatePod { slot });
    }

    /// Everything of earlier generations goes, and all of it when the job is suspended.
    fn sweep(&mut self, generation: u32) {
        let is_suspended = self.last_written.is_some_and(|record| record.phase == Phase::Suspended);
        let old: Vec<u64> = self
            .pods
            .iter()
            .filter(|(_, pod)| !pod.is_gone && (pod.generation < generation || is_suspended))
            .map(|(number, _)| *number)
            .collect();
        old.into_iter().for_each(|pod| self.delete_pod(pod));
        for slot in 0..self.terms.slots {
            self.fill(slot);
        }
    }

    /// The failure policy of the job answers a failure that was handed to it.
    fn policy(&mut self) {
        let is_asked =
            self.vault.record().is_some_and(|record| matches!(record.phase, Phase::Surrendered(_)));
        if is_asked {
            self.regenerate();
            // Asked again, should the leader have died over it.
            self.after(20_000_000, Event::Policy);
        }
    }

    // Time, chance and the story.

    pub(super) fn at(&mut self, at: u64, event: Event) {
        self.scheduled += 1;
        let id = self.next_id();
        self.queue.push(Reverse((at, id)));
        self.events.insert(id, event);
    }

    pub(super) fn after(&mut self, delay: u64, event: Event) {
        self.at(self.now + delay, event);
    }

    pub(super) fn micros(&mut self, first: u64, last: u64) -> u64 {
        let (first, last) = (first.cast_signed(), last.max(first).cast_signed());
        self.chance.micros(first, last).cast_unsigned()
    }

    pub(super) fn api_delay(&self) -> u64 {
        self.api_slow_until.saturating_sub(self.now)
    }

    pub(super) const fn next_id(&mut self) -> u64 {
        self.ids += 1;
        self.ids
    }

    pub(super) const fn is_calm(&self) -> bool {
        self.now >= self.calm_at
    }

    /// The epoch that the gang is in.
    pub(super) fn epoch(&self) -> u32 {
        self.last_written.map_or(0, |record| record.epoch)
    }

    pub(super) fn note(&mut self, fact: Fact) {
        self.checks.note(fact);
    }

    pub(super) fn fail(&mut self, invariant: &'static str, what: &str) {
        self.checks.fail(invariant, what);
    }

    pub(super) fn tell(&mut self, what: impl FnOnce() -> String) {
        if self.is_told {
            let line = format!("{:>12.6} {}", self.now as f64 / 1e6, what());
            self.outcome.story.push(line);
        }
    }

    /// Whether everybody has done what the end of a gang asks for.
    fn has_left(&mut self, ended_at: u64) -> bool {
        let complete = self.last_written.filter(|record| record.phase == Phase::Succeeding);
        let has_left = match complete {
            // Those that the user has removed meanwhile need not have completed.
            Some(record) => {
                let slots = record.slots.min(self.terms.slots);
                self.done.range(..slots).count() == slots as usize
            }
            None => !self.checks.is_anyone_running(),
        };
        if !has_left && self.now - ended_at > LEAVE_WITHIN {
            self.fail("L1", "the end is decided and workers are left");
            return true;
        }
        has_left
    }

    fn stuck(&mut self) {
        let state = self.state();
        self.fail("L1", &format!("no end: {state}"));
    }

    /// Where the gang is, and what its leaders wait for.
    pub(super) fn state(&self) -> String {
        let record = self.vault.record().copied();
        let waiting: Vec<String> =
            self.leaders.values().map(|leader| format!("{:?}", leader.machine.waiting())).collect();
        format!("{record:?}, {waiting:?}")
    }

    pub(super) fn finish(mut self) -> Outcome {
        let record = self.last_written;
        let is_over = self.is_over();
        self.checks.end(self.epoch(), is_over);
        if self.checks.violations().is_empty() && !is_over {
            self.stuck();
        }
        if self.is_deleted && self.pods.values().any(|pod| !pod.is_gone) {
            self.fail("L1", "the job was deleted and pods are left");
        }
        if self.late_releases > 6 {
            let what = format!("{} releases after the last fault", self.late_releases);
            self.fail("L3", &what);
        }
        let is_success = record.is_some_and(|it| it.phase == Phase::Succeeding);
        self.outcome.is_complete = is_success && !self.is_deleted;
        let first = self.checks.violations().first();
        self.outcome.violation = first.map(|(invariant, what)| format!("{invariant}: {what}"));
        self.outcome
    }
}
