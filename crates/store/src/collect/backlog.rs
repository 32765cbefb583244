//! What is still to be looked at, and what is looked at no more than once in a while.
//!
//! A namespace that waits for its contents says how much of it is left, and a quota how much of it
//! is used. To find that out takes a walk over all of a namespace, and each object that goes is a
//! reason to: without a rest in between, the end of many would cost the square of their number.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};

use super::{Candidate, View, namespace, quota};

/// How long a candidate that may wait is left alone after it was looked at.
const REST: SignedDuration = SignedDuration::from_secs(1);

/// Candidates, each once, in a fixed order.
#[derive(Debug, Default)]
pub struct Backlog {
    waiting: BTreeSet<Candidate>,
    /// Who was looked at a short while ago and may wait until then; whether there is a reason to
    /// look again.
    resting: BTreeMap<Candidate, Rest>,
}

#[derive(Debug)]
struct Rest {
    until: Timestamp,
    is_wanted: bool,
}

impl Backlog {
    /// Takes up to `max` of those that are to be looked at now. What `may_wait` and was looked at a
    /// short while ago stays.
    pub fn take(
        &mut self,
        now: Timestamp,
        max: usize,
        may_wait: impl Fn(&Candidate) -> bool,
    ) -> Vec<Candidate> {
        self.wake(now);
        let mut taken = Vec::new();
        while taken.len() < max {
            let Some(candidate) = self.waiting.pop_first() else { break };
            if !may_wait(&candidate) {
                self.resting.remove(&candidate);
            } else if let Some(rest) = self.resting.get_mut(&candidate) {
                rest.is_wanted = true;
                continue;
            } else {
                let until = now.checked_add(REST).unwrap_or(Timestamp::MAX);
                self.resting.insert(candidate.clone(), Rest { until, is_wanted: false });
            }
            taken.push(candidate);
        }
        taken
    }

    /// Whether there is something to look at that does not rest.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// When the next one has rested that there is a reason to look at.
    pub fn next(&self) -> Option<Timestamp> {
        self.resting.values().filter(|rest| rest.is_wanted).map(|rest| rest.until).min()
    }

    fn wake(&mut self, now: Timestamp) {
        let rested = self.resting.extract_if(.., |_, rest| rest.until <= now);
        let wanted = rested.filter(|(_, rest)| rest.is_wanted);
        self.waiting.extend(wanted.map(|(candidate, _)| candidate));
    }
}

impl Extend<Candidate> for Backlog {
    fn extend<I: IntoIterator<Item = Candidate>>(&mut self, candidates: I) {
        self.waiting.extend(candidates);
    }
}

/// Whether a look at the candidate is a walk that need not be made at once: a namespace that is
/// being deleted and is not empty yet, or a quota that is in force.
pub fn may_wait(view: &View<'_>, (table, key): &Candidate) -> bool {
    if **table == *quota::TABLE {
        return quota::is_in_force(view.snapshot, key);
    }
    **table == *namespace::TABLE
        && namespace::is_going(view, key)
        && !namespace::is_empty(view.snapshot, view.catalog, key)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(name: &str) -> Candidate {
        ("namespaces".into(), name.into())
    }

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millisecond(millis).unwrap()
    }

    #[test]
    fn whoever_may_wait_is_looked_at_at_once_and_then_once_a_second() {
        let mut backlog = Backlog::default();
        let mut looks = Vec::new();
        for millis in (0..=3_000).step_by(100) {
            // Until the end there is always a reason to look.
            backlog.extend([candidate("large")]);
            let taken = backlog.take(at(millis), 8, |_| true);
            looks.extend(taken.iter().map(|_| millis));
        }
        assert_eq!(looks, [0, 1_000, 2_000, 3_000]);
    }

    #[test]
    fn the_last_reason_to_look_is_not_forgotten() {
        let mut backlog = Backlog::default();
        backlog.extend([candidate("a")]);
        assert_eq!(backlog.take(at(0), 8, |_| true), [candidate("a")]);
        assert_eq!(backlog.next(), None, "there is no reason to look again");
        backlog.extend([candidate("a")]);
        assert_eq!(backlog.take(at(1), 8, |_| true), []);
        assert_eq!((backlog.is_empty(), backlog.next()), (true, Some(at(1_000))));
        assert_eq!(backlog.take(at(1_000), 8, |_| true), [candidate("a")]);
        assert_eq!(backlog.next(), None);
    }

    #[test]
    fn whoever_may_not_wait_any_more_is_looked_at_at_once() {
        let mut backlog = Backlog::default();
        backlog.extend([candidate("a")]);
        assert_eq!(backlog.take(at(0), 8, |_| true).len(), 1);
        backlog.extend([candidate("a")]);
        assert_eq!(backlog.take(at(1), 8, |_| false), [candidate("a")]);
    }

    #[test]
    fn those_that_rest_take_no_place_of_others() {
        let mut backlog = Backlog::default();
        backlog.extend(["a", "b", "c"].map(candidate));
        let is_patient = |it: &Candidate| *it.1 == *"a";
        assert_eq!(backlog.take(at(0), 2, is_patient), ["a", "b"].map(candidate));
        backlog.extend([candidate("a")]);
        assert_eq!(backlog.take(at(1), 1, is_patient), [candidate("c")]);
    }
}
