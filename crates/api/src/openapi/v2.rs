//! The OpenAPI v2 document: the definitions of all kinds in one, as JSON and as the protobuf
//! message `openapi.v2.Document` of gnostic. kubectl asks for it to check lists before it sends
//! what is in them.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::{REFERENCE, closure, defined, hash, paths};
use crate::{
    refused,
    resource::{Registry, Resource},
};

/// The document, in both encodings.
#[derive(Clone, Debug)]
pub struct Swagger {
    /// Changes when the document does.
    pub hash: String,
    /// As JSON.
    pub json: String,
    /// As protobuf.
    pub protobuf: Vec<u8>,
}

/// Makes the document.
pub fn document(registry: &Registry) -> Swagger {
    let served: Vec<&Resource> = registry.iter().map(AsRef::as_ref).collect();
    let of_users = served.iter().filter(|resource| resource.strategy.schema().is_some());
    let defined: BTreeSet<String> = of_users.filter_map(|it| defined::name(it)).collect();
    let definitions: Map<String, Value> = closure(&paths::of(&served).to_string(), &served)
        .into_iter()
        .filter_map(|(name, text)| {
            let mut schema = serde_json::from_str(&text).ok()?;
            if defined.contains(&*name) {
                simplify_kind(&mut schema);
            }
            Some((name.into_owned(), downgraded(schema)))
        })
        .chain(served.iter().filter_map(|resource| refused::schema(resource)))
        .collect();
    let protobuf = encode(&definitions);
    let json = json!({
        "swagger": "2.0",
        "info": {"title": TITLE, "version": crate::KUBERNETES_VERSION},
        "paths": {},
        "definitions": definitions,
    })
    .to_string();
    Swagger { hash: hash(&json), json, protobuf }
}

const TITLE: &str = "Kubernetes";
const KEEPS_UNKNOWN: &str = "x-kubernetes-preserve-unknown-fields";
/// What every kind says of itself.
const MARKS: [&str; 2] = ["x-kubernetes-group-version-kind", "x-kubernetes-selectable-fields"];

/// Takes out of the schema of a kind what version 2 has no words for.
fn simplify_kind(schema: &mut Value) {
    // Fields that are named would be the only ones there are.
    if let Value::Object(node) = schema
        && is_true(node, KEEPS_UNKNOWN)
    {
        node.retain(|key, _| key == "type" || MARKS.contains(&key.as_str()));
        return;
    }
    simplify(schema);
}

/// Takes out of a schema that a user wrote what version 2 has no words for: whoever checks objects
/// by it would refuse good ones. References to kinds of ours stay.
fn simplify(schema: &mut Value) {
    let Some(node) = schema.as_object_mut() else { return };
    if !node.get("allOf").is_some_and(|parts| parts[0]["$ref"].is_string()) {
        node.remove("allOf");
    }
    ["anyOf", "oneOf", "not", "default"].iter().for_each(|key| drop(node.remove(*key)));
    if is_true(node, "nullable") {
        ["type", "items", "properties", "nullable"].iter().for_each(|key| drop(node.remove(*key)));
    }
    if is_true(node, KEEPS_UNKNOWN) {
        ["items", "properties"].iter().for_each(|key| drop(node.remove(*key)));
        if node.get("type").is_some_and(|kind| kind == "object") {
            node.remove("type");
        }
    }
    // kubectl fails on a list of which it does not know what is in it.
    if node.get("type").is_some_and(|kind| kind == "array") && !node.contains_key("items") {
        node.remove("type");
    }
    if is_true(node, "x-kubernetes-int-or-string") {
        node.remove("type");
    }
    drop_required(node);
    for (key, value) in node {
        match (key.as_str(), value) {
            ("items" | "additionalProperties", value) => simplify(value),
            ("properties", Value::Object(properties)) => {
                properties.values_mut().for_each(simplify);
            }
            _ => {}
        }
    }
}

/// What may be null need not be there, as version 2 cannot say so.
fn drop_required(node: &mut Map<String, Value>) {
    let is_nullable = |schema: Option<&Value>| {
        schema.and_then(Value::as_object).is_some_and(|schema| is_true(schema, "nullable"))
    };
    let Some(Value::Array(mut required)) = node.remove("required") else { return };
    let is_whole = is_true(node, "x-kubernetes-embedded-resource");
    let is_free = is_true(node, KEEPS_UNKNOWN);
    let properties = node.get("properties");
    required.retain(|name| {
        let schema = properties.and_then(|it| it.get(name.as_str()?));
        // Nothing is said of whole objects in which there may be more than is known.
        let is_said = is_whole && is_free && (name == "kind" || name == "apiVersion");
        !is_nullable(schema) && !is_said
    });
    if !required.is_empty() && !is_nullable(node.get("additionalProperties")) {
        node.insert("required".to_owned(), required.into());
    }
}

fn is_true(node: &Map<String, Value>, key: &str) -> bool {
    node.get(key) == Some(&Value::Bool(true))
}

/// A schema as version 2 writes it: references stand alone, and nothing is of two types.
fn downgraded(schema: Value) -> Value {
    let Value::Object(mut schema) = schema else { return schema };
    let all_of = schema.remove("allOf");
    if let Some(Value::Array(parts)) = all_of
        && let [Value::Object(part)] = &parts[..]
    {
        schema.extend(part.clone());
    }
    // Whatever can be text or a number is text in version 2; its format says the rest.
    if schema.remove("oneOf").is_some() {
        schema.insert("type".to_owned(), "string".into());
    }
    if let Some(Value::String(reference)) = schema.get_mut("$ref") {
        *reference = reference.replace(REFERENCE, "#/definitions/");
    }
    for (key, value) in &mut schema {
        match (key.as_str(), &mut *value) {
            ("items" | "additionalProperties", Value::Object(_)) => {
                *value = downgraded(value.take());
            }
            ("properties", Value::Object(properties)) => {
                properties.values_mut().for_each(|value| *value = downgraded(value.take()));
            }
            _ => {}
        }
    }
    Value::Object(schema)
}

fn encode(definitions: &Map<String, Value>) -> Vec<u8> {
    let info = Message::of(|info| {
        info.text(1, TITLE);
        info.text(2, crate::KUBERNETES_VERSION);
    });
    let document = Message::of(|document| {
        document.text(1, "2.0");
        document.message(2, &info);
        document.message(8, &Message::default());
        document.message(9, &named_schemas(definitions));
    });
    document.0
}

/// A list of name and schema: what definitions and properties both are.
fn named_schemas(schemas: &Map<String, Value>) -> Message {
    let mut list = Message::default();
    for (name, value) in schemas {
        let named = Message::of(|named| {
            named.text(1, name);
            named.message(2, &schema(value));
        });
        list.message(1, &named);
    }
    list
}

fn schema(value: &Value) -> Message {
    let mut to = Message::default();
    for (key, value) in value.as_object().into_iter().flatten() {
        match (key.as_str(), value) {
            ("$ref", Value::String(text)) => to.text(1, text),
            ("format", Value::String(text)) => to.text(2, text),
            ("title", Value::String(text)) => to.text(3, text),
            ("description", Value::String(text)) => to.text(4, text),
            ("default", value) => to.message(5, &any(value)),
            ("required", Value::Array(names)) => {
                names.iter().filter_map(Value::as_str).for_each(|name| to.text(19, name));
            }
            ("enum", Value::Array(values)) => {
                values.iter().for_each(|value| to.message(20, &any(value)));
            }
            ("additionalProperties", Value::Bool(is_allowed)) => {
                to.message(21, &Message::of(|either| either.flag(2, *is_allowed)));
            }
            ("additionalProperties", value) => {
                to.message(21, &Message::of(|either| either.message(1, &schema(value))));
            }
            ("type", Value::String(text)) => to.message(22, &Message::of(|one| one.text(1, text))),
            ("items", value) => {
                to.message(23, &Message::of(|items| items.message(1, &schema(value))));
            }
            ("properties", Value::Object(properties)) => {
                to.message(25, &named_schemas(properties));
            }
            (key, value) if key.starts_with("x-") => {
                let extension = Message::of(|named| {
                    named.text(1, key);
                    named.message(2, &any(value));
                });
                to.message(31, &extension);
            }
            _ => {}
        }
    }
    to
}

/// Any value travels as YAML, and JSON is YAML.
fn any(value: &Value) -> Message {
    Message::of(|any| any.text(2, &value.to_string()))
}

/// A protobuf message in the making.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn of(fill: impl FnOnce(&mut Self)) -> Self {
        let mut message = Self::default();
        fill(&mut message);
        message
    }

    fn text(&mut self, field: u32, text: &str) {
        self.bytes(field, text.as_bytes());
    }

    fn message(&mut self, field: u32, message: &Self) {
        self.bytes(field, &message.0);
    }

    fn flag(&mut self, field: u32, is_set: bool) {
        self.varint(u64::from(field) << 3);
        self.varint(u64::from(is_set));
    }

    /// A field with a length, and its bytes.
    fn bytes(&mut self, field: u32, bytes: &[u8]) {
        self.varint(u64::from(field) << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    /// Seven bits at a time, the lowest first; all but the last are marked.
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value.to_le_bytes()[0] | 0x80);
            value >>= 7;
        }
        self.0.push(value.to_le_bytes()[0]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin;

    #[test]
    fn every_reference_is_to_a_definition() {
        let swagger = document(&builtin::registry());
        let document: Value = serde_json::from_str(&swagger.json).unwrap();
        let definitions = document["definitions"].as_object().unwrap();
        for rest in swagger.json.split("\"$ref\":\"").skip(1) {
            let name = rest.split('"').next().unwrap().strip_prefix("#/definitions/").unwrap();
            assert!(definitions.contains_key(name), "{name}");
        }
        assert!(!swagger.json.contains("#/components/"));
        assert!(!swagger.json.contains("\"allOf\":["), "kubectl understands references only");
        assert_eq!(
            definitions["io.k8s.api.batch.v1.Job"]["x-kubernetes-group-version-kind"],
            json!([{"group": "batch", "kind": "Job", "version": "v1"}])
        );
        assert_eq!(
            definitions["io.k8s.apimachinery.pkg.util.intstr.IntOrString"]["type"],
            "string"
        );
    }

    #[test]
    fn schemas_lose_what_version_2_does_not_know() {
        let given = json!({
            "type": "object",
            "properties": {
                "port": {
                    "allOf": [{"$ref": "#/components/schemas/X"}],
                    "description": "A port.",
                },
                "many": {"type": "array", "items": {"oneOf": [{"type": "string"}]}},
                "map": {"type": "object", "additionalProperties": {"$ref": "#/components/schemas/Y"}},
            },
        });
        let want = json!({
            "type": "object",
            "properties": {
                "port": {"$ref": "#/definitions/X", "description": "A port."},
                "many": {"type": "array", "items": {"type": "string"}},
                "map": {"type": "object", "additionalProperties": {"$ref": "#/definitions/Y"}},
            },
        });
        assert_eq!(downgraded(given), want);
    }

    #[test]
    fn alternatives_of_users_are_left_out() {
        let mut given = json!({"type": "object", "properties": {
            "metadata": {"allOf": [{"$ref": "#/components/schemas/X"}]},
            "spec": {"type": "object", "oneOf": [{"required": ["a"]}, {"required": ["b"]}],
                     "default": {}},
            "either": {"x-kubernetes-int-or-string": true, "anyOf": [{"type": "string"}]},
            "maybe": {"type": "string", "nullable": true},
            "list": {"type": "array", "items": {"type": "object"},
                     "x-kubernetes-preserve-unknown-fields": true},
            "pod": {"type": "object", "required": ["apiVersion", "kind", "spec"],
                    "properties": {"spec": {"type": "object"}},
                    "x-kubernetes-embedded-resource": true,
                    "x-kubernetes-preserve-unknown-fields": true},
            "nulls": {"type": "object", "additionalProperties": {"nullable": true},
                      "required": ["a"]},
        }, "required": ["maybe", "spec"]});
        simplify(&mut given);
        let want = json!({"type": "object", "properties": {
            "metadata": {"allOf": [{"$ref": "#/components/schemas/X"}]},
            "spec": {"type": "object"},
            "either": {"x-kubernetes-int-or-string": true},
            "maybe": {},
            "list": {"x-kubernetes-preserve-unknown-fields": true},
            "pod": {"required": ["spec"], "x-kubernetes-embedded-resource": true,
                    "x-kubernetes-preserve-unknown-fields": true},
            "nulls": {"type": "object", "additionalProperties": {}},
        }, "required": ["spec"]});
        assert_eq!(given, want);
        let mut free = json!({"type": "object", "properties": {"kind": {"type": "string"}},
                              "x-kubernetes-preserve-unknown-fields": true});
        simplify_kind(&mut free);
        assert_eq!(free, json!({"type": "object"}));
    }

    #[test]
    fn messages_are_encoded_as_gnostic_reads_them() {
        let value = json!({
            "type": "object",
            "required": ["a"],
            "properties": {"a": {"$ref": "#/definitions/A"}},
            "additionalProperties": false,
            "x-y": 1,
        });
        let want: &[u8] = b"\xaa\x01\x02\x10\x00\
            \xca\x01\x18\x0a\x16\x0a\x01a\x12\x11\x0a\x0f#/definitions/A\
            \x9a\x01\x01a\
            \xb2\x01\x08\x0a\x06object\
            \xfa\x01\x0a\x0a\x03x-y\x12\x03\x12\x011";
        assert_eq!(schema(&value).0, want);
        let mut long = Message::default();
        long.text(4, &"x".repeat(300));
        assert_eq!(long.0[..3], [0x22, 0xac, 0x02]);
    }
}
