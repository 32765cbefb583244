//! Requests that follow from limits, and a pod's own from those of its containers.

use serde_json::{Value, json};

use super::super::{object_mut, objects_mut};
use crate::{
    amounts::{Amounts, of_containers},
    json,
    quantity::Quantity,
    strategy::Json,
};

/// A container that limits a resource without requesting it requests what it is limited to. Pods
/// get this, templates do not.
pub(super) fn requests_from_limits(spec: &mut Json) {
    for list in ["containers", "initContainers"] {
        for container in objects_mut(spec, list) {
            if let Some(resources) = object_mut(container, "resources") {
                copy_missing(resources);
            }
        }
    }
    pod_limits_for_huge_pages(spec);
    pod_requests(spec);
}

fn copy_missing(resources: &mut Json) {
    let Some(limits) = resources.get("limits").and_then(Value::as_object).cloned() else { return };
    let requests = json::object_mut(resources, "requests");
    for (name, amount) in limits {
        requests.entry(name).or_insert(amount);
    }
}

/// A pod that limits something itself limits huge pages to what its containers may use of them.
fn pod_limits_for_huge_pages(spec: &mut Json) {
    let own = |field: &str| {
        json::at(spec, &["resources", field])
            .and_then(Value::as_object)
            .cloned()
            .unwrap_or_default()
    };
    let (limits, requests) = (own("limits"), own("requests"));
    if limits.is_empty() && requests.is_empty() {
        return;
    }
    let missing: Vec<(String, Quantity)> = of_containers(spec, "limits")
        .into_iter()
        .filter(|(name, _)| name.starts_with("hugepages-"))
        .filter(|(name, _)| !limits.contains_key(name) && !requests.contains_key(name))
        .collect();
    insert(spec, "limits", missing);
}

/// A pod that limits something requests what its containers do, or else its limit.
fn pod_requests(spec: &mut Json) {
    let own = |field: &str| {
        json::at(spec, &["resources", field])
            .and_then(Value::as_object)
            .cloned()
            .unwrap_or_default()
    };
    let (limits, requests) = (own("limits"), own("requests"));
    if limits.is_empty() {
        return;
    }
    let mut missing: Amounts = of_containers(spec, "requests")
        .into_iter()
        .filter(|(name, _)| name == "cpu" || name == "memory")
        .collect();
    for (name, amount) in &limits {
        let is_known = name == "cpu" || name == "memory" || name.starts_with("hugepages-");
        if let Some(amount) = amount.as_str().and_then(|text| Quantity::parse(text).ok())
            && is_known
        {
            missing.entry(name.clone()).or_insert(amount);
        }
    }
    missing.retain(|name, _| !requests.contains_key(name));
    insert(spec, "requests", missing);
}

fn insert(spec: &mut Json, field: &str, amounts: impl IntoIterator<Item = (String, Quantity)>) {
    let mut amounts = amounts.into_iter().peekable();
    let Some(resources) = object_mut(spec, "resources") else { return };
    if amounts.peek().is_none() {
        return;
    }
    let list = json::object_mut(resources, field);
    for (name, amount) in amounts {
        list.insert(name, json!(amount.to_string()));
    }
}
