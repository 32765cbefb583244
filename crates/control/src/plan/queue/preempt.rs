//! Who gives way to whom.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jiff::Timestamp;
use lockstep_api::reasons::kueue::preempted as reasons;

use super::{
    amount::{self, Amounts, FlavorResource},
    ledger::{Book, Ledger},
    pool::{Reclaim, Within},
};
use crate::plan::Key;

/// Somebody who wants in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Preemptor<'a> {
    pub queue: &'a Arc<str>,
    pub priority: i32,
    pub at: Timestamp,
}

/// Somebody who may have to give way.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub key: Key,
    pub queue: Arc<str>,
    pub uid: String,
    pub priority: i32,
    /// The time by which it stood in its queue.
    pub at: Timestamp,
    pub is_evicted: bool,
    pub reserved_at: Timestamp,
    pub usage: Amounts,
}

/// Somebody who gives way, and the reason of the condition that says so.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub candidate: Candidate,
    pub reason: &'static str,
}

/// Who is to give way so that `wanted` can be had, where `needed` is what there is not enough of;
/// nobody if that would not help. `candidate` tells of those that hold something.
pub(super) fn targets(
    ledger: &Ledger,
    preemptor: Preemptor<'_>,
    wanted: &Amounts,
    needed: &BTreeSet<FlavorResource>,
    candidate: &dyn Fn(&Key) -> Option<Candidate>,
) -> Vec<Target> {
    let Some(book) = ledger.book(preemptor.queue) else { return Vec::new() };
    let mut candidates = find(ledger, book, preemptor, needed, candidate);
    if candidates.is_empty() {
        return Vec::new();
    }
    candidates.sort_by(|a, b| rank(a, preemptor.queue).cmp(&rank(b, preemptor.queue)));
    let has_others = candidates.iter().any(|it| it.queue != *preemptor.queue);
    // Whether it only takes back what is its own. Then nothing is borrowed, whoever gives way.
    let is_own = wanted.iter().all(|(what, it)| !ledger.borrows_with(preemptor.queue, what, *it));
    let is_below = needed.iter().all(|what| ledger.unused(preemptor.queue, what) > 0);
    let attempts: &[Attempt] = match (has_others, is_below, is_own) {
        (false, ..) | (true, false, _) => &[Attempt::Borrowing],
        (true, true, false) => &[Attempt::Within, Attempt::Borrowing],
        (true, true, true) => &[Attempt::Borrowing, Attempt::Within],
    };
    let search = Search { ledger, preemptor, wanted, needed, is_own };
    let found = attempts.iter().map(|attempt| search.run(&candidates, *attempt));
    found.into_iter().find(|targets| !targets.is_empty()).unwrap_or_default()
}

/// Whether it may borrow in the end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Attempt {
    Borrowing,
    Within,
}

struct Search<'a> {
    ledger: &'a Ledger,
    preemptor: Preemptor<'a>,
    wanted: &'a Amounts,
    needed: &'a BTreeSet<FlavorResource>,
    is_own: bool,
}

/// What has been given back so far.
#[derive(Default)]
struct Given {
    by_queue: BTreeMap<Arc<str>, Amounts>,
    total: Amounts,
}

impl Given {
    fn add(&mut self, candidate: &Candidate) {
        amount::add(
            self.by_queue.entry(Arc::clone(&candidate.queue)).or_default(),
            &candidate.usage,
        );
        amount::add(&mut self.total, &candidate.usage);
    }

    fn take_back(&mut self, candidate: &Candidate) {
        if let Some(own) = self.by_queue.get_mut(&candidate.queue) {
            amount::subtract(own, &candidate.usage);
        }
        amount::subtract(&mut self.total, &candidate.usage);
    }

    fn of(&self, queue: &str, what: &FlavorResource) -> i64 {
        self.by_queue.get(queue).map_or(0, |given| amount::of(given, what))
    }
}

impl Search<'_> {
    fn run(&self, candidates: &[Candidate], attempt: Attempt) -> Vec<Target> {
        let mut given = Given::default();
        let mut chosen: Vec<&Candidate> = Vec::new();
        let mut fits = false;
        for candidate in candidates {
            if candidate.queue != *self.preemptor.queue {
                // To borrow at the expense of those who borrow would end in turns.
                let only_within = attempt == Attempt::Borrowing && !self.is_own;
                if only_within || !self.still_borrows(&candidate.queue, &given) {
                    continue;
                }
            }
            given.add(candidate);
            chosen.push(candidate);
            if self.fits(&given, attempt) {
                fits = true;
                break;
            }
        }
        if !fits {
            return Vec::new();
        }
        let mut at = chosen.len().saturating_sub(1);
        while at > 0 {
            at -= 1;
            given.take_back(chosen[at]);
            if self.fits(&given, attempt) {
                chosen.remove(at);
            } else {
                given.add(chosen[at]);
            }
        }
        chosen.into_iter().map(|candidate| self.target(candidate)).collect()
    }

    fn target(&self, candidate: &Candidate) -> Target {
        let is_same = candidate.queue == *self.preemptor.queue;
        let reason =
            if is_same { reasons::IN_CLUSTER_QUEUE } else { reasons::IN_COHORT_RECLAMATION };
        Target { candidate: candidate.clone(), reason }
    }

    fn still_borrows(&self, queue: &str, given: &Given) -> bool {
        let Some(book) = self.ledger.book(queue) else { return false };
        self.needed.iter().any(|what| book.borrowed(what) > given.of(queue, what))
    }

    fn fits(&self, given: &Given, attempt: Attempt) -> bool {
        let queue = self.preemptor.queue;
        self.wanted.iter().all(|(what, wanted)| {
            let own = given.of(queue, what);
            let unused = self.ledger.unused(queue, what).saturating_add(own);
            let left =
                self.ledger.available_after(queue, what, own, amount::of(&given.total, what));
            *wanted <= left && (attempt == Attempt::Borrowing || *wanted <= unused)
        })
    }
}

/// All that may have to give way.
fn find(
    ledger: &Ledger,
    book: &Book,
    preemptor: Preemptor<'_>,
    needed: &BTreeSet<FlavorResource>,
    candidate: &dyn Fn(&Key) -> Option<Candidate>,
) -> Vec<Candidate> {
    let is_below = |it: &Candidate| it.priority < preemptor.priority;
    let mut keys = BTreeSet::new();
    let mut found = Vec::new();
    let mut collect = |of: &Book, may: &dyn Fn(&Candidate) -> bool| {
        keys.clear();
        keys.extend(needed.iter().flat_map(|what| of.holders_of(what)).cloned());
        found.extend(keys.iter().filter_map(candidate).filter(|it| may(it)));
    };
    match book.pool.within {
        Within::LowerPriority if book.has_below(preemptor.priority, false) => {
            collect(book, &is_below);
        }
        Within::LowerOrNewerEqualPriority if book.has_below(preemptor.priority, true) => {
            collect(book, &|it| {
                is_below(it) || it.priority == preemptor.priority && it.at > preemptor.at
            });
        }
        Within::Never | Within::LowerPriority | Within::LowerOrNewerEqualPriority => {}
    }
    if book.pool.reclaim == Reclaim::Never {
        return found;
    }
    // Nobody of a queue that is stopped or broken has to give way.
    for other in ledger.others(preemptor.queue).filter(|other| other.is_open) {
        if needed.iter().all(|what| other.borrowed(what) == 0) {
            continue;
        }
        match book.pool.reclaim {
            Reclaim::Any => collect(other, &|_| true),
            Reclaim::LowerPriority if other.has_below(preemptor.priority, false) => {
                collect(other, &is_below);
            }
            Reclaim::LowerPriority | Reclaim::Never => {}
        }
    }
    found
}

/// The order in which they give way.
fn rank<'a>(
    candidate: &'a Candidate,
    queue: &Arc<str>,
) -> (bool, bool, i32, Reverse<Timestamp>, &'a str) {
    (
        !candidate.is_evicted,
        candidate.queue == *queue,
        candidate.priority,
        Reverse(candidate.reserved_at),
        &candidate.uid,
    )
}
