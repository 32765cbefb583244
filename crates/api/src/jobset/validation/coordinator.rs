//! Whether the coordinator exists, and whether its address fits into a label.

use crate::{
    field::{ErrorList, FieldError},
    jobset::{Coordinator, JobSetSpec, names::coordinator},
    labels::jobset::COORDINATOR,
    names,
    quote::quoted,
};

/// Says what is wrong with the coordinator.
pub(super) fn validate(jobset: &str, spec: &JobSetSpec) -> ErrorList {
    let Some(named) = &spec.coordinator else { return ErrorList::new() };
    let address = coordinator(jobset, spec, named);
    let faults = names::label_value(&address);
    let label = (!faults.is_empty()).then(|| {
        format!(
            "spec will lead to invalid label value {} for coordinator label {} (long JobSet / \
             ReplicatedJob / SubDomain name?): {}",
            quoted(&address),
            quoted(COORDINATOR),
            faults.join(", ")
        )
    });
    let found = [find(spec, named), label];
    found.into_iter().flatten().map(|why| FieldError::internal(&why)).collect()
}

/// The first reason why there is no such pod.
fn find(spec: &JobSetSpec, named: &Coordinator) -> Option<String> {
    let Coordinator { replicated_job: name, job_index, pod_index } = named;
    let Some(job) = spec.replicated_jobs.iter().find(|job| job.name == *name) else {
        return Some(format!("coordinator replicatedJob {name} does not exist"));
    };
    if !(0..i64::from(job.replicas)).contains(job_index) {
        let why = format!("coordinator job index {job_index} is invalid for replicatedJob {name}");
        return Some(why);
    }
    let template = job.template.spec.as_ref();
    let is_indexed = template.and_then(|spec| spec.completion_mode.as_deref()) == Some("Indexed");
    let completions = template.and_then(|spec| spec.completions).filter(|_| is_indexed);
    let Some(completions) = completions else {
        let why = "job for coordinator pod must be indexed completion mode, and completions \
                   number must be set";
        return Some(why.to_owned());
    };
    (!(0..i64::from(completions)).contains(pod_index)).then(|| {
        format!(
            "coordinator pod index {pod_index} is invalid for replicatedJob {name} job index \
             {job_index}"
        )
    })
}
