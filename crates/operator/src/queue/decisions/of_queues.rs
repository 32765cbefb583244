//! Writes about queues and flavors that wait to be sent: of each object the latest, one at a time.
//!
//! A write is made for the version that was known when it was decided. Another one of the same
//! object that is sent before the first is answered could only be refused.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use lockstep_control::plan::Key;
use lockstep_control::plan::queue::{Finalizers, Owner, StatusOfQueue};

/// One write.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum OfQueue {
    Status(Box<StatusOfQueue>),
    Finalizers(Finalizers),
}

/// What a write is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Subject {
    Owner(Owner),
    LocalQueue(Key),
}

/// What is written of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Finalizers,
    Status,
}

/// Writes that wait, and whom others are under way of.
#[derive(Default)]
pub(super) struct OfQueues {
    /// The latest of each.
    waiting: BTreeMap<(Subject, Part), OfQueue>,
    /// Those that may be sent, in order. What waits no more is passed over.
    line: VecDeque<(Subject, Part)>,
    in_flight: BTreeSet<Subject>,
}

impl OfQueues {
    /// How many are under way.
    pub(super) fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    /// Adds a write, in the place of an earlier one that has not been sent.
    pub(super) fn add(&mut self, write: OfQueue) {
        let key = write.key();
        let is_in_line = self.waiting.insert(key.clone(), write).is_some();
        if !is_in_line && !self.in_flight.contains(&key.0) {
            self.line.push_back(key);
        }
    }

    /// The next to send, if there is one. It is under way from now on.
    pub(super) fn next(&mut self) -> Option<OfQueue> {
        while let Some(key) = self.line.pop_front() {
            // Its turn comes when the other one is answered.
            if self.in_flight.contains(&key.0) {
                continue;
            }
            if let Some(write) = self.waiting.remove(&key) {
                self.in_flight.insert(key.0);
                return Some(write);
            }
        }
        None
    }

    /// A write was answered, with this version of the object if it was carried out.
    pub(super) fn answered(&mut self, subject: &Subject, version: Option<u64>) {
        self.in_flight.remove(subject);
        for part in [Part::Finalizers, Part::Status] {
            let key = (subject.clone(), part);
            let Some(write) = self.waiting.get(&key) else { continue };
            // What was decided on an earlier version is decided again on this one.
            if version.is_some_and(|version| write.version() < version) {
                self.waiting.remove(&key);
            } else {
                self.line.push_back(key);
            }
        }
    }
}

impl OfQueue {
    fn key(&self) -> (Subject, Part) {
        match self {
            Self::Finalizers(it) => (Subject::Owner(it.of.clone()), Part::Finalizers),
            Self::Status(status) => match &**status {
                StatusOfQueue::ClusterQueue { name, .. } => {
                    (Subject::Owner(Owner::ClusterQueue(name.clone())), Part::Status)
                }
                StatusOfQueue::LocalQueue { key, .. } => {
                    (Subject::LocalQueue(key.clone()), Part::Status)
                }
            },
        }
    }

    fn version(&self) -> u64 {
        let version = match self {
            Self::Finalizers(it) => &it.version,
            Self::Status(status) => match &**status {
                StatusOfQueue::ClusterQueue { version, .. }
                | StatusOfQueue::LocalQueue { version, .. } => version,
            },
        };
        version.parse().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use lockstep_api::kueue::ClusterQueueStatus;

    use super::*;

    fn status(name: &str, version: u64, pending_workloads: i32) -> OfQueue {
        OfQueue::Status(Box::new(StatusOfQueue::ClusterQueue {
            name: name.to_owned(),
            uid: "uid".to_owned(),
            version: version.to_string(),
            status: ClusterQueueStatus { pending_workloads, ..ClusterQueueStatus::default() },
        }))
    }

    fn finalizers(name: &str, version: u64) -> OfQueue {
        OfQueue::Finalizers(Finalizers {
            of: Owner::ClusterQueue(name.to_owned()),
            uid: "uid".to_owned(),
            version: version.to_string(),
            finalizers: Vec::new(),
        })
    }

    fn subject(name: &str) -> Subject {
        Subject::Owner(Owner::ClusterQueue(name.to_owned()))
    }

    #[test]
    fn of_one_object_one_write_is_under_way_and_the_latest_waits() {
        let mut writes = OfQueues::default();
        writes.add(status("a", 1, 1));
        writes.add(status("b", 1, 1));
        writes.add(status("a", 1, 2));
        assert_eq!(writes.next(), Some(status("a", 1, 2)), "it is the latest");
        writes.add(status("a", 1, 3));
        writes.add(finalizers("a", 1));
        writes.add(status("a", 1, 4));
        assert_eq!(writes.next(), Some(status("b", 1, 1)));
        assert_eq!((writes.next(), writes.in_flight(), writes.waiting.len()), (None, 2, 2));
        writes.answered(&subject("a"), None);
        assert_eq!(writes.next(), Some(finalizers("a", 1)));
        assert_eq!(writes.next(), None);
        writes.answered(&subject("a"), None);
        assert_eq!(writes.next(), Some(status("a", 1, 4)));
        writes.answered(&subject("a"), None);
        assert_eq!((writes.next(), writes.in_flight(), writes.waiting.len()), (None, 1, 0));
    }

    #[test]
    fn what_was_decided_before_a_write_is_not_sent_after_it() {
        for (decided_on, want) in
            [(1, None), (2, Some(status("a", 2, 2))), (3, Some(status("a", 3, 2)))]
        {
            let mut writes = OfQueues::default();
            writes.add(status("a", 1, 1));
            assert!(writes.next().is_some());
            writes.add(status("a", decided_on, 2));
            writes.answered(&subject("a"), Some(2));
            assert_eq!(writes.next(), want, "decided on {decided_on}");
        }
    }

    #[test]
    fn what_waits_in_line_while_another_is_under_way_is_not_forgotten() {
        let mut writes = OfQueues::default();
        writes.add(status("a", 1, 1));
        writes.add(finalizers("a", 1));
        assert_eq!(writes.next(), Some(status("a", 1, 1)));
        assert_eq!(writes.next(), None, "not while the status is under way");
        writes.answered(&subject("a"), None);
        assert_eq!(writes.next(), Some(finalizers("a", 1)));
    }
}
