//! What is refused in a PodDisruptionBudget, with the rules and the words of
//! `ValidatePodDisruptionBudget`.

use std::collections::BTreeSet;

use k8s_openapi::{
    api::policy::v1::PodDisruptionBudgetSpec, apimachinery::pkg::util::intstr::IntOrString,
};
use serde_json::Value;

use super::super::{NOT_NEGATIVE, each, view};
use crate::{
    field::{ErrorList, FieldError, Path},
    json::{integer, list, text},
    meta::{validate_label_name, validate_label_selector},
    names,
    strategy::Json,
};

const POLICIES: &[&str] = &["AlwaysAllow", "IfHealthyBudget"];
const STATUSES: &[&str] = &["False", "True", "Unknown"];
const REASON_MAX: usize = 1024;
const MESSAGE_MAX: usize = 32 * 1024;

/// Says what is wrong with a budget.
pub(super) fn validate(object: &Json) -> ErrorList {
    let mut errors = ErrorList::new();
    let spec: PodDisruptionBudgetSpec = view(object, "spec", &mut errors);
    let path = Path::new("spec");
    if spec.min_available.is_some() && spec.max_unavailable.is_some() {
        let why = "minAvailable and maxUnavailable cannot be both set";
        errors.push(FieldError::invalid(&path, &spec, why));
    }
    for (bound, field) in
        [(&spec.min_available, "minAvailable"), (&spec.max_unavailable, "maxUnavailable")]
    {
        if let Some(bound) = bound {
            errors.extend(bound_faults(bound, &path.child(field)));
        }
    }
    if let Some(selector) = &spec.selector {
        errors.extend(validate_label_selector(selector, &path.child("selector")));
    }
    if let Some(policy) = &spec.unhealthy_pod_eviction_policy
        && !POLICIES.contains(&policy.as_str())
    {
        let path = path.child("unhealthyPodEvictionPolicy");
        errors.push(FieldError::not_supported(&path, policy, POLICIES));
    }
    errors
}

/// Says what is wrong with what is said of a budget.
pub(super) fn validate_status(object: &Json) -> ErrorList {
    let path = Path::new("status");
    let conditions = list(object, &["status", "conditions"]);
    let mut errors = condition_faults(conditions, &path.child("conditions"));
    for field in ["disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"] {
        if let Some(number) = integer(object, &["status", field]).filter(|number| *number < 0) {
            errors.push(FieldError::invalid(&path.child(field), number, NOT_NEGATIVE));
        }
    }
    errors
}

/// A number of pods, or a part of them.
fn bound_faults(bound: &IntOrString, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    match bound {
        IntOrString::Int(number) if *number < 0 => {
            errors.push(FieldError::invalid(path, number, NOT_NEGATIVE));
        }
        IntOrString::Int(_) => {}
        IntOrString::String(part) => {
            let faults = names::percent(part);
            // So many digits that they are no number are no part of anything either.
            let percent = part.strip_suffix('%').map_or(Ok(0), str::parse::<u64>);
            if faults.is_empty() && !percent.is_ok_and(|percent| percent <= 100) {
                errors.push(FieldError::invalid(path, part, "must not be greater than 100%"));
            }
            errors.extend(each(path, part, faults));
        }
    }
    errors
}

/// What is wrong with conditions, each and together.
fn condition_faults(conditions: &[Value], path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut types = BTreeSet::new();
    for (at, condition) in conditions.iter().enumerate() {
        let path = path.index(at);
        let Some(condition) = condition.as_object() else { continue };
        let kind = text(condition, &["type"]);
        if !types.insert(kind) {
            errors.push(FieldError::duplicate(&path.child("type"), kind));
        }
        errors.extend(validate_label_name(kind, &path.child("type")));
        let status = text(condition, &["status"]);
        if !STATUSES.contains(&status) {
            errors.push(FieldError::not_supported(&path.child("status"), status, STATUSES));
        }
        let generation = integer(condition, &["observedGeneration"]);
        if let Some(generation) = generation.filter(|number| *number < 0) {
            let why = "must be greater than or equal to zero";
            errors.push(FieldError::invalid(&path.child("observedGeneration"), generation, why));
        }
        if text(condition, &["lastTransitionTime"]).is_empty() {
            errors.push(FieldError::required(&path.child("lastTransitionTime"), ""));
        }
        errors.extend(reason_faults(text(condition, &["reason"]), &path.child("reason")));
        if text(condition, &["message"]).len() > MESSAGE_MAX {
            errors.push(FieldError::too_long(&path.child("message"), MESSAGE_MAX));
        }
    }
    errors
}

fn reason_faults(reason: &str, path: &Path) -> ErrorList {
    if reason.is_empty() {
        return [FieldError::required(path, "")].into_iter().collect();
    }
    let mut errors: ErrorList = each(path, reason, names::condition_reason(reason)).collect();
    if reason.len() > REASON_MAX {
        errors.push(FieldError::too_long(path, REASON_MAX));
    }
    errors
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn faults(check: fn(&Json) -> ErrorList, object: &Value) -> Vec<String> {
        let errors = check(object.as_object().unwrap());
        errors.iter().map(|error| format!("{}: {}", error.path, error.body)).collect()
    }

    #[test]
    fn a_bound_is_a_number_or_a_part() {
        let percent = "a valid percent string must be a numeric string followed by an ending '%' \
            (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')";
        let cases = [
            (json!({"minAvailable": 0}), vec![]),
            (json!({"maxUnavailable": "100%"}), vec![]),
            (json!({}), vec![]),
            (
                json!({"minAvailable": -1}),
                vec![
                    "spec.minAvailable: Invalid value: -1: must be greater than or equal to 0"
                        .to_owned(),
                ],
            ),
            (
                json!({"maxUnavailable": "101%"}),
                vec![
                    "spec.maxUnavailable: Invalid value: \"101%\": must not be greater than 100%"
                        .to_owned(),
                ],
            ),
            (
                json!({"minAvailable": "half"}),
                vec![format!("spec.minAvailable: Invalid value: \"half\": {percent}")],
            ),
            (
                json!({"unhealthyPodEvictionPolicy": "Never"}),
                vec![
                    "spec.unhealthyPodEvictionPolicy: Unsupported value: \"Never\": supported \
                     values: \"AlwaysAllow\", \"IfHealthyBudget\""
                        .to_owned(),
                ],
            ),
        ];
        for (spec, want) in cases {
            assert_eq!(faults(validate, &json!({"spec": spec})), want, "{spec}");
        }
        let both = json!({"spec": {"minAvailable": 1, "maxUnavailable": 1}});
        assert!(faults(validate, &both)[0].ends_with("cannot be both set"));
        let selector = json!({"spec": {"selector": {"matchLabels": {"a": "-"}}}});
        assert!(faults(validate, &selector)[0].starts_with("spec.selector.matchLabels"));
    }

    #[test]
    fn a_status_has_no_negative_numbers_and_whole_conditions() {
        let status = json!({"status": {
            "disruptionsAllowed": -1, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0,
            "conditions": [
                {"type": "DisruptionAllowed", "status": "Maybe", "reason": "1", "message": "",
                    "lastTransitionTime": null},
                {"type": "DisruptionAllowed", "status": "True", "reason": "", "message": "",
                    "lastTransitionTime": "2026-11-15T12:00:00Z"},
            ],
        }});
        let paths: Vec<String> = faults(validate_status, &status)
            .iter()
            .map(|fault| fault.split(": ").next().unwrap_or_default().to_owned())
            .collect();
        assert_eq!(
            paths,
            [
                "status.conditions[0].status",
                "status.conditions[0].lastTransitionTime",
                "status.conditions[0].reason",
                "status.conditions[1].type",
                "status.conditions[1].reason",
                "status.disruptionsAllowed",
            ]
        );
    }
}
