//! The end of a definition, which is that of its objects too, and names that become free.

use std::sync::Arc;

use lockstep_api::{
    Resource,
    definition::{self, is_true},
};

use super::{Candidate, View};
use crate::{change::Change, object::Object, rest, snapshot::Snapshot};

/// The table of definitions.
pub(super) const TABLE: &str = definition::PLURAL;

/// What to do about a definition. Its objects are looked at on their own.
pub(super) fn plan(view: &View<'_>, resource: &Resource, object: &Arc<Object>) -> Vec<Change> {
    let Some(json) = rest::tidied(view.snapshot, object, view.context.now) else {
        return Vec::new();
    };
    let plan = rest::rewrite(&view.scene(resource, ""), object, json);
    (!plan.change.ops.is_empty()).then_some(plan.change).into_iter().collect()
}

/// Whether the objects of a table go because their definition does.
pub(super) fn is_going(view: &View<'_>, table: &str) -> bool {
    view.snapshot.get(TABLE, table).is_some_and(|definition| definition.meta.is_deleting())
}

/// All objects of the definition `name`.
pub(super) fn contents(snapshot: &Snapshot, name: &Arc<str>) -> Vec<Candidate> {
    let objects = snapshot.range(name, None, None);
    objects.map(|(key, _)| (Arc::clone(name), Arc::clone(key))).collect()
}

/// The definition of the objects of a table, if it is being deleted: one object less may have been
/// the last.
pub(super) fn of(snapshot: &Snapshot, table: &Arc<str>) -> Option<Candidate> {
    let definition = snapshot.get(TABLE, table)?;
    definition.meta.is_deleting().then(|| (TABLE.into(), Arc::clone(table)))
}

/// The definitions whose names were not all accepted.
pub(super) fn unsettled(snapshot: &Snapshot) -> Vec<Candidate> {
    let definitions = snapshot.range(TABLE, None, None);
    definitions
        .filter(|(_, object)| !is_true(&object.json(), "NamesAccepted"))
        .map(|(key, _)| (TABLE.into(), Arc::clone(key)))
        .collect()
}
