//! What the queues of a workload mean for it, and that `Admitted` follows from what is reserved.

use lockstep_api::labels::kueue as labels;
use lockstep_api::reasons::kueue::{admitted, quota_reserved, workload as conditions};

use super::step::Draft;
use crate::plan::queue::{Around, LocalQueueAround, Stop};

/// Brings `QuotaReserved` and `Admitted` in line with what is there. Reasons that the scheduler has
/// given stay, unless a queue is in the way.
pub(super) fn sync(draft: &mut Draft<'_>, around: &Around) {
    if draft.is_true(conditions::QUOTA_RESERVED) {
        if !draft.is_true(conditions::ADMITTED) && !draft.is_true(conditions::EVICTED) {
            reserved(draft, around);
        }
    } else if let Some((reason, message)) = in_the_way(draft, around) {
        draft.say((conditions::QUOTA_RESERVED, false), reason, &message);
    } else {
        out_of_the_way(draft);
    }
    admit(draft);
}

/// Quota is given back by those who have not begun when their queue stops.
fn reserved(draft: &mut Draft<'_>, around: &Around) {
    let Some(queue) = &around.cluster_queue else { return };
    let message = if around.local_stop() != Stop::No {
        format!("LocalQueue {} is stopped", draft.workload.spec.queue_name)
    } else if queue.is_missing || queue.is_terminating {
        format!("ClusterQueue {} is terminating or missing", queue.name)
    } else if queue.stop != Stop::No {
        format!("ClusterQueue {} is stopped", queue.name)
    } else {
        return;
    };
    draft.say((conditions::QUOTA_RESERVED, false), quota_reserved::SUSPENDED, &message);
    draft.status.admission = None;
}

/// What keeps the workload from even being tried.
fn in_the_way(draft: &Draft<'_>, around: &Around) -> Option<(&'static str, String)> {
    let queue = &draft.workload.spec.queue_name;
    let annotations = draft.workload.metadata.annotations.as_ref();
    let gate = annotations.and_then(|all| all.get(labels::ADMISSION_GATED_BY));
    if let Some(gate) = gate.filter(|gate| !gate.is_empty()) {
        return Some((quota_reserved::ADMISSION_GATED, format!("Admission is gated by: {gate}")));
    }
    let local = match around.local_queue {
        LocalQueueAround::Missing => {
            let message = format!("LocalQueue {queue} doesn't exist");
            return Some((quota_reserved::MISCONFIGURED, message));
        }
        LocalQueueAround::There { stop, .. } => stop,
    };
    if local != Stop::No {
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

/// What was said of a queue that is in nobody's way any more is not true any more.
fn out_of_the_way(draft: &mut Draft<'_>) {
    let stale = [
        quota_reserved::MISCONFIGURED,
        quota_reserved::SUSPENDED,
        quota_reserved::DEACTIVATED,
        quota_reserved::ADMISSION_GATED,
    ];
    let said = draft.status.condition(conditions::QUOTA_RESERVED);
    // A namespace that does not match is the scheduler's finding.
    if said.is_some_and(|said| {
        stale.contains(&said.reason.as_str()) && !said.message.contains("namespace")
    }) {
        let message = "Workload is pending evaluation in the scheduling queue";
        draft.say((conditions::QUOTA_RESERVED, false), quota_reserved::PENDING_EVALUATION, message);
    }
}

/// Admitted is who has quota, and whose checks are all ready.
fn admit(draft: &mut Draft<'_>) {
    let has_quota = draft.is_true(conditions::QUOTA_RESERVED);
    let is_ready = draft.status.admission_checks.iter().all(|check| check.state == "Ready");
    let was = draft.is_true(conditions::ADMITTED);
    if has_quota && is_ready && !was {
        draft.say((conditions::ADMITTED, true), admitted::ADMITTED, "The workload is admitted");
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
