//! PodDisruptionBudget: how many of some pods must stay when others are evicted.

mod validation;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1 as meta;
use serde::Deserialize;
use serde_json::Value;

use crate::{
    duration::age,
    field::ErrorList,
    json::{at, integer},
    names,
    selector::LabelSelector,
    strategy::{Column, Json, Strategy},
    table::{self, AGE, NAME, column},
};

/// Condition that says whether a pod may be evicted now.
pub const CONDITION: &str = "DisruptionAllowed";
/// Reason of the condition when there are pods to spare.
pub const SUFFICIENT_PODS: &str = "SufficientPods";
/// Reason of the condition when there are none.
pub const INSUFFICIENT_PODS: &str = "InsufficientPods";
/// Reason of the condition when nobody knows.
pub const SYNC_FAILED: &str = "SyncFailed";

const COLUMNS: &[Column] = &[
    NAME,
    column("Min Available", "How many pods, or what part of them, must be there."),
    column("Max Unavailable", "How many pods, or what part of them, may be missing."),
    Column {
        kind: "integer",
        ..column("Allowed Disruptions", "How many pods may be evicted as things are.")
    },
    AGE,
];

/// Whether a budget is over a pod of its namespace. One that says nothing is over none.
pub fn selects(budget: &Json, pod: &Json) -> bool {
    let given = at(budget, &["spec", "selector"]).map(meta::LabelSelector::deserialize);
    let Ok(given) = given.transpose() else { return false };
    LabelSelector::from_meta(given.as_ref()).is_ok_and(|selector| selector.matches_object(pod))
}

/// PodDisruptionBudget.
#[derive(Debug)]
pub struct DisruptionBudgetStrategy;

impl Strategy for DisruptionBudgetStrategy {
    fn validate_create(&self, object: &Json) -> ErrorList {
        validation::validate(object)
    }

    fn validate_status_update(&self, object: &Json, _old: &Json) -> ErrorList {
        validation::validate_status(object)
    }

    fn validate_name(&self, name: &str, is_prefix: bool) -> Vec<String> {
        names::name_is_dns_subdomain(name, is_prefix)
    }

    fn has_status(&self) -> bool {
        true
    }

    fn allows_unconditional_update(&self) -> bool {
        false
    }

    fn columns(&self) -> &'static [Column] {
        COLUMNS
    }

    fn row(&self, object: &Json, now: Timestamp) -> Vec<Value> {
        let bound = |field| match at(object, &["spec", field]) {
            None | Some(Value::Null) => "N/A".to_owned(),
            Some(Value::String(part)) => part.clone(),
            Some(number) => number.to_string(),
        };
        vec![
            table::name(object),
            bound("minAvailable").into(),
            bound("maxUnavailable").into(),
            integer(object, &["status", "disruptionsAllowed"]).unwrap_or_default().into(),
            age(object, now).into(),
        ]
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_budget_is_over_what_it_selects() {
        let pod = json!({"metadata": {"labels": {"app": "a"}}});
        for (selector, want) in [
            (json!({"matchLabels": {"app": "a"}}), true),
            (json!({"matchLabels": {"app": "b"}}), false),
            (json!({"matchExpressions": [{"key": "app", "operator": "Odd"}]}), false),
            (json!({}), true),
            (Value::Null, false),
        ] {
            let budget = json!({"spec": {"selector": selector}});
            let is_over = selects(budget.as_object().unwrap(), pod.as_object().unwrap());
            assert_eq!(is_over, want, "{selector}");
        }
    }

    #[test]
    fn a_row_has_what_must_be_there_and_what_may_go() {
        let now = "2026-11-15T12:00:00Z".parse().unwrap();
        let row = |object: Value| {
            Value::from(DisruptionBudgetStrategy.row(object.as_object().unwrap(), now))
        };
        let at_least = json!({"metadata": {"name": "b"}, "spec": {"minAvailable": 2},
            "status": {"disruptionsAllowed": 1}});
        assert_eq!(row(at_least), json!(["b", "2", "N/A", 1, "<unknown>"]));
        let at_most = json!({"metadata": {"name": "b"}, "spec": {"maxUnavailable": "30%"}});
        assert_eq!(row(at_most), json!(["b", "N/A", "30%", 0, "<unknown>"]));
    }
}
