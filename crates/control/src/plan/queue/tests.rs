//! The scheduler as its shell uses it.

mod additions;
mod admitting;
mod blocking;
mod driving;
mod late_answers;
mod preempting;
mod property;
mod telling;
mod waiting;
mod waking;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jiff::Timestamp;
use lockstep_api::kueue::{ClusterQueue, LocalQueue, ResourceFlavor, Workload};
use serde_json::{Value, json};

use super::{Cycle, Decision, Queues, Settings, StatusOfQueue, Write};
use crate::plan::{Event, Key};

/// A second of the tests' time.
pub(super) fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + second).unwrap()
}

/// A workload by name in the namespace of the tests.
pub(super) fn key(name: &str) -> Key {
    Key { namespace: "ns".to_owned(), name: name.to_owned() }
}

/// The scheduler and the API it writes to.
pub(super) struct World {
    pub(super) queues: Queues,
    pub(super) workloads: BTreeMap<String, Arc<Workload>>,
    pub(super) events: Vec<(String, Event)>,
    pub(super) now: Timestamp,
    version: u64,
    /// What the status of each queue was last.
    pub(super) statuses: BTreeMap<String, Value>,
}

impl World {
    /// A world with a flavor `f`, a namespace `ns` and these ClusterQueues, each with a LocalQueue
    /// of its name.
    pub(super) fn new(clusters: &[(&str, Value)]) -> Self {
        Self::with(Settings::default(), clusters)
    }

    pub(super) fn with(settings: Settings, clusters: &[(&str, Value)]) -> Self {
        let mut world = Self {
            queues: Queues::new(settings),
            workloads: BTreeMap::new(),
            events: Vec::new(),
            now: at(100),
            version: 1,
            statuses: BTreeMap::new(),
        };
        world.flavor("f", json!({}));
        world.queues.namespace_seen("ns", &BTreeMap::new(), world.now);
        for (name, spec) in clusters {
            world.cluster(name, spec.clone());
            world.local(name, json!({"clusterQueue": name}));
        }
        world.queues.flavors_listed();
        world.queues.cluster_queues_listed();
        world.queues.local_queues_listed();
        world.queues.namespaces_listed();
        world.queues.limit_ranges_listed();
        world.queues.runtime_classes_listed();
        world.queues.workloads_listed();
        world
    }

    fn meta(&mut self, name: &str) -> Value {
        self.version += 1;
        json!({"name": name, "uid": format!("uid-{name}"), "generation": 1,
               "resourceVersion": self.version.to_string()})
    }

    pub(super) fn flavor(&mut self, name: &str, spec: Value) {
        let object = json!({"metadata": self.meta(name), "spec": spec});
        let flavor: ResourceFlavor = serde_json::from_value(object).unwrap();
        self.queues.flavor_seen(&Arc::new(flavor), self.now);
    }

    pub(super) fn cluster(&mut self, name: &str, spec: Value) {
        self.cluster_with(name, spec, json!({}));
    }

    pub(super) fn cluster_with(&mut self, name: &str, spec: Value, annotations: Value) {
        let mut object = json!({"metadata": self.meta(name), "spec": spec});
        object["metadata"]["annotations"] = annotations;
        if let Some(status) = self.statuses.get(name) {
            object["status"] = status.clone();
        }
        let queue: ClusterQueue = serde_json::from_value(object).unwrap();
        self.queues.cluster_queue_seen(&Arc::new(queue), self.now);
    }

    pub(super) fn local(&mut self, name: &str, spec: Value) {
        self.local_with(name, spec, json!({}));
    }

    pub(super) fn local_with(&mut self, name: &str, spec: Value, annotations: Value) {
        let mut object = json!({"metadata": self.meta(name), "spec": spec});
        object["metadata"]["namespace"] = json!("ns");
        object["metadata"]["annotations"] = annotations;
        let queue: LocalQueue = serde_json::from_value(object).unwrap();
        self.queues.local_queue_seen(&Arc::new(queue), self.now);
    }

    /// A workload of one pod that asks for so many gpus, created at a second.
    pub(super) fn add(&mut self, name: &str, queue: &str, gpus: i64, priority: i32, created: i64) {
        self.add_with(name, queue, gpus, json!({"priority": priority}), created);
    }

    pub(super) fn add_with(
        &mut self,
        name: &str,
        queue: &str,
        gpus: i64,
        more: Value,
        created: i64,
    ) {
        let mut meta = self.meta(name);
        meta["namespace"] = json!("ns");
        meta["creationTimestamp"] = json!(at(created).to_string());
        let mut spec = json!({"queueName": queue, "podSets": [{"name": "main", "count": 1,
            "template": {"spec": {"containers": [{"resources": {
                "requests": {"gpu": gpus.to_string()}}}]}}}]});
        if let (Some(spec), Some(more)) = (spec.as_object_mut(), more.as_object()) {
            spec.extend(more.clone());
        }
        self.put(json!({"metadata": meta, "spec": spec}));
    }

    /// Makes the API hold this workload, and tells of it.
    pub(super) fn put(&mut self, object: Value) {
        let workload: Workload = serde_json::from_value(object).unwrap();
        let workload = Arc::new(workload);
        let name = workload.metadata.name.clone().unwrap();
        self.workloads.insert(name, Arc::clone(&workload));
        self.queues.workload_seen(&workload, self.now);
    }

    /// Changes a workload in the API, and tells of it.
    pub(super) fn change(&mut self, name: &str, change: impl FnOnce(&mut Workload)) {
        let mut workload = (*self.workloads[name]).clone();
        change(&mut workload);
        self.version += 1;
        workload.metadata.resource_version = Some(self.version.to_string());
        let workload = Arc::new(workload);
        self.workloads.insert(name.to_owned(), Arc::clone(&workload));
        self.queues.workload_seen(&workload, self.now);
    }

    /// Sets a condition of a workload.
    pub(super) fn say(&mut self, name: &str, kind: &str, status: &str, reason: &str) {
        let now = self.now;
        let condition = json!({"type": kind, "status": status, "reason": reason,
            "message": "said", "lastTransitionTime": now.to_string()});
        self.change(name, |workload| {
            let conditions = &mut workload.status.get_or_insert_default().conditions;
            conditions.retain(|it| it.type_ != kind);
            conditions.push(serde_json::from_value(condition).unwrap());
        });
    }

    /// A workload has ended.
    pub(super) fn finish(&mut self, name: &str) {
        self.say(name, "Finished", "True", "Succeeded");
    }

    /// The pods of an evicted workload are gone: its quota is given back.
    pub(super) fn release(&mut self, name: &str) {
        let requeued = self.condition(name, "Evicted").1 == "Preempted";
        self.change(name, |workload| {
            let status = workload.status.get_or_insert_default();
            status.admission = None;
            for condition in &mut status.conditions {
                if condition.type_ == "QuotaReserved" {
                    condition.status = "False".to_owned();
                    condition.reason = "PendingEvaluation".to_owned();
                }
                if condition.type_ == "Admitted" {
                    condition.status = "False".to_owned();
                }
            }
        });
        self.say(name, "Requeued", if requeued { "True" } else { "False" }, "Preempted");
    }

    /// Runs cycles and carries out what they decide until there is nothing to do now.
    pub(super) fn run(&mut self) -> Vec<Decision> {
        let mut all = Vec::new();
        for _ in 0..100 {
            let cycle = self.queues.cycle(self.now);
            if cycle.decisions.is_empty() {
                return all;
            }
            for decision in cycle.decisions {
                self.carry_out(decision.write());
                all.push(decision);
            }
        }
        panic!("the scheduler does not come to rest: {:?}", all.last());
    }

    pub(super) fn cycle(&mut self) -> Cycle {
        self.queues.cycle(self.now)
    }

    pub(super) fn carry_out(&mut self, write: &Write) {
        let mut workload = (*self.workloads[&write.key.name]).clone();
        assert_eq!(workload.metadata.resource_version.as_deref(), Some(write.version.as_str()));
        assert_eq!(workload.metadata.uid.as_deref(), Some(write.uid.as_str()));
        self.version += 1;
        workload.metadata.resource_version = Some(self.version.to_string());
        workload.status = Some(write.status.clone());
        let workload = Arc::new(workload);
        self.workloads.insert(write.key.name.clone(), Arc::clone(&workload));
        self.events.extend(write.events.iter().map(|it| (write.key.name.clone(), it.clone())));
        for (key, event) in &write.events_elsewhere {
            self.events.push((key.name.clone(), event.clone()));
        }
        self.queues.written(&workload, self.now);
    }

    /// Writes the statuses of queues, and tells of them.
    pub(super) fn write_statuses(&mut self) -> Vec<StatusOfQueue> {
        let statuses = self.queues.take_statuses(self.now);
        for status in &statuses {
            match status {
                StatusOfQueue::ClusterQueue { name, status, .. } => {
                    let known = self.queues.clusters[name.as_str()].object.clone();
                    let mut queue = (*known).clone();
                    queue.status = Some(status.clone());
                    self.version += 1;
                    queue.metadata.resource_version = Some(self.version.to_string());
                    self.statuses.insert(name.clone(), serde_json::to_value(status).unwrap());
                    self.queues.cluster_queue_seen(&Arc::new(queue), self.now);
                }
                StatusOfQueue::LocalQueue { key, status, .. } => {
                    let mut queue = (*self.queues.locals[key]).clone();
                    queue.status = Some(status.clone());
                    self.version += 1;
                    queue.metadata.resource_version = Some(self.version.to_string());
                    let name = format!("local {}", key.name);
                    self.statuses.insert(name, serde_json::to_value(status).unwrap());
                    self.queues.local_queue_seen(&Arc::new(queue), self.now);
                }
            }
        }
        statuses
    }

    /// Status, reason and message of a condition.
    pub(super) fn condition(&self, name: &str, kind: &str) -> (String, String, String) {
        let found = crate::plan::queue::conditions::of(&self.workloads[name], kind).cloned();
        found.map_or_else(Default::default, |it| (it.status, it.reason, it.message))
    }

    /// Those that hold quota.
    pub(super) fn holding(&self) -> BTreeSet<&str> {
        use crate::plan::queue::conditions::is_true;
        let holds = |it: &Workload| is_true(it, "QuotaReserved") && !is_true(it, "Finished");
        let holding = self.workloads.iter().filter(|(_, workload)| holds(workload));
        holding.map(|(name, _)| name.as_str()).collect()
    }

    pub(super) fn quota(&self, name: &str) -> (String, String) {
        let (status, reason, message) = self.condition(name, "QuotaReserved");
        assert_ne!(status, "True", "{name} holds quota");
        (reason, message)
    }
}

impl Queues {
    /// When there is something to do beside writing statuses and finalizers.
    pub(super) fn next_due_after_statuses(&self, now: Timestamp) -> Option<Timestamp> {
        let mut queues = self.clone();
        let _ = queues.take_statuses(now);
        let _ = queues.take_finalizers(now);
        queues.next_due()
    }
}

/// A ClusterQueue with so many gpus of flavor `f`.
pub(super) fn gpus(nominal: i64, more: Value) -> Value {
    let mut spec = json!({"namespaceSelector": {}, "resourceGroups": [{
        "coveredResources": ["gpu"], "flavors": [{"name": "f", "resources": [
            {"name": "gpu", "nominalQuota": nominal.to_string()}]}]}]});
    if let (Some(spec), Some(more)) = (spec.as_object_mut(), more.as_object()) {
        spec.extend(more.clone());
    }
    spec
}

/// The events of a workload, as `reason: message`.
pub(super) fn told(world: &World, name: &str) -> Vec<String> {
    let own = world.events.iter().filter(|(of, _)| of == name);
    own.map(|(_, event)| format!("{}: {}", event.reason, event.message)).collect()
}
