//! A small cluster without a shell, for tests: writes go in at once, time moves when told to.

use std::{collections::BTreeSet, sync::Arc};

use jiff::{SignedDuration, Timestamp};
use lockstep_api::{
    Resource, Status,
    strategy::{Json, WriteContext},
};
use serde_json::Value;

use crate::{
    Change, Limits, Object, Revision, Store,
    collect::{self, Candidate, View},
    rest::{self, Answer, Catalog, DeleteOptions, Plan, Scene},
};

/// A store with the built-in kinds.
pub(crate) struct World {
    pub(crate) store: Store,
    pub(crate) catalog: Catalog,
    pub(crate) now: Timestamp,
    /// Who writes.
    pub(crate) manager: String,
    /// Whether anybody comes to own what is written.
    pub(crate) is_tracking: bool,
    uids: u32,
    /// The collectors have seen everything up to here.
    seen: Revision,
}

impl World {
    /// An empty store.
    pub(crate) fn empty() -> Self {
        Self {
            store: Store::new(Limits::default()),
            catalog: Catalog::new(lockstep_api::builtin::registry()),
            now: "2026-01-02T03:04:05Z".parse().unwrap(),
            manager: "tester".to_owned(),
            is_tracking: true,
            uids: 0,
            seen: 0,
        }
    }

    /// A store with the namespace `n`.
    pub(crate) fn new() -> Self {
        let mut world = Self::empty();
        world.create("namespaces", "", serde_json::json!({"metadata": {"name": "n"}})).unwrap();
        world
    }

    /// The resource of a name, in a version if one is given before a slash.
    pub(crate) fn resource(&self, name: &str) -> Arc<Resource> {
        let (version, plural) = name.split_once('/').unwrap_or(("", name));
        let is_meant = |resource: &&Arc<Resource>| {
            resource.plural == plural && (version.is_empty() || resource.version == version)
        };
        let found = self.catalog.registry().iter().find(is_meant);
        Arc::clone(found.unwrap_or_else(|| panic!("{name} are not served")))
    }

    pub(crate) fn pass(&mut self, seconds: i64) {
        self.now += SignedDuration::from_secs(seconds);
    }

    pub(crate) fn get(&self, plural: &str, key: &str) -> Option<Json> {
        let resource = self.resource(plural);
        self.store.published().get(&resource.table, key).map(|object| object.json())
    }

    pub(crate) fn revision(&self) -> Revision {
        self.store.published().revision()
    }

    /// Plans on the head and carries the plan out.
    pub(crate) fn write(
        &mut self,
        plural: &str,
        namespace: &str,
        plan: impl FnOnce(&Scene<'_>) -> Result<Plan, Status>,
    ) -> Result<Arc<Object>, Status> {
        let plan = self.planned(plural, namespace, plan)?;
        let staged = self.store.stage(plan.change).expect("nobody else writes");
        self.store.publish(staged.revision, self.now);
        Ok(match plan.answer {
            Answer::Object(object) => object,
            Answer::Op(at) => Arc::clone(&staged.objects[at]),
        })
    }

    /// Plans on the head.
    pub(crate) fn planned(
        &mut self,
        plural: &str,
        namespace: &str,
        plan: impl FnOnce(&Scene<'_>) -> Result<Plan, Status>,
    ) -> Result<Plan, Status> {
        self.uids += 1;
        let uid = format!("00000000-0000-4000-8000-{:012}", self.uids);
        let context = WriteContext { now: self.now, uid, user: "tester".to_owned() };
        let resource = self.resource(plural);
        let head = self.store.head().clone();
        let scene = Scene {
            view: &head,
            catalog: &self.catalog,
            resource: &resource,
            namespace,
            context: &context,
            manager: self.is_tracking.then_some(self.manager.as_str()),
        };
        plan(&scene)
    }

    pub(crate) fn create(
        &mut self,
        plural: &str,
        namespace: &str,
        object: Value,
    ) -> Result<Arc<Object>, Status> {
        self.write(plural, namespace, |scene| rest::create(scene, map(object)))
    }

    pub(crate) fn update(
        &mut self,
        plural: &str,
        sub: Option<&str>,
        (namespace, name): (&str, &str),
        object: Json,
    ) -> Result<Arc<Object>, Status> {
        self.write(plural, namespace, |scene| rest::update(scene, sub, name, object))
    }

    pub(crate) fn delete(
        &mut self,
        plural: &str,
        (namespace, name): (&str, &str),
        options: &DeleteOptions,
    ) -> Result<Arc<Object>, Status> {
        self.write(plural, namespace, |scene| rest::delete(scene, name, options))
    }

    /// Lets the collectors work until there is nothing left to do, going by what happened.
    pub(crate) fn collect(&mut self) {
        self.observe_and_collect();
        self.check_rest();
    }

    /// The same, without a look at everything afterwards.
    pub(crate) fn observe_and_collect(&mut self) {
        let mut candidates = BTreeSet::new();
        for _ in 0..50_000 {
            self.observe(&mut candidates);
            let Some(candidate) = candidates.pop_first() else {
                return;
            };
            for change in self.plans(&candidate) {
                match self.store.stage(change) {
                    Ok(staged) => drop(self.store.publish(staged.revision, self.now)),
                    Err(_) => drop(candidates.insert(candidate.clone())),
                }
            }
        }
        panic!("the collectors never come to rest");
    }

    fn observe(&mut self, candidates: &mut BTreeSet<Candidate>) {
        let snapshot = self.store.published().clone();
        for (table, _) in self.catalog.tables() {
            for event in self.store.log().events_after(table, self.seen, usize::MAX).unwrap() {
                candidates.extend(collect::candidates(&snapshot, &self.catalog, table, &event));
            }
        }
        self.seen = snapshot.revision();
    }

    /// What the collectors would do about one candidate.
    pub(crate) fn plans(&self, candidate: &Candidate) -> Vec<Change> {
        let snapshot = self.store.head().clone();
        let context = collect::context(self.now, "collector".to_owned());
        let view = View { snapshot: &snapshot, catalog: &self.catalog, context: &context };
        collect::plan(&view, candidate)
    }

    /// A look at everything must not find more than going by what happened did.
    fn check_rest(&self) {
        for candidate in collect::all_candidates(self.store.head(), &self.catalog) {
            let left = self.plans(&candidate);
            assert!(left.is_empty(), "{candidate:?} was overlooked");
        }
    }
}

/// A JSON object.
pub(crate) fn map(value: Value) -> Json {
    serde_json::from_value(value).expect("an object")
}
