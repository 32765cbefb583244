//! Definitions of kinds: the names they get beside others, what they allow, and their end.

use std::{borrow::Cow, sync::Arc};

use lockstep_api::{
    Resource, Status, decode,
    definition::{
        FINALIZER, GROUP, PLURAL, is_true,
        names::{self, Taken},
        served::{self, Served},
    },
    json,
    strategy::Json,
};
use serde_json::Value;

use super::{Catalog, Plan, Scene, metadata, owners};
use crate::{
    change::{Check, Expect, Write},
    managed::Stated,
    object::Object,
    snapshot::Snapshot,
};

/// Who owns what the server writes about definitions.
const SERVER: &str = "kube-apiserver";

/// Whether objects of this kind are definitions.
pub(super) fn is_definition(resource: &Resource) -> bool {
    resource.group == GROUP && resource.plural == PLURAL
}

/// The resources that a definition makes; none for a kind that is built in.
pub(super) fn served(catalog: &Catalog, object: &Object) -> Option<Served> {
    let definition = object.json();
    let [group, plural] = [&["spec", "group"][..], &["spec", "names", "plural"]]
        .map(|keys| json::text(&definition, keys));
    if catalog.is_built_in(group, plural) {
        return None;
    }
    served::of(&definition)
}

/// Whether objects of the kind may still be made. The answer is what must still be true when one
/// goes in.
pub(super) fn admit_create(scene: &Scene<'_>, name: &str) -> Result<Option<Check>, Status> {
    if scene.strategy().schema().is_none() {
        return Ok(None);
    }
    let table = &scene.resource.table;
    let Some(definition) = scene.view.get(PLURAL, table) else {
        return Err(Status::no_such_resource());
    };
    if definition.meta.is_deleting() {
        let why = "create not allowed while custom resource definition is terminating";
        return Err(Status::forbidden(scene.resource, name, why));
    }
    Ok(Some(Check::Object {
        table: PLURAL.into(),
        key: Arc::clone(table),
        expect: Expect::Revision(definition.revision()),
    }))
}

/// Gives a definition its names. No other definition may change meanwhile.
pub(super) fn settle(scene: &Scene<'_>, object: &mut Json, name: &str) -> Option<Check> {
    if !is_definition(scene.resource) {
        return None;
    }
    let taken = taken(scene.view, object, name);
    names::settle(object, &taken, scene.context.now);
    Some(Check::Table {
        table: Arc::clone(&scene.resource.table),
        revision: scene.view.table_revision(&scene.resource.table),
    })
}

/// The owners of a definition that is new, or was `old`, and has got its names: those belong to the
/// server, as on a real one, where a part of it writes them.
pub(super) fn owners<'a>(
    scene: &Scene<'_>,
    object: &Json,
    old: Option<&Json>,
    known: Cow<'a, [u8]>,
) -> Cow<'a, [u8]> {
    if !is_definition(scene.resource) || scene.manager.is_none() {
        return known;
    }
    let mut before = object.clone();
    let status = json::object_mut(&mut before, "status");
    for part in ["acceptedNames", "conditions"] {
        match old.and_then(|old| json::at(old, &["status", part])) {
            Some(value) => drop(status.insert(part.to_owned(), value.clone())),
            None => drop(status.remove(part)),
        }
    }
    decode::complete(scene.resource, &mut before);
    let owned = owners::write_as(scene, SERVER, Some("status"), |writer| {
        writer.updated(&before, object, &known, Stated::Nothing).into_owned()
    });
    Cow::Owned(owned)
}

/// The names that definitions of the same group have, but for the one that is called `name`.
pub(crate) fn taken(view: &Snapshot, definition: &Json, name: &str) -> Taken {
    let mut taken = Taken::default();
    for (_, other) in view.range(PLURAL, None, None).filter(|(key, _)| ***key != *name) {
        let other = other.json();
        if names::is_same_group(&other, definition) {
            taken.add(&other);
        }
    }
    taken
}

/// What a user is told who defines a kind that is built in.
pub(super) fn warning(scene: &Scene<'_>, object: &Json) -> Option<String> {
    if !is_definition(scene.resource) {
        return None;
    }
    let text = |keys: &[&str]| json::text(object, keys);
    let (group, plural) = (text(&["spec", "group"]), text(&["spec", "names", "plural"]));
    scene.catalog.is_built_in(group, plural).then(|| {
        format!(
            "{plural}.{group} is built in: this definition is kept and shown, and the kind is \
             served as before"
        )
    })
}

/// What the deletion of a definition comes to while it has objects: the first request marks it,
/// later ones change nothing.
///
/// # Errors
/// 403 when its kind is built in.
pub(super) fn begin_deletion(scene: &Scene<'_>, old: &Arc<Object>) -> Result<Option<Plan>, Status> {
    if !is_definition(scene.resource) {
        return Ok(None);
    }
    let mut object = old.json();
    let text = |keys: &[&str]| json::text(&object, keys);
    let (group, plural) = (text(&["spec", "group"]), text(&["spec", "names", "plural"]));
    if scene.catalog.is_built_in(group, plural) {
        let why = "the kind is built in and cannot be removed";
        return Err(Status::forbidden(scene.resource, &old.meta.name, why));
    }
    if old.meta.is_deleting() {
        let is_held = old.meta.finalizers.iter().any(|name| &**name == FINALIZER);
        return Ok(is_held.then(|| Plan::unchanged(old)));
    }
    let meta = metadata::metadata(&mut object);
    let generation = meta.get("generation").cloned().unwrap_or_default();
    metadata::mark_deleting(meta, scene.context.now, 0);
    // As upstream: definitions are marked in a way of their own.
    meta.insert("generation".to_owned(), generation);
    meta.remove("deletionGracePeriodSeconds");
    let finalizers = meta.entry("finalizers").or_insert_with(|| Value::Array(Vec::new()));
    if let Value::Array(finalizers) = finalizers
        && !finalizers.iter().any(|name| name == FINALIZER)
    {
        finalizers.push(FINALIZER.into());
    }
    let pending = (
        "InstanceDeletionPending",
        "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
    );
    names::set_condition(&mut object, "Terminating", true, pending, scene.context.now);
    let write = Write::Put(scene.draft(object, old.managed()));
    let op = scene.op(&old.meta.name, Expect::Revision(old.revision()), write);
    Ok(Some(Plan::of(op)))
}

/// Lets go of a definition whose objects are gone, says that they are going, or gives it names that
/// have become free.
pub(crate) fn tidied(view: &Snapshot, old: &Object, now: jiff::Timestamp) -> Option<Json> {
    let mut object = old.json();
    if old.meta.is_deleting() {
        if !old.meta.finalizers.iter().any(|name| &**name == FINALIZER) {
            return None;
        }
        if view.len(&old.meta.name) == 0 {
            let meta = metadata::metadata(&mut object);
            if let Some(Value::Array(finalizers)) = meta.get_mut("finalizers") {
                finalizers.retain(|name| name != FINALIZER);
            }
            let done = ("InstanceDeletionCompleted", "removed all instances");
            names::set_condition(&mut object, "Terminating", false, done, now);
            return Some(object);
        }
        let going = ("InstanceDeletionInProgress", "CustomResource deletion is in progress");
        names::set_condition(&mut object, "Terminating", true, going, now);
        return Some(object);
    }
    if is_true(&object, "NamesAccepted") {
        return None;
    }
    let taken = taken(view, &object, &old.meta.name);
    names::settle(&mut object, &taken, now);
    Some(object)
}
