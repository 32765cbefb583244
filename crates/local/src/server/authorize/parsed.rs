//! Roles and bindings, parsed once for each version of each of them: they are read with every
//! request and written now and then.

use std::{collections::BTreeMap, ops::Bound, sync::Arc};

use arc_swap::ArcSwap;
use lockstep_api::{json::list, rbac::Roles, strategy::Json};
use lockstep_store::{Revision, object, snapshot::Snapshot};
use serde_json::Value;

/// All roles and bindings at one revision of their tables.
#[derive(Default)]
pub(crate) struct Parsed {
    cluster_bindings: Table,
    bindings: Table,
    cluster_roles: Table,
    roles: Table,
}

/// An object, and the revision that wrote it.
type Version = (Revision, Arc<Json>);

/// The objects of a table by key.
#[derive(Clone, Default)]
struct Table {
    revision: Revision,
    objects: Arc<BTreeMap<Arc<str>, Version>>,
}

impl Table {
    /// The table as it is in a snapshot. What has not changed is not parsed again.
    fn at(&self, snapshot: &Snapshot, name: &str) -> Self {
        let revision = snapshot.table_revision(name);
        if revision == self.revision {
            return self.clone();
        }
        let objects = snapshot.range(name, None, None).map(|(key, object)| {
            let known = self.objects.get(key).filter(|(known, _)| *known == object.revision());
            let json = known.map_or_else(|| Arc::new(object.json()), |(_, json)| Arc::clone(json));
            (Arc::clone(key), (object.revision(), json))
        });
        Self { revision, objects: Arc::new(objects.collect()) }
    }

    fn all(&self) -> Vec<&Json> {
        self.objects.values().map(|(_, json)| &**json).collect()
    }

    fn of(&self, namespace: &str) -> Vec<&Json> {
        let start = format!("{namespace}/");
        let from = (Bound::Included(start.as_str()), Bound::Unbounded);
        let range = self.objects.range::<str, _>(from);
        let own = range.take_while(|(key, _)| key.starts_with(&start));
        own.map(|(_, (_, json))| &**json).collect()
    }
}

impl Roles for Parsed {
    fn cluster_bindings(&self) -> Vec<&Json> {
        self.cluster_bindings.all()
    }

    fn bindings(&self, namespace: &str) -> Vec<&Json> {
        self.bindings.of(namespace)
    }

    fn rules(&self, namespace: Option<&str>, name: &str) -> Option<&[Value]> {
        let table = if namespace.is_some() { &self.roles } else { &self.cluster_roles };
        let key = object::key(namespace.unwrap_or_default(), name);
        let (_, role) = table.objects.get(key.as_str())?;
        Some(list(role, &["rules"]))
    }
}

/// What was parsed last.
#[derive(Default)]
pub(crate) struct RoleCache(ArcSwap<Parsed>);

impl RoleCache {
    /// The roles and bindings of a snapshot.
    pub(crate) fn at(&self, snapshot: &Snapshot) -> Arc<Parsed> {
        let last = self.0.load_full();
        let now = Parsed {
            cluster_bindings: last.cluster_bindings.at(snapshot, "clusterrolebindings"),
            bindings: last.bindings.at(snapshot, "rolebindings"),
            cluster_roles: last.cluster_roles.at(snapshot, "clusterroles"),
            roles: last.roles.at(snapshot, "roles"),
        };
        if now.revisions() == last.revisions() {
            return last;
        }
        let now = Arc::new(now);
        // Of two at once the later one is parsed again by whoever comes next: no harm done.
        self.0.store(Arc::clone(&now));
        now
    }
}

impl Parsed {
    fn revisions(&self) -> [Revision; 4] {
        [&self.cluster_bindings, &self.bindings, &self.cluster_roles, &self.roles]
            .map(|table| table.revision)
    }
}
