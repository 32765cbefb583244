//! Completing an eviction: the job stops, and gives its quota back when nothing of it runs.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use lockstep_api::kueue::{Workload, WorkloadStatus};
use lockstep_api::reasons::kueue::{admitted, evicted, quota_reserved, workload as types};

use super::condition::{find_true, holds_quota, new, put};
use super::{
    Object, Pass, Plan, Step, Waiting, WorkloadRef, ensure, of_job, pods_ready, retention, stop,
};
use crate::engine::after;

/// After which time to look again at pods that still run. Nobody may be there any more to tell that
/// they do not.
const LOOK_AGAIN: Duration = Duration::from_secs(5);
/// For how long a set that stands still is believed that something of it runs, when none of its
/// Jobs says so: some versions of its controller never write that status again. And a Job that pods
/// of it are on their way out, after the time they have for that: their node may be gone.
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
    // A start that was not answered may have been carried out.
    Some(Plan::of([ensure::same(pass), Step::WriteWorkloadStatus { workload, status }]))
}

/// When to look again at pods that still run.
pub(super) fn look_again(now: Timestamp) -> Timestamp {
    after(now, LOOK_AGAIN)
}

/// Whether anything of a job that is to stand still since then runs. A set is asked by its Jobs:
/// what it says itself may be old, and counts only for some time.
pub(super) fn is_active(pass: &Pass<'_>, since: Option<Timestamp>) -> bool {
    if matches!(pass.job, Object::Job(_)) {
        return has_pods(pass.job, since, pass.now);
    }
    let children = pass.known.children(pass.job.uid());
    let mut children = children.filter_map(|key| pass.known.job(key));
    let is_believed = since.is_some_and(|since| pass.now < after(since, BELIEVED));
    children.any(|child| runs(child, since, pass.now)) || (pass.job.reports_active() && is_believed)
}

fn runs(child: &Object, since: Option<Timestamp>, now: Timestamp) -> bool {
    let is_ending = child.meta().deletion_timestamp.is_some();
    let stands_still = child.is_suspended() || is_ending;
    child.finished().is_none() && (has_pods(child, since, now) || !stands_still)
}

/// Whether a Job has pods: those that run, and those on their way out while they may be.
fn has_pods(job: &Object, since: Option<Timestamp>, now: Timestamp) -> bool {
    let Object::Job(job) = job else { return job.reports_active() };
    let until = since.map(|since| after(since, of_job::grace(job).saturating_add(BELIEVED)));
    let is_in_time = until.is_some_and(|until| now < until);
    of_job::is_active(job) || (of_job::is_terminating(job) && is_in_time)
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
    if find_true(workload, types::ADMITTED).is_some() {
        status.add_execution_time(now);
    }
    let message = "The workload has no reservation";
    put(&mut status, new((types::ADMITTED, false), admitted::NO_RESERVATION, message, at));
    // In the same write: it may be admitted again before anybody looks at its job.
    pods_ready::start_over(&mut status, at);
    status
}
