//! The API server of a simulated cluster: requests go to the store at once, time stands still
//! meanwhile.

use std::{
    collections::BTreeSet,
    sync::{Arc, LazyLock},
};

use jiff::Timestamp;
use k8s_openapi::api::{batch::v1::Job, core::v1::Pod};
use lockstep_api::{
    Resource, Status,
    decode::FieldValidation,
    jobset::JobSet,
    kueue::{self, ClusterQueue, LocalQueue, ResourceFlavor, Workload},
    strategy::{Json, WriteContext},
};
use lockstep_store::{
    Event, Limits, Object, Revision, Snapshot, Store,
    collect::{self, Candidate, View},
    object,
    patch::Patch,
    rest::{self, Answer, Catalog, DeleteOptions, Plan, Scene},
};
use serde_json::json;

use crate::parsed::Parsed;

/// The kinds served, the same in all worlds.
static CATALOG: LazyLock<Catalog> =
    LazyLock::new(|| Catalog::new(lockstep_api::builtin::registry()));

/// The only namespace there is.
pub const NAMESPACE: &str = "sim";

/// The kinds the simulator writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// `batch/v1` Job.
    Job,
    /// `v1` Pod.
    Pod,
    /// `jobset.x-k8s.io/v1alpha2` JobSet.
    JobSet,
    /// `v1` Service.
    Service,
    /// `kueue.x-k8s.io/v1beta2` Workload.
    Workload,
    /// `kueue.x-k8s.io/v1beta2` ClusterQueue.
    ClusterQueue,
    /// `kueue.x-k8s.io/v1beta2` LocalQueue.
    LocalQueue,
    /// `kueue.x-k8s.io/v1beta2` ResourceFlavor.
    Flavor,
}

impl Kind {
    /// How many there are.
    pub const COUNT: usize = 8;
    /// All of them, each at its own number.
    pub const ALL: [Self; Self::COUNT] = [
        Self::Job,
        Self::Pod,
        Self::JobSet,
        Self::Service,
        Self::Workload,
        Self::ClusterQueue,
        Self::LocalQueue,
        Self::Flavor,
    ];

    /// The namespace objects of the kind are in; empty if they are in none.
    const fn namespace(self) -> &'static str {
        match self {
            Self::ClusterQueue | Self::Flavor => "",
            Self::Job
            | Self::Pod
            | Self::JobSet
            | Self::Service
            | Self::Workload
            | Self::LocalQueue => NAMESPACE,
        }
    }
}

/// An API server and its store.
#[derive(Debug)]
pub struct Api {
    store: Store,
    catalog: &'static Catalog,
    resources: [Arc<Resource>; Kind::COUNT],
    now: Timestamp,
    uids: u32,
    parsed_jobs: Parsed<Job>,
    parsed_pods: Parsed<Pod>,
    parsed_sets: Parsed<JobSet>,
    parsed_workloads: Parsed<Workload>,
    parsed_cluster_queues: Parsed<ClusterQueue>,
    parsed_local_queues: Parsed<LocalQueue>,
    parsed_flavors: Parsed<ResourceFlavor>,
    /// What the garbage collector still has to look at.
    candidates: BTreeSet<Candidate>,
    /// The last revision the garbage collector has been told of.
    collected: Revision,
}

impl Api {
    /// A server with nothing but a namespace.
    ///
    /// # Panics
    /// When the kinds it serves are not those of Kubernetes.
    pub fn new(now: Timestamp) -> Self {
        let catalog = &*CATALOG;
        let resource = |group: &str, version: &str, plural: &str| {
            let found = catalog.registry().get(group, version, plural);
            Arc::clone(found.expect("a built-in kind is served"))
        };
        let namespaces = resource("", "v1", "namespaces");
        let resources = Kind::ALL.map(|kind| match kind {
            Kind::Job => resource("batch", "v1", "jobs"),
            Kind::Pod => resource("", "v1", "pods"),
            Kind::JobSet => resource("jobset.x-k8s.io", "v1alpha2", "jobsets"),
            Kind::Service => resource("", "v1", "services"),
            Kind::Workload => resource(kueue::GROUP, kueue::VERSION, "workloads"),
            Kind::ClusterQueue => resource(kueue::GROUP, kueue::VERSION, "clusterqueues"),
            Kind::LocalQueue => resource(kueue::GROUP, kueue::VERSION, "localqueues"),
            Kind::Flavor => resource(kueue::GROUP, kueue::VERSION, "resourceflavors"),
        });
        let store = Store::new(Limits::default());
        let (candidates, collected) = (BTreeSet::new(), 0);
        let mut api = Self {
            store,
            catalog,
            resources,
            now,
            uids: 0,
            parsed_jobs: Parsed::default(),
            parsed_pods: Parsed::default(),
            parsed_sets: Parsed::default(),
            parsed_workloads: Parsed::default(),
            parsed_cluster_queues: Parsed::default(),
            parsed_local_queues: Parsed::default(),
            parsed_flavors: Parsed::default(),
            candidates,
            collected,
        };
        let namespace = map(json!({"metadata": {"name": NAMESPACE}}));
        api.write(&namespaces, "", |scene| rest::create(scene, namespace))
            .expect("a namespace can be made");
        api
    }

    /// Moves the clock.
    pub fn set_now(&mut self, now: Timestamp) {
        self.now = now;
    }

    /// The time.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// The state everybody may see.
    pub fn snapshot(&self) -> &Snapshot {
        self.store.published()
    }

    /// The resource of a kind.
    pub fn resource(&self, kind: Kind) -> &Arc<Resource> {
        &self.resources[kind as usize]
    }

    /// One object.
    pub fn get(&self, kind: Kind, name: &str) -> Option<&Arc<Object>> {
        let key = object::key(kind.namespace(), name);
        self.snapshot().get(&self.resource(kind).table, &key)
    }

    /// A Job, as its kind.
    pub fn job(&mut self, object: &Arc<Object>) -> Arc<Job> {
        self.parsed_jobs.get(object)
    }

    /// A pod, as its kind.
    pub fn pod(&mut self, object: &Arc<Object>) -> Arc<Pod> {
        self.parsed_pods.get(object)
    }

    /// A JobSet, as its kind.
    pub fn jobset(&mut self, object: &Arc<Object>) -> Arc<JobSet> {
        self.parsed_sets.get(object)
    }

    /// A Workload, as its kind.
    pub fn workload(&mut self, object: &Arc<Object>) -> Arc<Workload> {
        self.parsed_workloads.get(object)
    }

    /// A ClusterQueue, as its kind.
    pub fn cluster_queue(&mut self, object: &Arc<Object>) -> Arc<ClusterQueue> {
        self.parsed_cluster_queues.get(object)
    }

    /// A LocalQueue, as its kind.
    pub fn local_queue(&mut self, object: &Arc<Object>) -> Arc<LocalQueue> {
        self.parsed_local_queues.get(object)
    }

    /// A ResourceFlavor, as its kind.
    pub fn flavor(&mut self, object: &Arc<Object>) -> Arc<ResourceFlavor> {
        self.parsed_flavors.get(object)
    }

    /// All objects of a kind.
    pub fn list(&self, kind: Kind) -> impl Iterator<Item = &Arc<Object>> {
        self.snapshot().range(&self.resource(kind).table, None, None).map(|(_, object)| object)
    }

    /// What happened to a kind after `revision`, oldest first; nothing when that is forgotten.
    pub fn events_after(
        &self,
        kind: Kind,
        revision: Revision,
        max: usize,
    ) -> Option<Vec<Arc<Event>>> {
        self.store.log().events_after(&self.resource(kind).table, revision, max).ok()
    }

    /// POST.
    ///
    /// # Errors
    /// What a real server answers.
    pub fn create(&mut self, kind: Kind, object: Json) -> Result<Arc<Object>, Status> {
        self.request(kind, |scene| rest::create(scene, object))
    }

    /// PUT, of the object or of a part of it.
    ///
    /// # Errors
    /// What a real server answers.
    pub fn update(
        &mut self,
        kind: Kind,
        sub: Option<&str>,
        name: &str,
        object: Json,
    ) -> Result<Arc<Object>, Status> {
        self.request(kind, |scene| rest::update(scene, sub, name, object))
    }

    /// Changes an object whatever its version is, as a client does that repeats itself on a
    /// conflict.
    ///
    /// # Errors
    /// What a real server answers.
    pub fn edit(
        &mut self,
        kind: Kind,
        sub: Option<&str>,
        name: &str,
        change: impl FnOnce(&mut Json),
    ) -> Result<Arc<Object>, Status> {
        let found = self.get(kind, name);
        let found = found.ok_or_else(|| Status::not_found(self.resource(kind), name))?;
        let mut object = if sub == Some("status") { status_part(found) } else { found.json() };
        change(&mut object);
        self.update(kind, sub, name, object)
    }

    /// PATCH, of the object or of a part of it.
    ///
    /// # Errors
    /// What a real server answers.
    pub fn patch(
        &mut self,
        kind: Kind,
        sub: Option<&str>,
        name: &str,
        patch: &Patch,
    ) -> Result<Arc<Object>, Status> {
        let validation = FieldValidation::Strict;
        self.request(kind, |scene| rest::patch(scene, sub, name, patch, validation))
    }

    /// DELETE.
    ///
    /// # Errors
    /// What a real server answers.
    pub fn delete(
        &mut self,
        kind: Kind,
        name: &str,
        options: &DeleteOptions,
    ) -> Result<Arc<Object>, Status> {
        self.request(kind, |scene| rest::delete(scene, name, options))
    }

    /// POST to `/binding`.
    ///
    /// # Errors
    /// What a real server answers.
    pub fn bind(&mut self, name: &str, node: &str) -> Result<Arc<Object>, Status> {
        let binding =
            map(json!({"metadata": {"name": name}, "target": {"kind": "Node", "name": node}}));
        self.request(Kind::Pod, |scene| rest::bind(scene, name, &binding))
    }

    /// POST to `/eviction`.
    ///
    /// # Errors
    /// What a real server answers.
    pub fn evict(&mut self, name: &str) -> Result<Arc<Object>, Status> {
        self.request(Kind::Pod, |scene| rest::evict(scene, name, &DeleteOptions::default()))
    }

    /// Whether the garbage collector has something to look at.
    pub fn has_garbage(&mut self) -> bool {
        self.tell_collector();
        !self.candidates.is_empty()
    }

    /// Lets the garbage collector look at one object. The answer says what it was, if anything was
    /// done about it.
    pub fn collect(&mut self) -> Option<String> {
        self.tell_collector();
        let candidate = self.candidates.pop_first()?;
        let context = collect::context(self.now, String::new());
        let snapshot = self.store.head().clone();
        let view = View { snapshot: &snapshot, catalog: self.catalog, context: &context };
        let changes = collect::plan(&view, &candidate);
        let is_needed = !changes.is_empty();
        for change in changes {
            match self.store.stage(change) {
                Ok(staged) => drop(self.store.publish(staged.revision, self.now)),
                Err(_) => drop(self.candidates.insert(candidate.clone())),
            }
        }
        is_needed.then(|| format!("{} {}", candidate.0, candidate.1))
    }

    fn tell_collector(&mut self) {
        let snapshot = self.store.published();
        if snapshot.revision() == self.collected {
            return;
        }
        for kind in Kind::ALL {
            let table = Arc::clone(&self.resource(kind).table);
            if snapshot.table_revision(&table) <= self.collected {
                continue;
            }
            let events = self.store.log().events_after(&table, self.collected, usize::MAX);
            for event in events.into_iter().flatten() {
                let found = collect::candidates(snapshot, self.catalog, &table, &event);
                self.candidates.extend(found);
            }
        }
        self.collected = self.store.published().revision();
    }

    fn request(
        &mut self,
        kind: Kind,
        plan: impl FnOnce(&Scene<'_>) -> Result<Plan, Status>,
    ) -> Result<Arc<Object>, Status> {
        let resource = Arc::clone(self.resource(kind));
        self.write(&resource, kind.namespace(), plan)
    }

    fn write(
        &mut self,
        resource: &Resource,
        namespace: &str,
        plan: impl FnOnce(&Scene<'_>) -> Result<Plan, Status>,
    ) -> Result<Arc<Object>, Status> {
        self.uids += 1;
        let uid = format!("00000000-0000-4000-8000-{:012}", self.uids);
        let context = WriteContext { now: self.now, uid, user: "sim".to_owned() };
        let head = self.store.head().clone();
        let catalog = self.catalog;
        let (view, context, manager) = (&head, &context, None);
        let scene = Scene { view, catalog, resource, namespace, context, manager };
        let plan = plan(&scene)?;
        let staged = self.store.stage(plan.change).expect("nobody else writes meanwhile");
        self.store.publish(staged.revision, self.now);
        Ok(match plan.answer {
            Answer::Object(object) => object,
            Answer::Op(at) => Arc::clone(&staged.objects[at]),
        })
    }
}

/// All of an object that a client can change together with its status: to send the rest takes time
/// and has no effect.
fn status_part(object: &Object) -> Json {
    #[derive(serde::Deserialize)]
    struct Part {
        metadata: Json,
        #[serde(default)]
        status: Option<Json>,
    }
    let part: Part = serde_json::from_slice(&object.body).expect("every object has metadata");
    let mut json = Json::new();
    json.insert("metadata".to_owned(), part.metadata.into());
    json.extend(part.status.map(|status| ("status".to_owned(), status.into())));
    json
}

/// A JSON object.
///
/// # Panics
/// When `value` is none.
pub fn map(value: serde_json::Value) -> Json {
    let serde_json::Value::Object(map) = value else { unreachable!("objects are written here") };
    map
}
