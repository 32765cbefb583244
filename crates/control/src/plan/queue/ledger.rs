//! Who uses how much of what, and what is left: sums per ClusterQueue and per cohort.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use itertools::Itertools;
use jiff::Timestamp;

use super::{
    amount::{self, Amounts, FlavorResource},
    pool::{Pool, Quota},
    why::{HOLDERS_SHOWN, Holders},
};
use crate::plan::Key;

/// What all ClusterQueues have and use.
#[derive(Clone, Debug, Default)]
pub(super) struct Ledger {
    books: BTreeMap<Arc<str>, Book>,
    cohorts: BTreeMap<Arc<str>, Cohort>,
}

/// What one ClusterQueue has and uses.
#[derive(Clone, Debug, Default)]
pub(super) struct Book {
    pub pool: Arc<Pool>,
    /// Whether it can admit anybody. One that cannot shares what it has and uses all the same, but
    /// nobody of it has to give way.
    pub is_open: bool,
    /// What workloads hold, whether they run or not.
    pub reserved: Amounts,
    /// What admitted workloads hold.
    pub admitted: Amounts,
    /// How many workloads hold something, and how many of them are admitted.
    pub counts: Counts,
    /// Who holds what, in the order in which they would give way.
    holders: BTreeMap<FlavorResource, BTreeMap<Arc<Standing>, i64>>,
    /// All that may have been told to go, and some that stay after all.
    leaving: BTreeSet<Key>,
    /// What is taken and given back while a cycle tries things out.
    tried: Amounts,
}

/// ClusterQueues that share what they have.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Tree {
    /// All of a cohort.
    Cohort(Arc<str>),
    /// One without a cohort.
    Alone(Arc<str>),
}

/// How many workloads hold something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub reserving: i32,
    pub admitted: i32,
}

/// What the ClusterQueues of a cohort have and use together.
#[derive(Clone, Debug, Default)]
struct Cohort {
    members: BTreeSet<Arc<str>>,
    quota: Amounts,
    usage: Amounts,
    /// What is taken and given back while a cycle tries things out.
    tried: Amounts,
}

/// What a workload holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Held {
    pub usage: Amounts,
    pub is_admitted: bool,
    pub standing: Arc<Standing>,
}

/// Where somebody stands among those who hold something: who gives way first comes first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Standing {
    pub priority: i32,
    pub reserved_at: Reverse<Timestamp>,
    pub uid: String,
    pub key: Key,
}

impl Ledger {
    pub(super) fn book(&self, queue: &str) -> Option<&Book> {
        self.books.get(queue)
    }

    /// What a ClusterQueue has from now on.
    pub(super) fn set_pool(&mut self, queue: &Arc<str>, pool: Arc<Pool>, is_open: bool) {
        let book = self.books.entry(Arc::clone(queue)).or_default();
        let old = std::mem::replace(&mut book.pool, pool).cohort.clone();
        book.is_open = is_open;
        let new = book.pool.cohort.clone();
        if let Some(old) = old.filter(|old| Some(old) != new.as_ref()) {
            self.leave(&old, queue);
        }
        if let Some(new) = new {
            self.cohorts.entry(Arc::clone(&new)).or_default().members.insert(Arc::clone(queue));
            self.sum(&new);
        }
    }

    /// A ClusterQueue is gone. What its workloads hold is still known.
    pub(super) fn drop_pool(&mut self, queue: &Arc<str>) {
        self.set_pool(queue, Arc::default(), false);
        if self.books.get(queue).is_some_and(|book| book.counts.reserving == 0) {
            self.books.remove(queue);
        }
    }

    /// Whom a ClusterQueue shares with.
    pub(super) fn tree(&self, queue: &Arc<str>) -> Tree {
        let cohort = self.books.get(queue).and_then(|book| book.pool.cohort.clone());
        cohort.map_or_else(|| Tree::Alone(Arc::clone(queue)), Tree::Cohort)
    }

    /// All ClusterQueues that share, open or not.
    pub(super) fn members(&self, tree: &Tree) -> BTreeSet<Arc<str>> {
        match tree {
            Tree::Alone(queue) => BTreeSet::from([Arc::clone(queue)]),
            Tree::Cohort(name) => {
                self.cohorts.get(name).map(|cohort| cohort.members.clone()).unwrap_or_default()
            }
        }
    }

    /// The other ClusterQueues of the cohort.
    pub(super) fn others<'a>(&'a self, queue: &'a str) -> impl Iterator<Item = &'a Book> {
        let cohort = self.books.get(queue).and_then(|book| book.pool.cohort.as_ref());
        let members = cohort.and_then(|cohort| self.cohorts.get(cohort)).map(|it| &it.members);
        let others = members.into_iter().flatten().filter(move |name| &***name != queue);
        others.filter_map(|name| self.books.get(name))
    }

    /// Notes what a workload holds.
    pub(super) fn hold(&mut self, queue: &Arc<str>, held: &Held) {
        let book = self.books.entry(Arc::clone(queue)).or_default();
        book.counts.reserving += 1;
        if held.is_admitted {
            book.counts.admitted += 1;
            amount::add(&mut book.admitted, &held.usage);
        }
        for (what, amount) in &held.usage {
            let holders = book.holders.entry(what.clone()).or_default();
            holders.insert(Arc::clone(&held.standing), *amount);
        }
        amount::add(&mut book.reserved, &held.usage);
        self.in_cohort(queue, |cohort| amount::add(&mut cohort.usage, &held.usage));
    }

    /// Notes that a workload holds this no more.
    pub(super) fn release(&mut self, queue: &Arc<str>, held: &Held) {
        let Some(book) = self.books.get_mut(queue) else { return };
        book.counts.reserving -= 1;
        if held.is_admitted {
            book.counts.admitted -= 1;
            amount::subtract(&mut book.admitted, &held.usage);
        }
        for what in held.usage.keys() {
            let Some(holders) = book.holders.get_mut(what) else { continue };
            holders.remove(&held.standing);
            if holders.is_empty() {
                book.holders.remove(what);
            }
        }
        book.leaving.remove(&held.standing.key);
        amount::subtract(&mut book.reserved, &held.usage);
        self.in_cohort(queue, |cohort| amount::subtract(&mut cohort.usage, &held.usage));
    }

    /// Notes where one stands by now that holds what it has held.
    pub(super) fn rank(&mut self, queue: &str, held: &Held, standing: &Arc<Standing>) {
        let Some(book) = self.books.get_mut(queue) else { return };
        for what in held.usage.keys() {
            let Some(holders) = book.holders.get_mut(what) else { continue };
            if let Some(amount) = holders.remove(&held.standing) {
                holders.insert(Arc::clone(standing), amount);
            }
        }
    }

    /// Notes that one that holds something may have been told to go.
    pub(super) fn leaves(&mut self, queue: &str, key: &Key) {
        if let Some(book) = self.books.get_mut(queue) {
            book.leaving.insert(key.clone());
        }
    }

    /// Takes something for the rest of a round; a negative amount gives it back.
    pub(super) fn try_out(&mut self, queue: &Arc<str>, usage: &Amounts) {
        let Some(book) = self.books.get_mut(queue) else { return };
        amount::add(&mut book.tried, usage);
        self.in_cohort(queue, |cohort| amount::add(&mut cohort.tried, usage));
    }

    /// Forgets all that was tried out.
    pub(super) fn end_round(&mut self, queues: &BTreeSet<Arc<str>>) {
        for queue in queues {
            let Some(book) = self.books.get_mut(queue) else { continue };
            let tried = std::mem::take(&mut book.tried);
            self.in_cohort(queue, |cohort| amount::subtract(&mut cohort.tried, &tried));
        }
    }

    /// How much there can be for a ClusterQueue, if nobody used anything.
    pub(super) fn potential(&self, queue: &str, what: &FlavorResource) -> i64 {
        let Some((book, quota)) = self.quota(queue, what) else { return 0 };
        let Some(cohort) = self.cohort(book) else { return quota.nominal };
        let shared = amount::of(&cohort.quota, what);
        quota
            .borrowing_limit
            .map_or(shared, |limit| quota.nominal.saturating_add(limit).min(shared))
    }

    /// How much there is for a ClusterQueue now. What is used beyond what there is is nobody's
    /// debt: there is nothing then.
    pub(super) fn available(&self, queue: &str, what: &FlavorResource) -> i64 {
        self.available_after(queue, what, 0, 0)
    }

    /// The same, once the ClusterQueue itself has given back `own`, and its cohort `shared`.
    pub(super) fn available_after(
        &self,
        queue: &str,
        what: &FlavorResource,
        own: i64,
        shared: i64,
    ) -> i64 {
        let Some((book, quota)) = self.quota(queue, what) else { return 0 };
        let unused = quota.nominal.saturating_sub(book.usage(what).saturating_sub(own));
        let Some(cohort) = self.cohort(book) else { return unused.max(0) };
        let used = amount::of(&cohort.usage, what).saturating_add(amount::of(&cohort.tried, what));
        let used = used.saturating_sub(shared);
        let left = amount::of(&cohort.quota, what).saturating_sub(used);
        let limited = quota.borrowing_limit.map(|limit| unused.saturating_add(limit));
        limited.map_or(left, |limited| left.min(limited)).max(0)
    }

    /// How much there is for a ClusterQueue by what is held, whatever is tried out: those that give
    /// way still hold what they have.
    pub(super) fn available_by_now(&self, queue: &str, what: &FlavorResource) -> i64 {
        let Some(book) = self.books.get(queue) else { return 0 };
        let own = amount::of(&book.tried, what);
        let shared = self.cohort(book).map_or(own, |cohort| amount::of(&cohort.tried, what));
        self.available_after(queue, what, own, shared)
    }

    /// How much of what is available is the ClusterQueue's own.
    pub(super) fn unused(&self, queue: &str, what: &FlavorResource) -> i64 {
        let quota = self.quota(queue, what);
        quota.map_or(0, |(book, quota)| quota.nominal.saturating_sub(book.usage(what)))
    }

    /// Whether a ClusterQueue would borrow if it used `more`. Without a cohort there is nobody to
    /// borrow from.
    pub(super) fn borrows_with(&self, queue: &str, what: &FlavorResource, more: i64) -> bool {
        let shares = self.books.get(queue).is_some_and(|book| book.pool.cohort.is_some());
        shares && more > self.unused(queue, what)
    }

    /// Some of those that hold something, those of the ClusterQueue itself first.
    pub(super) fn holders(&self, queue: &str, what: &FlavorResource) -> Holders {
        let own = self.books.get(queue).into_iter();
        let all = own.chain(self.others(queue));
        let mut holders = Holders::default();
        for held in all.filter_map(|book| book.holders.get(what)) {
            let room = HOLDERS_SHOWN - holders.first.len();
            holders.first.extend(held.iter().take(room).map(|(it, held)| (it.key.clone(), *held)));
            holders.more += held.len().saturating_sub(room);
        }
        holders
    }

    fn quota(&self, queue: &str, what: &FlavorResource) -> Option<(&Book, Quota)> {
        let book = self.books.get(queue)?;
        Some((book, *book.pool.quotas.get(what)?))
    }

    fn cohort(&self, book: &Book) -> Option<&Cohort> {
        self.cohorts.get(book.pool.cohort.as_ref()?)
    }

    fn in_cohort(&mut self, queue: &str, change: impl FnOnce(&mut Cohort)) {
        let Some(book) = self.books.get(queue) else { return };
        let Some(name) = &book.pool.cohort else { return };
        if book.pool.keeps_something() {
            // How much of it others can see depends on all of it.
            let name = Arc::clone(name);
            self.sum(&name);
        } else if let Some(cohort) = self.cohorts.get_mut(name) {
            change(cohort);
        }
    }

    fn leave(&mut self, cohort: &Arc<str>, queue: &Arc<str>) {
        let Some(known) = self.cohorts.get_mut(cohort) else { return };
        known.members.remove(queue);
        if known.members.is_empty() {
            self.cohorts.remove(cohort);
        } else {
            self.sum(cohort);
        }
    }

    /// Adds up what the members of a cohort have and use.
    fn sum(&mut self, cohort: &Arc<str>) {
        let Some(known) = self.cohorts.get_mut(cohort) else { return };
        let members = std::mem::take(&mut known.members);
        *known = Cohort { members, ..Cohort::default() };
        for book in known.members.iter().filter_map(|name| self.books.get(name)) {
            for (what, quota) in &book.pool.quotas {
                let sum = known.quota.entry(what.clone()).or_insert(0);
                *sum = sum.saturating_add(quota.nominal.saturating_sub(quota.kept()));
            }
            for (what, used) in &book.reserved {
                let kept = book.pool.quotas.get(what).map_or(0, Quota::kept);
                let sum = known.usage.entry(what.clone()).or_insert(0);
                *sum = sum.saturating_add(used.saturating_sub(kept).max(0));
            }
            amount::add(&mut known.tried, &book.tried);
        }
    }
}

impl Book {
    /// How much of something is used, what is tried out included.
    pub(super) fn usage(&self, what: &FlavorResource) -> i64 {
        amount::of(&self.reserved, what).saturating_add(amount::of(&self.tried, what))
    }

    /// How much of what is used is more than the queue has itself.
    pub(super) fn borrowed(&self, what: &FlavorResource) -> i64 {
        let nominal = self.pool.quotas.get(what).map_or(0, |quota| quota.nominal);
        self.usage(what).saturating_sub(nominal).max(0)
    }

    /// All that may have been told to go, and some that stay after all.
    pub(super) fn leaving(&self) -> impl Iterator<Item = &Key> {
        self.leaving.iter()
    }
}

/// Those of several queues that hold some of what is needed, in the order in which they would give
/// way. Who is first is known without a look at the others.
pub(super) fn holders<'a>(
    books: &[&'a Book],
    needed: &BTreeSet<FlavorResource>,
) -> impl Iterator<Item = &'a Standing> {
    let of_book = |book: &&'a Book| {
        let book: &'a Book = book;
        needed.iter().filter_map(|what| book.holders.get(what))
    };
    books.iter().flat_map(of_book).map(|held| held.keys().map(|it| &**it)).kmerge().dedup()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{super::Settings, *};

    fn what() -> FlavorResource {
        FlavorResource::new(&Arc::from("f"), &Arc::from("gpu"))
    }

    fn pool(nominal: i64, limit: Option<i64>, cohort: Option<&str>) -> Arc<Pool> {
        let queue = serde_json::from_value(json!({"spec": {
            "cohortName": cohort.unwrap_or(""),
            "resourceGroups": [{"coveredResources": ["gpu"], "flavors": [{"name": "f", "resources": [
                {"name": "gpu", "nominalQuota": nominal.to_string(),
                 "borrowingLimit": limit.map(|limit| limit.to_string())}]}]}]}}))
        .unwrap();
        Arc::new(Pool::of(&queue, &Settings::default()))
    }

    fn held(name: &str, amount: i64) -> Held {
        let standing = Standing {
            priority: 0,
            reserved_at: Reverse(Timestamp::UNIX_EPOCH),
            uid: name.to_owned(),
            key: Key { namespace: "ns".to_owned(), name: name.to_owned() },
        };
        let usage = Amounts::from([(what(), amount)]);
        Held { usage, is_admitted: true, standing: Arc::new(standing) }
    }

    // rule: queueing 4.3.1
    #[test]
    fn what_is_left_counts_the_cohort_and_the_limit() {
        // (nominal, limit, own use, use of the other with 10, is in a cohort) ->
        // (available, potential)
        let cases = [
            ((10, None, 4, 0, false), (6, 10)),
            ((10, None, 14, 0, false), (0, 10)),
            ((10, None, 4, 3, true), (13, 20)),
            ((10, Some(2), 4, 3, true), (8, 12)),
            ((10, Some(2), 12, 3, true), (0, 12)),
            ((10, Some(0), 4, 0, true), (6, 10)),
            ((10, Some(50), 4, 10, true), (6, 20)),
            ((10, None, 4, 18, true), (0, 20)),
            ((10, Some(2), 4, 18, true), (0, 12)),
            ((i64::MAX, Some(i64::MAX), 0, 0, true), (i64::MAX, i64::MAX)),
        ];
        let (a, b): (Arc<str>, Arc<str>) = (Arc::from("a"), Arc::from("b"));
        for ((nominal, limit, own, other, shares), want) in cases {
            let mut ledger = Ledger::default();
            let cohort = shares.then_some("c");
            ledger.hold(&a, &held("x", own));
            ledger.set_pool(&a, pool(nominal, limit, cohort), true);
            ledger.set_pool(&b, pool(10, None, cohort), true);
            ledger.hold(&b, &held("y", other));
            let got = (ledger.available("a", &what()), ledger.potential("a", &what()));
            assert_eq!(got, want, "{nominal} {limit:?} {own} {other} {shares}");
        }
    }

    // rule: queueing 4.3.1
    #[test]
    fn closed_queues_share_what_they_have_and_use() {
        let (a, b): (Arc<str>, Arc<str>) = (Arc::from("a"), Arc::from("b"));
        let mut ledger = Ledger::default();
        ledger.set_pool(&a, pool(10, None, Some("c")), true);
        ledger.set_pool(&b, pool(10, None, Some("c")), true);
        ledger.hold(&b, &held("y", 7));
        for is_open in [true, false] {
            ledger.set_pool(&b, pool(10, None, Some("c")), is_open);
            assert_eq!(ledger.available("a", &what()), 13, "{is_open}");
            assert_eq!(ledger.potential("a", &what()), 20, "{is_open}");
            ledger.release(&b, &held("y", 7));
            assert_eq!(ledger.available("a", &what()), 20, "{is_open}");
            ledger.hold(&b, &held("y", 7));
        }
        ledger.set_pool(&b, pool(10, None, Some("d")), true);
        assert_eq!(ledger.available("a", &what()), 10);
        ledger.release(&b, &held("y", 7));
        assert_eq!(ledger.available("b", &what()), 10);
        assert_eq!(ledger.members(&ledger.tree(&b)), BTreeSet::from([b]));
    }

    #[test]
    fn a_queue_that_does_not_lend_everything_keeps_that_from_others() {
        // Such a queue admits nobody yet. (lending limit, what it uses) -> what others can have
        let cases = [(0, 0, 10), (0, 7, 10), (0, 12, 8), (4, 0, 14), (4, 7, 13), (50, 7, 13)];
        let (a, b): (Arc<str>, Arc<str>) = (Arc::from("a"), Arc::from("b"));
        for (limit, used, want) in cases {
            let mut ledger = Ledger::default();
            ledger.set_pool(&a, pool(10, None, Some("c")), true);
            let mut lender = (*pool(10, None, Some("c"))).clone();
            lender.quotas.get_mut(&what()).unwrap().lending_limit = Some(limit);
            ledger.set_pool(&b, Arc::new(lender), false);
            ledger.hold(&b, &held("y", used));
            assert_eq!(ledger.available("a", &what()), want, "{limit} {used}");
            ledger.release(&b, &held("y", used));
            assert_eq!(ledger.available("a", &what()), 10 + limit.min(10), "{limit}");
        }
    }

    #[test]
    fn what_is_tried_out_is_forgotten() {
        let a: Arc<str> = Arc::from("a");
        let mut ledger = Ledger::default();
        ledger.set_pool(&a, pool(10, None, Some("c")), true);
        ledger.try_out(&a, &Amounts::from([(what(), 4)]));
        assert_eq!(ledger.available("a", &what()), 6);
        assert_eq!(ledger.available_by_now("a", &what()), 10);
        assert!(ledger.borrows_with("a", &what(), 7));
        ledger.end_round(&BTreeSet::from([Arc::clone(&a)]));
        assert_eq!(ledger.available("a", &what()), 10);
    }
}
