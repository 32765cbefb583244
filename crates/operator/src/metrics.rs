//! What is counted, under the names Kubernetes has for it.

mod job;
mod jobset;
mod kueue;
mod process;
mod queue;
mod request;
mod restart;

use std::fmt;

use prometheus_client::encoding::text::encode_registry;
use prometheus_client::registry::Registry;

pub use job::JobMetrics;
pub use jobset::JobSetMetrics;
pub use kueue::KueueMetrics;
pub use process::Process;
pub use queue::QueueMetrics;
pub use request::RequestMetrics;
pub use restart::RestartMetrics;

/// All counters of the controllers of one process.
pub struct Metrics {
    registry: Registry,
    /// What the Job controller counts.
    pub jobs: JobMetrics,
    /// What the JobSet controller counts.
    pub jobsets: JobSetMetrics,
    /// What the queue controller counts.
    pub kueue: KueueMetrics,
    /// Restarts in place.
    pub restarts: RestartMetrics,
    /// What is sent to the API.
    pub requests: RequestMetrics,
    /// The queue of Workloads.
    pub workload_queue: QueueMetrics,
    /// The queue of jobs that have Workloads.
    pub queued_queue: QueueMetrics,
    /// The queue of JobSets.
    pub jobset_queue: QueueMetrics,
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
        let jobs = JobMetrics::new(&mut registry);
        let jobsets = JobSetMetrics::new(&mut registry);
        let requests = RequestMetrics::new(&mut registry);
        let restarts = RestartMetrics::new(&mut registry);
        let kueue = KueueMetrics::new(&mut registry);
        let names = [
            "job",
            "job_orphan_pod",
            "ttl_jobs_to_delete",
            "jobset",
            "workload_controller",
            "queued_jobs",
        ];
        let [job_queue, orphan_queue, ttl_queue, jobset_queue, workload_queue, queued_queue] =
            queue::register(&mut registry, names);
        Self {
            registry,
            jobs,
            jobsets,
            kueue,
            workload_queue,
            queued_queue,
            restarts,
            requests,
            jobset_queue,
            job_queue,
            orphan_queue,
            ttl_queue,
        }
    }

    /// Writes everything as Prometheus reads it, without the line that ends it.
    ///
    /// # Errors
    /// When `into` fails.
    pub fn write(&self, into: &mut String) -> fmt::Result {
        let queues = [
            &self.job_queue,
            &self.orphan_queue,
            &self.ttl_queue,
            &self.jobset_queue,
            &self.workload_queue,
            &self.queued_queue,
        ];
        for queue in queues {
            queue.refresh();
        }
        let mut text = String::new();
        encode_registry(&mut text, &self.registry)?;
        // The encoder spells it as Rust does.
        into.push_str(&text.replace(" inf\n", " +Inf\n"));
        Ok(())
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
    use std::time::Duration;

    use lockstep_control::plan::job::{Done, Fact, Metric};

    use super::*;

    #[test]
    fn names_are_those_kubernetes_has() {
        let metrics = Metrics::new();
        for metric in Metric::ALL {
            let values = vec![String::new(); metric.labels().len()];
            metrics.jobs.note(&Fact { metric, values, count: 1 });
        }
        let (result, action) = ("success", "tracking");
        let done = Done { completion_mode: "Indexed", result, action };
        metrics.jobs.synced(&done, Duration::from_secs(1));
        let mut text = String::new();
        metrics.write(&mut text).unwrap();
        let wanted = [
            "job_controller_job_sync_duration_seconds histogram",
            "job_controller_job_syncs counter",
            "job_controller_jobs_finished counter",
            "job_controller_job_pods_finished counter",
            "job_controller_pod_failures_handled_by_failure_policy counter",
            "job_controller_terminated_pods_tracking_finalizer counter",
            "job_controller_job_finished_indexes counter",
            "job_controller_job_pods_creation counter",
            "job_controller_jobs_by_external_controller counter",
            "job_controller_stale_sync_skips counter",
            "ttl_after_finished_controller_job_deletion_duration_seconds histogram",
            "workqueue_depth gauge",
            "workqueue_adds counter",
            "workqueue_queue_duration_seconds histogram",
            "workqueue_work_duration_seconds histogram",
            "workqueue_unfinished_work_seconds gauge",
            "workqueue_longest_running_processor_seconds gauge",
            "workqueue_retries counter",
        ];
        for name in wanted {
            assert!(text.contains(&format!("# TYPE {name}\n")), "{name} is not in {text}");
        }
        assert!(text.contains(r#"workqueue_depth{name="job"} 0"#), "{text}");
        let finished = r#"job_controller_job_finished_indexes_total{status="",backoffLimit=""} 1"#;
        assert!(text.contains(finished), "{text}");
    }
}
