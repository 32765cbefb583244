//! What of a Workload may not change: mostly while quota is reserved for it.

use serde_json::Value;

use super::{is_admitted, is_reserved};
use crate::{
    field::{ErrorList, FieldError, Path},
    json::{at, integer, list, text},
    kinds::{IMMUTABLE, without_absent},
    labels::kueue::ELASTIC_JOB,
    strategy::Json,
};

/// The words of the rules of the definition that a change breaks.
pub(super) fn expressions(object: &Json, old: &Json) -> Vec<&'static str> {
    let class = |of| at(of, &["spec", "priorityClassRef"]).and_then(Value::as_object);
    let queue = |of| at(of, &["spec", "queueName"]);
    let limit = |of| integer(of, &["spec", "maximumExecutionTimeSeconds"]).unwrap_or_default();
    let (was_reserved, stays_reserved) =
        (is_reserved(old), is_reserved(old) && is_reserved(object));
    let differs = |member: &str| match (class(old), class(object)) {
        (Some(old), Some(new)) => was_reserved && old.get(member) != new.get(member),
        _ => false,
    };
    let is_of_pods = class(object).is_some_and(|class| text(class, &["kind"]) == "PriorityClass");
    let rules = [
        (
            was_reserved && class(old).is_some() != class(object).is_some(),
            "priorityClassRef is immutable while workload quota reserved",
        ),
        (differs("group"), "priorityClassRef.group is immutable while workload quota reserved"),
        (differs("kind"), "priorityClassRef.kind is immutable while workload quota reserved"),
        (
            is_of_pods && differs("name"),
            "priorityClassRef.name is immutable for scheduling.k8s.io/priorityclass while workload \
             quota reserved",
        ),
        (
            stays_reserved
                && queue(old).is_some()
                && queue(object).is_some()
                && queue(old) != queue(object),
            "queueName is immutable while workload quota reserved",
        ),
        (
            is_admitted(old) && is_admitted(object) && limit(old) != limit(object),
            "maximumExecutionTimeSeconds is immutable while workload quota reserved",
        ),
    ];
    rules.into_iter().filter(|(is_broken, _)| *is_broken).map(|(_, why)| why).collect()
}

/// What a webhook checks of a change.
pub(super) fn webhook(object: &Json, old: &Json) -> ErrorList {
    let status = Path::new("status");
    let mut errors = ErrorList::new();
    if is_reserved(old) {
        errors.extend(pod_sets(object, old));
    }
    if is_reserved(old) && is_reserved(object) {
        errors.extend(reclaimable(object, old, &status.child("reclaimablePods")));
    }
    errors.extend(admission(object, old, &status.child("admission")));
    errors.extend(updates_of_ready_checks(object, old, &status.child("admissionChecks")));
    errors
}

/// Pod sets stay as they are, but for the size of those that may shrink.
fn pod_sets(object: &Json, old: &Json) -> ErrorList {
    let sets = |of| at(of, &["spec", "podSets"]).cloned().unwrap_or_default();
    let (now, before) = (sets(object), sets(old));
    let mut errors = ErrorList::new();
    if now == before {
        return errors;
    }
    let path = Path::new("spec").child("podSets");
    let (Value::Array(now), Value::Array(before)) = (&now, &before) else {
        return vec![FieldError::invalid(&path, &now, IMMUTABLE)];
    };
    if now.len() != before.len() {
        return vec![FieldError::invalid(&path, now, IMMUTABLE)];
    }
    let is_elastic = text(object, &["metadata", "annotations", ELASTIC_JOB]) == "true";
    for (i, (now, before)) in now.iter().zip(before).enumerate() {
        let mut compared = now.clone();
        if is_elastic && now["count"].as_i64() < before["count"].as_i64() {
            compared["count"] = before["count"].clone();
        }
        if without_absent(&compared) != without_absent(before) {
            errors.push(FieldError::invalid(&path.child(&i.to_string()), now, IMMUTABLE));
        }
    }
    errors
}

/// Pods that are not needed any more do not come back.
fn reclaimable(object: &Json, old: &Json, path: &Path) -> ErrorList {
    let pods = |of| list(of, &["status", "reclaimablePods"]);
    let name = |pods: &Value| pods["name"].as_str().unwrap_or_default().to_owned();
    let mut errors = ErrorList::new();
    for before in pods(old) {
        let name = name(before);
        let path = path.key(&name);
        let least = before["count"].as_i64().unwrap_or_default();
        match pods(object).iter().find(|pods| pods["name"] == *name) {
            None => errors.push(FieldError::required(&path, "cannot be removed")),
            Some(now) => {
                let count = now["count"].as_i64().unwrap_or_default();
                if count < least {
                    let why = format!("cannot be less then {least}");
                    errors.push(FieldError::invalid(&path.child("count"), count, &why));
                }
            }
        }
    }
    errors
}

/// An admission comes and goes as a whole; only the domains of its pods may change.
fn admission(object: &Json, old: &Json, path: &Path) -> Option<FieldError> {
    let given = |of| at(of, &["status", "admission"]).filter(|it| it.is_object());
    let (now, before) = (given(object)?, given(old)?);
    if now == before {
        return None;
    }
    let masked = |admission: &Value| {
        let mut admission = admission.clone();
        let assignments = admission["podSetAssignments"].as_array_mut();
        for assignment in assignments.into_iter().flatten().filter_map(Value::as_object_mut) {
            assignment.remove("topologyAssignment");
            assignment.remove("delayedTopologyRequest");
        }
        without_absent(&admission)
    };
    (masked(now) != masked(before)).then(|| FieldError::invalid(path, now, IMMUTABLE))
}

/// What a check that is ready wants of pods stays what it is.
fn updates_of_ready_checks(object: &Json, old: &Json, path: &Path) -> ErrorList {
    let checks = |of| list(of, &["status", "admissionChecks"]);
    let mut errors = ErrorList::new();
    for (i, before) in checks(old).iter().enumerate() {
        let now = checks(object).iter().find(|check| check["name"] == before["name"]);
        let Some(now) = now.filter(|now| now["state"] == "Ready" && before["state"] == "Ready")
        else {
            continue;
        };
        let updates = |of: &Value| of.get("podSetUpdates").map(without_absent);
        if updates(now) != updates(before) {
            let path = path.index(i).child("podSetUpdates");
            errors.push(FieldError::invalid(&path, now.get("podSetUpdates"), IMMUTABLE));
        }
    }
    errors
}
