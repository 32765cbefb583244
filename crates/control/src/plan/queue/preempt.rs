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
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate<'a> {
    pub key: &'a Key,
    pub queue: &'a Arc<str>,
    pub uid: &'a str,
    pub priority: i32,
    /// The time by which it stood in its queue.
    pub at: Timestamp,
    pub is_evicted: bool,
    pub reserved_at: Timestamp,
    pub usage: &'a Amounts,
}

/// What is known of somebody who holds something.
pub(super) type Lookup<'a> = dyn Fn(&Key) -> Option<Candidate<'a>> + 'a;

/// Somebody who gives way.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub key: Key,
    pub queue: Arc<str>,
    pub is_evicted: bool,
    pub usage: Amounts,
    /// The reason of the condition that says so.
    pub reason: &'static str,
}

/// Who is to give way so that `wanted` can be had, where `needed` is what there is not enough of;
/// nobody if that would not help. `candidate` tells of those that hold something.
pub(super) fn targets(
    ledger: &Ledger,
    preemptor: Preemptor<'_>,
    wanted: &Amounts,
    needed: &BTreeSet<FlavorResource>,
    candidate: &Lookup<'_>,
) -> Vec<Target> {
    let Some(book) = ledger.book(preemptor.queue) else { return Vec::new() };
    let mut candidates = find_own(book, preemptor, needed, candidate);
    // Whether it only takes back what is its own. Then nothing is borrowed, whoever gives way.
    let is_own = wanted.iter().all(|(what, it)| !ledger.borrows_with(preemptor.queue, what, *it));
    let is_below = needed.iter().all(|what| ledger.unused(preemptor.queue, what) > 0);
    // Others give way to nobody who borrows in the end. They are many, so that it pays to see first
    // whether one who borrows now could do without, once those of its own queue have given way.
    if is_own || is_below && need_not_borrow(ledger, preemptor, wanted, &candidates) {
        candidates.extend(find_others(ledger, book, preemptor, needed, candidate));
    }
    if candidates.is_empty() {
        return Vec::new();
    }
    candidates.sort_by(|a, b| rank(a, preemptor.queue).cmp(&rank(b, preemptor.queue)));
    let has_others = candidates.iter().any(|it| it.queue != preemptor.queue);
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
    fn add(&mut self, candidate: &Candidate<'_>) {
        let of_queue = self.by_queue.entry(Arc::clone(candidate.queue)).or_default();
        amount::add(of_queue, candidate.usage);
        amount::add(&mut self.total, candidate.usage);
    }

    fn take_back(&mut self, candidate: &Candidate<'_>) {
        if let Some(own) = self.by_queue.get_mut(candidate.queue) {
            amount::subtract(own, candidate.usage);
        }
        amount::subtract(&mut self.total, candidate.usage);
    }

    fn of(&self, queue: &str, what: &FlavorResource) -> i64 {
        self.by_queue.get(queue).map_or(0, |given| amount::of(given, what))
    }
}

impl Search<'_> {
    fn run(&self, candidates: &[Candidate<'_>], attempt: Attempt) -> Vec<Target> {
        let mut given = Given::default();
        let mut chosen: Vec<&Candidate<'_>> = Vec::new();
        let mut fits = false;
        for candidate in candidates {
            if candidate.queue != self.preemptor.queue {
                // To borrow at the expense of those who borrow would end in turns.
                let only_within = attempt == Attempt::Borrowing && !self.is_own;
                if only_within || !self.still_borrows(candidate.queue, &given) {
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

    fn target(&self, candidate: &Candidate<'_>) -> Target {
        let is_same = candidate.queue == self.preemptor.queue;
        let reason =
            if is_same { reasons::IN_CLUSTER_QUEUE } else { reasons::IN_COHORT_RECLAMATION };
        Target {
            key: candidate.key.clone(),
            queue: Arc::clone(candidate.queue),
            is_evicted: candidate.is_evicted,
            usage: candidate.usage.clone(),
            reason,
        }
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

/// Whether one need not borrow, once all of its own queue have given way that may have to.
fn need_not_borrow(
    ledger: &Ledger,
    preemptor: Preemptor<'_>,
    wanted: &Amounts,
    own: &[Candidate<'_>],
) -> bool {
    wanted.iter().all(|(what, wanted)| {
        let given = own.iter().map(|it| amount::of(it.usage, what));
        let given = given.fold(0, i64::saturating_add);
        *wanted <= ledger.unused(preemptor.queue, what).saturating_add(given)
    })
}

/// All of its own queue that may have to give way.
fn find_own<'a>(
    book: &Book,
    preemptor: Preemptor<'_>,
    needed: &BTreeSet<FlavorResource>,
    candidate: &Lookup<'a>,
) -> Vec<Candidate<'a>> {
    let is_below = |it: &Candidate<'_>| it.priority < preemptor.priority;
    let mut found = Vec::new();
    match book.pool.within {
        Within::LowerPriority if book.has_below(preemptor.priority, false) => {
            found.extend(holders(book, needed).into_iter().filter_map(candidate).filter(is_below));
        }
        Within::LowerOrNewerEqualPriority if book.has_below(preemptor.priority, true) => {
            let is_newer =
                |it: &Candidate<'_>| it.priority == preemptor.priority && it.at > preemptor.at;
            let may = |it: &Candidate<'_>| is_below(it) || is_newer(it);
            found.extend(holders(book, needed).into_iter().filter_map(candidate).filter(may));
        }
        Within::Never | Within::LowerPriority | Within::LowerOrNewerEqualPriority => {}
    }
    found
}

/// All of other queues that may have to give way.
fn find_others<'a>(
    ledger: &Ledger,
    book: &Book,
    preemptor: Preemptor<'_>,
    needed: &BTreeSet<FlavorResource>,
    candidate: &Lookup<'a>,
) -> Vec<Candidate<'a>> {
    let is_below = |it: &Candidate<'_>| it.priority < preemptor.priority;
    let mut found = Vec::new();
    // Nobody of a queue that is stopped or broken has to give way.
    for other in ledger.others(preemptor.queue).filter(|other| other.is_open) {
        if needed.iter().all(|what| other.borrowed(what) == 0) {
            continue;
        }
        match book.pool.reclaim {
            Reclaim::Any => found.extend(holders(other, needed).into_iter().filter_map(candidate)),
            Reclaim::LowerPriority if other.has_below(preemptor.priority, false) => {
                found.extend(
                    holders(other, needed).into_iter().filter_map(candidate).filter(is_below),
                );
            }
            Reclaim::LowerPriority | Reclaim::Never => {}
        }
    }
    found
}

/// Those of a queue that hold some of what is needed.
fn holders<'a>(book: &'a Book, needed: &BTreeSet<FlavorResource>) -> BTreeSet<&'a Key> {
    needed.iter().flat_map(|what| book.holders_of(what)).collect()
}

/// The order in which they give way.
fn rank<'a>(
    candidate: &Candidate<'a>,
    queue: &Arc<str>,
) -> (bool, bool, i32, Reverse<Timestamp>, &'a str) {
    (
        !candidate.is_evicted,
        candidate.queue == queue,
        candidate.priority,
        Reverse(candidate.reserved_at),
        candidate.uid,
    )
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use serde_json::json;

    use super::{
        super::{Settings, ledger::Held, pool::Pool},
        *,
    };

    fn what() -> FlavorResource {
        FlavorResource::new(&Arc::from("f"), &Arc::from("gpu"))
    }

    /// Queues `a` and `b` of one cohort with 10 each, where `b` holds `borrowed` more than it has.
    fn ledger(own: i64, borrowed: i64) -> (Ledger, BTreeMap<Key, (Arc<str>, Amounts)>) {
        let pool = serde_json::from_value(json!({"spec": {
            "cohortName": "c",
            "preemption": {"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "Any"},
            "resourceGroups": [{"coveredResources": ["gpu"], "flavors": [{"name": "f",
                "resources": [{"name": "gpu", "nominalQuota": "10"}]}]}]}}))
        .unwrap();
        let pool = Arc::new(Pool::of(&pool, &Settings::default()));
        let (mut ledger, mut holders) = (Ledger::default(), BTreeMap::new());
        for (queue, held) in [("a", own), ("b", 10 + borrowed)] {
            let queue: Arc<str> = Arc::from(queue);
            ledger.set_pool(&queue, Arc::clone(&pool), true);
            for nth in 0..held {
                let key = Key { namespace: queue.to_string(), name: nth.to_string() };
                let usage = Amounts::from([(what(), 1)]);
                let held = Held { usage: usage.clone(), priority: 0, is_admitted: true };
                ledger.hold(&queue, &key, &held);
                holders.insert(key, (Arc::clone(&queue), usage));
            }
        }
        (ledger, holders)
    }

    #[test]
    fn others_are_looked_at_only_where_they_would_give_way() {
        // (own use, borrowed by the other, asked for, priority) -> (give way, looked at)
        let cases = [
            ("its own is taken back", (4, 6, 6, 1), (6, 4 + 16)),
            ("both, so that it need not borrow", (8, 2, 4, 1), (4, 8 + 12)),
            ("nobody gives way to one that borrows", (10, 0, 4, 0), (0, 0)),
            ("however many others borrow", (4, 6, 9, 0), (0, 0)),
            ("more than all of its own queue have", (4, 6, 11, 1), (0, 4)),
        ];
        let queue: Arc<str> = Arc::from("a");
        for (name, (own, borrowed, asked, priority), want) in cases {
            let (ledger, holders) = ledger(own, borrowed);
            let looked_at = Cell::new(0);
            let candidate = |key: &Key| {
                looked_at.set(looked_at.get() + 1);
                let (key, (queue, usage)) = holders.get_key_value(key)?;
                Some(Candidate {
                    key,
                    queue,
                    uid: &key.name,
                    priority: 0,
                    at: Timestamp::UNIX_EPOCH,
                    is_evicted: false,
                    reserved_at: Timestamp::UNIX_EPOCH,
                    usage,
                })
            };
            let preemptor = Preemptor { queue: &queue, priority, at: Timestamp::UNIX_EPOCH };
            let wanted = Amounts::from([(what(), asked)]);
            let needed = BTreeSet::from([what()]);
            let targets = targets(&ledger, preemptor, &wanted, &needed, &candidate);
            assert_eq!((targets.len(), looked_at.get()), want, "{name}");
        }
    }
}
