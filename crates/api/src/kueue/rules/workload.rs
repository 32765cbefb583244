//! What a Workload may look like, and what of it may change when.
//!
//! Every write of a status comes through here, so objects are looked at as they are, without making
//! types of them.

mod change;

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Toleration;
use serde::Deserialize;
use serde_json::Value;

use super::resource_flavor::toleration_rules;
use crate::{
    field::{ErrorList, FieldError, Path},
    json::{at, integer, list, text},
    kueue::{PODS_RESOURCE, wait},
    meta,
    reasons::kueue::workload::{ADMITTED, QUOTA_RESERVED},
    strategy::Json,
};

/// Whether a condition is there and true.
fn is_true(object: &Json, condition: &str) -> bool {
    list(object, &["status", "conditions"])
        .iter()
        .any(|it| it["type"] == condition && it["status"] == "True")
}

fn is_reserved(object: &Json) -> bool {
    is_true(object, QUOTA_RESERVED)
}

/// What the definition has as expressions.
pub(in crate::kueue) fn expressions(object: &Json, old: Option<&Json>) -> ErrorList {
    let whole = Path::new("<nil>");
    let mut errors = ErrorList::new();
    let assignments = list(object, &["status", "admission", "podSetAssignments"]);
    if is_reserved(object)
        && at(object, &["status", "admission"]).is_some_and(Value::is_object)
        && list(object, &["spec", "podSets"]).len() != assignments.len()
    {
        let why = "podSetAssignments must have the same number of podSets as the spec";
        errors.push(FieldError::invalid_unshown(&whole, why));
    }
    if let Some(old) = old {
        let broken = change::expressions(object, old);
        errors.extend(broken.iter().map(|why| FieldError::invalid_unshown(&whole, why)));
    }
    errors.extend(priority_rules(object));
    let path = Path::new("spec").child("podSets");
    for (i, set) in list(object, &["spec", "podSets"]).iter().enumerate() {
        if let (Some(least), Some(count)) = (set["minCount"].as_i64(), set["count"].as_i64())
            && least > count
        {
            let why = "minCount should be positive and less or equal to count";
            errors.push(FieldError::invalid_unshown(&path.index(i), why));
        }
    }
    errors
}

fn priority_rules(object: &Json) -> ErrorList {
    let spec = Path::new("spec");
    let mut errors = ErrorList::new();
    let Some(Value::Object(class)) = at(object, &["spec", "priorityClassRef"]) else {
        return errors;
    };
    if integer(object, &["spec", "priority"]).is_none() {
        let why = "priority should not be nil when priorityClassRef is set";
        errors.push(FieldError::invalid_unshown(&spec, why));
    }
    for (group, kind) in
        [("scheduling.k8s.io", "PriorityClass"), ("kueue.x-k8s.io", "WorkloadPriorityClass")]
    {
        if text(class, &["group"]) == group && text(class, &["kind"]) != kind {
            let why = format!("only the {kind} kind is allowed for the {group} group");
            errors.push(FieldError::invalid_unshown(&spec.child("priorityClassRef"), &why));
        }
    }
    errors
}

/// What a webhook checks.
pub(in crate::kueue) fn webhook(object: &Json, old: Option<&Json>) -> ErrorList {
    let path = Path::new("spec").child("podSets");
    let sets = list(object, &["spec", "podSets"]);
    let mut errors = ErrorList::new();
    for (i, set) in sets.iter().enumerate() {
        errors.extend(reserved_resources(set, &path.index(i)));
    }
    let partial = sets.iter().filter(|set| set["minCount"].is_i64()).count();
    if partial > 1 {
        let why = "at most one podSet can use minCount";
        errors.push(FieldError::invalid(&path, partial, why));
    }
    let status = Path::new("status");
    if is_reserved(object) {
        errors.extend(validate_admission(object, &status.child("admission")));
    }
    errors.extend(validate_reclaimable(object, &status.child("reclaimablePods")));
    errors.extend(validate_checks(object, &status.child("admissionChecks")));
    if let Some(old) = old {
        errors.extend(change::webhook(object, old));
    }
    let annotations = |of| at(of, &["metadata", "annotations"]);
    if old.is_none_or(|old| annotations(old) != annotations(object)) {
        errors.extend(wait::validate(object));
    }
    errors
}

/// The names of the pod sets, with how many pods they have.
fn pod_sets(object: &Json) -> BTreeMap<&str, i64> {
    let sets = list(object, &["spec", "podSets"]).iter();
    sets.filter_map(|set| Some((set["name"].as_str()?, set["count"].as_i64().unwrap_or(1))))
        .collect()
}

/// Nobody may ask for the resource that counts pods.
fn reserved_resources(set: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let path = path.child("template").child("spec");
    for group in ["initContainers", "containers"] {
        let containers = set["template"]["spec"][group].as_array();
        for (i, container) in containers.into_iter().flatten().enumerate() {
            for part in ["requests", "limits"] {
                if container["resources"][part].get(PODS_RESOURCE).is_some() {
                    let path = path.child(group).index(i).child("resources").child(part);
                    let why = "the key is reserved for internal kueue use";
                    errors.push(FieldError::invalid(&path.key(PODS_RESOURCE), PODS_RESOURCE, why));
                }
            }
        }
    }
    errors
}

fn validate_admission(object: &Json, path: &Path) -> ErrorList {
    if !at(object, &["status", "admission"]).is_some_and(Value::is_object) {
        let why = "must be set while the QuotaReserved condition is true";
        return vec![FieldError::required(path, why)];
    }
    let known = pod_sets(object);
    let path = path.child("podSetAssignments");
    let assignments = list(object, &["status", "admission", "podSetAssignments"]);
    let names = assignments.iter().map(|one| one["name"].as_str().unwrap_or_default());
    names
        .enumerate()
        .filter(|(_, name)| !known.contains_key(name))
        .map(|(i, name)| FieldError::not_found(&path.index(i).child("name"), name))
        .collect()
}

fn validate_reclaimable(object: &Json, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let reclaimable = list(object, &["status", "reclaimablePods"]);
    if reclaimable.is_empty() {
        return errors;
    }
    let known = pod_sets(object);
    for pods in reclaimable {
        let (name, count) = (pods["name"].as_str().unwrap_or_default(), &pods["count"]);
        let path = path.key(name);
        match known.get(name) {
            None => {
                let names: Vec<&str> = known.keys().copied().collect();
                errors.push(FieldError::not_supported(&path.child("name"), name, &names));
            }
            Some(most) if count.as_i64().is_some_and(|count| count > *most) => {
                let why = format!("should be less or equal to {most}");
                errors.push(FieldError::invalid(&path.child("count"), count, &why));
            }
            Some(_) => {}
        }
    }
    errors
}

/// What checks want of pods.
fn validate_checks(object: &Json, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let known = pod_sets(object);
    for (i, check) in list(object, &["status", "admissionChecks"]).iter().enumerate() {
        let path = path.index(i).child("podSetUpdates");
        for (j, update) in check["podSetUpdates"].as_array().into_iter().flatten().enumerate() {
            let path = path.index(j);
            let name = update["name"].as_str().unwrap_or_default();
            if !known.contains_key(name) {
                let names: Vec<&str> = known.keys().copied().collect();
                errors.push(FieldError::not_supported(&path.child("name"), name, &names));
            }
            let tolerations =
                Vec::<Toleration>::deserialize(&update["tolerations"]).unwrap_or_default();
            let tolerations_path = path.child("tolerations");
            errors.extend(toleration_rules(&tolerations, &tolerations_path));
            errors.extend(super::validate_tolerations(&tolerations, &tolerations_path));
            let annotations = path.child("annotations");
            errors.extend(meta::validate_annotations(update.get("annotations"), &annotations));
            for part in ["nodeSelector", "labels"] {
                let labels = update[part].as_object().into_iter().flatten();
                let labels =
                    labels.map(|(key, value)| (key.as_str(), value.as_str().unwrap_or("")));
                errors.extend(meta::validate_labels(labels, &path.child(part)));
            }
        }
    }
    errors
}

/// Whether the workload is admitted.
fn is_admitted(object: &Json) -> bool {
    is_true(object, ADMITTED)
}
