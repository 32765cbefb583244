//! What passes over one workload need to know of its queues.

use lockstep_api::kueue::WaitForPodsReady;

/// What the queues of a workload are like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Around {
    /// Its LocalQueue.
    pub local_queue: LocalQueueAround,
    /// The ClusterQueue whose quota it holds, or that it waits for; none if the LocalQueue is
    /// missing.
    pub cluster_queue: Option<QueueAround>,
    /// Whether its admission is being written.
    pub is_admitting: bool,
    /// Whether what `QuotaReserved` says is what the scheduler finds too.
    pub is_found: bool,
    /// Whether and how its pods are waited for.
    pub wait: Option<WaitForPodsReady>,
}

impl Around {
    /// Whether somebody has stopped its LocalQueue; nobody has stopped one that is missing.
    pub fn local_stop(&self) -> Stop {
        match self.local_queue {
            LocalQueueAround::There { stop, .. } => stop,
            LocalQueueAround::Missing => Stop::No,
        }
    }
}

/// What the LocalQueue of a workload is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LocalQueueAround {
    /// There is none.
    Missing,
    /// There is one.
    There {
        /// Whether somebody has stopped it.
        stop: Stop,
        /// Whether it is being deleted.
        is_terminating: bool,
        /// Whether workloads may be submitted.
        is_active: bool,
    },
}

/// What the ClusterQueue of a workload is like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueAround {
    /// Its name.
    pub name: String,
    /// Whether it does not exist.
    pub is_missing: bool,
    /// Whether somebody has stopped it.
    pub stop: Stop,
    /// Whether it is being deleted.
    pub is_terminating: bool,
    /// Whether it can admit anybody.
    pub is_active: bool,
}

/// Whether somebody has stopped a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stop {
    /// Nobody has.
    #[default]
    No,
    /// Nobody new is admitted.
    Hold,
    /// Nor does anybody stay.
    HoldAndDrain,
}

impl Stop {
    pub(super) fn of(policy: Option<&str>) -> Self {
        match policy {
            None | Some("" | "None") => Self::No,
            Some("HoldAndDrain") => Self::HoldAndDrain,
            // What is not known holds: nobody is thrown out by mistake.
            Some(_) => Self::Hold,
        }
    }
}
