//! What must be true of JobSets once nothing is left to happen, or nothing for now.

use std::collections::BTreeSet;

use lockstep_api::jobset::{ReplicatedJobStatus, StartupOrder};
use lockstep_control::plan::jobset::Waiting;

use super::{Checker, JobBook, Place, SetBook, Violation, ensure, has, is_ready};

impl Checker {
    /// Faults have ended and everything has come to rest.
    pub(in crate::check) fn check_sets_converged(&self) -> Result<(), Violation> {
        for (uid, set) in self.sets.iter().filter(|(_, set)| !set.is_gone && set.is_ours()) {
            let name = &set.name;
            ensure(!set.is_deleting, || format!("set {name} never goes"))?;
            if set.is_queued() && !set.is_finished() {
                self.check_counts(uid, set)?;
                continue;
            }
            ensure(set.is_finished(), || format!("set {name} never ends"))?;
            ensure(set.set.spec.ttl_seconds_after_finished.is_none(), || {
                format!("set {name} outlives the time it has after its end")
            })?;
            let left = self.children(uid).find(|(_, job)| !job.is_gone && !job.is_finished());
            ensure(left.is_none(), || {
                let left = left.map(|(_, job)| &*job.name).unwrap_or_default();
                format!("set {name} has ended, Job {left} has not")
            })?;
            self.check_counts(uid, set)?;
        }
        Ok(())
    }

    /// How many sets have ended well and how many badly.
    pub(in crate::check) fn set_endings(&self) -> (usize, usize) {
        let ended = |kind: &str| self.sets.values().filter(|set| has(&set.status, kind)).count();
        (ended("Completed"), ended("Failed"))
    }

    /// The only controller there is knows everything there is to know and does nothing about the
    /// set of this name.
    ///
    /// # Errors
    /// What its status does not say, or what should have been done.
    pub fn check_set_rest(&self, name: &str, waiting: &Waiting) -> Result<(), Violation> {
        let mut sets = self.sets.iter().filter(|(_, set)| *set.name == *name && !set.is_gone);
        let Some((uid, set)) = sets.next() else { return Ok(()) };
        if !set.is_ours() || set.is_deleting || *waiting == Waiting::CatchingUp {
            return Ok(());
        }
        if let Waiting::Invalid(why) = waiting {
            return Err(Violation(format!("set {name} cannot be worked on: {why}")));
        }
        self.check_counts(uid, set)?;
        let there = || self.children(uid).filter(|(_, job)| !job.is_gone);
        let active = || there().filter(|(place, job)| set.is_current(place) && !job.is_finished());
        if set.is_finished() {
            let left = active().find(|(_, job)| !job.is_deleting);
            return complain(left, |job| format!("set {name} has ended, Job {job} goes on"));
        }
        let old = there().find(|(place, job)| !set.is_current(place) && !job.is_deleting);
        complain(old, |job| format!("set {name} rests, Job {job} of an earlier attempt stays"))?;
        let is_suspended = set.set.spec.suspend == Some(true);
        if is_suspended {
            ensure(has(&set.status, "Suspended"), || {
                format!("set {name} rests without a word about its suspension")
            })?;
            let awake = active().find(|(_, job)| job.spec.suspend != Some(true));
            return complain(awake, |job| format!("set {name} is suspended, Job {job} is not"));
        }
        if *waiting != Waiting::Running {
            return Ok(());
        }
        // In order, one that is still ready from before goes on once it is not any more.
        let order = set.set.spec.startup_policy.as_ref().map(|it| it.startup_policy_order);
        let is_in_order = order == Some(StartupOrder::InOrder);
        let mut asleep = active().filter(|(_, job)| job.spec.suspend == Some(true));
        let asleep = asleep.find(|(_, job)| !is_in_order || !is_ready(&job.spec.0));
        complain(asleep, |job| format!("set {name} runs, Job {job} is suspended"))?;
        for group in &set.set.spec.replicated_jobs {
            let there = there().filter(|(place, _)| *place.group == *group.name);
            let mut known: BTreeSet<usize> = there.map(|(place, _)| place.index).collect();
            known.extend(set.ended(&group.name, true));
            known.extend(set.ended(&group.name, false));
            let count = known.len();
            ensure(count == set.replicas(&group.name), || {
                format!("set {name} rests with {count} Jobs of {}", group.name)
            })?;
        }
        Ok(())
    }

    /// The status tells of as many Jobs as there are.
    fn check_counts(&self, uid: &str, set: &SetBook) -> Result<(), Violation> {
        for group in &set.set.spec.replicated_jobs {
            let count = |wanted: &dyn Fn(&JobBook) -> bool, gone: BTreeSet<usize>| {
                let there = self.current(uid, set).filter(|(place, job)| {
                    !job.is_gone && *place.group == *group.name && wanted(job)
                });
                let there: BTreeSet<usize> = there.map(|(place, _)| place.index).collect();
                i32::try_from(there.union(&gone).count()).unwrap_or(i32::MAX)
            };
            let none = BTreeSet::new;
            let is_open = |job: &JobBook| !job.is_finished();
            let is = [
                count(&|job| is_open(job) && is_ready(&job.spec.0), none()),
                count(&|job| job.has("Complete"), set.ended(&group.name, true)),
                count(&|job| job.has("Failed"), set.ended(&group.name, false)),
                count(&|job| is_open(job) && job.status.active.unwrap_or_default() > 0, none()),
                count(&|job| is_open(job) && job.spec.suspend == Some(true), none()),
            ];
            let mut entries = set.status.replicated_jobs_status.iter();
            let told = entries.find(|entry| entry.name == group.name).map(numbers);
            ensure(told == Some(is), || {
                let (set, group) = (&set.name, &group.name);
                format!("set {set} rests with {is:?} Jobs of {group}, its status says {told:?}")
            })?;
        }
        Ok(())
    }
}

fn numbers(entry: &ReplicatedJobStatus) -> [i32; 5] {
    [entry.ready, entry.succeeded, entry.failed, entry.active, entry.suspended]
}

/// Fails if there is such a Job.
fn complain(
    found: Option<(&Place, &JobBook)>,
    what: impl FnOnce(&str) -> String,
) -> Result<(), Violation> {
    match found {
        Some((_, job)) => Err(Violation(what(&job.name))),
        None => Ok(()),
    }
}
