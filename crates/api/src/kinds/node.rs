//! Node: a machine that runs pods.

mod validation;

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::Value;

use crate::{
    duration::{UNKNOWN, age},
    field::ErrorList,
    json::{at, flag, list, text},
    labels::{NODE_ROLE, NODE_ROLE_PREFIX},
    names,
    strategy::{Column, Json, Strategy, WriteContext, keep},
    table::{self, AGE, NAME, NONE, column, or_none, wide},
};

const COLUMNS: &[Column] = &[
    NAME,
    column("Status", "Whether the node is ready, and whether pods may be placed on it."),
    column("Roles", "What the labels say the node is for."),
    AGE,
    column("Version", "Version of the node's agent."),
    wide("Internal-IP", "Address inside the cluster."),
    wide("External-IP", "Address outside the cluster."),
    wide("OS-Image", "Operating system."),
    wide("Kernel-Version", "Kernel version and architecture."),
    wide("Container-Runtime", "What runs the containers."),
];

/// Node.
#[derive(Debug)]
pub struct NodeStrategy;

impl Strategy for NodeStrategy {
    fn fill_defaults(&self, object: &mut Json) {
        if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) {
            match_pod_ranges(spec);
        }
        if let Some(status) = object.get_mut("status").and_then(Value::as_object_mut)
            && at(status, &["allocatable"]).is_none_or(Value::is_null)
            && let Some(capacity) = status.get("capacity").cloned()
        {
            status.insert("allocatable".to_owned(), capacity);
        }
    }

    /// Unlike other kinds, a node brings its status when it is created.
    fn prepare_create(&self, object: &mut Json, _context: &WriteContext) {
        drop_dynamic_config(object, &Json::new());
    }

    fn prepare_update(&self, object: &mut Json, old: &Json, _context: &WriteContext) {
        keep(object, old, "status");
        drop_dynamic_config(object, old);
    }

    fn prepare_status_update(&self, object: &mut Json, old: &Json, _context: &WriteContext) {
        drop_dynamic_config(object, old);
    }

    fn validate_create(&self, object: &Json) -> ErrorList {
        validation::validate(object)
    }

    fn validate_update(&self, object: &Json, old: &Json) -> ErrorList {
        let mut errors = validation::validate(object);
        errors.extend(validation::validate_update(object, old));
        errors
    }

    fn validate_status_update(&self, object: &Json, old: &Json) -> ErrorList {
        validation::validate_update(object, old)
    }

    fn warnings(&self, object: &Json, _old: Option<&Json>) -> Vec<String> {
        let mut warnings = Vec::new();
        if at(object, &["spec", "configSource"]).is_some_and(Value::is_object) {
            warnings.push("spec.configSource: the feature is removed".to_owned());
        }
        if !text(object, &["spec", "externalID"]).is_empty() {
            warnings.push(
                "spec.externalID: this field is deprecated, and is unused by Kubernetes".to_owned(),
            );
        }
        warnings
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

    fn selectable_fields(&self) -> &'static [&'static str] {
        &["spec.unschedulable"]
    }

    fn field_value(&self, object: &Json, _field: &str) -> String {
        flag(object, &["spec", "unschedulable"]).to_string()
    }

    fn columns(&self) -> &'static [Column] {
        COLUMNS
    }

    fn row(&self, object: &Json, now: Timestamp) -> Vec<Value> {
        let info = |field: &str| text(object, &["status", "nodeInfo", field]);
        let or_unknown = |text: &str| if text.is_empty() { UNKNOWN } else { text }.to_owned();
        let mut kernel = or_unknown(info("kernelVersion"));
        let architecture = info("architecture");
        if !architecture.is_empty() {
            kernel = format!("{kernel} ({architecture})");
        }
        vec![
            table::name(object),
            status_cell(object).into(),
            roles_cell(object).into(),
            age(object, now).into(),
            info("kubeletVersion").into(),
            address_cell(object, "InternalIP").into(),
            address_cell(object, "ExternalIP").into(),
            or_unknown(info("osImage")).into(),
            kernel.into(),
            or_unknown(info("containerRuntimeVersion")).into(),
        ]
    }
}

/// `podCIDR` is the first of `podCIDRs`; where they differ the older field wins.
fn match_pod_ranges(spec: &mut Json) {
    let single = text(spec, &["podCIDR"]).to_owned();
    let first = list(spec, &["podCIDRs"]).first().and_then(Value::as_str).unwrap_or_default();
    if single.is_empty() && !first.is_empty() {
        let first = first.to_owned();
        spec.insert("podCIDR".to_owned(), first.into());
    } else if single != first {
        spec.insert("podCIDRs".to_owned(), vec![single].into());
    }
}

/// Configuration of nodes through the API is gone; only what is there already is kept.
fn drop_dynamic_config(object: &mut Json, old: &Json) {
    for (part, field) in [("spec", "configSource"), ("status", "config")] {
        if at(old, &[part, field]).is_none_or(Value::is_null)
            && let Some(part) = object.get_mut(part).and_then(Value::as_object_mut)
        {
            part.remove(field);
        }
    }
}

fn status_cell(object: &Json) -> String {
    // When a condition is listed twice the last one counts.
    let ready = list(object, &["status", "conditions"])
        .iter()
        .rfind(|condition| condition["type"] == "Ready")
        .map(|condition| condition["status"] == "True");
    let mut cell = match ready {
        Some(true) => "Ready",
        Some(false) => "NotReady",
        None => "Unknown",
    }
    .to_owned();
    if flag(object, &["spec", "unschedulable"]) {
        cell.push_str(",SchedulingDisabled");
    }
    cell
}

fn roles_cell(object: &Json) -> String {
    let labels = at(object, &["metadata", "labels"]).and_then(Value::as_object);
    let roles: BTreeSet<&str> = labels
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| match key.strip_prefix(NODE_ROLE_PREFIX) {
            Some(role) => Some(role),
            None if key == NODE_ROLE => value.as_str(),
            None => None,
        })
        .filter(|role| !role.is_empty())
        .collect();
    or_none(roles.into_iter().collect::<Vec<_>>().join(","))
}

fn address_cell<'a>(object: &'a Json, kind: &str) -> &'a str {
    list(object, &["status", "addresses"])
        .iter()
        .find(|address| address["type"] == kind)
        .and_then(|address| address["address"].as_str())
        .unwrap_or(NONE)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn capacity_is_allocatable_unless_said_otherwise() {
        let mut node = json!({"status": {"capacity": {"cpu": "4"}}});
        NodeStrategy.fill_defaults(node.as_object_mut().unwrap());
        assert_eq!(node["status"]["allocatable"], json!({"cpu": "4"}));
    }

    #[test]
    fn the_first_pod_range_is_the_single_one() {
        let cases = [
            (json!({"podCIDR": "10.0.0.0/24"}), "10.0.0.0/24", json!(["10.0.0.0/24"])),
            (json!({"podCIDRs": ["10.0.0.0/24"]}), "10.0.0.0/24", json!(["10.0.0.0/24"])),
            (
                json!({"podCIDR": "10.0.1.0/24", "podCIDRs": ["10.0.0.0/24", "fd00::/64"]}),
                "10.0.1.0/24",
                json!(["10.0.1.0/24"]),
            ),
        ];
        for (spec, single, all) in cases {
            let mut node = json!({"spec": spec}).as_object().unwrap().clone();
            NodeStrategy.fill_defaults(&mut node);
            assert_eq!(node["spec"]["podCIDR"], single);
            assert_eq!(node["spec"]["podCIDRs"], all);
        }
    }

    #[test]
    fn a_row_tells_what_the_node_is() {
        let now = "2026-11-15T12:00:00Z".parse().unwrap();
        let node = json!({
            "metadata": {
                "name": "n",
                "creationTimestamp": "2026-11-15T11:00:00Z",
                "labels": {
                    "node-role.kubernetes.io/worker": "",
                    "node-role.kubernetes.io/": "",
                    "kubernetes.io/role": "gpu",
                },
            },
            "spec": {"unschedulable": true},
            "status": {
                "conditions": [{"type": "Ready", "status": "Unknown"}],
                "addresses": [{"type": "Hostname", "address": "h"}, {"type": "InternalIP", "address": "10.0.0.1"}],
                "nodeInfo": {"kubeletVersion": "v1", "kernelVersion": "6.1", "architecture": "amd64"},
            },
        });
        let cells = NodeStrategy.row(node.as_object().unwrap(), now);
        assert_eq!(
            cells,
            [
                "n",
                "NotReady,SchedulingDisabled",
                "gpu,worker",
                "60m",
                "v1",
                "10.0.0.1",
                "<none>",
                "<unknown>",
                "6.1 (amd64)",
                "<unknown>",
            ]
        );
        let bare = json!({"metadata": {"name": "n"}});
        let cells = NodeStrategy.row(bare.as_object().unwrap(), now);
        assert_eq!(cells[1..4], ["Unknown", "<none>", "<unknown>"]);
    }
}
