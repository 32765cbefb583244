//! The planner with an API of its own: one thread, no requests, and time as it is told.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use lockstep_api::kueue::{Workload, whole_second};
use lockstep_control::plan::queue::{Cycle, Decision, Queues, Settings};
use rustix::time::{ClockId, clock_gettime};

use super::objects;
use super::shape::{Class, Queue};

/// The planner, and what an API would hold.
pub(super) struct World {
    queues: Queues,
    workloads: HashMap<String, Arc<Workload>>,
    version: u64,
    pub(super) now: Timestamp,
    /// The microseconds that the planner took to hear of changes and to say what queues are like.
    pub(super) heard: f64,
}

/// What was decided in a cycle, and carried out.
pub(super) struct Decided {
    pub(super) admitted: Vec<String>,
    pub(super) evicted: Vec<String>,
    pub(super) is_anything: bool,
    pub(super) visited: usize,
    /// The microseconds it took to decide.
    pub(super) micros: f64,
}

impl World {
    pub(super) fn new(all: &[Queue]) -> Self {
        let now = Timestamp::from_second(1_700_000_000).unwrap();
        let settings = Settings { wait: None, ..Settings::default() };
        let mut queues = Queues::new(settings);
        queues.flavor_seen(&Arc::new(objects::flavor()), now);
        for queue in all {
            queues.namespace_seen(&queue.name, &BTreeMap::new(), now);
            queues.cluster_queue_seen(&Arc::new(objects::cluster_queue(queue)), now);
            queues.local_queue_seen(&Arc::new(objects::local_queue(queue)), now);
        }
        queues.flavors_listed();
        queues.cluster_queues_listed();
        queues.local_queues_listed();
        queues.namespaces_listed();
        queues.limit_ranges_listed();
        queues.runtime_classes_listed();
        queues.workloads_listed();
        Self { queues, workloads: HashMap::new(), version: 0, now, heard: 0.0 }
    }

    /// One more workload.
    pub(super) fn add(&mut self, queue: &Queue, class: &Class, set: usize) {
        let mut workload = objects::workload(&queue.name, class, set, self.workloads.len());
        workload.metadata.uid = Some(format!("uid-{}", self.workloads.len()));
        workload.metadata.creation_timestamp = Some(Time(whole_second(self.now)));
        self.put(workload);
    }

    pub(super) fn finish(&mut self, key: &str) {
        let mut workload = (*self.workloads[key]).clone();
        workload.status = Some(objects::finished(&workload, self.now));
        self.put(workload);
    }

    fn put(&mut self, mut workload: Workload) {
        self.version += 1;
        workload.metadata.resource_version = Some(self.version.to_string());
        let workload = Arc::new(workload);
        let begun = thread_micros();
        self.queues.workload_seen(&workload, self.now);
        self.heard += thread_micros() - begun;
        self.workloads.insert(objects::key(&workload), workload);
    }

    /// One that was evicted has stopped.
    pub(super) fn release(&mut self, key: &str) {
        let mut workload = (*self.workloads[key]).clone();
        workload.status = Some(objects::released(&workload, self.now));
        self.put(workload);
    }

    /// Runs cycles until there is nothing more to say.
    pub(super) fn settle(&mut self) {
        loop {
            self.now += Duration::from_secs(1);
            if !self.cycle().is_anything {
                return;
            }
        }
    }

    /// Runs a cycle, and carries out what was decided.
    pub(super) fn cycle(&mut self) -> Decided {
        let begun = thread_micros();
        let Cycle { decisions, visited } = self.queues.cycle(self.now);
        let micros = thread_micros() - begun;
        let is_anything = !decisions.is_empty();
        let (mut admitted, mut evicted) = (Vec::new(), Vec::new());
        for decision in decisions {
            let write = decision.write();
            let key = write.key.to_string();
            let mut workload = (*self.workloads[&key]).clone();
            workload.status = Some(write.status.clone());
            match decision {
                Decision::Admit(_) => admitted.push(key),
                Decision::Preempt(_) => evicted.push(key),
                Decision::Pend(_) => {}
            }
            self.put(workload);
        }
        let begun = thread_micros();
        let _ = self.queues.take_statuses(self.now);
        let _ = self.queues.take_finalizers(self.now);
        self.heard += thread_micros() - begun;
        Decided { admitted, evicted, is_anything, visited, micros }
    }

    pub(super) fn get(&self, key: &str) -> &Workload {
        &self.workloads[key]
    }

    /// Who holds the quota of a queue.
    pub(super) fn holder(&self, queue: &Queue) -> String {
        let mut of_queue = self.workloads.iter().filter(|(_, it)| objects::held(it) > 0);
        let of_queue = of_queue.find(|(key, _)| key.starts_with(&format!("{}/", queue.name)));
        of_queue.unwrap().0.clone()
    }
}

/// The time this thread has had on a core.
fn thread_micros() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap().as_secs_f64() * 1e6
}
