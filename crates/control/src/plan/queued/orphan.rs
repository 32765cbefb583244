//! Workloads whose job was deleted without them.

use jiff::Timestamp;
use lockstep_api::reasons::kueue::{finished, workload as types};

use super::condition::find_true;
use super::known::{Known, job_uid};
use super::{JobKey, Plan, Waiting, ensure, finish};

/// Plans a pass over a workload that has no owner and had one.
pub(super) fn plan(known: &Known, key: &JobKey, now: Timestamp) -> Plan {
    let Some(workload) = known.workload(&key.key) else { return Plan::wait(Waiting::BeingDeleted) };
    if job_uid(workload).is_some_and(|uid| known.job_of_uid(uid).is_some()) {
        return Plan::wait(Waiting::Running);
    }
    let Some(ended) = find_true(workload, types::FINISHED) else {
        let message = "The workload's owner no longer exists";
        return finish::finish(now, workload, finished::OWNER_NOT_FOUND, message);
    };
    if let Some(step) = ensure::release(workload) {
        return Plan::of([step]);
    }
    Plan::wait(Waiting::WorkloadFinished { reason: ended.reason.clone() })
}
