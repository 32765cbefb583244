//! Who waits in a ClusterQueue, in which order, and who of them is not worth trying.
//!
//! Workloads that are alike in everything that matters form a class. When one of a class does not
//! fit, none does: the class is parked, which costs the same however many there are.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jiff::Timestamp;

use super::{Why, wait::Scope};
use crate::plan::Key;

/// The place of a workload in its queue: the first come first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank {
    pub priority: Reverse<i32>,
    pub at: Timestamp,
    pub uid: String,
    pub key: Key,
}

/// Those who wait in a ClusterQueue and may be tried.
#[derive(Clone, Debug, Default)]
pub(super) struct Pending {
    is_strict: bool,
    all: BTreeSet<Arc<Rank>>,
    /// How many of them are of classes that are parked.
    parked_len: usize,
    classes: BTreeMap<Arc<str>, Class>,
    /// The first of each class that is not parked.
    open: BTreeSet<(Arc<Rank>, Arc<str>)>,
    /// One that others are giving way to: it comes first until that is over, unless the queue is
    /// strict about the order.
    preemptor: Option<Arc<Rank>>,
    block: Option<Block>,
    /// Classes with members that have been told nothing yet.
    untold: BTreeSet<Arc<str>>,
}

/// Workloads that are alike.
#[derive(Clone, Debug, Default)]
struct Class {
    members: BTreeSet<Arc<Rank>>,
    /// Those that came and have been told nothing yet.
    untold: BTreeSet<Key>,
    /// Those that have been told of the head of the queue only, and not what their class was.
    told_of_head: BTreeSet<Key>,
    parked: Option<Parked>,
    /// The reason all of them have been told.
    told: Option<&'static str>,
}

/// Why a class is not tried.
#[derive(Clone, Debug)]
pub(super) struct Parked {
    /// The reason of `QuotaReserved`.
    pub reason: &'static str,
    pub why: Arc<Why>,
}

/// One that nobody of the queue may overtake.
#[derive(Clone, Debug)]
pub(super) struct Block {
    pub head: Arc<Rank>,
    /// Where pods have to get ready first, if that is it.
    pub scopes: Vec<Scope>,
}

impl Pending {
    /// Changes how those who wait are treated.
    pub(super) fn set_strict(&mut self, is_strict: bool) {
        if self.is_strict != is_strict {
            self.is_strict = is_strict;
            self.preemptor = None;
            self.wake();
        }
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// How many are not tried before something changes for them.
    pub(super) fn parked_len(&self) -> usize {
        self.parked_len
    }

    /// Adds somebody.
    pub(super) fn insert(&mut self, rank: &Arc<Rank>, class: &Arc<str>) {
        self.all.insert(Arc::clone(rank));
        self.untold.insert(Arc::clone(class));
        let of_class = self.classes.entry(Arc::clone(class)).or_default();
        of_class.untold.insert(rank.key.clone());
        let old = of_class.members.first().cloned();
        let is_new = of_class.members.insert(Arc::clone(rank));
        self.parked_len += usize::from(is_new && of_class.parked.is_some());
        if of_class.parked.is_none() && old.as_ref().is_none_or(|old| rank < old) {
            if let Some(old) = old {
                self.open.remove(&(old, Arc::clone(class)));
            }
            self.open.insert((Arc::clone(rank), Arc::clone(class)));
        }
        // Whoever comes before the one that nobody may overtake is not overtaking.
        let overtakes = self.block.as_ref().is_some_and(|block| rank < &block.head);
        if overtakes && (self.is_strict || self.preemptor.is_none()) {
            self.block = None;
        }
    }

    /// Takes somebody out.
    pub(super) fn remove(&mut self, rank: &Arc<Rank>, class: &Arc<str>) {
        self.all.remove(rank);
        if self.preemptor.as_ref() == Some(rank) {
            self.preemptor = None;
        }
        if self.block.as_ref().is_some_and(|block| block.head == *rank) {
            self.block = None;
        }
        let Some(of_class) = self.classes.get_mut(class) else { return };
        let was_there = of_class.members.remove(rank);
        self.parked_len -= usize::from(was_there && of_class.parked.is_some());
        of_class.untold.remove(&rank.key);
        of_class.told_of_head.remove(&rank.key);
        self.open.remove(&(Arc::clone(rank), Arc::clone(class)));
        match of_class.members.first() {
            None => drop(self.classes.remove(class)),
            Some(first) if of_class.parked.is_none() => {
                self.open.insert((Arc::clone(first), Arc::clone(class)));
            }
            Some(_) => {}
        }
    }

    /// Who would be tried next.
    pub(super) fn head(&self) -> Option<&Arc<Rank>> {
        if self.is_strict {
            return self.all.first();
        }
        self.preemptor.as_ref().or_else(|| self.open.first().map(|(rank, _)| rank))
    }

    /// Whether others are giving way to somebody.
    pub(super) fn is_preemptor(&self, rank: &Arc<Rank>) -> bool {
        self.preemptor.as_ref() == Some(rank)
    }

    /// Whether there is somebody to try.
    pub(super) fn is_ready(&self) -> bool {
        self.block.is_none() && self.head().is_some()
    }

    pub(super) fn block(&self) -> Option<&Block> {
        self.block.as_ref()
    }

    /// Why the class of a workload is not tried.
    pub(super) fn parked(&self, class: &str) -> Option<&Parked> {
        self.classes.get(class)?.parked.as_ref()
    }

    /// The head did not fit. Returns those of the queue that have not been told of it.
    pub(super) fn did_not_fit(
        &mut self,
        rank: &Arc<Rank>,
        class: &Arc<str>,
        parked: Parked,
    ) -> Vec<Key> {
        if self.preemptor.as_ref() == Some(rank) {
            self.preemptor = None;
        }
        if self.is_strict {
            return self.wait_for(rank, Vec::new());
        }
        self.block = None;
        let Some(of_class) = self.classes.get_mut(class) else { return Vec::new() };
        if let Some(first) = of_class.members.first() {
            self.open.remove(&(Arc::clone(first), Arc::clone(class)));
        }
        let is_news = of_class.told != Some(parked.reason);
        of_class.told = Some(parked.reason);
        if of_class.parked.replace(parked).is_none() {
            self.parked_len += of_class.members.len();
        }
        self.untold.remove(class);
        let mut untold = std::mem::take(&mut of_class.untold);
        untold.append(&mut of_class.told_of_head);
        if is_news {
            untold.extend(of_class.members.iter().map(|member| member.key.clone()));
        }
        untold.remove(&rank.key);
        untold.into_iter().collect()
    }

    /// The head has to wait, and nobody may overtake it. Returns those that have not been told.
    pub(super) fn wait_for(&mut self, rank: &Arc<Rank>, scopes: Vec<Scope>) -> Vec<Key> {
        self.block = Some(Block { head: Arc::clone(rank), scopes });
        let mut untold = self.take_untold();
        untold.retain(|key| *key != rank.key);
        untold
    }

    /// Others are giving way to the head.
    pub(super) fn set_preemptor(&mut self, rank: &Arc<Rank>) {
        self.preemptor = Some(Arc::clone(rank));
    }

    /// The head may be tried again, whatever it waited for.
    pub(super) fn unblock(&mut self) {
        self.block = None;
    }

    /// Something has changed: everybody may be tried again. Returns how many classes were parked.
    pub(super) fn wake(&mut self) -> usize {
        self.block = None;
        let mut parked = 0;
        for (name, class) in &mut self.classes {
            if class.parked.take().is_some()
                && let Some(first) = class.members.first()
            {
                self.open.insert((Arc::clone(first), Arc::clone(name)));
                parked += 1;
            }
        }
        self.parked_len = 0;
        parked
    }

    /// Those that came while nobody is tried, and have not been told why.
    pub(super) fn take_untold(&mut self) -> Vec<Key> {
        let mut told = Vec::new();
        let is_blocked = self.block.is_some();
        let classes = &mut self.classes;
        self.untold.retain(|name| {
            let Some(class) = classes.get_mut(name) else { return false };
            let is_parked = class.parked.is_some();
            if is_blocked && !is_parked {
                class.told_of_head.extend(class.untold.iter().cloned());
            }
            let is_due = is_blocked || is_parked;
            if is_due {
                told.extend(std::mem::take(&mut class.untold));
            }
            !is_due
        });
        told
    }

    /// How many come before somebody, if not more than `max`.
    pub(super) fn before(&self, rank: &Rank, max: usize) -> Option<usize> {
        let mut before = 0;
        for other in &self.all {
            if **other >= *rank {
                return Some(before);
            }
            before += 1;
            if before > max {
                return None;
            }
        }
        Some(before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rank(name: &str, priority: i32, second: i64) -> Arc<Rank> {
        Arc::new(Rank {
            priority: Reverse(priority),
            at: Timestamp::from_second(second).unwrap(),
            uid: name.to_owned(),
            key: Key { namespace: "ns".to_owned(), name: name.to_owned() },
        })
    }

    fn class(name: &str) -> Arc<str> {
        Arc::from(name)
    }

    fn parked() -> Parked {
        Parked { reason: "WaitingForQuota", why: Arc::new(Why::OnHold) }
    }

    fn head(pending: &Pending) -> Option<&str> {
        pending.head().map(|rank| rank.key.name.as_str())
    }

    // rule: queueing 2.8.1
    #[test]
    fn priority_comes_before_time_and_time_before_uid() {
        let mut pending = Pending::default();
        let all = [rank("late", 0, 9), rank("b", 0, 1), rank("a", 0, 1), rank("high", 7, 20)];
        for rank in &all {
            pending.insert(rank, &class("c"));
        }
        let mut order = Vec::new();
        while let Some(first) = pending.head().cloned() {
            order.push(first.key.name.clone());
            pending.remove(&first, &class("c"));
        }
        assert_eq!(order, ["high", "a", "b", "late"]);
    }

    // rule: queueing 4.1.1
    #[test]
    fn in_a_strict_queue_nobody_overtakes_and_elsewhere_only_the_like_wait() {
        for (is_strict, want) in [(true, None), (false, Some("other"))] {
            let mut pending = Pending::default();
            pending.set_strict(is_strict);
            let (first, like, other) =
                (rank("first", 0, 1), rank("like", 0, 2), rank("other", 0, 3));
            pending.insert(&first, &class("c"));
            pending.insert(&like, &class("c"));
            pending.insert(&other, &class("d"));
            let untold = pending.did_not_fit(&first, &class("c"), parked());
            assert_eq!(pending.is_ready(), want.is_some());
            if want.is_some() {
                assert_eq!(head(&pending), want);
                assert_eq!(untold, std::slice::from_ref(&like.key), "the other is tried itself");
            } else {
                assert_eq!(untold.len(), 2);
            }
            pending.wake();
            assert_eq!(head(&pending), Some("first"), "all are tried again");
        }
    }

    #[test]
    fn one_that_was_told_of_the_head_hears_of_its_class_too() {
        let mut pending = Pending::default();
        let (head, first, later) = (rank("head", 9, 0), rank("first", 0, 1), rank("later", 0, 2));
        pending.insert(&first, &class("c"));
        pending.did_not_fit(&first, &class("c"), parked());
        // Something has changed, but then nobody may overtake one that has come.
        pending.wake();
        pending.insert(&head, &class("d"));
        pending.insert(&later, &class("c"));
        let told = pending.wait_for(&head, Vec::new());
        assert_eq!(told, std::slice::from_ref(&later.key), "the first has heard of its class");
        pending.remove(&head, &class("d"));
        let told = pending.did_not_fit(&first, &class("c"), parked());
        assert_eq!(told, std::slice::from_ref(&later.key), "what the first was told before");
        pending.wake();
        assert!(pending.did_not_fit(&first, &class("c"), parked()).is_empty(), "once is enough");
    }

    #[test]
    fn those_of_parked_classes_are_counted() {
        let mut pending = Pending::default();
        let (first, like, later) = (rank("first", 0, 1), rank("like", 0, 2), rank("later", 0, 3));
        pending.insert(&first, &class("c"));
        pending.insert(&like, &class("c"));
        pending.insert(&rank("other", 0, 4), &class("d"));
        assert_eq!(pending.parked_len(), 0);
        pending.did_not_fit(&first, &class("c"), parked());
        assert_eq!(pending.parked_len(), 2, "one that was tried and one like it");
        pending.did_not_fit(&first, &class("c"), parked());
        pending.insert(&later, &class("c"));
        pending.insert(&later, &class("c"));
        assert_eq!(pending.parked_len(), 3, "each once");
        pending.remove(&first, &class("c"));
        pending.remove(&first, &class("c"));
        assert_eq!(pending.parked_len(), 2);
        pending.wake();
        assert_eq!(pending.parked_len(), 0);
        pending.remove(&like, &class("c"));
        assert_eq!((pending.parked_len(), pending.len()), (0, 2));
    }

    #[test]
    fn one_that_comes_before_the_head_is_tried() {
        let mut pending = Pending::default();
        pending.set_strict(true);
        let first = rank("first", 0, 5);
        pending.insert(&first, &class("c"));
        pending.wait_for(&first, Vec::new());
        pending.insert(&rank("later", 0, 6), &class("c"));
        assert!(!pending.is_ready());
        pending.insert(&rank("higher", 1, 7), &class("c"));
        assert!(pending.is_ready());
        assert_eq!(head(&pending), Some("higher"));
    }

    // rule: queueing 4.1.1
    #[test]
    fn a_preemptor_stays_first_until_it_is_over() {
        let mut pending = Pending::default();
        let (first, higher) = (rank("first", 0, 5), rank("higher", 9, 9));
        pending.insert(&first, &class("c"));
        pending.set_preemptor(&first);
        pending.wait_for(&first, Vec::new());
        pending.insert(&higher, &class("d"));
        assert!(!pending.is_ready());
        pending.wake();
        assert_eq!(head(&pending), Some("first"));
        pending.did_not_fit(&first, &class("c"), parked());
        assert_eq!(head(&pending), Some("higher"));
    }

    #[test]
    fn positions_are_counted_up_to_a_limit() {
        let mut pending = Pending::default();
        let ranks: Vec<Arc<Rank>> = (0..5).map(|at| rank("x", 0, at)).collect();
        for rank in &ranks {
            pending.insert(rank, &class("c"));
        }
        assert_eq!(pending.before(&ranks[3], 10), Some(3));
        assert_eq!(pending.before(&ranks[3], 2), None);
    }
}
