//! Jobs that run grow and shrink with their replicated job.

use std::collections::BTreeMap;

use lockstep_api::jobset::ReplicatedJob;

use super::{Bucket, Child, Resize, Step, pass::Pass};

/// Passes new sizes on to Jobs that have not ended.
pub(super) fn resize(pass: &mut Pass<'_>) {
    if !pass.options.gates.elastic_job_set {
        return;
    }
    let groups = pass.spec().replicated_jobs.iter();
    let wanted: BTreeMap<&str, i32> =
        groups.filter_map(|group| Some((group.name.as_str(), size(group)?))).collect();
    let mut jobs = Vec::new();
    for child in pass.view.bucket(Bucket::Active) {
        let size = child.group().and_then(|name| wanted.get(name)).copied();
        if let Some(size) = size.filter(|size| sizes(child) != [Some(*size); 2]) {
            jobs.push(Resize { job: child.reference(), size });
        }
    }
    if !jobs.is_empty() {
        pass.steps.push(Step::ResizeJobs(jobs));
    }
}

/// The size Jobs should have. Parallelism and completions must be given, and be the same: what is
/// not given is no opinion.
fn size(wanted: &ReplicatedJob) -> Option<i32> {
    let spec = wanted.template.spec.as_ref()?;
    spec.parallelism.filter(|size| spec.completions == Some(*size))
}

fn sizes(child: &Child) -> [Option<i32>; 2] {
    let spec = child.job.spec.as_ref();
    [spec.and_then(|spec| spec.parallelism), spec.and_then(|spec| spec.completions)]
}
