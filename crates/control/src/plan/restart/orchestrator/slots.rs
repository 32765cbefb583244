//! What an orchestrator knows of each worker, with the sums kept up to date per report.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::time::Duration;

use super::super::{Cause, Completion, Duty, Held, Moment, Order, Phase, Record, Report, Worker};

/// How a worker stands to the state its gang should be in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// Not heard of, or not since it matters.
    Unknown,
    /// It has no pod, no agent, or none that can be heard.
    Missing,
    /// It is alone in its slot no more: an earlier pod may still run.
    Haunted,
    /// Its agent is there, but not where it should be yet.
    Behind,
    /// It waits for the release.
    Ready,
    /// It was released, and has not started yet.
    Released,
    /// It runs.
    Running,
    /// It has succeeded, and waits for the others.
    Succeeded,
    /// It has failed.
    Failed,
    /// Its pod has completed: it takes no part any more.
    Finished,
}

impl Standing {
    const COUNT: usize = 10;
}

/// One place of the gang.
#[derive(Clone, Debug)]
pub(super) struct Slot {
    /// The latest pod, 0 if there is none.
    pub(super) pod: u64,
    /// Whether that pod is being deleted.
    is_ending: bool,
    /// Whether it has ended or vanished.
    is_gone: bool,
    /// Its generation, if it has completed. What was done for an earlier generation of the gang is
    /// to be done again.
    completed: Option<u32>,
    /// Whether its Job would not count its end.
    is_excused: bool,
    /// Whether it was made in place of another one since the gang began to gather.
    is_replacement: bool,
    /// Earlier pods that are not known to be gone.
    older: Vec<u64>,
    /// The pod of which the replacement was asked for.
    replaced: u64,
    /// The connection it was heard on last.
    pub(super) link: u64,
    /// Whether that connection is there.
    pub(super) is_live: bool,
    /// Since when.
    since: Moment,
    /// What it said last.
    generation: u32,
    session: u64,
    sequence: u64,
    fence: u64,
    held: Option<Held>,
    pub(super) worker: Worker,
    standing: Standing,
    is_behind_order: bool,
    /// Whether it cannot be stopped, and nobody has taken its pod away for that yet.
    is_stuck: bool,
}

impl Slot {
    const EMPTY: Self = Self {
        pod: 0,
        is_ending: false,
        is_gone: false,
        completed: None,
        is_excused: false,
        is_replacement: false,
        older: Vec::new(),
        replaced: 0,
        link: 0,
        is_live: false,
        since: Moment::after(Duration::ZERO),
        generation: 0,
        session: 0,
        sequence: 0,
        fence: 0,
        held: None,
        worker: Worker::Idle,
        standing: Standing::Unknown,
        is_behind_order: false,
        is_stuck: false,
    };

    fn has_pod(&self) -> bool {
        self.pod > 0 && !self.is_gone
    }

    /// Whether its pod was made in place of another one since the gang began to gather: to replace
    /// that one too would be to begin again.
    pub(super) const fn is_replacement(&self) -> bool {
        self.is_replacement
    }

    /// Whether the Job of its pod would not count the end of it.
    pub(super) const fn is_excused(&self) -> bool {
        self.is_excused
    }

    /// Whether its agent was heard by this leader.
    pub(super) const fn is_heard(&self) -> bool {
        self.session > 0
    }

    /// Whether it is what others wait for.
    pub(super) const fn is_late(&self) -> bool {
        matches!(self.standing, Standing::Behind | Standing::Missing)
    }

    /// Until when an agent that is late has to answer: it has its time from when it came.
    pub(super) fn answers_until(&self, within: Duration) -> Option<Moment> {
        (self.is_heard() && self.is_late()).then(|| self.since + within)
    }

    /// Whether there is a pod that nobody takes away yet.
    pub(super) fn is_replaceable(&self) -> bool {
        self.has_lasting_pod()
    }

    /// Whether its pod is there to stay.
    fn has_lasting_pod(&self) -> bool {
        self.has_pod() && !self.is_ending && self.replaced != self.pod
    }

    fn standing(&self, record: &Record, are_pods_known: bool) -> Standing {
        if self.completed >= Some(record.generation) {
            return Standing::Finished;
        }
        match record.phase {
            Phase::Forming | Phase::Stopping | Phase::Recreating => self.gathering(record),
            Phase::Running | Phase::Surrendered(_) => self.released(record, are_pods_known),
            Phase::Suspended | Phase::Succeeding | Phase::Failed(_) => Standing::Unknown,
        }
    }

    fn gathering(&self, record: &Record) -> Standing {
        let waits = self.held == Some(Held { rank: record.rank(), by: record.by });
        if !self.is_live || !self.has_lasting_pod() {
            Standing::Missing
        } else if !waits || self.worker != Worker::Idle {
            Standing::Behind
        } else if self.older.is_empty() {
            Standing::Ready
        } else {
            Standing::Haunted
        }
    }

    fn released(&self, record: &Record, are_pods_known: bool) -> Standing {
        if !self.has_lasting_pod() {
            return if self.pod > 0 || are_pods_known {
                Standing::Failed
            } else {
                Standing::Unknown
            };
        }
        if !self.is_heard() {
            return Standing::Unknown;
        }
        match &self.worker {
            Worker::Running(epoch) if *epoch == record.epoch => Standing::Running,
            Worker::Succeeded(epoch) if *epoch == record.epoch => Standing::Succeeded,
            Worker::Failed(epoch, _) if *epoch == record.epoch => Standing::Failed,
            Worker::Leaving => Standing::Failed,
            Worker::Idle if self.was_released(record) => Standing::Released,
            // An agent that has nothing and knows nothing of this epoch is a new one: whatever ran
            // in its place is gone.
            Worker::Idle => Standing::Failed,
            Worker::Running(_)
            | Worker::Succeeded(_)
            | Worker::Failed(..)
            | Worker::Stopping
            | Worker::Stuck => Standing::Unknown,
        }
    }

    /// Whether this is an agent for which the release of the epoch had waited.
    fn was_released(&self, record: &Record) -> bool {
        self.held.is_some_and(|held| {
            let (rank, order) = (held.rank, record.rank());
            (rank.generation, rank.epoch) == (order.generation, order.epoch)
                && (rank.duty == Duty::Run || (rank.duty == Duty::Hold && held.by == record.by))
        })
    }

    /// Why it stands as failed.
    pub(super) fn cause(&self) -> Cause {
        match &self.worker {
            _ if !self.has_lasting_pod() => Cause::PodLost,
            Worker::Failed(_, cause) => cause.clone(),
            Worker::Leaving => Cause::PodLost,
            Worker::Idle
            | Worker::Running(_)
            | Worker::Succeeded(_)
            | Worker::Stopping
            | Worker::Stuck => Cause::AgentRestarted,
        }
    }

    /// Whether it cannot be stopped, and nobody has taken its pod away for that yet.
    pub(super) const fn is_stuck(&self) -> bool {
        self.is_stuck
    }

    /// Whether its agent can be heard, and has not shown that it holds this.
    pub(super) fn is_behind(&self, order: &Order) -> bool {
        self.is_live
            && !self.held.is_some_and(|held| {
                let is_same = held.rank == order.rank
                    && (order.rank.duty != Duty::Hold || held.by == order.by);
                (is_same || held.rank > order.rank) && self.fence >= order.fence
            })
    }
}

/// All of them.
#[derive(Clone, Debug)]
pub(super) struct Slots {
    slots: Vec<Slot>,
    are_pods_known: bool,
    counts: [u32; Standing::COUNT],
    failed: BTreeSet<u32>,
    behind_order: u32,
    stuck: u32,
    /// By group of the completion: how many have succeeded.
    succeeded: Vec<u32>,
    groups: Vec<Range<u32>>,
    /// Places that are no longer part of the gang, or not yet, as far as there are pods in them.
    beyond: BTreeMap<u32, Slot>,
}

/// What a report turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Heard {
    /// From an agent that has no say any more.
    Superseded,
    /// Nothing new.
    Old,
    /// The first on its connection, which takes the place of the given one.
    First { replaced: Option<u64> },
    /// News.
    News,
}

impl Slots {
    pub(super) fn new(count: u32, completion: &Completion) -> Self {
        let groups = completion.groups.clone();
        Self {
            slots: vec![Slot::EMPTY; count as usize],
            are_pods_known: false,
            counts: [0; Standing::COUNT],
            failed: BTreeSet::new(),
            behind_order: 0,
            stuck: 0,
            succeeded: vec![0; groups.len()],
            groups,
            beyond: BTreeMap::new(),
        }
    }

    pub(super) fn len(&self) -> u32 {
        u32::try_from(self.slots.len()).unwrap_or(u32::MAX)
    }

    pub(super) fn get(&self, slot: u32) -> Option<&Slot> {
        self.slots.get(slot as usize)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &Slot)> {
        (0..).zip(&self.slots)
    }

    pub(super) fn standing(&self, slot: u32) -> Standing {
        self.get(slot).map_or(Standing::Unknown, |slot| slot.standing)
    }

    pub(super) const fn are_pods_known(&self) -> bool {
        self.are_pods_known
    }

    pub(super) const fn count(&self, standing: Standing) -> u32 {
        self.counts[standing as usize]
    }

    /// The places that wait for their Jobs to make a pod.
    pub(super) fn without_pod(&self) -> Vec<u32> {
        let is_it = |slot: &Slot| slot.standing == Standing::Missing && !slot.has_pod();
        self.iter().filter(|(_, slot)| is_it(slot)).map(|(at, _)| at).collect()
    }

    /// Whether pods are being replaced that were lost.
    pub(super) fn is_any_replaced(&self) -> bool {
        let is_it = |slot: &Slot| !slot.has_pod() || slot.is_ending || slot.is_replacement;
        self.slots.iter().any(|slot| slot.standing == Standing::Missing && is_it(slot))
    }

    /// From now on a pod in place of another one is made for what begins now.
    pub(super) fn gather(&mut self) {
        self.slots.iter_mut().for_each(|slot| slot.is_replacement = false);
    }

    /// How many pods may still run that have no place in the gang.
    pub(super) fn strays(&self) -> u32 {
        let pods = |slot: &Slot| slot.older.len() + usize::from(slot.has_pod());
        u32::try_from(self.beyond.values().map(pods).sum::<usize>()).unwrap_or(u32::MAX)
    }

    /// The workers that have failed.
    pub(super) fn failed(&self) -> impl Iterator<Item = u32> + use<'_> {
        self.failed.iter().copied()
    }

    /// How many agents have not shown yet that they hold the order.
    pub(super) const fn behind_order(&self) -> u32 {
        self.behind_order
    }

    /// How many workers cannot be stopped, and have a pod that can be replaced.
    pub(super) const fn stuck(&self) -> u32 {
        self.stuck
    }

    /// The connections of the agents that have not shown yet that they hold it.
    pub(super) fn links_behind(&self) -> impl Iterator<Item = u64> + use<'_> {
        self.slots.iter().filter(|slot| slot.is_behind_order).map(|slot| slot.link)
    }

    /// Whether the gang has succeeded: every group, or any.
    pub(super) fn is_complete(&self, is_any: bool) -> bool {
        let mut groups = self.groups.iter().zip(&self.succeeded);
        let is_full = |(group, count): (&Range<u32>, &u32)| group.end - group.start == *count;
        if is_any { groups.any(is_full) } else { groups.all(is_full) }
    }

    /// Another number of workers. The pods of those that are no more may still run; what is known
    /// of pods stays, for a place that comes back.
    pub(super) fn resize(&mut self, count: u32, completion: &Completion, record: &Record) {
        let kept = self.slots.len().min(count as usize);
        for (at, slot) in (count..).zip(self.slots.drain(kept..)) {
            let Slot { pod, is_ending, is_gone, older, replaced, link, .. } = slot;
            let slot = Slot { pod, is_ending, is_gone, older, replaced, link, ..Slot::EMPTY };
            self.beyond.insert(at, slot);
        }
        for at in self.len()..count {
            self.slots.push(self.beyond.remove(&at).unwrap_or(Slot::EMPTY));
        }
        self.groups.clone_from(&completion.groups);
        self.recount(record);
    }

    /// Takes everything anew against another record.
    pub(super) fn recount(&mut self, record: &Record) {
        self.counts = [0; Standing::COUNT];
        self.failed.clear();
        self.behind_order = 0;
        self.stuck = 0;
        self.succeeded = vec![0; self.groups.len()];
        for at in 0..self.len() {
            self.add(at, record);
        }
    }

    /// A report came in. It does not get here if it is of another generation or has no slot.
    pub(super) fn heard(&mut self, link: u64, report: &Report, record: &Record) -> Heard {
        let slot = &mut self.slots[report.slot as usize];
        if report.pod < slot.pod || (report.pod == slot.pod && slot.is_gone) {
            return Heard::Superseded;
        }
        let is_same = slot.session == report.session && slot.pod == report.pod;
        if link < slot.link || (is_same && report.sequence <= slot.sequence) {
            return Heard::Old;
        }
        self.remove(report.slot);
        let slot = &mut self.slots[report.slot as usize];
        note_pod(slot, report.pod);
        let heard = if slot.link == link && slot.is_live {
            Heard::News
        } else {
            Heard::First { replaced: slot.is_live.then_some(slot.link) }
        };
        slot.link = link;
        slot.is_live = true;
        slot.generation = report.generation;
        slot.session = report.session;
        slot.sequence = report.sequence;
        slot.fence = report.fence;
        slot.held = report.held;
        slot.worker.clone_from(&report.worker);
        self.add(report.slot, record);
        heard
    }

    /// The first report of a connection has come.
    pub(super) fn joined(&mut self, at: u32, now: Moment) {
        if let Some(slot) = self.slots.get_mut(at as usize) {
            slot.since = now;
        }
    }

    /// A connection is no more.
    pub(super) fn lost(&mut self, at: u32, link: u64, record: &Record) {
        if self.get(at).is_some_and(|slot| slot.link == link && slot.is_live) {
            self.remove(at);
            self.slots[at as usize].is_live = false;
            self.add(at, record);
        }
    }

    /// Parts with the agents of earlier generations, and gives their connections.
    pub(super) fn retire(&mut self, record: &Record) -> Vec<u64> {
        let mut links = Vec::new();
        for slot in &mut self.slots {
            if slot.is_live && slot.generation < record.generation {
                slot.is_live = false;
                links.push(slot.link);
            }
        }
        self.recount(record);
        links
    }

    /// There is such a pod.
    pub(super) fn pod_seen(&mut self, at: u32, pod: u64, record: &Record) {
        self.note(at, record, |slot| note_pod(slot, pod));
    }

    /// A pod is being deleted.
    pub(super) fn pod_ending(&mut self, at: u32, pod: u64, record: &Record) {
        self.note(at, record, |slot| {
            note_pod(slot, pod);
            slot.is_ending |= slot.pod == pod;
        });
    }

    /// Whether the Job of a pod would not count its end.
    pub(super) fn pod_excused(&mut self, at: u32, pod: u64, is_excused: bool) {
        if let Some(slot) = self.slots.get_mut(at as usize).filter(|slot| slot.pod == pod) {
            slot.is_excused = is_excused;
        }
    }

    /// A pod has ended, or vanished; `completed` is its generation if it has completed.
    pub(super) fn pod_gone(&mut self, at: u32, pod: u64, completed: Option<u32>, record: &Record) {
        let completed = completed.filter(|_| at < self.len());
        self.note(at, record, |slot| {
            slot.older.retain(|older| *older != pod);
            if pod >= slot.pod {
                slot.pod = pod;
                slot.is_gone = true;
                slot.is_live = false;
                slot.completed = completed;
            }
        });
    }

    /// Something is known of a place, of the gang or beyond it.
    fn note(&mut self, at: u32, record: &Record, change: impl FnOnce(&mut Slot)) {
        if at < self.len() {
            self.remove(at);
            change(&mut self.slots[at as usize]);
            self.add(at, record);
        } else {
            change(self.beyond.entry(at).or_insert(Slot::EMPTY));
        }
    }

    /// All pods there are have been told of.
    pub(super) fn pods_known(&mut self, record: &Record) {
        self.are_pods_known = true;
        self.recount(record);
    }

    /// The pod of a slot is to be replaced.
    pub(super) fn note_replaced(&mut self, at: u32, record: &Record) {
        self.remove(at);
        let slot = &mut self.slots[at as usize];
        slot.replaced = slot.pod;
        self.add(at, record);
    }

    fn remove(&mut self, at: u32) {
        let slot = &self.slots[at as usize];
        self.counts[slot.standing as usize] -= 1;
        self.behind_order -= u32::from(slot.is_behind_order);
        self.stuck -= u32::from(slot.is_stuck);
        match slot.standing {
            Standing::Failed => {
                self.failed.remove(&at);
            }
            Standing::Succeeded | Standing::Finished => self.tally(at, u32::wrapping_sub),
            Standing::Unknown
            | Standing::Missing
            | Standing::Haunted
            | Standing::Behind
            | Standing::Ready
            | Standing::Released
            | Standing::Running => {}
        }
    }

    fn add(&mut self, at: u32, record: &Record) {
        let slot = &mut self.slots[at as usize];
        slot.standing = slot.standing(record, self.are_pods_known);
        slot.is_behind_order = slot.is_behind(&record.order());
        slot.is_stuck = slot.worker == Worker::Stuck && slot.is_late() && slot.has_lasting_pod();
        let standing = slot.standing;
        self.behind_order += u32::from(slot.is_behind_order);
        self.stuck += u32::from(slot.is_stuck);
        self.counts[standing as usize] += 1;
        match standing {
            Standing::Failed => {
                self.failed.insert(at);
            }
            Standing::Succeeded | Standing::Finished => self.tally(at, u32::wrapping_add),
            Standing::Unknown
            | Standing::Missing
            | Standing::Haunted
            | Standing::Behind
            | Standing::Ready
            | Standing::Released
            | Standing::Running => {}
        }
    }

    fn tally(&mut self, at: u32, change: fn(u32, u32) -> u32) {
        let group = self.groups.partition_point(|group| group.end <= at);
        if self.groups.get(group).is_some_and(|group| group.contains(&at)) {
            self.succeeded[group] = change(self.succeeded[group], 1);
        }
    }
}

/// There is such a pod in a place: the latest is what counts.
fn note_pod(slot: &mut Slot, pod: u64) {
    if pod <= slot.pod {
        return;
    }
    if slot.has_pod() {
        slot.older.push(slot.pod);
    }
    slot.is_replacement = slot.pod > 0;
    slot.pod = pod;
    slot.is_ending = false;
    slot.is_gone = false;
    slot.completed = None;
    slot.is_excused = false;
    slot.is_live = false;
    slot.session = 0;
    slot.held = None;
    slot.worker = Worker::Idle;
}
