//! When a Job may end, and how: failure before success, and not before its pods have ended.

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::{JobStatus, SuccessPolicyRule};
use lockstep_store::Revision;

use super::{
    Checker, JobBook, Phase, PodBook, Violation,
    counts::{Side, count, indexes, listed},
    ensure,
    policy::{Verdict, verdict},
};

impl Checker {
    /// A Job is said to have met its criteria of success.
    pub(super) fn check_success(
        &self,
        job: &JobBook,
        uid: &str,
        new: &JobStatus,
    ) -> Result<(), Violation> {
        if let Some(why) = self.failure_in(job, uid, new) {
            return Err(Violation(format!("{} succeeds although {why}", job.name)));
        }
        let done = indexes(new.completed_indexes.as_deref().unwrap_or_default());
        let (reason, message) = told(new, "SuccessCriteriaMet");
        let is_right = match reason {
            "SuccessPolicy" => {
                let policy = job.spec.success_policy.as_ref();
                let rules = policy.map(|policy| &*policy.rules).unwrap_or_default();
                let at = message.strip_prefix("Matched rules at index ");
                let rule = at.and_then(|at| rules.get(at.parse::<usize>().ok()?));
                self.has_gate && rule.is_some_and(|rule| is_met(rule, &done))
            }
            // Without success policies there is one way to succeed, and it needs no reason.
            "CompletionsReached" | "" if reason.is_empty() != self.has_gate => {
                let listed = listed(new, Side::Succeeded);
                // Not all that is known may fit into one status, and of pods that were let go when
                // the Job was deleted nobody need have heard.
                let unlisted = self.pods.values().filter(|pod| {
                    let is_ours = pod.last_owner.as_deref() == Some(uid);
                    let uid = pod.ended.as_ref().and_then(|pod| pod.metadata.uid.as_ref());
                    let is_listed = uid.is_some_and(|uid| listed.contains(uid));
                    is_ours && pod.phase == Phase::Succeeded && pod.is_pinned && !is_listed
                });
                let all = if job.is_indexed() { 0 } else { listed.len() + unlisted.count() };
                let succeeded = count(new, Side::Succeeded)
                    .saturating_add(i32::try_from(all).unwrap_or(i32::MAX));
                match job.spec.completions {
                    Some(completions) => succeeded >= completions,
                    None => succeeded > 0,
                }
            }
            _ => false,
        };
        ensure(is_right, || format!("{} succeeds by {reason} ({message}), but not so", job.name))
    }

    /// A Job is said to fail.
    pub(super) fn check_failure(
        &self,
        job: &JobBook,
        uid: &str,
        new: &JobStatus,
        now: Timestamp,
    ) -> Result<(), Violation> {
        let (reason, message) = told(new, "FailureTarget");
        let is_right = match reason {
            "DeadlineExceeded" => {
                let start = job.status.start_time.as_ref().or(new.start_time.as_ref());
                let deadline = job.spec.active_deadline_seconds;
                start.zip(deadline).is_some_and(|(start, deadline)| {
                    now.duration_since(start.0).as_secs() >= deadline
                })
            }
            "BackoffLimitExceeded" => self.is_over_limit(job, uid, new),
            // A pod that is taken away once it has failed may still be the one that matters: its
            // Job need not know yet.
            "PodFailurePolicy" => self.pods.values().any(|pod| {
                let is_ours = pod.ended_for.as_deref() == Some(uid);
                let ended = pod.ended.as_ref().filter(|_| is_ours);
                ended.is_some_and(|pod| verdict(&job.spec, pod) == Verdict::FailJob)
            }),
            "MaxFailedIndexesExceeded" => has_too_many_failed(job, new),
            "FailedIndexes" => is_all_done_with_failures(job, new),
            _ => false,
        };
        ensure(is_right, || format!("{} fails by {reason} ({message}), but not so", job.name))
    }

    /// A Job is said to be finished.
    pub(super) fn check_end(
        &self,
        job: &JobBook,
        uid: &str,
        new: &JobStatus,
        by: (usize, Revision),
    ) -> Result<(), Violation> {
        let is_empty =
            listed(new, Side::Succeeded).is_empty() && listed(new, Side::Failed).is_empty();
        ensure(is_empty, || format!("{} is finished with uncounted pods", job.name))?;
        // A pod that a user has relabelled is not the Job's any more, though it may not say so yet.
        let pods = || self.of(uid).filter(|pod| !pod.is_tampered && is_known(pod, by));
        let left = pods().find(|pod| pod.is_active() || pod.is_terminating());
        ensure(left.is_none(), || {
            let name = left.map(|pod| &*pod.name).unwrap_or_default();
            format!("{} is finished while pod {name} lives", job.name)
        })?;
        let uncounted =
            pods().find(|pod| pod.is_pinned && !pod.is_gone && pod.phase != Phase::Alive);
        ensure(uncounted.is_none(), || {
            let name = uncounted.map(|pod| &*pod.name).unwrap_or_default();
            format!("{} is finished, but {name} is not counted", job.name)
        })
    }

    /// Why the Job must fail, going by what the new status itself says.
    fn failure_in(&self, job: &JobBook, uid: &str, new: &JobStatus) -> Option<String> {
        let failed = listed(new, Side::Failed);
        let total = count(new, Side::Failed) + i32::try_from(failed.len()).unwrap_or(i32::MAX);
        let limit = job.spec.backoff_limit.unwrap_or(6);
        if total > limit {
            return Some(format!("{total} pods have failed, which is more than {limit}"));
        }
        if has_too_many_failed(job, new) {
            return Some("too many indexes have failed".to_owned());
        }
        if is_all_done_with_failures(job, new) {
            return Some("all indexes are done and some have failed".to_owned());
        }
        let fatal = self.of(uid).find(|pod| {
            let is_fatal = pod.ended.as_ref().is_some_and(|pod| {
                failed.contains(pod.metadata.uid.as_deref().unwrap_or_default())
                    && verdict(&job.spec, pod) == Verdict::FailJob
            });
            pod.phase == Phase::Failed && is_fatal
        })?;
        Some(format!("the failure of {} fails the Job", fatal.name))
    }

    /// Whether as many pods have failed, or containers been restarted, as is too many.
    fn is_over_limit(&self, job: &JobBook, uid: &str, new: &JobStatus) -> bool {
        let limit = job.spec.backoff_limit.unwrap_or(6);
        let listed = listed(new, Side::Failed);
        // Some wait to be counted until they have been replaced.
        let waiting = self.of(uid).filter(|pod| {
            // One that was sent away counts until it is seen to have succeeded all the same.
            let failed =
                pod.phase == Phase::Failed || pod.is_terminating() || pod.was_deleted_alive;
            let ended = pod.ended.as_ref();
            let is_ignored = ended.is_some_and(|pod| verdict(&job.spec, pod) == Verdict::Ignore);
            let uid = ended.and_then(|pod| pod.metadata.uid.as_ref());
            let is_listed = uid.is_some_and(|uid| listed.contains(uid));
            pod.is_pinned && failed && !is_ignored && !is_listed
        });
        let total = count(new, Side::Failed)
            + i32::try_from(listed.len() + waiting.count()).unwrap_or(i32::MAX);
        let restarts: i32 = self.of(uid).map(|pod| pod.restarts).sum();
        total > limit || (restarts > 0 && restarts >= limit)
    }

    fn of<'a>(&'a self, uid: &'a str) -> impl Iterator<Item = &'a PodBook> {
        self.pods.values().filter(move |pod| pod.owner.as_deref() == Some(uid))
    }
}

/// Whether a controller that had seen pods up to a revision could know of this one. Nobody knows
/// of a pod that another has just made, taking itself for the leader.
pub(super) fn is_known(pod: &PodBook, (number, seen): (usize, Revision)) -> bool {
    pod.made_by == Some(number) || pod.made_at <= seen
}

fn told<'a>(status: &'a JobStatus, condition: &str) -> (&'a str, &'a str) {
    let conditions = status.conditions.as_deref().unwrap_or_default();
    let found = conditions.iter().find(|it| it.type_ == condition && it.status == "True");
    let text = |text: &'a Option<String>| text.as_deref().unwrap_or_default();
    found.map(|it| (text(&it.reason), text(&it.message))).unwrap_or_default()
}

fn is_met(rule: &SuccessPolicyRule, done: &std::collections::BTreeSet<i32>) -> bool {
    if done.is_empty() {
        return false;
    }
    let reaches = |hits: usize| {
        rule.succeeded_count.is_some_and(|least| i32::try_from(hits).is_ok_and(|n| n >= least))
    };
    let Some(wanted) = rule.succeeded_indexes.as_deref() else {
        return reaches(done.len());
    };
    let wanted = indexes(wanted);
    let hits = wanted.intersection(done).count();
    !wanted.is_empty() && (hits == wanted.len() || reaches(hits))
}

fn has_too_many_failed(job: &JobBook, new: &JobStatus) -> bool {
    let failed = indexes(new.failed_indexes.as_deref().unwrap_or_default()).len();
    let most = job.spec.max_failed_indexes;
    most.is_some_and(|most| i32::try_from(failed).is_ok_and(|failed| failed > most))
}

fn is_all_done_with_failures(job: &JobBook, new: &JobStatus) -> bool {
    let failed = indexes(new.failed_indexes.as_deref().unwrap_or_default()).len();
    let done = indexes(new.completed_indexes.as_deref().unwrap_or_default()).len();
    let completions = usize::try_from(job.spec.completions.unwrap_or_default()).unwrap_or_default();
    failed > 0 && failed + done >= completions
}
