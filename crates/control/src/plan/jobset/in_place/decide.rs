//! What becomes of a set through the restarts of its workers.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use lockstep_api::{
    jobset::{InPlaceRestart, InPlaceStatus, JobSetStatus, in_place},
    labels::jobset as keys,
    reasons::jobset as reasons,
};

use super::{Gang, generation, terms::own_restarts};
use crate::plan::jobset::{
    Event, Step, Waiting, beyond, condition,
    pass::Pass,
    step::{Annotation, Ticket},
};
use crate::plan::restart::{Phase, Reason};

/// How many restarts in place are remembered.
const RESTARTS_MAX: usize = 16;

/// What a pass does after it has looked at the workers.
pub(in crate::plan::jobset) enum Turn {
    /// What it does with any set.
    GoOn,
    /// Nothing more: something has to be seen first.
    Hold(Waiting),
    /// It writes down what was decided.
    Decided,
}

/// Acts on what is known of the workers.
pub(in crate::plan::jobset) fn prepare(pass: &mut Pass<'_>) -> Turn {
    if pass.options.in_place.is_none() {
        return Turn::GoOn;
    }
    if !in_place::has_begun(pass.jobset()) {
        return begin(pass);
    }
    let is_new = *pass.view.status() == JobSetStatus::default();
    if let Some(why) = is_new.then(|| faults(pass)).flatten() {
        return Turn::Hold(Waiting::Invalid(why));
    }
    let Some(gang) = pass.view.gang() else { return Turn::Hold(Waiting::RestartRecord) };
    let count = gang.record.restarts.counted.saturating_add(own_restarts(pass.jobset()));
    // Whoever writes the set may have dropped it, or written another.
    if in_place::restarts(&pass.jobset().metadata) != Some(count) {
        annotate(pass, count);
        return Turn::Hold(Waiting::CatchingUp);
    }
    tell(pass, gang);
    if let Phase::Failed(reason) = gang.record.phase {
        fail(pass, gang, reason);
        return Turn::Decided;
    }
    if gang.record.generation > generation(pass.view.status()) {
        recreate(pass, gang);
        return Turn::Decided;
    }
    Turn::GoOn
}

/// How many restarts of the gang count, beside those that the set itself has counted.
pub(in crate::plan::jobset) fn counted(pass: &Pass<'_>) -> i64 {
    pass.view.gang().map_or(0, |gang| i64::from(gang.record.restarts.counted))
}

/// The same with why the workers do not run, where nothing else keeps the set.
pub(in crate::plan::jobset) fn with_workers(pass: &Pass<'_>, waiting: Waiting) -> Waiting {
    let said = pass.view.gang().map(|gang| gang.waiting.clone()).filter(|said| !said.is_empty());
    match said {
        Some(said) if waiting == Waiting::Running => Waiting::Workers(said),
        _ => waiting,
    }
}

/// A set that asks for restarts in place gets its counter before its first Jobs: they, and none
/// that were there before, have agents. A count that it brings along is that of another set.
fn begin(pass: &mut Pass<'_>) -> Turn {
    let had_begun = pass.view.has_agents();
    if said(pass, keys::IN_PLACE_TIMEOUT).is_none() || pass.view.has_children() && !had_begun {
        return Turn::GoOn;
    }
    if let Some(why) = faults(pass) {
        return Turn::Hold(Waiting::Invalid(why));
    }
    annotate(pass, 0);
    Turn::Hold(Waiting::CatchingUp)
}

/// What is wrong with the set. Where the API has checked it, nothing is.
fn faults(pass: &Pass<'_>) -> Option<String> {
    let faults = in_place::faults(|key| said(pass, key), pass.spec());
    let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
    (!faults.is_empty()).then(|| faults.join("; "))
}

/// What an annotation of the set says.
fn said(pass: &Pass<'_>, key: &str) -> Option<String> {
    pass.jobset().metadata.annotations.as_ref()?.get(key).cloned()
}

/// The ticket that the agents of new Jobs need.
pub(in crate::plan::jobset) fn ticket(pass: &Pass<'_>) -> Option<Step> {
    let meta = &pass.jobset().metadata;
    pass.options.in_place.as_ref()?;
    in_place::restarts(meta)?;
    Some(Step::PutTicket(Ticket {
        uid: meta.uid.clone().unwrap_or_default(),
        generation: generation(pass.status()),
    }))
}

fn annotate(pass: &mut Pass<'_>, count: u32) {
    let meta = &pass.jobset().metadata;
    pass.steps.push(Step::Annotate(Annotation {
        uid: meta.uid.clone().unwrap_or_default(),
        resource_version: meta.resource_version.clone().unwrap_or_default(),
        key: keys::IN_PLACE_RESTARTS.to_owned(),
        value: count.to_string(),
    }));
}

/// Puts what the workers do into the status.
fn tell(pass: &mut Pass<'_>, gang: &Gang) {
    let kept = pass.status().lockstep.as_ref().and_then(|kept| kept.in_place.clone());
    let mut told = kept.unwrap_or_default();
    let last = told.last_restarts.last().map_or(-1, |restart| restart.epoch);
    let news: Vec<_> = gang.restarts.iter().filter(|restart| restart.epoch > last).collect();
    for restart in news {
        pass.emit(Event::restarted_in_place(restart, gang.record.slots));
        told.last_restarts.push(InPlaceRestart {
            time: restart.time.as_ref().map(|time| Time(condition::whole_second(time.0))),
            ..restart.clone()
        });
    }
    let old = told.last_restarts.len().saturating_sub(RESTARTS_MAX);
    told.last_restarts.drain(..old);
    let told = InPlaceStatus {
        epoch: i32::try_from(gang.record.epoch).unwrap_or(i32::MAX),
        restarts: i32::try_from(gang.record.restarts.total).unwrap_or(i32::MAX),
        phase: gang.record.phase.name().to_owned(),
        waiting: gang.waiting.clone(),
        workers: gang.workers.clone(),
        ..told
    };
    pass.status_mut().lockstep.get_or_insert_default().in_place = Some(told);
}

fn fail(pass: &mut Pass<'_>, gang: &Gang, reason: Reason) {
    let first = gang.last_failure.as_ref();
    let suffix = first.map(|(job, ..)| format!(" (first failed job: {job})")).unwrap_or_default();
    match reason {
        Reason::ReachedMaxRestarts if pass.spec().failure_policy.is_none() => {
            let message = format!("jobset failed due to one or more job failures{suffix}");
            condition::failed(pass, reasons::FAILED_JOBS, &message);
        }
        Reason::ReachedMaxRestarts => {
            let message = format!("jobset failed due to reaching max number of restarts{suffix}");
            condition::failed(pass, reasons::REACHED_MAX_RESTARTS, &message);
        }
        Reason::NoProgress => {
            let cause = first.map(|(_, worker, cause)| format!(": last {worker} {cause}"));
            let message = format!(
                "jobset failed because its workers do not get anywhere: they failed {} times in a \
                 row soon after they were started{}",
                gang.record.stalled,
                cause.unwrap_or_default()
            );
            condition::failed(pass, &reason.to_string(), &message);
        }
    }
}

/// All Jobs are made anew. The gang has counted it.
fn recreate(pass: &mut Pass<'_>, gang: &Gang) {
    let wanted = i32::try_from(gang.record.generation).unwrap_or(i32::MAX);
    let message = "the workers could not be restarted in place: all Jobs are made anew";
    pass.status_mut().restarts = wanted.saturating_sub(1);
    condition::restarting(pass, reasons::IN_PLACE_RESTART_FAILED, message);
    let worker = gang.last_failure.clone().unwrap_or_default();
    beyond::recreated(pass, worker);
}

#[cfg(test)]
mod tests;
