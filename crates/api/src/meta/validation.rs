//! The rules for metadata, common to all kinds.

use std::collections::BTreeSet;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde_json::Value;

use super::{FINALIZER_FOREGROUND, FINALIZER_ORPHAN, Meta, managed};
use crate::{
    field::{ErrorList, FieldError, Path},
    json, names,
    strategy::{Json, MetadataCheck},
};

/// How much the annotations of one object may take: see [`annotations_size`].
pub const ANNOTATIONS_MAX: usize = 256 << 10;
const IMMUTABLE: &str = "field is immutable";

/// Says what is wrong with the metadata of a new object, once its name has been generated.
/// `name_faults` judges names (second argument false) and `generateName` prefixes (true).
pub fn validate_create(
    object: &Json,
    is_namespaced: bool,
    name_faults: impl Fn(&str, bool) -> names::Faults,
) -> ErrorList {
    let empty = Json::new();
    of_new(metadata(object, &empty), is_namespaced, &Path::new("metadata"), name_faults)
}

/// Says what is wrong with the metadata of an object inside of another, which needs no name.
pub fn validate_embedded(meta: &Json, path: &Path) -> ErrorList {
    let mut meta = meta.clone();
    if json::text(&meta, &["name"]).is_empty() {
        meta.insert("name".to_owned(), "none".into());
    }
    let is_namespaced = !json::text(&meta, &["namespace"]).is_empty();
    of_new(&meta, is_namespaced, path, names::path_segment)
}

fn of_new(
    meta: &Json,
    is_namespaced: bool,
    path: &Path,
    name_faults: impl Fn(&str, bool) -> names::Faults,
) -> ErrorList {
    let mut errors = ErrorList::new();
    let prefix = json::text(meta, &["generateName"]);
    if !prefix.is_empty() {
        errors.extend(invalid(&path.child("generateName"), prefix, name_faults(prefix, true)));
    }
    let name = json::text(meta, &["name"]);
    if name.is_empty() {
        errors.push(FieldError::required(&path.child("name"), "name or generateName is required"));
    } else {
        errors.extend(invalid(&path.child("name"), name, name_faults(name, false)));
    }
    errors.extend(validate_namespace(meta, is_namespaced, path));
    let generation = json::integer(meta, &["generation"]).unwrap_or_default();
    if generation < 0 {
        let why = "must be greater than or equal to 0";
        errors.push(FieldError::invalid(&path.child("generation"), generation, why));
    }
    errors.extend(of_any(meta, path));
    errors
}

/// What is wrong with what need not be as it was.
fn of_any(meta: &Json, path: &Path) -> ErrorList {
    let mut errors = validate_label_map(meta.get("labels"), &path.child("labels"));
    errors.extend(validate_annotations(meta.get("annotations"), &path.child("annotations")));
    errors.extend(owners_of(meta, path));
    errors.extend(validate_finalizers(meta, &path.child("finalizers")));
    errors.extend(managed::validate(meta, &path.child("managedFields")));
    errors
}

/// Says what is wrong with a change of metadata from `old` to `object`, as often as upstream does:
/// it looks at what is new and at what has changed, and then lets the kind look again by `check`.
/// Kinds that are strict about finalizers are so each time.
pub fn validate_update(
    object: &Json,
    old: &Json,
    check: MetadataCheck,
    is_strict: bool,
) -> ErrorList {
    let empty = Json::new();
    let (meta, path) = (metadata(object, &empty), Path::new("metadata"));
    if meta == metadata(old, &empty) && !json::text(meta, &["resourceVersion"]).is_empty() {
        // It was accepted before. Most changes are to a status.
        return ErrorList::new();
    }
    let (any, change) = (of_any(meta, &path), of_change(object, old, &path));
    let qualified =
        if is_strict { validate_qualified_finalizers(object) } else { ErrorList::new() };
    let mut errors = [&*any, &*change].concat();
    if check != MetadataCheck::New {
        errors.extend(change.into_iter().chain(qualified.iter().cloned()));
    }
    if check != MetadataCheck::Change {
        errors.extend(any.into_iter().chain(qualified));
    }
    errors
}

/// What is wrong with a change.
fn of_change(object: &Json, old: &Json, path: &Path) -> ErrorList {
    let empty = Json::new();
    let meta = metadata(object, &empty);
    let (new_view, old_view) = (Meta::of(object), Meta::of(old));
    let mut errors = ErrorList::new();
    if old_view.is_deleting() {
        errors.extend(no_new_finalizers(&new_view, &old_view, &path.child("finalizers")));
    }
    if json::text(meta, &["resourceVersion"]).is_empty() {
        let why = "must be specified for an update";
        errors.push(FieldError::invalid(&path.child("resourceVersion"), "", why));
    }
    if new_view.generation < old_view.generation {
        let why = "must not be decremented";
        errors.push(FieldError::invalid(&path.child("generation"), new_view.generation, why));
    }
    let same = [
        ("name", new_view.name == old_view.name),
        ("namespace", new_view.namespace == old_view.namespace),
        ("uid", new_view.uid == old_view.uid),
        ("creationTimestamp", new_view.created == old_view.created),
        ("deletionTimestamp", new_view.deletion == old_view.deletion),
        (
            "deletionGracePeriodSeconds",
            new_view.deletion_grace_seconds == old_view.deletion_grace_seconds,
        ),
    ];
    for (field, is_same) in same {
        if !is_same {
            let value = meta.get(field).unwrap_or(&Value::Null);
            errors.push(FieldError::invalid(&path.child(field), value, IMMUTABLE));
        }
    }
    errors.extend(validate_label_map(meta.get("labels"), &path.child("labels")));
    errors.extend(validate_annotations(meta.get("annotations"), &path.child("annotations")));
    errors.extend(owners_of(meta, path));
    errors.extend(managed::validate(meta, &path.child("managedFields")));
    errors
}

/// Says what is wrong with a map of labels.
pub fn validate_labels<'a>(
    labels: impl IntoIterator<Item = (&'a str, &'a str)>,
    path: &Path,
) -> ErrorList {
    let mut errors = ErrorList::new();
    for (key, value) in labels {
        errors.extend(validate_label_name(key, path));
        errors.extend(invalid(path, value, names::label_value(value)));
    }
    errors
}

/// Says what is wrong with a label's key.
pub fn validate_label_name(key: &str, path: &Path) -> ErrorList {
    invalid(path, key, names::qualified_name(key))
}

/// Says what is wrong with a label selector.
pub fn validate_label_selector(selector: &LabelSelector, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    if let Some(labels) = &selector.match_labels {
        let pairs = labels.iter().map(|(k, v)| (k.as_str(), v.as_str()));
        errors.extend(validate_labels(pairs, &path.child("matchLabels")));
    }
    let path = path.child("matchExpressions");
    for (at, wanted) in selector.match_expressions.iter().flatten().enumerate() {
        let path = path.index(at);
        let values = wanted.values.as_deref().unwrap_or_default();
        let values_path = path.child("values");
        match wanted.operator.as_str() {
            "In" | "NotIn" if values.is_empty() => errors.push(FieldError::required(
                &values_path,
                "must be specified when `operator` is 'In' or 'NotIn'",
            )),
            "Exists" | "DoesNotExist" if !values.is_empty() => errors.push(FieldError::forbidden(
                &values_path,
                "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
            )),
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            other => errors.push(FieldError::invalid(
                &path.child("operator"),
                other,
                "not a valid selector operator",
            )),
        }
        errors.extend(validate_label_name(&wanted.key, &path.child("key")));
        for (n, value) in values.iter().enumerate() {
            errors.extend(invalid(&values_path.index(n), value, names::label_value(value)));
        }
    }
    errors
}

/// Says what is wrong with a map of annotations: keys as labels have them but in any case, and 256
/// KiB in all.
pub fn validate_annotations(annotations: Option<&Value>, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let Some(annotations) = annotations.and_then(Value::as_object) else { return errors };
    for key in annotations.keys() {
        errors.extend(invalid(path, key, names::qualified_name(&key.to_lowercase())));
    }
    if annotations_size(annotations) > ANNOTATIONS_MAX {
        errors.push(FieldError::too_long(path, ANNOTATIONS_MAX));
    }
    errors
}

/// The bytes that annotations take, keys and values.
pub fn annotations_size(annotations: &Json) -> usize {
    annotations.iter().map(|(key, value)| key.len() + value.as_str().map_or(0, str::len)).sum()
}

/// Says what is wrong with owner references.
pub fn validate_owner_references(references: &[Value], path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut controller: Option<String> = None;
    for reference in references {
        let text = |key: &str| reference.get(key).and_then(Value::as_str).unwrap_or_default();
        let api_version = text("apiVersion");
        if version_of(api_version).is_empty() {
            let why = "version must not be empty";
            errors.push(FieldError::invalid(&path.child("apiVersion"), api_version, why));
        }
        for field in ["kind", "name", "uid"] {
            if text(field).is_empty() {
                errors.push(FieldError::invalid(&path.child(field), "", "must not be empty"));
            }
        }
        if api_version == "v1" && text("kind") == "Event" {
            let why = "/v1, Kind=Event is disallowed from being an owner";
            errors.push(FieldError::invalid(path, reference, why));
        }
        if reference.get("controller").and_then(Value::as_bool) != Some(true) {
            continue;
        }
        let this = format!("{}/{}", text("kind"), text("name"));
        if let Some(first) = &controller {
            let why = format!(
                "Only one reference can have Controller set to true. Found \"true\" in references \
                 for {first} and {this}"
            );
            errors.push(FieldError::invalid(path, references, &why));
        } else {
            controller = Some(this);
        }
    }
    errors
}

/// Says what is wrong with the name of a finalizer.
pub fn validate_finalizer_name(name: &str, path: &Path) -> ErrorList {
    invalid(path, name, names::qualified_name(name))
}

/// Says which finalizers are neither the system's own nor qualified by a domain. Built-in kinds
/// refuse them; custom ones never did.
pub fn validate_qualified_finalizers(object: &Json) -> ErrorList {
    let path = Path::new("metadata").child("finalizers");
    let names = json::list(object, &["metadata", "finalizers"]).iter().enumerate();
    let names = names.filter_map(|(at, name)| Some((at, name.as_str()?)));
    let is_odd = |name: &str| {
        !name.contains('/')
            && ![FINALIZER_FOREGROUND, FINALIZER_ORPHAN, "kubernetes"].contains(&name)
    };
    let why = "name is neither a standard finalizer name nor is it fully qualified";
    names
        .filter(|(_, name)| is_odd(name))
        .map(|(at, name)| FieldError::invalid(&path.index(at), name, why))
        .collect()
}

/// One `Invalid value` for each fault of `value`.
pub(crate) fn invalid(path: &Path, value: &str, faults: names::Faults) -> ErrorList {
    faults.iter().map(|fault| FieldError::invalid(path, value, fault)).collect()
}

fn metadata<'a>(object: &'a Json, empty: &'a Json) -> &'a Json {
    object.get("metadata").and_then(Value::as_object).unwrap_or(empty)
}

fn validate_namespace(meta: &Json, is_namespaced: bool, path: &Path) -> ErrorList {
    let (namespace, path) = (json::text(meta, &["namespace"]), path.child("namespace"));
    match (is_namespaced, namespace) {
        (true, "") => vec![FieldError::required(&path, "")],
        (true, name) => invalid(&path, name, names::dns1123_label(name)),
        (false, "") => ErrorList::new(),
        (false, _) => vec![FieldError::forbidden(&path, "not allowed on this type")],
    }
}

fn validate_label_map(labels: Option<&Value>, path: &Path) -> ErrorList {
    let pairs = labels.and_then(Value::as_object).into_iter().flatten();
    validate_labels(pairs.map(|(k, v)| (k.as_str(), v.as_str().unwrap_or_default())), path)
}

fn owners_of(meta: &Json, path: &Path) -> ErrorList {
    validate_owner_references(
        json::list(meta, &["ownerReferences"]),
        &path.child("ownerReferences"),
    )
}

fn validate_finalizers(meta: &Json, path: &Path) -> ErrorList {
    let finalizers = json::list(meta, &["finalizers"]);
    let names: Vec<&str> = finalizers.iter().filter_map(Value::as_str).collect();
    let mut errors: ErrorList =
        names.iter().flat_map(|name| validate_finalizer_name(name, path)).collect();
    if names.contains(&FINALIZER_ORPHAN) && names.contains(&FINALIZER_FOREGROUND) {
        let why =
            format!("finalizer {FINALIZER_ORPHAN} and {FINALIZER_FOREGROUND} cannot be both set");
        errors.push(FieldError::invalid(path, &names, &why));
    }
    errors
}

fn no_new_finalizers(new: &Meta, old: &Meta, path: &Path) -> Option<FieldError> {
    let had: BTreeSet<&str> = old.finalizers.iter().map(AsRef::as_ref).collect();
    let has: BTreeSet<&str> = new.finalizers.iter().map(AsRef::as_ref).collect();
    let extra: Vec<String> = has.difference(&had).map(|name| format!("{name:?}")).collect();
    if extra.is_empty() {
        return None;
    }
    let why = format!(
        "no new finalizers can be added if the object is being deleted, found new finalizers \
         []string{{{}}}",
        extra.join(", ")
    );
    Some(FieldError::forbidden(path, &why))
}

/// The version part of `apiVersion`, empty when there is none.
fn version_of(api_version: &str) -> &str {
    match api_version.split_once('/') {
        Some((_, version)) if !version.contains('/') => version,
        Some(_) => "",
        None => api_version,
    }
}

#[cfg(test)]
mod tests;
