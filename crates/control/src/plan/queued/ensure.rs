//! One workload for a job: the one that asks for what the job is.

use lockstep_api::kueue::Workload;
use lockstep_api::labels::kueue::RESOURCE_IN_USE;
use serde_json::{Value, json};

use super::known::{controller, uid};
use super::{
    Pass, Patch, Plan, Step, Waiting, WorkloadRef, build, condition, equivalence, evict, prebuilt,
    stop,
};
use crate::plan::{Event, Key};

/// The workload of a job, if it has one; otherwise what has to happen first.
pub(super) fn one<'a>(pass: &Pass<'a>) -> Result<Option<&'a Workload>, Plan> {
    let foreign: Vec<&Workload> = all(pass).filter(|workload| !is_own(pass, workload)).collect();
    let steps = releases(foreign);
    if !steps.is_empty() {
        // They are those of a job that had this name before.
        return Err(Plan::of(steps));
    }
    if let Some(name) = prebuilt::name(pass.job) {
        return prebuilt::one(pass, name);
    }
    let (mut kept, mut stale) = (None, Vec::new());
    for workload in own(pass) {
        if kept.is_none() && equivalence::matches(pass, workload) {
            kept = Some(workload);
        } else if !is_leaving(workload) {
            stale.push(workload);
        }
    }
    // What has ended is not compared any more: it only has to be told so.
    if kept.is_none() && pass.job.finished().is_some() {
        return Ok(stale.first().copied());
    }
    if stale.is_empty() && (kept.is_some() || pass.job.is_suspended()) {
        return Ok(kept);
    }
    match kept {
        Some(_) => Err(Plan::of(deletions(stale))),
        None => Err(replace(pass, &stale)),
    }
}

/// What is done about workloads none of which asks for what the job is.
fn replace(pass: &Pass<'_>, stale: &[&Workload]) -> Plan {
    let only = (stale.len() == 1).then(|| stale[0]);
    let message = match only {
        None => "Missing Workload; unable to restore pod templates",
        Some(_) => "No matching Workload; restoring pod templates according to existent Workload",
    };
    if let Some(plan) = stop::stop(pass, only, message) {
        return plan;
    }
    let Some((first, others)) = stale.split_first() else {
        return Plan::wait(Waiting::BeingDeleted);
    };
    if !condition::holds_quota(first) && first.metadata.deletion_timestamp.is_none() {
        let steps = deletions(others.iter().copied());
        return if steps.is_empty() { build::update(pass, first) } else { Plan::of(steps) };
    }
    // Quota is held until nothing runs that uses it.
    if evict::is_active(pass, None) {
        return Plan::wait_until(Waiting::PodsActive, evict::look_again(pass.now));
    }
    let deleted = deletions(stale.iter().copied());
    Plan::of([same(pass)].into_iter().chain(deleted).collect::<Vec<_>>())
}

/// Asks whether the job is what it was seen as: a patch of nothing, which another version refuses.
/// Before quota is given back, since what is known of a job that stands still may be old.
pub(super) fn same(pass: &Pass<'_>) -> Step {
    let meta = pass.job.meta();
    let patch = json!({"metadata": {"uid": meta.uid, "resourceVersion": meta.resource_version}});
    Step::PatchJob { uid: pass.job.uid().to_owned(), patch: Patch::Merge(patch) }
}

/// Asks whether a workload is what it was seen as. Before a job is stopped that was not admitted:
/// the admission may be on its way to us, and others who know of it would start the job again.
pub(super) fn same_workload(workload: &Workload) -> Step {
    patch(workload, json!({"metadata": {}}))
}

/// The workloads of this very job.
pub(super) fn own<'a>(pass: &Pass<'a>) -> impl Iterator<Item = &'a Workload> {
    let pass = *pass;
    all(&pass).filter(move |workload| is_own(&pass, workload))
}

fn all<'a>(pass: &Pass<'a>) -> impl Iterator<Item = &'a Workload> + use<'a> {
    pass.known.workloads_of(pass.key)
}

/// Whether a workload is going, and nothing here holds it back.
fn is_leaving(workload: &Workload) -> bool {
    workload.metadata.deletion_timestamp.is_some() && release(workload).is_none()
}

fn is_own(pass: &Pass<'_>, workload: &Workload) -> bool {
    controller(&workload.metadata).is_some_and(|owner| owner.uid == uid(pass.job.meta()))
}

/// Deletes workloads, and says so. What is being deleted already is only let go.
pub(super) fn deletions<'a>(workloads: impl IntoIterator<Item = &'a Workload>) -> Vec<Step> {
    let mut steps = Vec::new();
    for workload in workloads {
        steps.extend(release(workload));
        if workload.metadata.deletion_timestamp.is_some() {
            continue;
        }
        let key = Key::of(&workload.metadata);
        steps.push(Step::DeleteWorkload { workload: WorkloadRef::of(workload) });
        let message = format!("Deleted not matching Workload: {key}");
        steps.push(Step::Emit(Event::normal("DeletedWorkload", message)));
    }
    steps
}

/// Lets workloads go that something wants to delete.
pub(super) fn releases<'a>(workloads: impl IntoIterator<Item = &'a Workload>) -> Vec<Step> {
    workloads.into_iter().filter_map(release).collect()
}

/// Takes the finalizer off a workload, if it has it.
pub(super) fn release(workload: &Workload) -> Option<Step> {
    let finalizers = workload.metadata.finalizers.as_ref()?;
    let left: Vec<&String> = finalizers.iter().filter(|one| *one != RESOURCE_IN_USE).collect();
    (left.len() < finalizers.len())
        .then(|| patch(workload, json!({"metadata": {"finalizers": left}})))
}

/// A patch of a workload, for no other and for no other version.
pub(super) fn patch(workload: &Workload, mut patch: Value) -> Step {
    let workload = WorkloadRef::of(workload);
    patch["metadata"]["uid"] = json!(workload.uid);
    patch["metadata"]["resourceVersion"] = json!(workload.version);
    Step::PatchWorkload { workload, patch }
}
