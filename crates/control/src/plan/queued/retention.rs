//! For how long things are kept that have ended.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use lockstep_api::kueue::Workload;
use lockstep_api::reasons::kueue::evicted::DEACTIVATED_DUE_TO;

use super::{Pass, Plan, Settings, Step, Waiting, WorkloadRef};
use crate::engine::after;

/// A workload that has ended, as `ended` says, is deleted after a while, if it is asked for.
pub(super) fn finished(
    settings: &Settings,
    workload: &Workload,
    (ended, waiting): (&Condition, Waiting),
    now: Timestamp,
) -> Plan {
    let Some(kept) = settings.retention.after_finished else { return Plan::wait(waiting) };
    let is_going = workload.metadata.deletion_timestamp.is_some();
    let due = after(ended.last_transition_time.0, kept);
    if is_going || now < due {
        return Plan { next: Some(due).filter(|_| !is_going), ..Plan::wait(waiting) };
    }
    Plan::of([Step::DeleteWorkload { workload: WorkloadRef::of(workload) }])
}

/// A job whose workload was deactivated by a limit is deleted after a while, if it is asked for.
/// What users have deactivated themselves stays.
pub(super) fn deactivated(
    pass: &Pass<'_>,
    workload: &Workload,
    evicted: &Condition,
) -> Option<Plan> {
    if workload.spec.active != Some(false) {
        return None;
    }
    let kept = pass.settings.retention.after_deactivated;
    let due = kept
        .filter(|_| evicted.reason.starts_with(DEACTIVATED_DUE_TO))
        .map(|kept| after(evicted.last_transition_time.0, kept));
    if due.is_some_and(|due| due <= pass.now) {
        return Some(Plan::of([Step::DeleteJob { uid: pass.job.uid().to_owned() }]));
    }
    Some(Plan { next: due, ..Plan::wait(Waiting::Deactivated { deleted_at: due }) })
}
