//! What a failed Job leads to: which rule and which Job decide, and what is done.
//!
//! A restart is a number in the status. Once it is written all Jobs of the attempt before are
//! previous ones; nothing else has to be remembered.

use jiff::Timestamp;
use lockstep_api::{
    jobset::{
        Action, FailurePolicy, FailurePolicyRule, MessagePatterns, RESTARTS_KEPT_MAX, pattern_fault,
    },
    reasons::jobset as reasons,
};

use super::{
    Bucket, Child, Event, Outcome, View, beyond, condition, group, in_place, pass::Pass, start,
};

/// Decides what failed Jobs lead to, if anything. Says whether the pass is over.
pub(super) fn decide(pass: &mut Pass<'_>) -> bool {
    let failed: Vec<&Child> = pass.view.bucket(Bucket::Failed).collect();
    let Some(policy) = &pass.spec().failure_policy else {
        let Some(first) = earliest(failed) else { return false };
        condition::failed(pass, reasons::FAILED_JOBS, &failed_message(first));
        return true;
    };
    let (left, open): (Vec<&Child>, Vec<&Child>) =
        failed.into_iter().partition(|child| is_left(pass.view, child));
    tell_left(pass, left);
    if open.is_empty() {
        return false;
    }
    let Some((rule, job)) = choose(pass.view, &open) else { return false };
    apply(pass, policy, rule, job);
    true
}

/// Tells of Jobs that failed and are left alone, each once: with the status that counts it first.
fn tell_left(pass: &mut Pass<'_>, mut left: Vec<&Child>) {
    left.sort_by_key(|child| failed_at(child));
    for job in &pass.spec().replicated_jobs {
        let told = group::stored(pass.view.status(), &job.name).map_or(0, |entry| entry.failed);
        let new = pass.view.counts(&job.name).failed - told;
        let of_group = left.iter().rev().filter(|child| child.group() == Some(&job.name));
        let new = of_group.take(usize::try_from(new).unwrap_or_default());
        let messages: Vec<String> = new
            .map(|child| format!("applying FailJob failure policy action{}", first_failed(child)))
            .collect();
        for message in messages.into_iter().rev() {
            let reason = format!("{}{}", Action::FailJob.as_str(), reasons::ACTION_SUFFIX);
            pass.emit(Event::warning(&reason, message));
        }
    }
}

/// Fails a set whose failed Jobs were left alone, when nothing else can come of it. Says whether
/// it did.
pub(super) fn give_up(pass: &mut Pass<'_>) -> bool {
    let Some(first) = earliest(pass.view.bucket(Bucket::Failed).collect()) else { return false };
    let is_going = pass.view.size(Bucket::Active) + pass.view.size(Bucket::Previous) > 0;
    if is_going || start::can_create(pass) {
        return false;
    }
    condition::failed(pass, reasons::FAILED_JOBS, &failed_message(first));
    true
}

/// Whether a failed Job is left alone: the first rule that matches it says so.
pub(super) fn is_left(view: &View, child: &Child) -> bool {
    let rule = view.rules().find(|rule| matches(*rule, child));
    child.is_left || rule.is_some_and(|(rule, _)| rule.action == Action::FailJob)
}

/// Tells of expressions that do not compile: they match nothing, and users wonder why.
pub(super) fn tell_bad_patterns(pass: &mut Pass<'_>) {
    let rules = pass.spec().failure_policy.iter().flat_map(|policy| &policy.rules);
    for rule in rules {
        for pattern in &rule.on_job_failure_message_patterns {
            let Some(why) = pattern_fault(pattern) else { continue };
            let message = format!(
                "failure policy rule {}: the message pattern {pattern:?} matches nothing, because \
                 it is no regular expression: {why}",
                rule.name
            );
            pass.emit(Event::warning("InvalidMessagePattern", message));
        }
    }
}

/// The first rule that matches a Job, and the one of its Jobs that failed first; without a rule the
/// Job that failed first of all.
fn choose<'a>(
    view: &'a View,
    failed: &[&'a Child],
) -> Option<(Option<&'a FailurePolicyRule>, &'a Child)> {
    let rules = view.rules().filter(|(rule, _)| rule.action != Action::FailJob);
    for rule in rules {
        let matching = failed.iter().copied().filter(|child| matches(rule, child)).collect();
        if let Some(job) = earliest(matching) {
            return Some((Some(rule.0), job));
        }
    }
    Some((None, earliest(failed.to_vec())?))
}

fn earliest(failed: Vec<&Child>) -> Option<&Child> {
    failed.into_iter().min_by_key(|child| failed_at(child))
}

fn failed_at(child: &Child) -> Option<Timestamp> {
    match &child.outcome {
        Outcome::Failed { at, .. } => *at,
        Outcome::Running | Outcome::Complete => None,
    }
}

fn matches((rule, patterns): (&FailurePolicyRule, &MessagePatterns), child: &Child) -> bool {
    let Outcome::Failed { reason, message, .. } = &child.outcome else { return false };
    child.group().is_some_and(|name| rule.matches_with(patterns, name, reason, message))
}

fn apply(
    pass: &mut Pass<'_>,
    policy: &FailurePolicy,
    rule: Option<&FailurePolicyRule>,
    job: &Child,
) {
    let action = rule.map_or(Action::RestartJobSet, |rule| rule.action);
    let suffix = first_failed(job);
    let message = format!("applying {} failure policy action{suffix}", action.as_str());
    let is_exhausted = restarts_counted(pass) >= i64::from(policy.max_restarts);
    let spent = rule.filter(|rule| {
        beyond::limit(pass, rule).is_some_and(|limit| beyond::restarts(pass, rule) >= limit)
    });
    if let Some(rule) = spent.filter(|_| action != Action::FailJobSet) {
        let name = &rule.name;
        let why = format!(
            "jobset failed due to reaching max number of restarts of failure policy rule {name}{suffix}"
        );
        condition::failed(pass, reasons::REACHED_MAX_RESTARTS, &why);
        return;
    }
    let counts = match action {
        Action::FailJobSet => {
            let reason = format!("{}{}", action.as_str(), reasons::ACTION_SUFFIX);
            condition::failed(pass, &reason, &message);
            return;
        }
        Action::RestartJobSet | Action::RestartJob | Action::RestartReplicatedJob
            if is_exhausted =>
        {
            let why = format!("jobset failed due to reaching max number of restarts{suffix}");
            condition::failed(pass, reasons::REACHED_MAX_RESTARTS, &why);
            return;
        }
        Action::RestartJobSet | Action::RestartJob | Action::RestartReplicatedJob => true,
        Action::RestartJobSetAndIgnoreMaxRestarts
        | Action::RestartJobAndIgnoreMaxRestarts
        | Action::FailJob
        | Action::Unknown => false,
    };
    match action {
        Action::RestartJob
        | Action::RestartJobAndIgnoreMaxRestarts
        | Action::RestartReplicatedJob => {
            if let Err(why) = restart_jobs(pass, action, job, counts) {
                pass.problem = Some(why);
                return;
            }
        }
        Action::FailJobSet
        | Action::RestartJobSet
        | Action::RestartJobSetAndIgnoreMaxRestarts
        | Action::FailJob
        | Action::Unknown => {
            let status = pass.status_mut();
            status.restarts += 1;
            status.restarts_count_towards_max += i32::from(counts);
            let reason = match rule {
                Some(rule) => format!("{}{}", reasons::FAILURE_POLICY_PREFIX, rule.name),
                None => reasons::DEFAULT_FAILURE_POLICY.to_owned(),
            };
            condition::restarting(pass, &reason, &message);
        }
    }
    let reason = format!("{}{}", action.as_str(), reasons::ACTION_SUFFIX);
    pass.emit(Event::warning(&reason, message));
    beyond::restarted(pass, rule, action.as_str(), job);
}

/// How many restarts there were that count.
fn restarts_counted(pass: &Pass<'_>) -> i64 {
    let status = pass.status();
    let entries = status.replicated_jobs_status.iter();
    let single = entries.flat_map(|entry| &entry.job_restarts_count_towards_max);
    let single: i64 = single.map(|count| i64::from(*count)).sum();
    let whole = i64::from(status.restarts_count_towards_max);
    whole + if pass.options.gates.restart_job { single } else { 0 } + in_place::counted(pass)
}

/// Restarts the Job, or all Jobs of its replicated job. It counts once, for the Job that failed.
fn restart_jobs(
    pass: &mut Pass<'_>,
    action: Action,
    job: &Child,
    counts: bool,
) -> Result<(), String> {
    if !pass.options.gates.restart_job {
        return Err(format!(
            "{} failure policy action cannot be used when the feature gate RestartJob is disabled",
            action.as_str()
        ));
    }
    let name = job.group().unwrap_or_default().to_owned();
    let index = job.index().unwrap_or_default();
    let mut restarts = group::restarts(pass.jobset(), pass.status(), &name);
    let entries = &mut pass.status_mut().replicated_jobs_status;
    let Some(entry) = entries.iter_mut().find(|entry| entry.name == name) else {
        return Err(format!("job {}: there is no replicated job {name}", job.name()));
    };
    if index >= restarts.len() {
        return Err(format!("job {}: index {index} is none of replicated job {name}", job.name()));
    }
    if !i32::try_from(restarts.len()).is_ok_and(|len| len <= RESTARTS_KEPT_MAX) {
        return Err(format!(
            "{} failure policy action cannot be used with replicated job {name}: it has {} Jobs, \
             and restarts are kept of {RESTARTS_KEPT_MAX}",
            action.as_str(),
            restarts.len()
        ));
    }
    if action == Action::RestartReplicatedJob {
        restarts.iter_mut().for_each(|count| *count += 1);
    } else {
        restarts[index] += 1;
    }
    let counted = &mut entry.job_restarts_count_towards_max;
    if counts {
        counted.resize(restarts.len().max(counted.len()), 0);
        counted[index] += 1;
    }
    entry.job_restarts = restarts;
    Ok(())
}

fn failed_message(job: &Child) -> String {
    format!("jobset failed due to one or more job failures{}", first_failed(job))
}

fn first_failed(job: &Child) -> String {
    format!(" (first failed job: {})", job.name())
}
