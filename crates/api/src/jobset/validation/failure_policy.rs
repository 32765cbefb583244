//! What the answers to failures may look like.

use std::collections::BTreeMap;

use super::is_replicated_job;
use crate::{
    field::{ErrorList, FieldError},
    gates::Gates,
    jobset::{Action, FailurePolicy, FailurePolicyRule, JobSetSpec, RESTARTS_KEPT_MAX},
};

const NAME_MAX: usize = 128;

/// The reasons for which Jobs fail.
const REASONS: [&str; 5] = [
    "BackoffLimitExceeded",
    "DeadlineExceeded",
    "FailedIndexes",
    "MaxFailedIndexesExceeded",
    "PodFailurePolicy",
];

/// Says what is wrong with a failure policy.
pub(super) fn validate(spec: &JobSetSpec, gates: Gates) -> ErrorList {
    let Some(policy) = &spec.failure_policy else { return ErrorList::new() };
    let mut errors = ErrorList::new();
    errors.extend(single_restarts(spec, policy, gates));
    if !errors.is_empty() && !gates.restart_job {
        return errors;
    }
    let mut named: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (at, rule) in policy.rules.iter().enumerate() {
        errors.extend(validate_rule(rule, spec));
        named.entry(&rule.name).or_default().push(at.to_string());
    }
    for (name, indexes) in named.into_iter().filter(|(_, indexes)| indexes.len() > 1) {
        errors.push(FieldError::internal(&format!(
            "rule names are not unique, rules with indices [{}] all have the same name '{name}'",
            indexes.join(" ")
        )));
    }
    errors
}

/// Says what is wrong with rules that restart less than all of a set: of each Job the status keeps
/// how often, and it holds only so many.
fn single_restarts(spec: &JobSetSpec, policy: &FailurePolicy, gates: Gates) -> ErrorList {
    let has = |actions: &[Action]| policy.rules.iter().any(|rule| actions.contains(&rule.action));
    let names = match (
        has(&[Action::RestartJob, Action::RestartJobAndIgnoreMaxRestarts]),
        has(&[Action::RestartReplicatedJob]),
    ) {
        (true, _) => ("RestartJob", Some("RestartJobAndIgnoreMaxRestarts")),
        (false, true) => ("RestartReplicatedJob", None),
        (false, false) => return ErrorList::new(),
    };
    let joined = |word: &str| match names {
        (one, Some(other)) => format!("{one} {word} {other}"),
        (one, None) => one.to_owned(),
    };
    let what = if names.1.is_some() { "actions are" } else { "action is" };
    if !gates.restart_job {
        return vec![FieldError::internal(&format!(
            "{} failure policy {what} not allowed when RestartJob feature gate is disabled",
            joined("and")
        ))];
    }
    if spec.replicated_jobs.iter().all(|job| job.replicas <= RESTARTS_KEPT_MAX) {
        return ErrorList::new();
    }
    vec![FieldError::internal(&format!(
        "JobSet cannot have a failure policy rule with {} action and a replicated job with \
         replicas > {RESTARTS_KEPT_MAX}",
        joined("or")
    ))]
}

fn validate_rule(rule: &FailurePolicyRule, spec: &JobSetSpec) -> ErrorList {
    let mut errors = ErrorList::new();
    let name = &rule.name;
    if name.is_empty() || name.len() > NAME_MAX {
        errors.push(FieldError::internal(&format!(
            "invalid failure policy rule name of length {}, the rule name must be at least 1 \
             characters long and at most {NAME_MAX} characters long",
            name.len()
        )));
    }
    if !is_rule_name(name) {
        errors.push(FieldError::internal(&format!(
            "invalid failure policy rule name '{name}', a failure policy rule name must start \
             with an alphabetic character, optionally followed by a string of alphanumeric \
             characters or '_,:', and must end with an alphanumeric character or '_'"
        )));
    }
    for target in &rule.target_replicated_jobs {
        if !is_replicated_job(spec, target) {
            errors.push(FieldError::internal(&format!(
                "invalid replicatedJob name '{target}' in failure policy does not appear in \
                 .spec.ReplicatedJobs"
            )));
        }
    }
    for reason in &rule.on_job_failure_reasons {
        if !REASONS.contains(&reason.as_str()) {
            errors.push(FieldError::internal(&format!(
                "invalid job failure reason '{reason}' in failure policy is not a recognized job \
                 failure reason"
            )));
        }
    }
    errors
}

/// `^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`.
fn is_rule_name(name: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    match name.as_bytes() {
        [] => false,
        [only] => only.is_ascii_alphabetic(),
        [first, middle @ .., last] => {
            first.is_ascii_alphabetic()
                && middle.iter().all(|byte| is_word(*byte) || b",:".contains(byte))
                && is_word(*last)
        }
    }
}
