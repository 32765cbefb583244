//! JobSets as queues see them.

use k8s_openapi::api::core::v1::PodTemplateSpec;
use lockstep_api::jobset::{Action, JobSet, ReplicatedJob, ReplicatedJobStatus};
use lockstep_api::kueue::{PodSet, ReclaimablePod};
use lockstep_api::reasons::jobset as reasons;

use super::object::End;
use super::of_job::{bare, pods};

pub(super) fn finished(jobset: &JobSet) -> Option<End<'_>> {
    let mut conditions = jobset.status.as_ref()?.conditions.iter();
    let ended = conditions.find(|condition| {
        [reasons::COMPLETED, reasons::FAILED].contains(&condition.type_.as_str())
            && condition.status == "True"
    })?;
    Some(End { has_succeeded: ended.type_ == reasons::COMPLETED, message: &ended.message })
}

pub(super) fn is_active(jobset: &JobSet) -> bool {
    let mut entries = jobset.status.iter().flat_map(|status| &status.replicated_jobs_status);
    entries.any(|entry| entry.active > 0)
}

/// One pod set for each replicated job.
pub(super) fn pod_sets(jobset: &JobSet) -> Vec<PodSet> {
    let sets = jobset.spec.replicated_jobs.iter().map(|job| PodSet {
        name: job.name.to_lowercase(),
        count: job.replicas.max(0).saturating_mul(pods_each(job)),
        template: template(job).map(bare).unwrap_or_default(),
        ..PodSet::default()
    });
    sets.collect()
}

pub(super) fn templates(jobset: &JobSet) -> impl Iterator<Item = Option<&PodTemplateSpec>> {
    jobset.spec.replicated_jobs.iter().map(template)
}

fn template(job: &ReplicatedJob) -> Option<&PodTemplateSpec> {
    job.template.spec.as_ref().map(|spec| &spec.template)
}

fn pods_each(job: &ReplicatedJob) -> i32 {
    job.template.spec.as_ref().map_or(0, pods)
}

/// The pods of Jobs that are complete, unless a restart may want them again: quota that was given
/// back cannot be taken back.
pub(super) fn reclaimable(jobset: &JobSet) -> Vec<ReclaimablePod> {
    if may_restart(jobset) {
        return Vec::new();
    }
    let jobs = jobset.spec.replicated_jobs.iter();
    let ended = jobs.filter_map(|job| {
        let succeeded = entry(jobset, &job.name)?.succeeded.clamp(0, job.replicas.max(0));
        let count = succeeded.saturating_mul(pods_each(job));
        (count > 0).then(|| ReclaimablePod { name: job.name.to_lowercase(), count })
    });
    ended.collect()
}

fn may_restart(jobset: &JobSet) -> bool {
    jobset.spec.failure_policy.as_ref().is_some_and(|policy| {
        let ends = [Action::FailJobSet, Action::FailJob];
        policy.max_restarts > 0 || policy.rules.iter().any(|rule| !ends.contains(&rule.action))
    })
}

/// What the status says of a replicated job.
pub(super) fn entry<'a>(jobset: &'a JobSet, name: &str) -> Option<&'a ReplicatedJobStatus> {
    let mut entries = jobset.status.as_ref()?.replicated_jobs_status.iter();
    entries.find(|entry| entry.name == name)
}
