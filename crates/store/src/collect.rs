//! What is cleaned up without anybody asking: dependents of owners that are gone, the contents of
//! namespaces that go, events that are too old; and what quotas count.
//!
//! Whoever runs this watches what happens, asks [`candidates`] which objects are worth a look, and
//! [`plan`] what to do about each. A plan that was carried out shows up as events again, so that
//! the work goes on until there is nothing left to do.

mod backlog;
mod definition;
pub mod expiry;
mod namespace;
mod owners;
mod quota;

use std::sync::Arc;

use jiff::Timestamp;
use lockstep_api::{
    Resource,
    meta::{FINALIZER_FOREGROUND, FINALIZER_ORPHAN},
    strategy::WriteContext,
};

use crate::{
    change::Change,
    log::Event,
    object::Object,
    rest::{Catalog, Scene},
    snapshot::Snapshot,
};

pub use backlog::{Backlog, may_wait};

/// Who owns what is written about the state of things: upstream's controllers do it.
const MANAGER: &str = "kube-controller-manager";

/// An object that may need cleaning up: table and key.
pub type Candidate = (Arc<str>, Arc<str>);

/// What a planner looks at.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// The state to plan on.
    pub snapshot: &'a Snapshot,
    /// The kinds.
    pub catalog: &'a Catalog,
    /// Who cleans up, and when.
    pub context: &'a WriteContext,
}

impl<'a> View<'a> {
    fn scene(&self, resource: &'a Resource, namespace: &'a str) -> Scene<'a> {
        Scene {
            view: self.snapshot,
            catalog: self.catalog,
            resource,
            namespace,
            context: self.context,
            manager: None,
        }
    }
}

/// What to do about one candidate: changes that stand each for itself.
pub fn plan(view: &View<'_>, (table, key): &Candidate) -> Vec<Change> {
    let (Some(object), Some(resource)) =
        (view.snapshot.get(table, key), view.catalog.stored(table))
    else {
        return Vec::new();
    };
    let is_deleting = object.meta.is_deleting();
    if is_deleting && &**table == namespace::TABLE {
        let changes = namespace::plan(view, resource, object);
        if !changes.is_empty() {
            return changes;
        }
    }
    if &**table == definition::TABLE {
        let changes = definition::plan(view, resource, object);
        if !changes.is_empty() {
            return changes;
        }
    }
    let is_of_going = || definition::is_going(view, table);
    if !is_deleting && (namespace::is_due(view, table, &object.meta.namespace) || is_of_going()) {
        return namespace::delete(view, resource, object).into_iter().collect();
    }
    let mut changes = owners::plan(view, resource, object);
    if changes.is_empty() && !is_deleting && &**table == quota::TABLE {
        changes.extend(quota::plan(view, resource, object));
    }
    changes
}

/// Which objects are worth a look after `event` in `table`.
pub fn candidates(
    snapshot: &Snapshot,
    catalog: &Catalog,
    table: &Arc<str>,
    event: &Event,
) -> Vec<Candidate> {
    let mut found = quota::after(snapshot, catalog, table, event);
    let meta = &event.object.meta;
    // An owner may have waited for just this reference to go.
    let before = event.before.iter().flat_map(|before| before.meta.owners.iter());
    for owner in before.filter(|owner| event.is_deletion || !meta.owners.contains(owner)) {
        found.extend(owners::locate(catalog, owner, &meta.namespace));
    }
    if event.is_deletion {
        let dependents = snapshot.dependents(&meta.uid);
        found.extend(dependents.map(|(table, key, _)| (Arc::clone(table), Arc::clone(key))));
        found.extend(namespace::of(snapshot, catalog, &meta.namespace));
        found.extend(namespace::after(snapshot, catalog, (table, &meta.namespace)));
        found.extend(definition::of(snapshot, table));
        if &**table == definition::TABLE {
            found.extend(definition::unsettled(snapshot));
        }
        return found;
    }
    if needs_look(table, &event.object, event.before.as_deref()) {
        found.push((Arc::clone(table), Arc::clone(&event.key)));
    }
    // A namespace that goes says what it waits for, and for whom.
    let is_held = |object: &Object| (object.meta.is_deleting(), object.meta.finalizers.clone());
    if meta.is_deleting() && event.before.as_deref().map(is_held) != Some(is_held(&event.object)) {
        found.extend(namespace::of(snapshot, catalog, &meta.namespace));
    }
    let began = |is_so: fn(&Object) -> bool| {
        is_so(&event.object) && !event.before.as_deref().is_some_and(is_so)
    };
    if began(owners::is_waiting) {
        let dependents = snapshot.dependents(&meta.uid);
        found.extend(dependents.map(|(table, key, _)| (Arc::clone(table), Arc::clone(key))));
    }
    if &**table == namespace::TABLE && began(|object| object.meta.is_deleting()) {
        found.extend(namespace::next(snapshot, catalog, &meta.name));
    }
    if &**table == definition::TABLE {
        if began(|object| object.meta.is_deleting()) {
            found.extend(definition::contents(snapshot, &event.key));
        }
        found.extend(definition::unsettled(snapshot));
    }
    found
}

/// All objects worth a look in a state whose history is not known.
pub fn all_candidates(snapshot: &Snapshot, catalog: &Catalog) -> Vec<Candidate> {
    let mut found = Vec::new();
    for (name, namespace) in snapshot.range(namespace::TABLE, None, None) {
        if namespace.meta.is_deleting() {
            found.extend(namespace::next(snapshot, catalog, name));
        }
    }
    for (name, definition) in snapshot.range(definition::TABLE, None, None) {
        if definition.meta.is_deleting() {
            found.extend(definition::contents(snapshot, name));
        }
    }
    found.extend(definition::unsettled(snapshot));
    found.extend(quota::all(snapshot, catalog));
    for table in snapshot.tables() {
        for (key, object) in snapshot.range(table, None, None) {
            if needs_look(table, object, None) {
                found.push((Arc::clone(table), Arc::clone(key)));
            }
        }
    }
    found
}

fn needs_look(table: &str, object: &Object, before: Option<&Object>) -> bool {
    let meta = &object.meta;
    let is_new_owner = before.is_none_or(|before| before.meta.owners != meta.owners);
    (is_new_owner && !meta.owners.is_empty())
        || is_waiting(object)
        || ([namespace::TABLE, definition::TABLE].contains(&table) && meta.is_deleting())
}

/// Whether the deletion of an object waits for us.
fn is_waiting(object: &Object) -> bool {
    let is_collectors = |name: &str| name == FINALIZER_FOREGROUND || name == FINALIZER_ORPHAN;
    object.meta.is_deleting() && object.meta.finalizers.iter().any(|name| is_collectors(name))
}

/// Who the garbage collector writes as.
pub fn context(now: Timestamp, uid: String) -> WriteContext {
    let user = "system:serviceaccount:kube-system:generic-garbage-collector".to_owned();
    WriteContext { now, uid, user }
}

#[cfg(test)]
mod property;
#[cfg(test)]
mod tests;
