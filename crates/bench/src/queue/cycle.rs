//! What one admission cycle costs by how many wait: the planner on its own, on one thread.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use lockstep_api::kueue::Workload;
use lockstep_control::plan::queue::{Cycle, Decision, Queues, Settings};
use rustix::time::{ClockId, clock_gettime};

use super::objects;
use super::shape::{Class, Queue, Shape, count};
use crate::report::{Budget, Report, median};

/// How many cycles are measured at each size.
const CYCLES: usize = 600;

/// With fewer, not everybody has somebody like it that waits as well.
const PENDING_MIN: usize = 600;

/// Measures the sizes: one workload finishes and one is admitted in each cycle.
pub(super) fn measure(report: &mut Report, divisor: usize) {
    let mut costs = Vec::new();
    for size in [1_000, 10_000, 50_000] {
        let pending = (size / divisor).max(PENDING_MIN);
        let Cost { cycle, around, visited } = cost(pending);
        let name = format!("cycle, {pending} pending");
        report.add(&format!("{name}: CPU, median"), cycle, "µs", Budget::None);
        let what = format!("{name}: CPU to hear of what leads to it and follows, median");
        report.add(&what, around, "µs", Budget::None);
        report.add(&format!("{name}: workloads visited"), visited, "", Budget::None);
        costs.push(cycle);
    }
    let ratio = costs[2] / costs[0];
    let budget = if divisor == 1 { Budget::AtMost(1.5) } else { Budget::None };
    report.add("cycle: CPU at the most pending over that at the fewest", ratio, "x", budget);
}

/// What a cycle costs, in microseconds, and how many it looks at on average.
struct Cost {
    cycle: f64,
    around: f64,
    visited: f64,
}

fn cost(pending: usize) -> Cost {
    let shape = Shape::baseline();
    let large = shape.classes[2];
    let queues = shape.all_queues();
    let mut world = World::new(&queues);
    // Each queue runs what it has quota for. Everybody else waits, seven small ones and two medium
    // ones for each large one, as in the baseline.
    for queue in &queues {
        world.add(queue, &large, 2);
    }
    world.settle();
    let mut running: Vec<String> = queues.iter().map(|queue| world.holder(queue)).collect();
    let sets = [0, 0, 0, 0, 0, 0, 0, 1, 1, 2];
    for nth in 0..pending {
        let (set, queue) = (sets[nth % 10], &queues[nth / 10 % queues.len()]);
        world.add(queue, &shape.classes[set], set);
    }
    world.settle();
    world.heard = 0.0;
    let (mut cycles, mut rest, mut visited) = (Vec::new(), Vec::new(), 0);
    for nth in 0..CYCLES {
        let at = nth % queues.len();
        world.now += Duration::from_millis(10);
        world.finish(&running[at]);
        world.add(&queues[at], &large, 2);
        let begun = thread_micros();
        let cycle = world.queues.cycle(world.now);
        cycles.push(thread_micros() - begun);
        visited += cycle.visited;
        let admitted = world.carry_out(cycle);
        let [admitted] = admitted.as_slice() else { panic!("not one was admitted: {admitted:?}") };
        running[at].clone_from(admitted);
        rest.push(std::mem::take(&mut world.heard));
    }
    let visited = count(visited) / count(CYCLES);
    Cost { cycle: median(cycles), around: median(rest), visited }
}

/// The planner, and what an API would hold.
struct World {
    queues: Queues,
    workloads: HashMap<String, Arc<Workload>>,
    version: u64,
    now: Timestamp,
    /// The microseconds that the planner took to hear of changes and to say what queues are like.
    heard: f64,
}

impl World {
    fn new(all: &[Queue]) -> Self {
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
        queues.workloads_listed();
        Self { queues, workloads: HashMap::new(), version: 0, now, heard: 0.0 }
    }

    /// One more workload.
    fn add(&mut self, queue: &Queue, class: &Class, set: usize) {
        let mut workload = objects::workload(&queue.name, class, set, self.workloads.len());
        workload.metadata.uid = Some(format!("uid-{}", self.workloads.len()));
        workload.metadata.creation_timestamp = Some(Time(self.now));
        self.put(workload);
    }

    fn finish(&mut self, key: &str) {
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

    /// Runs cycles until there is nothing more to say.
    fn settle(&mut self) {
        loop {
            self.now += Duration::from_secs(1);
            let cycle = self.queues.cycle(self.now);
            if cycle.decisions.is_empty() {
                return;
            }
            self.carry_out(cycle);
        }
    }

    /// Carries out what was decided; says who was admitted.
    fn carry_out(&mut self, cycle: Cycle) -> Vec<String> {
        let mut admitted = Vec::new();
        for decision in cycle.decisions {
            let write = decision.write();
            let key = write.key.to_string();
            let mut workload = (*self.workloads[&key]).clone();
            workload.status = Some(write.status.clone());
            if matches!(decision, Decision::Admit(_)) {
                admitted.push(key);
            }
            self.put(workload);
        }
        let begun = thread_micros();
        let _ = self.queues.take_statuses(self.now);
        let _ = self.queues.take_finalizers(self.now);
        self.heard += thread_micros() - begun;
        admitted
    }

    /// Who holds the quota of a queue.
    fn holder(&self, queue: &Queue) -> String {
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
