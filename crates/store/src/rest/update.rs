//! PUT: a new version of an object, whole or one part of it.

use std::{borrow::Cow, sync::Arc};

use lockstep_api::{
    FieldError, Path, Resource, Status, decode,
    field::ErrorKind,
    json, meta,
    strategy::{Json, MetadataCheck, keep},
};

use super::{
    Answer, Plan, Scene, admission, create, definition, limits,
    metadata::{self, Found},
    namespace, not_found,
    owners::Owners,
    quotas, size,
};
use crate::{
    change::{Expect, Write},
    object::{Draft, Object},
};

/// Plans the replacement of the object `name`, or of the part `sub` names, by `object`, which was
/// checked against its schema.
pub fn update(
    scene: &Scene<'_>,
    sub: Option<&str>,
    name: &str,
    mut object: Json,
) -> Result<Plan, Status> {
    check_address(scene, name, &object)?;
    let Some(old) = scene.find(name) else {
        if sub.is_none() && scene.strategy().allows_create_on_update() {
            // Who knows its uid means one that has been there, and is gone.
            check_uid(scene, name, &object, "")?;
            metadata::metadata(&mut object).remove("resourceVersion");
            return create(scene, object);
        }
        return Err(not_found(scene, name));
    };
    check_preconditions(scene, name, &object, old)?;
    let owners = Owners::stated(&mut object);
    let warning = metadata::unite_owners(&mut object, Found::Sent);
    let mut plan = replace(scene, sub, (old, &scene.shown(old)), object, owners)?;
    plan.warnings.splice(0..0, warning);
    Ok(plan)
}

/// Plans the replacement of `old`, which looks as `old_json`, by `object`, which is known to be
/// based on it and whose managed fields were taken out of it.
pub(super) fn replace(
    scene: &Scene<'_>,
    sub: Option<&str>,
    (old, old_json): (&Arc<Object>, &Json),
    mut object: Json,
    owners: Owners,
) -> Result<Plan, Status> {
    let name = &*old.meta.name;
    metadata::settle_namespace(&mut object, scene)?;
    if let Some(sub) = sub {
        object = with_part(scene, sub, old_json, object);
    }
    if sub.is_none() {
        carry_system_fields(&mut object, old_json);
    }
    scene.strategy().fill_defaults(&mut object);
    decode::complete(scene.resource, &mut object);
    let is_applied = matches!(owners, Owners::Applied(_));
    let managed = owners.of_changed(scene, sub, (old_json, &object), old.managed());
    let mut warnings = Vec::from_iter(metadata::unite_owners(&mut object, Found::Made));
    let check = match sub {
        None => {
            scene.strategy().prepare_update(&mut object, old_json, scene.context);
            let check = admission::allocate(scene, &mut object, Some(old_json), name)?;
            check.or_else(|| definition::settle(scene, &mut object, name))
        }
        Some(_) => None,
    };
    warnings.extend(accept(scene, sub, name, &mut object, old_json)?);
    let managed = match sub {
        None => definition::owners(scene, &object, Some(old_json), managed),
        Some(_) => managed,
    };
    let charges = quotas::charges(scene, sub, &object, Some(old_json), name)?;
    let is_last = is_let_go(scene, old, &object);
    let draft = match is_last {
        true => scene.draft(object, &managed),
        false => size::draft(scene, object, &managed, is_applied, Some(old))?,
    };
    let mut plan = rewrite_as(scene, old, draft, is_last);
    plan.change.checks.extend(check);
    if !plan.change.ops.is_empty() && !plan.is_removal() {
        plan.change.ops.extend(charges);
    }
    Ok(Plan { warnings, ..plan })
}

/// Plans the replacement of `old` by an accepted version: nothing when they are the same, its end
/// when the last that held on to it has let go.
pub fn rewrite(scene: &Scene<'_>, old: &Arc<Object>, object: Json) -> Plan {
    let is_last = is_let_go(scene, old, &object);
    rewrite_as(scene, old, scene.draft(object, old.managed()), is_last)
}

/// Whether `object`, a new version of `old`, is held by nobody any more.
fn is_let_go(scene: &Scene<'_>, old: &Object, object: &Json) -> bool {
    old.meta.is_deleting()
        && old.meta.deletion_grace_seconds.unwrap_or_default() == 0
        && json::list(object, &["metadata", "finalizers"]).is_empty()
        // A namespace has a second list of finalizers, in its spec.
        && (!namespace::is_namespace(scene.resource)
            || json::list(object, &["spec", "finalizers"]).is_empty())
}

/// Plans to write `draft` over `old`, or to end it.
fn rewrite_as(scene: &Scene<'_>, old: &Arc<Object>, draft: Draft, is_let_go: bool) -> Plan {
    let name = &*old.meta.name;
    let expect = Expect::Revision(old.revision());
    if is_let_go {
        // The client sees what it sent; watchers see the last state that was stored.
        let answer = Answer::Object(Arc::new(draft.into_object(old.revision())));
        let op = scene.op(name, expect, Write::Delete(None));
        return Plan { answer, ..Plan::of(op) };
    }
    if draft.is_same_as(old) {
        return Plan::unchanged(old);
    }
    Plan::of(scene.op(name, expect, Write::Put(draft)))
}

/// Checks a new version.
fn accept(
    scene: &Scene<'_>,
    sub: Option<&str>,
    name: &str,
    object: &mut Json,
    old: &Json,
) -> Result<Vec<String>, Status> {
    let strategy = scene.strategy();
    if sub == Some("status") {
        strategy.prepare_status_update(object, old, scene.context);
    }
    decode::complete(scene.resource, object);
    if strategy.has_generation() && is_spec_changed(object, old, strategy.has_status()) {
        let generation = json::integer(old, &["metadata", "generation"]).unwrap_or_default();
        metadata::metadata(object).insert("generation".to_owned(), (generation + 1).into());
    }
    metadata::normalize(object);
    // Through a part of the object it is looked at as a change only.
    let check = sub.map_or_else(|| strategy.metadata_check(), |_| MetadataCheck::Change);
    let is_strict = strategy.needs_qualified_finalizers();
    let mut errors = meta::validate_update(object, old, check, is_strict);
    errors.extend(match sub {
        None => strategy.validate_update(object, old),
        Some(part) => strategy.validate_part_update(part, object, old),
    });
    if let Some(admission) = &scene.catalog.admission
        && sub.is_none()
        && errors.is_empty()
    {
        errors.extend(admission.validate(scene, object, Some(old)));
    }
    if !errors.is_empty() {
        return Err(Status::invalid(scene.resource, name, &errors));
    }
    let mut warnings = Vec::new();
    if sub.is_none() {
        limits::check(scene, object, Some(old), name)?;
        warnings.extend(strategy.warnings(object, Some(old)));
        warnings.extend(definition::warning(scene, object));
    }
    Ok(warnings)
}

/// The old object with the part that the subresource `sub` may write taken from `object`.
fn with_part(scene: &Scene<'_>, sub: &str, old: &Json, mut object: Json) -> Json {
    match sub {
        "finalize" => {
            let mut merged = old.clone();
            let finalizers = object
                .get_mut("spec")
                .and_then(|spec| spec.as_object_mut())
                .and_then(|spec| spec.remove("finalizers"));
            let spec = json::object_mut(&mut merged, "spec");
            match finalizers.filter(|list| list.as_array().is_some_and(|list| !list.is_empty())) {
                Some(list) => drop(spec.insert("finalizers".to_owned(), list)),
                None => drop(spec.remove("finalizers")),
            }
            merged
        }
        // With the status of kinds that are built in upstream lets the metadata in: labels,
        // annotations and finalizers may change.
        "status" => {
            let reset = scene.strategy().reset_fields(Some(sub));
            if reset.contains(&["metadata"].as_slice()) {
                keep_all_but(&mut object, old, &["status"]);
                return object;
            }
            keep_all_but(&mut object, old, &["metadata", "status"]);
            carry_system_fields(&mut object, old);
            keep_reset(&mut object, old, reset);
            object
        }
        part => {
            keep_all_but(&mut object, old, &[part]);
            object
        }
    }
}

/// Makes every member of `object` but `parts` what it is in `old`. Most often it is already, and to
/// see that costs less than a copy.
fn keep_all_but(object: &mut Json, old: &Json, parts: &[&str]) {
    object.retain(|key, _| parts.contains(&key.as_str()) || old.contains_key(key));
    for (key, value) in old.iter().filter(|(key, _)| !parts.contains(&key.as_str())) {
        if object.get(key) != Some(value) {
            object.insert(key.clone(), value.clone());
        }
    }
}

/// Makes the fields of the metadata that a write cannot change what they are in `old`.
fn keep_reset(object: &mut Json, old: &Json, reset: &[&[&str]]) {
    let empty = Json::new();
    let old = old.get("metadata").and_then(|meta| meta.as_object()).unwrap_or(&empty);
    for path in reset {
        if let ["metadata", field] = path {
            keep(metadata::metadata(object), old, field);
        }
    }
}

/// What an update can never change.
fn carry_system_fields(object: &mut Json, old: &Json) {
    let Some(old) = old.get("metadata").and_then(|meta| meta.as_object()) else {
        return;
    };
    let meta = metadata::metadata(object);
    for field in ["generation", "creationTimestamp", "resourceVersion"] {
        keep(meta, old, field);
    }
    // Who asks for a deletion by setting its time is told that this is not the way.
    if old.contains_key("deletionTimestamp") {
        keep(meta, old, "deletionTimestamp");
    }
    for field in ["uid", "deletionGracePeriodSeconds"] {
        if let Some(value) = old.get(field) {
            json::set_default(meta, field, value.clone());
        }
    }
}

/// Whether anything but metadata and a status that is written on its own differs.
fn is_spec_changed(object: &Json, old: &Json, has_status: bool) -> bool {
    let is_spec = |key: &str| key != "metadata" && !(has_status && key == "status");
    let differs = |(key, value): (&String, _)| is_spec(key) && old.get(key) != Some(value);
    object.iter().any(differs) || old.keys().any(|key| is_spec(key) && !object.contains_key(key))
}

/// What is said to somebody who names an object in the address only.
pub(super) fn nameless(name: &str) -> Status {
    Status::bad_request(format!(
        "the name of the object ({name} based on URL) was undeterminable: name must be provided"
    ))
}

pub(super) fn check_address(scene: &Scene<'_>, name: &str, object: &Json) -> Result<(), Status> {
    let given = json::text(object, &["metadata", "name"]);
    if given.is_empty() {
        return Err(nameless(name));
    }
    if given != name {
        return Err(Status::bad_request(format!(
            "the name of the object ({given}) does not match the name on the URL ({name})"
        )));
    }
    let namespace = json::text(object, &["metadata", "namespace"]);
    if !scene.namespace.is_empty() && !namespace.is_empty() && namespace != scene.namespace {
        return Err(metadata::other_namespace());
    }
    Ok(())
}

/// As [`check_preconditions`], for a request that may say nothing about what it is based on.
pub(super) fn check_stated(
    scene: &Scene<'_>,
    name: &str,
    object: &Json,
    old: &Object,
) -> Result<(), Status> {
    match meta::requested_version(object) {
        Ok(Some(_)) => check_preconditions(scene, name, object, old),
        // What is wrong with it is said when it is applied.
        Ok(None) | Err(_) => Ok(()),
    }
}

/// What the request says about the version it is based on.
pub(super) fn check_preconditions(
    scene: &Scene<'_>,
    name: &str,
    object: &Json,
    old: &Object,
) -> Result<(), Status> {
    check_uid(scene, name, object, &old.meta.uid)?;
    check_version(scene, name, object, old)
}

/// Whether the request is about the object that has the uid `is`, if it says which it is about.
fn check_uid(scene: &Scene<'_>, name: &str, object: &Json, is: &str) -> Result<(), Status> {
    let uid = json::text(object, &["metadata", "uid"]);
    if uid.is_empty() || uid == is {
        return Ok(());
    }
    let why = format!(
        "StorageError: invalid object, Code: 4, Key: /registry/{}/{}, ResourceVersion: 0, \
         AdditionalErrorMsg: Precondition failed: UID in precondition: {uid}, UID in object meta: \
         {is}",
        folder(scene.resource),
        scene.key(name)
    );
    Err(Status::conflict(scene.resource, name, &why))
}

/// Where upstream keeps the objects of a kind. Some are where they were before their kind was
/// renamed; those of other groups than its own are by group.
fn folder(resource: &Resource) -> Cow<'_, str> {
    let (group, plural) = (&*resource.group, &*resource.plural);
    match (group, plural) {
        ("", "endpoints") => "services/endpoints".into(),
        ("", "nodes") => "minions".into(),
        ("", "services") => "services/specs".into(),
        ("apiextensions.k8s.io", _) => format!("{group}/{plural}").into(),
        _ if !resource.takes_strategic_patches() => format!("{group}/{plural}").into(),
        _ => plural.into(),
    }
}

/// Whether the request is based on the current version, if it says on which it is.
fn check_version(scene: &Scene<'_>, name: &str, object: &Json, old: &Object) -> Result<(), Status> {
    match meta::requested_version(object)? {
        Some(version) if version != old.revision() => Err(Status::modified(scene.resource, name)),
        None if !scene.strategy().allows_unconditional_update() => {
            let error = FieldError {
                kind: ErrorKind::Invalid,
                path: Path::new("metadata").child("resourceVersion"),
                body: "Invalid value: 0: must be specified for an update".to_owned(),
            };
            // Upstream names the resource here, not the kind.
            let resource = (&*scene.resource.group, &*scene.resource.plural);
            Err(Status::invalid_kind(resource, name, &vec![error]))
        }
        _ => Ok(()),
    }
}
