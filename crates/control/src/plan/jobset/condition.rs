//! Conditions of JobSets: their words, and how they replace each other.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use lockstep_api::{jobset::JobSetStatus, reasons::jobset as reasons};

use super::{Event, Fact, pass::Pass};

/// The condition a set has ended with, if it has.
pub(super) fn finished(status: &JobSetStatus) -> Option<&Condition> {
    status.conditions.iter().find(|condition| {
        (condition.type_ == reasons::COMPLETED || condition.type_ == reasons::FAILED)
            && condition.status == "True"
    })
}

/// The set is complete.
pub(super) fn completed(pass: &mut Pass<'_>) {
    let message = "jobset completed successfully";
    say(pass, (reasons::COMPLETED, true), reasons::ALL_JOBS_COMPLETED, message);
    say(pass, (reasons::RESTARTING, false), reasons::JOBSET_COMPLETED, message);
    pass.status_mut().terminal_state = reasons::COMPLETED.to_owned();
    pass.note(Fact::Completed);
}

/// The set has failed.
pub(super) fn failed(pass: &mut Pass<'_>, reason: &str, message: &str) {
    say(pass, (reasons::FAILED, true), reason, message);
    say(pass, (reasons::RESTARTING, false), reasons::JOBSET_FAILED, "jobset failed");
    pass.status_mut().terminal_state = reasons::FAILED.to_owned();
    pass.note(Fact::Failed);
}

/// The set is restarted.
pub(super) fn restarting(pass: &mut Pass<'_>, reason: &str, message: &str) {
    say(pass, (reasons::RESTARTING, true), reason, message);
    begin_again(pass);
}

/// All Jobs are ready again.
pub(super) fn jobs_ready(pass: &mut Pass<'_>) {
    say(pass, (reasons::RESTARTING, false), reasons::JOBS_READY, "all jobs are ready");
}

/// The set stands still.
pub(super) fn suspended(pass: &mut Pass<'_>) {
    let message = "jobset is suspended";
    say(pass, (reasons::SUSPENDED, true), reasons::SUSPENDED_JOBS, message);
    say(pass, (reasons::RESTARTING, false), reasons::JOBSET_SUSPENDED, message);
    begin_again(pass);
}

/// The set goes on.
pub(super) fn resumed(pass: &mut Pass<'_>) {
    say(pass, (reasons::SUSPENDED, false), reasons::RESUME_JOBS, "jobset is resumed");
}

/// The replicated job `name` is starting, and those after it wait.
pub(super) fn starting(pass: &mut Pass<'_>, name: &str) {
    let message = "in order startup policy is in progress";
    flip(pass, reasons::STARTUP_COMPLETED);
    say(pass, (reasons::STARTUP_IN_PROGRESS, true), reasons::IN_ORDER_IN_PROGRESS, message);
    // What has started in this attempt has started, also when a pod is not ready any more.
    if !is_true(pass, reasons::STARTUP_POLICY) {
        put(pass, starting_at(name));
    }
}

/// The start that is over has to be gone through again.
fn begin_again(pass: &mut Pass<'_>) {
    let first = pass.spec().replicated_jobs.first().map(|job| job.name.clone());
    if let Some(first) = first.filter(|_| is_true(pass, reasons::STARTUP_POLICY)) {
        put(pass, starting_at(&first));
    }
}

fn starting_at(name: &str) -> Condition {
    let message = format!("replicated job {name} is starting");
    new(reasons::STARTUP_POLICY, false, reasons::STARTUP_POLICY_IN_ORDER, &message)
}

fn is_true(pass: &Pass<'_>, kind: &str) -> bool {
    let mut conditions = pass.status().conditions.iter();
    conditions.any(|known| known.type_ == kind && known.status == "True")
}

/// All replicated jobs have started in order.
pub(super) fn started(pass: &mut Pass<'_>) {
    let message = "in order startup policy has completed";
    flip(pass, reasons::STARTUP_IN_PROGRESS);
    say(pass, (reasons::STARTUP_COMPLETED, true), reasons::IN_ORDER_COMPLETED, message);
    let message = "startup policy successful";
    put(pass, new(reasons::STARTUP_POLICY, true, reasons::STARTUP_POLICY_IN_ORDER, message));
}

/// Sets a condition and tells of it if that changed anything. What is not true does not appear out
/// of nothing.
fn say(pass: &mut Pass<'_>, (kind, is_true): (&str, bool), reason: &str, message: &str) {
    let is_there = pass.status().conditions.iter().any(|known| known.type_ == kind);
    if !is_there && !is_true {
        return;
    }
    if put(pass, new(kind, is_true, reason, message)) {
        let is_warning = is_true && [reasons::FAILED, reasons::RESTARTING].contains(&kind);
        pass.emit(Event { is_warning, reason: reason.to_owned(), message: message.to_owned() });
    }
}

/// Puts a condition in the place of the one of its type, or at the end. Its time is that of the
/// last change of its status. Says whether anything changed.
fn put(pass: &mut Pass<'_>, mut condition: Condition) -> bool {
    condition.last_transition_time = Time(whole_second(pass.now));
    let conditions = &mut pass.status_mut().conditions;
    let Some(known) = conditions.iter_mut().find(|known| known.type_ == condition.type_) else {
        conditions.push(condition);
        return true;
    };
    if known.status == condition.status {
        condition.last_transition_time = known.last_transition_time.clone();
    }
    let is_changed = *known != condition;
    *known = condition;
    is_changed
}

/// A condition that is true is no longer; nothing else of it changes.
fn flip(pass: &mut Pass<'_>, kind: &str) {
    let mut conditions = pass.status_mut().conditions.iter_mut();
    if let Some(known) = conditions.find(|known| known.type_ == kind && known.status == "True") {
        "False".clone_into(&mut known.status);
    }
}

fn new(kind: &str, is_true: bool, reason: &str, message: &str) -> Condition {
    Condition {
        type_: kind.to_owned(),
        status: if is_true { "True" } else { "False" }.to_owned(),
        reason: reason.to_owned(),
        message: message.to_owned(),
        last_transition_time: Time(Timestamp::UNIX_EPOCH),
        observed_generation: None,
    }
}

/// The API keeps times to the second: what we write is what we will read.
pub(super) fn whole_second(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}
