//! When a JobSet controller may make a Job, or let one go on.

use jiff::SignedDuration;
use lockstep_api::jobset::{DependsOnStatus, RestartStrategy, StartupOrder};

use super::{Checker, JobBook, Place, SetBook, Violation, ensure};
use crate::watch::Seen;

impl Checker {
    /// The JobSet controller of this number made `job`, having seen what it had seen.
    pub(in crate::check) fn check_child(
        &self,
        job: &JobBook,
        (number, seen): (usize, Seen),
    ) -> Result<(), Violation> {
        let name = &job.name;
        let Some(place) = &job.place else {
            return Err(Violation(format!("Job {name} was made for no set")));
        };
        let Some(set) = self.sets.get(&place.set) else {
            return Err(Violation(format!("Job {name} was made for an unknown set")));
        };
        ensure(set.is_ours(), || format!("Job {name} was made for a set of others"))?;
        ensure(place.index < set.replicas(&place.group), || {
            format!("Job {name} has index {}, which its set does not have", place.index)
        })?;
        let is_told = set.restarted_at <= seen.sets;
        ensure(!is_told || place.attempt == set.status.restarts, || {
            format!("Job {name} is of attempt {}, not {}", place.attempt, set.status.restarts)
        })?;
        let is_told_ended = [true, false].into_iter().any(|is_complete| {
            set.told_at <= seen.sets && set.ended(&place.group, is_complete).contains(&place.index)
        });
        let mut before = self.children(&place.set).filter(|(other, _)| *other == place);
        let is_ended = is_told_ended && before.any(|(_, job)| is_expired(job));
        ensure(!is_ended, || format!("Job {name} was made again although it has ended"))?;
        let is_there = |other: &JobBook| !other.is_gone && other.made_at != job.made_at;
        let twin = self.children(&place.set).find(|(other, job)| {
            is_there(job) && (&other.group, other.index) == (&place.group, place.index)
        });
        ensure(twin.is_none(), || format!("Job {name} is one of two of its index"))?;
        let policy = set.set.spec.failure_policy.as_ref();
        let strategy = policy.and_then(|policy| policy.restart_strategy);
        if strategy == Some(RestartStrategy::BlockingRecreate) {
            let is_known =
                |other: &JobBook| other.made_at <= seen.jobs || other.made_by == Some(number);
            let old = self.children(&place.set).find(|(other, job)| {
                let is_old = other.attempt < place.attempt || (is_told && !set.is_current(other));
                is_there(job) && is_known(job) && is_old
            });
            ensure(old.is_none(), || {
                let old = old.map(|(_, job)| &*job.name).unwrap_or_default();
                format!("Job {name} was made while {old} of an earlier attempt is there")
            })?;
        }
        self.check_order(set, place, job)
    }

    /// A Job is there, and may run unless it is suspended: what comes before it has come.
    pub(in crate::check) fn check_order(
        &self,
        set: &SetBook,
        place: &Place,
        job: &JobBook,
    ) -> Result<(), Violation> {
        let spec = &set.set.spec;
        let (name, is_suspended) = (&job.name, job.spec.suspend == Some(true));
        let order = spec.startup_policy.as_ref().map(|policy| policy.startup_policy_order);
        if order == Some(StartupOrder::InOrder) && !is_suspended {
            let before = spec.replicated_jobs.iter().take_while(|job| job.name != *place.group);
            for group in before {
                ensure(self.is_all(set, place, &group.name, |job| job.was_started), || {
                    format!("Job {name} runs before {} has started", group.name)
                })?;
            }
        }
        let own = spec.replicated_jobs.iter().find(|job| job.name == *place.group);
        for wanted in own.iter().flat_map(|job| job.depends_on.iter().flatten()) {
            let is_met = match wanted.status {
                DependsOnStatus::Ready => {
                    self.is_all(set, place, &wanted.name, |job| job.was_started)
                }
                DependsOnStatus::Complete => {
                    self.is_all(set, place, &wanted.name, |job| job.has("Complete"))
                }
                DependsOnStatus::Unknown => false,
            };
            ensure(is_met, || {
                format!("Job {name} is there before {} is {:?}", wanted.name, wanted.status)
            })?;
        }
        Ok(())
    }

    /// The JobSet controller lets a Job go on.
    pub(in crate::check) fn check_resumed(&self, job: &JobBook) -> Result<(), Violation> {
        let Some(place) = &job.place else { return Ok(()) };
        let Some(set) = self.sets.get(&place.set) else { return Ok(()) };
        self.check_order(set, place, job)
    }

    /// The Jobs of a set were listed up to a revision: whether all of a replicated job, of the
    /// attempt of `place`, have come so far at some time.
    fn is_all(
        &self,
        set: &SetBook,
        place: &Place,
        group: &str,
        has_come: impl Fn(&JobBook) -> bool,
    ) -> bool {
        (0..set.replicas(group)).all(|index| {
            self.children(&place.set).any(|(other, job)| {
                *other.group == *group
                    && other.index == index
                    && other.attempt == place.attempt
                    && has_come(job)
            })
        })
    }
}

/// Whether a Job that is gone has had the time it has after its end.
fn is_expired(job: &JobBook) -> bool {
    let mut conditions = job.status.conditions.iter().flatten();
    let ended = conditions.find(|it| it.type_ == "Complete" || it.type_ == "Failed");
    let ended = ended.and_then(|it| it.last_transition_time.as_ref());
    let ttl = job.spec.ttl_seconds_after_finished;
    let (Some(ended), Some(went), Some(ttl)) = (ended, job.went_at, ttl) else { return false };
    job.is_gone && went.duration_since(ended.0) >= SignedDuration::from_secs(ttl.into())
}
