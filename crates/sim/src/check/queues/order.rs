//! Nobody passes the head of a queue that is strict about the order.

use std::{cmp::Reverse, collections::BTreeSet};

use jiff::Timestamp;
use lockstep_api::{
    kueue::RequeuingTimestamp,
    reasons::kueue::{evicted, quota_reserved, workload as kinds},
};

use super::{Checker, QueueBook, Violation, WorkBook, ensure, holds};

/// Who comes first.
type Rank<'a> = (Reverse<i32>, Timestamp, Option<&'a str>);

impl Checker {
    /// The scheduler knows all there is to know and admits these: in a strict queue they must be
    /// the first ones. `is_refused` says of whom the API has not taken the admission.
    ///
    /// # Errors
    /// Who was passed, and by whom.
    pub fn check_admissions(
        &self,
        now: Timestamp,
        admitted: &BTreeSet<String>,
        is_refused: impl Fn(&str) -> bool,
    ) -> Result<(), Violation> {
        let queues = &self.queues;
        for book in queues.there().filter(|book| admitted.contains(&*book.name)) {
            let Some(name) = queues.queue_of(&book.workload) else { continue };
            if queues.clusters.get(name).is_none_or(|it| it.spec.queueing_strategy != "StrictFIFO")
            {
                continue;
            }
            let passed = queues.there().find(|other| {
                queues.queue_of(&other.workload) == Some(name)
                    && queues.rank(other) < queues.rank(book)
                    && !admitted.contains(&*other.name)
                    && queues.may_be_tried(other, now)
                    && !is_refused(&other.name)
            });
            ensure(passed.is_none(), || {
                let passed = passed.map(|book| &*book.name).unwrap_or_default();
                format!("{} is admitted before {passed}, which was first", book.name)
            })?;
        }
        Ok(())
    }
}

impl QueueBook {
    /// The place of a Workload in its queue.
    pub(super) fn rank<'a>(&self, book: &'a WorkBook) -> Rank<'a> {
        let workload = &book.workload;
        let created = workload.metadata.creation_timestamp.as_ref().map(|at| at.0);
        let conditions = workload.status.iter().flat_map(|status| &status.conditions);
        let mut evicted = conditions.filter(|it| {
            let is_late = it.reason == evicted::PODS_READY_TIMEOUT;
            it.type_ == kinds::EVICTED && it.status == "True" && is_late
        });
        let by_eviction = self.comes_back_by(workload) == RequeuingTimestamp::Eviction;
        let evicted = evicted.next().map(|it| it.last_transition_time.0).filter(|_| by_eviction);
        let at = evicted.or(created).unwrap_or_default();
        (Reverse(workload.spec.priority.unwrap_or(0)), at, workload.metadata.uid.as_deref())
    }

    /// Whether nothing keeps a Workload from being tried.
    pub(super) fn may_be_tried(&self, book: &WorkBook, now: Timestamp) -> bool {
        let workload = &book.workload;
        let is_out = workload.metadata.deletion_timestamp.is_some()
            || book.is(kinds::FINISHED)
            || holds(workload)
            || !book.is_active()
            || book.reason(kinds::QUOTA_RESERVED) == quota_reserved::ON_HOLD;
        let state = workload.status.as_ref().and_then(|status| status.requeue_state.as_ref());
        let until = state.and_then(|state| state.requeue_at.as_ref()).map(|at| at.0);
        let conditions = workload.status.iter().flat_map(|status| &status.conditions);
        // Who was kept out by a queue that works again is in it.
        let by_queue = [evicted::CLUSTER_QUEUE_STOPPED, evicted::LOCAL_QUEUE_STOPPED];
        let mut kept_out = conditions.filter(|it| {
            let is_out = it.status == "False" && !by_queue.contains(&it.reason.as_str());
            it.type_ == kinds::REQUEUED && is_out
        });
        let is_waiting = until.is_some_and(|until| until > now) || kept_out.next().is_some();
        !is_out && !is_waiting && self.is_open(book)
    }

    fn is_open(&self, book: &WorkBook) -> bool {
        let goes = |policy: Option<&str>| policy.is_none_or(|it| it.is_empty() || it == "None");
        let local = self.locals.get(&book.workload.spec.queue_name);
        let cluster = local.and_then(|local| self.clusters.get(&local.spec.cluster_queue));
        local.is_some_and(|it| goes(it.spec.stop_policy.as_deref()))
            && cluster.is_some_and(|it| goes(it.spec.stop_policy.as_deref()))
    }
}
