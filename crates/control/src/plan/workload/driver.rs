//! The driver: many workloads, what is due, and what became of the steps.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use lockstep_api::kueue::{Workload, WorkloadPriorityClass};

use super::classes::Classes;
use super::company::Departures;
use super::{Options, Plan, Scene, Step, Waiting, plan, version};
use crate::engine::{self, Failure, Stale, Turns, after};
use crate::plan::queue::Around;
use crate::plan::{Event, Key, Refusal, RefusalKind};

/// All workloads of a cluster and when each wants a pass.
///
/// The shell tells what its watch brings, then asks [`Workloads::next`] for passes, carries out the
/// steps of each, reports what became of them, and says [`Workloads::done`]. A workload is in one
/// pass at a time. When there is nothing to do the shell sleeps until [`Workloads::next_due`], or
/// until something is seen.
#[derive(Clone, Debug)]
pub struct Workloads {
    options: Options,
    entries: BTreeMap<Key, Entry>,
    turns: Turns<Key>,
    departures: Departures,
    classes: Classes,
}

/// One workload.
#[derive(Clone, Debug)]
struct Entry {
    workload: Arc<Workload>,
    /// Moves with everything that is seen of it.
    revision: u64,
    pass: Option<engine::Pass>,
    stale: Option<Stale>,
    waiting: Option<Waiting>,
}

/// How a pass ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// All of it was done.
    Success,
    /// Something could not be done; it is tried again.
    Error,
}

/// How long to wait for news of a workload that was not what it was seen as.
const OUTDATED: Duration = Duration::from_secs(1);

impl Workloads {
    /// A driver that knows of no workloads.
    pub fn new(options: Options) -> Self {
        let turns = Turns::new(options.api_backoff_base, options.api_backoff_max);
        Self {
            options,
            entries: BTreeMap::new(),
            turns,
            departures: Departures::default(),
            classes: Classes::default(),
        }
    }

    /// Notes a WorkloadPriorityClass. Workloads that name it follow its value.
    pub fn priority_class_seen(&mut self, class: &WorkloadPriorityClass, now: Timestamp) {
        let name = class.metadata.name.as_deref().unwrap_or_default();
        for key in self.classes.class_seen(name, class.value) {
            self.touch(&key, now);
        }
    }

    /// Notes that a WorkloadPriorityClass is gone. Workloads keep what they have.
    pub fn priority_class_gone(&mut self, name: &str) {
        self.classes.class_gone(name);
    }

    /// Notes a version of a workload.
    pub fn seen(&mut self, workload: &Arc<Workload>, now: Timestamp) {
        let key = Key::of(&workload.metadata);
        let known = self.entries.get(&key).map(|entry| &entry.workload);
        if version(&workload.metadata) > known.map_or(0, |known| version(&known.metadata)) {
            self.classes.moved(&key, known.map(Arc::as_ref), Some(workload));
            self.note_departure(&key, Some(workload), now);
        }
        match self.entries.get_mut(&key) {
            Some(entry) if version(&workload.metadata) <= version(&entry.workload.metadata) => {}
            Some(entry) if entry.workload.metadata.uid == workload.metadata.uid => {
                entry.workload = Arc::clone(workload);
                entry.revision += 1;
                self.turns.add(key, now);
            }
            _ => {
                let entry = Entry {
                    workload: Arc::clone(workload),
                    revision: 0,
                    pass: None,
                    stale: None,
                    waiting: None,
                };
                self.entries.insert(key.clone(), entry);
                self.turns.add(key, now);
            }
        }
    }

    /// Notes that a workload is gone.
    pub fn gone(&mut self, key: &Key, uid: &str, now: Timestamp) {
        let is_it = |entry: &Entry| entry.workload.metadata.uid.as_deref() == Some(uid);
        if !self.entries.get(key).is_some_and(is_it) {
            return;
        }
        if let Some(entry) = self.entries.remove(key) {
            self.classes.moved(key, Some(&entry.workload), None);
        }
        self.turns.remove(key);
        self.note_departure(key, None, now);
    }

    /// Those who waited for one to leave have a pass when it has.
    fn note_departure(&mut self, key: &Key, workload: Option<&Workload>, now: Timestamp) {
        for held in self.departures.seen(key, workload, now) {
            self.touch(&held, now);
        }
    }

    /// Asks for a pass over a workload whose queues have changed.
    pub fn touch(&mut self, key: &Key, now: Timestamp) {
        if let Some(entry) = self.entries.get_mut(key) {
            entry.revision += 1;
            self.turns.add(key.clone(), now);
        }
    }

    /// The next pass to run, if one is due. It has begun: carry it out, then say
    /// [`Workloads::done`].
    pub fn next(
        &mut self,
        (now, chance): (Timestamp, f64),
        around: impl Fn(&Workload) -> Around,
    ) -> Option<(Key, Plan)> {
        loop {
            let key = self.turns.take_due(now)?;
            let Some(entry) = self.entries.get_mut(&key) else {
                self.turns.abandon(&key);
                continue;
            };
            let known = version(&entry.workload.metadata);
            let plan = match entry.stale.and_then(|stale| stale.holds(known, now)) {
                Some(until) => {
                    let waiting = Some(Waiting::CatchingUp);
                    Plan { next: Some(until), waiting, ..Plan::default() }
                }
                None => {
                    entry.stale = None;
                    let around = around(&entry.workload);
                    let company = self.departures.company_of(&key, &entry.workload);
                    let (options, around) = (&self.options, &around);
                    let priority = self.classes.value_of(&entry.workload);
                    let scene = Scene { around, company, priority, options, now, chance };
                    plan(&entry.workload, &scene)
                }
            };
            if plan.evicts_late() {
                self.departures.leaves(&key, &entry.workload);
            }
            if plan.waiting == Some(Waiting::OthersLeave) {
                self.departures.hold(&key, &entry.workload);
            }
            entry.begin(&plan);
            return Some((key, plan));
        }
    }

    /// Ends the pass over a workload.
    pub fn done(&mut self, key: &Key, now: Timestamp) -> Option<Ended> {
        let ended = self.entries.get_mut(key);
        let ended = ended.and_then(|entry| Some((entry.pass.take()?, entry.revision)));
        let Some((pass, revision)) = ended else {
            self.turns.abandon(key);
            return None;
        };
        let outdated = self.options.api_backoff_max.min(OUTDATED);
        self.turns.end(key, &pass, revision, outdated, now);
        Some(match pass.failure {
            Some(Failure::Error) => Ended::Error,
            _ => Ended::Success,
        })
    }

    /// A workload was written: this is it now. One that has gone meanwhile stays gone.
    pub fn written(&mut self, workload: &Arc<Workload>, now: Timestamp) {
        if self.entries.contains_key(&Key::of(&workload.metadata)) {
            self.seen(workload, now);
        }
    }

    /// A step failed. Says what users should know.
    pub fn refused(&mut self, key: &Key, refusal: &Refusal, now: Timestamp) -> Option<Event> {
        let delay = self.options.api_backoff_base;
        // What was not written has not happened.
        let workload = self.entries.get(key).map(|entry| Arc::clone(&entry.workload));
        self.note_departure(key, workload.as_deref(), now);
        let entry = self.entries.get_mut(key)?;
        let pass = entry.pass.as_mut()?;
        match refusal.kind {
            RefusalKind::Conflict => {
                // What we know of it is old. To decide again on it would be refused again.
                let until = after(now, delay);
                entry.stale = Some(Stale { version: pass.version, until });
                pass.fail(Failure::Outdated);
            }
            // It will be heard of.
            RefusalKind::NotFound => pass.fail(Failure::Outdated),
            RefusalKind::NamespaceTerminating => pass.fail(Failure::Silent),
            RefusalKind::AlreadyExists | RefusalKind::Refused | RefusalKind::Other => {
                pass.fail(Failure::Error);
            }
        }
        (refusal.kind == RefusalKind::Refused).then(|| Event::not_written(&refusal.message))
    }

    /// When the shell should ask [`Workloads::next`] again.
    pub fn next_due(&self) -> Option<Timestamp> {
        self.turns.next_due()
    }

    /// Why a workload did not move in its last pass.
    pub fn waiting(&self, key: &Key) -> Option<Waiting> {
        self.entries.get(key)?.waiting
    }

    /// A workload as it was seen last.
    pub fn get(&self, key: &Key) -> Option<&Arc<Workload>> {
        self.entries.get(key).map(|entry| &entry.workload)
    }

    /// How many workloads wait for a pass.
    pub fn queue_len(&self) -> usize {
        self.turns.len()
    }
}

impl Entry {
    fn begin(&mut self, plan: &Plan) {
        self.waiting = plan.waiting;
        self.pass = Some(engine::Pass {
            version: version(&self.workload.metadata),
            revision: self.revision,
            next: plan.next,
            wants_change: plan.steps.iter().any(Step::is_change),
            only_looks: plan.waiting == Some(Waiting::CatchingUp),
            failure: None,
            gone: BTreeSet::new(),
        });
    }
}
