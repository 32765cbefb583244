//! Workloads that somebody else has made for a job.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use lockstep_api::kueue::Workload;
use lockstep_api::labels::kueue as labels;
use lockstep_api::reasons::kueue::finished;
use serde_json::json;

use super::known::controller;
use super::{Object, Pass, Plan, Waiting, build, condition, ensure, equivalence, finish, stop};
use crate::plan::Key;

/// The name of the Workload a job is to use, if it says so.
pub(super) fn name(job: &Object) -> Option<&str> {
    let annotation = job.annotation(labels::PREBUILT_WORKLOAD).filter(|name| !name.is_empty());
    annotation.or_else(|| job.label(labels::PREBUILT_WORKLOAD))
}

/// The Workload of this name, once it is the job's; otherwise what has to happen first.
pub(super) fn one<'a>(pass: &Pass<'a>, name: &str) -> Result<Option<&'a Workload>, Plan> {
    let namespace = pass.key.key.namespace.clone();
    let key = Key { namespace, name: name.to_owned() };
    let others = ensure::own(pass).filter(|workload| Key::of(&workload.metadata) != key);
    let steps = ensure::deletions(others);
    if !steps.is_empty() {
        return Err(Plan::of(steps));
    }
    let Some(workload) = pass.known.workload(&key) else { return Err(missing(pass, key)) };
    match controller(&workload.metadata) {
        None if pass.job.finished().is_some() => return Ok(None),
        None => return Err(Plan::of([adopt(pass, workload)])),
        Some(owner) if owner.uid != pass.job.uid() => return Err(missing(pass, key)),
        Some(_) => {}
    }
    let ended = condition::find_true(workload, "Finished");
    if ended.is_none()
        && pass.job.finished().is_none()
        && !equivalence::matches_prebuilt(pass, workload)
    {
        let message = "The prebuilt workload is out of sync with its user job";
        return Err(finish::finish(pass.now, workload, finished::OUT_OF_SYNC, message));
    }
    // What is out of sync lets nothing run.
    if ended.is_some_and(|ended| ended.reason == finished::OUT_OF_SYNC)
        && pass.job.finished().is_none()
        && let Some(plan) = stop::stop(pass, None, MISSING)
    {
        return Err(plan);
    }
    Ok(Some(workload))
}

const MISSING: &str = "missing workload";

fn missing(pass: &Pass<'_>, key: Key) -> Plan {
    if pass.job.finished().is_some() {
        return Plan::wait(Waiting::Finished);
    }
    let stopped = stop::stop(pass, None, MISSING);
    stopped.unwrap_or_else(|| Plan::wait(Waiting::PrebuiltMissing(key)))
}

/// Makes a workload the job's.
fn adopt(pass: &Pass<'_>, workload: &Workload) -> super::Step {
    let meta = &workload.metadata;
    let mut owners: Vec<OwnerReference> = meta.owner_references.clone().unwrap_or_default();
    owners.push(build::owner(pass.job));
    let mut finalizers = meta.finalizers.clone().unwrap_or_default();
    if !finalizers.iter().any(|one| one == labels::RESOURCE_IN_USE) {
        finalizers.push(labels::RESOURCE_IN_USE.to_owned());
    }
    let patch = json!({"metadata": {
        "ownerReferences": owners,
        "finalizers": finalizers,
        "labels": {labels::JOB_UID: pass.job.uid()},
    }});
    ensure::patch(workload, patch)
}
