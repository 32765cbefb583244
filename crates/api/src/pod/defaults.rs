//! What is filled in when a user leaves it out.

use serde_json::{Value, json};

use super::{CONTAINER_LISTS, object_mut, objects_mut};
use crate::{json::set_default, quantity, quantity::Quantity, strategy::Json};

mod container;
mod resources;
mod volume;

/// Fills in a Pod: its spec as in a template, and what only a Pod itself gets.
pub fn fill_pod(pod: &mut Json) {
    let Some(spec) = object_mut(pod, "spec") else { return };
    fill_pod_spec(spec);
    if spec["terminationGracePeriodSeconds"].as_i64().is_some_and(|seconds| seconds < 0) {
        // Once accepted, long since meaning "as little as can be".
        spec.insert("terminationGracePeriodSeconds".to_owned(), json!(1));
    }
    resources::requests_from_limits(spec);
    set_default(spec, "enableServiceLinks", true);
    if spec.get("hostNetwork").and_then(Value::as_bool) == Some(true) {
        host_ports_from_container_ports(spec);
    }
}

/// Fills in the spec of a Pod or of a pod template. Doing it again changes nothing.
pub fn fill_pod_spec(spec: &mut Json) {
    set_default_text(spec, "dnsPolicy", "ClusterFirst");
    set_default_text(spec, "restartPolicy", "Always");
    set_default(spec, "securityContext", json!({}));
    set_default(spec, "terminationGracePeriodSeconds", 30);
    set_default_text(spec, "schedulerName", "default-scheduler");
    mirror_service_account(spec);
    for volume in objects_mut(spec, "volumes") {
        volume::fill(volume);
    }
    for list in CONTAINER_LISTS {
        for container in objects_mut(spec, list) {
            container::fill(container);
        }
    }
    resource_list(spec, "overhead");
    if let Some(resources) = object_mut(spec, "resources") {
        resource_list(resources, "limits");
        resource_list(resources, "requests");
    }
}

/// `serviceAccount` is the old name of `serviceAccountName`; both are always served.
pub(super) fn mirror_service_account(spec: &mut Json) {
    let new = spec.get("serviceAccountName").and_then(Value::as_str).unwrap_or_default();
    let old = spec.get("serviceAccount").and_then(Value::as_str).unwrap_or_default();
    let name = if new.is_empty() { old } else { new }.to_owned();
    if !name.is_empty() {
        spec.insert("serviceAccountName".to_owned(), Value::from(name.clone()));
        spec.insert("serviceAccount".to_owned(), Value::from(name));
    }
}

/// With the host's network a container's port is the host's.
fn host_ports_from_container_ports(spec: &mut Json) {
    for list in ["initContainers", "containers"] {
        for container in objects_mut(spec, list) {
            for port in objects_mut(container, "ports") {
                if let Some(number) = port.get("containerPort").cloned() {
                    set_default_number(port, "hostPort", number);
                }
            }
        }
    }
}

/// Sets `key` unless it holds a text that is not empty.
fn set_default_text(object: &mut Json, key: &str, value: &str) {
    if object.get(key).and_then(Value::as_str).unwrap_or_default().is_empty() {
        object.insert(key.to_owned(), Value::from(value));
    }
}

/// Sets `key` unless it holds a number that is not zero.
fn set_default_number(object: &mut Json, key: &str, value: impl Into<Value>) {
    if object.get(key).and_then(Value::as_i64).unwrap_or_default() == 0 {
        object.insert(key.to_owned(), value.into());
    }
}

/// Writes the quantity at `key` canonically. Numbers become texts; what is no quantity stays, for
/// validation to refuse.
fn canonical_quantity(object: &mut Json, key: &str) {
    let Some(value) = object.get_mut(key) else { return };
    let text = match &*value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => return,
    };
    *value = Value::from(quantity::canonical(&text).unwrap_or(text));
}

/// Writes the quantities of a resource list canonically, none finer than a thousandth.
fn resource_list(object: &mut Json, key: &str) {
    let Some(list) = object_mut(object, key) else { return };
    let names: Vec<String> = list.keys().cloned().collect();
    for name in names {
        canonical_quantity(list, &name);
        let amount = list[&name].as_str().and_then(|text| Quantity::parse(text).ok());
        if let Some(amount) = amount {
            let rounded = amount.rounded(-3);
            if rounded != amount {
                list.insert(name, Value::from(rounded.to_string()));
            }
        }
    }
}

#[cfg(test)]
mod tests;
