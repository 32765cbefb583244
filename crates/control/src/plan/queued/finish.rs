//! The end of a job, of its workload, and of either without the other.

use jiff::Timestamp;
use lockstep_api::kueue::Workload;
use lockstep_api::reasons::kueue::{finished, workload as types};

use super::condition::{find_true, new, put};
use super::known::Known;
use super::{JobKey, Pass, Plan, Step, Waiting, WorkloadRef, ensure};
use crate::plan::{Event, Key};

/// A job that is gone, or is about to be, holds nothing back.
pub(super) fn let_go(known: &Known, key: &JobKey) -> Plan {
    let steps = ensure::releases(known.workloads_of(key));
    if steps.is_empty() { Plan::wait(Waiting::BeingDeleted) } else { Plan::of(steps) }
}

/// A workload that has ended is let go: whoever wants to delete it may.
pub(super) fn workload_finished(pass: &Pass<'_>, workload: &Workload) -> Option<Plan> {
    let ended = find_true(workload, types::FINISHED)?;
    if let Some(step) = ensure::release(workload) {
        return Some(Plan::of([step]));
    }
    Some(Plan::wait(match pass.job.finished() {
        Some(_) => Waiting::Finished,
        None => Waiting::WorkloadFinished { reason: ended.reason.clone() },
    }))
}

/// A job that has ended ends its workload.
pub(super) fn job_finished(pass: &Pass<'_>, workload: &Workload) -> Option<Plan> {
    let end = pass.job.finished()?;
    let reason = if end.has_succeeded { finished::SUCCEEDED } else { finished::FAILED };
    let mut plan = finish(pass.now, workload, reason, end.message);
    let message = format!("Workload '{}' is declared finished", Key::of(&workload.metadata));
    plan.steps.push(Step::Emit(Event::normal("FinishedWorkload", message)));
    Some(plan)
}

/// Ends a workload.
pub(super) fn finish(now: Timestamp, workload: &Workload, reason: &str, message: &str) -> Plan {
    let mut status = workload.status.clone().unwrap_or_default();
    put(&mut status, new((types::FINISHED, true), reason, message, (workload, now)));
    let (workload, status) = (WorkloadRef::of(workload), Box::new(status));
    Plan::of([Step::WriteWorkloadStatus { workload, status }])
}
