//! Events on the Job, with the reasons and messages clients match on.

use std::fmt::Display;

use crate::plan::Event;

/// The component that reports events of Jobs.
pub const COMPONENT: &str = "job-controller";

impl Event {
    pub(crate) fn pod_created(name: &str) -> Self {
        Self::normal("SuccessfulCreate", format!("Created pod: {name}"))
    }

    pub(crate) fn pod_not_created(why: &impl Display) -> Self {
        Self::warning("FailedCreate", format!("Error creating: {why}"))
    }

    pub(crate) fn pod_deleted(name: &str) -> Self {
        Self::normal("SuccessfulDelete", format!("Deleted pod: {name}"))
    }

    pub(crate) fn pod_not_deleted(why: &impl Display) -> Self {
        Self::warning("FailedDelete", format!("Error deleting: {why}"))
    }

    /// Upstream only logs this, and users wonder for hours why a pod stays.
    pub(crate) fn pod_not_patched(name: &str, why: &impl Display) -> Self {
        Self::warning("FailedPatch", format!("Error patching pod {name}: {why}"))
    }

    pub(crate) fn suspended() -> Self {
        Self::normal("Suspended", "Job suspended")
    }

    pub(crate) fn resumed() -> Self {
        Self::normal("Resumed", "Job resumed")
    }

    pub(crate) fn completed() -> Self {
        Self::normal("Completed", "Job completed")
    }

    pub(crate) fn too_many_succeeded() -> Self {
        let message = "Too many succeeded pods running after completion count reached";
        Self::warning("TooManySucceededPods", message)
    }

    pub(crate) fn unknown_completion_mode() -> Self {
        let message = "Skipped Job sync because completion mode is unknown";
        Self::warning("UnknownCompletionMode", message)
    }
}
