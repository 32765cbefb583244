//! Jobs as queues see them.

use std::time::Duration;

use k8s_openapi::api::batch::v1::{Job, JobSpec, JobStatus};
use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use lockstep_api::kueue::{DEFAULT_POD_SET, PodSet, ReclaimablePod};
use lockstep_api::labels::{self, kueue as queue_labels};

use super::object::End;
use crate::plan::job::Indexes;

/// Labels that the Job controller puts on templates and that say nothing about the pods.
pub(super) const CONTROLLER_LABELS: [&str; 3] =
    [labels::LEGACY_JOB_NAME, labels::LEGACY_CONTROLLER_UID, labels::CONTROLLER_UID];

pub(super) fn is_suspended(job: &Job) -> bool {
    job.spec.as_ref().and_then(|spec| spec.suspend) == Some(true) && !is_stopping(job)
}

/// Whether the Job is being stopped: its suspension is written, what follows from it is not.
pub(super) fn is_stopping(job: &Job) -> bool {
    annotation(job, queue_labels::STOPPING) == Some("true")
}

pub(super) fn finished(job: &Job) -> Option<End<'_>> {
    let mut conditions = status(job)?.conditions.iter().flatten();
    let ended = conditions.find(|condition| {
        ["Complete", "Failed"].contains(&condition.type_.as_str()) && condition.status == "True"
    })?;
    let message = ended.message.as_deref().unwrap_or_default();
    Some(End { has_succeeded: ended.type_ == "Complete", message })
}

pub(super) fn is_active(job: &Job) -> bool {
    status(job).and_then(|status| status.active).unwrap_or(0) > 0
}

/// Whether pods of it have been told to go and have not gone.
pub(super) fn is_terminating(job: &Job) -> bool {
    status(job).and_then(|status| status.terminating).unwrap_or(0) > 0
}

/// How long its pods may take to go.
pub(super) fn grace(job: &Job) -> Duration {
    let pod = job.spec.as_ref().and_then(|spec| spec.template.spec.as_ref());
    let seconds = pod.and_then(|pod| pod.termination_grace_period_seconds).unwrap_or(30);
    Duration::from_secs(seconds.try_into().unwrap_or(0))
}

pub(super) fn pod_set(job: &Job) -> PodSet {
    let template = job.spec.as_ref().map(|spec| bare(&spec.template)).unwrap_or_default();
    let mut template = template;
    if let Some(labels) = template.metadata.as_mut().and_then(|meta| meta.labels.as_mut()) {
        labels.retain(|key, _| !CONTROLLER_LABELS.contains(&key.as_str()));
    }
    let least = annotation(job, queue_labels::MIN_PARALLELISM);
    PodSet {
        name: DEFAULT_POD_SET.to_owned(),
        count: job.spec.as_ref().map_or(0, pods),
        min_count: least.and_then(|least| least.parse().ok()).filter(|least| *least > 0),
        template,
        topology_request: None,
    }
}

/// A template with nothing in its metadata but labels and annotations.
pub(super) fn bare(template: &PodTemplateSpec) -> PodTemplateSpec {
    let metadata = template.metadata.as_ref().map(|meta| ObjectMeta {
        labels: meta.labels.clone(),
        annotations: meta.annotations.clone(),
        ..ObjectMeta::default()
    });
    PodTemplateSpec { metadata, spec: template.spec.clone() }
}

/// How many pods run at a time.
pub(super) fn pods(spec: &JobSpec) -> i32 {
    let parallelism = spec.parallelism.unwrap_or(1);
    spec.completions.map_or(parallelism, |completions| completions.min(parallelism)).max(0)
}

/// What has ended of a Job gives its quota back once fewer pods are left to run than may run.
pub(super) fn reclaimable(job: &Job) -> Vec<ReclaimablePod> {
    let Some(spec) = &job.spec else { return Vec::new() };
    let Some(completions) = spec.completions else { return Vec::new() };
    let (pods, ended) = (pods(spec), ended(job, spec, completions));
    let left = completions.saturating_sub(ended).max(0);
    if pods <= 1 || ended <= 0 || left >= pods {
        return Vec::new();
    }
    vec![ReclaimablePod { name: DEFAULT_POD_SET.to_owned(), count: pods - left }]
}

/// How many completions will not need a pod again.
fn ended(job: &Job, spec: &JobSpec, completions: i32) -> i32 {
    let Some(status) = status(job) else { return 0 };
    if spec.completion_mode.as_deref() != Some("Indexed") {
        return status.succeeded.unwrap_or(0);
    }
    let mut ended = Indexes::new();
    for list in [&status.completed_indexes, &status.failed_indexes].into_iter().flatten() {
        for (first, last) in Indexes::parse(list, completions).intervals() {
            ended.insert_range(first, last);
        }
    }
    i32::try_from(ended.count()).unwrap_or(i32::MAX)
}

/// How many pods have succeeded, those included that are not counted yet.
pub(super) fn succeeded(status: &JobStatus) -> i32 {
    let uncounted = status.uncounted_terminated_pods.as_ref();
    let uncounted = uncounted.and_then(|pods| pods.succeeded.as_ref()).map_or(0, Vec::len);
    let uncounted = i32::try_from(uncounted).unwrap_or(i32::MAX);
    status.succeeded.unwrap_or(0).saturating_add(uncounted)
}

pub(super) fn status(job: &Job) -> Option<&JobStatus> {
    job.status.as_ref()
}

pub(super) fn annotation<'a>(job: &'a Job, key: &str) -> Option<&'a str> {
    job.metadata.annotations.as_ref()?.get(key).map(String::as_str)
}
