//! Passes over keys, one after the other: what is due, what a pass came to, and when the next is.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;

use super::{Backoff, WorkQueue, after};

/// What happens in a pass over something that is followed by a watch and written to.
#[derive(Clone, Debug)]
pub struct Pass {
    /// The version of the object it was planned on.
    pub version: u64,
    /// The revision of the view it was planned on, which moves with everything that is seen.
    pub revision: u64,
    /// When there is more to do, if that is known.
    pub next: Option<Timestamp>,
    /// Whether it asks for anything that should change what is seen.
    pub wants_change: bool,
    /// Whether all it does is to look again. That is no success: what failed may fail again.
    pub only_looks: bool,
    /// How it has failed so far.
    pub failure: Option<Failure>,
    /// The uids of what has gone while it ran: late answers about them are no news.
    pub gone: BTreeSet<String>,
}

/// How a pass failed, the worst last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Failure {
    /// Something was not what it was seen as. What it is now will be seen, and decided on.
    Outdated,
    /// The namespace is going away, and all of it: nobody's fault.
    Silent,
    /// In a way that is an error.
    Error,
}

impl Pass {
    /// Notes a failure; the worst one counts.
    pub fn fail(&mut self, failure: Failure) {
        self.failure = self.failure.max(Some(failure));
    }
}

/// A version that turned out to be old, and until when to wait for a newer one.
#[derive(Clone, Copy, Debug)]
pub struct Stale {
    /// The version.
    pub version: u64,
    /// Then it is tried with what there is.
    pub until: Timestamp,
}

impl Stale {
    /// Until when to wait, if the version that is known is still the old one.
    pub fn holds(self, known: u64, now: Timestamp) -> Option<Timestamp> {
        (known <= self.version && now < self.until).then_some(self.until)
    }
}

/// Which keys want a pass, when, and how long those wait whose passes fail.
#[derive(Clone, Debug)]
pub struct Turns<K> {
    queue: WorkQueue<K>,
    backoff: Backoff<K>,
}

impl<K: Ord + Clone> Turns<K> {
    /// Nobody's turn. A key waits `base` after the first failure, never more than `max`.
    pub fn new(base: Duration, max: Duration) -> Self {
        Self { queue: WorkQueue::new(), backoff: Backoff::new(base, max) }
    }

    /// Asks for a pass, as [`WorkQueue::add`].
    pub fn add(&mut self, key: K, at: Timestamp) {
        self.queue.add(key, at);
    }

    /// The next key, as [`WorkQueue::take_due`].
    pub fn take_due(&mut self, now: Timestamp) -> Option<K> {
        self.queue.take_due(now)
    }

    /// When somebody's turn is, as [`WorkQueue::next_due`].
    pub fn next_due(&self) -> Option<Timestamp> {
        self.queue.next_due()
    }

    /// How many keys wait for a pass.
    pub fn len(&self) -> usize {
        self.queue.len()
    }

    /// Whether no key waits for a pass.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Forgets the failures of a key, and that it wants a pass. One that is under way goes on.
    pub fn remove(&mut self, key: &K) {
        self.backoff.succeeded(key);
        self.queue.remove(key);
    }

    /// Ends a pass over something that is no longer known.
    pub fn abandon(&mut self, key: &K) {
        self.queue.done(key);
    }

    /// Ends a pass. `revision` is that of the view by now; `outdated` is how long to wait for news
    /// of what was not as it was seen. News ask for a pass by themselves: this is for when none
    /// come.
    pub fn end(&mut self, key: &K, pass: &Pass, revision: u64, outdated: Duration, now: Timestamp) {
        let is_stuck = pass.wants_change && pass.revision == revision;
        if pass.failure == Some(Failure::Outdated) {
            self.queue.add(key.clone(), after(now, outdated));
        } else if pass.failure.is_some() || is_stuck {
            let delay = self.backoff.failed(key);
            self.queue.add(key.clone(), after(now, delay));
        } else {
            if !pass.only_looks {
                self.backoff.succeeded(key);
            }
            if pass.wants_change {
                self.queue.add(key.clone(), now);
            }
        }
        if let Some(at) = pass.next {
            self.queue.add(key.clone(), at);
        }
        self.queue.done(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;
    const OUTDATED: Duration = Duration::from_secs(7);

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn pass() -> Pass {
        Pass {
            version: 1,
            revision: 1,
            next: None,
            wants_change: false,
            only_looks: false,
            failure: None,
            gone: BTreeSet::new(),
        }
    }

    /// Ends passes one after the other, each seen through at revision 2, and says when the last
    /// asks for another.
    fn after_passes(passes: impl IntoIterator<Item = Pass>) -> Option<Timestamp> {
        let mut turns = Turns::new(Duration::from_secs(1), Duration::from_secs(60));
        turns.add("a", NOW);
        for pass in passes {
            let due = turns.next_due().unwrap();
            let key = turns.take_due(due).unwrap();
            turns.end(&key, &pass, 2, OUTDATED, NOW);
        }
        turns.next_due()
    }

    #[test]
    fn when_the_next_pass_is_follows_from_what_became_of_the_last() {
        let stuck = Pass { revision: 2, wants_change: true, ..pass() };
        let failed = Pass { failure: Some(Failure::Error), ..pass() };
        let silent = Pass { failure: Some(Failure::Silent), ..pass() };
        let outdated = Pass { failure: Some(Failure::Outdated), ..pass() };
        let more = Pass { wants_change: true, ..pass() };
        let looks = Pass { only_looks: true, wants_change: true, ..pass() };
        let later = Pass { next: Some(at(40)), ..pass() };
        let both = Pass { next: Some(at(40)), ..failed.clone() };
        let cases: [(&str, Vec<Pass>, Option<Timestamp>); 11] = [
            ("nothing to do", vec![pass()], None),
            ("there may be more", vec![more.clone()], Some(NOW)),
            ("nothing changed", vec![stuck.clone()], Some(at(1))),
            ("an error", vec![failed.clone()], Some(at(1))),
            ("a namespace that ends", vec![silent], Some(at(1))),
            ("errors in a row", vec![failed.clone(), stuck, failed.clone()], Some(at(4))),
            ("an old view is no error", vec![failed.clone(), outdated], Some(at(7))),
            ("a success between", vec![failed.clone(), more, failed.clone()], Some(at(1))),
            ("looking is no success", vec![failed.clone(), looks, failed], Some(at(2))),
            ("a known time", vec![later], Some(at(40))),
            ("the earlier of two", vec![both], Some(at(1))),
        ];
        for (name, passes, expected) in cases {
            assert_eq!(after_passes(passes), expected, "{name}");
        }
    }

    #[test]
    fn the_worst_failure_counts() {
        let mut pass = pass();
        pass.fail(Failure::Silent);
        pass.fail(Failure::Outdated);
        assert_eq!(pass.failure, Some(Failure::Silent));
        pass.fail(Failure::Error);
        assert_eq!(pass.failure, Some(Failure::Error));
    }

    #[test]
    fn an_old_version_is_waited_out_until_a_newer_one_or_its_time() {
        let stale = Stale { version: 5, until: at(3) };
        let cases = [(5, 0, true), (4, 2, true), (6, 0, false), (5, 3, false)];
        for (known, second, is_held) in cases {
            let held = stale.holds(known, at(second));
            assert_eq!(held, is_held.then_some(at(3)), "{known} at {second}");
        }
    }
}
