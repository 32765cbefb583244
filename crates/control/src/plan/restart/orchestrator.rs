//! The end that leads: one orchestrator for each gang.
//!
//! It hears reports and news of pods, decides, writes the decision down and only then tells it.
//! While a decision is being written nothing else is decided and nobody new is told anything: what
//! comes in meanwhile is noted, and looked at when the store has answered.

mod decide;
mod ladder;
mod slots;
mod summary;
mod waterfall;

use std::time::Duration;

use super::{Cause, Restarts, Terms, Waiting, Worker, waiting};
use super::{Duty, Expected, Held, Moment, Order, Phase, Rank, Reason, Record, Report};
use ladder::Ladder;
use slots::{Heard, Slots, Standing};
pub use summary::Workers;
pub use waterfall::Waterfall;

/// What the shell of an orchestrator has to do. Doing it twice is harmless.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Write this, in one step with the look whether what is there allows it
    /// ([`Expected::allows`]); then [`Orchestrator::committed`], [`Orchestrator::not_committed`] or
    /// [`Orchestrator::refused`].
    Commit(Record, Expected),
    /// Tell every agent that is connected. It replaces what was not sent yet.
    Broadcast(Order),
    /// Tell the agent on this connection.
    Tell(u64, Order),
    /// Close this connection, when what it was told is sent.
    Close(u64),
    /// Delete these pods, so that their Jobs replace them: slot and pod.
    Replace(Vec<(u32, u64)>),
    /// Delete everything of earlier generations than this, so that all pods are made anew.
    Recreate {
        /// The generation to make.
        generation: u32,
    },
    /// The job has failed.
    Fail(Reason),
    /// A restart is complete.
    Restarted(Waterfall),
    /// Somebody else leads or has led meanwhile, with this fence: this orchestrator does nothing
    /// any more. Whoever still holds the lease reads the record and starts over with a later fence.
    StepDown(u64),
}

/// How long the agents have to show that they hold an order before it is sent to them again, at
/// first and at most; and for each of them, since it takes time to tell them and to hear them all.
const RESEND: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(4));
const RESEND_EACH: Duration = Duration::from_micros(100);
/// The same for a record that could not be written.
const RETRY: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(2));

/// The latest state that an agent has shown and the record does not have.
#[derive(Clone, Copy, Debug)]
struct Ahead {
    held: Held,
    restarts: Restarts,
}

/// A record on its way into the store.
#[derive(Clone, Copy, Debug)]
struct Flight {
    record: Record,
    /// When to try again, after it could not be written.
    retry_at: Option<Moment>,
    wait: Duration,
}

/// The orchestrator of one gang, as long as one leader leads it.
#[derive(Clone, Debug)]
pub struct Orchestrator {
    terms: Terms,
    record: Record,
    flight: Option<Flight>,
    /// What was found in the store.
    found: Option<(u64, u64)>,
    /// Whether this leader has written anything, which shows that it may.
    is_confirmed: bool,
    is_deposed: bool,
    slots: Slots,
    ahead: Option<Ahead>,
    /// A generation of pods that the caller makes, and whether that counts as a restart.
    regenerated: Option<(u32, bool)>,
    ladder: Ladder,
    /// Pods to be replaced once a write has shown that this leader still leads.
    doomed: Vec<(u32, u64)>,
    /// Since when every worker runs.
    running_since: Option<Moment>,
    waterfall: Option<Waterfall>,
    /// The worker that failed last, and how.
    last_failure: Option<(u32, Cause)>,
    resend_at: Option<Moment>,
    resend_wait: Duration,
    effects: Vec<Effect>,
}

impl Orchestrator {
    /// Takes over a gang under `fence`, which must be later than the one in `stored`, the record
    /// that was found.
    pub fn lead(terms: Terms, fence: u64, stored: Option<Record>) -> Self {
        let found = stored.unwrap_or_else(|| Record::new(fence, &terms));
        let by = if found.phase.is_gathering() { fence } else { found.by };
        let restarts = found.restarts.max(terms.restarts);
        let record = Record { fence, revision: 0, by, restarts, ..found };
        let regenerated =
            (terms.generation > found.generation).then_some((terms.generation, false));
        let mut orchestrator = Self {
            slots: Slots::new(record.slots, &terms.completion),
            terms,
            record,
            flight: None,
            found: stored.map(|stored| stored.version()),
            is_confirmed: false,
            is_deposed: false,
            ahead: None,
            regenerated,
            ladder: Ladder::default(),
            doomed: Vec::new(),
            running_since: None,
            waterfall: None,
            last_failure: None,
            resend_at: None,
            resend_wait: resend_wait(record.slots),
            effects: Vec::new(),
        };
        orchestrator.slots.recount(&record);
        orchestrator.propose(record);
        orchestrator
    }

    /// What is to be done now, in order.
    pub fn effects(&mut self) -> impl Iterator<Item = Effect> + use<'_> {
        self.effects.drain(..)
    }

    /// The last record that was written.
    pub const fn record(&self) -> &Record {
        &self.record
    }

    /// The worker that failed last under this leader, and how.
    pub const fn last_failure(&self) -> Option<&(u32, Cause)> {
        self.last_failure.as_ref()
    }

    /// When [`Orchestrator::tick`] has something to do.
    pub fn deadline(&self) -> Option<Moment> {
        if self.is_deposed {
            return None;
        }
        if let Some(flight) = self.flight {
            return flight.retry_at;
        }
        let resend = if self.slots.behind_order() > 0 { self.resend_at } else { None };
        [self.ladder.deadline(), resend].into_iter().flatten().min()
    }

    /// A report came in on a connection. Connections are numbered as they are made.
    pub fn heard(&mut self, link: u64, report: &Report, now: Moment) {
        if self.is_deposed {
            return;
        }
        if report.fence > self.record.fence {
            self.step_down(report.fence);
            return;
        }
        let is_late = report.generation < self.record.generation;
        if is_late || report.slot >= self.slots.len() {
            if !is_late && report.slot < self.terms.slots {
                // Its place is wanted, and about to be written down: it comes again.
                self.effects.push(Effect::Close(link));
            } else {
                self.retire(link, report);
            }
            return;
        }
        if report.generation > self.record.generation {
            // Pods that this record knows nothing of: it is behind.
            self.regenerated = self.regenerated.max(Some((report.generation, false)));
        }
        self.note_ahead(report);
        match self.slots.heard(link, report, &self.record) {
            Heard::Superseded => self.retire(link, report),
            Heard::Old => {}
            Heard::First { replaced } => {
                self.effects.extend(replaced.map(Effect::Close));
                self.slots.joined(report.slot, now);
                self.welcome(link, report.slot, now);
            }
            Heard::News => {}
        }
        self.note_stages(now);
        self.decide(now);
    }

    /// A connection was lost.
    pub fn lost(&mut self, slot: u32, link: u64, now: Moment) {
        self.slots.lost(slot, link, &self.record);
        self.note_stages(now);
    }

    /// There is such a pod in a slot.
    pub fn pod_seen(&mut self, slot: u32, pod: u64, now: Moment) {
        self.slots.pod_seen(slot, pod, &self.record);
        self.decide(now);
    }

    /// A pod is being deleted.
    pub fn pod_ending(&mut self, slot: u32, pod: u64, now: Moment) {
        self.slots.pod_ending(slot, pod, &self.record);
        self.note_stages(now);
        self.decide(now);
    }

    /// Whether the Job of a pod would not count its end. To be called before it ends.
    pub fn pod_excused(&mut self, slot: u32, pod: u64, is_excused: bool) {
        self.slots.pod_excused(slot, pod, is_excused);
    }

    /// A pod has ended or vanished; `completed` is its generation if it has completed.
    pub fn pod_gone(&mut self, slot: u32, pod: u64, completed: Option<u32>, now: Moment) {
        self.slots.pod_gone(slot, pod, completed, &self.record);
        self.note_stages(now);
        self.decide(now);
    }

    /// Every pod there is has been told of.
    pub fn pods_known(&mut self, now: Moment) {
        self.slots.pods_known(&self.record);
        self.decide(now);
    }

    /// The job was suspended or resumed. To be called before anything is done about it.
    pub fn suspended(&mut self, is_suspended: bool, now: Moment) {
        self.terms.is_suspended = is_suspended;
        self.decide(now);
    }

    /// The job makes all its pods anew for its own reasons. To be called before it does.
    pub fn regenerated(&mut self, generation: u32, is_counted: bool, now: Moment) {
        self.regenerated = self.regenerated.max(Some((generation, is_counted)));
        self.decide(now);
    }

    /// The job has other terms, such as another number of workers.
    pub fn amended(&mut self, terms: Terms, now: Moment) {
        self.terms = terms;
        self.decide(now);
    }

    /// The record was written.
    pub fn committed(&mut self, version: (u64, u64), now: Moment) {
        let Some(flight) = self.flight.take_if(|flight| flight.record.version() == version) else {
            return;
        };
        if self.is_deposed {
            return;
        }
        self.enter(flight.record, now);
        self.decide(now);
    }

    /// Whether the record was written is not known, or it was not.
    pub fn not_committed(&mut self, version: (u64, u64), now: Moment) {
        if let Some(flight) = self.flight.as_mut().filter(|it| it.record.version() == version) {
            flight.retry_at = Some(now + flight.wait);
            flight.wait = (flight.wait * 2).min(RETRY.1);
        }
    }

    /// The store has another record than was expected, of this fence.
    pub fn refused(&mut self, fence: u64) {
        self.step_down(fence);
    }

    /// Time has passed.
    pub fn tick(&mut self, now: Moment) {
        if self.is_deposed {
            return;
        }
        if let Some(flight) = &mut self.flight
            && flight.retry_at.is_some_and(|at| at <= now)
        {
            // A later version, so that the first try cannot undo it when it arrives at last.
            flight.record.revision += 1;
            flight.retry_at = None;
            let record = flight.record;
            self.effects.push(Effect::Commit(record, self.expected()));
        }
        if self.flight.is_none() && self.resend_at.is_some_and(|at| at <= now) {
            self.resend(now);
        }
        self.decide(now);
    }

    /// Whether a record is on its way into the store.
    pub const fn is_writing(&self) -> bool {
        self.flight.is_some()
    }

    /// Why nothing moves, if so.
    pub fn waiting(&self) -> Option<Waiting> {
        if self.flight.is_some_and(|flight| flight.wait > RETRY.0) {
            return Some(Waiting::Store);
        }
        match self.record.phase {
            Phase::Suspended => Some(Waiting::Suspended),
            Phase::Surrendered(slot) => Some(Waiting::FailurePolicy { slot }),
            Phase::Forming | Phase::Stopping | Phase::Recreating => {
                let named = |standing| {
                    let those = self.slots.iter().map(|(at, _)| at);
                    let those = those.filter(|at| self.slots.standing(*at) == standing);
                    those.take(waiting::NAMED_MAX).collect()
                };
                // A gang that forms waits for its first pods, which nobody puts off.
                let is_restart = self.record.phase == Phase::Stopping;
                let podless = self.slots.without_pod();
                let behind = self.slots.count(Standing::Behind);
                let missing = self.slots.count(Standing::Missing);
                if behind > 0 {
                    Some(Waiting::Stops { count: behind, slots: named(Standing::Behind) })
                } else if missing > 0 && podless.len() == missing as usize && is_restart {
                    let slots = podless.into_iter().take(waiting::NAMED_MAX).collect();
                    Some(Waiting::Replacements { count: missing, slots })
                } else if missing > 0 {
                    Some(Waiting::Members { count: missing, slots: named(Standing::Missing) })
                } else if self.slots.count(Standing::Haunted) > 0 {
                    Some(Waiting::EarlierPods { slots: named(Standing::Haunted) })
                } else if self.slots.strays() > 0 {
                    Some(Waiting::Strays { count: self.slots.strays() })
                } else {
                    (!self.slots.are_pods_known()).then_some(Waiting::Pods)
                }
            }
            Phase::Running | Phase::Succeeding | Phase::Failed(_) => None,
        }
    }

    /// What an agent knows that the record does not have: a store that was wiped, or is behind.
    fn note_ahead(&mut self, report: &Report) {
        // What it was told alone says nothing of the gang.
        let Some(held) = report.held.filter(|held| !held.rank.duty.is_personal()) else { return };
        let restarts = report.restarts;
        let known = self.flight.map_or(self.record, |flight| flight.record);
        if held.rank > known.rank() || restarts.max(known.restarts) != known.restarts {
            let ahead = self.ahead.unwrap_or(Ahead { held, restarts });
            let held = if held.rank > ahead.held.rank { held } else { ahead.held };
            self.ahead = Some(Ahead { held, restarts: ahead.restarts.max(restarts) });
        }
    }

    /// Tells an agent that is not, or no longer, part of the gang that it is not. Once is enough:
    /// it answers, and an answer to the answer would never end.
    fn retire(&mut self, link: u64, report: &Report) {
        if !report.held.is_some_and(|held| held.rank.duty.is_personal()) {
            self.dismiss(link, Duty::Retire);
        }
    }

    /// Tells one agent that its part is over.
    fn dismiss(&mut self, link: u64, duty: Duty) {
        if self.is_confirmed {
            let order = self.record.order();
            let rank = Rank { duty, ..order.rank };
            self.effects.push(Effect::Tell(link, Order { rank, ..order }));
        } else {
            self.effects.push(Effect::Close(link));
        }
    }

    /// Tells an agent that has just connected where the gang is. Not while a decision is on its
    /// way: if it is the release of an epoch, this agent was not waited for.
    fn welcome(&mut self, link: u64, slot: u32, now: Moment) {
        let is_told = self.record.phase != Phase::Suspended;
        let worker = self.slots.get(slot).map(|slot| &slot.worker);
        let has_failed = matches!(worker, Some(Worker::Failed(..)));
        if self.record.phase == Phase::Surrendered(slot) && has_failed && self.flight.is_none() {
            // It may have been told on a connection that was lost.
            self.dismiss(link, Duty::Surrender);
            return;
        }
        if self.flight.is_none() && self.is_confirmed && is_told && self.is_behind(slot) {
            self.effects.push(Effect::Tell(link, self.record.order()));
            let at = now + self.resend_wait;
            self.resend_at = Some(self.resend_at.map_or(at, |resend_at| resend_at.min(at)));
        }
    }

    fn is_behind(&self, slot: u32) -> bool {
        self.slots.get(slot).is_some_and(|slot| slot.is_behind(&self.record.order()))
    }

    fn resend(&mut self, now: Moment) {
        let (order, slots) = (self.record.order(), self.record.slots);
        self.effects.extend(self.slots.links_behind().map(|link| Effect::Tell(link, order)));
        self.resend_wait = (self.resend_wait * 2).min(RESEND.1.max(resend_wait(slots)));
        self.resend_at = Some(now + self.resend_wait);
    }

    fn propose(&mut self, record: Record) {
        let revision = self.record.revision + 1;
        let record = Record { revision, ..record };
        self.flight = Some(Flight { record, retry_at: None, wait: RETRY.0 });
        self.effects.push(Effect::Commit(record, self.expected()));
    }

    /// A leader may overwrite what it has written itself, and at first only what it has read.
    const fn expected(&self) -> Expected {
        if self.is_confirmed { Expected::Older } else { Expected::Found(self.found) }
    }

    fn step_down(&mut self, fence: u64) {
        if !self.is_deposed {
            self.is_deposed = true;
            self.flight = None;
            self.effects.push(Effect::StepDown(fence));
        }
    }
}

/// How long agents have to show that they hold an order, the first time.
fn resend_wait(slots: u32) -> Duration {
    RESEND.0 + RESEND_EACH * slots
}
