//! What is to be done, and when.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use jiff::Timestamp;

use super::{Owner, ledger::Tree, preempt::Target, wait::Scope};
use crate::{engine::after, plan::Key};

/// How long the words of a condition may be old before they are written anew.
const WORDS_AFTER: Duration = Duration::from_secs(2);
/// How far apart such writes are.
const WORDS_APART: Duration = Duration::from_millis(100);
/// How many shapes of those that do not fit are tried again whenever something changes.
const SHAPES_AT_ONCE: usize = 64;
/// When there are more, for how long they are left alone then: for each shape, and at the most.
const REST_PER_SHAPE: Duration = Duration::from_millis(1);
const REST_MAX: Duration = Duration::from_secs(1);
/// How far apart writes of the status of one queue are: upstream counts for a second before it
/// writes.
const STATUS_APART: Duration = Duration::from_millis(500);

/// What is to be done, and when.
#[derive(Clone, Debug, Default)]
pub(super) struct Agenda {
    /// ClusterQueues that have somebody to try.
    pub ready: BTreeSet<Arc<str>>,
    /// ClusterQueues whose head waits and may not be overtaken.
    pub blocked: BTreeSet<Arc<str>>,
    /// Those of them that wait for pods to be ready, and where.
    pub blocked_on: BTreeMap<Scope, BTreeSet<Arc<str>>>,
    /// Those for whom something has changed.
    pub to_wake: BTreeSet<Tree>,
    /// Those of whom all are to be tried again that did not fit.
    pub to_retry: BTreeSet<Tree>,
    /// Those of whom not everybody was looked at when the last cycle ended.
    pub unfinished: BTreeSet<Tree>,
    /// Until when those are left alone that did not fit, where they are many.
    rests: BTreeMap<Tree, Timestamp>,
    /// ClusterQueues that somebody has come to.
    pub joined: BTreeSet<Arc<str>>,
    /// Workloads whose status may have to be written.
    pub to_write: BTreeSet<Key>,
    /// Workloads that are to give way.
    pub orders: BTreeMap<Key, Order>,
    /// Whether some of them may be told so now.
    pub has_orders: bool,
    /// Workloads whose admission is to be said again: nobody knows what became of it.
    pub repeats: BTreeSet<Key>,
    /// Workloads to look at again at a time.
    timers: BTreeSet<(Timestamp, Key)>,
    /// Workloads whose condition has other words by now.
    words: BTreeSet<(Timestamp, Key)>,
    words_next: Option<Timestamp>,
    /// Queues whose status may have to be written.
    pub statuses: Statuses,
    /// ClusterQueues in which others may wait than before, or for something else.
    pub counted: BTreeSet<Arc<str>>,
    pub finalizers: BTreeSet<Owner>,
    /// Finalizers that were not taken and are tried again.
    pub finalizers_later: BTreeMap<Owner, Timestamp>,
}

/// A workload that is to give way.
#[derive(Clone, Debug)]
pub(super) struct Order {
    pub target: Target,
    pub preemptor: Key,
}

/// Queues whose status may have to be written, not before a time.
#[derive(Clone, Debug, Default)]
pub(super) struct Statuses {
    clusters: BTreeMap<Arc<str>, Timestamp>,
    locals: BTreeMap<Key, Timestamp>,
    due: BTreeSet<(Timestamp, QueueRef)>,
    dirty: BTreeSet<QueueRef>,
}

/// A queue.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum QueueRef {
    Cluster(Arc<str>),
    Local(Key),
}

impl Agenda {
    /// When there is something to do.
    pub(super) fn next_due(&self) -> Option<Timestamp> {
        let is_due = !self.ready.is_empty()
            || !self.to_wake.is_empty()
            || !self.joined.is_empty()
            || !self.to_write.is_empty()
            || self.has_orders
            || !self.repeats.is_empty()
            || !self.finalizers.is_empty();
        if is_due {
            return Some(Timestamp::MIN);
        }
        let timer = self.timers.first().map(|(at, _)| *at);
        let words = self.words.first().map(|(at, _)| *at);
        let words = words.map(|at| self.words_next.map_or(at, |next| at.max(next)));
        let status = self.statuses.due.first().map(|(at, _)| *at);
        let finalizers = self.finalizers_later.values().min().copied();
        let retry = self.to_retry.iter().map(|tree| self.rests.get(tree).copied());
        let retry = retry.map(|until| until.unwrap_or(Timestamp::MIN)).min();
        [timer, words, status, finalizers, retry].into_iter().flatten().min()
    }

    /// Those of whom all may be tried again now that did not fit. Before all have been looked at
    /// once nobody is looked at twice: otherwise the last ones would never be.
    pub(super) fn take_retries(&mut self, now: Timestamp) -> Vec<Tree> {
        self.rests.retain(|_, until| *until > now);
        let is_due =
            |tree: &Tree| !self.unfinished.contains(tree) && !self.rests.contains_key(tree);
        let due: Vec<Tree> = self.to_retry.iter().filter(|tree| is_due(tree)).cloned().collect();
        for tree in &due {
            self.to_retry.remove(tree);
        }
        due
    }

    /// So many shapes that did not fit are tried again.
    pub(super) fn retried(&mut self, tree: Tree, shapes: usize, now: Timestamp) {
        if shapes > SHAPES_AT_ONCE {
            let rest = REST_PER_SHAPE.saturating_mul(u32::try_from(shapes).unwrap_or(u32::MAX));
            self.rests.insert(tree, after(now, rest.min(REST_MAX)));
        }
    }

    /// Asks for a workload to be looked at again; returns the time.
    pub(super) fn set_timer(
        &mut self,
        key: &Key,
        old: Option<Timestamp>,
        new: Option<Timestamp>,
    ) -> Option<Timestamp> {
        if old != new {
            if let Some(old) = old {
                self.timers.remove(&(old, key.clone()));
            }
            if let Some(new) = new {
                self.timers.insert((new, key.clone()));
            }
        }
        new
    }

    /// The workloads that are to be looked at again.
    pub(super) fn take_timers(&mut self, now: Timestamp) -> Vec<Key> {
        take(&mut self.timers, now)
    }

    /// The words of a condition have changed; returns when they are written.
    pub(super) fn defer_words(&mut self, key: &Key, now: Timestamp) -> Timestamp {
        let at = after(now, WORDS_AFTER);
        self.words.insert((at, key.clone()));
        at
    }

    pub(super) fn forget_words(&mut self, key: &Key, at: Option<Timestamp>) {
        if let Some(at) = at {
            self.words.remove(&(at, key.clone()));
        }
    }

    /// The one whose words are to be written.
    pub(super) fn take_words(&mut self, now: Timestamp) -> Option<Key> {
        if self.words_next.is_some_and(|next| next > now) {
            return None;
        }
        let first = self.words.first().filter(|(at, _)| *at <= now).cloned()?;
        self.words.remove(&first);
        self.words_next = Some(after(now, WORDS_APART));
        Some(first.1)
    }
}

impl Statuses {
    /// The status of a queue may have changed.
    pub(super) fn mark(&mut self, queue: QueueRef) {
        if self.dirty.insert(queue.clone()) {
            let at = match &queue {
                QueueRef::Cluster(name) => self.clusters.get(name),
                QueueRef::Local(key) => self.locals.get(key),
            };
            self.due.insert((at.copied().unwrap_or(Timestamp::MIN), queue));
        }
    }

    /// The queues whose status may be written now.
    pub(super) fn take(&mut self, now: Timestamp) -> Vec<QueueRef> {
        let due = take(&mut self.due, now);
        for queue in &due {
            self.dirty.remove(queue);
        }
        due
    }

    /// The status of a queue was written, or could not be: not again before long.
    pub(super) fn wrote(&mut self, queue: &QueueRef, now: Timestamp) {
        self.not_before(queue, after(now, STATUS_APART));
    }

    /// The status of a queue is not written before a time.
    pub(super) fn not_before(&mut self, queue: &QueueRef, at: Timestamp) {
        match queue {
            QueueRef::Cluster(name) => drop(self.clusters.insert(Arc::clone(name), at)),
            QueueRef::Local(key) => drop(self.locals.insert(key.clone(), at)),
        }
    }

    /// A queue is gone.
    pub(super) fn forget(&mut self, queue: &QueueRef) {
        let at = match queue {
            QueueRef::Cluster(name) => self.clusters.remove(name),
            QueueRef::Local(key) => self.locals.remove(key),
        };
        self.dirty.remove(queue);
        self.due.remove(&(at.unwrap_or(Timestamp::MIN), queue.clone()));
        self.due.remove(&(Timestamp::MIN, queue.clone()));
    }
}

/// Takes what is due.
fn take<T: Ord + Clone>(list: &mut BTreeSet<(Timestamp, T)>, now: Timestamp) -> Vec<T> {
    let mut due = Vec::new();
    while list.first().is_some_and(|(at, _)| *at <= now) {
        due.extend(list.pop_first().map(|(_, what)| what));
    }
    due
}
