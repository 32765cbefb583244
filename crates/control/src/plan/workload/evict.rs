//! Evictions: the order to stop, which the job follows. Quota is held until it has.

use lockstep_api::kueue::EvictionCount;
use lockstep_api::reasons::kueue::{evicted, workload as conditions};

use super::step::{Draft, Fact};
use crate::plan::Event;
use crate::plan::queue::{Around, Stop};

/// Why a workload is evicted.
pub(super) struct Eviction<'a> {
    pub(super) reason: &'a str,
    pub(super) message: &'a str,
    /// The reason it is counted under.
    pub(super) counted_as: &'a str,
    /// What was behind it; empty if there is nothing to say.
    pub(super) cause: &'a str,
}

/// Evicts a workload: one write with the condition and all that goes with it.
pub(super) fn evict(draft: &mut Draft<'_>, eviction: Eviction<'_>) {
    let Eviction { reason, message, counted_as, cause } = eviction;
    draft.say((conditions::EVICTED, true), reason, message);
    count(draft, counted_as, cause);
    reset_checks(draft);
    draft.status.forget_places();
    draft.tell(Event::normal(&format!("EvictedDueTo{reason}"), message));
    let cluster_queue = draft.status.admission.as_ref().map(|given| given.cluster_queue.clone());
    draft.note(Fact::Evicted {
        cluster_queue: cluster_queue.unwrap_or_default(),
        reason: counted_as.to_owned(),
        cause: cause.to_owned(),
    });
}

/// Evicts a workload whose queue is stopped, with all who run in it. Says whether it was.
pub(super) fn stopped(draft: &mut Draft<'_>, around: &Around) -> bool {
    let (reason, message) = if around.local_stop() == Stop::HoldAndDrain {
        (evicted::LOCAL_QUEUE_STOPPED, "The LocalQueue is stopped")
    } else if around.cluster_queue.as_ref().is_some_and(|queue| queue.stop == Stop::HoldAndDrain) {
        (evicted::CLUSTER_QUEUE_STOPPED, "The ClusterQueue is stopped")
    } else {
        return false;
    };
    evict(draft, Eviction { reason, message, counted_as: reason, cause: "" });
    true
}

fn count(draft: &mut Draft<'_>, reason: &str, cause: &str) {
    let counts = &mut draft.status.scheduling_stats.get_or_insert_default().evictions;
    let known =
        counts.iter_mut().find(|known| known.reason == reason && known.underlying_cause == cause);
    match known {
        Some(known) => known.count = known.count.saturating_add(1),
        None => counts.push(EvictionCount {
            reason: reason.to_owned(),
            underlying_cause: cause.to_owned(),
            count: 1,
        }),
    }
}

/// What others said of this admission says nothing of the next.
fn reset_checks(draft: &mut Draft<'_>) {
    let now = lockstep_api::kueue::whole_second(draft.now);
    for check in draft.status.admission_checks.iter_mut().filter(|one| one.state != "Pending") {
        if check.state == "Retry" {
            check.retry_count = Some(check.retry_count.unwrap_or(0).saturating_add(1));
        }
        check.message = format!("Reset to Pending after eviction. Previously: {}", check.state);
        "Pending".clone_into(&mut check.state);
        check.last_transition_time =
            Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(now));
    }
}
