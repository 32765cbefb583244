//! Whole objects inside of other objects.

use serde_json::Value;

use super::{
    schema::Schema,
    walk::{in_value, walk},
};
use crate::{
    field::{ErrorList, FieldError, Path},
    meta, names,
    strategy::Json,
};

/// What is wrong with the objects that are embedded in an object.
pub(super) fn faults(schema: &Schema, object: &Json) -> ErrorList {
    let mut errors = ErrorList::new();
    walk(schema, object, &mut |schema, value, path| add_faults(schema, value, path, &mut errors));
    errors
}

/// What is wrong with a value and with those in it, as far as they are embedded.
pub(super) fn faults_in(schema: &Schema, value: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    in_value(schema, value, path, &mut |schema, value, path| {
        add_faults(schema, value, path, &mut errors);
    });
    errors
}

fn add_faults(schema: &Schema, value: &Value, path: &Path, errors: &mut ErrorList) {
    if let (true, Value::Object(object)) = (schema.is_embedded, value) {
        errors.extend(of_one(object, path));
    }
}

/// What is wrong with an object that is embedded, or would be.
pub(super) fn of_one(object: &Json, path: &Path) -> ErrorList {
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
    if let Some(Value::Object(metadata)) = object.get("metadata") {
        errors.extend(meta::validate_embedded(metadata, &path.child("metadata")));
    }
    errors
}

/// Lets `fit` change the objects that are embedded in an object, the outer ones first.
///
/// # Errors
/// The first that `fit` has.
pub(crate) fn fit_each<E>(
    schema: &Schema,
    object: &mut Json,
    path: &Path,
    fit: &mut impl FnMut(&mut Json, &Path) -> Result<(), E>,
) -> Result<(), E> {
    for (name, value) in object {
        if let Some(property) = schema.properties.get(name) {
            fit_in(property, value, &path.child(name), fit)?;
        } else if let Some(additional) = schema.additional.schema() {
            fit_in(additional, value, &path.key(name), fit)?;
        }
    }
    Ok(())
}

/// The same for a value, and what is in it.
///
/// # Errors
/// The first that `fit` has.
pub(super) fn fit_in<E>(
    schema: &Schema,
    value: &mut Value,
    path: &Path,
    fit: &mut impl FnMut(&mut Json, &Path) -> Result<(), E>,
) -> Result<(), E> {
    match value {
        Value::Object(object) => {
            if schema.is_embedded {
                fit(object, path)?;
            }
            fit_each(schema, object, path, fit)
        }
        Value::Array(list) => {
            let Some(items) = schema.items.as_deref() else { return Ok(()) };
            let mut elements = list.iter_mut().enumerate();
            elements.try_for_each(|(at, item)| fit_in(items, item, &path.index(at), fit))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
    }
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
        assert_eq!(
            found(json!({"apiVersion": "v1", "kind": "Pod", "metadata": {
                "name": "a/b", "labels": {"-": "x"}}})),
            [
                "spec.one.metadata.name: Invalid value: \"a/b\": may not contain '/'",
                "spec.one.metadata.labels: Invalid value: \"-\": name part must consist of \
                 alphanumeric characters, '-', '_' or '.', and must start and end with an \
                 alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used \
                 for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
            ]
        );
    }
}
