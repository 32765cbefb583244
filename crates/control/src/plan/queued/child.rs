//! Jobs that belong to another one that waits in a queue: they have no workload of their own, and
//! run only while that of the other is admitted.

use lockstep_api::kueue::Workload;
use serde_json::json;

use super::{JobKey, Object, Pass, Patch, Plan, Step, Waiting, condition, ensure};
use crate::plan::Event;

pub(super) fn plan(pass: &Pass<'_>, of: &JobKey) -> Plan {
    let steps = ensure::deletions(ensure::own(pass));
    if !steps.is_empty() {
        return Plan::of(steps);
    }
    let latest = latest_workload(pass, of);
    let may_run = is_over(pass, of) || latest.is_some_and(condition::is_admitted);
    if may_run || is_halted(pass.job) || pass.job.finished().is_some() {
        return Plan::wait(Waiting::PartOf(of.clone()));
    }
    let event = Event::normal("Suspended", "Kueue managed child job suspended");
    let steps = [suspend(pass.job), Step::Emit(event)];
    Plan::of(latest.map(ensure::same_workload).into_iter().chain(steps).collect::<Vec<_>>())
}

/// Whether the ancestor is not there or over, and so sees to its parts itself.
fn is_over(pass: &Pass<'_>, of: &JobKey) -> bool {
    pass.known.job(of).is_none_or(|ancestor| {
        ancestor.finished().is_some() || ancestor.meta().deletion_timestamp.is_some()
    })
}

/// The latest workload of the ancestor that has not ended.
fn latest_workload<'a>(pass: &Pass<'a>, of: &JobKey) -> Option<&'a Workload> {
    let workloads = pass.known.workloads_of(of);
    let open = workloads.filter(|workload| !condition::is_finished(workload));
    open.max_by_key(|one| one.metadata.creation_timestamp.as_ref().map(|at| at.0))
}

fn is_halted(job: &Object) -> bool {
    match job {
        Object::Job(job) => job.spec.as_ref().and_then(|spec| spec.suspend) == Some(true),
        Object::JobSet(jobset) => jobset.spec.suspend == Some(true),
    }
}

fn suspend(job: &Object) -> Step {
    let meta = job.meta();
    let patch = json!({
        "metadata": {"uid": meta.uid, "resourceVersion": meta.resource_version},
        "spec": {"suspend": true},
    });
    Step::PatchJob { uid: job.uid().to_owned(), patch: Patch::Merge(patch) }
}
