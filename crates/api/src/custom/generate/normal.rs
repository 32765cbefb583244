//! Brings schemas into the form of published ones: no null types, enumerations as lists, no
//! defaults that say nothing, references without neighbours.

use serde_json::{Map, Value, json};

use super::full_name;
use crate::openapi::REFERENCE;

/// A schema as derived, in the form of published ones.
pub(super) fn form(prefix: &str, schema: Value) -> Value {
    let Value::Object(members) = schema else { return schema };
    object(prefix, members)
}

fn object(prefix: &str, mut schema: Map<String, Value>) -> Value {
    for key in ["title", "$schema"] {
        schema.remove(key);
    }
    without_null(&mut schema);
    enumerate(&mut schema);
    if let Some(text) = schema.get("description").and_then(Value::as_str) {
        let joined = text.split_whitespace().collect::<Vec<_>>().join(" ");
        schema.insert("description".to_owned(), joined.into());
    }
    let required: Vec<Value> =
        schema.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        for (name, property) in properties.iter_mut() {
            let mut normal = form(prefix, property.take());
            let is_required = required.iter().any(|one| one == name);
            if let Some(normal) = normal.as_object_mut()
                && (is_required || normal.get("default").is_some_and(is_nothing))
            {
                normal.remove("default");
            }
            *property = apart(normal);
        }
    }
    for key in ["items", "additionalProperties"] {
        if let Some(inner) = schema.get_mut(key) {
            *inner = form(prefix, inner.take());
        }
    }
    if let Some(target) = schema.get("$ref").and_then(Value::as_str) {
        let name = target.strip_prefix(REFERENCE).unwrap_or(target);
        let target = format!("{REFERENCE}{}", full_name(prefix, name));
        schema.insert("$ref".to_owned(), target.into());
    }
    Value::Object(schema)
}

/// An absent value is not null: `Option` adds nothing to a type.
fn without_null(schema: &mut Map<String, Value>) {
    let null = json!("null");
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|one| *one != null);
        if let [only] = types.as_slice() {
            let only = only.clone();
            schema.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(choices)) = schema.get("anyOf")
        && let [Value::Object(first), second] = choices.as_slice()
        && second.get("type") == Some(&null)
    {
        let first = first.clone();
        schema.remove("anyOf");
        for (key, value) in first {
            schema.entry(key).or_insert(value);
        }
    }
}

/// A choice of documented constants is an enumeration.
fn enumerate(schema: &mut Map<String, Value>) {
    let Some(Value::Array(choices)) = schema.get("oneOf") else { return };
    let mut values = Vec::new();
    for choice in choices {
        match (choice.get("const"), choice.get("enum").and_then(Value::as_array)) {
            (Some(value), _) => values.push(value.clone()),
            (None, Some(several)) => values.extend(several.iter().cloned()),
            (None, None) => return,
        }
    }
    schema.remove("oneOf");
    schema.insert("type".to_owned(), "string".into());
    schema.insert("enum".to_owned(), values.into());
}

/// A reference may not have neighbours.
fn apart(schema: Value) -> Value {
    let Value::Object(mut members) = schema else { return schema };
    if members.len() > 1
        && let Some(target) = members.remove("$ref")
    {
        members.insert("allOf".to_owned(), json!([{"$ref": target}]));
    }
    Value::Object(members)
}

/// Whether a default is what an absent value means anyway.
pub(super) fn is_nothing(default: &Value) -> bool {
    match default {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_i64() == Some(0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
    }
}
