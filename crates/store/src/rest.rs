//! What a request does to the store, decided on a snapshot: the rules every kind has in common.
//!
//! Each planner is a plain function from what was seen to a [`Plan`]. When the change cannot go in
//! because somebody else wrote first, the caller plans again on a newer snapshot.

mod admission;
mod apply;
mod create;
mod definition;
mod delete;
mod eviction;
mod limits;
mod metadata;
mod namespace;
mod owners;
mod patch;
mod pod;
mod quotas;
mod scale;
mod size;
mod update;

use std::{collections::BTreeMap, fmt, sync::Arc};

use lockstep_api::{
    Registry, Resource, Status,
    definition::{PLURAL, served::Served},
    field::ErrorList,
    strategy::{Json, Strategy, WriteContext},
};

#[cfg(test)]
pub(crate) use apply::check_config;
pub use apply::{Configuration, apply};
pub use create::create;
pub(crate) use definition::tidied;
pub use delete::{DeleteOptions, delete};
pub use eviction::evict;
pub use patch::patch;
pub use pod::bind;
pub use scale::{Scaling, scale};
pub use update::{rewrite, update};

use crate::{
    Revision,
    change::{Change, Expect, Op, Write},
    object::{self, Draft, Object},
    snapshot::Snapshot,
};

/// The kinds served, by path and by table.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    registry: Registry,
    stored: BTreeMap<Arc<str>, Arc<Resource>>,
    admission: Option<Arc<dyn Admission>>,
    /// What definitions have made, by their names, and the revisions they were read at.
    defined: BTreeMap<Arc<str>, (Revision, Option<Arc<Served>>)>,
}

/// What objects go through beyond what their kind says: what webhooks are on other clusters.
pub trait Admission: fmt::Debug + Send + Sync {
    /// Changes a new object that is filled in and not checked so far, or refuses it.
    ///
    /// # Errors
    /// What the writer is told.
    fn admit(&self, scene: &Scene<'_>, object: &mut Json) -> Result<(), Status>;

    /// Says what is wrong with an object that its kind takes: with a new one, or with the change of
    /// an `old` one through its main resource.
    fn validate(&self, _scene: &Scene<'_>, _object: &Json, _old: Option<&Json>) -> ErrorList {
        ErrorList::new()
    }
}

impl Catalog {
    /// The catalog of a registry.
    pub fn new(registry: Registry) -> Self {
        let stored = registry
            .iter()
            .filter(|resource| !resource.strategy.is_converted())
            .map(|resource| (Arc::clone(&resource.table), Arc::clone(resource)))
            .collect();
        Self { registry, stored, admission: None, defined: BTreeMap::new() }
    }

    /// The same kinds and those that the definitions of a state make. What is known of definitions
    /// that are as they were is taken from the catalog `before`.
    #[must_use]
    pub fn with_definitions(&self, view: &Snapshot, before: &Self) -> Self {
        let mut catalog = self.clone();
        for (name, object) in view.range(PLURAL, None, None) {
            let revision = object.revision();
            let served = match before.defined.get(name) {
                Some((known, served)) if *known == revision => served.clone(),
                _ => definition::served(self, object).map(Arc::new),
            };
            catalog.defined.insert(Arc::clone(name), (revision, served.clone()));
            let Some(served) = served else { continue };
            let stored = Arc::new(served.stored.clone());
            catalog.stored.insert(Arc::clone(&stored.table), stored);
            for resource in &served.versions {
                catalog.registry.insert(resource.clone());
            }
        }
        catalog
    }

    /// The generation of the definition that made a table; nothing for one that is built in.
    pub fn generation(&self, table: &str) -> Option<i64> {
        let (_, served) = self.defined.get(table)?;
        served.as_ref().map(|served| served.generation)
    }

    /// Whether a resource is one of those that need no definition.
    pub fn is_built_in(&self, group: &str, plural: &str) -> bool {
        let is_meant =
            |resource: &&Arc<Resource>| resource.group == group && resource.plural == plural;
        let mut found = self.registry.iter().filter(is_meant);
        found.any(|resource| resource.strategy.schema().is_none())
    }

    /// The same, with something that new objects go through.
    #[must_use]
    pub fn with_admission(mut self, admission: Arc<dyn Admission>) -> Self {
        self.admission = Some(admission);
        self
    }

    /// The kinds by path.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// The resource in whose version the objects of a table are stored.
    pub fn stored(&self, table: &str) -> Option<&Arc<Resource>> {
        self.stored.get(table)
    }

    /// All tables.
    pub fn tables(&self) -> impl Iterator<Item = (&Arc<str>, &Arc<Resource>)> {
        self.stored.iter()
    }
}

/// What a planner looks at.
#[derive(Clone, Copy, Debug)]
pub struct Scene<'a> {
    /// The state to plan on.
    pub view: &'a Snapshot,
    /// The kinds.
    pub catalog: &'a Catalog,
    /// The kind written to, in the version of the request.
    pub resource: &'a Resource,
    /// The namespace of the request, empty for cluster-scoped kinds.
    pub namespace: &'a str,
    /// Who writes, and when.
    pub context: &'a WriteContext,
    /// The name under which the fields that are written are owned; nobody owns them without one.
    pub manager: Option<&'a str>,
}

impl Scene<'_> {
    fn strategy(&self) -> &dyn Strategy {
        &*self.resource.strategy
    }

    fn key(&self, name: &str) -> String {
        object::key(self.namespace, name)
    }

    fn find(&self, name: &str) -> Option<&Arc<Object>> {
        self.view.get(&self.resource.table, &self.key(name))
    }

    /// An existing object in the version of the request, without its owners.
    fn shown(&self, object: &Object) -> Json {
        self.strategy().from_stored(object.json())
    }

    /// An accepted object with its owners, encoded as it is stored.
    fn draft(&self, object: Json, managed: &[u8]) -> Draft {
        let stored = self.strategy().to_stored(object);
        let resource = self.catalog.stored(&self.resource.table);
        Draft::new(
            &stored,
            managed,
            resource.map_or_else(|| self.strategy(), |resource| &*resource.strategy),
        )
    }

    fn op(&self, name: &str, expect: Expect, write: Write) -> Op {
        Op { table: Arc::clone(&self.resource.table), key: self.key(name).into(), expect, write }
    }
}

/// What a request comes to.
#[derive(Debug)]
#[must_use = "a plan does nothing until its change is staged"]
pub struct Plan {
    /// What to write; nothing when the request changes nothing.
    pub change: Change,
    /// What to answer.
    pub answer: Answer,
    /// Whether the object is new.
    pub is_created: bool,
    /// What the user should know.
    pub warnings: Vec<String>,
}

/// What to answer when a plan has been carried out.
#[derive(Debug)]
pub enum Answer {
    /// The object the op of this number wrote (or its last state, for a deletion).
    Op(usize),
    /// This object, whatever was written.
    Object(Arc<Object>),
}

impl Plan {
    fn unchanged(object: &Arc<Object>) -> Self {
        Self {
            change: Change::default(),
            answer: Answer::Object(Arc::clone(object)),
            is_created: false,
            warnings: Vec::new(),
        }
    }

    fn of(op: Op) -> Self {
        let change = Change { checks: Vec::new(), ops: vec![op] };
        Self { change, answer: Answer::Op(0), is_created: false, warnings: Vec::new() }
    }

    /// Whether the plan removes the object it answers with.
    pub fn is_removal(&self) -> bool {
        match self.answer {
            Answer::Op(at) => matches!(self.change.ops[at].write, Write::Delete(_)),
            Answer::Object(_) => false,
        }
    }

    /// What a dry run answers: the object as it would be, at the revision it has now.
    ///
    /// # Panics
    /// When the plan deletes what `view`, on which it was made, does not have.
    pub fn preview(&self, view: &Snapshot) -> Arc<Object> {
        let at = match &self.answer {
            Answer::Object(object) => return Arc::clone(object),
            Answer::Op(at) => *at,
        };
        let op = &self.change.ops[at];
        let current = view.get(&op.table, &op.key);
        match &op.write {
            Write::Put(draft) | Write::Delete(Some(draft)) => {
                let draft = draft.clone();
                Arc::new(match current {
                    Some(current) => draft.into_object(current.revision()),
                    None => draft.into_preview(),
                })
            }
            Write::Delete(None) => {
                Arc::clone(current.expect("only what is there is planned to be deleted"))
            }
        }
    }
}

/// The 404 for an object of the scene.
fn not_found(scene: &Scene<'_>, name: &str) -> Status {
    Status::not_found(scene.resource, name)
}

#[cfg(test)]
mod tests;
