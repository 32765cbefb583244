//! What must be true once nothing is left to happen, or nothing for now.

use lockstep_control::plan::job::Waiting;

use super::{
    Checker, JobBook, Phase, PodBook, Violation,
    counts::{Side, count, indexes, listed},
    ensure,
    indexes::check_all_told,
};
use crate::world::Sort;

impl Checker {
    /// Faults have ended and everything has come to rest: every Job of ours is finished, or says
    /// why it waits in its queue, and no pod is held back.
    ///
    /// # Errors
    /// The first thing found that is not as it should be.
    pub fn check_converged(&self, sort: Sort) -> Result<(), Violation> {
        for job in self.jobs.values().filter(|job| !job.is_gone && job.is_ours()) {
            ensure(!job.is_deleting, || format!("{} never goes", job.name))?;
            let may_wait = sort == Sort::Queues;
            ensure(job.is_finished() || may_wait, || format!("{} never ends", job.name))?;
            ensure(job.spec.ttl_seconds_after_finished.is_none(), || {
                format!("{} outlives the time it has after its end", job.name)
            })?;
        }
        for pod in self.pods.values().filter(|pod| !pod.is_gone && pod.is_pinned) {
            let owner = pod.owner.as_ref().and_then(|owner| self.jobs.get(owner));
            let is_theirs = owner.is_some_and(|job| !job.is_ours() && !job.is_gone);
            ensure(is_theirs, || format!("pod {} keeps its finalizer for ever", pod.name))?;
        }
        if sort == Sort::Queues {
            self.check_queues_converged()?;
        }
        self.check_sets_converged()
    }

    /// The only controller there is knows everything there is to know and does nothing about the
    /// Job of this name: its status says all there is to say.
    ///
    /// # Errors
    /// What it does not say, or what should have been done.
    pub fn check_rest(&self, name: &str, waiting: &Waiting) -> Result<(), Violation> {
        let mut jobs = self.jobs.iter().filter(|(_, job)| *job.name == *name && !job.is_gone);
        let Some((uid, job)) = jobs.next() else { return Ok(()) };
        let is_unsure = matches!(waiting, Waiting::CatchingUp);
        if is_unsure || !job.is_ours() || job.is_finished() || job.is_deleting {
            return Ok(());
        }
        let ours = || self.pods.values().filter(|pod| pod.owner.as_ref() == Some(uid));
        let count = |wanted: &dyn Fn(&PodBook) -> bool| ours().filter(|pod| wanted(pod)).count();
        let status = &job.status;
        for (what, told, is) in [
            ("active", status.active, count(&PodBook::is_active)),
            ("ready", status.ready, count(&|pod| pod.is_active() && pod.is_ready)),
            ("terminating", status.terminating, count(&PodBook::is_terminating)),
        ] {
            ensure(usize::try_from(told.unwrap_or_default()) == Ok(is), || {
                format!("{name} rests with {is} pods {what}, its status says {told:?}")
            })?;
        }
        let is_suspended = job.spec.suspend == Some(true);
        ensure(job.has("Suspended") == is_suspended || is_decided(job), || {
            format!("{name} rests without a word about its suspension ({is_suspended})")
        })?;
        // The last of an index that is to be replaced waits with its finalizer for its successor.
        let waits =
            |pod: &PodBook| job.spec.backoff_limit_per_index.is_some() && pod.index.is_some();
        let left = ours()
            .find(|pod| pod.is_pinned && !pod.is_gone && pod.phase != Phase::Alive && !waits(pod));
        ensure(left.is_none(), || {
            let left = left.map(|pod| &*pod.name).unwrap_or_default();
            format!("{name} rests, but {left} is not counted")
        })?;
        check_all_told(job, ours().filter(|pod| pod.is_pinned), status)?;
        let is_running = matches!(waiting, Waiting::Running { .. });
        let (active, wanted) = (count(&PodBook::is_active), wanted(job));
        ensure(!is_running || wanted.is_none_or(|wanted| active == wanted), || {
            format!("{name} rests with {active} active pods, {wanted:?} are wanted")
        })
    }

    /// How many Jobs, or JobSets where there are any, have ended well and how many badly, for
    /// people.
    pub fn endings(&self, sort: Sort) -> (usize, usize) {
        let ended = |condition: &str| self.jobs.values().filter(|job| job.has(condition)).count();
        match sort {
            Sort::Jobs | Sort::Queues => (ended("Complete"), ended("Failed")),
            Sort::JobSets => self.set_endings(),
        }
    }
}

fn is_decided(job: &JobBook) -> bool {
    job.has("SuccessCriteriaMet") || job.has("FailureTarget")
}

/// How many pods a Job should have that nothing holds up; nothing when any number is right.
fn wanted(job: &JobBook) -> Option<usize> {
    let status = &job.status;
    let parallelism = job.spec.parallelism.unwrap_or_default();
    if is_decided(job) || job.spec.suspend == Some(true) {
        return Some(0);
    }
    let listed = i32::try_from(listed(status, Side::Succeeded).len()).unwrap_or(i32::MAX);
    let succeeded = count(status, Side::Succeeded).saturating_add(listed);
    let most = match job.spec.completions {
        None if succeeded > 0 => return None,
        None => parallelism,
        Some(completions) if job.is_indexed() => {
            let done = indexes(status.completed_indexes.as_deref().unwrap_or_default()).len();
            let failed = indexes(status.failed_indexes.as_deref().unwrap_or_default()).len();
            let over = i32::try_from(done + failed).unwrap_or(i32::MAX);
            completions.saturating_sub(over)
        }
        Some(completions) => completions.saturating_sub(succeeded),
    };
    usize::try_from(most.clamp(0, parallelism)).ok()
}
