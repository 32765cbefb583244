//! Arithmetic over replicated jobs: positions, sizes, and how often their Jobs were restarted.

use lockstep_api::jobset::{JobSet, JobSetSpec, JobSetStatus, ReplicatedJob, ReplicatedJobStatus};

/// How many Jobs the whole set has.
pub(super) fn total(spec: &JobSetSpec) -> i64 {
    spec.replicated_jobs.iter().map(|job| i64::from(job.replicas)).sum()
}

/// How many Jobs are listed before those of the replicated job `name`, of those that `counts` says
/// yes to.
pub(super) fn before(
    spec: &JobSetSpec,
    name: &str,
    counts: impl Fn(&ReplicatedJob) -> bool,
) -> i64 {
    let earlier = spec.replicated_jobs.iter().take_while(|job| job.name != name);
    earlier.filter(|job| counts(job)).map(|job| i64::from(job.replicas)).sum()
}

/// How many Jobs are in the group `group`.
pub(super) fn in_group(spec: &JobSetSpec, group: &str) -> i64 {
    let members = spec.replicated_jobs.iter().filter(|job| job.group_name == group);
    members.map(|job| i64::from(job.replicas)).sum()
}

/// How often each Job of a replicated job was restarted by itself: as stored, or never.
pub(super) fn restarts(jobset: &JobSet, status: &JobSetStatus, name: &str) -> Vec<i32> {
    let stored = stored(status, name).map(|entry| entry.job_restarts.clone()).unwrap_or_default();
    if !stored.is_empty() {
        return stored;
    }
    let job = jobset.spec.replicated_jobs.iter().find(|job| job.name == name);
    let replicas = job.and_then(|job| usize::try_from(job.replicas).ok()).unwrap_or_default();
    vec![0; replicas]
}

/// How often one Job was restarted by itself; nothing if there is no such index.
pub(super) fn restarts_of(
    jobset: &JobSet,
    status: &JobSetStatus,
    name: &str,
    index: usize,
) -> Option<i32> {
    let stored = stored(status, name).map(|entry| entry.job_restarts.as_slice());
    if let Some(stored) = stored.filter(|stored| !stored.is_empty()) {
        return stored.get(index).copied();
    }
    let job = jobset.spec.replicated_jobs.iter().find(|job| job.name == name)?;
    let replicas = usize::try_from(job.replicas).unwrap_or_default();
    (index < replicas).then_some(0)
}

/// The entry of a replicated job in a status.
pub(super) fn stored<'a>(status: &'a JobSetStatus, name: &str) -> Option<&'a ReplicatedJobStatus> {
    status.replicated_jobs_status.iter().find(|entry| entry.name == name)
}
