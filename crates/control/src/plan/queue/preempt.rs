//! Who gives way to whom.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jiff::Timestamp;
use lockstep_api::reasons::kueue::preempted as reasons;

use super::{
    amount::{self, Amounts, FlavorResource},
    ledger::{self, Book, Ledger, Standing},
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
    pub queue: &'a Arc<str>,
    pub standing: &'a Standing,
    pub usage: &'a Amounts,
    pub is_evicted: bool,
}

/// What is known of those who hold something.
#[derive(Clone, Copy)]
pub(super) struct Lookup<'f, 'a> {
    pub candidate: &'f dyn Fn(&Key) -> Option<Candidate<'a>>,
    /// The time by which one stood in its queue.
    pub queued_at: &'f dyn Fn(&Key) -> Option<Timestamp>,
}

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
/// nobody if that would not help. `lookup` tells of those that hold something.
pub(super) fn targets(
    ledger: &Ledger,
    preemptor: Preemptor<'_>,
    wanted: &Amounts,
    needed: &BTreeSet<FlavorResource>,
    lookup: Lookup<'_, '_>,
) -> Vec<Target> {
    let Some(book) = ledger.book(preemptor.queue) else { return Vec::new() };
    let mut field = Field { ledger, book, preemptor, needed, lookup, borrowers: Vec::new() };
    // Whether it only takes back what is its own. Then nothing is borrowed, whoever gives way.
    let is_own = wanted.iter().all(|(what, it)| !ledger.borrows_with(preemptor.queue, what, *it));
    let is_below = needed.iter().all(|what| ledger.unused(preemptor.queue, what) > 0);
    if is_own || is_below {
        field.ask_others();
    }
    // Others give way to nobody who borrows in the end. They are many, so that it pays to see first
    // whether one who borrows now could do without, once those of its own queue have given way.
    if !is_own && !field.borrowers.is_empty() && !field.need_not_borrow(wanted) {
        field.borrowers.clear();
    }
    let has_others = field.of_others().next().is_some();
    let attempts: &[Attempt] = match (has_others, is_below, is_own) {
        (false, ..) | (true, false, _) => &[Attempt::Borrowing],
        (true, true, false) => &[Attempt::Within, Attempt::Borrowing],
        (true, true, true) => &[Attempt::Borrowing, Attempt::Within],
    };
    let search = Search { ledger, preemptor, wanted, needed, is_own };
    let found = attempts.iter().map(|attempt| search.run(field.candidates(), *attempt));
    found.into_iter().find(|targets| !targets.is_empty()).unwrap_or_default()
}

/// Those who may have to give way. They are many where few have to, so that nobody is looked at
/// before it is his turn.
struct Field<'f, 'a> {
    ledger: &'f Ledger,
    book: &'f Book,
    preemptor: Preemptor<'f>,
    needed: &'f BTreeSet<FlavorResource>,
    lookup: Lookup<'f, 'a>,
    /// Other queues that use more than is theirs.
    borrowers: Vec<&'f Book>,
}

impl<'f, 'a> Field<'f, 'a> {
    /// Counts those of other queues in. Nobody of one that is stopped or broken has to give way.
    fn ask_others(&mut self) {
        if self.book.pool.reclaim != Reclaim::Never {
            let borrows = |it: &&Book| self.needed.iter().any(|what| it.borrowed(what) > 0);
            let others = self.ledger.others(self.preemptor.queue);
            self.borrowers = others.filter(|other| other.is_open).filter(borrows).collect();
        }
    }

    /// All, in the order in which they give way: those first who have been told to go, then those
    /// of other queues.
    fn candidates(&self) -> impl Iterator<Item = Candidate<'a>> {
        let leaving_others = self.leaving(&self.borrowers, Self::gives_way);
        let leaving = self.leaving(&[self.book], Self::gives_way_within);
        let stay = self.of_others().chain(self.of_own()).filter(|it| !it.is_evicted);
        leaving_others.into_iter().chain(leaving).chain(stay)
    }

    /// Whether one need not borrow, once all of its own queue have given way that may have to.
    fn need_not_borrow(&self, wanted: &Amounts) -> bool {
        let mut given = Amounts::new();
        for candidate in self.of_own() {
            amount::add(&mut given, candidate.usage);
        }
        wanted.iter().all(|(what, wanted)| {
            let unused = self.ledger.unused(self.preemptor.queue, what);
            *wanted <= unused.saturating_add(amount::of(&given, what))
        })
    }

    /// Those of its own queue.
    fn of_own(&self) -> impl Iterator<Item = Candidate<'a>> {
        let priority_max = match self.book.pool.within {
            Within::Never => None,
            Within::LowerPriority => self.preemptor.priority.checked_sub(1),
            Within::LowerOrNewerEqualPriority => Some(self.preemptor.priority),
        };
        self.of(std::slice::from_ref(&self.book), priority_max, Self::gives_way_within)
    }

    /// Those of other queues.
    fn of_others(&self) -> impl Iterator<Item = Candidate<'a>> {
        let priority_max = match self.book.pool.reclaim {
            Reclaim::Never => None,
            Reclaim::LowerPriority => self.preemptor.priority.checked_sub(1),
            Reclaim::Any => Some(i32::MAX),
        };
        self.of(&self.borrowers, priority_max, Self::gives_way)
    }

    /// Those of some queues that may give way and have no higher a priority than that, in order.
    fn of(
        &self,
        books: &[&'f Book],
        priority_max: Option<i32>,
        may: impl Fn(&Self, &Candidate<'_>) -> bool,
    ) -> impl Iterator<Item = Candidate<'a>> {
        ledger::holders(books, self.needed)
            .take_while(move |it| priority_max.is_some_and(|max| it.priority <= max))
            .filter_map(|it| (self.lookup.candidate)(&it.key))
            .filter(move |it| may(self, it))
    }

    /// Those of some queues that may give way and have been told to go.
    fn leaving(
        &self,
        books: &[&Book],
        may: impl Fn(&Self, &Candidate<'_>) -> bool,
    ) -> Vec<Candidate<'a>> {
        let uses = |it: &Candidate<'_>| self.needed.iter().any(|what| it.usage.contains_key(what));
        let all = books.iter().flat_map(|book| book.leaving()).filter_map(self.lookup.candidate);
        let mut leaving: Vec<_> =
            all.filter(|it| it.is_evicted && uses(it) && may(self, it)).collect();
        leaving.sort_by(|a, b| a.standing.cmp(b.standing));
        leaving
    }

    /// Whether one of its own queue may have to give way.
    fn gives_way_within(&self, candidate: &Candidate<'_>) -> bool {
        let is_below = candidate.standing.priority < self.preemptor.priority;
        let is_equal = candidate.standing.priority == self.preemptor.priority;
        match self.book.pool.within {
            Within::Never => false,
            Within::LowerPriority => is_below,
            Within::LowerOrNewerEqualPriority => {
                let at = || (self.lookup.queued_at)(&candidate.standing.key);
                is_below || is_equal && at().is_some_and(|at| at > self.preemptor.at)
            }
        }
    }

    /// Whether one of another queue may have to give way.
    fn gives_way(&self, candidate: &Candidate<'_>) -> bool {
        match self.book.pool.reclaim {
            Reclaim::Never => false,
            Reclaim::LowerPriority => candidate.standing.priority < self.preemptor.priority,
            Reclaim::Any => true,
        }
    }
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
    fn run<'a>(
        &self,
        candidates: impl Iterator<Item = Candidate<'a>>,
        attempt: Attempt,
    ) -> Vec<Target> {
        let mut given = Given::default();
        let mut chosen: Vec<Candidate<'_>> = Vec::new();
        let mut fits = false;
        for candidate in candidates {
            if candidate.queue != self.preemptor.queue {
                // To borrow at the expense of those who borrow would end in turns.
                let only_within = attempt == Attempt::Borrowing && !self.is_own;
                if only_within || !self.still_borrows(candidate.queue, &given) {
                    continue;
                }
            }
            given.add(&candidate);
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
            given.take_back(&chosen[at]);
            if self.fits(&given, attempt) {
                chosen.remove(at);
            } else {
                given.add(&chosen[at]);
            }
        }
        chosen.iter().map(|candidate| self.target(candidate)).collect()
    }

    fn target(&self, candidate: &Candidate<'_>) -> Target {
        let is_same = candidate.queue == self.preemptor.queue;
        let reason =
            if is_same { reasons::IN_CLUSTER_QUEUE } else { reasons::IN_COHORT_RECLAMATION };
        Target {
            key: candidate.standing.key.clone(),
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

#[cfg(test)]
mod tests {
    use std::{cell::Cell, cmp::Reverse};

    use serde_json::json;

    use super::{
        super::{Settings, ledger::Held, pool::Pool},
        *,
    };

    fn what() -> FlavorResource {
        FlavorResource::new(&Arc::from("f"), &Arc::from("gpu"))
    }

    /// Queues `a` and `b` of one cohort with 10 each, where `b` holds `borrowed` more than it has.
    fn ledger(own: i64, borrowed: i64) -> (Ledger, BTreeMap<Key, (Arc<str>, Held)>) {
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
                let standing = Standing {
                    priority: 0,
                    reserved_at: Reverse(Timestamp::UNIX_EPOCH),
                    uid: key.to_string(),
                    key: key.clone(),
                };
                let usage = Amounts::from([(what(), 1)]);
                let held = Held { usage, is_admitted: true, standing: Arc::new(standing) };
                ledger.hold(&queue, &held);
                holders.insert(key, (Arc::clone(&queue), held));
            }
        }
        (ledger, holders)
    }

    #[test]
    fn others_are_looked_at_only_where_they_would_give_way() {
        // (own use, borrowed by the other, asked for, priority) -> (give way, looked at)
        let cases = [
            ("its own is taken back", (4, 6, 6, 1), (6, 1 + 6)),
            ("both, so that it need not borrow", (8, 2, 4, 1), (4, 8 + 1 + 12 + 2)),
            ("nobody gives way to one that borrows", (10, 0, 4, 0), (0, 0)),
            ("however many others borrow", (4, 6, 9, 0), (0, 0)),
            ("more than all of its own queue have", (4, 6, 11, 1), (0, 4 + 4)),
        ];
        let queue: Arc<str> = Arc::from("a");
        for (name, (own, borrowed, asked, priority), want) in cases {
            let (ledger, holders) = ledger(own, borrowed);
            let looked_at = Cell::new(0);
            let candidate = |key: &Key| {
                looked_at.set(looked_at.get() + 1);
                let (queue, held) = holders.get(key)?;
                let standing = &held.standing;
                Some(Candidate { queue, standing, usage: &held.usage, is_evicted: false })
            };
            let preemptor = Preemptor { queue: &queue, priority, at: Timestamp::UNIX_EPOCH };
            let queued_at = |_: &Key| Some(Timestamp::UNIX_EPOCH);
            let lookup = Lookup { candidate: &candidate, queued_at: &queued_at };
            let wanted = Amounts::from([(what(), asked)]);
            let needed = BTreeSet::from([what()]);
            let targets = targets(&ledger, preemptor, &wanted, &needed, lookup);
            assert_eq!((targets.len(), looked_at.get()), want, "{name}");
        }
    }
}
