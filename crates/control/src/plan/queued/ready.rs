//! When a job is ready, which part of it is starting, and whether it is being restarted.
//!
//! A Job is ready when pods that are ready, or have succeeded since it was started, are as many as
//! are still needed or as may run at a time. A JobSet is when Jobs that are ready or have succeeded
//! are exactly as many as there should be.

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use lockstep_api::jobset::{DependsOn, DependsOnStatus, JobSet, ReplicatedJob, StartupOrder};
use lockstep_api::labels::kueue::SUCCEEDED_AT_START;
use lockstep_api::reasons::jobset as reasons;

use super::{Object, of_job, of_jobset};

/// Phases of a restart in place in which workers are stopped, gathered or made anew.
const RESTARTING_PHASES: [&str; 3] = ["Forming", "Stopping", "Recreating"];

/// Which part of a job that starts in stages is starting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stage<'a> {
    /// The replicated job.
    pub(super) name: &'a str,
    /// Its place, from 1.
    pub(super) place: usize,
    /// How many there are.
    pub(super) total: usize,
    /// What it waits for to be complete, if all that may run is ready.
    pub(super) depends_on: Option<&'a str>,
}

/// A restart that is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Restart {
    /// Since then.
    Since(Timestamp),
    /// In place: nobody has written down since when.
    InPlace,
}

/// Whether a job runs and all that is needed of it is ready or has succeeded. What one that stands
/// still says of its pods is of another time.
pub(super) fn is_ready(job: &Object) -> bool {
    match job {
        _ if job.is_suspended() => false,
        Object::Job(job) => is_job_ready(job),
        Object::JobSet(jobset) => is_jobset_ready(jobset),
    }
}

/// What succeeded before the Job was started this time is not needed again, and does not stand for
/// what is.
fn is_job_ready(job: &Job) -> bool {
    let Some(spec) = &job.spec else { return false };
    let before = of_job::annotation(job, SUCCEEDED_AT_START);
    let before = before.and_then(|before| before.parse().ok()).unwrap_or(0).max(0);
    let parallelism = spec.parallelism.unwrap_or(1);
    let wanted = spec
        .completions
        .map_or(parallelism, |completions| parallelism.min(completions.saturating_sub(before)));
    let there = job.status.as_ref().map_or(0, |status| {
        let succeeded = of_job::succeeded(status).saturating_sub(before);
        succeeded.saturating_add(status.ready.unwrap_or(0))
    });
    there >= wanted
}

fn is_jobset_ready(jobset: &JobSet) -> bool {
    let wanted: i64 = jobset.spec.replicated_jobs.iter().map(|job| i64::from(job.replicas)).sum();
    let entries = jobset.status.iter().flat_map(|status| &status.replicated_jobs_status);
    let there: i64 = entries.map(|entry| i64::from(entry.ready) + i64::from(entry.succeeded)).sum();
    wanted == there
}

/// Which part of a job is starting, if it starts in stages and not all of it has started.
pub(super) fn stage(job: &Object) -> Option<Stage<'_>> {
    let Object::JobSet(jobset) = job else { return None };
    let jobs = &jobset.spec.replicated_jobs;
    let policy = jobset.spec.startup_policy.as_ref();
    let is_in_order =
        policy.is_some_and(|policy| policy.startup_policy_order == StartupOrder::InOrder);
    let has_dependencies =
        jobs.iter().any(|job| job.depends_on.as_ref().is_some_and(|all| !all.is_empty()));
    if !(is_in_order || has_dependencies) {
        return None;
    }
    let at = |at: usize, depends_on| {
        Some(Stage { name: &jobs[at].name, place: at + 1, total: jobs.len(), depends_on })
    };
    let open: Vec<usize> = (0..jobs.len()).filter(|at| !is_started(jobset, &jobs[*at])).collect();
    let starting = open.iter().find(|at| unmet(jobset, &jobs[**at]).is_none());
    if let Some(starting) = starting {
        return at(*starting, None);
    }
    let first = *open.first()?;
    at(first, unmet(jobset, &jobs[first]).map(|on| on.name.as_str()))
}

/// The first dependency of a replicated job that has not come far enough.
fn unmet<'a>(jobset: &JobSet, job: &'a ReplicatedJob) -> Option<&'a DependsOn> {
    let jobs = &jobset.spec.replicated_jobs;
    job.depends_on.iter().flatten().find(|wanted| {
        let other = jobs.iter().find(|other| other.name == wanted.name);
        let is_met = other.is_some_and(|other| match wanted.status {
            DependsOnStatus::Ready => is_started(jobset, other),
            DependsOnStatus::Complete => {
                let entry = of_jobset::entry(jobset, &other.name);
                entry.map_or(0, |entry| entry.succeeded) >= other.replicas
            }
            DependsOnStatus::Unknown => false,
        });
        !is_met
    })
}

/// Whether all Jobs of a replicated job have started, whatever became of them.
fn is_started(jobset: &JobSet, job: &ReplicatedJob) -> bool {
    let entry = of_jobset::entry(jobset, &job.name);
    let started = entry.map_or(0, |entry| entry.ready + entry.succeeded + entry.failed);
    started >= job.replicas
}

/// The restart that is under way in a job that was last ready at `ready`.
pub(super) fn restart(job: &Object, ready: Timestamp) -> Option<Restart> {
    let Object::JobSet(jobset) = job else { return None };
    let status = jobset.status.as_ref()?;
    let kept = status.lockstep.as_ref();
    let records = kept.into_iter().flat_map(|kept| &kept.last_restarts);
    let told = status
        .conditions
        .iter()
        .filter(|condition| condition.type_ == reasons::RESTARTING && condition.status == "True");
    let recorded = records.filter_map(|record| record.time.as_ref());
    let times = recorded.chain(told.map(|condition| &condition.last_transition_time));
    // Times are to the second: what was ready and restarted within one is being restarted.
    let last = times.map(|time| time.0).max().filter(|last| *last >= ready);
    if let Some(last) = last {
        return Some(Restart::Since(last));
    }
    let in_place = kept.and_then(|kept| kept.in_place.as_ref());
    let is_restarting = in_place.is_some_and(|one| RESTARTING_PHASES.contains(&one.phase.as_str()));
    is_restarting.then_some(Restart::InPlace)
}
