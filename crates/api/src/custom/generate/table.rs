//! The table of types behind [`crate::schema`], made of OpenAPI schemas.
//!
//! A custom object has what its author wrote: every field of ours tells absent from zero, and none
//! is written unless given. What lies inside of published types goes by their own rules.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::one_per_line;
use crate::openapi::REFERENCE;

/// The table, one type per line; `named` are the kinds.
pub(super) fn text(named: &BTreeMap<String, Value>, schemas: &BTreeMap<String, Value>) -> String {
    let mut types = BTreeMap::new();
    for (name, schema) in schemas {
        if schema["properties"].is_object() && !is_list(schema) {
            add_struct(name, schema, schemas, &mut types);
        }
    }
    format!("{{\"kinds\":{},\"types\":{}}}\n", one_per_line(named), one_per_line(&types))
}

/// Lists of objects are never decoded.
fn is_list(schema: &Value) -> bool {
    schema["x-kubernetes-group-version-kind"][0]["kind"]
        .as_str()
        .is_some_and(|kind| kind.ends_with("List"))
}

fn add_struct(
    name: &str,
    schema: &Value,
    schemas: &BTreeMap<String, Value>,
    types: &mut BTreeMap<String, Value>,
) {
    let mut fields = Vec::new();
    for (field, property) in schema["properties"].as_object().into_iter().flatten() {
        let behind = type_name(property, schemas, types);
        let pointer = format!("*{behind}");
        types.insert(pointer.clone(), json!({"kind": "pointer", "elem": behind}));
        let mut entry = Map::new();
        entry.insert("name".to_owned(), field.as_str().into());
        entry.insert("omit".to_owned(), "empty".into());
        // Metadata of an object is always there.
        let is_root = schema.get("x-kubernetes-group-version-kind").is_some();
        let is_meta = is_root && field == "metadata";
        entry.insert("type".to_owned(), if is_meta { behind } else { pointer }.into());
        if is_root && (field == "kind" || field == "apiVersion") {
            entry.insert("via".to_owned(), "TypeMeta".into());
        }
        for (key, extension) in [
            ("listType", "x-kubernetes-list-type"),
            ("listKeys", "x-kubernetes-list-map-keys"),
            ("mapType", "x-kubernetes-map-type"),
        ] {
            if let Some(value) = property.get(extension) {
                entry.insert(key.to_owned(), value.clone());
            }
        }
        fields.push(Value::Object(entry));
    }
    let go = go_name(name, schemas);
    types.insert(name.to_owned(), json!({"kind": "struct", "go": go, "fields": fields}));
}

/// The name of a property's type; lists and maps are added to the table.
fn type_name(
    property: &Value,
    schemas: &BTreeMap<String, Value>,
    types: &mut BTreeMap<String, Value>,
) -> String {
    let target = property.get("$ref").or_else(|| property["allOf"][0].get("$ref"));
    if let Some(target) = target.and_then(Value::as_str) {
        let name = target.strip_prefix(REFERENCE).unwrap_or(target);
        // A reference to an enumeration of ours is one to its type.
        return match schemas.get(name) {
            Some(schema) if !schema["properties"].is_object() => type_name(schema, schemas, types),
            _ => name.to_owned(),
        };
    }
    if property["x-kubernetes-preserve-unknown-fields"] == true {
        return "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1".to_owned();
    }
    if property["x-kubernetes-int-or-string"] == true {
        return "io.k8s.apimachinery.pkg.util.intstr.IntOrString".to_owned();
    }
    let (prefix, kind, inner) = match property["type"].as_str().unwrap_or_default() {
        "array" => ("[]", "list", &property["items"]),
        "object" if property["additionalProperties"].is_object() => {
            ("map[string]", "map", &property["additionalProperties"])
        }
        "boolean" => return "bool".to_owned(),
        "integer" if property["format"] == "int32" => return "int32".to_owned(),
        "integer" => return "int64".to_owned(),
        "string" if property["format"] == "date-time" => {
            return "io.k8s.apimachinery.pkg.apis.meta.v1.Time".to_owned();
        }
        _ => return "string".to_owned(),
    };
    let elem = type_name(inner, schemas, types);
    let name = format!("{prefix}{elem}");
    let mut entry = json!({"kind": kind, "elem": elem});
    if elem.contains('.') {
        entry["go"] = format!("{prefix}{}", go_name(&elem, schemas)).into();
    }
    types.insert(name.clone(), entry);
    name
}

/// Types of ours that stand for published ones: the same but for the metadata in them.
const STAND_INS: [&str; 4] =
    ["JobSpec", "JobTemplateSpec", "PersistentVolumeClaim", "PodTemplateSpec"];

/// The name of a struct as Go's messages have it.
fn go_name(name: &str, schemas: &BTreeMap<String, Value>) -> String {
    let mut parts = name.rsplit('.');
    let short = parts.next().unwrap_or(name);
    if short == "Quantity" {
        return "resource.Quantity".to_owned();
    }
    let is_ours = schemas.contains_key(name) && !STAND_INS.contains(&short);
    let version = parts.next().filter(|_| is_ours).unwrap_or("v1");
    format!("{version}.{short}")
}
