//! What the spec of a Job says about the pods it has, in the words of the planner.

use k8s_openapi::api::batch::v1::{Job, JobSpec};

use crate::plan::job::seen::{Phase, Seen};
use crate::plan::jobset::in_place::has_agent;

/// What decides how a pod of the Job is counted. When any of it changes, all pods are counted anew.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rules {
    pub(crate) is_indexed: bool,
    pub(crate) completions: Option<i32>,
    /// Whether a pod has failed only when its phase says so, not already when it is deleted.
    pub(crate) replaces_failed_only: bool,
    pub(crate) limit_per_index: Option<i32>,
    pub(crate) restarts_on_failure: bool,
    /// Whether a pod that somebody deleted is replaced at once. Workers that restart in place wait
    /// for it, all of them, and no failure of theirs ends a pod.
    pub(crate) replaces_deleted_at_once: bool,
}

impl Rules {
    pub(crate) fn of(job: &Job) -> Self {
        let none = JobSpec::default();
        let spec = job.spec.as_ref().unwrap_or(&none);
        let is_indexed = spec.completion_mode.as_deref() == Some("Indexed");
        let template = spec.template.spec.as_ref();
        let completions = match (spec.completions, spec.parallelism) {
            (None, None) => Some(1),
            (completions, _) => completions,
        };
        Self {
            is_indexed,
            completions,
            replaces_failed_only: spec.pod_replacement_policy.as_deref() == Some("Failed")
                || spec.pod_failure_policy.is_some(),
            limit_per_index: spec.backoff_limit_per_index.filter(|_| is_indexed),
            restarts_on_failure: template.and_then(|pod| pod.restart_policy.as_deref())
                == Some("OnFailure"),
            replaces_deleted_at_once: has_agent(spec),
        }
    }

    /// How many indexes there are.
    pub(crate) fn index_count(&self) -> i32 {
        if self.is_indexed { self.completions.unwrap_or(0).max(0) } else { 0 }
    }

    /// The index of the pod, if it is one of the Job's.
    pub(crate) fn valid_index(&self, pod: &Seen) -> Option<i32> {
        pod.index.filter(|index| *index < self.index_count())
    }

    /// Whether the pod takes part: a pod of an Indexed Job does only with a valid index.
    pub(crate) fn takes_part(&self, pod: &Seen) -> bool {
        !self.is_indexed || self.valid_index(pod).is_some()
    }

    /// Whether the pod is to be taken for failed.
    pub(crate) fn has_failed(&self, pod: &Seen) -> bool {
        match pod.phase {
            Phase::Failed => true,
            Phase::Succeeded => false,
            Phase::Pending | Phase::Unknown | Phase::Running => {
                pod.is_deleting && !self.replaces_failed_only
            }
        }
    }
}
