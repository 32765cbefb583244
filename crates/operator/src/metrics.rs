//! What is counted, under the names Kubernetes has for it.

mod queue;

use std::fmt;

use prometheus_client::encoding::text::encode_registry;
use prometheus_client::registry::Registry;

pub use queue::QueueMetrics;

/// All counters of the controllers of one process.
pub struct Metrics {
    registry: Registry,
    /// The queue of Jobs.
    pub job_queue: QueueMetrics,
    /// The queue of pods that are to lose the finalizer of a Job that is gone.
    pub orphan_queue: QueueMetrics,
    /// The queue of finished Jobs that are to be deleted after a while.
    pub ttl_queue: QueueMetrics,
}

impl Metrics {
    /// Counters at zero.
    pub fn new() -> Self {
        let mut registry = Registry::default();
        let names = ["job", "job_orphan_pod", "ttl_jobs_to_delete"];
        let [job_queue, orphan_queue, ttl_queue] = queue::register(&mut registry, names);
        Self { registry, job_queue, orphan_queue, ttl_queue }
    }

    /// Writes everything as Prometheus reads it, without the line that ends it.
    ///
    /// # Errors
    /// When `into` fails.
    pub fn write(&self, into: &mut String) -> fmt::Result {
        for queue in [&self.job_queue, &self.orphan_queue, &self.ttl_queue] {
            queue.refresh();
        }
        encode_registry(into, &self.registry)
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_kubernetes_has() {
        let metrics = Metrics::new();
        let mut text = String::new();
        metrics.write(&mut text).unwrap();
        let names: Vec<&str> =
            text.lines().filter_map(|line| line.strip_prefix("# TYPE ")).collect();
        let wanted = [
            "workqueue_depth gauge",
            "workqueue_adds counter",
            "workqueue_queue_duration_seconds histogram",
            "workqueue_work_duration_seconds histogram",
            "workqueue_unfinished_work_seconds gauge",
            "workqueue_longest_running_processor_seconds gauge",
            "workqueue_retries counter",
        ];
        for name in wanted {
            assert!(names.contains(&name), "{name} is not among {names:#?}");
        }
        assert!(text.contains(r#"workqueue_depth{name="job"} 0"#), "{text}");
    }
}
