//! What steers where and when a pod is placed: tolerations, spreading, gates.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{
    PodReadinessGate, PodSchedulingGate, Toleration, TopologySpreadConstraint,
};

use super::{
    affinity,
    rules::{list, option, positive, qualified, text},
};
use crate::{
    field::{ErrorList, FieldError, Path},
    meta::{validate_label_name, validate_label_selector},
    names,
};

/// Says what is wrong with tolerations.
pub(super) fn validate_tolerations(tolerations: &[Toleration], path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    for (at, toleration) in tolerations.iter().enumerate() {
        errors.extend(validate_toleration(toleration, &path.index(at)));
    }
    errors
}

fn validate_toleration(toleration: &Toleration, path: &Path) -> ErrorList {
    const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
    let (key, operator) = (text(&toleration.key), text(&toleration.operator));
    let (value, effect) = (text(&toleration.value), text(&toleration.effect));
    let operator_path = path.child("operator");
    let mut errors = ErrorList::new();
    if !key.is_empty() {
        errors.extend(validate_label_name(key, &path.child("key")));
    } else if operator != "Exists" {
        let why = "operator must be Exists when `key` is empty, which means \"match all values and \
                   all keys\"";
        errors.push(FieldError::invalid(&operator_path, operator, why));
    }
    if toleration.toleration_seconds.is_some() && effect != "NoExecute" {
        let why = "effect must be 'NoExecute' when `tolerationSeconds` is set";
        errors.push(FieldError::invalid(&path.child("effect"), effect, why));
    }
    match operator {
        "" | "Equal" => {
            let faults = names::label_value(value);
            if !faults.is_empty() {
                errors.push(FieldError::invalid(&operator_path, value, &faults.join(";")));
            }
        }
        "Exists" => {
            if !value.is_empty() {
                let why = "value must be empty when `operator` is 'Exists'";
                errors.push(FieldError::invalid(&operator_path, value, why));
            }
        }
        "Lt" | "Gt" => errors.push(FieldError::not_supported(
            &operator_path,
            operator,
            &["Equal", "Exists", "Lt", "Gt"],
        )),
        other => {
            errors.push(FieldError::not_supported(&operator_path, other, &["Equal", "Exists"]));
        }
    }
    if !effect.is_empty() {
        errors.extend(option(effect, &EFFECTS, &path.child("effect")));
    }
    errors
}

/// Says what is wrong with `topologySpreadConstraints`.
pub(super) fn validate_spread(constraints: &[TopologySpreadConstraint], path: &Path) -> ErrorList {
    const ACTIONS: [&str; 2] = ["DoNotSchedule", "ScheduleAnyway"];
    let mut errors = ErrorList::new();
    for (at, constraint) in constraints.iter().enumerate() {
        let path = path.index(at);
        let (key, action) = (&constraint.topology_key, constraint.when_unsatisfiable.as_str());
        errors.extend(positive(constraint.max_skew.into(), &path.child("maxSkew")));
        if key.is_empty() {
            errors.push(FieldError::required(&path.child("topologyKey"), "can not be empty"));
        }
        errors.extend(option(action, &ACTIONS, &path.child("whenUnsatisfiable")));
        let is_same = |other: &&TopologySpreadConstraint| {
            other.topology_key == *key && other.when_unsatisfiable == action
        };
        if constraints[at + 1..].iter().any(|other| is_same(&other)) {
            let path = path.child("{topologyKey, whenUnsatisfiable}");
            errors.push(FieldError::duplicate(&path, format!("{{{key}, {action}}}")));
        }
        errors.extend(min_domains(constraint, &path.child("minDomains")));
        let policies = [
            ("nodeAffinityPolicy", &constraint.node_affinity_policy),
            ("nodeTaintsPolicy", &constraint.node_taints_policy),
        ];
        for (field, policy) in policies {
            if let Some(policy) = policy {
                errors.extend(option(policy, &["Honor", "Ignore"], &path.child(field)));
            }
        }
        let selector = constraint.label_selector.as_ref();
        let keys = list(&constraint.match_label_keys);
        errors.extend(affinity::label_keys(keys, &[], selector, &path));
        if let Some(selector) = selector {
            errors.extend(validate_label_selector(selector, &path.child("labelSelector")));
        }
    }
    errors
}

fn min_domains(constraint: &TopologySpreadConstraint, path: &Path) -> ErrorList {
    let Some(count) = constraint.min_domains else { return ErrorList::new() };
    let mut errors: ErrorList = positive(count.into(), path).into_iter().collect();
    let action = &constraint.when_unsatisfiable;
    if action != "DoNotSchedule" {
        let why =
            format!("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}");
        errors.push(FieldError::invalid(path, count, &why));
    }
    errors
}

/// Says what is wrong with `schedulingGates`.
pub(super) fn validate_gates(gates: &[PodSchedulingGate], path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut seen = BTreeSet::new();
    for (at, gate) in gates.iter().enumerate() {
        let path = path.index(at);
        errors.extend(qualified(&gate.name, &path));
        if !seen.insert(&gate.name) {
            errors.push(FieldError::duplicate(&path, &gate.name));
        }
    }
    errors
}

/// Says what is wrong with `readinessGates`.
pub(super) fn validate_readiness_gates(gates: &[PodReadinessGate], path: &Path) -> ErrorList {
    let gates = gates.iter().enumerate();
    gates
        .flat_map(|(at, gate)| {
            qualified(&gate.condition_type, &path.index(at).child("conditionType"))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::tests::assert_spec;

    fn check(field: &str, value: Value, want: &[&str]) {
        let mut spec = json!({"containers": [{"name": "c", "image": "i"}]});
        spec[field] = value;
        assert_spec(spec, want);
    }

    #[test]
    fn tolerations_are_refused_in_upstream_words() {
        check(
            "tolerations",
            json!([
                {"operator": "Equal"},
                {"key": "a", "operator": "Exists", "value": "x"},
                {"key": "a", "effect": "NoSchedule", "tolerationSeconds": 1},
                {"key": "a", "operator": "Like"},
                {"key": "a", "effect": "Sometimes"},
            ]),
            &[
                "spec.tolerations[0].operator: Invalid value: \"Equal\": operator must be Exists when `key` is empty, which means \"match all values and all keys\"",
                "spec.tolerations[1].operator: Invalid value: \"x\": value must be empty when `operator` is 'Exists'",
                "spec.tolerations[2].effect: Invalid value: \"NoSchedule\": effect must be 'NoExecute' when `tolerationSeconds` is set",
                "spec.tolerations[3].operator: Unsupported value: \"Like\": supported values: \"Equal\", \"Exists\"",
                "spec.tolerations[4].effect: Unsupported value: \"Sometimes\": supported values: \"NoSchedule\", \"PreferNoSchedule\", \"NoExecute\"",
            ],
        );
    }

    #[test]
    fn spreading_is_refused_in_upstream_words() {
        check(
            "topologySpreadConstraints",
            json!([
                {"maxSkew": 0, "topologyKey": "", "whenUnsatisfiable": "Retry"},
                {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway", "minDomains": 2, "nodeTaintsPolicy": "X"},
                {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"},
            ]),
            &[
                "spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than zero",
                "spec.topologySpreadConstraints[0].topologyKey: Required value: can not be empty",
                "spec.topologySpreadConstraints[0].whenUnsatisfiable: Unsupported value: \"Retry\": supported values: \"DoNotSchedule\", \"ScheduleAnyway\"",
                "spec.topologySpreadConstraints[1].{topologyKey, whenUnsatisfiable}: Duplicate value: \"{zone, ScheduleAnyway}\"",
                "spec.topologySpreadConstraints[1].minDomains: Invalid value: 2: can only use minDomains if whenUnsatisfiable=DoNotSchedule, not ScheduleAnyway",
                "spec.topologySpreadConstraints[1].nodeTaintsPolicy: Unsupported value: \"X\": supported values: \"Honor\", \"Ignore\"",
            ],
        );
    }

    #[test]
    fn gates_are_named_once() {
        check(
            "schedulingGates",
            json!([{"name": "x/a"}, {"name": "x/a"}]),
            &["spec.schedulingGates[1]: Duplicate value: \"x/a\""],
        );
        check(
            "readinessGates",
            json!([{"conditionType": "/a"}]),
            &[
                "spec.readinessGates[0].conditionType: Invalid value: \"/a\": prefix part must be non-empty",
            ],
        );
    }
}
