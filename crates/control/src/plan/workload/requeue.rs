//! When a workload that was evicted may be tried again.

use jiff::Timestamp;
use lockstep_api::reasons::kueue::{evicted, requeued, workload as conditions};

use super::step::Draft;
use crate::plan::queue::{Around, LocalQueueAround, Stop, restarted};

/// Until when the workload is left alone.
pub(super) fn backs_off_until(draft: &Draft<'_>) -> Option<Timestamp> {
    let state = draft.status.requeue_state.as_ref()?;
    state.requeue_at.as_ref().map(|at| at.0).filter(|at| draft.now < *at)
}

/// Lets a workload back into its queue for which whatever kept it out is over. The time before
/// which it was not tried goes in the same write; how often it came back stays.
pub(super) fn come_back(draft: &mut Draft<'_>, around: &Around) {
    if draft.is_true(conditions::QUOTA_RESERVED) {
        return;
    }
    if let Some(state) = &mut draft.status.requeue_state {
        state.requeue_at = None;
    }
    let Some((reason, message)) = returns(draft, around) else { return };
    draft.say((conditions::REQUEUED, true), reason, message);
}

/// Why the workload comes back, if it does.
fn returns(draft: &Draft<'_>, around: &Around) -> Option<(&'static str, &'static str)> {
    let kept_out = draft.status.condition(conditions::REQUEUED)?;
    if kept_out.status != "False" {
        return None;
    }
    match kept_out.reason.as_str() {
        evicted::PODS_READY_TIMEOUT | evicted::ADMISSION_CHECK => {
            Some((requeued::BACKOFF_FINISHED, "The workload backoff was finished"))
        }
        evicted::LOCAL_QUEUE_STOPPED => {
            let works =
                matches!(around.local_queue, LocalQueueAround::There { stop: Stop::No, .. });
            restarted(&kept_out.reason).filter(|_| works)
        }
        evicted::CLUSTER_QUEUE_STOPPED => {
            let queue = around.cluster_queue.as_ref();
            let works = queue.is_some_and(|queue| {
                !queue.is_missing && !queue.is_terminating && queue.stop == Stop::No
            });
            restarted(&kept_out.reason).filter(|_| works)
        }
        // Whatever had deactivated it: upstream forgets those that a limit has.
        reason if reason.starts_with(evicted::DEACTIVATED) => {
            Some((requeued::REACTIVATED, "The workload was reactivated"))
        }
        _ => None,
    }
}
