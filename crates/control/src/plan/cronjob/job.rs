//! The Jobs of a CronJob.

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::{CronJob, CronJobSpec, Job};
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use lockstep_api::cron;

/// The time that a Job stands for.
const SCHEDULED: &str = "batch.kubernetes.io/cronjob-scheduled-timestamp";

/// The name of the Job of a time: there is one for each minute.
pub(super) fn name_at(cron: &CronJob, at: Timestamp) -> String {
    let name = cron.metadata.name.as_deref().unwrap_or_default();
    format!("{name}-{}", at.as_second() / 60)
}

/// The Job of a time.
pub(super) fn of_template(cron: &CronJob, spec: &CronJobSpec, at: Timestamp) -> Job {
    let template = spec.job_template.metadata.clone().unwrap_or_default();
    let mut annotations = template.annotations.unwrap_or_default();
    annotations.insert(SCHEDULED.to_owned(), in_zone(at, spec.time_zone.as_deref()));
    let owner = OwnerReference {
        api_version: "batch/v1".to_owned(),
        kind: "CronJob".to_owned(),
        name: cron.metadata.name.clone().unwrap_or_default(),
        uid: cron.metadata.uid.clone().unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    };
    Job {
        metadata: ObjectMeta {
            name: Some(name_at(cron, at)),
            namespace: cron.metadata.namespace.clone(),
            labels: template.labels,
            annotations: Some(annotations),
            owner_references: Some(vec![owner]),
            ..ObjectMeta::default()
        },
        spec: spec.job_template.spec.clone(),
        status: None,
    }
}

/// A time as people in a time zone write it.
fn in_zone(at: Timestamp, zone: Option<&str>) -> String {
    let zone = cron::zone(zone.unwrap_or_default()).unwrap_or(jiff::tz::TimeZone::UTC);
    let at = at.to_zoned(zone);
    let time = at.strftime("%Y-%m-%dT%H:%M:%S");
    match at.offset().is_zero() {
        true => format!("{time}Z"),
        false => format!("{time}{}", at.strftime("%:z")),
    }
}

/// The time that a Job stands for.
pub(super) fn scheduled_at(job: &Job) -> Option<Timestamp> {
    job.metadata.annotations.as_ref()?.get(SCHEDULED)?.parse().ok()
}

/// Whether a Job has the name that its time gives it: nobody else makes such ones.
pub(super) fn is_own(cron: &CronJob, job: &Job) -> bool {
    scheduled_at(job).is_some_and(|at| job.metadata.name.as_deref() == Some(&*name_at(cron, at)))
}

/// How a Job has ended, if it has.
pub(super) fn end_of(job: &Job) -> Option<&'static str> {
    let conditions = job.status.as_ref()?.conditions.as_deref()?;
    let is_true = |kind: &str| conditions.iter().any(|it| it.type_ == kind && it.status == "True");
    ["Complete", "Failed"].into_iter().find(|end| is_true(end))
}

/// How a status refers to a Job.
pub fn reference(job: &Job) -> ObjectReference {
    ObjectReference {
        api_version: Some("batch/v1".to_owned()),
        kind: Some("Job".to_owned()),
        name: job.metadata.name.clone(),
        namespace: job.metadata.namespace.clone(),
        uid: job.metadata.uid.clone(),
        resource_version: job.metadata.resource_version.clone(),
        field_path: None,
    }
}
