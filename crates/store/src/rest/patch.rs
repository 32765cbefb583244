//! PATCH: the current version with some changes.

use lockstep_api::{Status, decode::FieldValidation};

use super::{
    Plan, Scene, not_found,
    owners::{self, Owners},
    update,
};
use crate::patch::{Patch, Refused};

/// Plans the change of the object `name`, or of the part `sub` names, by a patch.
pub fn patch(
    scene: &Scene<'_>,
    sub: Option<&str>,
    name: &str,
    patch: &Patch,
    validation: FieldValidation,
) -> Result<Plan, Status> {
    let old = scene.find(name).ok_or_else(|| not_found(scene, name))?;
    if let Some(members) = patch.members() {
        // Before anything is made of it: of many who change an object at the same time all but one
        // come too late.
        update::check_stated(scene, name, members, old)?;
    }
    let current = scene.shown(old);
    let whole = || patch.apply(scene.resource, &owners::with_owners(&current, old), validation);
    let mut patched = if patch.names_owners() {
        whole()
    } else {
        match patch.outcome(scene.resource, &current, validation) {
            Ok(patched) => Ok(patched),
            Err(Refused::Patch(status)) => Err(status),
            // Who is told of the patched object sees all of it.
            Err(Refused::Outcome(_)) => whole(),
        }
    }?;
    update::check_preconditions(scene, name, &patched.object, old)?;
    let owners = Owners::stated(&mut patched.object);
    let mut plan = update::replace(scene, sub, (old, &current), patched.object, owners)?;
    plan.warnings.splice(0..0, patched.warnings);
    Ok(plan)
}
