//! The CustomResourceDefinition: schemas with every reference resolved, as an API server demands.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{
    full_name,
    normal::is_nothing,
    package::{Kind, Older, Package},
};
use crate::{
    openapi::{self, REFERENCE},
    resource::Scope,
};

/// What a quantity looks like.
const QUANTITY: &str = "^(\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))\
                        (([KMGTPE]i)|[numkMGTPE]|([eE](\\+|-)?(([0-9]+(\\.[0-9]*)?)|\
                        (\\.[0-9]+))))?$";

/// Parts of published schemas that a definition may not have, or that are of no use there.
const DROPPED: [&str; 6] = [
    "description",
    "x-kubernetes-group-version-kind",
    "x-kubernetes-patch-merge-key",
    "x-kubernetes-patch-strategy",
    "x-kubernetes-unions",
    "example",
];

/// Where the schema has the name of a rule of the failure policy.
const RULE_NAME: &str =
    "/properties/spec/properties/failurePolicy/properties/rules/items/properties/name";

/// The definition of a kind.
pub(super) fn of(package: &Package, kind: &Kind, schemas: &BTreeMap<String, Value>) -> Value {
    let mut names = json!({
        "kind": kind.kind,
        "listKind": format!("{}List", kind.kind),
        "plural": kind.plural,
        "singular": kind.kind.to_lowercase(),
    });
    if !kind.short_names.is_empty() {
        names["shortNames"] = json!(kind.short_names);
    }
    let scope = match kind.scope {
        Scope::Cluster => "Cluster",
        Scope::Namespaced => "Namespaced",
    };
    let older = package.older.as_ref().map(|older| unserved(kind, older));
    let versions: Vec<Value> = older.into_iter().chain([stored(package, kind, schemas)]).collect();
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{}.{}", kind.plural, package.group)},
        "spec": {
            "group": package.group,
            "names": names,
            "scope": scope,
            "versions": versions,
        },
    })
}

/// The version that is stored.
fn stored(package: &Package, kind: &Kind, schemas: &BTreeMap<String, Value>) -> Value {
    let root = &schemas[&full_name(package.prefix, kind.kind)];
    let mut schema = Resolver { prefix: package.prefix, schemas }.resolved(root, Origin::Ours);
    schema["properties"]["metadata"] = json!({"type": "object"});
    if let Some(schema) = schema.as_object_mut() {
        schema.remove("x-kubernetes-group-version-kind");
    }
    // A webhook names rules that have no name; without one they would be refused for that.
    if let Some(name) = schema.pointer_mut(RULE_NAME) {
        name["default"] = "".into();
    }
    let mut version = json!({
        "name": package.version,
        "served": true,
        "storage": true,
        "schema": {"openAPIV3Schema": schema},
    });
    add_parts(kind, &mut version);
    version
}

/// A version that the embedded server converts. A cluster that knows it by this definition only has
/// nobody to convert it, so it is not served there, and its schema, which nothing is ever checked
/// by, says nothing.
fn unserved(kind: &Kind, older: &Older) -> Value {
    let mut version = json!({
        "name": older.version,
        "served": false,
        "storage": false,
        "deprecated": true,
        "deprecationWarning": older.warning,
        "schema": {"openAPIV3Schema":
            {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
    });
    if kind.has_status {
        version["subresources"] = json!({"status": {}});
    }
    version
}

/// What a version has beside its schema.
fn add_parts(kind: &Kind, version: &mut Value) {
    let columns = kind.printed.iter().map(|printed| {
        let mut column = json!({
            "name": printed.name, "type": printed.kind, "jsonPath": printed.path,
        });
        if !printed.description.is_empty() {
            column["description"] = printed.description.into();
        }
        if printed.priority != 0 {
            column["priority"] = printed.priority.into();
        }
        column
    });
    if !kind.printed.is_empty() {
        version["additionalPrinterColumns"] = columns.collect();
    }
    if kind.has_status {
        version["subresources"] = json!({"status": {}});
    }
    if !kind.selectable.is_empty() {
        let fields = kind.selectable.iter().map(|field| json!({"jsonPath": format!(".{field}")}));
        version["selectableFields"] = fields.collect();
    }
}

/// Whose schema it is: descriptions of published ones would make the definition too large to be
/// applied.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Origin {
    Ours,
    Published,
}

struct Resolver<'a> {
    prefix: &'static str,
    schemas: &'a BTreeMap<String, Value>,
}

impl Resolver<'_> {
    /// The schema with everything it refers to in place.
    fn resolved(&self, schema: &Value, origin: Origin) -> Value {
        let Some(members) = schema.as_object() else { return schema.clone() };
        let target = members.get("$ref").or_else(|| members.get("allOf")?.get(0)?.get("$ref"));
        let mut flat = match target.and_then(Value::as_str) {
            Some(target) => self.referred(target),
            None => Map::new(),
        };
        for (key, value) in members {
            let is_dropped = match key.as_str() {
                "$ref" | "allOf" => true,
                "default" => is_nothing(value),
                key => origin == Origin::Published && DROPPED.contains(&key),
            };
            if !is_dropped {
                flat.insert(key.clone(), self.member(key, value, origin));
            }
        }
        default_keys(&mut flat);
        Value::Object(flat)
    }

    fn member(&self, key: &str, value: &Value, origin: Origin) -> Value {
        match (key, value) {
            ("properties", Value::Object(properties)) => properties
                .iter()
                .map(|(name, property)| (name.clone(), self.resolved(property, origin)))
                .collect(),
            ("items" | "additionalProperties", inner) => self.resolved(inner, origin),
            (_, value) => value.clone(),
        }
    }

    fn referred(&self, target: &str) -> Map<String, Value> {
        let name = target.strip_prefix(REFERENCE).unwrap_or(target);
        let resolved = match name.rsplit('.').next().unwrap_or(name) {
            "IntOrString" => int_or_string(),
            "Quantity" => {
                let mut schema = int_or_string();
                schema["pattern"] = QUANTITY.into();
                schema
            }
            "ObjectMeta" => {
                let embedded = full_name(self.prefix, "EmbeddedObjectMeta");
                self.resolved(&self.schemas[&embedded], Origin::Published)
            }
            short => match self.schemas.get(name) {
                // These are published ones but for the metadata in them.
                Some(schema) if ["JobSpec", "EmbeddedObjectMeta"].contains(&short) => {
                    self.resolved(schema, Origin::Published)
                }
                Some(schema) => self.resolved(schema, Origin::Ours),
                None => {
                    let schema = openapi::published(name).unwrap_or_default();
                    self.resolved(&schema, Origin::Published)
                }
            },
        };
        let Value::Object(members) = resolved else { return Map::new() };
        members
    }
}

fn int_or_string() -> Value {
    json!({
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "x-kubernetes-int-or-string": true,
    })
}

/// The keys of a list that is a map must be required or have a default.
fn default_keys(list: &mut Map<String, Value>) {
    let keys = list.get("x-kubernetes-list-map-keys").and_then(Value::as_array).cloned();
    let Some(items) = list.get_mut("items") else { return };
    for key in keys.iter().flatten().filter_map(Value::as_str) {
        let is_required = items["required"].as_array().is_some_and(|r| r.iter().any(|k| k == key));
        let property = &mut items["properties"][key];
        if !is_required && property.get("default").is_none() && property["type"] == "string" {
            property["default"] = "".into();
        }
    }
}
