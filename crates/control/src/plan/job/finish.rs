//! How a Job ends: the order of the decisions.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::batch::v1::{JobSpec, JobStatus};
use lockstep_api::reasons::job::{FAILURE_TARGET, SUCCESS_CRITERIA_MET, SUSPENDED};

use crate::plan::job::{Options, View, conditions};

/// How the Job ends, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fate {
    pub(crate) end: End,
    pub(crate) reason: String,
    pub(crate) message: String,
    /// Whether the status already says so.
    pub(crate) is_recorded: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Success,
    Failure,
}

/// Numbers a Job is judged by, finished pods that are not counted yet included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Score {
    pub(crate) succeeded: i64,
    pub(crate) failed: i64,
}

impl Score {
    pub(crate) fn of(view: &View, status: &JobStatus) -> Self {
        let tally = view.tally();
        let listed = status.uncounted_terminated_pods.as_ref();
        let ok = listed.and_then(|pods| pods.succeeded.as_ref()).map_or(0, Vec::len);
        let bad = listed.and_then(|pods| pods.failed.as_ref()).map_or(0, Vec::len);
        let sum = |counted: Option<i32>, listed: usize, new: usize| {
            i64::from(counted.unwrap_or(0)) + i64::try_from(listed + new).unwrap_or(i64::MAX)
        };
        let succeeded = if view.rules().is_indexed {
            tally.slots.succeeded.count()
        } else {
            sum(status.succeeded, ok, tally.succeeded_new)
        };
        Self { succeeded, failed: sum(status.failed, bad, tally.failed_new) }
    }
}

/// The first of the reasons to end that holds. What the status already says stands; then failures
/// come before successes.
pub(crate) fn decide(
    view: &View,
    spec: &JobSpec,
    status: &JobStatus,
    score: Score,
    (options, now): (&Options, Timestamp),
) -> Option<Fate> {
    recorded(status)
        .or_else(|| failed_by_policy(view))
        .or_else(|| limit_reached(view, spec, score))
        .or_else(|| deadline_passed(spec, status, now))
        .or_else(|| indexes_failed(view, spec, score))
        .or_else(|| succeeded_by_policy(view, options))
        .or_else(|| completions_reached(view, spec, score, options))
}

/// When the Job has to have ended.
pub(crate) fn deadline(spec: &JobSpec, status: &JobStatus, now: Timestamp) -> Option<Timestamp> {
    let seconds = spec.active_deadline_seconds?;
    if spec.suspend == Some(true) {
        return None;
    }
    // A Job that is being resumed starts anew.
    let is_resuming = conditions::find_true(status, SUSPENDED).is_some();
    let start = status.start_time.as_ref().filter(|_| !is_resuming).map_or(now, |time| time.0);
    Some(start.saturating_add(SignedDuration::from_secs(seconds)).unwrap_or(Timestamp::MAX))
}

fn recorded(status: &JobStatus) -> Option<Fate> {
    let known = |kind: &str, end: End| {
        let condition = conditions::find_true(status, kind)?;
        Some(Fate {
            end,
            reason: condition.reason.clone().unwrap_or_default(),
            message: condition.message.clone().unwrap_or_default(),
            is_recorded: true,
        })
    };
    known(SUCCESS_CRITERIA_MET, End::Success).or_else(|| known(FAILURE_TARGET, End::Failure))
}

fn new(end: End, reason: &str, message: &str) -> Fate {
    Fate { end, reason: reason.to_owned(), message: message.to_owned(), is_recorded: false }
}

fn failed_by_policy(view: &View) -> Option<Fate> {
    let (_, message) = view.tally().fail_job.first_key_value()?;
    Some(new(End::Failure, "PodFailurePolicy", message))
}

fn limit_reached(view: &View, spec: &JobSpec, score: Score) -> Option<Fate> {
    let default = if view.rules().limit_per_index.is_some() { i32::MAX } else { 6 };
    let limit = i64::from(spec.backoff_limit.unwrap_or(default));
    let restarts = view.tally().restarts;
    // Failed pods may be as many as the limit, restarts must stay below it.
    let has_restarted_enough = view.rules().restarts_on_failure
        && if limit == 0 { restarts > 0 } else { restarts >= limit };
    (score.failed > limit || has_restarted_enough).then(|| {
        let message = "Job has reached the specified backoff limit";
        new(End::Failure, "BackoffLimitExceeded", message)
    })
}

fn deadline_passed(spec: &JobSpec, status: &JobStatus, now: Timestamp) -> Option<Fate> {
    deadline(spec, status, now).filter(|deadline| now >= *deadline)?;
    let message = "Job was active longer than specified deadline";
    Some(new(End::Failure, "DeadlineExceeded", message))
}

fn indexes_failed(view: &View, spec: &JobSpec, score: Score) -> Option<Fate> {
    view.rules().limit_per_index?;
    let failed = view.tally().slots.failed.count();
    if spec.max_failed_indexes.is_some_and(|max| failed > i64::from(max)) {
        let message = "Job has exceeded the specified maximal number of failed indexes";
        return Some(new(End::Failure, "MaxFailedIndexesExceeded", message));
    }
    let is_all = failed + score.succeeded >= i64::from(view.rules().index_count());
    (failed > 0 && is_all).then(|| new(End::Failure, "FailedIndexes", "Job has failed indexes"))
}

fn succeeded_by_policy(view: &View, options: &Options) -> Option<Fate> {
    if !options.job_success_policy || !view.rules().is_indexed {
        return None;
    }
    let message = view.success_rules().matched(&view.tally().slots.succeeded)?;
    Some(new(End::Success, "SuccessPolicy", &message))
}

fn completions_reached(
    view: &View,
    spec: &JobSpec,
    score: Score,
    options: &Options,
) -> Option<Fate> {
    // Pods that still run are waited for only where nobody would take them away otherwise: a Job
    // that has all its completions wants none of them, and neither does one that is suspended.
    let is_going = view.job().metadata.deletion_timestamp.is_some();
    let is_enough = match view.rules().completions {
        None => {
            let is_suspended = spec.suspend == Some(true) && !is_going;
            score.succeeded > 0 && (view.active() == 0 || is_suspended)
        }
        Some(completions) => {
            score.succeeded >= i64::from(completions) && (view.active() == 0 || !is_going)
        }
    };
    // Where success policies are off there is one way to succeed, and it needs no reason.
    let (reason, message) = if options.job_success_policy {
        ("CompletionsReached", "Reached expected number of succeeded pods")
    } else {
        ("", "")
    };
    is_enough.then(|| new(End::Success, reason, message))
}
