//! What a Pod decides for itself.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    admission, conditions, defaults, object_mut, objects_mut, qos, row, validation, warnings,
};
use crate::{
    field::ErrorList,
    json, names,
    strategy::{Column, Json, MetadataCheck, Strategy, WriteContext, keep},
};

/// How pods are filled in, checked and shown.
#[derive(Clone, Copy, Debug, Default)]
pub struct PodStrategy;

impl Strategy for PodStrategy {
    fn fill_defaults(&self, object: &mut Json) {
        defaults::fill_pod(object);
    }

    fn prepare_create(&self, object: &mut Json, context: &WriteContext) {
        admission::admit(object);
        merge_label_keys(object);
        let empty = Json::new();
        let spec = object.get("spec").and_then(Value::as_object).unwrap_or(&empty);
        let mut status = Json::new();
        status.insert("phase".to_owned(), json!("Pending"));
        status.insert("qosClass".to_owned(), json!(qos::class(spec)));
        if !json::list(spec, &["schedulingGates"]).is_empty() {
            let condition = json!({
                "status": "False",
                "reason": "SchedulingGated",
                "message": "Scheduling is blocked due to non-empty scheduling gates",
            });
            conditions::set(&mut status, "PodScheduled", &condition, context.now);
        }
        object.insert("status".to_owned(), Value::Object(status));
    }

    fn validate_create(&self, object: &Json) -> ErrorList {
        validation::validate_create(object)
    }

    fn prepare_update(&self, object: &mut Json, old: &Json, _context: &WriteContext) {
        keep(object, old, "status");
        let Some(spec) = object_mut(object, "spec") else { return };
        for field in ["priority", "preemptionPolicy"] {
            if let Some(value) = json::at(old, &["spec", field]) {
                json::set_default(spec, field, value.clone());
            }
        }
        admission::add_tolerations(spec);
    }

    fn validate_update(&self, object: &Json, old: &Json) -> ErrorList {
        validation::validate_update(object, old)
    }

    fn prepare_status_update(&self, object: &mut Json, old: &Json, _context: &WriteContext) {
        keep_owners(object, old);
        keep_what_the_server_set(object, old);
        mirror_pod_ip(object);
    }

    fn validate_status_update(&self, object: &Json, old: &Json) -> ErrorList {
        validation::validate_status_update(object, old)
    }

    fn warnings(&self, object: &Json, old: Option<&Json>) -> Vec<String> {
        // People seldom change pods themselves, and programs do not read warnings.
        if old.is_some() { Vec::new() } else { warnings::warnings_for_pod(object) }
    }

    fn metadata_check(&self) -> MetadataCheck {
        MetadataCheck::Both
    }

    fn validate_name(&self, name: &str, is_prefix: bool) -> Vec<String> {
        names::name_is_dns_subdomain(name, is_prefix)
    }

    fn has_status(&self) -> bool {
        true
    }

    fn reset_fields(&self, part: Option<&str>) -> &'static [&'static [&'static str]] {
        match part {
            Some("status") => {
                &[&["spec"], &["metadata", "deletionTimestamp"], &["metadata", "ownerReferences"]]
            }
            _ => &[&["status"]],
        }
    }

    fn grace_period(&self, object: &Json, requested: Option<i64>) -> Option<i64> {
        let own = json::integer(object, &["spec", "terminationGracePeriodSeconds"]);
        let is_scheduled = !json::text(object, &["spec", "nodeName"]).is_empty();
        let is_over = matches!(json::text(object, &["status", "phase"]), "Failed" | "Succeeded");
        if !is_scheduled || is_over {
            return Some(0);
        }
        match requested.or(own).unwrap_or_default() {
            ..0 => Some(1),
            seconds => Some(seconds),
        }
    }

    fn delete_returns_object(&self) -> bool {
        true
    }

    fn selectable_fields(&self) -> &'static [&'static str] {
        &[
            "spec.hostNetwork",
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "status.nominatedNodeName",
            "status.phase",
            "status.podIP",
            "status.podIPs",
        ]
    }

    fn field_value(&self, object: &Json, field: &str) -> String {
        match field {
            "spec.hostNetwork" => json::flag(object, &["spec", "hostNetwork"]).to_string(),
            "status.podIP" | "status.podIPs" => {
                let first = json::list(object, &["status", "podIPs"]).first();
                let address = first.and_then(|ip| ip.get("ip")).and_then(Value::as_str);
                address.unwrap_or_default().to_owned()
            }
            _ => {
                let path: Vec<&str> = field.split('.').collect();
                json::text(object, &path).to_owned()
            }
        }
    }

    fn columns(&self) -> &'static [Column] {
        row::COLUMNS
    }

    fn row(&self, object: &Json, now: Timestamp) -> Vec<Value> {
        row::row(object, now)
    }
}

/// Writes what `matchLabelKeys` and `mismatchLabelKeys` mean for this very pod into the selectors
/// beside them, so that schedulers need not know about the keys.
fn merge_label_keys(pod: &mut Json) {
    let labels = json::at(pod, &["metadata", "labels"]).and_then(Value::as_object).cloned();
    let labels = labels.unwrap_or_default();
    let Some(spec) = object_mut(pod, "spec") else { return };
    for constraint in objects_mut(spec, "topologySpreadConstraints") {
        merge_into_selector(constraint, &labels);
    }
    let Some(affinity) = object_mut(spec, "affinity") else { return };
    for kind in ["podAffinity", "podAntiAffinity"] {
        let Some(kind) = object_mut(affinity, kind) else { continue };
        for weighted in objects_mut(kind, "preferredDuringSchedulingIgnoredDuringExecution") {
            if let Some(term) = object_mut(weighted, "podAffinityTerm") {
                merge_into_selector(term, &labels);
            }
        }
        for term in objects_mut(kind, "requiredDuringSchedulingIgnoredDuringExecution") {
            merge_into_selector(term, &labels);
        }
    }
}

fn merge_into_selector(term: &mut Json, labels: &Json) {
    let mut added = Vec::new();
    for (field, operator) in [("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")] {
        for key in json::list(term, &[field]).iter().filter_map(Value::as_str) {
            if let Some(value) = labels.get(key) {
                added.push(json!({"key": key, "operator": operator, "values": [value]}));
            }
        }
    }
    // Without a selector a term matches nothing, and the keys change nothing about that.
    let Some(selector) = object_mut(term, "labelSelector") else { return };
    if added.is_empty() {
        return;
    }
    json::set_default(selector, "matchExpressions", json!([]));
    if let Some(list) = selector.get_mut("matchExpressions").and_then(Value::as_array_mut) {
        list.extend(added);
    }
}

/// Whoever reports on a pod does not decide who owns it.
fn keep_owners(pod: &mut Json, old: &Json) {
    let empty = Json::new();
    let old = old.get("metadata").and_then(Value::as_object).unwrap_or(&empty);
    keep(json::object_mut(pod, "metadata"), old, "ownerReferences");
}

/// The class of service never changes, and an observed generation is not forgotten by a writer that
/// does not know of it.
fn keep_what_the_server_set(pod: &mut Json, old: &Json) {
    let empty = Json::new();
    let old = old.get("status").and_then(Value::as_object).unwrap_or(&empty);
    let status = json::object_mut(pod, "status");
    if json::text(status, &["qosClass"]).is_empty() {
        keep(status, old, "qosClass");
    }
    if json::integer(status, &["observedGeneration"]).unwrap_or_default() == 0 {
        keep(status, old, "observedGeneration");
    }
    for condition in objects_mut(status, "conditions") {
        if json::integer(condition, &["observedGeneration"]).unwrap_or_default() != 0 {
            continue;
        }
        let same = json::list(old, &["conditions"])
            .iter()
            .filter_map(Value::as_object)
            .find(|o| o.get("type") == condition.get("type"));
        if let Some(same) = same {
            keep(condition, same, "observedGeneration");
        }
    }
}

/// `podIP` is the first of `podIPs`; where they differ the older field stands, since only writers
/// that know nothing of the newer one let them.
fn mirror_pod_ip(pod: &mut Json) {
    let status = json::object_mut(pod, "status");
    let single = json::text(status, &["podIP"]).to_owned();
    let listed = json::list(status, &["podIPs"]).first();
    let first = listed.and_then(|it| it.get("ip")).and_then(Value::as_str).unwrap_or_default();
    let first = first.to_owned();
    if single.is_empty() && !first.is_empty() {
        status.insert("podIP".to_owned(), json!(first));
    } else if single != first {
        status.insert("podIPs".to_owned(), json!([{"ip": single}]));
    }
}

#[cfg(test)]
mod tests;
