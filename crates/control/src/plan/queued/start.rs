//! Starting a job whose workload was admitted: one patch, with all that its pods were given.

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use lockstep_api::jobset::JobSet;
use lockstep_api::kueue::Workload;
use lockstep_api::labels::kueue as labels;
use lockstep_api::reasons::kueue::finished;
use serde_json::{Value, json};

use super::info::{Info, Trouble};
use super::look::Look;
use super::{
    Object, Pass, Patch, Plan, Step, Waiting, condition, evict, finish, info, of_job, stop,
};
use crate::plan::Event;

/// Starts a job that stands still and may run.
pub(super) fn begin(pass: &Pass<'_>, workload: &Workload) -> Option<Plan> {
    let may_run = condition::is_admitted(workload) && workload.spec.active != Some(false);
    if !pass.job.is_suspended() || !may_run {
        return None;
    }
    let (infos, looks) = match looks(pass, workload) {
        Ok(looks) => looks,
        Err(Trouble::FlavorMissing(name)) => {
            return Some(Plan::wait(Waiting::FlavorMissing(name)));
        }
        Err(Trouble::Conflict(conflict)) => {
            let message = conflict.to_string();
            return Some(finish::finish(pass.now, workload, finished::FAILED_TO_START, &message));
        }
    };
    let patch = match pass.job {
        Object::Job(job) => match before_template(job, &looks, pass.now) {
            Some(plan) => return Some(plan),
            None => of_job(job, &infos, &looks),
        },
        Object::JobSet(jobset) => of_jobset(jobset, &looks),
    };
    let admission = workload.status.as_ref().and_then(|status| status.admission.as_ref());
    let queue = admission.map(|admission| admission.cluster_queue.as_str()).unwrap_or_default();
    let event = Event::normal("Started", format!("Admitted by clusterQueue {queue}"));
    let uid = pass.job.uid().to_owned();
    Some(Plan::of([Step::PatchJob { uid, patch }, Step::Emit(event)]))
}

/// What the pods of each set are given, and how they are to look then.
fn looks(pass: &Pass<'_>, workload: &Workload) -> Result<(Vec<Info>, Vec<Look>), Trouble> {
    let infos = info::of_workload(pass.known, workload)?;
    let templates = pass.job.templates();
    let looks: Result<Vec<Look>, Trouble> = templates
        .into_iter()
        .zip(&infos)
        .map(|(template, info)| Ok(template.map(Look::of).unwrap_or_default().with(info)?))
        .collect();
    looks.map(|looks| (infos, looks))
}

/// What has to happen before the template of a Job can change: it can only while the Job has no
/// start, and, on newer API servers, no pods.
fn before_template(job: &Job, looks: &[Look], now: Timestamp) -> Option<Plan> {
    template_patch(job, looks)?;
    if stop::has_start(job) {
        return Some(Plan::of([stop::clear_start(job)]));
    }
    of_job::is_active(job).then(|| Plan::wait_until(Waiting::PodsActive, evict::look_again(now)))
}

/// What changes about the template of a Job.
fn template_patch(job: &Job, looks: &[Look]) -> Option<Value> {
    let there = job.spec.as_ref().map(|spec| Look::of(&spec.template)).unwrap_or_default();
    looks.first().and_then(|wanted| there.merge_patch(wanted))
}

/// The patch that starts a Job.
fn of_job(job: &Job, infos: &[Info], looks: &[Look]) -> Patch {
    let succeeded = job.status.as_ref().map_or(0, of_job::succeeded);
    let known = of_job::annotation(job, labels::SUCCEEDED_AT_START);
    let mut patch = json!({
        "metadata": {
            "uid": job.metadata.uid,
            "resourceVersion": job.metadata.resource_version,
        },
        "spec": {"suspend": false},
    });
    if succeeded > 0 {
        patch["metadata"]["annotations"][labels::SUCCEEDED_AT_START] = json!(succeeded.to_string());
    } else if known.is_some() {
        patch["metadata"]["annotations"][labels::SUCCEEDED_AT_START] = Value::Null;
    }
    if let Some(template) = template_patch(job, looks) {
        patch["spec"]["template"] = template;
    }
    if let Some(info) = infos.first() {
        resize(job, info.count, &mut patch);
    }
    Patch::Merge(patch)
}

/// A Job that may run with fewer pods has as many as were admitted, or as it asks for.
pub(super) fn resize(job: &Job, count: i32, patch: &mut Value) {
    let Some(spec) = job.spec.as_ref() else { return };
    if of_job::annotation(job, labels::MIN_PARALLELISM).is_none() || of_job::pods(spec) == count {
        return;
    }
    patch["spec"]["parallelism"] = json!(count);
    if of_job::annotation(job, labels::COMPLETIONS_EQUAL_PARALLELISM) == Some("true") {
        patch["spec"]["completions"] = json!(count);
    }
}

fn of_jobset(jobset: &JobSet, looks: &[Look]) -> Patch {
    let wanted: Vec<Option<&Look>> = looks.iter().map(Some).collect();
    stop::jobset_patch(jobset, false, &wanted)
}
