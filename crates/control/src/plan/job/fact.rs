//! What the metrics of the Job controller count, as data: a shell exports it under
//! `job_controller_`.

use k8s_openapi::api::batch::v1::JobStatus;
use lockstep_api::reasons::job::{COMPLETE, FAILED};

use crate::plan::job::{
    View, account::Account, conditions::find_true, draft::Draft, failure_policy::PolicyAction,
    finish::End,
};

/// Something that happened and is counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    /// Which counter moves.
    pub metric: Metric,
    /// Its labels' values, in the order of [`Metric::labels`].
    pub values: Vec<String>,
    /// By how much.
    pub count: u64,
}

/// The counters of the Job controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Metric {
    /// Passes over Jobs. The shell also times them into `job_sync_duration_seconds`, with the same
    /// labels.
    Syncs,
    /// Jobs that have ended.
    JobsFinished,
    /// Pods that were counted.
    PodsFinished,
    /// Failures that a rule of a pod failure policy decided on.
    FailuresHandledByPolicy,
    /// Ended pods that got or lost the tracking finalizer.
    TrackedTerminatedPods,
    /// Indexes that have ended.
    IndexesFinished,
    /// Pods that were created, or could not be.
    PodsCreated,
    /// Jobs that somebody else manages.
    ExternalJobs,
    /// Passes that were put off because our view was known to be old.
    StaleSyncsSkipped,
}

impl Metric {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Syncs,
        Self::JobsFinished,
        Self::PodsFinished,
        Self::FailuresHandledByPolicy,
        Self::TrackedTerminatedPods,
        Self::IndexesFinished,
        Self::PodsCreated,
        Self::ExternalJobs,
        Self::StaleSyncsSkipped,
    ];

    /// The name of the counter, without the prefix `job_controller_`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Syncs => "job_syncs_total",
            Self::JobsFinished => "jobs_finished_total",
            Self::PodsFinished => "job_pods_finished_total",
            Self::FailuresHandledByPolicy => "pod_failures_handled_by_failure_policy_total",
            Self::TrackedTerminatedPods => "terminated_pods_tracking_finalizer_total",
            Self::IndexesFinished => "job_finished_indexes_total",
            Self::PodsCreated => "job_pods_creation_total",
            Self::ExternalJobs => "jobs_by_external_controller_total",
            Self::StaleSyncsSkipped => "stale_sync_skips_total",
        }
    }

    /// The names of its labels.
    pub fn labels(self) -> &'static [&'static str] {
        match self {
            Self::Syncs => &["completion_mode", "result", "action"],
            Self::JobsFinished => &["completion_mode", "result", "reason"],
            Self::PodsFinished => &["completion_mode", "result"],
            Self::FailuresHandledByPolicy => &["action"],
            Self::TrackedTerminatedPods => &["event"],
            Self::IndexesFinished => &["status", "backoffLimit"],
            Self::PodsCreated => &["reason", "status"],
            Self::ExternalJobs => &["controller_name"],
            Self::StaleSyncsSkipped => &["group", "resource"],
        }
    }

    /// So many of this, with these values for the labels.
    pub(crate) fn fact(self, count: u64, values: &[&str]) -> Fact {
        debug_assert_eq!(values.len(), self.labels().len(), "{self:?}");
        let values = values.iter().map(|value| (*value).to_owned()).collect();
        Fact { metric: self, values, count }
    }
}

/// What the writing of a status counts.
pub(crate) fn of_write(
    view: &View,
    stored: &JobStatus,
    draft: &Draft,
    account: &Account,
) -> Vec<Fact> {
    let rules = view.rules();
    let mode = mode(view);
    let more = |new: Option<i32>, old: Option<i32>| {
        u64::try_from(i64::from(new.unwrap_or(0)) - i64::from(old.unwrap_or(0))).unwrap_or(0)
    };
    let (indexes_succeeded, indexes_failed) = view.tally().slots.news();
    let status = &draft.status;
    let succeeded =
        if rules.is_indexed { indexes_succeeded } else { more(status.succeeded, stored.succeeded) };
    let failed = more(status.failed, stored.failed);
    let mut facts = vec![
        Metric::PodsFinished.fact(succeeded, &[mode, "succeeded"]),
        Metric::PodsFinished.fact(failed, &[mode, "failed"]),
    ];
    if rules.is_indexed {
        let limit = if rules.limit_per_index.is_some() { "perIndex" } else { "global" };
        facts.push(Metric::IndexesFinished.fact(indexes_succeeded, &["succeeded", limit]));
        facts.push(Metric::IndexesFinished.fact(indexes_failed, &["failed", limit]));
    }
    facts.extend(of_actions(account, true));
    if let Some(end) = draft.finished {
        let (kind, result) = match end {
            End::Success => (COMPLETE, "succeeded"),
            End::Failure => (FAILED, "failed"),
        };
        let reason = find_true(status, kind).and_then(|condition| condition.reason.as_deref());
        let reason = reason.unwrap_or_default();
        facts.push(Metric::JobsFinished.fact(1, &[mode, result, reason]));
    }
    facts.retain(|fact| fact.count > 0);
    facts
}

/// What rules of a pod failure policy decided, of failures that count or of those that do not.
pub(crate) fn of_actions(account: &Account, is_counted: bool) -> Vec<Fact> {
    let actions = account.actions.iter().filter(|((counted, _), _)| *counted == is_counted);
    let fact = |((_, action), count): (&(bool, PolicyAction), &u64)| {
        Metric::FailuresHandledByPolicy.fact(*count, &[action.as_str()])
    };
    actions.map(fact).collect()
}

/// The label `completion_mode`.
pub(crate) fn mode(view: &View) -> &'static str {
    if view.rules().is_indexed { "Indexed" } else { "NonIndexed" }
}
