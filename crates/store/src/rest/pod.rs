//! What can be done to pods beside writing them: giving them a node, and driving them off it.

use lockstep_api::{Status, json, pod, strategy::Json};
use serde_json::{Value, json};

use super::{
    DeleteOptions, Plan, Scene,
    delete::{check_preconditions, delete_as},
    metadata::seconds,
    not_found, update,
};
use crate::change::{Expect, Write};

/// Plans the assignment of the pod `name` to the node that `binding` names.
pub fn bind(scene: &Scene<'_>, name: &str, binding: &Json) -> Result<Plan, Status> {
    if json::text(binding, &["metadata", "name"]) != name {
        return Err(Status::bad_request("name in URL does not match name in Binding object"));
    }
    let old = scene.find(name).ok_or_else(|| not_found(scene, name))?;
    update::check_preconditions(scene, name, binding, old)?;
    let mut object = scene.shown(old);
    pod::bind(&mut object, binding, scene.context.now)?;
    let write = Write::Put(scene.draft(object, old.managed()));
    Ok(Plan::of(scene.op(name, Expect::Revision(old.revision()), write)))
}

/// Plans the eviction of the pod `name`: it is deleted, and says why.
pub fn evict(scene: &Scene<'_>, name: &str, options: &DeleteOptions) -> Result<Plan, Status> {
    let old = scene.find(name).ok_or_else(|| not_found(scene, name))?;
    check_preconditions(scene.resource, old, options)?;
    let mut object = scene.shown(old);
    note_eviction(&mut object, &seconds(scene.context.now));
    Ok(delete_as(scene, old, object, options))
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
