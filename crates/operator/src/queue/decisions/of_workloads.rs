//! Writes about Workloads that wait to be sent: what admits and evicts in order, what only says why
//! somebody waits after it.

use std::collections::{BTreeMap, VecDeque};

use lockstep_control::plan::Key;

/// One of so many that are under way may say why somebody waits when nobody is admitted. While
/// others are it is one at a time: nobody goes without an answer, but most are admitted before they
/// would read it.
const EXPLANATIONS_SHARE: usize = 4;

/// What a write does for somebody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::queue) enum Purpose {
    /// It admits or evicts.
    Decides,
    /// It says why one waits.
    Explains,
}

/// Writes that wait, and how many are under way.
pub(super) struct OfWorkloads<W> {
    urgent: VecDeque<W>,
    /// The latest of each.
    explanations: BTreeMap<Key, W>,
    /// Those that have one, longest first. Who has none any more is passed over.
    unexplained: VecDeque<Key>,
    deciding: usize,
    explaining: usize,
}

impl<W> Default for OfWorkloads<W> {
    fn default() -> Self {
        Self {
            urgent: VecDeque::new(),
            explanations: BTreeMap::new(),
            unexplained: VecDeque::new(),
            deciding: 0,
            explaining: 0,
        }
    }
}

impl<W> OfWorkloads<W> {
    /// How many are under way.
    pub(super) fn in_flight(&self) -> usize {
        self.deciding + self.explaining
    }

    /// Whether anything that admits or evicts is under way. None waits if nothing is.
    pub(super) fn is_deciding(&self) -> bool {
        self.deciding > 0
    }

    /// How many that admit and evict wait to be sent.
    pub(super) fn urgent_len(&self) -> usize {
        self.urgent.len()
    }

    /// Adds a write about a Workload. It takes the place of an explanation that was not sent.
    pub(super) fn add(&mut self, key: Key, purpose: Purpose, write: W) {
        match purpose {
            Purpose::Decides => {
                self.explanations.remove(&key);
                self.urgent.push_back(write);
            }
            Purpose::Explains => {
                if self.explanations.insert(key.clone(), write).is_none() {
                    self.unexplained.push_back(key);
                }
            }
        }
    }

    /// The next to send, if so many may be under way in all. It is under way from now on.
    pub(super) fn next(&mut self, in_flight_max: usize) -> Option<(Purpose, W)> {
        if self.in_flight() >= in_flight_max {
            return None;
        }
        if let Some(write) = self.urgent.pop_front() {
            self.deciding += 1;
            return Some((Purpose::Decides, write));
        }
        let explaining_max = match self.deciding {
            0 => in_flight_max.div_ceil(EXPLANATIONS_SHARE),
            _ => 1,
        };
        if self.explaining >= explaining_max {
            return None;
        }
        while let Some(key) = self.unexplained.pop_front() {
            if let Some(write) = self.explanations.remove(&key) {
                self.explaining += 1;
                return Some((Purpose::Explains, write));
            }
        }
        None
    }

    /// A write was answered.
    pub(super) fn answered(&mut self, purpose: Purpose) {
        let count = match purpose {
            Purpose::Decides => &mut self.deciding,
            Purpose::Explains => &mut self.explaining,
        };
        *count = count.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: usize = 8;

    fn key(name: &str) -> Key {
        Key { namespace: "ns".to_owned(), name: name.to_owned() }
    }

    fn take_all(writes: &mut OfWorkloads<&'static str>) -> Vec<&'static str> {
        std::iter::from_fn(|| writes.next(MAX).map(|(_, write)| write)).collect()
    }

    #[test]
    fn decisions_go_first_and_explanations_one_by_one_beside_them() {
        let mut writes = OfWorkloads::default();
        for name in ["f", "c", "e", "d"] {
            writes.add(key(name), Purpose::Explains, name);
        }
        writes.add(key("a"), Purpose::Decides, "a");
        writes.add(key("b"), Purpose::Decides, "b");
        assert_eq!(take_all(&mut writes), ["a", "b", "f"], "one explanation beside decisions");
        writes.answered(Purpose::Decides);
        assert_eq!(take_all(&mut writes), [""; 0], "another decision is under way");
        writes.answered(Purpose::Explains);
        assert_eq!(take_all(&mut writes), ["c"], "nobody goes without an answer");
        writes.answered(Purpose::Decides);
        assert_eq!(take_all(&mut writes), ["e"], "a share of all, when nobody is admitted");
        writes.answered(Purpose::Explains);
        writes.answered(Purpose::Explains);
        assert_eq!(take_all(&mut writes), ["d"]);
        writes.answered(Purpose::Explains);
        assert_eq!((writes.in_flight(), writes.next(MAX)), (0, None));
    }

    #[test]
    fn only_the_latest_is_said_and_nothing_to_one_that_is_admitted() {
        let mut writes = OfWorkloads::default();
        writes.add(key("a"), Purpose::Explains, "old");
        writes.add(key("a"), Purpose::Explains, "new");
        writes.add(key("b"), Purpose::Explains, "waits");
        writes.add(key("b"), Purpose::Decides, "admitted");
        assert_eq!(take_all(&mut writes), ["admitted", "new"]);
    }

    #[test]
    fn no_more_are_under_way_than_may_be() {
        let mut writes = OfWorkloads::default();
        for name in ["a", "b", "c", "d", "e", "f", "g", "h", "i"] {
            writes.add(key(name), Purpose::Decides, name);
        }
        assert_eq!((take_all(&mut writes).len(), writes.urgent_len()), (MAX, 1));
        writes.answered(Purpose::Decides);
        assert_eq!(take_all(&mut writes), ["i"]);
    }
}
