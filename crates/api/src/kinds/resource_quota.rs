//! ResourceQuota: how much there may be in a namespace. [`crate::quota`] counts.

mod validation;

use jiff::Timestamp;
use serde_json::Value;

use crate::{
    amounts,
    duration::age,
    field::ErrorList,
    json::at,
    names,
    quantity::Quantity,
    strategy::{Column, Json, Strategy},
    table::{self, AGE, NAME, column},
};

const COLUMNS: &[Column] = &[
    NAME,
    column("Request", "What is used and what there may be, but for limits."),
    column("Limit", "What limits come to and may come to."),
    AGE,
];

/// ResourceQuota.
#[derive(Debug)]
pub struct ResourceQuotaStrategy;

impl Strategy for ResourceQuotaStrategy {
    fn validate_create(&self, object: &Json) -> ErrorList {
        validation::validate(object)
    }

    fn validate_update(&self, object: &Json, old: &Json) -> ErrorList {
        validation::validate_update(object, old)
    }

    fn validate_status_update(&self, object: &Json, _old: &Json) -> ErrorList {
        validation::validate_status(object)
    }

    /// Requests that could never be met, as limits are reached before.
    fn warnings(&self, object: &Json, old: Option<&Json>) -> Vec<String> {
        if old.is_some() {
            return Vec::new();
        }
        let hard = amounts::read(at(object, &["spec", "hard"]));
        let mut warnings = Vec::new();
        for resource in ["cpu", "memory", "storage", "ephemeral-storage"] {
            let mut name = format!("requests.{resource}");
            if !hard.contains_key(&name) && matches!(resource, "cpu" | "memory") {
                resource.clone_into(&mut name);
            }
            let limit_name = format!("limits.{resource}");
            let (Some(request), Some(limit)) = (hard.get(&name), hard.get(&limit_name)) else {
                continue;
            };
            if request > limit {
                warnings.push(format!(
                    "ResourceQuota {name} ({request}) should be less than {limit_name} ({limit})"
                ));
            }
        }
        warnings
    }

    fn delete_returns_object(&self) -> bool {
        true
    }

    fn validate_name(&self, name: &str, is_prefix: bool) -> Vec<String> {
        names::name_is_dns_subdomain(name, is_prefix)
    }

    fn has_status(&self) -> bool {
        true
    }

    fn has_generation(&self) -> bool {
        false
    }

    fn columns(&self) -> &'static [Column] {
        COLUMNS
    }

    fn row(&self, object: &Json, now: Timestamp) -> Vec<Value> {
        let used = amounts::read(at(object, &["status", "used"]));
        let hard = amounts::read(at(object, &["status", "hard"]));
        let (mut requests, mut limits) = (Vec::new(), Vec::new());
        for (name, most) in &hard {
            let used = used.get(name).copied().unwrap_or(Quantity::ZERO);
            let cell = format!("{name}: {used}/{most}");
            if name.starts_with("limits.") { limits.push(cell) } else { requests.push(cell) }
        }
        vec![
            table::name(object),
            requests.join(", ").into(),
            limits.join(", ").into(),
            age(object, now).into(),
        ]
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_row_has_what_is_used_of_what() {
        let quota = json!({"metadata": {"name": "q"}, "status": {
            "hard": {"pods": "4", "limits.cpu": "2", "cpu": "1", "requests.nvidia.com/gpu": "8"},
            "used": {"pods": "3", "limits.cpu": "500m", "cpu": "0"},
        }});
        let now = "2026-11-15T12:00:00Z".parse().unwrap();
        let row = ResourceQuotaStrategy.row(quota.as_object().unwrap(), now);
        let requests = "cpu: 0/1, pods: 3/4, requests.nvidia.com/gpu: 0/8";
        assert_eq!(Value::from(row), json!(["q", requests, "limits.cpu: 500m/2", "<unknown>"]));
    }

    #[test]
    fn requests_beyond_limits_are_warned_of() {
        let cases: [(Value, &[&str]); 4] = [
            (json!({"requests.cpu": "1", "limits.cpu": "1"}), &[]),
            (
                json!({"requests.cpu": "2", "limits.cpu": "1", "cpu": "5"}),
                &["ResourceQuota requests.cpu (2) should be less than limits.cpu (1)"],
            ),
            (
                json!({"memory": "2Gi", "limits.memory": "1Gi"}),
                &["ResourceQuota memory (2Gi) should be less than limits.memory (1Gi)"],
            ),
            (json!({"ephemeral-storage": "2Gi", "limits.ephemeral-storage": "1Gi"}), &[]),
        ];
        for (hard, want) in cases {
            let quota = json!({"spec": {"hard": hard}});
            assert_eq!(ResourceQuotaStrategy.warnings(quota.as_object().unwrap(), None), want);
        }
    }
}
