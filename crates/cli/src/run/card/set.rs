//! The card of a JobSet: which rule decided about which Job, what came before, and who is to blame.

use lockstep_api::{
    jobset::Action,
    labels::jobset::IN_PLACE_STALLED_MAX,
    reasons::jobset::{FAILED_JOBS, REACHED_MAX_RESTARTS},
};

use super::{Evidence, blame, culprits, field, head, queued, rule};
use crate::run::{
    job::Job,
    jobset::{JobSet, Phase, in_place, why_matches},
    model::Model,
    style::Paint,
};

/// How many restarts are told again.
const RESTARTS_SHOWN: usize = 5;

/// Adds the card of a JobSet that did not succeed.
pub(super) fn card(
    model: &Model,
    set: &JobSet,
    evidence: &Evidence,
    paint: Paint,
    lines: &mut Vec<String>,
) {
    let name = &set.name;
    match set.phase {
        Phase::Completed => {}
        Phase::Failed => failed(model, set, evidence, paint, lines),
        Phase::Gone => lines.push(head(&format!("jobset/{name} was deleted"), paint)),
        _ => {
            let why = model.why_set_waits(set).unwrap_or_else(|| "is not finished".to_owned());
            lines.push(head(&format!("jobset/{name} cannot go on"), paint));
            lines.push(field("because", &why));
            queued(model, model.workload_of_set(set), lines);
        }
    }
}

/// The Job that made a JobSet fail, as far as it is known.
pub(super) fn job_to_blame<'a>(model: &'a Model, set: &JobSet) -> Option<&'a Job> {
    if set.phase != Phase::Failed {
        return None;
    }
    let Some(name) = JobSet::first_failed(&set.why.message) else {
        let mut jobs = model.jobs_of(set).filter(|_| has_failed_in_place(set));
        return jobs.find(|job| !culprits(model, job).0.is_empty());
    };
    model.jobs.get(&(set.namespace.clone(), name.to_owned()))
}

/// Whether it was not a Job that a set failed of, but workers that restart in place.
fn has_failed_in_place(set: &JobSet) -> bool {
    set.in_place().is_some_and(|told| told.phase == "Failed")
}

fn failed(model: &Model, set: &JobSet, evidence: &Evidence, paint: Paint, lines: &mut Vec<String>) {
    lines.push(head(&format!("jobset/{} failed: {}", set.name, set.why.reason), paint));
    lines.push(field("rule", &decision(set)));
    attempts(set, lines);
    restarts_in_place(set, lines);
    let Some(job) = job_to_blame(model, set) else { return };
    let place = job.member.as_ref().map(|member| {
        format!(", replicated job {}, attempt {}", member.group, member.attempt_words())
    });
    lines.push(field("job", &format!("{}{}", job.name, place.unwrap_or_default())));
    if !job.why.reason.is_empty() {
        lines.push(field("because", &format!("{}: {}", job.why.reason, rule(job))));
    }
    blame(model, job, evidence, lines);
}

/// The restarts before, the last few of them.
fn attempts(set: &JobSet, lines: &mut Vec<String>) {
    let history = &set.history;
    let shown = history.restarts.len().min(RESTARTS_SHOWN);
    let hidden = history.restarts.len() - shown + history.forgotten;
    let mut label = "attempts";
    if hidden > 0 {
        lines.push(field(label, &format!("{hidden} restarts before these")));
        label = "";
    }
    for restart in history.restarts.iter().skip(history.restarts.len() - shown) {
        let words = set.restart_words(restart);
        lines.push(field(label, &format!("{}: {words}", restart.attempt)));
        label = "";
    }
}

/// The restarts in place before, the last few of them.
fn restarts_in_place(set: &JobSet, lines: &mut Vec<String>) {
    let all = set.in_place().map(|told| told.last_restarts.as_slice()).unwrap_or_default();
    let mut label = "in place";
    for restart in &all[all.len().saturating_sub(RESTARTS_SHOWN)..] {
        let (cause, took) = (in_place::cause(restart), in_place::span(restart.total_micros()));
        lines.push(field(label, &format!("{}: {cause}, all ran again in {took}", restart.epoch)));
        label = "";
    }
    match set.restarts_cut_short() {
        0 => {}
        1 => lines.push(field(label, "1 restart ended before all workers ran again")),
        more => lines.push(field(label, &format!("{more} ended before all workers ran again"))),
    }
}

/// What decided that a set fails whose workers restart in place.
fn decision_in_place(set: &JobSet) -> String {
    let message = &set.why.message;
    match (set.why.reason.as_str(), &set.spec.failure_policy) {
        (REACHED_MAX_RESTARTS, Some(policy)) => {
            let (most, used) = (policy.max_restarts, set.restarts_counted());
            format!("spec.failurePolicy.maxRestarts {most}, {used} used: {message}")
        }
        (FAILED_JOBS | REACHED_MAX_RESTARTS, _) => {
            format!("no spec.failurePolicy, so one failed worker is enough: {message}")
        }
        _ => format!("annotation {IN_PLACE_STALLED_MAX}: {message}"),
    }
}

/// Which rule of the manifest decided about which Job, and why that one.
fn decision(set: &JobSet) -> String {
    if has_failed_in_place(set) {
        return decision_in_place(set);
    }
    let message = &set.why.message;
    let job = JobSet::first_failed(message);
    let Some(policy) = &set.spec.failure_policy else {
        return format!("no spec.failurePolicy, so one failed Job is enough: {message}");
    };
    let rule = job.and_then(|job| set.rule_for(job));
    let matched = match (job.and_then(|job| set.history.failure(job)), rule) {
        (Some(failure), Some((at, rule))) => {
            let (name, action, why) =
                (&rule.name, rule.action.as_str(), why_matches(rule, failure));
            format!("spec.failurePolicy.rules[{at}] ({name}: {action}), {why}")
        }
        (Some(_), None) => format!("no rule matches, so {}", Action::RestartJobSet.as_str()),
        (None, _) => "nobody told what the Job failed of".to_owned(),
    };
    match set.why.reason.as_str() {
        REACHED_MAX_RESTARTS => {
            let (most, used) = (policy.max_restarts, set.restarts_counted());
            let rule = rule.map(|(_, rule)| &rule.name);
            let own = rule.filter(|rule| message.contains(&format!("failure policy rule {rule}")));
            if let Some(budget) = own.and_then(|rule| set.rule_budget(rule)) {
                return format!("{matched}; {budget}: {message}");
            }
            format!("{matched}; spec.failurePolicy.maxRestarts {most}, {used} used: {message}")
        }
        FAILED_JOBS => format!("{matched}; nothing else is left to run: {message}"),
        _ => format!("{matched}: {message}"),
    }
}
