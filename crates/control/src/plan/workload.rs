//! Workloads: what becomes of one between admissions. How long its pods may take, when it is
//! evicted, when it may be tried again, when it has had its chances.
//!
//! [`plan`] looks at one Workload and at [`Around`], what its queues are like. Who is admitted is
//! decided in [`super::queue`]; what a job does about it in [`super::queued`]. The three speak to
//! each other through the conditions of the Workload alone, so each may be restarted, or run twice
//! for a moment, without the others noticing.

mod classes;
mod company;
mod deactivate;
mod driver;
mod evict;
mod milestone;
mod queues;
mod requeue;
mod step;
#[cfg(test)]
mod tests;
mod timeouts;

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use lockstep_api::kueue::Workload;
use lockstep_api::reasons::kueue::workload as conditions;

pub use company::Company;
pub use driver::{Ended, Workloads};
pub use milestone::{Milestone, milestones};
pub use step::{CONTROLLER, Fact, Plan, Step, Waiting};

use super::queue::Around;
use step::Draft;

/// What can be set about workloads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// How long workloads are kept that have finished, those of jobs and others alike; for ever if
    /// nothing is said.
    pub keep_finished: Option<Duration>,
    /// First delay after a pass that failed.
    pub api_backoff_base: Duration,
    /// Longest delay after a pass that failed.
    pub api_backoff_max: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            keep_finished: None,
            api_backoff_base: Duration::from_millis(200),
            api_backoff_max: Duration::from_secs(60),
        }
    }
}

/// What a pass over a workload goes by.
#[derive(Clone, Copy, Debug)]
pub struct Scene<'a> {
    /// What its queues are like.
    pub around: &'a Around,
    /// What others do that are late too.
    pub company: Company,
    /// The value of its WorkloadPriorityClass, if it has one that is there.
    pub priority: Option<i32>,
    /// What can be set.
    pub options: &'a Options,
    /// When it is.
    pub now: Timestamp,
    /// From 0 to 1: keeps those apart that are evicted together.
    pub chance: f64,
}

/// Plans one pass over a workload.
pub fn plan(workload: &Workload, scene: &Scene<'_>) -> Plan {
    let mut draft = Draft::new(workload, scene.now);
    let waiting = decide(&mut draft, scene);
    draft.plan(waiting)
}

/// The order of decisions. The first that changes anything is the last: what follows from it is
/// decided when it has been seen.
fn decide(draft: &mut Draft<'_>, scene: &Scene<'_>) -> Waiting {
    let Scene { around, options, .. } = scene;
    let meta = &draft.workload.metadata;
    if meta.deletion_timestamp.is_some() {
        if meta.owner_references.as_ref().is_none_or(Vec::is_empty) {
            draft.let_go();
        }
        return Waiting::BeingDeleted;
    }
    if draft.is_true(conditions::FINISHED) {
        draft.expire(options.keep_finished);
        return Waiting::Finished;
    }
    if draft.follow_class(scene.priority) {
        let is_held = draft.is_true(conditions::QUOTA_RESERVED);
        return if is_held { Waiting::Running } else { Waiting::Pending };
    }
    if !draft.is_active() {
        deactivate::carry_through(draft);
        return Waiting::Inactive;
    }
    if draft.is_true(conditions::DEACTIVATION_TARGET) {
        draft.deactivate();
        return Waiting::Inactive;
    }
    if let Some(until) = requeue::backs_off_until(draft) {
        draft.wake_at(until);
        return Waiting::BackOff { until };
    }
    // An admission says all that is to be said; anything else would be in its way.
    if around.is_admitting && !draft.is_true(conditions::QUOTA_RESERVED) {
        return Waiting::Pending;
    }
    requeue::come_back(draft, around);
    queues::sync(draft, around);
    if draft.has_changed() || !draft.is_true(conditions::QUOTA_RESERVED) {
        return Waiting::Pending;
    }
    if draft.is_true(conditions::EVICTED) {
        return Waiting::Evicted;
    }
    if evict::stopped(draft, around) {
        return Waiting::Evicted;
    }
    let waiting = timeouts::pods_ready(draft, scene);
    if !draft.has_changed() {
        timeouts::execution(draft);
    }
    waiting
}

/// The version of an object as a number. Versions of one kind are ordered.
fn version(meta: &ObjectMeta) -> u64 {
    meta.resource_version.as_deref().and_then(|version| version.parse().ok()).unwrap_or(0)
}
