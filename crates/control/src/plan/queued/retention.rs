//! For how long jobs are kept that a limit has stopped.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use lockstep_api::kueue::Workload;
use lockstep_api::reasons::kueue::evicted::DEACTIVATED_DUE_TO;

use super::{Pass, Plan, Step, Waiting};
use crate::engine::after;

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
    let kept = pass.settings.keep_deactivated;
    let due = kept
        .filter(|_| evicted.reason.starts_with(DEACTIVATED_DUE_TO))
        .map(|kept| after(evicted.last_transition_time.0, kept));
    if due.is_some_and(|due| due <= pass.now) {
        return Some(Plan::of([Step::DeleteJob { uid: pass.job.uid().to_owned() }]));
    }
    Some(Plan { next: due, ..Plan::wait(Waiting::Deactivated { deleted_at: due }) })
}
