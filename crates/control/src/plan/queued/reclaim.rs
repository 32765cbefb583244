//! Pods that are not needed any more give their quota back before the job has ended.

use lockstep_api::kueue::{ReclaimablePod, Workload};

use super::{Pass, Plan, Step, WorkloadRef, condition};

/// Writes down how many pods of each set are not needed any more.
pub(super) fn update(pass: &Pass<'_>, workload: &Workload) -> Option<Plan> {
    let known = workload.status.as_ref().map(|status| status.reclaimable_pods.as_slice());
    let known = known.unwrap_or_default();
    let mut wanted = pass.job.reclaimable();
    for one in &mut wanted {
        let set = workload.spec.pod_sets.iter().find(|set| set.name == one.name);
        one.count = one.count.min(set.map_or(0, |set| set.count));
    }
    if condition::holds_quota(workload) {
        keep(&mut wanted, known);
    }
    wanted.retain(|one| one.count > 0);
    let is_same = known.len() == wanted.len() && wanted.iter().all(|one| known.contains(one));
    if is_same {
        return None;
    }
    let mut status = workload.status.clone().unwrap_or_default();
    status.reclaimable_pods = wanted;
    let (workload, status) = (WorkloadRef::of(workload), Box::new(status));
    Some(Plan::of([Step::WriteWorkloadStatus { workload, status }]))
}

/// Quota that was given back is not taken again while the workload runs.
fn keep(wanted: &mut Vec<ReclaimablePod>, known: &[ReclaimablePod]) {
    for old in known {
        match wanted.iter_mut().find(|new| new.name == old.name) {
            Some(new) => new.count = new.count.max(old.count),
            None => wanted.push(old.clone()),
        }
    }
}
