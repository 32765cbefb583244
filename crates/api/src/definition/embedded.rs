//! Whole objects inside of other objects.

use serde_json::Value;

use super::schema::Schema;
use crate::{
    field::{ErrorList, FieldError, Path},
    meta, names,
    strategy::Json,
};

/// What is wrong with the objects that are embedded in an object.
pub(super) fn faults(schema: &Schema, object: &Json) -> ErrorList {
    let mut errors = ErrorList::new();
    in_object(schema, object, &Path::default(), &mut errors);
    errors
}

fn in_object(schema: &Schema, object: &Json, path: &Path, errors: &mut ErrorList) {
    for (name, value) in object {
        if let Some(property) = schema.properties.get(name) {
            in_value(property, value, &path.child(name), errors);
        } else if let Some(additional) = schema.additional.schema() {
            in_value(additional, value, &path.key(name), errors);
        }
    }
}

fn in_value(schema: &Schema, value: &Value, path: &Path, errors: &mut ErrorList) {
    match value {
        Value::Object(object) => {
            if schema.is_embedded {
                errors.extend(of_one(object, path));
            }
            in_object(schema, object, path, errors);
        }
        Value::Array(list) => {
            let Some(items) = schema.items.as_deref() else { return };
            for (at, item) in list.iter().enumerate() {
                in_value(items, item, &path.index(at), errors);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
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
