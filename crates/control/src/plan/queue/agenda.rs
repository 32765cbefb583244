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
/// How far apart writes of the status of one queue are.
const STATUS_APART: Duration = Duration::from_millis(100);

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
    /// ClusterQueues that somebody has come to.
    pub joined: BTreeSet<Arc<str>>,
    /// Workloads whose status may have to be written.
    pub to_write: BTreeSet<Key>,
    /// Workloads that are to give way.
    pub orders: BTreeMap<Key, Order>,
    /// Whether some of them may be told so now.
    pub has_orders: bool,
    /// Workloads to look at again at a time.
    timers: BTreeSet<(Timestamp, Key)>,
    /// Workloads whose condition has other words by now.
    words: BTreeSet<(Timestamp, Key)>,
    words_next: Option<Timestamp>,
    /// Queues whose status may have to be written.
    pub statuses: Statuses,
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
            || !self.finalizers.is_empty();
        if is_due {
            return Some(Timestamp::MIN);
        }
        let timer = self.timers.first().map(|(at, _)| *at);
        let words = self.words.first().map(|(at, _)| *at);
        let words = words.map(|at| self.words_next.map_or(at, |next| at.max(next)));
        let status = self.statuses.due.first().map(|(at, _)| *at);
        let finalizers = self.finalizers_later.values().min().copied();
        [timer, words, status, finalizers].into_iter().flatten().min()
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
