//! Whole objects inside of other objects.

use serde_json::Value;

use super::{schema::Schema, walk::walk};
use crate::{
    field::{ErrorList, FieldError, Path},
    meta, names,
    strategy::Json,
};

/// What is wrong with the objects that are embedded in an object.
pub(super) fn faults(schema: &Schema, object: &Json) -> ErrorList {
    let mut errors = ErrorList::new();
    walk(schema, object, &mut |schema, value, path| {
        if let (true, Value::Object(object)) = (schema.is_embedded, value) {
            errors.extend(of_one(object, path));
        }
    });
    errors
}

fn of_one(object: &Json, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    for name in ["apiVersion", "kind"] {
        let path = path.child(name);
        match object.get(name) {
            None => errors.push(FieldError::required(&path, "")),
            Some(Value::String(text)) if text.is_empty() => {
                errors.push(FieldError::invalid(&path, "", "must not be empty"));
            }
            Some(Value::String(text)) if name == "kind" => {
                let faults = names::dns1035_label(&text.to_lowercase());
                if !faults.is_empty() {
                    let why = format!(
                        "may have mixed case, but should otherwise match: {}",
                        faults.join(",")
                    );
                    errors.push(FieldError::invalid(&path, text, &why));
                }
            }
            Some(Value::String(text)) if text.matches('/').count() > 1 => {
                let why = format!("unexpected GroupVersion string: {text}");
                errors.push(FieldError::invalid(&path, text, &why));
            }
            Some(Value::String(_)) => {}
            Some(other) => errors.push(FieldError::invalid(&path, other, "must be a string")),
        }
    }
    let path = path.child("metadata");
    let Some(Value::Object(metadata)) = object.get("metadata") else { return errors };
    errors.extend(meta::validate_annotations(
        metadata.get("annotations"),
        &path.child("annotations"),
    ));
    if let Some(Value::String(name)) = metadata.get("name") {
        for fault in names::path_segment(name, false) {
            errors.push(FieldError::invalid(&path.child("name"), name, &fault));
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn embedded_objects_say_what_they_are() {
        let schema = Schema::read(&json!({"type": "object", "properties": {"spec": {
            "type": "object", "properties": {"one": {
                "type": "object", "x-kubernetes-embedded-resource": true,
                "x-kubernetes-preserve-unknown-fields": true}}}}}));
        let found = |one: Value| -> Vec<String> {
            let Value::Object(object) = json!({"spec": {"one": one}}) else {
                unreachable!("is one")
            };
            faults(&schema, &object).iter().map(ToString::to_string).collect()
        };
        assert!(found(json!({"apiVersion": "v1", "kind": "Pod", "x": 1})).is_empty());
        assert_eq!(
            found(json!({"kind": ""})),
            [
                "spec.one.apiVersion: Required value",
                "spec.one.kind: Invalid value: \"\": must not be empty"
            ]
        );
    }
}
