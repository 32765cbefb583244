//! How long a workload may take: its pods to be ready, and all of it.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use lockstep_api::kueue::WaitForPodsReady;
use lockstep_api::reasons::kueue::{
    self as reasons, deactivation, evicted, pods_ready, workload as conditions,
};

use super::evict::{self, Eviction};
use super::step::Draft;
use super::{Scene, Waiting};
use crate::engine::after;
use crate::plan::Event;

/// Evicts a workload whose pods have not been ready in time, or deactivates it if that has happened
/// too often.
pub(super) fn pods_ready(draft: &mut Draft<'_>, scene: &Scene<'_>) -> Waiting {
    let Some(wait) = &scene.around.wait else { return Waiting::Running };
    let Some(Term { since, timeout, cause }) = term(draft, wait) else { return Waiting::Running };
    let deadline = after(scene.company.left_at.map_or(since, |left| left.max(since)), timeout);
    if draft.now < deadline {
        draft.wake_at(deadline);
        return Waiting::Running;
    }
    if scene.company.is_leaving {
        return Waiting::OthersLeave;
    }
    let count = requeued_so_far(draft).saturating_add(1);
    if wait.requeuing.limit.is_some_and(|limit| count > limit) {
        let message = "exceeding the maximum number of re-queuing retries";
        let reason = deactivation::REQUEUING_LIMIT_EXCEEDED;
        draft.say((conditions::DEACTIVATION_TARGET, true), reason, message);
        return Waiting::Running;
    }
    put_back(draft, count, wait.requeuing.delay(count, scene.chance));
    let meta = &draft.workload.metadata;
    let message = format!(
        "Exceeded the PodsReady timeout {}/{}",
        meta.namespace.as_deref().unwrap_or_default(),
        meta.name.as_deref().unwrap_or_default(),
    );
    let reason = evicted::PODS_READY_TIMEOUT;
    evict::evict(draft, Eviction { reason, message: &message, counted_as: reason, cause });
    Waiting::Evicted
}

/// The time pods have to be ready.
struct Term {
    /// When it began.
    since: Timestamp,
    /// How long it is.
    timeout: Duration,
    /// What they are waited for.
    cause: &'static str,
}

/// How long pods have to be ready, if they have to.
fn term(draft: &Draft<'_>, wait: &WaitForPodsReady) -> Option<Term> {
    let admitted = draft.status.condition(conditions::ADMITTED)?;
    if admitted.status != "True" || draft.is_true(conditions::PODS_READY) {
        return None;
    }
    let ready = draft.status.condition(conditions::PODS_READY);
    match ready.filter(|ready| ready.reason == pods_ready::WAIT_FOR_RECOVERY) {
        Some(lost) => {
            let timeout = wait.recovery_timeout?;
            Some(Term { since: since(lost), timeout, cause: pods_ready::WAIT_FOR_RECOVERY })
        }
        None => {
            let stage = stage(draft);
            if stage.is_some_and(|stage| stage.reason == reasons::stage::DEPENDING) {
                return None;
            }
            let since = since(admitted).max(stage.map_or(Timestamp::MIN, since));
            Some(Term { since, timeout: wait.timeout, cause: pods_ready::WAIT_FOR_START })
        }
    }
}

/// The stage of a workload that starts in stages. Each has the whole time, and while the next waits
/// for one that runs to its end nobody is late.
fn stage<'a>(draft: &'a Draft<'_>) -> Option<&'a Condition> {
    draft.status.condition(conditions::STAGE).filter(|stage| stage.status == "True")
}

fn since(condition: &Condition) -> Timestamp {
    condition.last_transition_time.0
}

fn requeued_so_far(draft: &Draft<'_>) -> i32 {
    draft.status.requeue_state.as_ref().and_then(|state| state.count).unwrap_or(0)
}

fn put_back(draft: &mut Draft<'_>, count: i32, delay: Duration) {
    let at = after(draft.now, delay);
    let state = draft.status.requeue_state.get_or_insert_default();
    state.count = Some(count);
    let known = state.requeue_at.as_ref().map(|known| known.0);
    if known.is_none_or(|known| known < at) {
        state.requeue_at = Some(Time(next_second(at)));
    }
}

/// The API keeps times to the second. Nobody comes back too early.
fn next_second(time: Timestamp) -> Timestamp {
    let whole = lockstep_api::kueue::whole_second(time);
    if whole == time { time } else { after(whole, Duration::from_secs(1)) }
}

/// Deactivates a workload that has been admitted for as long as it may.
pub(super) fn execution(draft: &mut Draft<'_>) {
    let Some(seconds) = draft.workload.spec.maximum_execution_time_seconds else { return };
    let Some(admitted) = draft.status.condition(conditions::ADMITTED) else { return };
    if admitted.status != "True" {
        return;
    }
    let past = draft.status.accumulated_past_execution_time_seconds.unwrap_or(0);
    let left = u64::try_from(seconds.saturating_sub(past)).unwrap_or(0);
    let deadline = after(since(admitted), Duration::from_secs(left));
    if draft.now < deadline {
        draft.wake_at(deadline);
        return;
    }
    let reason = deactivation::MAXIMUM_EXECUTION_TIME_EXCEEDED;
    let message = "exceeding the maximum execution time";
    if draft.say((conditions::DEACTIVATION_TARGET, true), reason, message) {
        // It has had this time: one that is made active again has the whole of it.
        draft.status.accumulated_past_execution_time_seconds = None;
        let told = format!("The maximum execution time ({seconds}s) exceeded");
        draft.tell(Event::warning(reason, told));
    }
}
