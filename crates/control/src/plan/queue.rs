//! Which workloads may run: quota, who is tried in which order, who gives way to whom, and why the
//! others wait.
//!
//! The driver, [`Queues`], is told what the watches bring and decides in cycles. It keeps sums
//! rather than snapshots: what each ClusterQueue and each cohort uses, who waits in which order,
//! and which of those that wait are alike. A cycle looks at the heads of the queues that something
//! has changed for, and goes on until nothing more fits; those that are like one that did not fit
//! are not looked at again before something changes.
//!
//! It knows nothing of jobs and pods, and nothing of timeouts: it admits, it preempts, and it says
//! why it does neither. Lending limits, cohorts of cohorts, fair sharing, admission checks and
//! topologies are not done yet: a ClusterQueue that uses them is inactive and says so.

mod activity;
mod additions;
mod agenda;
mod amount;
mod around;
mod assign;
mod conditions;
mod cycle;
mod decide;
mod entry;
mod finalize;
mod flavors;
mod ledger;
mod pending;
mod pool;
mod preempt;
mod queues;
mod request;
mod stand;
mod status;
#[cfg(test)]
mod tests;
mod wait;
mod why;

use lockstep_api::kueue::{ClusterQueueStatus, LocalQueueStatus, WaitForPodsReady, WorkloadStatus};

use super::{Event, Key};

pub use amount::{FlavorResource, quantity_text};
pub use around::{Around, LocalQueueAround, QueueAround, Stop};
pub(in crate::plan) use conditions::restarted;
pub use queues::Queues;
pub use why::{Fault, Holders, Shortage, Why};

/// What the configuration file says about queueing.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Whether and how pods are waited for, where queues and workloads say nothing else.
    pub wait: Option<WaitForPodsReady>,
    /// Whether resources that a ClusterQueue does not cover are overlooked rather than refused.
    pub ignore_undeclared: bool,
    /// Resources whose names begin so are overlooked.
    pub exclude_prefixes: Vec<String>,
    /// Resources that are counted as others.
    pub transformations: Vec<Transformation>,
    /// Whether those who share a cohort are to have shares by weight, which is not done yet: a
    /// ClusterQueue with a weight is inactive then.
    pub fair_sharing: bool,
    /// Whether LocalQueues are to have shares of what they have used, which is not done yet: a
    /// ClusterQueue that asks for it is inactive then.
    pub admission_fair_sharing: bool,
    /// How many decisions one cycle makes at the most.
    pub decisions_max: usize,
    /// After how many workloads that it has looked at a cycle ends, so that news are heard.
    pub visits_max: usize,
}

impl Default for Settings {
    /// What holds when nothing is said, as of v1beta2.
    fn default() -> Self {
        Self {
            wait: Some(WaitForPodsReady::default()),
            ignore_undeclared: false,
            exclude_prefixes: Vec::new(),
            transformations: Vec::new(),
            fair_sharing: false,
            admission_fair_sharing: false,
            decisions_max: 1_000,
            visits_max: 1_000,
        }
    }
}

/// A resource that is counted as others.
#[derive(Clone, Debug, PartialEq)]
pub struct Transformation {
    /// The resource pods ask for.
    pub input: String,
    /// Whether the resource itself is counted too.
    pub retains_input: bool,
    /// A resource by whose amount the outputs are multiplied.
    pub multiply_by: Option<String>,
    /// How much of which resource is counted for one of the input, as quantities.
    pub outputs: Vec<(String, String)>,
}

/// What one admission cycle came to.
#[derive(Clone, Debug, Default)]
#[must_use = "a cycle does nothing until a shell carries its decisions out"]
pub struct Cycle {
    /// What to write, in order. A later decision about a workload takes the place of an earlier one
    /// that has not been sent yet.
    pub decisions: Vec<Decision>,
    /// How many workloads were looked at.
    pub visited: usize,
}

/// One thing to write. Each is answered with [`Queues::written`] or [`Queues::refused`].
#[derive(Clone, Debug, PartialEq)]
pub enum Decision {
    /// The workload is given what it asks for.
    Admit(Write),
    /// The workload gives way to another.
    Preempt(Write),
    /// The workload waits, and is told why.
    Pend(Write),
}

impl Decision {
    /// What to write.
    pub fn write(&self) -> &Write {
        match self {
            Self::Admit(write) | Self::Preempt(write) | Self::Pend(write) => write,
        }
    }
}

/// A status to write, for the version of the workload it was made of.
#[derive(Clone, Debug, PartialEq)]
pub struct Write {
    /// Which decision.
    pub id: u64,
    /// Which workload.
    pub key: Key,
    /// Its uid.
    pub uid: String,
    /// The version it was made of.
    pub version: String,
    /// The whole new status.
    pub status: WorkloadStatus,
    /// What to tell about it, once it is written.
    pub events: Vec<Event>,
    /// What to tell about other workloads then.
    pub events_elsewhere: Vec<(Key, Event)>,
    /// For the metrics.
    pub fact: Fact,
}

/// What happened, for the metrics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fact {
    /// A workload was admitted to a ClusterQueue after so many seconds.
    Admitted {
        /// The ClusterQueue.
        cluster_queue: String,
        /// For how long it waited.
        waited_seconds: i64,
    },
    /// A workload was preempted.
    Preempted {
        /// The ClusterQueue of the one that it gave way to.
        preemptor_queue: String,
        /// Its own ClusterQueue.
        cluster_queue: String,
        /// The reason of the condition `Preempted`.
        reason: &'static str,
    },
    /// A workload waits.
    Pending {
        /// The reason of our own condition.
        reason: &'static str,
    },
}

/// The status of a queue to write, for the version of the queue it was made of.
#[derive(Clone, Debug, PartialEq)]
pub enum StatusOfQueue {
    /// Of a ClusterQueue.
    ClusterQueue {
        /// Its name.
        name: String,
        /// Its uid.
        uid: String,
        /// The version it was made of.
        version: String,
        /// The whole new status.
        status: ClusterQueueStatus,
    },
    /// Of a LocalQueue.
    LocalQueue {
        /// Which.
        key: Key,
        /// Its uid.
        uid: String,
        /// The version it was made of.
        version: String,
        /// The whole new status.
        status: LocalQueueStatus,
    },
}

/// The finalizers an object is to have, for the version of it they were made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finalizers {
    /// Which object.
    pub of: Owner,
    /// Its uid.
    pub uid: String,
    /// The version they were made of.
    pub version: String,
    /// All of them.
    pub finalizers: Vec<String>,
}

/// Who has finalizers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Owner {
    /// A ClusterQueue by name.
    ClusterQueue(String),
    /// A ResourceFlavor by name.
    ResourceFlavor(String),
}
