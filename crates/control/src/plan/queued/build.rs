//! The workload of a job: made of what the job says of its pods, its queue and its priority.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use lockstep_api::kueue::{Workload, WorkloadSpec, names};
use lockstep_api::labels::kueue as labels;
use serde_json::json;

use super::{Object, Pass, Plan, Step, ensure, priority};
use crate::plan::{Event, Key};

/// Annotations that say how one job is waited for.
const WAIT_ANNOTATIONS: [&str; 8] = [
    labels::WAIT_FOR_PODS_READY,
    labels::PODS_READY_TIMEOUT,
    labels::PODS_READY_RECOVERY_TIMEOUT,
    labels::BLOCK_ADMISSION,
    labels::REQUEUING_TIMESTAMP,
    labels::REQUEUING_LIMIT,
    labels::REQUEUING_BASE,
    labels::REQUEUING_MAX,
];

/// Gives a job its workload.
pub(super) fn create(pass: &Pass<'_>) -> Plan {
    let spec = match spec(pass) {
        Ok(spec) => WorkloadSpec { active: Some(true), ..spec },
        Err(plan) => return plan,
    };
    let workload = Workload { metadata: meta(pass), spec, status: None };
    let key = Key::of(&workload.metadata);
    let mut steps = vec![Step::CreateWorkload(Box::new(workload))];
    let message = format!("Created Workload: {key}");
    steps.push(Step::Emit(Event::normal("CreatedWorkload", message)));
    if pass.job.annotation(labels::ELASTIC_JOB) == Some("true") {
        let message = "the size of a running job cannot change yet: the annotation \
                       kueue.x-k8s.io/elastic-job has no effect";
        steps.push(Step::Emit(Event::warning("ElasticJobNotImplemented", message)));
    }
    Plan::of(steps)
}

/// Makes a workload that holds no quota ask for what the job is now.
pub(super) fn update(pass: &Pass<'_>, workload: &Workload) -> Plan {
    let spec = match spec(pass) {
        Ok(spec) => spec,
        Err(plan) => return plan,
    };
    let patch = json!({"spec": {
        "podSets": spec.pod_sets,
        "queueName": spec.queue_name,
        "priorityClassRef": spec.priority_class_ref,
        "priority": spec.priority,
        "maximumExecutionTimeSeconds": spec.maximum_execution_time_seconds,
    }});
    let key = Key::of(&workload.metadata);
    let message = format!("Updated not matching Workload for suspended job: {key}");
    let event = Event::normal("UpdatedWorkload", message);
    Plan::of([ensure::patch(workload, patch), Step::Emit(event)])
}

fn spec(pass: &Pass<'_>) -> Result<WorkloadSpec, Plan> {
    let priority = priority::of(pass).map_err(Plan::wait)?;
    Ok(WorkloadSpec {
        pod_sets: pass.job.pod_sets(),
        queue_name: queue(pass.job).to_owned(),
        priority_class_ref: priority.class,
        priority: Some(priority.value),
        maximum_execution_time_seconds: time_limit(pass.job),
        ..WorkloadSpec::default()
    })
}

fn meta(pass: &Pass<'_>) -> ObjectMeta {
    let (job, key) = (pass.job, &pass.key.key);
    let kind = job.kind();
    let mut copied = BTreeMap::from([(labels::JOB_UID.to_owned(), job.uid().to_owned())]);
    for key in &pass.settings.label_keys_to_copy {
        if let Some(value) = job.meta().labels.as_ref().and_then(|labels| labels.get(key)) {
            copied.insert(key.clone(), value.clone());
        }
    }
    let annotations: BTreeMap<String, String> =
        annotations(job).map(|(key, value)| (key.clone(), value.clone())).collect();
    ObjectMeta {
        namespace: Some(key.namespace.clone()),
        name: Some(names::workload(kind.as_str(), kind.group(), &key.name, job.uid())),
        labels: Some(copied),
        annotations: (!annotations.is_empty()).then_some(annotations),
        owner_references: Some(vec![owner(job)]),
        finalizers: Some(vec![labels::RESOURCE_IN_USE.to_owned()]),
        ..ObjectMeta::default()
    }
}

/// What says that a workload is the job's.
pub(super) fn owner(job: &Object) -> OwnerReference {
    OwnerReference {
        api_version: job.kind().api_version().to_owned(),
        kind: job.kind().as_str().to_owned(),
        name: job.key().key.name,
        uid: job.uid().to_owned(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}

/// The annotations of a job that its workload has too.
pub(super) fn annotations(job: &Object) -> impl Iterator<Item = (&String, &String)> {
    job.meta().annotations.iter().flatten().filter(|(key, _)| {
        key.starts_with(labels::PROVISIONING_PREFIX)
            || *key == labels::ADMISSION_GATED_BY
            || WAIT_ANNOTATIONS.contains(&key.as_str())
    })
}

/// The LocalQueue a job waits in.
pub(super) fn queue(job: &Object) -> &str {
    job.label(labels::QUEUE_NAME).unwrap_or_default()
}

/// For how many seconds a job may run.
pub(super) fn time_limit(job: &Object) -> Option<i32> {
    let limit = job.label(labels::MAX_EXEC_TIME)?;
    limit.parse().ok().filter(|seconds| *seconds > 0)
}
