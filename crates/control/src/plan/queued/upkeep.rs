//! What of a job may change at any time, and its workload follows.

use lockstep_api::kueue::{GROUP, Workload};
use lockstep_api::labels::kueue as labels;
use serde_json::{Value, json};

use super::{Pass, Plan, build, condition, ensure, prebuilt, priority};

/// The priority follows the class of workloads that the job names; the value of that is followed by
/// passes over the workload, as by those of workloads that have no job. While quota is held it may
/// not come from elsewhere than before.
pub(super) fn follow_class(pass: &Pass<'_>, workload: &Workload) -> Option<Plan> {
    let wanted = priority::of_class(pass).ok().flatten()?;
    let known = workload.spec.priority_class_ref.as_ref();
    let is_of_class = known.is_some_and(|class| class.group == GROUP);
    if condition::holds_quota(workload) && !is_of_class {
        return None;
    }
    if known == wanted.class.as_ref() {
        return None;
    }
    let patch = json!({"spec": {"priorityClassRef": wanted.class, "priority": wanted.value}});
    Some(Plan::of([ensure::patch(workload, patch)]))
}

/// What annotations of the job say of its workload is said there too. A gate that is gone is gone,
/// unless somebody else has made the workload; other annotations may have been put there by hand.
pub(super) fn follow_annotations(pass: &Pass<'_>, workload: &Workload) -> Option<Plan> {
    let known = workload.metadata.annotations.as_ref();
    let known_value = |key: &str| known.and_then(|known| known.get(key));
    let mut changes = json!({});
    for (key, value) in build::annotations(pass.job) {
        if known_value(key) != Some(value) {
            changes[key] = json!(value);
        }
    }
    let gate = labels::ADMISSION_GATED_BY;
    let is_ours = prebuilt::name(pass.job).is_none();
    if is_ours && pass.job.annotation(gate).is_none() && known_value(gate).is_some() {
        changes[gate] = Value::Null;
    }
    if changes == json!({}) {
        return None;
    }
    Some(Plan::of([ensure::patch(workload, json!({"metadata": {"annotations": changes}}))]))
}

/// A job that stands still may change its queue, as long as it holds no quota.
pub(super) fn follow_queue(pass: &Pass<'_>, workload: &Workload) -> Option<Plan> {
    let queue = build::queue(pass.job);
    let is_free = pass.job.is_suspended() && !condition::holds_quota(workload);
    if !is_free || workload.spec.queue_name == queue {
        return None;
    }
    Some(Plan::of([ensure::patch(workload, json!({"spec": {"queueName": queue}}))]))
}
