//! The order in which pods are placed.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;

use crate::engine::Backoff;

/// Back-off of a pod that fitted nowhere: at first, and at most.
const RETRY_FIRST: Duration = Duration::from_secs(1);
const RETRY_MAX: Duration = Duration::from_secs(10);

type Rank = (Reverse<i32>, Timestamp, String);

/// Pods that wait to be placed: the most important first, then the oldest. Those that fitted
/// nowhere
/// are set aside until something changes.
#[derive(Clone, Debug)]
pub struct Queue {
    ready: BTreeSet<Rank>,
    ranks: BTreeMap<String, Rank>,
    /// Pods that fitted nowhere.
    aside: BTreeSet<String>,
    /// Pods that may be tried again at a time.
    later: BTreeSet<(Timestamp, String)>,
    backoff: Backoff<String>,
    /// When each pod that fitted nowhere may be tried again.
    due: BTreeMap<String, Timestamp>,
}

impl Default for Queue {
    fn default() -> Self {
        Self {
            ready: BTreeSet::new(),
            ranks: BTreeMap::new(),
            aside: BTreeSet::new(),
            later: BTreeSet::new(),
            backoff: Backoff::new(RETRY_FIRST, RETRY_MAX),
            due: BTreeMap::new(),
        }
    }
}

impl Queue {
    /// Adds a pod, or notes its new rank; it is tried at once.
    pub fn add(&mut self, uid: &str, priority: i32, created_at: Timestamp) {
        let rank = (Reverse(priority), created_at, uid.to_owned());
        if let Some(old) = self.ranks.insert(uid.to_owned(), rank.clone()) {
            self.ready.remove(&old);
        }
        self.aside.remove(uid);
        self.ready.insert(rank);
    }

    /// Forgets a pod.
    pub fn remove(&mut self, uid: &str) {
        if let Some(rank) = self.ranks.remove(uid) {
            self.ready.remove(&rank);
        }
        self.aside.remove(uid);
        let uid = uid.to_owned();
        self.backoff.succeeded(&uid);
        if let Some(at) = self.due.remove(&uid) {
            self.later.remove(&(at, uid));
        }
    }

    /// Whether the pod is waiting in any way.
    pub fn contains(&self, uid: &str) -> bool {
        self.ranks.contains_key(uid)
    }

    /// Takes the next pod to place. It is still known: [`Queue::set_aside`] or [`Queue::remove`]
    /// ends that.
    pub fn take(&mut self, now: Timestamp) -> Option<String> {
        while let Some((at, uid)) = self.later.first().cloned() {
            if at > now {
                break;
            }
            self.later.pop_first();
            if let Some(rank) = self.ranks.get(&uid) {
                self.ready.insert(rank.clone());
            }
        }
        self.ready.pop_first().map(|(_, _, uid)| uid)
    }

    /// Sets aside a pod that fits nowhere until [`Queue::wake`].
    pub fn set_aside(&mut self, uid: &str, now: Timestamp) {
        let Some(rank) = self.ranks.get(uid) else { return };
        self.ready.remove(rank);
        let uid = uid.to_owned();
        let at = now.checked_add(self.backoff.failed(&uid)).unwrap_or(Timestamp::MAX);
        self.due.insert(uid.clone(), at);
        self.aside.insert(uid);
    }

    /// Tries again, after its back-off, a pod whose placement could not be carried out.
    pub fn retry(&mut self, uid: &str, now: Timestamp) {
        self.set_aside(uid, now);
        self.wake_one(uid);
    }

    /// Something changed that may help: all pods that were set aside are tried again, each after
    /// its
    /// back-off.
    pub fn wake(&mut self) {
        for uid in std::mem::take(&mut self.aside) {
            self.wake_one(&uid);
        }
    }

    /// When [`Queue::take`] has something, if not now.
    pub fn next_due(&self) -> Option<Timestamp> {
        if self.ready.is_empty() {
            self.later.first().map(|(at, _)| *at)
        } else {
            Some(Timestamp::MIN)
        }
    }

    fn wake_one(&mut self, uid: &str) {
        self.aside.remove(uid);
        if let Some(at) = self.due.get(uid) {
            self.later.insert((*at, uid.to_owned()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn important_pods_go_first_then_old_ones() {
        let mut queue = Queue::default();
        queue.add("young", 0, at(9));
        queue.add("old", 0, at(1));
        queue.add("important", 5, at(10));
        let order: Vec<String> = std::iter::from_fn(|| queue.take(at(20))).collect();
        assert_eq!(order, ["important", "old", "young"]);
    }

    #[test]
    fn pods_that_fit_nowhere_wait_for_a_change_and_back_off() {
        let mut queue = Queue::default();
        queue.add("a", 0, at(0));
        for (now, next) in [(0, 1), (1, 3), (3, 7), (7, 15), (15, 25), (25, 35)] {
            assert_eq!(queue.take(at(now)).as_deref(), Some("a"), "{now}");
            queue.set_aside("a", at(now));
            assert_eq!(queue.take(at(now + 100)), None, "nothing has changed");
            queue.wake();
            assert_eq!(queue.next_due(), Some(at(next)));
        }
        queue.add("a", 0, at(0));
        assert_eq!(queue.take(at(26)).as_deref(), Some("a"), "a changed pod is tried at once");
    }

    #[test]
    fn removed_pods_are_gone() {
        let mut queue = Queue::default();
        queue.add("a", 0, at(0));
        queue.set_aside("a", at(0));
        queue.wake();
        queue.remove("a");
        assert_eq!(queue.take(at(100)), None);
        assert!(!queue.contains("a"));
    }
}
