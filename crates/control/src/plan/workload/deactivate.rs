//! Workloads that are not active: evicted, and with a clean slate for when they are again.

use lockstep_api::reasons::kueue::{evicted, quota_reserved, workload as conditions};

use super::evict::{self, Eviction};
use super::step::Draft;

const MESSAGE: &str = "The workload is deactivated";

/// Does for a workload that was made inactive what follows from it. What it was to be deactivated
/// for becomes part of the reason.
pub(super) fn carry_through(draft: &mut Draft<'_>) {
    let target = draft.status.condition(conditions::DEACTIVATION_TARGET).cloned();
    // Who leaves already, for whatever reason, is not told again.
    if !draft.is_true(conditions::EVICTED) {
        let cause = target.as_ref().filter(|target| target.status == "True");
        let (reason, message) = match cause {
            Some(target) => (
                format!("{}{}", evicted::DEACTIVATED_DUE_TO, target.reason),
                format!("{MESSAGE} due to {}", target.message),
            ),
            None => (evicted::DEACTIVATED.to_owned(), MESSAGE.to_owned()),
        };
        evict::evict(
            draft,
            Eviction {
                reason: &reason,
                message: &message,
                counted_as: evicted::DEACTIVATED,
                cause: cause.map_or("", |target| &target.reason),
            },
        );
    }
    draft.status.conditions.retain(|known| known.type_ != conditions::DEACTIVATION_TARGET);
    draft.status.requeue_state = None;
    if !draft.is_true(conditions::QUOTA_RESERVED) {
        draft.say((conditions::QUOTA_RESERVED, false), quota_reserved::DEACTIVATED, MESSAGE);
    }
}
