//! What quotas say is used, counted anew when something has ended or a quota counts something else.
//!
//! New objects are charged by the writes that make them, so a count is only ever too high. It is
//! taken from one state and written for the version of the quota in that state: whatever was
//! charged meanwhile is not lost, the count is then made again.

use std::sync::Arc;

use lockstep_api::{
    Resource, amounts, json,
    quota::{Counted, Quota},
};

use super::{Candidate, MANAGER, View};
use crate::{
    change::{Change, Check},
    log::Event,
    object::Object,
    rest::{self, Catalog, Scene},
    snapshot::Snapshot,
};

/// The table of quotas.
pub(super) const TABLE: &str = "resourcequotas";

/// What a quota should say.
pub(super) fn plan(view: &View<'_>, resource: &Resource, object: &Arc<Object>) -> Option<Change> {
    let namespace = &*object.meta.namespace;
    let mut json = object.json();
    let quota = Quota::read(&json);
    let mut recount = quota.recount();
    let mut looked_at = Vec::new();
    for (table, kind) in view.catalog.tables().filter(|(_, kind)| kind.is_namespaced()) {
        let Some(counted) = Counted::of(&kind.group, &kind.plural) else { continue };
        if !recount.begin(&counted) {
            continue;
        }
        looked_at.push(Arc::clone(table));
        let objects = view.snapshot.range(table, Some(namespace), None);
        if recount.is_number(&counted) {
            recount.add_number(&counted, objects.count());
        } else {
            objects.for_each(|(_, one)| recount.add(&counted, &one.json(), view.context.now));
        }
    }
    let used = recount.finish();
    if quota.hard == quota.wanted && quota.used == used {
        return None;
    }
    let status = json::object_mut(&mut json, "status");
    status.insert("hard".to_owned(), amounts::written(&quota.wanted));
    status.insert("used".to_owned(), amounts::written(&used));
    let scene = Scene { manager: Some(MANAGER), ..view.scene(resource, namespace) };
    // A quota that cannot be written is looked at again when somebody has changed it.
    let plan = rest::update(&scene, Some("status"), &object.meta.name, json).ok()?;
    let mut change = plan.change;
    if quota.hard != quota.wanted {
        // What it did not count so far was not charged either: nothing may have come in between.
        let revision = |table: &Arc<str>| view.snapshot.table_revision(table);
        change.checks.extend(
            looked_at.into_iter().map(|table| Check::Table { revision: revision(&table), table }),
        );
    }
    (!change.ops.is_empty()).then_some(change)
}

/// The quotas that may say something else after `event` in `table`.
pub(super) fn after(
    snapshot: &Snapshot,
    catalog: &Catalog,
    table: &Arc<str>,
    event: &Event,
) -> Vec<Candidate> {
    let namespace = &*event.object.meta.namespace;
    if namespace.is_empty() || snapshot.len(TABLE) == 0 {
        return Vec::new();
    }
    if &**table == TABLE && !event.is_deletion {
        let spec = |object: &Object| object.json().remove("spec");
        let is_same = event.before.as_ref().is_some_and(|it| spec(it) == spec(&event.object));
        let own = (!is_same).then(|| (Arc::clone(table), Arc::clone(&event.key)));
        return own.into_iter().collect();
    }
    let mut quotas = snapshot.range(TABLE, Some(namespace), None).peekable();
    if quotas.peek().is_none() {
        return Vec::new();
    }
    let counted = catalog.stored(table).and_then(|kind| Counted::of(&kind.group, &kind.plural));
    let Some(counted) = counted.filter(|counted| has_let_go(counted, event)) else {
        return Vec::new();
    };
    let Some((table, _)) = catalog.tables().find(|(table, _)| &***table == TABLE) else {
        return Vec::new();
    };
    quotas
        .filter(|(_, quota)| Quota::read(&quota.json()).tracks(&counted))
        .map(|(key, _)| (Arc::clone(table), Arc::clone(key)))
        .collect()
}

/// Whether a quota counts what it is to count, so that it is heeded as it is.
pub(super) fn is_in_force(snapshot: &Snapshot, key: &str) -> bool {
    let quota = snapshot.get(TABLE, key).map(|object| Quota::read(&object.json()));
    quota.is_some_and(|quota| quota.hard == quota.wanted)
}

/// All quotas.
pub(super) fn all<'a>(
    snapshot: &'a Snapshot,
    catalog: &'a Catalog,
) -> impl Iterator<Item = Candidate> + use<'a> {
    let table = catalog.tables().find(|(table, _)| &***table == TABLE);
    table.into_iter().flat_map(|(table, _)| {
        let quotas = snapshot.range(TABLE, None, None);
        quotas.map(|(key, _)| (Arc::clone(table), Arc::clone(key)))
    })
}

/// Whether an object uses less than before: it is gone, it has ended, or it is of another sort.
fn has_let_go(counted: &Counted, event: &Event) -> bool {
    let Some(before) = event.before.as_deref().filter(|_| !event.is_deletion) else {
        return event.is_deletion;
    };
    counted.looks_inside() && counted.may_shrink(&event.object.json(), &before.json())
}
