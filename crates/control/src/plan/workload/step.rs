//! What a plan for a workload is made of, and how it is put together.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use lockstep_api::kueue::{Workload, WorkloadStatus};
use lockstep_api::reasons::kueue::{evicted, workload as conditions};

use crate::engine::after;
use crate::plan::Event;

/// The outcome of one planning pass over one workload.
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

/// One thing for a shell to carry out. Carrying it out twice is harmless.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Write the status, if the workload still has the version it was made for.
    WriteStatus(Box<WorkloadStatus>),
    /// Set `spec.active` to false, if the workload still has the version it was decided on.
    Deactivate,
    /// Set `spec.priority`, if the workload still has the version it was decided on.
    SetPriority(i32),
    /// Take our finalizer away, so that the deletion goes on.
    RemoveFinalizer,
    /// Delete the workload.
    Delete,
    /// Record an event on the workload.
    Emit(Event),
    /// Count something.
    Note(Fact),
}

impl Plan {
    /// Whether it evicts the workload because its pods are late.
    pub(super) fn evicts_late(&self) -> bool {
        let is_late = |step: &Step| {
            matches!(step, Step::Note(Fact::Evicted { reason, .. })
                if reason == evicted::PODS_READY_TIMEOUT)
        };
        self.steps.iter().any(is_late)
    }
}

impl Step {
    /// Whether it should change what is seen.
    pub fn is_change(&self) -> bool {
        !matches!(self, Self::Emit(_) | Self::Note(_))
    }
}

/// Something to count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fact {
    /// The workload was evicted.
    Evicted {
        /// The ClusterQueue it held quota of.
        cluster_queue: String,
        /// The reason, without its cause.
        reason: String,
        /// What was behind it.
        cause: String,
    },
}

/// Why there is nothing to do for a workload right now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// It is being deleted.
    BeingDeleted,
    /// It has ended.
    Finished,
    /// It is not active.
    Inactive,
    /// It is not tried before a certain time.
    BackOff {
        /// Then.
        until: Timestamp,
    },
    /// It waits to be admitted.
    Pending,
    /// It is to stop, and its job has not yet.
    Evicted,
    /// Its pods are late, as those of another that is on its way out: what that leaves may help.
    OthersLeave,
    /// It runs, or starts.
    Running,
    /// It has changed since it was seen, and the news has not come yet.
    CatchingUp,
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BeingDeleted => f.write_str("the workload is being deleted"),
            Self::Finished => f.write_str("the workload has finished"),
            Self::Inactive => f.write_str("the workload is not active"),
            Self::BackOff { until } => write!(f, "the workload is tried again at {until}"),
            Self::Pending => f.write_str("the workload waits to be admitted"),
            Self::Evicted => f.write_str("the workload is evicted: its job has to stop first"),
            Self::OthersLeave => {
                f.write_str("the pods are not ready in time, as those of another that leaves first")
            }
            Self::Running => f.write_str("the workload is admitted"),
            Self::CatchingUp => f.write_str("the workload has changed: waiting for the news of it"),
        }
    }
}

/// The controller that reports events of workloads.
pub const CONTROLLER: &str = "kueue-workload-controller";

/// A plan in the making: the workload as it was seen, and its status as it should be.
pub(super) struct Draft<'a> {
    pub(super) workload: &'a Workload,
    pub(super) status: WorkloadStatus,
    pub(super) now: Timestamp,
    steps: Vec<Step>,
    told: Vec<Step>,
    next: Option<Timestamp>,
}

impl<'a> Draft<'a> {
    pub(super) fn new(workload: &'a Workload, now: Timestamp) -> Self {
        let status = workload.status.clone().unwrap_or_default();
        Self { workload, status, now, steps: Vec::new(), told: Vec::new(), next: None }
    }

    pub(super) fn is_active(&self) -> bool {
        self.workload.spec.active != Some(false)
    }

    pub(super) fn is_true(&self, kind: &str) -> bool {
        self.status.is_true(kind)
    }

    /// Whether the status is not what was seen any more.
    pub(super) fn has_changed(&self) -> bool {
        match &self.workload.status {
            Some(seen) => *seen != self.status,
            None => self.status != WorkloadStatus::default(),
        }
    }

    /// Says something of the workload; whether that is news.
    pub(super) fn say(
        &mut self,
        (kind, is_true): (&str, bool),
        reason: &str,
        message: &str,
    ) -> bool {
        let generation = self.workload.metadata.generation;
        self.status.say((kind, is_true), (reason, message), generation, self.now)
    }

    /// Tells users, once the status is written.
    pub(super) fn tell(&mut self, event: Event) {
        self.told.push(Step::Emit(event));
    }

    pub(super) fn note(&mut self, fact: Fact) {
        self.told.push(Step::Note(fact));
    }

    /// Plans again then, at the latest.
    pub(super) fn wake_at(&mut self, at: Timestamp) {
        self.next = Some(self.next.map_or(at, |next| next.min(at)));
    }

    pub(super) fn deactivate(&mut self) {
        self.steps.push(Step::Deactivate);
    }

    /// Gives a workload the priority of its class; whether it has another.
    pub(super) fn follow_class(&mut self, value: Option<i32>) -> bool {
        let wanted = value.filter(|value| self.workload.spec.priority != Some(*value));
        self.steps.extend(wanted.map(Step::SetPriority));
        wanted.is_some()
    }

    /// Lets a deletion go on.
    pub(super) fn let_go(&mut self) {
        let finalizers = self.workload.metadata.finalizers.iter().flatten();
        let mut ours =
            finalizers.filter(|name| *name == lockstep_api::labels::kueue::RESOURCE_IN_USE);
        if ours.next().is_some() {
            self.steps.push(Step::RemoveFinalizer);
        }
    }

    /// Deletes a workload that has finished and was kept for long enough.
    pub(super) fn expire(&mut self, keep: Option<Duration>) {
        let Some(keep) = keep else { return };
        let Some(finished) = self.status.condition(conditions::FINISHED) else { return };
        let ends = after(finished.last_transition_time.0, keep);
        if ends <= self.now {
            self.steps.push(Step::Delete);
        } else {
            self.wake_at(ends);
        }
    }

    /// The plan. What is told is told after what it is about was written.
    pub(super) fn plan(mut self, waiting: Waiting) -> Plan {
        if self.has_changed() {
            self.steps.push(Step::WriteStatus(Box::new(self.status)));
        }
        self.steps.append(&mut self.told);
        Plan { steps: self.steps, next: self.next, waiting: Some(waiting) }
    }
}
