//! What the queues of a workload mean for it, and that `Admitted` follows from what is reserved.

use lockstep_api::labels::kueue as labels;
use lockstep_api::reasons::kueue::{admitted, quota_reserved, workload as conditions};

use super::step::Draft;
use crate::plan::Event;
use crate::plan::queue::{Around, LocalQueueAround, Stop};

/// Brings `QuotaReserved` and `Admitted` in line with what is there. Reasons that the scheduler has
/// given stay, unless a queue is in the way.
pub(super) fn sync(draft: &mut Draft<'_>, around: &Around) {
    if draft.is_true(conditions::QUOTA_RESERVED) {
        if !draft.is_true(conditions::ADMITTED) && !draft.is_true(conditions::EVICTED) {
            reserved(draft, around);
        }
    } else {
        pending(draft, around);
    }
    admit(draft);
}

/// Quota is given back by those who have not begun when their queue stops.
fn reserved(draft: &mut Draft<'_>, around: &Around) {
    let local = &draft.workload.spec.queue_name;
    let message = match around.local_queue {
        LocalQueueAround::Missing | LocalQueueAround::There { is_terminating: true, .. } => {
            Some(format!("LocalQueue {local} is terminating or missing"))
        }
        LocalQueueAround::There { stop: Stop::No, .. } => {
            around.cluster_queue.as_ref().and_then(|queue| {
                let name = &queue.name;
                if queue.is_missing || queue.is_terminating {
                    return Some(format!("ClusterQueue {name} is terminating or missing"));
                }
                (queue.stop != Stop::No).then(|| format!("ClusterQueue {name} is stopped"))
            })
        }
        LocalQueueAround::There { .. } => Some(format!("LocalQueue {local} is stopped")),
    };
    if let Some(message) = message {
        draft.say((conditions::QUOTA_RESERVED, false), quota_reserved::SUSPENDED, &message);
        draft.status.admission = None;
    }
}

/// Says what keeps a workload from being tried, and takes it back when nothing does.
fn pending(draft: &mut Draft<'_>, around: &Around) {
    let said = draft.status.condition(conditions::QUOTA_RESERVED);
    let said = said.map(|said| said.reason.clone()).unwrap_or_default();
    if said == quota_reserved::ON_HOLD {
        return;
    }
    let was_gated = said == quota_reserved::ADMISSION_GATED;
    let gate = gate(draft).map(str::to_owned);
    match &gate {
        Some(gate) if !was_gated => {
            let message = format!("Workload admission is gated by: {gate}");
            draft.tell(Event::normal(quota_reserved::ADMISSION_GATED, message));
        }
        None if was_gated => {
            let message = "Admission gate cleared, workload is now admissible";
            draft.tell(Event::normal("AdmissionGateCleared", message));
        }
        _ => {}
    }
    let wanted = match gate {
        Some(gate) => {
            Some((quota_reserved::ADMISSION_GATED, format!("Admission is gated by: {gate}")))
        }
        None => in_the_way(draft, around).or_else(|| out_of_the_way(draft, around)),
    };
    if let Some((reason, message)) = wanted {
        draft.say((conditions::QUOTA_RESERVED, false), reason, &message);
    }
}

/// Who keeps the workload from being admitted, by an annotation.
fn gate<'a>(draft: &'a Draft<'_>) -> Option<&'a str> {
    let annotations = draft.workload.metadata.annotations.as_ref()?;
    annotations.get(labels::ADMISSION_GATED_BY).map(String::as_str).filter(|gate| !gate.is_empty())
}

/// What of its queues keeps the workload from even being tried.
fn in_the_way(draft: &Draft<'_>, around: &Around) -> Option<(&'static str, String)> {
    let queue = &draft.workload.spec.queue_name;
    let is_stopped = match around.local_queue {
        LocalQueueAround::Missing => {
            let message = format!("LocalQueue {queue} doesn't exist");
            return Some((quota_reserved::MISCONFIGURED, message));
        }
        LocalQueueAround::There { stop, is_terminating, .. } => stop != Stop::No || is_terminating,
    };
    if is_stopped {
        return Some((quota_reserved::SUSPENDED, format!("LocalQueue {queue} is inactive")));
    }
    let behind = around.cluster_queue.as_ref()?;
    if behind.is_missing {
        let message = format!("ClusterQueue {} doesn't exist", behind.name);
        return Some((quota_reserved::MISCONFIGURED, message));
    }
    if behind.is_terminating || !behind.is_active {
        let message = format!("ClusterQueue {} is inactive", behind.name);
        return Some((quota_reserved::SUSPENDED, message));
    }
    None
}

/// What was said of something that is in nobody's way any more is not true any more, unless the
/// scheduler has found it: that of a workload that asks for what cannot be, or where it may not.
fn out_of_the_way(draft: &Draft<'_>, around: &Around) -> Option<(&'static str, String)> {
    let said = draft.status.condition(conditions::QUOTA_RESERVED)?;
    let message = match said.reason.as_str() {
        quota_reserved::ADMISSION_GATED => {
            "AdmissionGatedBy cleared, waiting for quota reservation"
        }
        _ if around.is_found => return None,
        quota_reserved::MISCONFIGURED | quota_reserved::SUSPENDED | quota_reserved::DEACTIVATED => {
            "Workload is pending evaluation in the scheduling queue"
        }
        _ => return None,
    };
    Some((quota_reserved::PENDING_EVALUATION, message.to_owned()))
}

/// Admitted is who has quota, and whose checks are all ready.
fn admit(draft: &mut Draft<'_>) {
    let has_quota = draft.is_true(conditions::QUOTA_RESERVED);
    let is_ready = draft.status.admission_checks.iter().all(|check| check.state == "Ready");
    let was = draft.is_true(conditions::ADMITTED);
    if has_quota && is_ready && !was {
        draft.say((conditions::ADMITTED, true), admitted::ADMITTED, "The workload is admitted");
        tell_admitted(draft);
    } else if was && !has_quota {
        let now = draft.now;
        draft.status.add_execution_time(now);
        let message = "The workload has no reservation";
        draft.say((conditions::ADMITTED, false), admitted::NO_RESERVATION, message);
    } else if was && !is_ready {
        let now = draft.now;
        draft.status.add_execution_time(now);
        let message = "The workload has not all checks ready";
        draft.say((conditions::ADMITTED, false), admitted::UNSATISFIED_CHECKS, message);
    }
}

fn tell_admitted(draft: &mut Draft<'_>) {
    let Some(given) = &draft.status.admission else { return };
    let reserved = draft.status.condition(conditions::QUOTA_RESERVED);
    let since = reserved.map_or(draft.now, |reserved| reserved.last_transition_time.0);
    let waited = draft.now.duration_since(since).as_secs().max(0);
    let queue = &given.cluster_queue;
    let message =
        format!("Admitted by ClusterQueue {queue}, wait time since reservation was {waited}s");
    draft.tell(Event::normal(admitted::ADMITTED, message));
}
