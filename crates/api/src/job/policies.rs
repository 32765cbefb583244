//! Rules about failed pods and about success.

use std::collections::BTreeSet;

use k8s_openapi::api::batch::v1::{
    JobSpec, PodFailurePolicyOnExitCodesRequirement, PodFailurePolicyOnPodConditionsPattern,
    PodFailurePolicyRule, SuccessPolicyRule,
};

use crate::{
    field::{ErrorList, FieldError, Path},
    job::{indexes, is_indexed, shown},
    kinds::{NOT_NEGATIVE, each},
    names,
};

const RULES_MAX: usize = 20;
const EXIT_CODES_MAX: usize = 255;
const CONDITIONS_MAX: usize = 20;
const INDEXES_BYTES_MAX: usize = 64 * 1024;

/// Says what is wrong with `spec.podFailurePolicy`.
pub(super) fn validate_pod_failure(spec: &JobSpec, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let Some(policy) = &spec.pod_failure_policy else { return errors };
    let path = path.child("rules");
    if policy.rules.len() > RULES_MAX {
        errors.push(FieldError::too_many(&path, policy.rules.len(), RULES_MAX));
    }
    for (at, rule) in policy.rules.iter().enumerate() {
        errors.extend(validate_failure_rule(spec, rule, &path.index(at)));
    }
    errors
}

fn validate_failure_rule(spec: &JobSpec, rule: &PodFailurePolicyRule, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let actions = ["Count", "FailIndex", "FailJob", "Ignore"];
    let action_path = path.child("action");
    match rule.action.as_str() {
        "" => errors.push(required_one_of(&action_path, &actions)),
        "FailIndex" if spec.backoff_limit_per_index.is_none() => {
            let why = "requires the backoffLimitPerIndex to be set";
            errors.push(FieldError::invalid(&action_path, "FailIndex", why));
        }
        action if !actions.contains(&action) => {
            errors.push(FieldError::not_supported(&action_path, action, &actions));
        }
        _ => {}
    }
    let patterns = rule.on_pod_conditions.as_deref().unwrap_or_default();
    if let Some(on_exit_codes) = &rule.on_exit_codes {
        errors.extend(validate_exit_codes(spec, on_exit_codes, &path.child("onExitCodes")));
    }
    if !patterns.is_empty() {
        errors.extend(validate_patterns(patterns, &path.child("onPodConditions")));
    }
    match (rule.on_exit_codes.is_some(), !patterns.is_empty()) {
        (true, true) => errors.push(FieldError::invalid_unshown(
            path,
            "specifying both OnExitCodes and OnPodConditions is not supported",
        )),
        (false, false) => errors.push(FieldError::invalid_unshown(
            path,
            "specifying one of OnExitCodes and OnPodConditions is required",
        )),
        _ => {}
    }
    errors
}

fn validate_exit_codes(
    spec: &JobSpec,
    codes: &PodFailurePolicyOnExitCodesRequirement,
    path: &Path,
) -> ErrorList {
    let mut errors = ErrorList::new();
    let operators = ["In", "NotIn"];
    let operator_path = path.child("operator");
    if codes.operator.is_empty() {
        errors.push(required_one_of(&operator_path, &operators));
    } else if !operators.contains(&codes.operator.as_str()) {
        errors.push(FieldError::not_supported(&operator_path, &codes.operator, &operators));
    }
    if let Some(name) = &codes.container_name
        && !has_container(spec, name)
    {
        let why = "must be one of the container or initContainer names in the pod template";
        errors.push(FieldError::invalid(&path.child("containerName"), name, why));
    }
    let path = path.child("values");
    let values = &codes.values;
    if values.is_empty() {
        errors.push(FieldError::invalid(&path, values, "at least one value is required"));
    } else if values.len() > EXIT_CODES_MAX {
        errors.push(FieldError::too_many(&path, values.len(), EXIT_CODES_MAX));
    }
    let mut seen = BTreeSet::new();
    for (at, code) in values.iter().enumerate() {
        let path = path.index(at);
        if codes.operator == "In" && *code == 0 {
            errors.push(FieldError::invalid(&path, code, "must not be 0 for the In operator"));
        }
        if !seen.insert(code) {
            errors.push(FieldError::duplicate(&path, code));
        }
    }
    if !values.is_sorted() {
        errors.push(FieldError::invalid(&path, values, "must be ordered"));
    }
    errors
}

fn has_container(spec: &JobSpec, name: &str) -> bool {
    spec.template.spec.as_ref().is_some_and(|pod| {
        pod.containers.iter().chain(pod.init_containers.iter().flatten()).any(|c| c.name == name)
    })
}

fn validate_patterns(
    patterns: &[PodFailurePolicyOnPodConditionsPattern],
    path: &Path,
) -> ErrorList {
    let mut errors = ErrorList::new();
    if patterns.len() > CONDITIONS_MAX {
        errors.push(FieldError::too_many(path, patterns.len(), CONDITIONS_MAX));
    }
    let statuses = ["False", "True", "Unknown"];
    for (at, pattern) in patterns.iter().enumerate() {
        let path = path.index(at);
        let kind = &pattern.type_;
        errors.extend(each(&path.child("type"), kind, names::qualified_name(kind)));
        let path = path.child("status");
        match pattern.status.as_deref().unwrap_or_default() {
            "" => errors.push(required_one_of(&path, &statuses)),
            status if !statuses.contains(&status) => {
                errors.push(FieldError::not_supported(&path, status, &statuses));
            }
            _ => {}
        }
    }
    errors
}

/// Says what is wrong with `spec.successPolicy`.
pub(super) fn validate_success(spec: &JobSpec, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let Some(policy) = &spec.success_policy else { return errors };
    if !is_indexed(spec) {
        let shown = shown::success(policy);
        return vec![FieldError::invalid(path, shown, "requires indexed completion mode")];
    }
    let path = path.child("rules");
    if policy.rules.is_empty() {
        let why = "at least one rules must be specified when the successPolicy is specified";
        errors.push(FieldError::required(&path, why));
    }
    if policy.rules.len() > RULES_MAX {
        errors.push(FieldError::too_many(&path, policy.rules.len(), RULES_MAX));
    }
    // Without completions, which are required and reported as missing, no rule can be judged.
    if let Some(completions) = spec.completions {
        for (at, rule) in policy.rules.iter().enumerate() {
            errors.extend(validate_success_rule(rule, completions, &path.index(at)));
        }
    }
    errors
}

fn validate_success_rule(rule: &SuccessPolicyRule, completions: i32, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    if rule.succeeded_count.is_none() && rule.succeeded_indexes.is_none() {
        let why = "at least one of succeededCount or succeededIndexes must be specified";
        errors.push(FieldError::required(path, why));
    }
    let mut total = None;
    if let Some(list) = &rule.succeeded_indexes {
        let path = path.child("succeededIndexes");
        if list.len() > INDEXES_BYTES_MAX {
            errors.push(FieldError::too_long(&path, INDEXES_BYTES_MAX));
        }
        match indexes::validate_list(list, completions) {
            Ok(count) => total = Some(count),
            Err(why) => {
                total = Some(0);
                let why = format!("error parsing succeededIndexes: {why}");
                errors.push(FieldError::invalid(&path, list, &why));
            }
        }
    }
    if let Some(count) = rule.succeeded_count {
        let path = path.child("succeededCount");
        if count < 0 {
            errors.push(FieldError::invalid(&path, count, NOT_NEGATIVE));
        }
        if count > completions {
            let why = format!(
                "must be less than or equal to {completions} (the number of specified completions)"
            );
            errors.push(FieldError::invalid(&path, count, &why));
        }
        if let Some(total) = total.filter(|total| count > *total) {
            let why = format!(
                "must be less than or equal to {total} (the number of indexes in the specified \
                 succeededIndexes field)"
            );
            errors.push(FieldError::invalid(&path, count, &why));
        }
    }
    errors
}

/// Says which rules are accepted as they are in Kubernetes, but mean something else than their
/// author may think.
pub(super) fn warn_about_success(spec: &JobSpec) -> Vec<String> {
    let mut warnings = Vec::new();
    let rules = spec.success_policy.iter().flat_map(|policy| &policy.rules);
    for (at, rule) in rules.enumerate() {
        let path = format!("spec.successPolicy.rules[{at}]");
        if rule.succeeded_indexes.as_deref() == Some("") {
            warnings.push(format!(
                "{path}.succeededIndexes: an empty list names no index, so that this rule is never \
                 met"
            ));
        } else if rule.succeeded_count == Some(0) {
            warnings.push(format!(
                "{path}.succeededCount: 0 is met as soon as one index has succeeded"
            ));
        }
    }
    warnings
}

fn required_one_of(path: &Path, values: &[&str]) -> FieldError {
    let quoted: Vec<String> = values.iter().map(|value| format!("{value:?}")).collect();
    FieldError::required(path, &format!("valid values: [{}]", quoted.join(" ")))
}
