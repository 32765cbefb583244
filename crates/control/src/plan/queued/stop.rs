//! Stopping a job, and giving its templates back the look that users gave them.
//!
//! A Job takes three writes, each a pass of its own: it is suspended, with an annotation that says
//! that it is not over; its start is taken away, without which its template cannot change; when its
//! pods are gone, before which newer API servers refuse that too, its template is restored and the
//! annotation goes. Until then it does not count as suspended, so that whoever comes after a crash
//! goes on where it ended. A JobSet takes one.

use k8s_openapi::api::batch::v1::Job;
use lockstep_api::jobset::JobSet;
use lockstep_api::kueue::Workload;
use lockstep_api::labels::{JOB_NAME, kueue as labels};
use serde_json::{Value, json};

use super::look::Look;
use super::of_job::{self, CONTROLLER_LABELS};
use super::{Object, Pass, Patch, Plan, Step, Waiting, condition, ensure, evict, of_jobset, start};
use crate::plan::Event;

/// The next write on the way to a job that stands still and looks as users want it; nothing if it
/// does.
pub(super) fn stop(pass: &Pass<'_>, workload: Option<&Workload>, why: &str) -> Option<Plan> {
    let looks = workload.map(|workload| restored(pass.job, workload)).unwrap_or_default();
    let is_suspended = pass.job.is_suspended();
    if pass.job.finished().is_some() || (is_suspended && !is_disguised(pass.job, &looks)) {
        return None;
    }
    let (patch, is_first) = match pass.job {
        Object::Job(job) if !is_halted(job) => (suspension(job), true),
        Object::Job(job) if has_start(job) => return Some(Plan::of([clear_start(job)])),
        Object::Job(job) => {
            let patch = restoration(job, looks.first(), workload);
            if of_job::is_active(job) && !patch["spec"]["template"].is_null() {
                return Some(Plan::wait_until(Waiting::PodsActive, evict::look_again(pass.now)));
            }
            (Patch::Merge(patch), false)
        }
        Object::JobSet(jobset) => {
            let wanted: Vec<Option<&Look>> = looks.iter().map(Some).collect();
            (jobset_patch(jobset, true, &wanted), true)
        }
    };
    let mut steps = vec![Step::PatchJob { uid: pass.job.uid().to_owned(), patch }];
    if is_first && !is_suspended {
        steps.push(Step::Emit(Event::normal("Stopped", why)));
    }
    Some(Plan::of(steps))
}

/// A workload that is being deleted lets its job stop first.
pub(super) fn workload_deleted(pass: &Pass<'_>, workload: &Workload) -> Option<Plan> {
    let since = workload.metadata.deletion_timestamp.as_ref()?.0;
    if let Some(plan) = stop(pass, Some(workload), "Workload is deleted") {
        return Some(plan);
    }
    if condition::holds_quota(workload) && evict::is_active(pass, Some(since)) {
        return Some(Plan::wait_until(Waiting::PodsActive, evict::look_again(pass.now)));
    }
    let Some(released) = ensure::release(workload) else {
        return Some(Plan::wait(Waiting::BeingDeleted));
    };
    let holds_quota = condition::holds_quota(workload);
    let asked = holds_quota.then(|| ensure::same(pass));
    Some(Plan::of(asked.into_iter().chain([released]).collect::<Vec<_>>()))
}

/// A stop that has begun is carried to its end, also when its cause is gone by now.
pub(super) fn go_on(pass: &Pass<'_>, workload: &Workload) -> Option<Plan> {
    let is_stopping = matches!(pass.job, Object::Job(job) if is_halted(job));
    if !is_stopping || pass.job.is_suspended() {
        return None;
    }
    stop(pass, Some(workload), "")
}

/// Nobody runs who was not admitted.
pub(super) fn not_admitted(pass: &Pass<'_>, workload: &Workload) -> Option<Plan> {
    if condition::is_admitted(workload) {
        return None;
    }
    let mut plan = stop(pass, Some(workload), "Not admitted by cluster queue")?;
    if !plan.steps.is_empty() {
        plan.steps.insert(0, ensure::same_workload(workload));
    }
    Some(plan)
}

/// Whether a job still looks as if it ran, though it should look like this: somebody else has
/// suspended it.
fn is_disguised(job: &Object, looks: &[Look]) -> bool {
    job.templates().into_iter().zip(looks).any(|(template, look)| {
        let there = template.map(Look::of).unwrap_or_default();
        there.annotations.contains_key(labels::WORKLOAD) && there != *look
    })
}

fn is_halted(job: &Job) -> bool {
    job.spec.as_ref().and_then(|spec| spec.suspend) == Some(true)
}

pub(super) fn has_start(job: &Job) -> bool {
    job.status.as_ref().is_some_and(|status| status.start_time.is_some())
}

/// How the templates of a job looked when its workload was made. A workload of another shape tells
/// nothing.
fn restored(job: &Object, workload: &Workload) -> Vec<Look> {
    let templates = job.templates();
    let sets = &workload.spec.pod_sets;
    if templates.len() != sets.len() {
        return Vec::new();
    }
    let looks = templates.into_iter().zip(sets).map(|(template, set)| {
        let mut look = Look::of(&set.template);
        if job.kind() == super::Kind::Job {
            let there = template.map(Look::of).unwrap_or_default().labels;
            let is_kept = |key: &str| key == JOB_NAME || CONTROLLER_LABELS.contains(&key);
            let kept = there.into_iter().filter(|(key, _)| is_kept(key));
            look.labels.extend(kept);
        }
        look
    });
    looks.collect()
}

fn suspension(job: &Job) -> Patch {
    Patch::Merge(json!({
        "metadata": {
            "uid": job.metadata.uid,
            "resourceVersion": job.metadata.resource_version,
            "annotations": {labels::STOPPING: "true"},
        },
        "spec": {"suspend": true},
    }))
}

/// Takes the start away from a Job.
pub(super) fn clear_start(job: &Job) -> Step {
    let patch = json!({
        "metadata": {
            "uid": job.metadata.uid,
            "resourceVersion": job.metadata.resource_version,
        },
        "status": {"startTime": null},
    });
    Step::ClearStartTime { uid: job.metadata.uid.clone().unwrap_or_default(), patch }
}

fn restoration(job: &Job, look: Option<&Look>, workload: Option<&Workload>) -> Value {
    let mut patch = json!({
        "metadata": {
            "uid": job.metadata.uid,
            "resourceVersion": job.metadata.resource_version,
            "annotations": {labels::STOPPING: null},
        },
    });
    if of_job::annotation(job, labels::SUCCEEDED_AT_START).is_some() {
        patch["metadata"]["annotations"][labels::SUCCEEDED_AT_START] = Value::Null;
    }
    let there = job.spec.as_ref().map(|spec| Look::of(&spec.template)).unwrap_or_default();
    if let Some(template) = look.and_then(|look| there.merge_patch(look)) {
        patch["spec"]["template"] = template;
    }
    if let Some(set) = workload.and_then(|workload| workload.spec.pod_sets.first()) {
        start::resize(job, set.count, &mut patch);
    }
    patch
}

/// The patch that suspends or resumes a JobSet and gives its templates these looks.
pub(super) fn jobset_patch(jobset: &JobSet, suspend: bool, looks: &[Option<&Look>]) -> Patch {
    let meta = &jobset.metadata;
    let mut operations = vec![
        json!({"op": "replace", "path": "/metadata/uid", "value": meta.uid}),
        json!({"op": "replace", "path": "/metadata/resourceVersion", "value": meta.resource_version}),
        json!({"op": "add", "path": "/spec/suspend", "value": suspend}),
    ];
    let templates = of_jobset::templates(jobset).zip(looks).enumerate();
    for (at, (template, look)) in templates {
        if let (Some(template), Some(look)) = (template, look) {
            let path = format!("/spec/replicatedJobs/{at}/template/spec/template");
            operations.extend(Look::operations(template, look, &path));
        }
    }
    Patch::Json(Value::Array(operations))
}
