//! Counting finished pods, each exactly once, whatever crashes in between.
//!
//! A pod is first listed in the status by its uid; then its finalizer is removed; and when it no
//! longer has one, the list entry becomes part of a number. Successes of Indexed Jobs need no list:
//! the set of completed indexes takes each index once.

use std::collections::BTreeMap;

use k8s_openapi::api::batch::v1::{Job, JobStatus, UncountedTerminatedPods};
use lockstep_api::labels::kueue::WORKLOAD;

use crate::plan::job::{
    Options, PodRef, View,
    failure_policy::PolicyAction,
    finish::{End, Fate},
    seen::{Phase, Seen},
};

/// What the status will say of finished pods, and which pods may lose their finalizers once it
/// does.
#[derive(Clone, Debug, Default)]
pub(crate) struct Account {
    pub(crate) succeeded: Vec<String>,
    pub(crate) failed: Vec<String>,
    /// How many of the listed pods have turned into numbers.
    pub(crate) succeeded_settled: i64,
    pub(crate) failed_settled: i64,
    /// Pods to take the finalizer off.
    pub(crate) removals: Vec<PodRef>,
    /// Failures a rule decided on, with whether they count.
    pub(crate) actions: BTreeMap<(bool, PolicyAction), u64>,
    /// Listed pods of which nothing is known.
    pub(crate) unknown: Vec<String>,
    pub(crate) visited: usize,
}

/// Goes through the finished pods that are still tracked, and all tracked pods if the Job is ending
/// or being deleted. Of a Job that a queue has stopped, pods that somebody else is ending are let
/// go too: exits during an eviction are no successes.
pub(crate) fn account(
    view: &View,
    status: &JobStatus,
    fate: Option<&Fate>,
    options: &Options,
) -> Account {
    let mut account = Account::default();
    account.settle(view, status.uncounted_terminated_pods.as_ref());
    let tally = view.tally();
    let is_deleting = view.job().metadata.deletion_timestamp.is_some();
    let pods = if fate.is_some() || is_deleting { &tally.tracked } else { &tally.ended };
    // Once they are let go nothing is left to look at, however long they take to end.
    let tracked = is_evicted(view.job()).then_some(&tally.tracked).into_iter().flatten();
    let dismissed =
        tracked.filter(|rank| tally.terminating.contains(*rank) && !pods.contains(*rank));
    let is_failing = fate.is_some_and(|fate| fate.end == End::Failure);
    let mut indexes_new = 0;
    for (_, name) in pods.iter().chain(dismissed) {
        let (Some(pod), Some(mut target)) = (view.pod(name), view.pod_ref(name)) else { continue };
        account.visited += 1;
        if pod.phase == Phase::Succeeded && !view.is_uncounted_failure(&pod.uid) {
            indexes_new += usize::from(account.note_success(view, pod));
        } else if view.rules().has_failed(pod) || is_failing {
            if account.note_failure(view, pod) {
                // It is in the books, whatever becomes of it.
                target.version = None;
            }
        } else if fate.is_some() && pod.is_active() {
            // Deleted with its finalizer taken off first: how it ends counts for nothing.
            continue;
        }
        if is_deleting {
            // Nobody will read how it ends, and its node is writing just that at this moment.
            target.version = None;
        }
        account.removals.push(target);
        // The rest follows in the next pass, which comes at once.
        let listed = indexes_new + account.succeeded.len() + account.failed.len();
        if listed.max(account.removals.len()) >= options.uncounted_max {
            break;
        }
    }
    account
}

/// Whether a queue has started the Job and has it stand still now. `batch/v1` knows nothing of
/// that: a Job that its user suspends counts pods that were ending before, however they end.
fn is_evicted(job: &Job) -> bool {
    job.spec.as_ref().is_some_and(|spec| {
        let meta = spec.template.metadata.as_ref();
        let annotations = meta.and_then(|meta| meta.annotations.as_ref());
        spec.suspend == Some(true) && annotations.is_some_and(|all| all.contains_key(WORKLOAD))
    })
}

impl Account {
    /// Turns listed pods that no longer have the finalizer into numbers.
    fn settle(&mut self, view: &View, listed: Option<&UncountedTerminatedPods>) {
        let uids = |list: fn(&UncountedTerminatedPods) -> &Option<Vec<String>>| {
            listed.and_then(|pods| list(pods).as_ref()).into_iter().flatten()
        };
        for uid in uids(|pods| &pods.succeeded) {
            match self.is_settled(view, uid) {
                true => self.succeeded_settled += 1,
                false => self.succeeded.push(uid.clone()),
            }
        }
        for uid in uids(|pods| &pods.failed) {
            match self.is_settled(view, uid) {
                true => self.failed_settled += 1,
                false => self.failed.push(uid.clone()),
            }
        }
    }

    fn is_settled(&mut self, view: &View, uid: &str) -> bool {
        match view.pod_with_uid(uid) {
            Some(pod) => !pod.is_tracked,
            None if view.is_gone(uid) => true,
            // Not seen is not gone: the watch of pods may be behind the one of Jobs.
            None => {
                self.unknown.push(uid.to_owned());
                false
            }
        }
    }

    /// Whether an index is new to the set of completed ones.
    fn note_success(&mut self, view: &View, pod: &Seen) -> bool {
        if view.rules().is_indexed {
            let index = view.rules().valid_index(pod);
            return index.is_some_and(|index| {
                let slots = &view.tally().slots;
                slots.succeeded.contains(index) && !slots.is_recorded(index)
            });
        }
        if !view.is_uncounted(&pod.uid) {
            self.succeeded.push(pod.uid.clone());
        }
        false
    }

    /// Whether the pod is in the books: one that is not because a rule ignores it as it is now may
    /// still end in a way that counts.
    fn note_failure(&mut self, view: &View, pod: &Seen) -> bool {
        if view.is_uncounted(&pod.uid) {
            return true;
        }
        if !view.rules().takes_part(pod) {
            return false;
        }
        let is_counted = pod.verdict.is_counted();
        if let Some(action) = pod.verdict.action {
            *self.actions.entry((is_counted, action)).or_default() += 1;
        }
        if is_counted {
            self.failed.push(pod.uid.clone());
        }
        is_counted
    }
}
