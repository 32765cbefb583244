//! When a controller may let go of a pod: once it is counted, or if it need not be.

use k8s_openapi::api::core::v1::Pod;
use lockstep_store::{Event, Revision};

use super::{
    Author, Checker, JobBook, Phase, PodBook, Violation,
    counts::indexes,
    ending::is_known,
    ensure,
    policy::{Verdict, verdict},
};

impl Checker {
    /// The finalizer of a pod, as it was before, is gone.
    pub(super) fn check_unpin(
        &self,
        pod: &PodBook,
        (event, seen_before): (&Event, Option<&Pod>),
        author: Author,
    ) -> Result<(), Violation> {
        let uid = &*event.object.meta.uid;
        let Author::Controller { number, seen, .. } = author else {
            return Err(Violation(format!("{author:?} took the finalizer off {}", pod.name)));
        };
        let Some(job) = pod.owner.as_ref().and_then(|owner| self.jobs.get(owner)) else {
            return Ok(());
        };
        if job.is_gone || job.is_deleting {
            return Ok(());
        }
        ensure(job.is_ours(), || {
            format!("the finalizer of {} belongs to another controller", pod.name)
        })?;
        // What a Job that has succeeded no longer needs counts for nothing, however it ends.
        let is_unneeded = job.has("SuccessCriteriaMet") && pod.ended_at > seen.pods;
        // What came to light only after the Job had ended cannot be counted any more.
        let is_late = job.ended_by.is_some_and(|by| !is_known(pod, by));
        // A pod that users took out of the Job is let go as it is.
        let is_free = pod.is_tampered
            || is_unneeded
            || is_late
            || is_counted(job, uid)
            || !must_count(job, pod, (number, seen.jobs))
            || (pod.phase != Phase::Succeeded
                && seen_before.is_some_and(|pod| is_ignored(job, pod)));
        ensure(is_free, || {
            format!(
                "the finalizer of {} ({:?}, index {:?}) was removed before the pod was counted",
                pod.name, pod.phase, pod.index
            )
        })
    }
}

/// Whether the pod is in a counter or in the list of those about to be.
pub(super) fn is_counted(job: &JobBook, uid: &str) -> bool {
    let uncounted = job.status.uncounted_terminated_pods.as_ref();
    let is_listed = |list: Option<&Vec<String>>| list.into_iter().flatten().any(|it| it == uid);
    job.succeeded.contains(uid)
        || job.failed.contains(uid)
        || is_listed(uncounted.and_then(|lists| lists.succeeded.as_ref()))
        || is_listed(uncounted.and_then(|lists| lists.failed.as_ref()))
}

/// Whether the policy of the Job has the end of the pod, as it was before, count for nothing.
fn is_ignored(job: &JobBook, pod: &Pod) -> bool {
    verdict(&job.spec, pod) == Verdict::Ignore
}

/// Whether a pod in this state must be counted by its uid before it is let go.
/// The controller `number` had seen Jobs up to `seen`.
fn must_count(job: &JobBook, pod: &PodBook, (number, seen): (usize, Revision)) -> bool {
    if job.is_indexed() {
        // The Job may have grown since: then the pod had no place in it for all one could know.
        let least = job.sizes_since(seen).map(|size| size.completions.unwrap_or_default()).min();
        let Some(index) = pod.index.filter(|index| (0..least.unwrap_or(0)).contains(index)) else {
            return false;
        };
        if pod.phase == Phase::Succeeded {
            // What is decided about an index stays: a success that comes after its failure, of a
            // pod that a second leader made, is none.
            let decided = [&job.status.completed_indexes, &job.status.failed_indexes];
            return !decided.into_iter().flatten().any(|list| indexes(list).contains(&index));
        }
    }
    match pod.phase {
        Phase::Succeeded => true,
        // Those that were stopped because the Job has succeeded are nobody's fault.
        Phase::Failed if pod.was_deleted_alive && job.has("SuccessCriteriaMet") => false,
        Phase::Failed => true,
        // Of what another has decided meanwhile nobody could know.
        Phase::Alive if job.has("FailureTarget") => {
            job.decided_by.is_none_or(|(by, at)| by == number || at <= seen)
        }
        // Pods are taken away before they end when there are too many of them, or when the Job is
        // suspended. What is asked to go by others counts as failed where that is the rule.
        Phase::Alive => false,
    }
}
