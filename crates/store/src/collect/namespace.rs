//! The end of a namespace: first its pods, then all else in it, then itself.

use std::sync::Arc;

use lockstep_api::{
    Resource, json,
    kinds::namespace::conditions::{self, Remaining},
    strategy::{Json, Propagation},
};
use serde_json::Value;

use super::{Candidate, MANAGER, View, owners};
use crate::{
    change::Change,
    object::Object,
    rest::{self, Catalog, Scene},
    snapshot::Snapshot,
};

/// The table of namespaces.
pub(super) const TABLE: &str = "namespaces";

/// The table of pods, which go before what they may need as long as they run.
const PODS: &str = "pods";

/// What to do about a namespace that is being deleted: nothing as long as something in it was not
/// asked to go. That is looked at on its own, each object once, however much there is. Then the
/// namespace says what it waits for, and goes when that is nothing.
pub(super) fn plan(view: &View<'_>, resource: &Resource, namespace: &Arc<Object>) -> Vec<Change> {
    let Some(remaining) = remaining(view, &namespace.meta.name) else { return Vec::new() };
    let mut json = namespace.json();
    let scene = Scene { manager: Some(MANAGER), ..view.scene(resource, "") };
    let plan = if conditions::update(&mut json, &remaining, view.context.now) {
        // One that cannot be written is looked at again when somebody has changed it.
        rest::update(&scene, Some("status"), &namespace.meta.name, json).ok()
    } else {
        if is_empty(view.snapshot, view.catalog, &namespace.meta.name) {
            release(&mut json);
        }
        Some(rest::rewrite(&scene, namespace, json))
    };
    let change = plan.map(|plan| plan.change).filter(|change| !change.ops.is_empty());
    change.into_iter().collect()
}

/// What is left in the namespace `name`; none when not all of it was asked to go yet. Upstream
/// counts nothing as long as there are pods.
fn remaining(view: &View<'_>, name: &str) -> Option<Remaining> {
    let mut remaining = Remaining::default();
    if has_pods(view.snapshot, name) {
        let mut pods = view.snapshot.range(PODS, Some(name), None);
        return pods.all(|(_, pod)| pod.meta.is_deleting()).then_some(remaining);
    }
    for (table, kind) in view.catalog.tables().filter(|(_, kind)| kind.is_namespaced()) {
        for (_, object) in view.snapshot.range(table, Some(name), None) {
            if !object.meta.is_deleting() {
                return None;
            }
            let resource = format!("{}.{}", kind.plural, kind.group);
            *remaining.resources.entry(resource).or_default() += 1;
            for finalizer in &object.meta.finalizers {
                *remaining.finalizers.entry(finalizer.to_string()).or_default() += 1;
            }
        }
    }
    Some(remaining)
}

/// Deletes what is in a namespace that goes.
pub(super) fn delete(view: &View<'_>, kind: &Resource, object: &Object) -> Option<Change> {
    owners::delete(view, kind, object, Propagation::Background)
}

/// Whether what is in `table` is to go with the namespace `name`: pods at once, all else after
/// them.
pub(super) fn is_due(view: &View<'_>, table: &str, name: &str) -> bool {
    is_going(view, name) && (table == PODS || !has_pods(view.snapshot, name))
}

fn has_pods(snapshot: &Snapshot, name: &str) -> bool {
    snapshot.range(PODS, Some(name), None).next().is_some()
}

/// Whether the namespace `name` is being deleted.
pub(super) fn is_going(view: &View<'_>, name: &str) -> bool {
    view.snapshot.get(TABLE, name).is_some_and(|namespace| namespace.meta.is_deleting())
}

/// Whether nothing is left in the namespace `name`.
pub(super) fn is_empty(snapshot: &Snapshot, catalog: &Catalog, name: &str) -> bool {
    contents(snapshot, catalog, name).next().is_none()
}

/// What is to go next of the namespace `name`: its pods, or everything when there are none.
pub(super) fn next<'a>(
    snapshot: &'a Snapshot,
    catalog: &'a Catalog,
    name: &'a str,
) -> impl Iterator<Item = Candidate> {
    let has_pods = has_pods(snapshot, name);
    contents(snapshot, catalog, name).filter(move |(table, _)| !has_pods || **table == *PODS)
}

/// What is to go of the namespace `name` after something in `table` has gone: as long as there are
/// pods, and when it was none, nothing is that was not before.
pub(super) fn after<'a>(
    snapshot: &'a Snapshot,
    catalog: &'a Catalog,
    (table, name): (&str, &'a str),
) -> impl Iterator<Item = Candidate> {
    let is_last_pod = table == PODS
        && snapshot.get(TABLE, name).is_some_and(|namespace| namespace.meta.is_deleting())
        && !has_pods(snapshot, name);
    is_last_pod.then(|| contents(snapshot, catalog, name)).into_iter().flatten()
}

/// Everything in the namespace `name`.
fn contents<'a>(
    snapshot: &'a Snapshot,
    catalog: &'a Catalog,
    name: &'a str,
) -> impl Iterator<Item = Candidate> {
    let tables = catalog.tables().filter(|(_, kind)| kind.is_namespaced());
    tables.flat_map(move |(table, _)| {
        let objects = snapshot.range(table, Some(name), None);
        objects.map(|(key, _)| (Arc::clone(table), Arc::clone(key)))
    })
}

/// The namespace `name`, if it is being deleted: one object less may have been the last.
pub(super) fn of(snapshot: &Snapshot, catalog: &Catalog, name: &str) -> Option<Candidate> {
    let namespace = snapshot.get(TABLE, name)?;
    let (table, _) = catalog.tables().find(|(table, _)| ***table == *TABLE)?;
    namespace.meta.is_deleting().then(|| (Arc::clone(table), name.into()))
}

/// Takes our name off the list of those who hold on to the namespace.
fn release(namespace: &mut Json) {
    let spec = json::object_mut(namespace, "spec");
    let Some(list) = spec.get_mut("finalizers").and_then(Value::as_array_mut) else { return };
    list.retain(|name| name != "kubernetes");
    if list.is_empty() {
        spec.remove("finalizers");
    }
}
