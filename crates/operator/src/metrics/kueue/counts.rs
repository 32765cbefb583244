//! What is counted of Workloads on their way, by the queue they are in: once by ClusterQueue, and
//! once by LocalQueue under names of their own.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

use super::{Histograms, Labels};

/// Counters of all queues of a kind.
pub(super) struct Counts {
    reserved: Family<Labels, Counter>,
    reserved_after: Histograms,
    admitted: Family<Labels, Counter>,
    admitted_after: Histograms,
    ready_after: Histograms,
    ready_after_admission: Histograms,
    evicted: Family<Labels, Counter>,
    finished: Family<Labels, Counter>,
}

impl Counts {
    pub(super) fn new() -> Self {
        let short: fn() -> Histogram = || Histogram::new(waits(14));
        let long: fn() -> Histogram = || Histogram::new(waits(16));
        Self {
            reserved: Family::default(),
            reserved_after: Family::new_with_constructor(short),
            admitted: Family::default(),
            admitted_after: Family::new_with_constructor(long),
            ready_after: Family::new_with_constructor(short),
            ready_after_admission: Family::new_with_constructor(short),
            evicted: Family::default(),
            finished: Family::default(),
        }
    }

    /// Makes them known, under names that begin with `prefix`; `kind` is that of the queues.
    pub(super) fn register(&self, registry: &mut Registry, prefix: &str, kind: &str) {
        let name = |name: &str| format!("{prefix}{name}");
        let help = format!("Workloads that got quota, by {kind}");
        registry.register(name("quota_reserved_workloads"), help, self.reserved.clone());
        let help = format!("How long Workloads waited for quota, by {kind}");
        let (waited, of) = (self.reserved_after.clone(), "quota_reserved_wait_time_seconds");
        registry.register(name(of), help, waited);
        let help = format!("Workloads that were admitted, by {kind}");
        registry.register(name("admitted_workloads"), help, self.admitted.clone());
        let help = format!("How long Workloads waited to be admitted, by {kind}");
        registry.register(name("admission_wait_time_seconds"), help, self.admitted_after.clone());
        let help = format!("How long it took from the queue until all pods were ready, by {kind}");
        registry.register(name("ready_wait_time_seconds"), help, self.ready_after.clone());
        let help =
            format!("How long it took from the admission until all pods were ready, by {kind}");
        let (took, of) =
            (self.ready_after_admission.clone(), "admitted_until_ready_wait_time_seconds");
        registry.register(name(of), help, took);
        let help = format!("Evictions, by {kind}, reason and cause");
        registry.register(name("evicted_workloads"), help, self.evicted.clone());
        let help = format!("Workloads that have finished, by {kind}");
        registry.register(name("finished_workloads"), help, self.finished.clone());
    }

    pub(super) fn admitted(&self, labels: &Labels, waited: f64) {
        self.reserved.get_or_create(labels).inc();
        self.admitted.get_or_create(labels).inc();
        self.reserved_after.get_or_create(labels).observe(waited);
        self.admitted_after.get_or_create(labels).observe(waited);
    }

    pub(super) fn ready(&self, labels: &Labels, since_queued: f64, since_admitted: f64) {
        self.ready_after.get_or_create(labels).observe(since_queued);
        self.ready_after_admission.get_or_create(labels).observe(since_admitted);
    }

    pub(super) fn evicted(&self, labels: &Labels) {
        self.evicted.get_or_create(labels).inc();
    }

    pub(super) fn finished(&self, labels: &Labels) {
        self.finished.get_or_create(labels).inc();
    }
}

/// The upper ends of so many ranges that waits are counted in, in seconds.
pub(super) fn waits(count: u16) -> impl Iterator<Item = f64> {
    std::iter::once(1.0).chain(exponential_buckets(2.5, 2.0, count - 1))
}
