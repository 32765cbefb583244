//! JobSets: which Jobs they have, in which order these start, what a failure leads to, how they
//! end.
//!
//! [`View`] is one JobSet and its Jobs as they were seen last; [`plan`] says what to do next, as
//! steps that leave no choice. [`JobSets`] is the driver that both shells use: many views, a work
//! queue, and the results of steps coming back in. A restart, and the end of a set, are written
//! down first; what follows from them is planned when that has been seen.

mod beyond;
mod build;
mod child;
mod claims;
mod condition;
mod elastic;
mod failure;
mod finish;
mod group;
pub mod in_place;
mod pass;
mod resume;
mod service;
mod sets;
mod start;
mod step;
mod success;
#[cfg(test)]
mod tests;
mod view;
mod waiting;
#[cfg(test)]
mod world;

use std::time::Duration;

use jiff::Timestamp;
use lockstep_api::{Gates, jobset::JobSetStatus, labels::jobset::MANAGED_BY_SELF};

pub use crate::plan::Event;
pub use child::{Bucket, Child, Outcome};
pub use claims::leaving as claim_leaving;
pub use sets::{Ended, JobSets};
pub use step::{
    Annotation, CONTROLLER, Fact, JobRef, Plan, Resize, Resumption, StatusWrite, Step, Ticket,
};
pub use view::View;
pub use waiting::Waiting;

use pass::Pass;

/// What can be set about JobSets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Which sets are ours: those whose `spec.managedBy` is this, or says nothing.
    pub controller: String,
    /// Which features are on.
    pub gates: Gates,
    /// How workers reach whoever leads their restarts in place; none, and nobody restarts there.
    pub in_place: Option<in_place::Wiring>,
    /// First delay after a pass that failed.
    pub api_backoff_base: Duration,
    /// Longest delay after a pass that failed.
    pub api_backoff_max: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            controller: MANAGED_BY_SELF.to_owned(),
            gates: Gates::ALL,
            in_place: None,
            api_backoff_base: Duration::from_millis(200),
            api_backoff_max: Duration::from_secs(60),
        }
    }
}

/// Plans one pass over a JobSet.
pub fn plan(view: &View, options: &Options, now: Timestamp) -> Plan {
    if let Some(waiting) = leave_alone(view, options) {
        return Plan::wait(waiting);
    }
    let mut pass = Pass::new(view, options, now);
    if let Some(condition) = condition::finished(pass.status()) {
        let (kind, ended) = (condition.type_.clone(), condition.last_transition_time.0);
        pass.delete_jobs(Bucket::Active);
        beyond::note_ended(&mut pass);
        finish::expire(&mut pass, ended);
        return pass.plan(Waiting::Finished { condition: kind });
    }
    match in_place::prepare(&mut pass) {
        in_place::Turn::GoOn => {}
        in_place::Turn::Hold(waiting) => return pass.hold(waiting),
        in_place::Turn::Decided => return pass.plan(Waiting::Running),
    }
    let waiting = go_on(&mut pass);
    let waiting = in_place::with_workers(&pass, waiting);
    beyond::note_ended(&mut pass);
    pass.plan(waiting)
}

/// Plans a pass over a set that has not ended. What is returned says why it waits, if it does.
fn go_on(pass: &mut Pass<'_>) -> Waiting {
    if *pass.view.status() == JobSetStatus::default() {
        failure::tell_bad_patterns(pass);
    }
    pass.delete_jobs(Bucket::Previous);
    if !pass.is_suspended() && pass.is_all_ready() {
        condition::jobs_ready(pass);
    }
    if failure::decide(pass) {
        success::tell_lost(pass);
        return Waiting::Running;
    }
    if success::decide(pass) || failure::give_up(pass) {
        return Waiting::Running;
    }
    service::ensure(pass);
    claims::ensure(pass);
    elastic::resize(pass);
    let waiting = start::create(pass);
    if pass.is_suspended() {
        resume::suspend(pass);
        return waiting;
    }
    resume::resume(pass).unwrap_or(waiting)
}

/// Sets that are not ours to touch, or no longer.
fn leave_alone(view: &View, options: &Options) -> Option<Waiting> {
    let manager = view.jobset().spec.managed_by.as_deref().unwrap_or(&options.controller);
    if manager != options.controller {
        return Some(Waiting::ManagedBy(manager.to_owned()));
    }
    if view.jobset().metadata.deletion_timestamp.is_some() {
        return Some(Waiting::BeingDeleted);
    }
    view.problem().map(Waiting::Invalid)
}
