//! What a new status may say: every pod is counted once, and what was decided stays decided.

use std::collections::BTreeSet;

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::JobStatus;

use super::{
    Author, Checker, JobBook, Phase, Violation, ensure, has,
    policy::{Verdict, verdict},
    start,
};

impl Checker {
    /// The Job `uid` is about to have this status.
    pub(super) fn check_status(
        &mut self,
        uid: &str,
        new: &JobStatus,
        (now, author): (Timestamp, Author),
    ) -> Result<(), Violation> {
        let Some(job) = self.jobs.get(uid) else { return Ok(()) };
        let name = job.name.clone();
        ensure(job.is_ours(), || format!("{name} belongs to another controller"))?;
        ensure(!job.is_finished(), || {
            format!("the status of {name} changed although it was finished")
        })?;
        for kept in ["SuccessCriteriaMet", "FailureTarget", "Complete", "Failed"] {
            ensure(!job.has(kept) || has(new, kept), || format!("{name} lost its {kept}"))?;
        }
        let is_success = has(new, "SuccessCriteriaMet") || has(new, "Complete");
        let is_failure = has(new, "FailureTarget") || has(new, "Failed");
        ensure(!(is_success && is_failure), || format!("{name} both succeeded and failed"))?;
        self.check_listed(job, uid, new)?;
        self.check_counters(job, new)?;
        self.check_indexes(job, new)?;
        self.check_failed_indexes(job, uid, new)?;
        start::check(job, new, now)?;
        if has(new, "SuccessCriteriaMet") && !job.has("SuccessCriteriaMet") {
            self.check_success(job, uid, new)?;
        }
        if has(new, "FailureTarget") && !job.has("FailureTarget") {
            self.check_failure(job, uid, new, now)?;
        }
        let by = match author {
            Author::Controller { number, seen, .. } => (number, seen.pods),
            Author::Sets { .. }
            | Author::Queues { .. }
            | Author::Node
            | Author::User
            | Author::Collector => {
                return Err(Violation(format!("{author:?} wrote the status of {name}")));
            }
        };
        let has_ended = has(new, "Complete") || has(new, "Failed");
        if has_ended {
            self.check_end(job, uid, new, by)?;
        }
        let (succeeded, failed) = (left(job, new, Side::Succeeded), left(job, new, Side::Failed));
        let job = self.jobs.get_mut(uid).expect("it was there a moment ago");
        job.succeeded.extend(succeeded);
        job.failed.extend(failed);
        job.ended_by = has_ended.then_some(by);
        Ok(())
    }

    /// Pods that are newly listed as uncounted have ended, and were never counted before.
    fn check_listed(&self, job: &JobBook, uid: &str, new: &JobStatus) -> Result<(), Violation> {
        for side in [Side::Succeeded, Side::Failed] {
            let known = listed(&job.status, side);
            for listed in listed(new, side).difference(&known) {
                let counted = job.succeeded.contains(listed) || job.failed.contains(listed);
                let Some(pod) = self.pods.get(listed.as_str()) else {
                    return Err(Violation(format!("pod {listed} is counted but never was")));
                };
                // One that a user took away and the Job took back is a new pod to it.
                ensure(!counted || pod.is_tampered, || {
                    format!("pod {} is counted a second time", pod.name)
                })?;
                let is_ours = pod.last_owner.as_deref() == Some(uid);
                ensure(is_ours, || format!("pod {} of others is counted", pod.name))?;
                let is_right = match side {
                    Side::Succeeded => pod.phase == Phase::Succeeded,
                    Side::Failed if has(new, "FailureTarget") => true,
                    Side::Failed => {
                        let is_going = pod.is_deleting || pod.is_gone;
                        pod.phase == Phase::Failed || (is_going && !job.waits_for_the_end())
                    }
                };
                ensure(is_right, || {
                    format!("pod {} ({:?}) is counted as {side:?}", pod.name, pod.phase)
                })?;
                // What runs when a Job fails counts as failed, though it may have ended unseen.
                let is_ignored = !has(new, "FailureTarget")
                    && pod.phase == Phase::Failed
                    && pod
                        .ended
                        .as_ref()
                        .is_some_and(|pod| verdict(&job.spec, pod) == Verdict::Ignore);
                ensure(!is_ignored, || format!("pod {} is counted, not ignored", pod.name))?;
            }
        }
        Ok(())
    }

    /// Counters grow by those that leave the lists, after their finalizers are gone.
    fn check_counters(&self, job: &JobBook, new: &JobStatus) -> Result<(), Violation> {
        for side in [Side::Succeeded, Side::Failed] {
            let left = left(job, new, side);
            for uid in &left {
                let pod = self.pods.get(uid.as_str());
                ensure(pod.is_none_or(|pod| !pod.is_pinned || pod.is_tampered), || {
                    let name = pod.map(|pod| &*pod.name).unwrap_or_default();
                    format!("pod {name} was taken off the list while it has its finalizer")
                })?;
            }
            if side == Side::Succeeded && job.is_indexed() {
                continue;
            }
            let (before, after) = (count(&job.status, side), count(new, side));
            let grown = i32::try_from(left.len()).unwrap_or(i32::MAX);
            ensure(after == before + grown, || {
                format!("{side:?} went from {before} to {after}, but {grown} pods were counted")
            })?;
        }
        Ok(())
    }

    /// Indexes are completed by pods that have succeeded.
    fn check_indexes(&self, job: &JobBook, new: &JobStatus) -> Result<(), Violation> {
        let text = |status: &JobStatus| indexes(status.completed_indexes.as_deref().unwrap_or(""));
        let (before, after) = (text(&job.status), text(new));
        if !job.is_indexed() {
            return ensure(after.is_empty(), || "indexes of a Job without any".to_owned());
        }
        let completions = job.spec.completions.unwrap_or_default();
        for index in after.difference(&before) {
            ensure(job.indexes_done.contains(index), || {
                format!("index {index} is completed, but no pod of it has succeeded")
            })?;
        }
        let lost = before.difference(&after).find(|index| **index < completions);
        ensure(lost.is_none(), || format!("index {lost:?} is completed no longer"))?;
        let size = i32::try_from(after.len()).unwrap_or(i32::MAX);
        let succeeded = count(new, Side::Succeeded);
        // The API refuses a smaller number while the Job is not as wide as it is long: a Job that
        // was scaled down and is not has no choice but to keep the old one.
        let may_shrink = job.spec.completions == job.spec.parallelism;
        let is_kept =
            !may_shrink && succeeded > size && succeeded == count(&job.status, Side::Succeeded);
        ensure(succeeded == size || is_kept, || {
            format!("{size} indexes are completed, but succeeded is {:?}", new.succeeded)
        })
    }
}

/// One of the two lists of uncounted pods, with its counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Succeeded,
    Failed,
}

/// The pods listed as ended and not counted yet.
pub(super) fn listed(status: &JobStatus, side: Side) -> BTreeSet<String> {
    let lists = status.uncounted_terminated_pods.as_ref();
    let list = lists.and_then(|lists| match side {
        Side::Succeeded => lists.succeeded.as_ref(),
        Side::Failed => lists.failed.as_ref(),
    });
    list.into_iter().flatten().cloned().collect()
}

/// The counter.
pub(super) fn count(status: &JobStatus, side: Side) -> i32 {
    let count = match side {
        Side::Succeeded => status.succeeded,
        Side::Failed => status.failed,
    };
    count.unwrap_or_default()
}

/// The pods that are listed no longer.
fn left(job: &JobBook, new: &JobStatus, side: Side) -> BTreeSet<String> {
    listed(&job.status, side).difference(&listed(new, side)).cloned().collect()
}

/// The indexes of a list such as `1,3-5`. Worlds are small: ranges may be spelled out here.
pub(super) fn indexes(list: &str) -> BTreeSet<i32> {
    let fragments = list.split(',').filter(|fragment| !fragment.is_empty());
    fragments
        .flat_map(|fragment| {
            let (first, last) = fragment.split_once('-').unwrap_or((fragment, fragment));
            first.parse().unwrap_or(0)..=last.parse().unwrap_or(-1)
        })
        .collect()
}
