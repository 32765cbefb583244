//! What must be true once nothing is left to happen.

use super::{Checker, Violation, ensure};

impl Checker {
    /// Faults have ended and everything has come to rest: every Job of ours is finished, and no
    /// pod is held back.
    ///
    /// # Errors
    /// The first thing found that is not as it should be.
    pub fn check_converged(&self) -> Result<(), Violation> {
        for job in self.jobs.values().filter(|job| !job.is_gone && job.is_ours()) {
            ensure(!job.is_deleting, || format!("{} never goes", job.name))?;
            ensure(job.is_finished(), || format!("{} never ends", job.name))?;
            ensure(job.spec.ttl_seconds_after_finished.is_none(), || {
                format!("{} outlives the time it has after its end", job.name)
            })?;
        }
        for pod in self.pods.values().filter(|pod| !pod.is_gone && pod.is_pinned) {
            let owner = pod.owner.as_ref().and_then(|owner| self.jobs.get(owner));
            let is_theirs = owner.is_some_and(|job| !job.is_ours() && !job.is_gone);
            ensure(is_theirs, || format!("pod {} keeps its finalizer for ever", pod.name))?;
        }
        Ok(())
    }

    /// How many Jobs have ended well and how many badly, for people.
    pub fn endings(&self) -> (usize, usize) {
        let ended = |condition: &str| self.jobs.values().filter(|job| job.has(condition)).count();
        (ended("Complete"), ended("Failed"))
    }
}
