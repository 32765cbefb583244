//! Why a job is not moving.

use std::fmt;

use jiff::Timestamp;

use super::JobKey;
use crate::plan::{Event, Key};

/// Why there is nothing to do for a job right now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// Queues have no say in it: it names none.
    NotQueued,
    /// Queues have no say in its namespace.
    NamespaceNotManaged,
    /// Its kind is not queued.
    KindNotManaged,
    /// Its namespace is not known yet.
    NamespaceUnknown(String),
    /// The object that owns it is not known yet.
    OwnerUnknown(JobKey),
    /// It has more ancestors than anybody looks at, or is its own.
    NestingTooDeep,
    /// It belongs to another job, whose workload counts.
    PartOf(JobKey),
    /// It has changed since it was seen, and the news has not come yet.
    CatchingUp,
    /// It is gone or being deleted, and nothing of it is held back here.
    BeingDeleted,
    /// It has ended, and so has its workload.
    Finished,
    /// Its workload has ended though it has not, for this reason.
    WorkloadFinished {
        /// The reason of the condition `Finished`.
        reason: String,
    },
    /// A WorkloadPriorityClass that it names is missing.
    PriorityClassMissing(String),
    /// A PriorityClass that its pods name is missing: nobody could create them.
    PodClassMissing(String),
    /// A ResourceFlavor that it was given is missing.
    FlavorMissing(String),
    /// The Workload it is to use is missing, or is another's.
    PrebuiltMissing(Key),
    /// It is to stop, and pods of it still run.
    PodsActive,
    /// It waits in its queue.
    Pending {
        /// The LocalQueue.
        queue: String,
    },
    /// Its workload was deactivated.
    Deactivated {
        /// When it is deleted for that, if it is.
        deleted_at: Option<Timestamp>,
    },
    /// It runs, and pods of it are not ready.
    PodsNotReady,
    /// It runs.
    Running,
}

/// Something whose coming lets a job go on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Need {
    Owner(JobKey),
    Flavor(String),
    PodClass(String),
    Workload(Key),
}

impl Waiting {
    /// What it waits for, if nothing else leads from that to the job.
    pub(super) fn need(&self) -> Option<Need> {
        match self {
            Self::OwnerUnknown(owner) => Some(Need::Owner(owner.clone())),
            Self::FlavorMissing(name) => Some(Need::Flavor(name.clone())),
            Self::PodClassMissing(name) => Some(Need::PodClass(name.clone())),
            Self::PrebuiltMissing(key) => Some(Need::Workload(key.clone())),
            Self::NotQueued
            | Self::NamespaceNotManaged
            | Self::KindNotManaged
            | Self::NamespaceUnknown(_)
            | Self::PriorityClassMissing(_)
            | Self::NestingTooDeep
            | Self::PartOf(_)
            | Self::CatchingUp
            | Self::BeingDeleted
            | Self::Finished
            | Self::WorkloadFinished { .. }
            | Self::PodsActive
            | Self::Pending { .. }
            | Self::Deactivated { .. }
            | Self::PodsNotReady
            | Self::Running => None,
        }
    }

    /// What users are told when a job begins to wait for this.
    pub(super) fn event(&self) -> Option<Event> {
        if let Self::PriorityClassMissing(name) = self {
            let message = format!("workloadpriorityclasses.kueue.x-k8s.io {name:?} not found");
            return Some(Event::warning("WorkloadPriorityClassNotFound", message));
        }
        if let Self::PodClassMissing(name) = self {
            let message = format!("priorityclasses.scheduling.k8s.io {name:?} not found");
            return Some(Event::warning("PriorityClassNotFound", message));
        }
        let too_deep = "Terminated search for Kueue-managed Job because ancestor depth exceeded \
                        limit of 10";
        (*self == Self::NestingTooDeep).then(|| Event::warning("JobNestingTooDeep", too_deep))
    }
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotQueued => f.write_str("the job names no queue"),
            Self::NamespaceNotManaged => f.write_str("jobs of this namespace are not queued"),
            Self::KindNotManaged => f.write_str("jobs of this kind are not queued"),
            Self::NamespaceUnknown(name) => write!(f, "namespace {name} is not known yet"),
            Self::OwnerUnknown(owner) => write!(f, "the owner, {owner}, is not known yet"),
            Self::NestingTooDeep => f.write_str("the job has too many ancestors"),
            Self::PartOf(job) => write!(f, "the job is a part of {job}"),
            Self::CatchingUp => f.write_str("the job has changed: waiting for the news of it"),
            Self::BeingDeleted => f.write_str("the job is being deleted"),
            Self::Finished => f.write_str("the job has ended"),
            Self::WorkloadFinished { reason } => write!(f, "the workload has ended: {reason}"),
            Self::PriorityClassMissing(name) => {
                write!(f, "there is no WorkloadPriorityClass {name}")
            }
            Self::PodClassMissing(name) => write!(f, "there is no PriorityClass {name}"),
            Self::FlavorMissing(name) => write!(f, "there is no ResourceFlavor {name}"),
            Self::PrebuiltMissing(key) => write!(f, "there is no Workload {key} to use"),
            Self::PodsActive => f.write_str("pods of the job still run"),
            Self::Pending { queue } => write!(f, "the job waits in queue {queue}"),
            Self::Deactivated { deleted_at: None } => f.write_str("the workload is deactivated"),
            Self::Deactivated { deleted_at: Some(at) } => {
                write!(f, "the workload is deactivated; the job is deleted at {at}")
            }
            Self::PodsNotReady => f.write_str("not all pods of the job are ready"),
            Self::Running => f.write_str("the job runs"),
        }
    }
}
