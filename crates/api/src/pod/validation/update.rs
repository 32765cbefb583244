//! What may change in a Pod once it exists: next to nothing.

use k8s_openapi::api::core::v1::{Container, NodeAffinity, NodeSelectorTerm, PodSpec};
use serde_json::Value;

use super::{
    annotations, diff, metadata_and_spec,
    rules::{list, text},
    scheduling, view,
};
use crate::{
    field::{ErrorList, FieldError, Path},
    json, names,
    strategy::Json,
};

const FIXED: &str = "pod updates may not change fields other than \
`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,\
`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` \
(allow it to be set to 1 if it was previously negative)";
const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";

/// Says what is wrong with a change of a Pod.
pub fn validate_update(pod: &Json, old: &Json) -> ErrorList {
    // All that is judged here was judged when it came in; most updates are of other metadata.
    let same = |path: &[&str]| json::at(pod, path) == json::at(old, path);
    if same(&["spec"]) && same(&["metadata", "annotations"]) && same(&["metadata", "name"]) {
        return ErrorList::new();
    }
    let path = Path::new("spec");
    let (new_spec, old_spec) = match (view(pod, &path), view(old, &path)) {
        (Ok(new), Ok(old)) => (new, old),
        (Err(errors), _) | (_, Err(errors)) => return errors,
    };
    let mut errors = metadata_and_spec(pod, &new_spec);
    let annotations_path = Path::new("metadata").child("annotations");
    let (new_notes, old_notes) = (annotations::of(pod), annotations::of(old));
    errors.extend(annotations::validate_update(&new_notes, &old_notes, &annotations_path));
    let lists = [
        ("containers", &*new_spec.containers, &*old_spec.containers),
        ("initContainers", list(&new_spec.init_containers), list(&old_spec.init_containers)),
    ];
    for (field, new, old) in lists {
        let path = path.child(field);
        if new.len() != old.len() {
            let why = "pod updates may not add or remove containers";
            errors.push(FieldError::forbidden(&path, why));
            return errors;
        }
        errors.extend(images(new, &path));
    }
    match deadline(&new_spec, &old_spec, &path.child("activeDeadlineSeconds")) {
        Deadline::Sound => {}
        Deadline::Removed(error) => errors.push(error),
        Deadline::Wrong(error) => {
            errors.push(error);
            return errors;
        }
    }
    errors.extend(tolerations(&new_spec, &old_spec, &path.child("tolerations")));
    errors.extend(gates(&new_spec, &old_spec, &path.child("schedulingGates")));
    errors.extend(the_rest(pod, old, &new_spec, &old_spec, &path));
    errors
}

fn images(containers: &[Container], path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    for (at, container) in containers.iter().enumerate() {
        let path = path.index(at).child("image");
        let image = text(&container.image);
        if image.is_empty() {
            errors.push(FieldError::required(&path, ""));
        }
        if image.trim() != image {
            let why = "must not have leading or trailing whitespace";
            errors.push(FieldError::invalid(&path, image, why));
        }
    }
    errors
}

enum Deadline {
    Sound,
    /// Wrong, and nothing else is worth looking at.
    Wrong(FieldError),
    Removed(FieldError),
}

/// A deadline can only come closer.
fn deadline(new: &PodSpec, old: &PodSpec, path: &Path) -> Deadline {
    match (new.active_deadline_seconds, old.active_deadline_seconds) {
        (None, None) => Deadline::Sound,
        (None, Some(_)) => Deadline::Removed(FieldError::invalid(
            path,
            Value::Null,
            "must not update from a positive integer to nil value",
        )),
        (Some(seconds), before) => {
            let faults = names::in_range(seconds, 0, i64::from(i32::MAX));
            if let Some(fault) = faults.first() {
                Deadline::Wrong(FieldError::invalid(path, seconds, fault))
            } else if before.is_some_and(|before| before < seconds) {
                let why = "must be less than or equal to previous value";
                Deadline::Wrong(FieldError::invalid(path, seconds, why))
            } else {
                Deadline::Sound
            }
        }
    }
}

/// Tolerations can be added, and old ones last longer or shorter.
fn tolerations(new: &PodSpec, old: &PodSpec, path: &Path) -> ErrorList {
    let new = list(&new.tolerations);
    for before in list(&old.tolerations) {
        let mut before = before.clone();
        let is_there = new.iter().any(|after| {
            before.toleration_seconds = after.toleration_seconds;
            before == *after
        });
        if !is_there {
            let why = "existing toleration can not be modified except its tolerationSeconds";
            return vec![FieldError::forbidden(path, why)];
        }
    }
    scheduling::validate_tolerations(new, path)
}

/// Gates can only be opened.
fn gates(new: &PodSpec, old: &PodSpec, path: &Path) -> ErrorList {
    let old = list(&old.scheduling_gates);
    let added = list(&new.scheduling_gates).iter().enumerate();
    let added = added.filter(|(_, gate)| !old.contains(gate));
    added
        .map(|(at, gate)| {
            let why =
                format!("only deletion is allowed, but found new scheduling gate '{}'", gate.name);
            FieldError::forbidden(&path.index(at).child("name"), &why)
        })
        .collect()
}

/// Undoes in the new spec whatever may change, then compares.
fn the_rest(pod: &Json, old: &Json, new: &PodSpec, before: &PodSpec, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let spec = |object: &Json| {
        let mut spec = object.get("spec").cloned().unwrap_or_default();
        drop_empty(&mut spec);
        spec
    };
    let (mut munged, old) = (spec(pod), spec(old));
    if munged == old {
        return errors;
    }
    for field in ["containers", "initContainers"] {
        keep_images(&mut munged[field], &old[field]);
    }
    for field in ["activeDeadlineSeconds", "schedulingGates", "tolerations"] {
        munged[field] = old[field].clone();
    }
    let (now, then) =
        (new.termination_grace_period_seconds, before.termination_grace_period_seconds);
    if now == Some(1) && then.is_some_and(|seconds| seconds < 0) {
        munged["terminationGracePeriodSeconds"] = old["terminationGracePeriodSeconds"].clone();
    }
    if !list(&before.scheduling_gates).is_empty() {
        errors.extend(narrowed(new, before, path));
        munged["nodeSelector"] = old["nodeSelector"].clone();
        if munged["affinity"]["nodeAffinity"] != old["affinity"]["nodeAffinity"] {
            keep_node_affinity(&mut munged, &old);
        }
    }
    let mut shown = old;
    drop_empty(&mut munged);
    drop_empty(&mut shown);
    if munged != shown {
        let why = format!("{FIXED}\n{}", diff::unified(&shown, &munged));
        errors.push(FieldError::forbidden(path, &why));
    }
    errors
}

fn keep_images(new: &mut Value, old: &Value) {
    let (Some(new), Some(old)) = (new.as_array_mut(), old.as_array()) else { return };
    for (new, old) in new.iter_mut().zip(old) {
        new["image"] = old["image"].clone();
    }
}

/// A pod that is held back by gates may still be told where it must not go.
fn narrowed(new: &PodSpec, old: &PodSpec, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let empty = std::collections::BTreeMap::new();
    let selector = new.node_selector.as_ref().unwrap_or(&empty);
    let kept = |(key, value): (&String, &String)| selector.get(key) == Some(value);
    if !old.node_selector.iter().flatten().all(kept) {
        let why = "only additions to spec.nodeSelector are allowed (no mutations or deletions)";
        errors.push(FieldError::invalid(&path.child("nodeSelector"), selector, why));
    }
    let (now, then) = (required_terms(new), required_terms(old));
    let path = path.child("affinity").child("nodeAffinity").child(REQUIRED);
    let path = path.child("nodeSelectorTerms");
    if then.is_empty() {
        return errors;
    }
    if now.len() != then.len() {
        let why = "no additions/deletions to non-empty NodeSelectorTerms list are allowed";
        let shown = (!now.is_empty()).then_some(now);
        errors.push(FieldError::invalid(&path, shown, why));
        return errors;
    }
    for (at, (now, then)) in now.iter().zip(then).enumerate() {
        if !only_adds(now, then) {
            let why = "only additions are allowed (no mutations or deletions)";
            errors.push(FieldError::invalid(&path.index(at), now, why));
        }
    }
    errors
}

fn required_terms(spec: &PodSpec) -> &[NodeSelectorTerm] {
    fn required(affinity: &NodeAffinity) -> Option<&[NodeSelectorTerm]> {
        let it = affinity.required_during_scheduling_ignored_during_execution.as_ref()?;
        Some(&it.node_selector_terms)
    }
    let affinity = spec.affinity.as_ref().and_then(|it| it.node_affinity.as_ref());
    affinity.and_then(required).unwrap_or_default()
}

fn only_adds(new: &NodeSelectorTerm, old: &NodeSelectorTerm) -> bool {
    let was_empty = list(&old.match_expressions).is_empty() && list(&old.match_fields).is_empty();
    let is_empty = list(&new.match_expressions).is_empty() && list(&new.match_fields).is_empty();
    // An empty term matches nothing; adding to it would widen.
    (!was_empty || is_empty)
        && list(&new.match_expressions).starts_with(list(&old.match_expressions))
        && list(&new.match_fields).starts_with(list(&old.match_fields))
}

fn keep_node_affinity(new: &mut Value, old: &Value) {
    let before = old["affinity"]["nodeAffinity"].clone();
    if !new["affinity"].is_object() {
        new["affinity"] = Value::Object(Json::new());
    }
    new["affinity"]["nodeAffinity"] = before;
    drop_empty(&mut new["affinity"]);
    let is_empty = new["affinity"].as_object().is_some_and(Json::is_empty);
    if is_empty && !old["affinity"].is_object() {
        new["affinity"] = Value::Null;
    }
}

/// Fields whose keys are the user's; an empty value there means something.
const MAPS: [&str; 9] = [
    "annotations",
    "labels",
    "limits",
    "matchLabels",
    "nodeSelector",
    "options",
    "overhead",
    "requests",
    "volumeAttributes",
];

/// Drops what means nothing: nulls, empty lists, and fields whose absence means the same.
fn drop_empty(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (key, inner) in fields.iter_mut() {
                if !MAPS.contains(&key.as_str()) {
                    drop_empty(inner);
                }
            }
            fields.retain(|key, inner| !means_nothing(key, inner));
        }
        Value::Array(list) => list.iter_mut().for_each(drop_empty),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn means_nothing(key: &str, value: &Value) -> bool {
    const FLAGS: [&str; 7] =
        ["hostIPC", "hostNetwork", "hostPID", "readOnly", "stdin", "stdinOnce", "tty"];
    const TEXTS: [&str; 3] = ["hostnameOverride", "preemptionPolicy", "runtimeClassName"];
    match value {
        Value::Null => true,
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty() && MAPS.contains(&key),
        Value::Bool(flag) => !flag && FLAGS.contains(&key),
        Value::String(text) => text.is_empty() && !TEXTS.contains(&key),
        Value::Number(_) => false,
    }
}

#[cfg(test)]
mod tests;
