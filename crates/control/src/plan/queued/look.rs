//! The part of a pod template that changes when a job starts and stops.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{PodSchedulingGate, PodTemplateSpec, Toleration};
use serde_json::{Value, json};

use super::info::{Conflict, Info};

/// What of a pod template may differ between a job that waits and one that runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Look {
    pub(super) labels: BTreeMap<String, String>,
    pub(super) annotations: BTreeMap<String, String>,
    pub(super) node_selector: BTreeMap<String, String>,
    pub(super) tolerations: Vec<Toleration>,
    pub(super) scheduling_gates: Vec<PodSchedulingGate>,
}

impl Look {
    pub(super) fn of(template: &PodTemplateSpec) -> Self {
        let (meta, spec) = (template.metadata.as_ref(), template.spec.as_ref());
        Self {
            labels: meta.and_then(|meta| meta.labels.clone()).unwrap_or_default(),
            annotations: meta.and_then(|meta| meta.annotations.clone()).unwrap_or_default(),
            node_selector: spec.and_then(|spec| spec.node_selector.clone()).unwrap_or_default(),
            tolerations: spec.and_then(|spec| spec.tolerations.clone()).unwrap_or_default(),
            scheduling_gates: spec
                .and_then(|spec| spec.scheduling_gates.clone())
                .unwrap_or_default(),
        }
    }

    /// The look of a pod that runs with what it was given.
    ///
    /// # Errors
    /// When it says otherwise itself.
    pub(super) fn with(mut self, info: &Info) -> Result<Self, Conflict> {
        merge("annotations", &mut self.annotations, &info.annotations)?;
        merge("labels", &mut self.labels, &info.labels)?;
        merge("nodeSelector", &mut self.node_selector, &info.node_selector)?;
        for toleration in &info.tolerations {
            if !self.tolerations.contains(toleration) {
                self.tolerations.push(toleration.clone());
            }
        }
        Ok(self)
    }

    /// The merge patch of a template that has this look, so that it has that of `wanted`.
    pub(super) fn merge_patch(&self, wanted: &Self) -> Option<Value> {
        let mut patch = json!({});
        for (part, field, there, wanted) in [
            ("metadata", "labels", &self.labels, &wanted.labels),
            ("metadata", "annotations", &self.annotations, &wanted.annotations),
            ("spec", "nodeSelector", &self.node_selector, &wanted.node_selector),
        ] {
            for (key, value) in wanted.iter().filter(|(key, value)| there.get(*key) != Some(value))
            {
                patch[part][field][key] = json!(value);
            }
            for key in there.keys().filter(|key| !wanted.contains_key(*key)) {
                patch[part][field][key] = Value::Null;
            }
        }
        if self.tolerations != wanted.tolerations {
            patch["spec"]["tolerations"] = list(&wanted.tolerations);
        }
        if self.scheduling_gates != wanted.scheduling_gates {
            patch["spec"]["schedulingGates"] = list(&wanted.scheduling_gates);
        }
        Some(patch).filter(|patch| *patch != json!({}))
    }

    /// The operations that give the template at `path` the look of `wanted`.
    pub(super) fn operations(template: &PodTemplateSpec, wanted: &Self, path: &str) -> Vec<Value> {
        let there = Self::of(template);
        let mut members = Vec::new();
        for (part, field, is_same, value) in [
            ("metadata", "labels", there.labels == wanted.labels, map(&wanted.labels)),
            (
                "metadata",
                "annotations",
                there.annotations == wanted.annotations,
                map(&wanted.annotations),
            ),
            (
                "spec",
                "nodeSelector",
                there.node_selector == wanted.node_selector,
                map(&wanted.node_selector),
            ),
            (
                "spec",
                "tolerations",
                there.tolerations == wanted.tolerations,
                list(&wanted.tolerations),
            ),
            (
                "spec",
                "schedulingGates",
                there.scheduling_gates == wanted.scheduling_gates,
                list(&wanted.scheduling_gates),
            ),
        ] {
            if !is_same {
                members.push((part, field, value));
            }
        }
        let mut operations = Vec::new();
        // Nothing can be put into what is not there.
        let missing =
            [("metadata", template.metadata.is_none()), ("spec", template.spec.is_none())];
        for (part, _) in missing.into_iter().filter(|(_, is_missing)| *is_missing) {
            if members.iter().any(|(of, ..)| *of == part) {
                let path = format!("{path}/{part}");
                operations.push(json!({"op": "add", "path": path, "value": {}}));
            }
        }
        for (part, field, value) in members {
            let path = format!("{path}/{part}/{field}");
            operations.push(if value.is_null() {
                json!({"op": "remove", "path": path})
            } else {
                json!({"op": "add", "path": path, "value": value})
            });
        }
        operations
    }
}

fn map(members: &BTreeMap<String, String>) -> Value {
    if members.is_empty() { Value::Null } else { json!(members) }
}

fn list<T: serde::Serialize>(items: &[T]) -> Value {
    if items.is_empty() { Value::Null } else { json!(items) }
}

/// Adds members that are not there. One that is there with another value is not changed.
pub(super) fn merge(
    field: &'static str,
    there: &mut BTreeMap<String, String>,
    more: &BTreeMap<String, String>,
) -> Result<(), Conflict> {
    for (key, value) in more {
        let known = there.entry(key.clone()).or_insert_with(|| value.clone());
        if known != value {
            let (known, wanted) = (known.clone(), value.clone());
            return Err(Conflict { field, key: key.clone(), known, wanted });
        }
    }
    Ok(())
}
