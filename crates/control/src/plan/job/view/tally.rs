//! The sums and sets that planning needs, to which each pod adds its part.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::plan::job::{
    rules::Rules,
    seen::{Phase, Seen},
    view::Slots,
};

/// The order in which pods are worked on: by index, then by name; those without an index first.
pub(crate) type Rank = (i32, Arc<str>);

/// Where the status lists a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Nowhere,
    UncountedSuccess,
    UncountedFailure,
}

#[derive(Clone, Debug)]
pub(crate) struct Tally {
    pub(crate) active: BTreeSet<Rank>,
    pub(crate) ready: usize,
    pub(crate) terminating: BTreeSet<Rank>,
    /// Pods with the tracking finalizer.
    pub(crate) tracked: BTreeSet<Rank>,
    /// Tracked pods that have succeeded or failed.
    pub(crate) ended: BTreeSet<Rank>,
    /// Active pods without the tracking finalizer: they were about to be deleted once.
    pub(crate) untracked: BTreeSet<Rank>,
    /// Pods whose failure fails the Job, with the reason for it.
    pub(crate) fail_job: BTreeMap<Rank, Box<str>>,
    /// Tracked failures that count and that the status does not list yet.
    pub(crate) failed_new: usize,
    /// Tracked successes that the status does not list yet.
    pub(crate) succeeded_new: usize,
    /// Restarts of the containers of pods that have not ended.
    pub(crate) restarts: i64,
    pub(crate) slots: Slots,
}

impl Tally {
    pub(crate) fn new(rules: &Rules) -> Self {
        Self {
            active: BTreeSet::new(),
            ready: 0,
            terminating: BTreeSet::new(),
            tracked: BTreeSet::new(),
            ended: BTreeSet::new(),
            untracked: BTreeSet::new(),
            fail_job: BTreeMap::new(),
            failed_new: 0,
            succeeded_new: 0,
            restarts: 0,
            slots: Slots::new(rules),
        }
    }

    pub(crate) fn add(&mut self, rules: &Rules, name: &Arc<str>, pod: &Seen, place: Place) {
        let part = Part::of(rules, pod, place);
        let rank = rank(name, pod);
        self.ready += usize::from(part.is_ready);
        self.failed_new += usize::from(part.is_new_failure);
        self.succeeded_new += usize::from(part.is_new_success);
        self.restarts += part.restarts;
        for (set, is_in) in self.sets(&part) {
            if is_in {
                set.insert(rank.clone());
            }
        }
        if let Some(message) = &pod.verdict.message
            && part.fails_job
        {
            self.fail_job.insert(rank, message.clone());
        }
        if let Some(index) = rules.valid_index(pod) {
            self.slots.add(index, name, &part.in_slot());
        }
    }

    pub(crate) fn take(&mut self, rules: &Rules, name: &Arc<str>, pod: &Seen, place: Place) {
        let part = Part::of(rules, pod, place);
        let rank = rank(name, pod);
        self.ready -= usize::from(part.is_ready);
        self.failed_new -= usize::from(part.is_new_failure);
        self.succeeded_new -= usize::from(part.is_new_success);
        self.restarts -= part.restarts;
        for (set, _) in self.sets(&part) {
            set.remove(&rank);
        }
        self.fail_job.remove(&rank);
        if let Some(index) = rules.valid_index(pod) {
            self.slots.take(index, name, &part.in_slot());
        }
    }

    fn sets(&mut self, part: &Part) -> [(&mut BTreeSet<Rank>, bool); 5] {
        [
            (&mut self.active, part.is_active),
            (&mut self.terminating, part.is_terminating),
            (&mut self.tracked, part.is_tracked),
            (&mut self.ended, part.is_tracked && (part.has_succeeded || part.has_failed)),
            (&mut self.untracked, part.is_active && !part.is_tracked),
        ]
    }
}

/// What one pod adds to the whole.
struct Part {
    is_active: bool,
    is_ready: bool,
    is_terminating: bool,
    is_tracked: bool,
    has_succeeded: bool,
    has_failed: bool,
    is_new_failure: bool,
    is_new_success: bool,
    fails_job: bool,
    restarts: i64,
}

impl Part {
    fn of(rules: &Rules, pod: &Seen, place: Place) -> Self {
        let has_failed = rules.has_failed(pod);
        // Once the status lists a pod as failed, that is what it is, whatever it does later.
        let has_succeeded = pod.phase == Phase::Succeeded && place != Place::UncountedFailure;
        let is_open = pod.is_tracked && place == Place::Nowhere && rules.takes_part(pod);
        let counts_restarts = matches!(pod.phase, Phase::Running | Phase::Pending);
        Self {
            is_active: pod.is_active(),
            is_ready: pod.is_active() && pod.is_ready,
            is_terminating: pod.is_terminating(),
            is_tracked: pod.is_tracked,
            has_succeeded,
            has_failed: has_failed || place == Place::UncountedFailure,
            is_new_failure: has_failed && is_open && pod.verdict.is_counted(),
            is_new_success: has_succeeded && is_open,
            fails_job: has_failed && !pod.is_dismissed(),
            restarts: if counts_restarts { pod.restarts } else { 0 },
        }
    }

    fn in_slot(&self) -> InSlot {
        InSlot {
            is_active: self.is_active,
            is_terminating: self.is_terminating,
            has_succeeded: self.is_tracked && self.has_succeeded,
            has_failed: self.is_tracked && self.has_failed,
        }
    }
}

/// What one pod adds to its index.
pub(crate) struct InSlot {
    pub(crate) is_active: bool,
    pub(crate) is_terminating: bool,
    pub(crate) has_succeeded: bool,
    pub(crate) has_failed: bool,
}

fn rank(name: &Arc<str>, pod: &Seen) -> Rank {
    (pod.index.unwrap_or(-1), name.clone())
}
