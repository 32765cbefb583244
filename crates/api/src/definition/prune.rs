//! Takes away what a schema does not know, and nulls that mean nothing.

use serde_json::Value;

use super::schema::{Additional, META_FIELDS, Schema};
use crate::strategy::Json;

/// Takes fields out of an object that its schema does not know. The answer is their paths, sorted.
pub(super) fn prune(schema: &Schema, object: &mut Json) -> Vec<String> {
    let mut pruner = Pruner::default();
    pruner.object(schema, object, true);
    pruner.found.sort();
    pruner.found
}

/// The same for a value inside of an object.
pub(super) fn prune_value(schema: &Schema, value: &mut Value) -> Vec<String> {
    let mut pruner = Pruner::default();
    pruner.value(Some(schema), value);
    pruner.found
}

/// Takes nulls away where the schema allows none and has nothing to put in their place.
pub(super) fn drop_nulls(schema: Option<&Schema>, object: &mut Json) {
    object.retain(|name, value| {
        let schema = schema.and_then(|schema| schema.field(name));
        let is_kept = schema.is_none_or(|it| it.is_nullable || it.default.is_some());
        !value.is_null() || is_kept
    });
    for (name, value) in object.iter_mut() {
        drop_inner_nulls(schema.and_then(|schema| schema.field(name)), value);
    }
}

fn drop_inner_nulls(schema: Option<&Schema>, value: &mut Value) {
    match value {
        Value::Object(object) => drop_nulls(schema, object),
        Value::Array(list) => {
            let items = schema.and_then(|schema| schema.items.as_deref());
            list.iter_mut().for_each(|item| drop_inner_nulls(items, item));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[derive(Default)]
struct Pruner {
    path: String,
    found: Vec<String>,
}

impl Pruner {
    fn value(&mut self, schema: Option<&Schema>, value: &mut Value) {
        match (value, schema) {
            (Value::Object(object), Some(schema)) => {
                self.object(schema, object, schema.is_embedded);
            }
            (Value::Object(object), None) => {
                for (name, _) in std::mem::take(object) {
                    self.note(&name);
                }
            }
            (Value::Array(list), schema) => {
                let items = schema.and_then(|schema| schema.items.as_deref());
                let keeps_unknown = schema.is_some_and(|schema| schema.keeps_unknown);
                for (at, item) in list.iter_mut().enumerate() {
                    self.within(&format!("[{at}]"), |pruner| match items {
                        None if keeps_unknown => {}
                        Some(items) if keeps_unknown => pruner.kept(items, item),
                        items => pruner.value(items, item),
                    });
                }
            }
            (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_), _) => {}
        }
    }

    fn object(&mut self, schema: &Schema, object: &mut Json, is_whole: bool) {
        let mut unknown = Vec::new();
        for (name, value) in object.iter_mut() {
            if is_whole && META_FIELDS.contains(&name.as_str()) {
                continue;
            }
            match (schema.properties.get(name), &schema.additional) {
                (Some(schema), _) => self.member(name, Some(schema), value),
                (None, Additional::Of(schema)) => self.member(name, Some(schema), value),
                (None, Additional::Allowed(_)) => self.member(name, None, value),
                (None, Additional::Unsaid) if schema.keeps_unknown => {}
                (None, Additional::Unsaid) => unknown.push(name.clone()),
            }
        }
        for name in unknown {
            object.remove(&name);
            self.note(&name);
        }
    }

    /// Looks into what is in the midst of things that are kept.
    fn kept(&mut self, schema: &Schema, value: &mut Value) {
        match value {
            Value::Object(object) => {
                for (name, value) in object.iter_mut() {
                    if schema.is_embedded && META_FIELDS.contains(&name.as_str()) {
                        continue;
                    }
                    if let Some(schema) = schema.field(name) {
                        self.member(name, Some(schema), value);
                    }
                }
            }
            Value::Array(list) => {
                let Some(items) = schema.items.as_deref() else { return };
                for (at, item) in list.iter_mut().enumerate() {
                    self.within(&format!("[{at}]"), |pruner| pruner.kept(items, item));
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn member(&mut self, name: &str, schema: Option<&Schema>, value: &mut Value) {
        let step = if self.path.is_empty() { name.to_owned() } else { format!(".{name}") };
        self.within(&step, |pruner| pruner.value(schema, value));
    }

    fn within(&mut self, step: &str, then: impl FnOnce(&mut Self)) {
        let length = self.path.len();
        self.path.push_str(step);
        then(self);
        self.path.truncate(length);
    }

    fn note(&mut self, name: &str) {
        let dot = if self.path.is_empty() { "" } else { "." };
        self.found.push(format!("{}{dot}{name}", self.path));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_the_schema_does_not_know_goes_and_is_named() {
        let schema = Schema::read(&json!({"type": "object", "properties": {
            "spec": {"type": "object", "properties": {
                "a": {"type": "string"},
                "list": {"type": "array", "items":
                    {"type": "object", "properties": {"x": {"type": "integer"}}}},
                "map": {"type": "object", "additionalProperties":
                    {"type": "object", "properties": {"x": {"type": "integer"}}}},
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true,
                    "properties": {"known": {"type": "object", "properties": {}}}},
                "pod": {"type": "object", "x-kubernetes-embedded-resource": true,
                    "properties": {"spec": {"type": "object"}}},
            }},
        }}));
        let given = json!({
            "metadata": {"name": "n"}, "extra": 1,
            "spec": {
                "a": "t", "b": 1, "list": [{"x": 1, "y": 2}], "map": {"k": {"x": 1, "y": 2}},
                "free": {"any": {"thing": 1}, "known": {"z": 1}},
                "pod": {"apiVersion": "v1", "kind": "P", "metadata": {"name": "p"}, "more": 1,
                        "spec": {"z": 1}},
            },
        });
        let Value::Object(mut object) = given else { unreachable!("it is one") };
        let found = prune(&schema, &mut object);
        assert_eq!(
            found,
            [
                "extra",
                "spec.b",
                "spec.free.known.z",
                "spec.list[0].y",
                "spec.map.k.y",
                "spec.pod.more",
                "spec.pod.spec.z"
            ]
        );
        let want = json!({
            "metadata": {"name": "n"},
            "spec": {
                "a": "t", "list": [{"x": 1}], "map": {"k": {"x": 1}},
                "free": {"any": {"thing": 1}, "known": {}},
                "pod": {"apiVersion": "v1", "kind": "P", "metadata": {"name": "p"}, "spec": {}},
            },
        });
        assert_eq!(Value::Object(object), want);
    }

    #[test]
    fn nulls_stay_only_where_they_are_a_value_or_stand_for_one() {
        let schema = Schema::read(&json!({"type": "object", "properties": {
            "plain": {"type": "string"},
            "nullable": {"type": "string", "nullable": true},
            "defaulted": {"type": "string", "default": "d"},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        }}));
        let given = json!({"plain": null, "nullable": null, "defaulted": null,
                           "free": {"x": null}});
        let Value::Object(mut object) = given else { unreachable!("it is one") };
        drop_nulls(Some(&schema), &mut object);
        let want = json!({"nullable": null, "defaulted": null, "free": {"x": null}});
        assert_eq!(Value::Object(object), want);
    }
}
