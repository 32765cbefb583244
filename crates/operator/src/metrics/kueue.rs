//! What the queue controller counts, under the names Kueue has for it.

mod gauges;
mod replica;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use lockstep_api::kueue::{ClusterQueue, Workload};
use lockstep_control::plan::queue;
use lockstep_control::plan::workload::{self, Milestone};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

use crate::lease::Leadership;

use gauges::Gauges;
use replica::Replica;

type Labels = Vec<(&'static str, String)>;
type Histograms = Family<Labels, Histogram, fn() -> Histogram>;

/// The upper ends of the ranges that cycles are counted in, in seconds: those of Prometheus.
const CYCLES: [f64; 11] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

/// Counters of the queue controller.
pub struct KueueMetrics {
    visited: Counter,
    attempts: Family<Labels, Counter>,
    attempts_took: Histograms,
    reserved: Family<Labels, Counter>,
    reserved_after: Histograms,
    admitted: Family<Labels, Counter>,
    admitted_after: Histograms,
    ready_after: Histograms,
    ready_after_admission: Histograms,
    evicted: Family<Labels, Counter>,
    evicted_once: Family<Labels, Counter>,
    preempted: Family<Labels, Counter>,
    finished: Family<Labels, Counter>,
    gauges: Arc<Gauges>,
}

impl KueueMetrics {
    pub(super) fn new(registry: &mut Registry) -> Self {
        let cycles: fn() -> Histogram = || Histogram::new(CYCLES);
        let short: fn() -> Histogram = || Histogram::new(waits(14));
        let long: fn() -> Histogram = || Histogram::new(waits(16));
        let metrics = Self {
            visited: Counter::default(),
            attempts: Family::default(),
            attempts_took: Family::new_with_constructor(cycles),
            reserved: Family::default(),
            reserved_after: Family::new_with_constructor(short),
            admitted: Family::default(),
            admitted_after: Family::new_with_constructor(long),
            ready_after: Family::new_with_constructor(short),
            ready_after_admission: Family::new_with_constructor(short),
            evicted: Family::default(),
            evicted_once: Family::default(),
            preempted: Family::default(),
            finished: Family::default(),
            gauges: Arc::default(),
        };
        metrics.register(registry);
        metrics
    }

    fn register(&self, registry: &mut Registry) {
        let help = "Workloads that admission cycles looked at";
        registry.register("lockstep_queue_visited_workloads", help, self.visited.clone());
        let put = registry.sub_registry_with_prefix("kueue");
        let help = "Admission cycles by whether they admitted anybody";
        put.register("admission_attempts", help, self.attempts.clone());
        let help = "How long admission cycles took";
        put.register("admission_attempt_duration_seconds", help, self.attempts_took.clone());
        let help = "Workloads that got quota, by ClusterQueue";
        put.register("quota_reserved_workloads", help, self.reserved.clone());
        let help = "How long Workloads waited for quota";
        put.register("quota_reserved_wait_time_seconds", help, self.reserved_after.clone());
        let help = "Workloads that were admitted, by ClusterQueue";
        put.register("admitted_workloads", help, self.admitted.clone());
        let help = "How long Workloads waited to be admitted";
        put.register("admission_wait_time_seconds", help, self.admitted_after.clone());
        let help = "How long it took from the queue until all pods were ready";
        put.register("ready_wait_time_seconds", help, self.ready_after.clone());
        let help = "How long it took from the admission until all pods were ready";
        let name = "admitted_until_ready_wait_time_seconds";
        put.register(name, help, self.ready_after_admission.clone());
        let help = "Evictions, by ClusterQueue, reason and cause";
        put.register("evicted_workloads", help, self.evicted.clone());
        let help = "Workloads that were evicted once or more for a reason and a cause";
        put.register("evicted_workloads_once", help, self.evicted_once.clone());
        let help = "Workloads that were preempted, by the ClusterQueue they gave way to";
        put.register("preempted_workloads", help, self.preempted.clone());
        let help = "Workloads that have finished, by ClusterQueue";
        put.register("finished_workloads", help, self.finished.clone());
        put.register_collector(Box::new(Arc::clone(&self.gauges)));
    }

    /// Says how this process counts: as whom, and whether quota and usage of ClusterQueues are told
    /// too.
    pub fn configure(&self, leadership: &Leadership, has_resources: bool) {
        self.gauges.replica.follow(leadership);
        self.gauges.has_resources.store(has_resources, Ordering::Relaxed);
    }

    /// Notes an admission cycle: how many workloads it looked at, how many it admitted, and how
    /// long that took.
    pub fn cycle(&self, visited: usize, admitted: usize, took: Duration) {
        self.visited.inc_by(u64::try_from(visited).unwrap_or(u64::MAX));
        let result = if admitted > 0 { "success" } else { "inadmissible" };
        let labels = self.labels([("result", result)]);
        self.attempts.get_or_create(&labels).inc();
        self.attempts_took.get_or_create(&labels).observe(took.as_secs_f64());
    }

    /// Notes a decision that was carried out; this is the workload since.
    pub fn decided(&self, fact: &queue::Fact, workload: &Workload) {
        match fact {
            queue::Fact::Admitted { cluster_queue, waited_seconds } => {
                let labels = self.of_queue(cluster_queue, workload);
                self.reserved.get_or_create(&labels).inc();
                self.admitted.get_or_create(&labels).inc();
                let waited = seconds(*waited_seconds);
                self.reserved_after.get_or_create(&labels).observe(waited);
                self.admitted_after.get_or_create(&labels).observe(waited);
            }
            queue::Fact::Preempted { preemptor_queue, cluster_queue, reason } => {
                let labels =
                    [("preempting_cluster_queue", preemptor_queue.as_str()), ("reason", *reason)];
                self.preempted.get_or_create(&self.labels(labels)).inc();
                let is_first = evictions(workload, "Preempted", "") == 1;
                self.evicted(cluster_queue, ("Preempted", ""), workload, is_first);
            }
            queue::Fact::Pending { .. } => {}
        }
    }

    /// Notes what was done to a workload between admissions; this is the workload before.
    pub fn note(&self, fact: &workload::Fact, workload: &Workload) {
        let workload::Fact::Evicted { cluster_queue, reason, cause } = fact;
        let is_first = evictions(workload, reason, cause) == 0;
        self.evicted(cluster_queue, (reason, cause), workload, is_first);
    }

    /// Notes what was seen to have happened to a workload.
    pub fn reached(&self, milestone: Milestone, workload: &Workload) {
        let admission = workload.status.as_ref().and_then(|status| status.admission.as_ref());
        let queue = admission.map_or("", |admission| admission.cluster_queue.as_str());
        let labels = self.of_queue(queue, workload);
        match milestone {
            Milestone::Started { since_queued, since_admitted } => {
                self.ready_after.get_or_create(&labels).observe(seconds(since_queued));
                let histogram = self.ready_after_admission.get_or_create(&labels);
                histogram.observe(seconds(since_admitted));
            }
            Milestone::Finished => {
                self.finished.get_or_create(&labels).inc();
            }
        }
    }

    fn evicted(
        &self,
        queue: &str,
        (reason, cause): (&str, &str),
        workload: &Workload,
        is_first: bool,
    ) {
        // Who had no quota has not been evicted from anywhere.
        if queue.is_empty() {
            return;
        }
        let labels = self.labels([
            ("cluster_queue", queue),
            ("reason", reason),
            ("underlying_cause", cause),
            ("priority_class", priority_class(workload)),
        ]);
        self.evicted.get_or_create(&labels).inc();
        if is_first {
            self.evicted_once.get_or_create(&labels).inc();
        }
    }

    /// Notes a ClusterQueue as it is now.
    pub fn cluster_queue_seen(&self, queue: &Arc<ClusterQueue>) {
        self.gauges.seen(queue);
    }

    /// Forgets a ClusterQueue that is gone.
    pub fn cluster_queue_gone(&self, name: &str) {
        self.gauges.gone(name);
    }

    fn of_queue(&self, queue: &str, workload: &Workload) -> Labels {
        self.labels([("cluster_queue", queue), ("priority_class", priority_class(workload))])
    }

    /// These labels, and who counts.
    fn labels<const N: usize>(&self, labels: [(&'static str, &str); N]) -> Labels {
        let role = ("replica_role", self.gauges.replica.role());
        let all = labels.into_iter().chain([role]);
        all.map(|(key, value)| (key, value.to_owned())).collect()
    }
}

/// The upper ends of so many ranges that waits are counted in, in seconds.
fn waits(count: u16) -> impl Iterator<Item = f64> {
    std::iter::once(1.0).chain(exponential_buckets(2.5, 2.0, count - 1))
}

fn seconds(count: i64) -> f64 {
    u32::try_from(count.max(0)).unwrap_or(u32::MAX).into()
}

fn priority_class(workload: &Workload) -> &str {
    workload.spec.priority_class_ref.as_ref().map_or("", |class| class.name.as_str())
}

/// How often a workload says that it was evicted for this.
fn evictions(workload: &Workload, reason: &str, cause: &str) -> i32 {
    let stats = workload.status.as_ref().and_then(|status| status.scheduling_stats.as_ref());
    let mut counts = stats.into_iter().flat_map(|stats| &stats.evictions);
    let found = counts.find(|one| one.reason == reason && one.underlying_cause == cause);
    found.map_or(0, |one| one.count)
}

#[cfg(test)]
mod tests;
