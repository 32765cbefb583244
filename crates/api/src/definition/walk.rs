//! The way through an object by its schema.

use serde_json::Value;

use super::schema::Schema;
use crate::{field::Path, strategy::Json};

/// Shows every value inside of an object that the schema says something about, the outer ones
/// first, with what is said about it and where it is.
pub(super) fn walk(schema: &Schema, object: &Json, visit: &mut impl FnMut(&Schema, &Value, &Path)) {
    in_object(schema, object, &Path::default(), visit);
}

fn in_object(
    schema: &Schema,
    object: &Json,
    path: &Path,
    visit: &mut impl FnMut(&Schema, &Value, &Path),
) {
    for (name, value) in object {
        if let Some(property) = schema.properties.get(name) {
            in_value(property, value, &path.child(name), visit);
        } else if let Some(additional) = schema.additional.schema() {
            in_value(additional, value, &path.key(name), visit);
        }
    }
}

/// Shows a value, and every one inside of it.
pub(super) fn in_value(
    schema: &Schema,
    value: &Value,
    path: &Path,
    visit: &mut impl FnMut(&Schema, &Value, &Path),
) {
    visit(schema, value, path);
    match value {
        Value::Object(object) => in_object(schema, object, path, visit),
        Value::Array(list) => {
            let Some(items) = schema.items.as_deref() else { return };
            for (at, item) in list.iter().enumerate() {
                in_value(items, item, &path.index(at), visit);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
