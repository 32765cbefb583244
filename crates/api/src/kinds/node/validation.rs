//! What a node may look like and what of it may change.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{NodeSpec, NodeStatus, Taint};
use serde_json::Value;

use crate::{
    field::{ErrorKind, ErrorList, FieldError, Path},
    kinds::{NOT_NEGATIVE, address::validate_cidr, each, view},
    names,
    quantity::Quantity,
    strategy::Json,
};

pub(super) fn validate(object: &Json) -> ErrorList {
    let mut errors = ErrorList::new();
    let spec: NodeSpec = view(object, "spec", &mut errors);
    let status: NodeStatus = view(object, "status", &mut errors);
    errors.extend(validate_taints(spec.taints.as_deref().unwrap_or_default()));
    errors.extend(validate_resources(&status));
    let cidrs = spec.pod_cidrs.unwrap_or_default();
    let path = Path::new("spec").child("podCIDRs");
    for (at, cidr) in cidrs.iter().enumerate() {
        errors.extend(validate_cidr(cidr, &path.index(at)));
    }
    let v6 = cidrs.iter().filter(|cidr| cidr.contains(':')).count();
    if cidrs.len() > 2 || cidrs.len() == 2 && v6 != 1 {
        let why = "may specify no more than one CIDR for each IP family";
        errors.push(FieldError::invalid(&path, &cidrs, why));
    }
    errors
}

/// What is checked on every update, of the node and of its status.
pub(super) fn validate_update(object: &Json, old: &Json) -> ErrorList {
    let mut errors = ErrorList::new();
    let spec: NodeSpec = view(object, "spec", &mut errors);
    let status: NodeStatus = view(object, "status", &mut errors);
    let old: NodeSpec = view(old, "spec", &mut ErrorList::new());
    errors.extend(validate_resources(&status));
    let addresses = status.addresses.unwrap_or_default();
    let mut seen = BTreeSet::new();
    for (at, address) in addresses.iter().enumerate() {
        if !seen.insert((&address.type_, &address.address)) {
            let path = Path::new("status").child("addresses").index(at);
            // Upstream shows its own representation, here and for taints.
            let (kind, address) = (&address.type_, &address.address);
            errors.push(duplicate(&path, &format!(r#"{{"Type":{kind:?},"Address":{address:?}}}"#)));
        }
    }
    let path = Path::new("spec");
    let old_cidrs = old.pod_cidrs.unwrap_or_default();
    if !old_cidrs.is_empty() && old_cidrs != spec.pod_cidrs.unwrap_or_default() {
        let why = "node updates may not change podCIDR except from \"\" to valid";
        errors.push(FieldError::forbidden(&path.child("podCIDRs"), why));
    }
    let old_id = old.provider_id.unwrap_or_default();
    if !old_id.is_empty() && old_id != spec.provider_id.unwrap_or_default() {
        let why = "node updates may not change providerID except from \"\" to valid";
        errors.push(FieldError::forbidden(&path.child("providerID"), why));
    }
    errors.extend(validate_taints(spec.taints.as_deref().unwrap_or_default()));
    if spec.external_id.unwrap_or_default() != old.external_id.unwrap_or_default() {
        errors.push(FieldError::forbidden(&path.child("externalID"), "may not be updated"));
    }
    errors
}

/// Taints are under `spec`, but upstream has always reported them under `metadata`.
fn validate_taints(taints: &[Taint]) -> ErrorList {
    let mut errors = ErrorList::new();
    let path = Path::new("metadata").child("taints");
    let mut seen = BTreeSet::new();
    for (at, taint) in taints.iter().enumerate() {
        let path = path.index(at);
        errors.extend(each(&path.child("key"), &taint.key, names::qualified_name(&taint.key)));
        let value = taint.value.as_deref().unwrap_or_default();
        let faults = names::label_value(value);
        if !faults.is_empty() {
            errors.push(FieldError::invalid(&path.child("value"), value, &faults.join(";")));
        }
        let effects = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
        if taint.effect.is_empty() {
            errors.push(FieldError::required(&path.child("effect"), ""));
        } else if !effects.contains(&taint.effect.as_str()) {
            let path = path.child("effect");
            errors.push(FieldError::not_supported(&path, &taint.effect, &effects));
        }
        if !seen.insert((&taint.key, &taint.effect)) {
            let (key, effect) = (&taint.key, &taint.effect);
            let added = taint.time_added.as_ref().map_or(Ok(Value::Null), serde_json::to_value);
            let shown = format!(
                r#"{{"Key":{key:?},"Value":{value:?},"Effect":{effect:?},"TimeAdded":{}}}"#,
                added.unwrap_or_default()
            );
            let why = "taints must be unique by key and effect pair";
            errors.push(duplicate(&path, &format!("{shown}: {why}")));
        }
    }
    errors
}

fn duplicate(path: &Path, shown: &str) -> FieldError {
    let body = format!("Duplicate value: {shown}");
    FieldError { kind: ErrorKind::Duplicate, path: path.clone(), body }
}

fn validate_resources(status: &NodeStatus) -> ErrorList {
    let lists = [("capacity", &status.capacity), ("allocatable", &status.allocatable)];
    let mut errors = ErrorList::new();
    for (member, resources) in lists {
        for (name, quantity) in resources.iter().flatten() {
            let path = Path::new("status").child(member).child(name);
            errors.extend(validate_quantity(name, &quantity.0, &path));
        }
    }
    errors
}

fn validate_quantity(name: &str, quantity: &str, path: &Path) -> ErrorList {
    let quantity_error = |why: &str| vec![FieldError::invalid(path, quantity, why)];
    match Quantity::parse(quantity) {
        Err(why) => quantity_error(&why.to_string()),
        Ok(amount) if amount.sign() < 0 => quantity_error(NOT_NEGATIVE),
        Ok(amount) if is_counted(name) && amount.milli_value() % 1000 != 0 => {
            quantity_error("must be an integer")
        }
        Ok(_) => ErrorList::new(),
    }
}

/// Whether a resource comes in whole pieces: pods, and everything that a vendor named.
fn is_counted(name: &str) -> bool {
    let is_native = !name.contains('/') || name.contains("kubernetes.io/");
    name == "pods" || !is_native && names::qualified_name(&format!("requests.{name}")).is_empty()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn texts(errors: &ErrorList) -> Vec<String> {
        errors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn nodes_are_checked_when_created() {
        let cases = [
            (json!({"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}}), vec![]),
            (
                json!({"spec": {"taints": [
                    {"key": "a", "effect": "NoSchedule"},
                    {"key": "a", "value": "x", "effect": "NoSchedule"},
                    {"key": "a", "effect": "Never"},
                    {"key": "b", "effect": ""},
                ]}}),
                vec![
                    "metadata.taints[1]: Duplicate value: \
                     {\"Key\":\"a\",\"Value\":\"x\",\"Effect\":\"NoSchedule\",\"TimeAdded\":null}: \
                     taints must be unique by key and effect pair",
                    "metadata.taints[2].effect: Unsupported value: \"Never\": supported values: \
                     \"NoSchedule\", \"PreferNoSchedule\", \"NoExecute\"",
                    "metadata.taints[3].effect: Required value",
                ],
            ),
            (
                json!({"status": {"capacity": {
                    "cpu": "1500m", "memory": "-1", "pods": "1.5", "nvidia.com/gpu": "500m",
                }}}),
                vec![
                    "status.capacity.memory: Invalid value: \"-1\": must be greater than or equal \
                     to 0",
                    "status.capacity.nvidia.com/gpu: Invalid value: \"500m\": must be an integer",
                    "status.capacity.pods: Invalid value: \"1.5\": must be an integer",
                ],
            ),
            (
                json!({"spec": {"podCIDRs": ["10.0.0.0/24", "10.0.1.0/24"]}}),
                vec![
                    "spec.podCIDRs: Invalid value: [\"10.0.0.0/24\",\"10.0.1.0/24\"]: may specify \
                     no more than one CIDR for each IP family",
                ],
            ),
        ];
        for (node, want) in cases {
            assert_eq!(texts(&validate(node.as_object().unwrap())), want, "{node}");
        }
    }

    #[test]
    fn an_identity_once_given_stays() {
        let old = json!({"spec": {"podCIDRs": ["10.0.0.0/24"], "providerID": "a://b"}});
        let twice =
            json!([{"type": "Hostname", "address": "h"}, {"type": "Hostname", "address": "h"}]);
        let cases: [(Value, Vec<&str>); 3] = [
            (old.clone(), vec![]),
            (
                json!({"spec": {}}),
                vec![
                    "spec.podCIDRs: Forbidden: node updates may not change podCIDR except from \
                     \"\" to valid",
                    "spec.providerID: Forbidden: node updates may not change providerID except \
                     from \"\" to valid",
                ],
            ),
            (
                json!({"spec": old["spec"], "status": {"addresses": twice}}),
                vec![
                    "status.addresses[1]: Duplicate value: \
                     {\"Type\":\"Hostname\",\"Address\":\"h\"}",
                ],
            ),
        ];
        for (node, want) in cases {
            let errors = validate_update(node.as_object().unwrap(), old.as_object().unwrap());
            assert_eq!(texts(&errors), want, "{node}");
        }
    }
}
