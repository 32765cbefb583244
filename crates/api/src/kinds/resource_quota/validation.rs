//! What is refused in a ResourceQuota, with the rules and the words of `ValidateResourceQuota`.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::Value;

use super::super::{IMMUTABLE, NOT_NEGATIVE};
use crate::{
    amounts,
    field::{ErrorList, FieldError, Path},
    json::{at, list, text},
    pod::validation::{is_extended, is_huge, resource_name},
    quantity::Quantity,
    strategy::Json,
};

const COUNTS: [&str; 9] = [
    "configmaps",
    "persistentvolumeclaims",
    "pods",
    "replicationcontrollers",
    "resourcequotas",
    "secrets",
    "services",
    "services.loadbalancers",
    "services.nodeports",
];

const AMOUNTS: [&str; 10] = [
    "cpu",
    "ephemeral-storage",
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
    "requests.storage",
];

/// What a quota of pods of some sort may count beside the pods.
const COMPUTE: [&str; 6] =
    ["cpu", "limits.cpu", "limits.memory", "memory", "requests.cpu", "requests.memory"];

const SCOPES: [&str; 7] = [
    "BestEffort",
    "CrossNamespacePodAffinity",
    "NotBestEffort",
    "NotTerminating",
    "PriorityClass",
    "Terminating",
    "VolumeAttributesClass",
];

/// Says what is wrong with a quota.
pub(super) fn validate(object: &Json) -> ErrorList {
    let path = Path::new("spec");
    let mut errors = amount_faults(object, "spec", "hard");
    errors.extend(scope_faults(object, &path.child("scopes")));
    let selector = at(object, &["spec", "scopeSelector"]).and_then(Value::as_object);
    if let Some(selector) = selector {
        errors.extend(selector_faults(object, selector, &path.child("scopeSelector")));
    }
    errors
}

/// Says what is wrong with the change of a quota.
pub(super) fn validate_update(object: &Json, old: &Json) -> ErrorList {
    let mut errors = validate(object);
    let scopes = |object| -> BTreeSet<&str> {
        list(object, &["spec", "scopes"]).iter().filter_map(Value::as_str).collect()
    };
    if scopes(object) != scopes(old) {
        let path = Path::new("spec").child("scopes");
        errors.push(FieldError::invalid(&path, shown_scopes(object), IMMUTABLE));
    }
    errors
}

/// Says what is wrong with what is said to be used.
pub(super) fn validate_status(object: &Json) -> ErrorList {
    let mut errors = amount_faults(object, "status", "hard");
    errors.extend(amount_faults(object, "status", "used"));
    errors
}

fn amount_faults(object: &Json, part: &str, field: &str) -> ErrorList {
    let mut errors = ErrorList::new();
    for (name, amount) in amounts::read(at(object, &[part, field])) {
        let path = Path::new(part).child(field).key(&name);
        errors.extend(name_faults(&name, &path));
        errors.extend(value_faults(&name, &amount, &path));
    }
    errors
}

fn name_faults(name: &str, path: &Path) -> ErrorList {
    let mut errors = resource_name(name, path);
    if !name.contains('/') && !is_standard(name) {
        errors.push(FieldError::invalid(path, name, "must be a standard resource for quota"));
    }
    errors
}

fn value_faults(name: &str, amount: &Quantity, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    if amount.sign() < 0 {
        errors.push(FieldError::invalid(path, amount.to_string(), NOT_NEGATIVE));
    }
    let is_number = COUNTS.contains(&name) || is_extended(name);
    if is_number && amount.milli_value() % 1000 != 0 {
        errors.push(FieldError::invalid(path, amount.to_string(), "must be an integer"));
    }
    errors
}

fn is_standard(name: &str) -> bool {
    COUNTS.contains(&name)
        || AMOUNTS.contains(&name)
        || is_huge(name)
        || name.strip_prefix("requests.").is_some_and(is_huge)
}

fn is_valid_for(scope: &str, resource: &str) -> bool {
    let is_of_pods = resource == "pods" || COMPUTE.contains(&resource);
    match scope {
        "BestEffort" => resource == "pods",
        "VolumeAttributesClass" => {
            matches!(resource, "persistentvolumeclaims" | "requests.storage")
        }
        scope if SCOPES.contains(&scope) => is_of_pods,
        _ => true,
    }
}

/// The resources that a quota of this scope cannot count.
fn unfit<'a>(hard: &'a Json, scope: &'a str) -> impl Iterator<Item = &'a String> {
    hard.keys().filter(move |name| is_standard(name) && !is_valid_for(scope, name))
}

fn hard(object: &Json) -> Json {
    at(object, &["spec", "hard"]).and_then(Value::as_object).cloned().unwrap_or_default()
}

fn shown_scopes(object: &Json) -> Value {
    match list(object, &["spec", "scopes"]) {
        [] => Value::Null,
        scopes => scopes.into(),
    }
}

fn scope_faults(object: &Json, path: &Path) -> ErrorList {
    let scopes: Vec<&str> =
        list(object, &["spec", "scopes"]).iter().filter_map(Value::as_str).collect();
    let (hard, shown) = (hard(object), shown_scopes(object));
    let fault = |why: &str| FieldError::invalid(path, &shown, why);
    let mut errors = ErrorList::new();
    for scope in &scopes {
        if !SCOPES.contains(scope) {
            errors.push(fault("unsupported scope"));
        }
        errors.extend(unfit(&hard, scope).map(|_| fault("unsupported scope applied to resource")));
    }
    errors.extend(conflicts(&scopes).map(|()| fault("conflicting scopes")));
    errors
}

fn conflicts(scopes: &[&str]) -> impl Iterator<Item = ()> {
    [["BestEffort", "NotBestEffort"], ["Terminating", "NotTerminating"]]
        .into_iter()
        .filter(|pair| pair.iter().all(|scope| scopes.contains(scope)))
        .map(|_| ())
}

fn selector_faults(object: &Json, selector: &Json, path: &Path) -> ErrorList {
    let path = path.child("matchExpressions");
    let hard = hard(object);
    let mut errors = ErrorList::new();
    let mut scopes = Vec::new();
    for one in list(selector, &["matchExpressions"]).iter().filter_map(Value::as_object) {
        let scope = text(one, &["scopeName"]);
        if !SCOPES.contains(&scope) {
            errors.push(FieldError::invalid(&path.child("scopeName"), scope, "unsupported scope"));
        }
        let why = "unsupported scope applied to resource";
        let shown = internal(selector);
        errors.extend(unfit(&hard, scope).map(|_| FieldError::invalid(&path, &shown, why)));
        errors.extend(operator_faults(one, scope, &path));
        scopes.push(scope);
    }
    let shown = shown_scopes(object);
    errors.extend(
        conflicts(&scopes).map(|()| FieldError::invalid(&path, &shown, "conflicting scopes")),
    );
    errors
}

fn operator_faults(one: &Json, scope: &str, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let (operator, values) = (text(one, &["operator"]), list(one, &["values"]));
    let has_no_value =
        SCOPES.contains(&scope) && !matches!(scope, "PriorityClass" | "VolumeAttributesClass");
    if has_no_value && operator != "Exists" {
        let why = "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, \
                   ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, \
                   ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity";
        errors.push(FieldError::invalid(&path.child("operator"), operator, why));
    }
    match operator {
        "In" | "NotIn" if values.is_empty() => {
            let why =
                "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector";
            errors.push(FieldError::required(&path.child("values"), why));
        }
        "Exists" | "DoesNotExist" if !values.is_empty() => {
            let why =
                "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector";
            errors.push(FieldError::invalid(&path.child("values"), values, why));
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
        _ => {
            let why = "not a valid selector operator";
            errors.push(FieldError::invalid(&path.child("operator"), operator, why));
        }
    }
    errors
}

/// A selector as upstream shows it: by the names that its fields have in Go, in their order.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Internal<'a> {
    match_expressions: Vec<Expression<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Expression<'a> {
    scope_name: &'a str,
    operator: &'a str,
    values: Option<&'a [Value]>,
}

fn internal(selector: &Json) -> Internal<'_> {
    let listed = list(selector, &["matchExpressions"]).iter().filter_map(Value::as_object);
    let expression = |one| Expression {
        scope_name: text(one, &["scopeName"]),
        operator: text(one, &["operator"]),
        values: Some(list(one, &["values"])).filter(|values| !values.is_empty()),
    };
    Internal { match_expressions: listed.map(expression).collect() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn texts(errors: &ErrorList) -> Vec<String> {
        errors.iter().map(ToString::to_string).collect()
    }

    fn quota(spec: Value) -> Json {
        json!({"spec": spec}).as_object().unwrap().clone()
    }

    #[test]
    fn only_what_can_be_counted_has_a_quota() {
        let cases: [(Value, &[&str]); 7] = [
            (json!({"pods": "4", "requests.nvidia.com/gpu": "2", "count/jobs.batch": "1"}), &[]),
            (json!({"gold.storageclass.storage.k8s.io/requests.storage": "5Gi"}), &[]),
            (json!({"hugepages-2Mi": "4Mi", "requests.hugepages-2Mi": "4Mi"}), &[]),
            (
                json!({"things": "4"}),
                &[
                    "spec.hard[things]: Invalid value: \"things\": must be a standard resource \
                     type or fully qualified",
                    "spec.hard[things]: Invalid value: \"things\": must be a standard resource \
                     for quota",
                ],
            ),
            (
                json!({"storage": "4"}),
                &["spec.hard[storage]: Invalid value: \"storage\": must be a standard resource \
                   for quota"],
            ),
            (
                json!({"cpu": "-1"}),
                &["spec.hard[cpu]: Invalid value: \"-1\": must be greater than or equal to 0"],
            ),
            (
                json!({"pods": "1500m"}),
                &["spec.hard[pods]: Invalid value: \"1500m\": must be an integer"],
            ),
        ];
        for (hard, want) in cases {
            assert_eq!(texts(&validate(&quota(json!({"hard": hard})))), want);
        }
    }

    #[test]
    fn scopes_fit_each_other_and_what_is_counted() {
        let cases: [(Value, &[&str]); 4] = [
            (json!({"hard": {"pods": "1", "cpu": "1"}, "scopes": ["NotBestEffort"]}), &[]),
            (
                json!({"hard": {"pods": "1"}, "scopes": ["Odd"]}),
                &["spec.scopes: Invalid value: [\"Odd\"]: unsupported scope"],
            ),
            (
                json!({"hard": {"cpu": "1"}, "scopes": ["BestEffort"]}),
                &["spec.scopes: Invalid value: [\"BestEffort\"]: unsupported scope applied to \
                   resource"],
            ),
            (
                json!({"hard": {"pods": "1"}, "scopes": ["Terminating", "NotTerminating"]}),
                &["spec.scopes: Invalid value: [\"Terminating\",\"NotTerminating\"]: conflicting \
                   scopes"],
            ),
        ];
        for (spec, want) in cases {
            assert_eq!(texts(&validate(&quota(spec))), want);
        }
        let (old, new) = (json!({"scopes": ["BestEffort"]}), json!({}));
        assert_eq!(
            texts(&validate_update(&quota(new), &quota(old))),
            ["spec.scopes: Invalid value: null: field is immutable"]
        );
    }

    #[test]
    fn selectors_say_what_they_mean() {
        let select = |scope: &str, operator: &str, values: &[&str]| {
            let one = json!({"scopeName": scope, "operator": operator, "values": values});
            json!({"hard": {"pods": "1"}, "scopeSelector": {"matchExpressions": [one]}})
        };
        let at = |rest: &str| format!("spec.scopeSelector.matchExpressions{rest}");
        let cases = [
            (select("PriorityClass", "In", &["high"]), vec![]),
            (
                select("PriorityClass", "In", &[]),
                vec![at(".values: Required value: must be at least one value when `operator` is \
                         'In' or 'NotIn' for scope selector")],
            ),
            (
                select("PriorityClass", "Exists", &["high"]),
                vec![at(
                    ".values: Invalid value: [\"high\"]: must be no value when `operator` is \
                         'Exist' or 'DoesNotExist' for scope selector",
                )],
            ),
            (
                select("VolumeAttributesClass", "Exists", &[]),
                vec![at(": Invalid value: {\"MatchExpressions\":[{\"ScopeName\":\
                         \"VolumeAttributesClass\",\"Operator\":\"Exists\",\"Values\":null}]}: \
                         unsupported scope applied to resource")],
            ),
            (
                select("PriorityClass", "Odd", &[]),
                vec![at(".operator: Invalid value: \"Odd\": not a valid selector operator")],
            ),
        ];
        for (spec, want) in cases {
            assert_eq!(texts(&validate(&quota(spec))), want);
        }
    }
}
