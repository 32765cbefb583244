//! The CustomResourceDefinition: schemas with every reference resolved, as an API server demands.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{JOBSET, full_name, normal::is_nothing};
use crate::{
    jobset,
    openapi::{self, REFERENCE},
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

/// The definition of JobSets.
pub(super) fn jobsets(schemas: &BTreeMap<String, Value>) -> Value {
    let columns = jobset::PRINTED.iter().map(|printed| {
        let mut column = json!({
            "name": printed.name, "type": printed.kind, "jsonPath": printed.path,
        });
        if !printed.description.is_empty() {
            column["description"] = printed.description.into();
        }
        column
    });
    let root = &schemas[&full_name(&JOBSET, jobset::KIND)];
    let mut schema = Resolver { schemas }.resolved(root, Origin::Ours);
    schema["properties"]["metadata"] = json!({"type": "object"});
    if let Some(schema) = schema.as_object_mut() {
        schema.remove("x-kubernetes-group-version-kind");
    }
    // A webhook names rules that have no name; without one they would be refused for that.
    if let Some(name) = schema.pointer_mut(RULE_NAME) {
        name["default"] = "".into();
    }
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{}.{}", jobset::PLURAL, jobset::GROUP)},
        "spec": {
            "group": jobset::GROUP,
            "names": {
                "kind": jobset::KIND,
                "listKind": format!("{}List", jobset::KIND),
                "plural": jobset::PLURAL,
                "singular": "jobset",
            },
            "scope": "Namespaced",
            "versions": [{
                "name": jobset::VERSION,
                "served": true,
                "storage": true,
                "additionalPrinterColumns": columns.collect::<Vec<_>>(),
                "schema": {"openAPIV3Schema": schema},
                "subresources": {"status": {}},
            }],
        },
    })
}

/// Whose schema it is: descriptions of published ones would make the definition too large to be
/// applied.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Origin {
    Ours,
    Published,
}

struct Resolver<'a> {
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
                let embedded = full_name(&JOBSET, "EmbeddedObjectMeta");
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
