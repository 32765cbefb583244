//! A small cluster without a shell: writes go in at once, time moves when told to.

use std::sync::{Arc, LazyLock};

use jiff::{SignedDuration, Timestamp};
use lockstep_api::{
    Resource, Status,
    strategy::{Json, WriteContext},
};
use lockstep_store::{
    Limits, Object, Revision, Store,
    rest::{self, Answer, Plan, Scene},
};
use serde_json::json;

use crate::kinds::CATALOG;

/// The namespace there is.
pub(crate) const NAMESPACE: &str = "default";

/// A store with one namespace.
pub(crate) struct World {
    pub(crate) store: Store,
    pub(crate) now: Timestamp,
    writes: u32,
}

/// Its namespace, which is the same in all of them.
static FURNITURE: LazyLock<Arc<Object>> = LazyLock::new(|| {
    let mut world = World::empty();
    let namespaces = CATALOG.registry().get("", "v1", "namespaces").expect("namespaces are served");
    let object = json!({"metadata": {"name": NAMESPACE}}).as_object().cloned();
    let made = world.write((namespaces, ""), "setup", |scene| {
        rest::create(scene, object.clone().unwrap_or_default())
    });
    made.expect("a namespace is made")
});

impl World {
    fn empty() -> Self {
        let now = Timestamp::UNIX_EPOCH + SignedDuration::from_secs(1_767_323_045);
        Self { store: Store::new(Limits::default()), now, writes: 0 }
    }

    /// A new one.
    pub(crate) fn new() -> Self {
        let made = Arc::clone(&FURNITURE);
        let objects = [("namespaces".into(), NAMESPACE.into(), made)];
        Self { store: Store::recover(objects, 0, Limits::default()), ..Self::empty() }
    }

    /// The namespace of objects of a kind.
    pub(crate) fn home(resource: &Resource) -> &'static str {
        if resource.is_namespaced() { NAMESPACE } else { "" }
    }

    /// Plans on the head and carries the plan out. What a client has no part in is a fault.
    pub(crate) fn write(
        &mut self,
        (resource, namespace): (&Resource, &str),
        manager: &str,
        plan: impl FnOnce(&Scene<'_>) -> Result<Plan, Status>,
    ) -> Result<Arc<Object>, Status> {
        self.writes += 1;
        self.now += SignedDuration::from_secs(1);
        let uid = format!("00000000-0000-4000-8000-{:012}", self.writes);
        let context = WriteContext { now: self.now, uid, user: manager.to_owned() };
        let head = self.store.head().clone();
        let scene = Scene {
            view: &head,
            catalog: &CATALOG,
            resource,
            namespace,
            context: &context,
            manager: Some(manager),
        };
        let plan = plan(&scene).inspect_err(expected)?;
        let staged = self.store.stage(plan.change).expect("nobody else writes");
        self.store.publish(staged.revision, self.now);
        let object = match plan.answer {
            Answer::Object(object) => object,
            Answer::Op(at) => Arc::clone(&staged.objects[at]),
        };
        recovered(resource, &object);
        Ok(object)
    }

    pub(crate) fn revision(&self) -> Revision {
        self.store.published().revision()
    }

    /// An object, in the version of `resource`.
    pub(crate) fn get(&self, resource: &Resource, name: &str) -> Option<Json> {
        let key = lockstep_store::object::key(Self::home(resource), name);
        let object = self.store.published().get(&resource.table, &key)?;
        Some(resource.strategy.from_stored(object.json()))
    }
}

/// What is wrong with a request is the client's doing, and said with a code that says so; but for
/// what upstream did not expect either.
pub(crate) fn expected(status: &Status) {
    let is_upstreams = status.code == 500 && status.reason.is_empty();
    assert!((400..500).contains(&status.code) || is_upstreams, "{status:?}");
}

/// What is stored is read from the disk as it was.
fn recovered(resource: &Resource, object: &Object) {
    let stored = CATALOG.stored(&resource.table).expect("what is written has a table");
    let again = Object::recover(object.body.clone(), &*stored.strategy);
    let again = again.expect("what was written is read");
    assert_eq!(again.json(), object.json());
    assert_eq!(again.managed(), object.managed());
    assert_eq!(again.revision(), object.revision());
}
