//! What the configuration file means for the parts of the queue controller.

use lockstep_api::selector::LabelSelector;
use lockstep_control::plan::{queue, queued, workload};

use super::QueueOptions;
use crate::config::{self, Queueing};

impl QueueOptions {
    /// The same, as the configuration says.
    #[must_use]
    pub fn configured(mut self, said: &Queueing) -> Self {
        self.settings = queue::Settings {
            wait: said.wait_for_pods_ready.clone(),
            ignore_undeclared: said.resources.ignore_undeclared,
            exclude_prefixes: said.resources.exclude_prefixes.clone(),
            transformations: said.resources.transformations.iter().map(transformation).collect(),
            fair_sharing: said.fair_sharing,
            admission_fair_sharing: said.admission_fair_sharing,
            ..self.settings
        };
        self.jobs = queued::Settings {
            wait_for_pods_ready: said.wait_for_pods_ready.clone(),
            manage_without_queue_name: said.manage_jobs_without_queue_name,
            // It was checked when it was read.
            managed_namespaces: LabelSelector::from_meta(Some(&said.managed_namespaces))
                .unwrap_or_else(|_| LabelSelector::nothing()),
            jobs: said.integrations.job,
            jobsets: said.integrations.jobset,
            label_keys_to_copy: said.label_keys_to_copy.clone(),
            keep_deactivated: said.retention.after_deactivated,
            ..self.jobs
        };
        self.workloads =
            workload::Options { keep_finished: said.retention.after_finished, ..self.workloads };
        self.has_resource_metrics = said.has_resource_metrics;
        self
    }
}

fn transformation(
    (input, said): (&String, &config::kueue::Transformation),
) -> queue::Transformation {
    let outputs = said.outputs.iter();
    queue::Transformation {
        input: input.clone(),
        retains_input: said.retains_input,
        multiply_by: said.multiply_by.clone(),
        outputs: outputs.map(|(name, amount)| (name.clone(), amount.clone())).collect(),
    }
}
