//! Namespace: where other objects live. It goes in two steps: it is marked, and removed once
//! `spec.finalizers` is empty.

pub mod conditions;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    duration::age,
    field::{ErrorList, FieldError, Path},
    json::{at, list, object_mut, set_default, text},
    kinds::each,
    labels::NAMESPACE_NAME,
    names,
    strategy::{Column, Json, Strategy, WriteContext, keep},
    table::{self, AGE, NAME, column},
};

/// The entry of `spec.finalizers` that is taken out when nothing is left in the namespace.
pub const FINALIZER: &str = "kubernetes";

const COLUMNS: &[Column] = &[NAME, column("Status", "Whether it is active or going."), AGE];

/// Namespace.
#[derive(Debug)]
pub struct NamespaceStrategy;

impl Strategy for NamespaceStrategy {
    fn fill_defaults(&self, object: &mut Json) {
        label_with_name(object);
        let status = object_mut(object, "status");
        if text(status, &["phase"]).is_empty() {
            status.remove("phase");
        }
        set_default(status, "phase", "Active");
    }

    fn prepare_create(&self, object: &mut Json, _context: &WriteContext) {
        // A generated name is known only now.
        label_with_name(object);
        object.insert("status".to_owned(), json!({"phase": "Active"}));
        let spec = object_mut(object, "spec");
        if !list(spec, &["finalizers"]).iter().any(|name| name == FINALIZER) {
            let mut finalizers = list(spec, &["finalizers"]).to_vec();
            finalizers.push(FINALIZER.into());
            spec.insert("finalizers".to_owned(), finalizers.into());
        }
    }

    fn validate_create(&self, object: &Json) -> ErrorList {
        let path = Path::new("spec").child("finalizers");
        finalizers(object).flat_map(|name| validate_finalizer(name, &path)).collect()
    }

    fn prepare_update(&self, object: &mut Json, old: &Json, _context: &WriteContext) {
        label_with_name(object);
        keep(object, old, "status");
        match at(old, &["spec", "finalizers"]) {
            Some(kept) => {
                object_mut(object, "spec").insert("finalizers".to_owned(), kept.clone());
            }
            None => {
                if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) {
                    spec.remove("finalizers");
                }
            }
        }
    }

    fn validate_status_update(&self, object: &Json, _old: &Json) -> ErrorList {
        let is_going = at(object, &["metadata", "deletionTimestamp"]).is_some_and(Value::is_string);
        let (wanted, why) = if is_going {
            ("Terminating", "may only be 'Terminating' if `deletionTimestamp` is not empty")
        } else {
            ("Active", "may only be 'Active' if `deletionTimestamp` is empty")
        };
        let phase = text(object, &["status", "phase"]);
        if phase == wanted {
            return ErrorList::new();
        }
        vec![FieldError::invalid(&Path::new("status").child("Phase"), phase, why)]
    }

    fn validate_part_update(&self, part: &str, object: &Json, old: &Json) -> ErrorList {
        match part {
            "finalize" => validate_finalize(object),
            _ => self.validate_status_update(object, old),
        }
    }

    fn validate_name(&self, name: &str, is_prefix: bool) -> Vec<String> {
        names::name_is_dns_label(name, is_prefix)
    }

    fn has_status(&self) -> bool {
        true
    }

    fn has_generation(&self) -> bool {
        false
    }

    fn delete_returns_object(&self) -> bool {
        true
    }

    fn selectable_fields(&self) -> &'static [&'static str] {
        &["status.phase"]
    }

    fn field_value(&self, object: &Json, _field: &str) -> String {
        text(object, &["status", "phase"]).to_owned()
    }

    fn columns(&self) -> &'static [Column] {
        COLUMNS
    }

    fn row(&self, object: &Json, now: Timestamp) -> Vec<Value> {
        vec![
            table::name(object),
            text(object, &["status", "phase"]).into(),
            age(object, now).into(),
        ]
    }
}

fn validate_finalize(object: &Json) -> ErrorList {
    let path = Path::new("spec").child("finalizers");
    finalizers(object)
        .enumerate()
        .flat_map(|(at, name)| validate_finalizer(name, &path.index(at)))
        .collect()
}

fn finalizers(object: &Json) -> impl Iterator<Item = &str> {
    list(object, &["spec", "finalizers"]).iter().filter_map(Value::as_str)
}

fn validate_finalizer(name: &str, path: &Path) -> ErrorList {
    let mut errors: ErrorList = each(path, name, names::qualified_name(name)).collect();
    if !name.contains('/') && ![FINALIZER, "orphan", "foregroundDeletion"].contains(&name) {
        let why = "name is neither a standard finalizer name nor is it fully qualified";
        errors.push(FieldError::invalid(path, name, why));
    }
    errors
}

fn label_with_name(object: &mut Json) {
    let name = text(object, &["metadata", "name"]).to_owned();
    if !name.is_empty() {
        let labels = object_mut(object_mut(object, "metadata"), "labels");
        labels.insert(NAMESPACE_NAME.to_owned(), name.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn context() -> WriteContext {
        let now = "2026-11-15T12:00:00Z".parse().unwrap();
        WriteContext { now, uid: "u".into(), user: "me".into() }
    }

    #[test]
    fn a_new_namespace_is_active_labelled_and_held() {
        let mut namespace = json!({"metadata": {"name": "n"}, "spec": {"finalizers": ["a/b"]}});
        let object = namespace.as_object_mut().unwrap();
        NamespaceStrategy.fill_defaults(object);
        NamespaceStrategy.prepare_create(object, &context());
        assert_eq!(
            namespace,
            json!({
                "metadata": {"name": "n", "labels": {"kubernetes.io/metadata.name": "n"}},
                "spec": {"finalizers": ["a/b", "kubernetes"]},
                "status": {"phase": "Active"},
            })
        );
    }

    #[test]
    fn an_update_touches_neither_finalizers_nor_status() {
        let old = json!({
            "metadata": {"name": "n"},
            "spec": {"finalizers": ["kubernetes"]},
            "status": {"phase": "Active"},
        });
        let mut new = json!({"metadata": {"name": "n"}, "status": {"phase": "Terminating"}});
        let object = new.as_object_mut().unwrap();
        NamespaceStrategy.prepare_update(object, old.as_object().unwrap(), &context());
        assert_eq!(new["spec"], old["spec"]);
        assert_eq!(new["status"], old["status"]);
    }

    #[test]
    fn the_phase_follows_the_deletion_timestamp() {
        let cases = [
            (json!({"metadata": {}, "status": {"phase": "Active"}}), ""),
            (
                json!({"metadata": {}, "status": {"phase": "Terminating"}}),
                "status.Phase: Invalid value: \"Terminating\": may only be 'Active' if \
                 `deletionTimestamp` is empty",
            ),
            (
                json!({"metadata": {"deletionTimestamp": "x"}, "status": {"phase": "Active"}}),
                "status.Phase: Invalid value: \"Active\": may only be 'Terminating' if \
                 `deletionTimestamp` is not empty",
            ),
        ];
        for (namespace, want) in cases {
            let object = namespace.as_object().unwrap();
            let errors = NamespaceStrategy.validate_status_update(object, object);
            let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
            assert_eq!(texts.join("; "), want);
        }
    }

    #[test]
    fn finalizers_are_standard_or_qualified() {
        let namespace = json!({"spec": {"finalizers": ["kubernetes", "a/b", "x"]}});
        let errors = validate_finalize(namespace.as_object().unwrap());
        let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(
            texts,
            [
                "spec.finalizers[2]: Invalid value: \"x\": name is neither a standard finalizer name \
              nor is it fully qualified"
            ]
        );
    }
}
