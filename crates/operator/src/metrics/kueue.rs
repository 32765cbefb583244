//! What the queue controller counts, under the names Kueue has for it.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use lockstep_control::plan::queue::{self, StatusOfQueue};
use lockstep_control::plan::workload;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

type Queue = [(&'static str, String); 1];
type Attempt = [(&'static str, &'static str); 1];
type Status = [(&'static str, String); 2];
type Eviction = [(&'static str, String); 3];
type Preemption = [(&'static str, String); 2];
type Histograms<L> = Family<L, Histogram, fn() -> Histogram>;

/// Counters of the queue controller.
pub struct KueueMetrics {
    attempts: Family<Attempt, Counter>,
    reserved: Family<Queue, Counter>,
    reserved_after: Histograms<Queue>,
    admitted: Family<Queue, Counter>,
    admitted_after: Histograms<Queue>,
    evicted: Family<Eviction, Counter>,
    preempted: Family<Preemption, Counter>,
    pending: Family<Status, Gauge>,
    reserving: Family<Queue, Gauge>,
    admitted_now: Family<Queue, Gauge>,
    status: Family<Status, Gauge>,
    known: Mutex<BTreeSet<String>>,
}

/// What a ClusterQueue can be.
const STATES: [&str; 3] = ["pending", "active", "terminating"];

impl KueueMetrics {
    pub(super) fn new(registry: &mut Registry) -> Self {
        let histogram: fn() -> Histogram = || Histogram::new(exponential_buckets(1.0, 2.0, 14));
        let metrics = Self {
            attempts: Family::default(),
            reserved: Family::default(),
            reserved_after: Family::new_with_constructor(histogram),
            admitted: Family::default(),
            admitted_after: Family::new_with_constructor(histogram),
            evicted: Family::default(),
            preempted: Family::default(),
            pending: Family::default(),
            reserving: Family::default(),
            admitted_now: Family::default(),
            status: Family::default(),
            known: Mutex::default(),
        };
        let put = registry.sub_registry_with_prefix("kueue");
        let help = "Admission cycles by whether they admitted anybody";
        put.register("admission_attempts", help, metrics.attempts.clone());
        let help = "Workloads that got quota, by ClusterQueue";
        put.register("quota_reserved_workloads", help, metrics.reserved.clone());
        let help = "How long Workloads waited for quota";
        put.register("quota_reserved_wait_time_seconds", help, metrics.reserved_after.clone());
        let help = "Workloads that were admitted, by ClusterQueue";
        put.register("admitted_workloads", help, metrics.admitted.clone());
        let help = "How long Workloads waited to be admitted";
        put.register("admission_wait_time_seconds", help, metrics.admitted_after.clone());
        let help = "Workloads that were evicted, by ClusterQueue, reason and cause";
        put.register("evicted_workloads", help, metrics.evicted.clone());
        let help = "Workloads that were preempted, by the ClusterQueue they gave way to";
        put.register("preempted_workloads", help, metrics.preempted.clone());
        let help = "Workloads that wait, by ClusterQueue";
        put.register("pending_workloads", help, metrics.pending.clone());
        let help = "Workloads that hold quota, by ClusterQueue";
        put.register("reserving_active_workloads", help, metrics.reserving.clone());
        let help = "Workloads that are admitted and have not finished, by ClusterQueue";
        put.register("admitted_active_workloads", help, metrics.admitted_now.clone());
        let help = "1 for the state that a ClusterQueue is in, 0 for the others";
        put.register("cluster_queue_status", help, metrics.status.clone());
        metrics
    }

    /// Notes an admission cycle.
    pub fn cycle(&self, admitted: usize) {
        let result = if admitted > 0 { "success" } else { "inadmissible" };
        self.attempts.get_or_create(&[("result", result)]).inc();
    }

    /// Notes a decision that was carried out.
    pub fn decided(&self, fact: &queue::Fact) {
        match fact {
            queue::Fact::Admitted { cluster_queue, waited_seconds } => {
                let labels = [("cluster_queue", cluster_queue.clone())];
                self.reserved.get_or_create(&labels).inc();
                self.admitted.get_or_create(&labels).inc();
                let seconds = u32::try_from((*waited_seconds).max(0)).unwrap_or(u32::MAX);
                self.reserved_after.get_or_create(&labels).observe(seconds.into());
                self.admitted_after.get_or_create(&labels).observe(seconds.into());
            }
            queue::Fact::Preempted { preemptor_queue, cluster_queue, reason } => {
                let labels = [
                    ("preempting_cluster_queue", preemptor_queue.clone()),
                    ("reason", (*reason).to_owned()),
                ];
                self.preempted.get_or_create(&labels).inc();
                self.evicted(cluster_queue, "Preempted", "");
            }
            queue::Fact::Pending { .. } => {}
        }
    }

    /// Notes what happened to a Workload between admissions.
    pub fn note(&self, fact: &workload::Fact) {
        let workload::Fact::Evicted { cluster_queue, reason, cause } = fact;
        self.evicted(cluster_queue, reason, cause);
    }

    fn evicted(&self, cluster_queue: &str, reason: &str, cause: &str) {
        let labels = [
            ("cluster_queue", cluster_queue.to_owned()),
            ("reason", reason.to_owned()),
            ("underlying_cause", cause.to_owned()),
        ];
        self.evicted.get_or_create(&labels).inc();
    }

    /// Notes what is said of a queue.
    pub fn status(&self, status: &StatusOfQueue) {
        let StatusOfQueue::ClusterQueue { name, status, .. } = status else { return };
        self.known.lock().unwrap_or_else(PoisonError::into_inner).insert(name.clone());
        let queue = || ("cluster_queue", name.clone());
        let active = status.conditions.iter().find(|condition| condition.type_ == "Active");
        let state = match active {
            Some(active) if active.status == "True" => "active",
            Some(active) if active.reason == "Terminating" => "terminating",
            _ => "pending",
        };
        for one in STATES {
            let labels = [queue(), ("status", one.to_owned())];
            self.status.get_or_create(&labels).set(i64::from(one == state));
        }
        let labels = [queue(), ("status", "active".to_owned())];
        self.pending.get_or_create(&labels).set(status.pending_workloads.into());
        self.reserving.get_or_create(&[queue()]).set(status.reserving_workloads.into());
        self.admitted_now.get_or_create(&[queue()]).set(status.admitted_workloads.into());
    }

    /// Forgets a ClusterQueue that is gone.
    pub fn cluster_queue_gone(&self, name: &str) {
        if !self.known.lock().unwrap_or_else(PoisonError::into_inner).remove(name) {
            return;
        }
        let queue = || ("cluster_queue", name.to_owned());
        for one in STATES {
            self.status.remove(&[queue(), ("status", one.to_owned())]);
        }
        self.pending.remove(&[queue(), ("status", "active".to_owned())]);
        self.reserving.remove(&[queue()]);
        self.admitted_now.remove(&[queue()]);
    }
}
