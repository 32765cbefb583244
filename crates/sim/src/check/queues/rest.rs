//! What must be true of queues once nothing is left to happen, or not for long.

use jiff::{SignedDuration, Timestamp};
use lockstep_api::reasons::kueue::{quota_reserved, workload as kinds};

use super::{Checker, Violation, WorkBook, ensure, is_queued, quota::wanted};

/// For how long a Job may run that nobody has admitted, once nothing goes wrong any more: it is
/// seen, it is stopped, its pods take a moment to go.
const REACTION: SignedDuration = SignedDuration::from_secs(30);

impl Checker {
    /// Faults have ended: no Job runs for long that nobody has admitted.
    ///
    /// # Errors
    /// Which one does.
    pub fn check_running(&mut self, now: Timestamp) -> Result<(), Violation> {
        let jobs = self.jobs.iter().map(|(uid, job)| {
            let runs = !job.is_gone
                && !job.is_deleting
                && !job.is_finished()
                && is_queued(job)
                && job.spec.suspend != Some(true);
            (uid, &job.name, runs)
        });
        let sets = self.sets.iter().map(|(uid, set)| {
            let runs = set.is_queued() && set.runs();
            (uid, &set.name, runs)
        });
        for (uid, name, runs) in jobs.chain(sets) {
            let is_admitted = || {
                let mut of_job = self.queues.there();
                of_job.any(|book| book.owner.as_deref() == Some(&**uid) && book.is(kinds::ADMITTED))
            };
            if !runs || is_admitted() {
                self.queues.unadmitted.remove(uid);
                continue;
            }
            let since = *self.queues.unadmitted.entry(uid.clone()).or_insert(now);
            ensure(now.duration_since(since) < REACTION, || {
                format!("{name} runs since {since}, and nobody has admitted it")
            })?;
        }
        Ok(())
    }

    /// Faults have ended and everything has come to rest.
    pub(in crate::check) fn check_queues_converged(&self) -> Result<(), Violation> {
        let jobs = self.jobs.iter().filter(|(_, job)| !job.is_gone && is_queued(job));
        let jobs = jobs.map(|(uid, job)| (uid, &job.name, job.is_finished()));
        let sets = self.sets.iter().filter(|(_, set)| !set.is_gone() && set.is_queued());
        let sets = sets.map(|(uid, set)| (uid, &set.name, set.is_finished()));
        for (uid, name, is_finished) in jobs.chain(sets) {
            let book = self.queues.of_job(uid);
            if is_finished {
                let is_told = book.is_none_or(|book| book.is(kinds::FINISHED));
                ensure(is_told, || format!("{name} has ended, its Workload has not"))?;
                continue;
            }
            let Some(book) = book else {
                return Err(Violation(format!("{name} never gets a Workload")));
            };
            self.check_waits(name, book)?;
        }
        for book in self.queues.there() {
            let name = &book.name;
            ensure(book.workload.metadata.deletion_timestamp.is_none(), || {
                format!("{name} never goes")
            })?;
            if book.is(kinds::FINISHED) {
                continue;
            }
            ensure(!book.is(kinds::QUOTA_RESERVED) && !book.is(kinds::ADMITTED), || {
                format!("{name} holds quota for nothing")
            })?;
            let is_back = !book.says_no(kinds::REQUEUED) || !book.is_active();
            ensure(!book.is(kinds::EVICTED) || is_back, || {
                format!("{name} was evicted ({}) and never comes back", book.reason(kinds::EVICTED))
            })?;
        }
        Ok(())
    }

    /// A Job that has not ended can never run, was given up, or is behind one that can never run
    /// in a queue that is strict about the order.
    fn check_waits(&self, job: &str, book: &WorkBook) -> Result<(), Violation> {
        let reason = book.reason(kinds::QUOTA_RESERVED);
        if !book.is_active() {
            return ensure(reason == quota_reserved::DEACTIVATED, || {
                format!("{job} is deactivated and does not say so, but {reason:?}")
            });
        }
        let queues = &self.queues;
        let name = queues.queue_of(&book.workload).unwrap_or_default();
        let Some(queue) = queues.clusters.get(name) else {
            return Err(Violation(format!("{job} waits in a queue that is missing")));
        };
        let never = |book: &WorkBook| {
            let flavors = queue.spec.resource_groups.iter().flat_map(|group| &group.flavors);
            let mut most = flavors.map(|flavor| queues.most(queue, &flavor.name));
            most.all(|most| most < wanted(&book.workload))
        };
        if never(book) {
            let is_told = [quota_reserved::EXCEEDS_MAX_QUOTA, quota_reserved::NO_MATCHING_FLAVOR]
                .contains(&reason);
            let is_strict = queue.spec.queueing_strategy == "StrictFIFO";
            return ensure(is_told || is_strict, || {
                format!("{job} can never run and does not say so, but {reason:?}")
            });
        }
        let is_behind = queue.spec.queueing_strategy == "StrictFIFO"
            && queues.there().any(|other| {
                queues.queue_of(&other.workload) == Some(name)
                    && !other.is(kinds::FINISHED)
                    && other.is_active()
                    && queues.rank(other) < queues.rank(book)
                    && never(other)
            });
        ensure(is_behind, || format!("{job} never runs: {reason}"))
    }
}
