//! What can be done to pods beside writing them: giving them a node.

use lockstep_api::{Status, json, pod, strategy::Json};

use super::{Plan, Scene, not_found, update};
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
