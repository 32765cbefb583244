//! Conditions of Jobs: found, made, and put in place without ever having a type twice.

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::{Job, JobCondition, JobStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use lockstep_api::reasons::job::{COMPLETE, FAILED};

/// The condition of this type that is true.
pub(crate) fn find_true<'a>(status: &'a JobStatus, kind: &str) -> Option<&'a JobCondition> {
    let mut conditions = status.conditions.iter().flatten();
    conditions.find(|condition| condition.type_ == kind && condition.status == "True")
}

/// The condition a Job has ended with, if it has.
pub(crate) fn finished(job: &Job) -> Option<&JobCondition> {
    let mut conditions = job.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.find(|condition| {
        (condition.type_ == COMPLETE || condition.type_ == FAILED) && condition.status == "True"
    })
}

/// A condition that is true since `now`.
pub(crate) fn new_true(kind: &str, reason: &str, message: &str, now: Timestamp) -> JobCondition {
    new(kind, "True", reason, message, now)
}

/// A condition.
pub(crate) fn new(
    kind: &str,
    status: &str,
    reason: &str,
    message: &str,
    now: Timestamp,
) -> JobCondition {
    let time = Some(Time(whole_second(now)));
    JobCondition {
        type_: kind.to_owned(),
        status: status.to_owned(),
        last_probe_time: time.clone(),
        last_transition_time: time,
        reason: Some(reason.to_owned()).filter(|text| !text.is_empty()),
        message: Some(message.to_owned()).filter(|text| !text.is_empty()),
    }
}

/// Puts a condition in the place of the first of its type, or at the end, and drops any other of
/// its type: clients look at the first one only.
pub(crate) fn put(status: &mut JobStatus, condition: JobCondition) {
    let conditions = status.conditions.get_or_insert_default();
    let first = conditions.iter().position(|known| known.type_ == condition.type_);
    let Some(first) = first else {
        conditions.push(condition);
        return;
    };
    let kind = condition.type_.clone();
    conditions[first] = condition;
    let mut at = 0;
    conditions.retain(|known| {
        at += 1;
        at - 1 <= first || known.type_ != kind
    });
}

/// The API keeps times to the second: what we write is what we will read.
pub(crate) fn whole_second(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}
