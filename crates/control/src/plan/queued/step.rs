//! What a plan is made of.

use jiff::Timestamp;
use lockstep_api::kueue::{Workload, WorkloadStatus};
use serde_json::Value;

use super::Waiting;
use crate::plan::{Event, Key};

/// The outcome of one planning pass over one job.
#[derive(Clone, Debug, Default, PartialEq)]
#[must_use = "a plan does nothing until a shell carries it out"]
pub struct Plan {
    /// What to do, in this order. A step that fails ends the pass: nothing after it is done.
    pub steps: Vec<Step>,
    /// When to plan again even if nothing happens until then.
    pub next: Option<Timestamp>,
    /// Why there is nothing to do; always there when there are no steps.
    pub waiting: Option<Waiting>,
}

impl Plan {
    /// A plan that only waits.
    pub fn wait(waiting: Waiting) -> Self {
        Self { waiting: Some(waiting), ..Self::default() }
    }

    /// A plan that waits, and looks again at `next`.
    pub(super) fn wait_until(waiting: Waiting, next: Timestamp) -> Self {
        Self { next: Some(next), ..Self::wait(waiting) }
    }

    /// A plan of these steps.
    pub(super) fn of(steps: impl Into<Vec<Step>>) -> Self {
        Self { steps: steps.into(), ..Self::default() }
    }
}

/// One thing for a shell to carry out. Carrying it out twice is harmless.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Create a Workload. If there is one of its name already, that one goes to
    /// [`super::QueuedJobs::workload_not_created`].
    CreateWorkload(Box<Workload>),
    /// Write the whole status of a Workload, unless it has changed since it was seen.
    WriteWorkloadStatus {
        /// The Workload.
        workload: WorkloadRef,
        /// The status.
        status: Box<WorkloadStatus>,
    },
    /// Send a merge patch to a Workload. It names uid and version: what has changed since it was
    /// seen refuses it.
    PatchWorkload {
        /// The Workload.
        workload: WorkloadRef,
        /// The patch.
        patch: Value,
    },
    /// Delete a Workload of this uid, in the background.
    DeleteWorkload {
        /// The Workload.
        workload: WorkloadRef,
    },
    /// Patch the job of this pass. The patch names uid and version.
    PatchJob {
        /// The uid of the job.
        uid: String,
        /// The patch.
        patch: Patch,
    },
    /// Take `status.startTime` away from the Job of this pass: send the merge patch to its
    /// `/status`. It names uid and version.
    ClearStartTime {
        /// The uid of the Job.
        uid: String,
        /// The patch.
        patch: Value,
    },
    /// Delete the job of this pass, of this uid, in the background.
    DeleteJob {
        /// The uid of the job.
        uid: String,
    },
    /// Record an event on the job of this pass.
    Emit(Event),
}

/// A patch of a job, in the form that its kind needs.
#[derive(Clone, Debug, PartialEq)]
pub enum Patch {
    /// A merge patch (RFC 7396).
    Merge(Value),
    /// A list of operations (RFC 6902): lists are changed in place, so that what nobody here knows
    /// of their items stays.
    Json(Value),
}

/// A Workload, as it was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkloadRef {
    /// Its namespace and name.
    pub key: Key,
    /// Its uid.
    pub uid: String,
    /// Its version.
    pub version: String,
}

impl WorkloadRef {
    /// This Workload as it is now.
    pub fn of(workload: &Workload) -> Self {
        Self {
            key: Key::of(&workload.metadata),
            uid: workload.metadata.uid.clone().unwrap_or_default(),
            version: workload.metadata.resource_version.clone().unwrap_or_default(),
        }
    }
}
