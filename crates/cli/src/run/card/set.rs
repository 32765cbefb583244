//! The card of a JobSet: which rule decided about which Job, what came before, and who is to blame.

use lockstep_api::{
    jobset::Action,
    reasons::jobset::{FAILED_JOBS, REACHED_MAX_RESTARTS},
};

use super::{Evidence, blame, field, head, rule};
use crate::run::{
    job::Job,
    jobset::{JobSet, Phase, why_matches},
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
        }
    }
}

/// The Job that made a JobSet fail, as far as it is known.
pub(super) fn job_to_blame<'a>(model: &'a Model, set: &JobSet) -> Option<&'a Job> {
    let name = JobSet::first_failed(&set.why.message).filter(|_| set.phase == Phase::Failed)?;
    model.jobs.get(&(set.namespace.clone(), name.to_owned()))
}

fn failed(model: &Model, set: &JobSet, evidence: &Evidence, paint: Paint, lines: &mut Vec<String>) {
    lines.push(head(&format!("jobset/{} failed: {}", set.name, set.why.reason), paint));
    lines.push(field("rule", &decision(set)));
    attempts(set, lines);
    let Some(job) = job_to_blame(model, set) else { return };
    let place = job.member.as_ref().map(|member| {
        format!(", replicated job {}, attempt {}", member.group, member.attempt_words())
    });
    let why = format!("{}: {}", job.why.reason, rule(job));
    lines.push(field("job", &format!("{}{}", job.name, place.unwrap_or_default())));
    lines.push(field("because", &why));
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

/// Which rule of the manifest decided about which Job, and why that one.
fn decision(set: &JobSet) -> String {
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
