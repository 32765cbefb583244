//! `PodsReady` of a workload: whether its pods are ready, and what is waited for if not; and the
//! stage of its start, where it has stages.
//!
//! | admitted | ready | before | `PodsReady` |
//! |---|---|---|---|
//! | no | | | False `WaitForStart` |
//! | yes | yes | `WaitForRecovery` or `Recovered` | True `Recovered` |
//! | yes | yes | anything else | True `Started` |
//! | yes | no | nothing | False `WaitForStart` |
//! | yes | no | True, and a restart is under way and in time | stays |
//! | yes | no | True | False `WaitForRecovery` |
//! | yes | no | `WaitForRecovery` | False `WaitForRecovery` |
//! | yes | no | anything else | False `WaitForStart` |

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use lockstep_api::kueue::{WaitForPodsReady, Workload, WorkloadStatus};
use lockstep_api::reasons::kueue::{pods_ready as reasons, stage, workload as types};

use super::condition::{find, find_true, is_admitted, is_true, new, put, put_timed, whole_second};
use super::ready::{self, Restart};
use super::{Pass, Plan, Step, WorkloadRef};
use crate::engine::after;

const READY: &str = "All pods reached readiness and the workload is running";
const NOT_READY: &str = "Not all pods are ready or succeeded";
const RECOVERING: &str = "At least one pod has failed, waiting for recovery";

/// Writes down whether the pods are ready, and which part is starting, if that is news.
pub(super) fn update(pass: &Pass<'_>, workload: &Workload) -> Option<Plan> {
    let wait = wait(pass, workload)?;
    // Of a job that was stopped there is nothing to tell until its quota is given back.
    let is_stopped = pass.job.is_suspended() && find_true(workload, types::EVICTED).is_some();
    if is_stopped && is_admitted(workload) {
        return None;
    }
    let known = find(workload, types::PODS_READY);
    let stage = stage_now(pass, workload);
    let wanted = match restart_until(&stage, wait) {
        Some(until) if pass.now < until && known.is_some_and(is_true) => None,
        _ => Some(pods_ready(pass, workload)),
    };
    // The words may be those of another version.
    let is_same = |a: &Condition, b: &Condition| a.status == b.status && a.reason == b.reason;
    let wanted = wanted.filter(|wanted| !known.is_some_and(|known| is_same(known, wanted)));
    let is_staged = stage.as_ref() == find(workload, types::STAGE);
    if wanted.is_none() && is_staged {
        return None;
    }
    let mut status = workload.status.clone().unwrap_or_default();
    if let Some(wanted) = wanted {
        put(&mut status, wanted);
    }
    match stage {
        _ if is_staged => {}
        Some(stage) => put_timed(&mut status, stage),
        None => status.conditions.retain(|known| known.type_ != types::STAGE),
    }
    let (workload, status) = (WorkloadRef::of(workload), Box::new(status));
    Some(Plan::of([Step::WriteWorkloadStatus { workload, status }]))
}

/// What was true of pods that are gone says nothing of those that will come after them.
pub(super) fn start_over(status: &mut WorkloadStatus, at: (&Workload, Timestamp)) {
    if status.condition(types::PODS_READY).is_some() {
        put(status, new((types::PODS_READY, false), reasons::WAIT_FOR_START, NOT_READY, at));
    }
    status.conditions.retain(|known| known.type_ != types::STAGE);
}

/// When a restart that is under way has to be over.
pub(super) fn next(pass: &Pass<'_>, workload: &Workload) -> Option<Timestamp> {
    let wait = wait(pass, workload)?;
    find_true(workload, types::PODS_READY)?;
    restart_until(&find(workload, types::STAGE).cloned(), wait)
}

/// What holds for the workload about waiting for its pods.
fn wait<'a>(pass: &Pass<'a>, workload: &Workload) -> Option<&'a WaitForPodsReady> {
    let told = pass.known.wait_of(workload);
    told.unwrap_or(&pass.settings.wait_for_pods_ready).as_ref()
}

/// The end of the time for a restart, if that is what the stage is.
fn restart_until(stage: &Option<Condition>, wait: &WaitForPodsReady) -> Option<Timestamp> {
    let restarting =
        stage.as_ref().filter(|stage| is_true(stage) && stage.reason == stage::RESTARTING)?;
    Some(after(restarting.last_transition_time.0, wait.timeout))
}

/// The condition `PodsReady` as it should be.
fn pods_ready(pass: &Pass<'_>, workload: &Workload) -> Condition {
    let known = find(workload, types::PODS_READY);
    let reason = known.map(|known| known.reason.as_str());
    let was_ready = known.is_some_and(is_true);
    let (is_ready, reason, message) = if !is_admitted(workload) {
        (false, reasons::WAIT_FOR_START, NOT_READY)
    } else if ready::is_ready(pass.job) {
        match reason {
            Some(reasons::WAIT_FOR_RECOVERY | reasons::RECOVERED) => {
                (true, reasons::RECOVERED, READY)
            }
            _ => (true, reasons::STARTED, READY),
        }
    } else if was_ready || reason == Some(reasons::WAIT_FOR_RECOVERY) {
        (false, reasons::WAIT_FOR_RECOVERY, RECOVERING)
    } else {
        (false, reasons::WAIT_FOR_START, NOT_READY)
    };
    new((types::PODS_READY, is_ready), reason, message, (workload, pass.now))
}

/// The condition that says which part is starting, as it should be. Its time is when the stage
/// began; false, when all of them were over.
fn stage_now(pass: &Pass<'_>, workload: &Workload) -> Option<Condition> {
    let known = find(workload, types::STAGE);
    if !is_admitted(workload) {
        return None;
    }
    let told = |is_true, reason, message: &str| {
        new((types::STAGE, is_true), reason, message, (workload, pass.now))
    };
    if ready::is_ready(pass.job) {
        let is_over = known.is_some_and(|known| !is_true(known));
        let over = || told(false, stage::STARTED, "all replicated jobs are ready");
        return if is_over { known.cloned() } else { known.map(|_| over()) };
    }
    if let Some(since) = find_true(workload, types::PODS_READY) {
        return restarting(pass, known, since, told(true, stage::RESTARTING, RESTARTS));
    }
    let is_recovering = find(workload, types::PODS_READY)
        .is_some_and(|one| one.reason == reasons::WAIT_FOR_RECOVERY);
    if is_recovering {
        return known.cloned();
    }
    let starting = ready::stage(pass.job)?;
    let place = format!("({} of {})", starting.place, starting.total);
    let name = starting.name;
    let wanted = match starting.depends_on {
        None => told(true, stage::STARTING, &format!("replicated job {name} is starting {place}")),
        Some(on) => {
            let message = format!("replicated job {name} waits for {on} to complete {place}");
            told(true, stage::DEPENDING, &message)
        }
    };
    let is_same = |known: &&Condition| {
        is_true(known) && known.reason == wanted.reason && known.message == wanted.message
    };
    Some(known.filter(is_same).cloned().unwrap_or(wanted))
}

const RESTARTS: &str = "a restart is in progress";

/// The stage of a job that was ready and is not: a restart, with the time when it began, or what
/// it was.
fn restarting(
    pass: &Pass<'_>,
    known: Option<&Condition>,
    ready: &Condition,
    wanted: Condition,
) -> Option<Condition> {
    let over = known.filter(|known| !is_true(known)).map(|known| known.last_transition_time.0);
    let ready =
        over.map_or(ready.last_transition_time.0, |over| over.max(ready.last_transition_time.0));
    let Some(restart) = ready::restart(pass.job, ready) else { return known.cloned() };
    let running = known.filter(|known| is_true(known) && known.reason == stage::RESTARTING);
    match (running, restart) {
        (Some(running), Restart::InPlace) => Some(running.clone()),
        (Some(running), Restart::Since(since)) if since <= running.last_transition_time.0 => {
            Some(running.clone())
        }
        (_, Restart::Since(since)) => {
            let last_transition_time = Time(whole_second(since));
            Some(Condition { last_transition_time, ..wanted })
        }
        (None, Restart::InPlace) => Some(wanted),
    }
}
