//! Completing an eviction: the job stops, and gives its quota back when nothing of it runs.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use lockstep_api::kueue::{Workload, WorkloadStatus};
use lockstep_api::reasons::kueue::{admitted, evicted, quota_reserved, workload as types};

use super::condition::{find_true, holds_quota, new, put, whole_second};
use super::{Object, Pass, Plan, Step, Waiting, WorkloadRef, retention, stop};
use crate::engine::after;

/// After which time to look again at pods that still run. Nobody may be there any more to tell that
/// they do not.
const LOOK_AGAIN: Duration = Duration::from_secs(5);
/// For how long a set that stands still is believed that something of it runs, when none of its
/// Jobs says so. Some versions of its controller never write that status again.
const BELIEVED: Duration = Duration::from_secs(30);

/// Stops the job of a workload that was evicted, and gives its quota back.
pub(super) fn complete(pass: &Pass<'_>, workload: &Workload) -> Option<Plan> {
    let evicted = find_true(workload, types::EVICTED)?;
    if let Some(plan) = stop::stop(pass, Some(workload), &evicted.message) {
        return Some(plan);
    }
    if !holds_quota(workload) {
        return retention::deactivated(pass, workload, evicted);
    }
    if is_active(pass, Some(evicted.last_transition_time.0)) {
        return Some(Plan::wait_until(Waiting::PodsActive, look_again(pass.now)));
    }
    let status = Box::new(released(workload, evicted, pass.now));
    let workload = WorkloadRef::of(workload);
    Some(Plan::of([Step::WriteWorkloadStatus { workload, status }]))
}

/// When to look again at pods that still run.
pub(super) fn look_again(now: Timestamp) -> Timestamp {
    after(now, LOOK_AGAIN)
}

/// Whether anything of a job that is to stand still runs. A set is asked by its Jobs: what it says
/// itself may be old, and counts only for some time after `since`.
pub(super) fn is_active(pass: &Pass<'_>, since: Option<Timestamp>) -> bool {
    let reports = pass.job.reports_active();
    if matches!(pass.job, Object::Job(_)) {
        return reports;
    }
    let children = pass.known.children(pass.job.uid());
    let mut children = children.filter_map(|key| pass.known.job(key));
    let is_believed = since.is_some_and(|since| pass.now < after(since, BELIEVED));
    children.any(runs) || (reports && is_believed)
}

fn runs(child: &Object) -> bool {
    let is_ending = child.meta().deletion_timestamp.is_some();
    child.finished().is_none() && (child.reports_active() || !(child.is_suspended() || is_ending))
}

/// The status of a workload that has given its quota back after an eviction.
fn released(workload: &Workload, evicted: &Condition, now: Timestamp) -> WorkloadStatus {
    let mut status = workload.status.clone().unwrap_or_default();
    let (reason, message) = (&evicted.reason, &evicted.message);
    let at = (workload, now);
    let comes_back = [evicted::PREEMPTED, evicted::NODE_FAILURES].contains(&reason.as_str());
    put(&mut status, new((types::REQUEUED, comes_back), reason, message, at));
    let (reason, message) = match workload.spec.active {
        Some(false) => (quota_reserved::DEACTIVATED, "The workload is deactivated"),
        _ => (quota_reserved::PENDING_EVALUATION, message.as_str()),
    };
    put(&mut status, new((types::QUOTA_RESERVED, false), reason, message, at));
    status.admission = None;
    if let Some(admitted) = find_true(workload, types::ADMITTED) {
        let past = status.accumulated_past_execution_time_seconds.unwrap_or(0);
        let time = whole_second(now).as_second() - admitted.last_transition_time.0.as_second();
        let time = i32::try_from(time.max(0)).unwrap_or(i32::MAX);
        status.accumulated_past_execution_time_seconds = Some(past.saturating_add(time));
    }
    let message = "The workload has no reservation";
    put(&mut status, new((types::ADMITTED, false), admitted::NO_RESERVATION, message, at));
    status
}
