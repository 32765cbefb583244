//! Fills in the defaults of a schema.

use serde_json::Value;

use super::schema::Schema;
use crate::strategy::Json;

/// Fills in what an object lacks and its schema has a default for.
pub(super) fn fill(schema: &Schema, object: &mut Json) {
    for (name, property) in &schema.properties {
        let Some(default) = &property.default else { continue };
        let is_missing = match object.get(name) {
            None => true,
            Some(value) => value.is_null() && !property.is_nullable,
        };
        if is_missing {
            object.insert(name.clone(), default.clone());
        }
    }
    for (name, value) in object.iter_mut() {
        match (schema.properties.get(name), schema.additional.schema()) {
            (Some(property), _) => fill_value(property, value),
            (None, Some(additional)) => fill_element(additional, value),
            (None, None) => {}
        }
    }
}

fn fill_value(schema: &Schema, value: &mut Value) {
    match value {
        Value::Object(object) => fill(schema, object),
        Value::Array(list) => {
            let Some(items) = schema.items.as_deref() else { return };
            list.iter_mut().for_each(|item| fill_element(items, item));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn fill_element(schema: &Schema, value: &mut Value) {
    if value.is_null() && !schema.is_nullable {
        *value = schema.default.clone().unwrap_or_default();
    }
    fill_value(schema, value);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn defaults_are_filled_in_at_every_depth_but_not_above() {
        let schema = Schema::read(&json!({"type": "object", "properties": {
            "spec": {"type": "object", "properties": {
                "a": {"type": "string", "default": "x"},
                "n": {"type": "string", "default": "x", "nullable": true},
                "deep": {"type": "object", "default": {}, "properties": {
                    "b": {"type": "integer", "default": 3}}},
                "absent": {"type": "object", "properties": {
                    "c": {"type": "integer", "default": 4}}},
                "list": {"type": "array", "items": {"type": "object", "properties": {
                    "d": {"type": "boolean", "default": true}}}},
                "map": {"type": "object", "additionalProperties":
                    {"type": "string", "default": "e"}},
            }},
        }}));
        let given = json!({"spec": {"n": null, "list": [{}], "map": {"k": null, "l": "f"}}});
        let Value::Object(mut object) = given else { unreachable!("it is one") };
        fill(&schema, &mut object);
        let want = json!({"spec": {
            "a": "x", "n": null, "deep": {"b": 3}, "list": [{"d": true}],
            "map": {"k": "e", "l": "f"},
        }});
        assert_eq!(Value::Object(object), want);
    }
}
