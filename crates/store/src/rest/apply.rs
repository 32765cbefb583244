//! PATCH with an apply configuration: server-side apply.

use lockstep_api::{
    Resource, Status,
    decode::{self, FieldValidation, PatchKind},
    json, meta,
    strategy::Json,
};
use serde_json::Value;

use super::{
    Plan, Scene, create, metadata, not_found,
    owners::{self, Owners},
    update,
};
use crate::{
    fields::{self, Place},
    managed::Applied,
};

/// What somebody wants to be true of an object.
#[derive(Clone, Debug)]
pub struct Configuration {
    /// The fields, with `apiVersion` and `kind`.
    pub object: Json,
    /// Whether fields that others own with other values are taken from them.
    pub is_forced: bool,
    /// What a strict reader finds wrong with it: keys that are there twice, and where.
    pub doubled: Vec<String>,
}

/// Plans to make `config` true of the object `name`, or of the part `sub` names. An object that is
/// not there is created.
pub fn apply(
    scene: &Scene<'_>,
    sub: Option<&str>,
    name: &str,
    config: &Configuration,
    validation: FieldValidation,
) -> Result<Plan, Status> {
    let Some(old) = scene.find(name) else {
        if sub.is_some() {
            return Err(not_found(scene, name));
        }
        return apply_new(scene, name, config, validation);
    };
    let current = scene.shown(old);
    let (object, managed, warnings) =
        applied(scene, sub, config, (&current, old.managed()), validation)?;
    update::check_address(scene, name, &object)?;
    update::check_preconditions(scene, name, &object, old)?;
    let owners = Owners::Applied(managed);
    let mut plan = update::replace(scene, sub, (old, &current), object, owners)?;
    plan.warnings.splice(0..0, warnings);
    Ok(plan)
}

fn apply_new(
    scene: &Scene<'_>,
    name: &str,
    config: &Configuration,
    validation: FieldValidation,
) -> Result<Plan, Status> {
    let blank = owners::blank(scene.resource);
    let (mut object, managed, warnings) = applied(scene, None, config, (&blank, &[]), validation)?;
    let uid = json::text(&object, &["metadata", "uid"]);
    if !uid.is_empty() {
        let why = format!(
            "uid mismatch: the provided object specified uid {uid}, and no existing object was \
             found"
        );
        return Err(Status::conflict(scene.resource, name, &why));
    }
    metadata::settle_namespace(&mut object, scene)?;
    if json::text(&object, &["metadata", "name"]).is_empty() {
        return Err(update::nameless(name));
    }
    update::check_address(scene, name, &object)?;
    // There is none yet, so which one was meant makes no difference; that one was meant does.
    meta::requested_version(&object)?;
    metadata::metadata(&mut object).remove("resourceVersion");
    let mut plan = create::create_owned(scene, object, Owners::Applied(managed))?;
    plan.warnings.splice(0..0, warnings);
    Ok(plan)
}

/// The object with the configuration applied to it, its owners, and what the user should know.
pub(super) fn applied(
    scene: &Scene<'_>,
    sub: Option<&str>,
    config: &Configuration,
    (live, known): (&Json, &[u8]),
    validation: FieldValidation,
) -> Result<(Json, Vec<u8>, Vec<String>), Status> {
    check_config(scene.resource, &config.object)?;
    let blank = owners::blank(scene.resource);
    let manager = scene.manager.unwrap_or_default();
    let Applied { mut object, managers } = owners::write_as(scene, manager, sub, |writer| {
        writer.applied((&blank, live), &config.object, known, config.is_forced)
    })?;
    let warnings = match validation {
        FieldValidation::Strict if !config.doubled.is_empty() => {
            let faults: String =
                config.doubled.iter().map(|fault| format!("\n  {fault}")).collect();
            return Err(Status::bad_request(format!(
                "error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal \
                 errors:{faults}"
            )));
        }
        FieldValidation::Warn => config.doubled.clone(),
        FieldValidation::Strict | FieldValidation::Ignore => Vec::new(),
    };
    object.insert("apiVersion".to_owned(), scene.resource.api_version().into());
    object.insert("kind".to_owned(), scene.resource.kind.to_string().into());
    let merged = Value::Object(object);
    let ignore = FieldValidation::Ignore;
    let made_by = PatchKind::Applied(&config.object);
    let decoded = decode::prune_and_check(scene.resource, &merged, made_by, ignore, Vec::new())?;
    Ok((decoded.object, managers, warnings))
}

/// Whether the configuration is one of the kind, and names only fields that it has.
pub(crate) fn check_config(resource: &Resource, config: &Json) -> Result<(), Status> {
    let text = |key: &str| config.get(key).and_then(Value::as_str).unwrap_or_default();
    let version = text("apiVersion");
    let (group, version) = version.split_once('/').unwrap_or(("", version));
    let kind = text("kind");
    let shown = format!("{group}/{version}, Kind={kind}");
    if (group, version, kind) != (&resource.group, &resource.version, &resource.kind) {
        return Err(Status::bad_request(format!("invalid object type: {shown}")));
    }
    let managed = json::at(config, &["metadata", "managedFields"]);
    if managed.is_some_and(|value| !value.is_null()) {
        return Err(Status::bad_request("metadata.managedFields must be nil"));
    }
    fields::check(Place::of(resource), &Value::Object(config.clone())).map_err(|why| {
        let namespace = json::text(config, &["metadata", "namespace"]);
        let name = json::text(config, &["metadata", "name"]);
        Status::unexpected(format!(
            "failed to create typed patch object ({namespace}/{name}; {shown}): {why}"
        ))
    })
}

#[cfg(test)]
mod tests;
