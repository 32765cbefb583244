//! When a Job starts, and when it starts anew: after each suspension, at no other time.

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::JobStatus;

use super::{JobBook, Violation, condition_of, ensure, has};

/// The status of a Job, written over the version that `job` describes, is about to be `new`.
pub(super) fn check(job: &JobBook, new: &JobStatus, now: Timestamp) -> Result<(), Violation> {
    let name = &job.name;
    let is_suspended = job.spec.suspend == Some(true);
    let (was_paused, is_paused) = (job.has("Suspended"), has(new, "Suspended"));
    ensure(was_paused == is_paused || is_paused == is_suspended, || {
        format!("{name} is said to be suspended ({is_paused}), but it is not so")
    })?;
    let (before, after) = (start(&job.status), start(new));
    let has_ended = has(new, "Complete") || has(new, "Failed");
    ensure(is_suspended || after.is_some(), || format!("{name} has no start"))?;
    ensure(after.is_none_or(|after| after <= now), || {
        format!("{name} starts at {after:?}, which is to come")
    })?;
    match (before, after) {
        (None, Some(_)) => {
            // The API wants the start of whatever has ended.
            ensure(!is_suspended || has_ended, || format!("{name} starts while it is suspended"))
        }
        (Some(_), None) => ensure(!was_paused && is_paused, || format!("{name} lost its start")),
        (Some(before), Some(after)) if before != after => ensure(was_paused && !is_paused, || {
            format!("the start of {name} moved from {before} to {after}")
        }),
        (None, None) | (Some(_), Some(_)) => Ok(()),
    }?;
    if was_paused && !is_paused {
        let resumed = condition_of(new, "Suspended").and_then(|it| it.last_transition_time.clone());
        let resumed = resumed.map(|time| time.0);
        return ensure(resumed == after, || {
            format!("{name} is resumed at {resumed:?}, but starts at {after:?}")
        });
    }
    Ok(())
}

fn start(status: &JobStatus) -> Option<Timestamp> {
    status.start_time.as_ref().map(|time| time.0)
}
