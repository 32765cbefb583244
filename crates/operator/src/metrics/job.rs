//! What the Job controller counts.

use std::collections::BTreeMap;
use std::time::Duration;

use lockstep_control::plan::job::{Done, Fact, Metric};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

type Labels = Vec<(&'static str, String)>;
type SyncLabels = [(&'static str, &'static str); 3];

/// Counters of the Job controller and of the one that deletes finished Jobs.
pub struct JobMetrics {
    counters: BTreeMap<Metric, Family<Labels, Counter>>,
    durations: Family<SyncLabels, Histogram, fn() -> Histogram>,
    /// How long after it was due a finished Job was deleted, in seconds.
    pub ttl_deletion: Histogram,
}

impl JobMetrics {
    pub(super) fn new(registry: &mut Registry) -> Self {
        let ttl_deletion = Histogram::new(exponential_buckets(0.1, 2.0, 14));
        registry.register(
            "ttl_after_finished_controller_job_deletion_duration_seconds",
            "How long after it was due a finished Job was deleted",
            ttl_deletion.clone(),
        );
        let registry = registry.sub_registry_with_prefix("job_controller");
        let histogram: fn() -> Histogram = || Histogram::new(exponential_buckets(0.004, 2.0, 15));
        let durations = Family::new_with_constructor(histogram);
        registry.register(
            "job_sync_duration_seconds",
            "How long a pass over a Job took",
            durations.clone(),
        );
        let counters = Metric::ALL.map(|metric| {
            let family = Family::default();
            // The encoder puts the suffix of counters back.
            let name = metric.name().trim_end_matches("_total");
            registry.register(name, help(metric), family.clone());
            (metric, family)
        });
        Self { counters: BTreeMap::from(counters), durations, ttl_deletion }
    }

    /// Counts something.
    pub fn note(&self, fact: &Fact) {
        let names = fact.metric.labels().iter().copied();
        let labels: Labels = names.zip(fact.values.iter().cloned()).collect();
        if let Some(family) = self.counters.get(&fact.metric) {
            family.get_or_create(&labels).inc_by(fact.count);
        }
    }

    /// Notes how long a pass took.
    pub fn synced(&self, done: &Done, took: Duration) {
        let labels = [
            ("completion_mode", done.completion_mode),
            ("result", done.result),
            ("action", done.action),
        ];
        self.durations.get_or_create(&labels).observe(took.as_secs_f64());
    }
}

fn help(metric: Metric) -> &'static str {
    match metric {
        Metric::Syncs => "Passes over Jobs",
        Metric::JobsFinished => "Jobs that have finished",
        Metric::PodsFinished => "Pods that were counted",
        Metric::FailuresHandledByPolicy => "Failed pods that a rule of a failure policy decided on",
        Metric::TrackedTerminatedPods => "Ended pods that got or lost the tracking finalizer",
        Metric::IndexesFinished => "Indexes that have finished",
        Metric::PodsCreated => "Pods that were created, or could not be",
        Metric::ExternalJobs => "Jobs that another controller manages",
        Metric::StaleSyncsSkipped => "Passes that waited for the watch to catch up",
    }
}
