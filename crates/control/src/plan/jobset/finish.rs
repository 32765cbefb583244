//! What becomes of a JobSet that has ended.

use jiff::{SignedDuration, Timestamp};

use super::{Step, pass::Pass};

/// Deletes a set that was kept long enough, or says when that will be.
pub(super) fn expire(pass: &mut Pass<'_>, ended: Timestamp) {
    let Some(ttl) = pass.spec().ttl_seconds_after_finished else { return };
    let Ok(until) = ended.checked_add(SignedDuration::from_secs(i64::from(ttl))) else { return };
    if until > pass.now {
        pass.next = Some(until);
        return;
    }
    let uid = pass.jobset().metadata.uid.clone().unwrap_or_default();
    pass.steps.push(Step::DeleteJobSet { uid });
}
