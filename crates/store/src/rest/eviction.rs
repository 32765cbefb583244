//! Driving a pod off its node, as far as the PodDisruptionBudget over it allows.
//!
//! A budget is charged in the very change that deletes the pod, so that two evictions can never
//! both have the last pod there is to spare. Its controller does the counting.

use std::sync::Arc;

use lockstep_api::{
    Resource, Status,
    json::{self, at, integer, list, text},
    kinds::disruption_budget::{CONDITION, INSUFFICIENT_PODS, SYNC_FAILED, selects},
    status::Cause,
    strategy::Json,
};
use serde_json::{Value, json};

use super::{
    DeleteOptions, Plan, Scene,
    delete::{check_preconditions, delete_as},
    metadata::seconds,
    not_found, update,
};
use crate::{change::Op, object::Object};

/// Who owns what an eviction was charged: upstream's API server does it.
const MANAGER: &str = "kube-apiserver";
/// How many evictions may wait for the controller of their budget to have heard of them.
const DISRUPTED_MAX: usize = 2000;
const VIOLATED: &str = "Cannot evict pod as it would violate the pod's disruption budget.";

/// Plans the eviction of the pod `name`: it is deleted, and says why.
pub fn evict(scene: &Scene<'_>, name: &str, options: &DeleteOptions) -> Result<Plan, Status> {
    let old = scene.find(name).ok_or_else(|| not_found(scene, name))?;
    check_preconditions(scene.resource, old, options)?;
    let mut object = scene.shown(old);
    let charge = if is_guarded(&object) { charge(scene, name, &object)? } else { Vec::new() };
    note_eviction(&mut object, &seconds(scene.context.now));
    let mut plan = delete_as(scene, old, object, options);
    plan.change.ops.extend(charge);
    Ok(plan)
}

/// Whether there is anything to disrupt: a pod that has not begun, has ended or is going anyway
/// can be evicted at any time.
fn is_guarded(pod: &Json) -> bool {
    let is_running = !matches!(text(pod, &["status", "phase"]), "Succeeded" | "Failed" | "Pending");
    is_running && at(pod, &["metadata", "deletionTimestamp"]).is_none_or(Value::is_null)
}

/// What the budget over a pod is charged for its eviction.
fn charge(scene: &Scene<'_>, name: &str, pod: &Json) -> Result<Vec<Op>, Status> {
    let Some((kind, budget)) = budget_over(scene, pod)? else { return Ok(Vec::new()) };
    let mut object = kind.strategy.from_stored(budget.json());
    if !is_ready(pod) && spares_unready(&object) {
        return Ok(Vec::new());
    }
    spend(&mut object, name, &seconds(scene.context.now))?;
    let scene = Scene { resource: kind, manager: scene.manager.and(Some(MANAGER)), ..*scene };
    Ok(update(&scene, Some("status"), &budget.meta.name, object)?.change.ops)
}

type Budget<'a> = (&'a Arc<Resource>, &'a Arc<Object>);

/// The budget that selects a pod, if there is one.
fn budget_over<'a>(scene: &Scene<'a>, pod: &Json) -> Result<Option<Budget<'a>>, Status> {
    let kind = scene.catalog.registry().get("policy", "v1", "poddisruptionbudgets");
    let Some(kind) = kind else { return Ok(None) };
    let all = scene.view.range(&kind.table, Some(scene.namespace), None);
    let mut found = all.map(|(_, budget)| budget).filter(|budget| selects(&budget.json(), pod));
    match (found.next(), found.next()) {
        (Some(_), Some(_)) => Err(Status::unexpected(
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does \
             not support.",
        )),
        (budget, _) => Ok(budget.map(|budget| (kind, budget))),
    }
}

fn is_ready(pod: &Json) -> bool {
    let mut conditions = list(pod, &["status", "conditions"]).iter();
    conditions.any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}

/// Whether pods that are not ready can go without being counted: they do not count as healthy.
fn spares_unready(budget: &Json) -> bool {
    let (current, desired) = (count(budget, "currentHealthy"), count(budget, "desiredHealthy"));
    text(budget, &["spec", "unhealthyPodEvictionPolicy"]) == "AlwaysAllow"
        || (current >= desired && desired > 0)
}

fn count(budget: &Json, field: &str) -> i64 {
    integer(budget, &["status", field]).unwrap_or_default()
}

/// Charges a budget with the eviction of a pod, or says why it cannot have it.
fn spend(budget: &mut Json, pod: &str, now: &str) -> Result<(), Status> {
    let name = text(budget, &["metadata", "name"]).to_owned();
    let generation = integer(budget, &["metadata", "generation"]).unwrap_or_default();
    if count(budget, "observedGeneration") < generation {
        let why = format!("The disruption budget {name} is still being processed by the server.");
        return Err(too_many(10, why));
    }
    let forbidden = |why| Status::not_allowed(("policy", "poddisruptionbudget"), &name, why);
    let allowed = count(budget, "disruptionsAllowed");
    if allowed < 0 {
        return Err(forbidden("pdb disruptions allowed is negative"));
    }
    let disrupted = at(budget, &["status", "disruptedPods"]).and_then(Value::as_object);
    if disrupted.is_some_and(|pods| pods.len() > DISRUPTED_MAX) {
        return Err(forbidden(
            "DisruptedPods map too big - too many evictions not confirmed by PDB controller",
        ));
    }
    if allowed == 0 {
        return Err(too_many(0, refusal(budget, &name)));
    }
    let generation = count(budget, "observedGeneration");
    let status = json::object_mut(budget, "status");
    status.insert("disruptionsAllowed".to_owned(), (allowed - 1).into());
    json::object_mut(status, "disruptedPods").insert(pod.to_owned(), now.into());
    if allowed == 1 {
        exhaust(status, generation, now);
    }
    Ok(())
}

fn too_many(retry_after_seconds: u32, why: String) -> Status {
    let mut status = Status::too_many_requests(VIOLATED, retry_after_seconds);
    let cause = Cause { reason: "DisruptionBudget".to_owned(), message: why, field: String::new() };
    status.details.get_or_insert_default().causes.push(cause);
    status
}

/// Why a budget has no pod to spare.
fn refusal(budget: &Json, name: &str) -> String {
    let (current, desired) = (count(budget, "currentHealthy"), count(budget, "desiredHealthy"));
    let conditions = list(budget, &["status", "conditions"]);
    let word = |condition: &Value, field: &str| -> String {
        condition[field].as_str().unwrap_or_default().to_owned()
    };
    let refused = conditions.iter().find(|condition| condition["type"] == CONDITION);
    let refused = refused
        .filter(|condition| condition["status"] == "False")
        .map(|condition| (word(condition, "reason"), word(condition, "message")))
        .filter(|(_, message)| !message.is_empty());
    match refused {
        Some((reason, message)) if reason == SYNC_FAILED => format!(
            "The disruption budget {name} does not allow evicting pods currently because it failed \
             sync: {message}"
        ),
        _ if current <= desired => format!(
            "The disruption budget {name} needs {desired} healthy pods and has {current} currently"
        ),
        Some((reason, message)) => format!(
            "The disruption budget {name} does not allow evicting pods currently ({reason}): \
             {message}"
        ),
        None => format!("The disruption budget {name} does not allow evicting pods currently"),
    }
}

/// Notes that there is no pod to spare any more.
fn exhaust(status: &mut Json, generation: i64, now: &str) {
    json::set_default(status, "conditions", json!([]));
    let Some(conditions) = status.get_mut("conditions").and_then(Value::as_array_mut) else {
        return;
    };
    let mut condition = json!({"type": CONDITION, "status": "False", "reason": INSUFFICIENT_PODS,
        "message": "", "lastTransitionTime": now, "observedGeneration": generation});
    match conditions.iter_mut().find(|condition| condition["type"] == CONDITION) {
        Some(old) => {
            if old["status"] == "False" {
                condition["lastTransitionTime"] = old["lastTransitionTime"].take();
            }
            *old = condition;
        }
        None => conditions.push(condition),
    }
}

fn note_eviction(object: &mut Json, now: &str) {
    let status = json::object_mut(object, "status");
    json::set_default(status, "conditions", json!([]));
    let Some(conditions) = status.get_mut("conditions").and_then(Value::as_array_mut) else {
        return;
    };
    let is_target = |condition: &Value| condition["type"] == "DisruptionTarget";
    // Whoever was first to say why it goes was right.
    if conditions.iter().any(|condition| is_target(condition) && condition["status"] == "True") {
        return;
    }
    conditions.retain(|condition| !is_target(condition));
    conditions.push(json!({
        "type": "DisruptionTarget",
        "status": "True",
        "lastProbeTime": null,
        "lastTransitionTime": now,
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
    }));
}

#[cfg(test)]
mod tests;
