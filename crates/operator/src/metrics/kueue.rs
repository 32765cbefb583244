//! What the queue controller counts, under the names Kueue has for it.

mod counts;
mod gauges;
mod replica;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use lockstep_api::kueue::{ClusterQueue, LocalQueue, Workload};
use lockstep_control::plan::queue;
use lockstep_control::plan::workload::{self, Milestone};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

use crate::lease::Leadership;

use counts::Counts;
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
    of_cluster_queues: Counts,
    of_local_queues: Counts,
    evicted_once: Family<Labels, Counter>,
    preempted: Family<Labels, Counter>,
    gauges: Arc<Gauges>,
}

impl KueueMetrics {
    pub(super) fn new(registry: &mut Registry) -> Self {
        let cycles: fn() -> Histogram = || Histogram::new(CYCLES);
        let metrics = Self {
            visited: Counter::default(),
            attempts: Family::default(),
            attempts_took: Family::new_with_constructor(cycles),
            of_cluster_queues: Counts::new(),
            of_local_queues: Counts::new(),
            evicted_once: Family::default(),
            preempted: Family::default(),
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
        self.of_cluster_queues.register(put, "", "ClusterQueue");
        self.of_local_queues.register(put, "local_queue_", "LocalQueue");
        let help = "Workloads that were evicted once or more for a reason and a cause";
        put.register("evicted_workloads_once", help, self.evicted_once.clone());
        let help = "Workloads that were preempted, by the ClusterQueue they gave way to";
        put.register("preempted_workloads", help, self.preempted.clone());
        let help = "What this was built of";
        put.register("build", help, Info::new(built()));
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
                for (counts, labels) in self.of_both(cluster_queue, workload) {
                    counts.admitted(&labels, seconds(*waited_seconds));
                }
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
        for (counts, labels) in self.of_both(queue, workload) {
            match milestone {
                Milestone::Started { since_queued, since_admitted } => {
                    counts.ready(&labels, seconds(since_queued), seconds(since_admitted));
                }
                Milestone::Finished => counts.finished(&labels),
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
        let why = [("reason", reason), ("underlying_cause", cause)];
        let [name, namespace] = local_queue(workload);
        let class = ("priority_class", priority_class(workload));
        let labels = self.labels([("cluster_queue", queue), why[0], why[1], class]);
        self.of_cluster_queues.evicted(&labels);
        let of_local = [name, namespace, why[0], why[1], class];
        self.of_local_queues.evicted(&self.labels(of_local));
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

    /// Notes how many wait in a ClusterQueue and are not tried before something changes.
    pub fn inadmissible(&self, queue: &str, number: i32) {
        self.gauges.inadmissible(queue, number);
    }

    /// Notes a LocalQueue as it is now.
    pub fn local_queue_seen(&self, queue: &Arc<LocalQueue>) {
        self.gauges.local_seen(queue);
    }

    /// Forgets a LocalQueue that is gone.
    pub fn local_queue_gone(&self, namespace: &str, name: &str) {
        self.gauges.local_gone(namespace, name);
    }

    /// The counters of both queues of a Workload, with its labels there.
    fn of_both(&self, cluster_queue: &str, workload: &Workload) -> [(&Counts, Labels); 2] {
        let class = ("priority_class", priority_class(workload));
        let [name, namespace] = local_queue(workload);
        let of_cluster_queue = self.labels([("cluster_queue", cluster_queue), class]);
        let of_local_queue = self.labels([name, namespace, class]);
        [(&self.of_cluster_queues, of_cluster_queue), (&self.of_local_queues, of_local_queue)]
    }

    /// These labels, and who counts.
    fn labels<const N: usize>(&self, labels: [(&'static str, &str); N]) -> Labels {
        let role = ("replica_role", self.gauges.replica.role());
        let all = labels.into_iter().chain([role]);
        all.map(|(key, value)| (key, value.to_owned())).collect()
    }
}

/// The labels that say which LocalQueue a Workload is in.
fn local_queue(workload: &Workload) -> [(&'static str, &str); 2] {
    let namespace = workload.metadata.namespace.as_deref().unwrap_or_default();
    [("name", workload.spec.queue_name.as_str()), ("namespace", namespace)]
}

/// The labels under which others look for what Kueue was built of.
fn built() -> Vec<(&'static str, String)> {
    let platform = format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH);
    let version = concat!("v", env!("CARGO_PKG_VERSION"), "+lockstep");
    let labels = [
        ("git_version", version),
        ("git_commit", ""),
        ("build_date", ""),
        ("go_version", ""),
        ("compiler", "rustc"),
        ("platform", &platform),
    ];
    labels.map(|(key, value)| (key, value.to_owned())).to_vec()
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
