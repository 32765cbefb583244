//! The work queue: which keys want a pass, and when.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

/// Keys with the moment each wants its next pass.
///
/// A key is in at most one pass at a time: after [`WorkQueue::take_due`] hands it out it is held
/// back, however often it is added, until [`WorkQueue::done`] is called for it.
#[derive(Clone, Debug)]
pub struct WorkQueue<K> {
    due: BTreeMap<K, Timestamp>,
    order: BTreeSet<(Timestamp, K)>,
    /// Keys in a pass, with the earliest moment asked for meanwhile.
    running: BTreeMap<K, Option<Timestamp>>,
}

impl<K> Default for WorkQueue<K> {
    fn default() -> Self {
        Self { due: BTreeMap::new(), order: BTreeSet::new(), running: BTreeMap::new() }
    }
}

impl<K: Ord + Clone> WorkQueue<K> {
    /// An empty queue.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks for a pass over `key` at `at`; the earlier of two requests wins.
    pub fn add(&mut self, key: K, at: Timestamp) {
        if let Some(wanted) = self.running.get_mut(&key) {
            *wanted = Some(wanted.map_or(at, |earlier| earlier.min(at)));
            return;
        }
        if let Some(&known) = self.due.get(&key) {
            if known <= at {
                return;
            }
            self.order.remove(&(known, key.clone()));
        }
        self.order.insert((at, key.clone()));
        self.due.insert(key, at);
    }

    /// Takes the key that has been due longest, or `None` when the shell may sleep.
    pub fn take_due(&mut self, now: Timestamp) -> Option<K> {
        let (at, _) = self.order.first()?;
        if *at > now {
            return None;
        }
        let (_, key) = self.order.pop_first()?;
        self.due.remove(&key);
        self.running.insert(key.clone(), None);
        Some(key)
    }

    /// Says that the pass over `key` has ended: what was asked for meanwhile counts from now on.
    pub fn done(&mut self, key: &K) {
        if let Some(Some(at)) = self.running.remove(key) {
            self.add(key.clone(), at);
        }
    }

    /// Forgets `key`, unless it is in a pass.
    pub fn remove(&mut self, key: &K) {
        if let Some(at) = self.due.remove(key) {
            self.order.remove(&(at, key.clone()));
        }
    }

    /// The moment the shell should wake up again.
    pub fn next_due(&self) -> Option<Timestamp> {
        self.order.first().map(|(at, _)| *at)
    }

    /// How many keys wait for a pass.
    pub fn len(&self) -> usize {
        self.due.len()
    }

    /// Whether no key waits for a pass.
    pub fn is_empty(&self) -> bool {
        self.due.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn earliest_request_wins_and_keys_come_in_order_of_time() {
        let mut queue = WorkQueue::new();
        queue.add("late", at(5));
        queue.add("twice", at(9));
        queue.add("twice", at(3));
        queue.add("twice", at(7));
        assert_eq!(queue.next_due(), Some(at(3)));
        assert_eq!(queue.take_due(at(2)), None);
        assert_eq!(queue.take_due(at(6)), Some("twice"));
        assert_eq!(queue.take_due(at(6)), Some("late"));
        assert_eq!(queue.take_due(at(6)), None);
        assert!(queue.is_empty());
    }

    #[test]
    fn a_key_in_a_pass_is_not_handed_out_again_until_it_is_done() {
        let mut queue = WorkQueue::new();
        queue.add("a", at(1));
        assert_eq!(queue.take_due(at(1)), Some("a"));
        queue.add("a", at(4));
        queue.add("a", at(2));
        assert_eq!(queue.take_due(at(9)), None);
        queue.done(&"a");
        assert_eq!(queue.next_due(), Some(at(2)));
        assert_eq!(queue.take_due(at(2)), Some("a"));
        queue.done(&"a");
        assert_eq!(queue.next_due(), None, "nothing was asked for meanwhile");
    }

    #[test]
    fn removed_keys_do_not_come_back() {
        let mut queue = WorkQueue::new();
        queue.add("a", at(1));
        queue.remove(&"a");
        assert_eq!(queue.take_due(at(1)), None);
        assert_eq!(queue.len(), 0);
    }
}
