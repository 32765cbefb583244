//! Owner references: who keeps whom, and what becomes of those nobody keeps.

use std::{collections::BTreeSet, sync::Arc};

use lockstep_api::{
    Resource,
    meta::{FINALIZER_FOREGROUND, FINALIZER_ORPHAN, Owner},
    strategy::{Json, Propagation},
};
use serde_json::Value;

use super::{Candidate, View};
use crate::{
    change::Change,
    object::{self, Object},
    rest::{self, Catalog, DeleteOptions},
};

/// What one owner reference means at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hold {
    /// The owner is there.
    Solid,
    /// The owner waits for its dependents to go.
    Waiting,
    /// There is no such owner.
    Dangling,
}

/// What to do about one object, as an owner and as a dependent.
pub(super) fn plan(view: &View<'_>, resource: &Resource, object: &Arc<Object>) -> Vec<Change> {
    if object.meta.is_deleting() {
        if has_finalizer(object, FINALIZER_ORPHAN) {
            return orphan_dependents(view, resource, object);
        }
        if has_finalizer(object, FINALIZER_FOREGROUND) {
            return release(view, resource, object).into_iter().collect();
        }
        return Vec::new();
    }
    collect(view, resource, object).into_iter().collect()
}

/// Where the owner a reference names would be. An owner of a namespaced kind is in the namespace of
/// its dependent; a cluster-scoped dependent cannot name one.
pub(super) fn locate(catalog: &Catalog, owner: &Owner, namespace: &str) -> Option<Candidate> {
    let (group, version) = match owner.api_version.split_once('/') {
        Some((group, version)) => (group, version),
        None => ("", &*owner.api_version),
    };
    let resource = catalog.registry().by_kind(group, version, &owner.kind)?;
    let namespace = match (resource.is_namespaced(), namespace) {
        (true, "") => return None,
        (true, namespace) => namespace,
        (false, _) => "",
    };
    let key = object::key(namespace, &owner.name);
    Some((Arc::clone(&resource.table), key.into()))
}

/// Deletes an object nobody keeps; cuts references that keep nothing.
fn collect(view: &View<'_>, resource: &Resource, object: &Arc<Object>) -> Option<Change> {
    let holds: Vec<Hold> =
        object.meta.owners.iter().map(|owner| hold(view, owner, &object.meta.namespace)).collect();
    let is_kept = holds.contains(&Hold::Solid);
    if holds.is_empty() || (is_kept && holds.iter().all(|hold| *hold == Hold::Solid)) {
        return None;
    }
    if is_kept {
        let keep = |at: usize| holds[at] == Hold::Solid;
        return rewrite(view, resource, object, |json| retain_owners(json, keep));
    }
    let is_awaited = holds.contains(&Hold::Waiting);
    let has_dependents = view.snapshot.dependents(&object.meta.uid).next().is_some();
    let propagation = if is_awaited && has_dependents {
        // The owner waits for this object, which in turn must wait for its own dependents.
        Propagation::Foreground
    } else if has_finalizer(object, FINALIZER_ORPHAN) {
        Propagation::Orphan
    } else if has_finalizer(object, FINALIZER_FOREGROUND) {
        Propagation::Foreground
    } else {
        Propagation::Background
    };
    delete(view, resource, object, propagation)
}

fn hold(view: &View<'_>, owner: &Owner, namespace: &str) -> Hold {
    let Some((table, key)) = locate(view.catalog, owner, namespace) else {
        // What cannot be looked for may be there. Keeping too much is the smaller harm.
        return Hold::Solid;
    };
    match view.snapshot.get(&table, &key) {
        Some(found) if found.meta.uid == owner.uid => {
            if is_waiting(found) {
                Hold::Waiting
            } else {
                Hold::Solid
            }
        }
        _ => Hold::Dangling,
    }
}

/// Foreground deletion: the owner goes when no dependent is left that blocks it. The dependents
/// are looked at on their own when the owner begins to wait; each that goes leads back here, so
/// that the first that still blocks must be answer enough.
fn release(view: &View<'_>, resource: &Resource, owner: &Arc<Object>) -> Option<Change> {
    let waiting = waiting_for(view, owner);
    let is_blocked = view.snapshot.dependents(&owner.meta.uid).any(|(_, _, dependent)| {
        let mut references = dependent.meta.owners.iter();
        let is_blocking = references
            .any(|reference| reference.uid == owner.meta.uid && reference.block_owner_deletion);
        // Of those that own each other one must go first.
        is_blocking && !waiting.contains(&dependent.meta.uid)
    });
    if is_blocked {
        return None;
    }
    rewrite(view, resource, owner, |json| remove_finalizer(json, FINALIZER_FOREGROUND))
}

/// Who waits for `object` to go, directly or through others: the uids.
fn waiting_for(view: &View<'_>, object: &Arc<Object>) -> BTreeSet<Box<str>> {
    let mut found = BTreeSet::new();
    let mut rest = vec![object];
    while let Some(object) = rest.pop() {
        let blocked = object.meta.owners.iter().filter(|owner| owner.block_owner_deletion);
        for owner in blocked {
            let owner = locate(view.catalog, owner, &object.meta.namespace)
                .and_then(|(table, key)| view.snapshot.get(&table, &key))
                .filter(|found| found.meta.uid == owner.uid && is_waiting(found));
            rest.extend(owner.filter(|owner| found.insert(owner.meta.uid.clone())));
        }
    }
    found
}

/// Whether an object waits for its dependents to go.
pub(super) fn is_waiting(object: &Object) -> bool {
    object.meta.is_deleting() && has_finalizer(object, FINALIZER_FOREGROUND)
}

/// How many dependents are orphaned in one go. Each leads back to the owner.
pub(super) const ORPHANS_MAX: usize = 256;

/// Orphaning: dependents lose the reference, then the owner goes.
fn orphan_dependents(view: &View<'_>, resource: &Resource, owner: &Arc<Object>) -> Vec<Change> {
    let mut changes = Vec::new();
    for (table, _, dependent) in view.snapshot.dependents(&owner.meta.uid).take(ORPHANS_MAX) {
        let Some(kind) = view.catalog.stored(table) else { continue };
        let owners = &dependent.meta.owners;
        changes.extend(rewrite(view, kind, dependent, |json| {
            retain_owners(json, |at| owners[at].uid != owner.meta.uid);
        }));
    }
    if changes.is_empty() {
        changes.extend(rewrite(view, resource, owner, |json| {
            remove_finalizer(json, FINALIZER_ORPHAN);
        }));
    }
    changes
}

pub(super) fn delete(
    view: &View<'_>,
    resource: &Resource,
    object: &Object,
    propagation: Propagation,
) -> Option<Change> {
    let scene = view.scene(resource, &object.meta.namespace);
    let options = DeleteOptions {
        propagation: Some(propagation),
        uid: Some(object.meta.uid.to_string()),
        ..DeleteOptions::default()
    };
    let plan = rest::delete(&scene, &object.meta.name, &options).ok()?;
    (!plan.change.ops.is_empty()).then_some(plan.change)
}

/// The object with its metadata changed by us, who need not be asked for permission.
fn rewrite(
    view: &View<'_>,
    resource: &Resource,
    object: &Arc<Object>,
    change: impl FnOnce(&mut Json),
) -> Option<Change> {
    let mut json = object.json();
    change(&mut json);
    let plan = rest::rewrite(&view.scene(resource, &object.meta.namespace), object, json);
    (!plan.change.ops.is_empty()).then_some(plan.change)
}

fn retain_owners(json: &mut Json, keep: impl Fn(usize) -> bool) {
    edit_list(json, "ownerReferences", |at, _| keep(at));
}

fn remove_finalizer(json: &mut Json, name: &str) {
    edit_list(json, "finalizers", |_, value| value.as_str() != Some(name));
}

/// Keeps some elements of a list in the metadata; an empty list goes as a whole.
fn edit_list(json: &mut Json, field: &str, keep: impl Fn(usize, &Value) -> bool) {
    let Some(meta) = json.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    let Some(list) = meta.get_mut(field).and_then(Value::as_array_mut) else { return };
    let mut at = 0;
    list.retain(|value| {
        at += 1;
        keep(at - 1, value)
    });
    if list.is_empty() {
        meta.remove(field);
    }
}

fn has_finalizer(object: &Object, name: &str) -> bool {
    object.meta.finalizers.iter().any(|finalizer| &**finalizer == name)
}
