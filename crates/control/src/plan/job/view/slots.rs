//! The indexes of an Indexed Job: which are done, which have failed, which want a pod.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::batch::v1::Job;

use crate::plan::job::{
    failure_policy::PolicyAction, indexes::Indexes, rules::Rules, seen::Seen, view::tally::InSlot,
};

#[derive(Clone, Debug, Default)]
pub(crate) struct Slots {
    /// Indexes that the status says have succeeded.
    persisted_ok: Indexes,
    /// Indexes that the status says have failed.
    persisted_bad: Indexes,
    /// Both, as they should stand in the status.
    texts: (String, String),
    /// Indexes of which the status does not say what is so.
    unwritten: BTreeSet<i32>,
    pods: BTreeMap<i32, Slot>,
    /// All indexes that have succeeded, pods that are not counted yet included.
    pub(crate) succeeded: Indexes,
    /// All indexes that have failed, pods that are not counted yet included.
    pub(crate) failed: Indexes,
    /// Indexes that want a pod.
    pub(crate) pending: Indexes,
    /// Indexes with more than one active pod.
    pub(crate) crowded: BTreeSet<i32>,
    /// The failed pod whose finalizer stays until its index has a new pod, which must know how
    /// often the index has failed.
    pub(crate) delayed: BTreeMap<i32, Arc<str>>,
    /// What became of `delayed` since it was asked last.
    moves: Vec<DelayMove>,
}

/// An index, the pod that was delayed for it and the one that is.
type DelayMove = (i32, Option<Arc<str>>, Option<Arc<str>>);

/// The pods of one index.
#[derive(Clone, Debug, Default)]
struct Slot {
    active: BTreeSet<Arc<str>>,
    terminating: usize,
    succeeded: usize,
    failed: BTreeSet<Arc<str>>,
}

impl Slots {
    pub(crate) fn new(rules: &Rules) -> Self {
        Self { pending: Indexes::below(rules.index_count()), ..Self::default() }
    }

    pub(crate) fn add(&mut self, index: i32, name: &Arc<str>, pod: &InSlot) {
        let slot = self.pods.entry(index).or_default();
        if pod.is_active {
            slot.active.insert(name.clone());
        }
        if pod.has_failed {
            slot.failed.insert(name.clone());
        }
        slot.terminating += usize::from(pod.is_terminating);
        slot.succeeded += usize::from(pod.has_succeeded);
    }

    pub(crate) fn take(&mut self, index: i32, name: &Arc<str>, pod: &InSlot) {
        let Some(slot) = self.pods.get_mut(&index) else { return };
        slot.active.remove(name);
        slot.failed.remove(name);
        slot.terminating -= usize::from(pod.is_terminating);
        slot.succeeded -= usize::from(pod.has_succeeded);
        if slot.active.is_empty()
            && slot.failed.is_empty()
            && slot.terminating + slot.succeeded == 0
        {
            self.pods.remove(&index);
        }
    }

    /// The active pods of an index.
    pub(crate) fn active(&self, index: i32) -> impl Iterator<Item = &Arc<str>> {
        self.pods.get(&index).into_iter().flat_map(|slot| &slot.active)
    }

    /// The indexes that have succeeded and those that have failed, as text. To print them takes as
    /// long as the lists are; most often they are what the status says already.
    pub(crate) fn texts(&self) -> (String, String) {
        if self.unwritten.is_empty() {
            return self.texts.clone();
        }
        (self.succeeded.to_string(), self.failed.to_string())
    }

    /// How many indexes have succeeded, and failed, of which the status does not say so yet.
    pub(crate) fn news(&self) -> (u64, u64) {
        let more = |all: &Indexes, known: &Indexes| {
            u64::try_from(all.count() - known.count()).unwrap_or(0)
        };
        (more(&self.succeeded, &self.persisted_ok), more(&self.failed, &self.persisted_bad))
    }

    /// Whether the status already says that the index has succeeded.
    pub(crate) fn is_recorded(&self, index: i32) -> bool {
        self.persisted_ok.contains(index)
    }

    /// Takes over what the status says, and looks again at the indexes of which it now says
    /// something else.
    pub(crate) fn persisted(&mut self, job: &Job, rules: &Rules, pods: &BTreeMap<Arc<str>, Seen>) {
        let count = rules.index_count();
        let read = |list: Option<&String>| {
            list.map(|list| Indexes::parse(list, count)).unwrap_or_default()
        };
        let status = job.status.as_ref();
        let ok = read(status.and_then(|status| status.completed_indexes.as_ref()));
        let bad = read(
            status
                .and_then(|status| status.failed_indexes.as_ref())
                .filter(|_| rules.limit_per_index.is_some()),
        );
        self.texts = (ok.to_string(), bad.to_string());
        let mut changed = self.persisted_ok.difference_both_ways(&ok);
        changed.extend(self.persisted_bad.difference_both_ways(&bad));
        (self.persisted_ok, self.persisted_bad) = (ok, bad);
        for (first, last) in changed {
            self.refresh_range(first, last, rules, pods);
        }
        // Nobody should write an index into both lists. If somebody did, the lists are put right.
        if self.persisted_ok.common(&self.persisted_bad) > 0 {
            self.unwritten.insert(-1);
        } else {
            self.unwritten.remove(&-1);
        }
    }

    /// Looks again at a range of indexes. Where no pods are, the range is taken as a whole.
    fn refresh_range(
        &mut self,
        first: i32,
        last: i32,
        rules: &Rules,
        pods: &BTreeMap<Arc<str>, Seen>,
    ) {
        if i64::from(last) - i64::from(first) < 8 {
            for index in first..=last {
                self.refresh(index, rules, pods);
            }
            return;
        }
        self.succeeded.set_range(first, last, false);
        self.failed.set_range(first, last, false);
        self.pending.set_range(first, last, true);
        for (first, last) in self.persisted_bad.within(first, last) {
            self.failed.set_range(first, last, true);
            self.pending.set_range(first, last, false);
        }
        for (first, last) in self.persisted_ok.within(first, last) {
            self.succeeded.set_range(first, last, true);
            self.failed.set_range(first, last, false);
            self.pending.set_range(first, last, false);
        }
        let settled: Vec<i32> = self.unwritten.range(first..=last).copied().collect();
        for index in settled {
            self.unwritten.remove(&index);
        }
        let with_pods: Vec<i32> = self.pods.range(first..=last).map(|(index, _)| *index).collect();
        for index in with_pods {
            self.refresh(index, rules, pods);
        }
    }

    /// Looks again at one index.
    pub(crate) fn refresh(&mut self, index: i32, rules: &Rules, pods: &BTreeMap<Arc<str>, Seen>) {
        if index < 0 || index >= rules.index_count() {
            return;
        }
        let none = Slot::default();
        let slot = self.pods.get(&index).unwrap_or(&none);
        let was_bad = self.persisted_bad.contains(index);
        let is_ok = self.persisted_ok.contains(index) || (slot.succeeded > 0 && !was_bad);
        let failed = || slot.failed.iter().filter_map(|name| Some((name, pods.get(name)?)));
        let is_bad = !is_ok && (was_bad || failed().any(|(_, pod)| fails_index(pod, rules)));
        let is_active = !slot.active.is_empty();
        let is_busy = is_active || (rules.replaces_failed_only && slot.terminating > 0);
        let delayed = (rules.limit_per_index.is_some() && !is_ok && !is_bad && !is_active)
            .then(|| {
                failed().max_by_key(|(name, pod)| (pod.failures_before(), pod.finished_at, *name))
            })
            .flatten()
            .map(|(name, _)| name.clone());
        let is_crowded = slot.active.len() > 1;
        self.succeeded.set(index, is_ok);
        self.failed.set(index, is_bad);
        if is_ok == self.persisted_ok.contains(index) && is_bad == was_bad {
            self.unwritten.remove(&index);
        } else {
            self.unwritten.insert(index);
        }
        self.pending.set(index, !is_ok && !is_bad && !is_busy);
        if is_crowded {
            self.crowded.insert(index);
        } else {
            self.crowded.remove(&index);
        }
        let before = match delayed.clone() {
            Some(name) => self.delayed.insert(index, name),
            None => self.delayed.remove(&index),
        };
        if before != delayed {
            self.moves.push((index, before, delayed));
        }
    }

    /// What became of the delayed pods since this was asked last.
    pub(crate) fn take_moves(&mut self) -> Vec<DelayMove> {
        std::mem::take(&mut self.moves)
    }
}

/// Whether the failure of this pod fails its index for good.
fn fails_index(pod: &Seen, rules: &Rules) -> bool {
    let Some(limit) = rules.limit_per_index else { return false };
    let is_last = pod.verdict.action == Some(PolicyAction::FailIndex)
        || pod.verdict.is_counted() && pod.failures_counted >= limit;
    // A pod that ran when its Job failed is listed as failed, and that says nothing of its index.
    rules.has_failed(pod) && is_last
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde::Deserialize;
    use serde_json::json;

    use super::*;
    use crate::plan::job::View;

    fn job(version: u32, completed: &Indexes, failed: &Indexes) -> Job {
        Job::deserialize(json!({
            "metadata": {"name": "j", "namespace": "ns", "uid": "u", "resourceVersion":
                version.to_string()},
            "spec": {"completionMode": "Indexed", "completions": 50, "parallelism": 5,
                "backoffLimitPerIndex": 1, "template": {}},
            "status": {"completedIndexes": completed.to_string(), "failedIndexes":
                failed.to_string()},
        }))
        .unwrap()
    }

    fn sets(view: &View) -> [String; 5] {
        let slots = &view.tally().slots;
        let (completed, failed) = slots.texts();
        [&slots.succeeded, &slots.failed, &slots.pending]
            .map(ToString::to_string)
            .into_iter()
            .chain([completed, failed])
            .collect::<Vec<_>>()
            .try_into()
            .unwrap()
    }

    proptest! {
        #[test]
        fn what_anybody_writes_is_taken_over_whole(
            steps in proptest::collection::vec(
                (
                    proptest::collection::vec((0..50_i32, 0..20_i32), 0..3),
                    proptest::collection::vec((0..50_i32, 0..20_i32), 0..3),
                ),
                1..6,
            ),
        ) {
            let mut view = View::new(job(1, &Indexes::new(), &Indexes::new()));
            for (version, (completed, failed)) in (2..).zip(steps) {
                let read = |ranges: Vec<(i32, i32)>| {
                    let mut set = Indexes::new();
                    for (first, more) in ranges {
                        set.insert_range(first, (first + more).min(49));
                    }
                    set
                };
                let job = job(version, &read(completed), &read(failed));
                view.observe_job(&job);
                let fresh = View::new(job);
                prop_assert_eq!(sets(&view), sets(&fresh));
                let slots = &view.tally().slots;
                prop_assert_eq!(slots.succeeded.common(&slots.failed), 0);
                let all = slots.succeeded.count() + slots.failed.count() + slots.pending.count();
                prop_assert_eq!(all, 50);
                prop_assert_eq!(&sets(&view)[3], &sets(&view)[0]);
                prop_assert_eq!(&sets(&view)[4], &sets(&view)[1]);
            }
        }
    }
}
