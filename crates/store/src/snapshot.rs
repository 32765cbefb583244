//! All objects at one revision.

use std::{ops::Bound, sync::Arc};

use imbl::{OrdMap, OrdSet};

use crate::{Revision, object::Object};

#[cfg(test)]
thread_local! {
    /// How many dependents were looked at: what collectors cost.
    pub(crate) static VISITED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// All tables at one revision. Cloning is cheap and readers never hold a lock.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    revision: Revision,
    tables: OrdMap<Arc<str>, Table>,
    owners: OrdSet<Dependent>,
}

#[derive(Clone, Debug, Default)]
struct Table {
    /// The last write to the table.
    revision: Revision,
    objects: OrdMap<Arc<str>, Arc<Object>>,
}

/// Where to find an object that names an owner.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Dependent {
    owner: Arc<str>,
    table: Arc<str>,
    key: Arc<str>,
}

impl Snapshot {
    /// The revision.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// The last write to `table`.
    pub fn table_revision(&self, table: &str) -> Revision {
        self.tables.get(table).map_or(0, |table| table.revision)
    }

    /// The object at `key`.
    pub fn get(&self, table: &str, key: &str) -> Option<&Arc<Object>> {
        self.tables.get(table)?.objects.get(key)
    }

    /// How many objects a table has.
    pub fn len(&self, table: &str) -> usize {
        self.tables.get(table).map_or(0, |table| table.objects.len())
    }

    /// The objects of a table in the order of their keys: those of one namespace or all, beginning
    /// with the first key that is not less than `start`.
    pub fn range<'a>(
        &'a self,
        table: &str,
        namespace: Option<&str>,
        start: Option<&str>,
    ) -> impl Iterator<Item = (&'a Arc<str>, &'a Arc<Object>)> + use<'a> {
        let prefix = namespace.map(|namespace| format!("{namespace}/"));
        let from = prefix.as_deref().max(start).map_or(Bound::Unbounded, Bound::Included);
        let range = self
            .tables
            .get(table)
            .map(|table| table.objects.range::<_, str>((from, Bound::Unbounded)));
        range.into_iter().flatten().take_while(move |(key, _)| {
            prefix.as_deref().is_none_or(|prefix| key.starts_with(prefix))
        })
    }

    /// The names of all tables that have ever had an object.
    pub fn tables(&self) -> impl Iterator<Item = &Arc<str>> {
        self.tables.keys()
    }

    /// The objects that name `uid` as an owner: table, key, object.
    pub fn dependents<'a>(
        &'a self,
        uid: &'a str,
    ) -> impl Iterator<Item = (&'a Arc<str>, &'a Arc<str>, &'a Arc<Object>)> {
        let first = Dependent { owner: uid.into(), table: "".into(), key: "".into() };
        self.owners.range(first..).take_while(move |entry| &*entry.owner == uid).filter_map(
            |entry| {
                #[cfg(test)]
                VISITED.with(|visited| visited.set(visited.get() + 1));
                Some((&entry.table, &entry.key, self.get(&entry.table, &entry.key)?))
            },
        )
    }

    /// Writes one object, or removes it; the answer is what was there.
    pub(crate) fn apply(
        &mut self,
        revision: Revision,
        table: &Arc<str>,
        key: &Arc<str>,
        object: Option<&Arc<Object>>,
    ) -> Option<Arc<Object>> {
        self.revision = revision;
        let slot = self.tables.entry(Arc::clone(table)).or_default();
        slot.revision = revision;
        let old = match object {
            Some(object) => slot.objects.insert(Arc::clone(key), Arc::clone(object)),
            None => slot.objects.remove(&**key),
        };
        self.index_owners(table, key, old.as_deref(), object.map(|object| &**object));
        old
    }

    fn index_owners(
        &mut self,
        table: &Arc<str>,
        key: &Arc<str>,
        old: Option<&Object>,
        new: Option<&Object>,
    ) {
        let owners = |object: Option<&Object>| -> Vec<Box<str>> {
            object.iter().flat_map(|o| o.meta.owners.iter()).map(|o| o.uid.clone()).collect()
        };
        let (before, after) = (owners(old), owners(new));
        if before == after {
            return;
        }
        let entry = |uid: &str| Dependent {
            owner: uid.into(),
            table: Arc::clone(table),
            key: Arc::clone(key),
        };
        for uid in &before {
            self.owners.remove(&entry(uid));
        }
        for uid in &after {
            self.owners.insert(entry(uid));
        }
    }

    /// Moves on to `revision` without a write, as a restart does.
    pub(crate) fn advance(&mut self, revision: Revision) {
        self.revision = self.revision.max(revision);
    }

    /// Says that this is the state as of `revision`, after later writes were undone.
    pub(crate) fn rewound(&mut self, revision: Revision) {
        self.revision = revision;
    }
}
