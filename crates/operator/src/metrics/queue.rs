//! What is counted about work queues.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

type Named = [(&'static str, &'static str); 1];
type Seconds = Gauge<f64, AtomicU64>;

/// One queue.
pub struct QueueMetrics {
    depth: Gauge,
    adds: Counter,
    waited: Histogram,
    worked: Histogram,
    unfinished: Seconds,
    longest: Seconds,
    retries: Counter,
    running: Mutex<Running>,
}

#[derive(Default)]
struct Running {
    next: u64,
    since: BTreeMap<u64, Instant>,
}

impl QueueMetrics {
    /// Notes how many keys wait for a pass.
    pub fn depth(&self, keys: usize) {
        self.depth.set(i64::try_from(keys).unwrap_or(i64::MAX));
    }

    /// Notes that a key has to be tried again.
    pub fn retried(&self) {
        self.retries.inc();
    }

    /// Notes that a pass begins after a key waited so long; tell its end with
    /// [`QueueMetrics::finished`].
    pub fn started(&self, waited_seconds: f64) -> u64 {
        self.adds.inc();
        self.waited.observe(waited_seconds);
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let ticket = running.next;
        running.next += 1;
        running.since.insert(ticket, Instant::now());
        ticket
    }

    /// Notes that a pass has ended.
    pub fn finished(&self, ticket: u64) {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(since) = running.since.remove(&ticket) {
            self.worked.observe(since.elapsed().as_secs_f64());
        }
    }

    /// Brings up to date what grows by itself.
    pub(super) fn refresh(&self) {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let ages = running.since.values().map(|since| since.elapsed().as_secs_f64());
        let (sum, longest) =
            ages.fold((0.0, 0.0_f64), |(sum, most), age| (sum + age, most.max(age)));
        self.unfinished.set(sum);
        self.longest.set(longest);
    }
}

/// Makes the counters of the queues of these names.
pub(super) fn register<const N: usize>(
    registry: &mut Registry,
    names: [&'static str; N],
) -> [QueueMetrics; N] {
    let histogram: fn() -> Histogram = || Histogram::new(exponential_buckets(1e-8, 10.0, 10));
    let depth = Family::<Named, Gauge>::default();
    let adds = Family::<Named, Counter>::default();
    let waited = Family::<Named, Histogram, _>::new_with_constructor(histogram);
    let worked = Family::<Named, Histogram, _>::new_with_constructor(histogram);
    let unfinished = Family::<Named, Seconds>::default();
    let longest = Family::<Named, Seconds>::default();
    let retries = Family::<Named, Counter>::default();
    let put = registry.sub_registry_with_prefix("workqueue");
    put.register("depth", "Keys that wait for a pass", depth.clone());
    put.register("adds", "Keys that were added", adds.clone());
    put.register("queue_duration_seconds", "How long keys waited", waited.clone());
    put.register("work_duration_seconds", "How long passes took", worked.clone());
    put.register("unfinished_work_seconds", "Age of all passes under way", unfinished.clone());
    put.register(
        "longest_running_processor_seconds",
        "Age of the oldest pass under way",
        longest.clone(),
    );
    put.register("retries", "Keys that had to be tried again", retries.clone());
    names.map(|name| {
        let name = [("name", name)];
        QueueMetrics {
            depth: depth.get_or_create(&name).clone(),
            adds: adds.get_or_create(&name).clone(),
            waited: waited.get_or_create(&name).clone(),
            worked: worked.get_or_create(&name).clone(),
            unfinished: unfinished.get_or_create(&name).clone(),
            longest: longest.get_or_create(&name).clone(),
            retries: retries.get_or_create(&name).clone(),
            running: Mutex::default(),
        }
    })
}
