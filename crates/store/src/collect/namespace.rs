//! The end of a namespace: first its contents, then itself.

use std::sync::Arc;

use lockstep_api::{
    Resource, json,
    strategy::{Json, Propagation},
};
use serde_json::Value;

use super::{Candidate, View, owners};
use crate::{
    change::Change,
    object::Object,
    rest::{self, Catalog},
    snapshot::Snapshot,
};

/// The table of namespaces.
pub(super) const TABLE: &str = "namespaces";
/// How many objects of a namespace are deleted in one go. Each that is on its way leads back here.
pub(super) const PASS_MAX: usize = 256;

/// What to do about a namespace that is being deleted.
pub(super) fn plan(view: &View<'_>, resource: &Resource, namespace: &Arc<Object>) -> Vec<Change> {
    let name = &*namespace.meta.name;
    let mut changes = Vec::new();
    let mut is_empty = true;
    for (table, kind) in view.catalog.tables().filter(|(_, kind)| kind.is_namespaced()) {
        for (_, object) in view.snapshot.range(table, Some(name), None) {
            is_empty = false;
            if changes.len() == PASS_MAX {
                return changes;
            }
            // What is on its way already goes by itself.
            if !object.meta.is_deleting() {
                changes.extend(owners::delete(view, kind, object, Propagation::Background));
            }
        }
    }
    if is_empty {
        let mut json = namespace.json();
        release(&mut json);
        let plan = rest::rewrite(&view.scene(resource, ""), namespace, json);
        changes.extend((!plan.change.ops.is_empty()).then_some(plan.change));
    }
    changes
}

/// The namespace `name`, if it is being deleted: one object less may have been the last.
pub(super) fn of(snapshot: &Snapshot, catalog: &Catalog, name: &str) -> Option<Candidate> {
    let resource = catalog.registry().get("", "v1", "namespaces")?;
    let namespace = snapshot.get(&resource.table, name)?;
    namespace.meta.is_deleting().then(|| (Arc::clone(&resource.table), name.into()))
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
