//! Conditions of Workloads: how they are read, and how they replace each other.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use lockstep_api::kueue::{Workload, WorkloadStatus};
use lockstep_api::reasons::kueue::workload as types;

/// How long a message may be, in bytes.
const MESSAGE_MAX: usize = 32 * 1024;

/// The condition of this type.
pub(super) fn find<'a>(workload: &'a Workload, kind: &str) -> Option<&'a Condition> {
    let conditions = workload.status.iter().flat_map(|status| &status.conditions);
    conditions.into_iter().find(|condition| condition.type_ == kind)
}

/// The condition of this type, if it is true.
pub(super) fn find_true<'a>(workload: &'a Workload, kind: &str) -> Option<&'a Condition> {
    find(workload, kind).filter(|condition| is_true(condition))
}

pub(super) fn is_true(condition: &Condition) -> bool {
    condition.status == "True"
}

pub(super) fn is_admitted(workload: &Workload) -> bool {
    find_true(workload, types::ADMITTED).is_some()
}

pub(super) fn holds_quota(workload: &Workload) -> bool {
    find_true(workload, types::QUOTA_RESERVED).is_some()
}

pub(super) fn is_finished(workload: &Workload) -> bool {
    find_true(workload, types::FINISHED).is_some()
}

/// A condition that became what it is at `now`, as far as is known.
pub(super) fn new(
    (kind, is_true): (&str, bool),
    reason: &str,
    message: &str,
    (workload, now): (&Workload, Timestamp),
) -> Condition {
    Condition {
        type_: kind.to_owned(),
        status: if is_true { "True" } else { "False" }.to_owned(),
        reason: reason.to_owned(),
        message: cut(message).to_owned(),
        last_transition_time: Time(whole_second(now)),
        observed_generation: workload.metadata.generation,
    }
}

/// Puts a condition in the place of the one of its type, or at the end. Its time is that of the
/// last change of its status.
pub(super) fn put(status: &mut WorkloadStatus, mut condition: Condition) {
    let Some(known) = status.conditions.iter_mut().find(|known| known.type_ == condition.type_)
    else {
        status.conditions.push(condition);
        return;
    };
    if known.status == condition.status {
        condition.last_transition_time = known.last_transition_time.clone();
    }
    *known = condition;
}

/// Puts a condition in the place of the one of its type, or at the end, with its own time.
pub(super) fn put_timed(status: &mut WorkloadStatus, condition: Condition) {
    status.conditions.retain(|known| known.type_ != condition.type_);
    status.conditions.push(condition);
}

/// The API keeps times to the second: what we write is what we will read.
pub(super) fn whole_second(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

fn cut(message: &str) -> &str {
    &message[..message.floor_char_boundary(MESSAGE_MAX)]
}
