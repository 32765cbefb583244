//! What can be set about the Job controller.

use std::time::Duration;

/// The value of `spec.managedBy` that means the controller every cluster has.
pub const BUILT_IN: &str = "kubernetes.io/job-controller";

/// The knobs of the Job controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Which Jobs are ours: those whose `spec.managedBy` is this. A Job that says nothing says
    /// [`BUILT_IN`].
    pub controller: String,
    /// How long events of one Job are gathered before a pass over it.
    pub batch_period: Duration,
    /// First delay after a pass that failed.
    pub api_backoff_base: Duration,
    /// Longest delay after a pass that failed.
    pub api_backoff_max: Duration,
    /// First delay before a failed pod is replaced.
    pub pod_backoff_base: Duration,
    /// Longest delay before a failed pod is replaced.
    pub pod_backoff_max: Duration,
    /// How many finished pods one status write may list.
    pub uncounted_max: usize,
    /// How many pods one pass may create, or delete because they are too many.
    pub pods_per_pass_max: usize,
    /// Whether `spec.successPolicy` has an effect (the gate `JobSuccessPolicy`).
    pub job_success_policy: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            controller: BUILT_IN.to_owned(),
            batch_period: Duration::ZERO,
            api_backoff_base: Duration::from_secs(1),
            api_backoff_max: Duration::from_secs(60),
            pod_backoff_base: Duration::from_secs(10),
            pod_backoff_max: Duration::from_secs(600),
            uncounted_max: 500,
            pods_per_pass_max: 500,
            job_success_policy: true,
        }
    }
}
