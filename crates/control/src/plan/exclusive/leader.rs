//! The pod that leads the others of its Job.

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use lockstep_api::labels::jobset as keys;

use super::{Surroundings, annotation, label, topology};

/// The annotation in which the Job controller tells a pod its index.
const COMPLETION_INDEX: &str = "batch.kubernetes.io/job-completion-index";

/// How many parts the name of a pod of a JobSet has at least: set, replicated job, Job, index,
/// rest.
const PARTS_MIN: usize = 5;

/// Whether a pod is the first of its Job.
pub fn is_leader(pod: &Pod) -> bool {
    annotation(pod, COMPLETION_INDEX) == Some("0")
}

/// The leader of a follower.
pub(super) fn find(pod: &Pod, around: &impl Surroundings) -> Result<Pod, String> {
    let set = label(pod, keys::JOBSET_NAME)?;
    let job = label(pod, keys::REPLICATED_JOB_NAME)?;
    let index = label(pod, keys::JOB_INDEX)?;
    let name = format!("{set}-{job}-{index}-0");
    let mut leaders = around.pods_named(&format!("{name}-"));
    leaders.retain(|pod| stem(pod) == Some(&name) && topology(pod).is_some() && is_live(pod));
    let count = leaders.len();
    let leader = leaders.pop().filter(|_| count == 1).ok_or_else(|| {
        format!(
            "expected 1 leader pod ({name}), but got {count}. this is an expected, transient error"
        )
    })?;
    let owner = owner(pod).ok_or("follower pod has no owner reference")?;
    let leading = super::leader::owner(&leader).ok_or_else(|| {
        let name = leader.metadata.name.as_deref().unwrap_or_default();
        format!("leader pod {name:?} has no owner reference")
    })?;
    if owner.uid != leading.uid {
        let (own, other) = (&owner.uid, &leading.uid);
        return Err(format!("follower pod owner UID ({own}) != leader pod owner UID ({other})"));
    }
    Ok(leader)
}

/// The controller of a pod.
pub(super) fn owner(pod: &Pod) -> Option<&OwnerReference> {
    let mut owners = pod.metadata.owner_references.iter().flatten();
    owners.find(|owner| owner.controller == Some(true))
}

/// The name of a pod without what was drawn for it.
fn stem(pod: &Pod) -> Option<&str> {
    let name = pod.metadata.name.as_deref()?;
    if name.split('-').count() < PARTS_MIN {
        return None;
    }
    name.rsplit_once('-').map(|(stem, _)| stem)
}

fn is_live(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    pod.metadata.deletion_timestamp.is_none() && !matches!(phase, Some("Failed" | "Succeeded"))
}
