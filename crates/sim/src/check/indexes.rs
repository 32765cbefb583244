//! Which indexes may be said to have failed, and which must be.

use std::collections::BTreeSet;

use k8s_openapi::api::batch::v1::JobStatus;

use super::{
    Checker, JobBook, Phase, PodBook, Violation,
    counts::{Side, indexes, listed},
    ensure, has,
    policy::{Verdict, verdict},
};

impl Checker {
    /// The Job `uid` is about to have this status.
    pub(super) fn check_failed_indexes(
        &self,
        job: &JobBook,
        uid: &str,
        new: &JobStatus,
    ) -> Result<(), Violation> {
        let (before, failed) = (failed(&job.status), failed(new));
        let completions = job.spec.completions.unwrap_or_default();
        let lost = before.difference(&failed).find(|index| **index < completions);
        ensure(lost.is_none(), || format!("index {lost:?} is failed no longer"))?;
        for index in failed.difference(&before) {
            let mut pods = self.pods.values().filter(|pod| pod.index == Some(*index));
            let is_so = pods.any(|pod| {
                let owners = [pod.last_owner.as_deref(), pod.ended_for.as_deref()];
                owners.contains(&Some(uid)) && fails_index(job, pod)
            });
            ensure(is_so, || format!("index {index} is failed, but no pod of it makes it so"))?;
        }
        // What runs when a Job fails counts as failed, and says nothing of its index.
        if has(new, "FailureTarget") {
            return Ok(());
        }
        let known = listed(&job.status, Side::Failed);
        let listed = listed(new, Side::Failed);
        let pods = listed.difference(&known).filter_map(|uid| self.pods.get(uid.as_str()));
        check_all_told(job, pods, new)
    }
}

/// Every index that one of `pods` fails, all of them known, is among the failed ones.
pub(super) fn check_all_told<'a>(
    job: &JobBook,
    pods: impl Iterator<Item = &'a PodBook>,
    status: &JobStatus,
) -> Result<(), Violation> {
    let failed = failed(status);
    let completed = indexes(status.completed_indexes.as_deref().unwrap_or_default());
    for pod in pods.filter(|pod| pod.phase != Phase::Succeeded && !pod.is_tampered) {
        let Some(index) = pod.index.filter(|_| fails_index(job, pod)) else { continue };
        let is_inside = index < job.spec.completions.unwrap_or_default();
        let is_told = failed.contains(&index) || completed.contains(&index);
        ensure(is_told || !is_inside, || {
            format!("pod {} fails index {index}, but the status does not say so", pod.name)
        })?;
    }
    Ok(())
}

/// Whether the failure of the pod is the last its index can have.
fn fails_index(job: &JobBook, pod: &PodBook) -> bool {
    let Some(limit) = job.spec.backoff_limit_per_index else { return false };
    let said = pod.ended.as_ref().map(|pod| verdict(&job.spec, pod));
    pod.failed.is_some()
        && match said {
            Some(Verdict::FailIndex) => true,
            Some(Verdict::Ignore) => false,
            Some(Verdict::Count | Verdict::FailJob) | None => pod.failures.0 >= limit,
        }
}

fn failed(status: &JobStatus) -> BTreeSet<i32> {
    indexes(status.failed_indexes.as_deref().unwrap_or_default())
}
