//! What the JobSet controller counts.

use std::time::Duration;

use lockstep_control::plan::Key;
use lockstep_control::plan::jobset::{CONTROLLER, Ended, Fact};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

type Set = [(&'static str, String); 2];
type Controller = [(&'static str, &'static str); 1];
type Outcome = [(&'static str, &'static str); 2];

/// The upper ends of the ranges that passes are counted in, in seconds.
const SECONDS: [f64; 15] =
    [0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0];

/// Counters of the JobSet controller.
pub struct JobSetMetrics {
    failed: Family<Set, Counter>,
    completed: Family<Set, Counter>,
    passes: Family<Outcome, Counter>,
    errors: Family<Controller, Counter>,
    took: Family<Controller, Histogram, fn() -> Histogram>,
}

impl JobSetMetrics {
    pub(super) fn new(registry: &mut Registry) -> Self {
        let histogram: fn() -> Histogram = || Histogram::new(SECONDS);
        let metrics = Self {
            failed: Family::default(),
            completed: Family::default(),
            passes: Family::default(),
            errors: Family::default(),
            took: Family::new_with_constructor(histogram),
        };
        let help = "The total number of failed JobSets";
        registry.register("jobset_failed", help, metrics.failed.clone());
        let help = "The total number of completed JobSets";
        registry.register("jobset_completed", help, metrics.completed.clone());
        let put = registry.sub_registry_with_prefix("controller_runtime_reconcile");
        // The encoder puts the suffix of counters back, also where it is the whole name.
        put.register("errors", "Passes that failed", metrics.errors.clone());
        put.register("time_seconds", "How long passes took", metrics.took.clone());
        let put = registry.sub_registry_with_prefix("controller_runtime");
        put.register("reconcile", "Passes by how they ended", metrics.passes.clone());
        drop(metrics.errors.get_or_create(&[("controller", CONTROLLER)]));
        metrics
    }

    /// Counts something about a set.
    pub fn note(&self, fact: Fact, set: &Key) {
        let labels = [("jobset_name", set.name.clone()), ("namespace", set.namespace.clone())];
        match fact {
            Fact::Completed => self.completed.get_or_create(&labels).inc(),
            Fact::Failed => self.failed.get_or_create(&labels).inc(),
        };
    }

    /// Notes a pass.
    pub fn reconciled(&self, ended: Ended, took: Duration) {
        let controller = ("controller", CONTROLLER);
        let result = match ended {
            Ended::Success => "success",
            Ended::SuccessForNow => "requeue_after",
            Ended::Error => "error",
        };
        self.passes.get_or_create(&[controller, ("result", result)]).inc();
        if ended == Ended::Error {
            self.errors.get_or_create(&[controller]).inc();
        }
        self.took.get_or_create(&[controller]).observe(took.as_secs_f64());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Metrics;

    // rule: jobset 3.18, jobset Q24
    #[test]
    fn names_and_labels_are_those_jobset_has() {
        let metrics = Metrics::new();
        let set = Key { namespace: "ns".to_owned(), name: "js".to_owned() };
        metrics.jobsets.note(Fact::Completed, &set);
        metrics.jobsets.note(Fact::Failed, &set);
        metrics.jobsets.reconciled(Ended::Error, Duration::from_millis(7));
        metrics.jobsets.reconciled(Ended::SuccessForNow, Duration::from_millis(7));
        let mut text = String::new();
        metrics.write(&mut text).unwrap();
        let wanted = [
            r#"jobset_completed_total{jobset_name="js",namespace="ns"} 1"#,
            r#"jobset_failed_total{jobset_name="js",namespace="ns"} 1"#,
            r#"controller_runtime_reconcile_errors_total{controller="jobset"} 1"#,
            r#"controller_runtime_reconcile_total{controller="jobset",result="error"} 1"#,
            r#"controller_runtime_reconcile_total{controller="jobset",result="requeue_after"} 1"#,
            r#"controller_runtime_reconcile_time_seconds_count{controller="jobset"} 2"#,
            r#"workqueue_depth{name="jobset"} 0"#,
        ];
        for line in wanted {
            assert!(text.contains(line), "{line} is not in {text}");
        }
    }
}
