//! The schemas of kinds that users have defined.

use serde_json::{Value, json};

use super::REFERENCE;
use crate::{resource::Resource, schema};

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
const LIST_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta";
const API_VERSION: &str = "APIVersion says which version of the kind this is, as group/version.";
const KIND: &str = "Kind says what this is.";
/// Where a schema names the fields that its objects can be selected by.
const SELECTABLE: &str = "x-kubernetes-selectable-fields";

/// The name of the schema of a resource's kind.
pub(super) fn name(resource: &Resource) -> Option<String> {
    let Resource { group, version, kind, .. } = resource;
    if resource.strategy.schema().is_none() {
        return schema::name_of(group, version, kind).map(str::to_owned);
    }
    Some(name_of_kind(resource, kind))
}

/// The name of the schema of lists of a resource's kind.
pub(super) fn list_name(resource: &Resource) -> Option<String> {
    match resource.strategy.schema() {
        Some(_) => Some(name_of_kind(resource, &resource.list_kind())),
        None => name(resource).map(|name| format!("{name}List")),
    }
}

/// The name that the schema of a kind of a user has: its group comes first, backwards.
fn name_of_kind(resource: &Resource, kind: &str) -> String {
    let mut parts: Vec<&str> = resource.group.split('.').collect();
    parts.reverse();
    format!("{}.{}.{kind}", parts.join("."), resource.version)
}

/// The schemas of a resource's kind and of lists of it, if it was defined by a user.
pub(super) fn schemas(resource: &Resource) -> Vec<(String, Value)> {
    let (Some(published), Some(name)) = (resource.strategy.published_schema(), name(resource))
    else {
        return Vec::new();
    };
    let Resource { group, version, kind, .. } = resource;
    let mark = |kind: &str| json!([{"group": group, "version": version, "kind": kind}]);
    let mut schema = published.clone();
    complete(&mut schema);
    add_whole(&mut schema);
    schema["x-kubernetes-group-version-kind"] = mark(kind);
    let list_kind = resource.list_kind();
    let mut list = json!({
        "description": format!("{list_kind} is a list of {kind}."),
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": text(API_VERSION),
            "kind": text(KIND),
            "metadata": {
                "allOf": [{"$ref": format!("{REFERENCE}{LIST_META}")}],
                "description": "Metadata of the list.",
            },
            "items": {
                "description": "The objects.",
                "type": "array",
                "items": {"$ref": format!("{REFERENCE}{name}")},
            },
        },
        "x-kubernetes-group-version-kind": mark(&list_kind),
    });
    if let Some(fields) = schema.get(SELECTABLE) {
        list[SELECTABLE] = fields.clone();
    }
    vec![(name_of_kind(resource, &list_kind), list), (name, schema)]
}

fn text(description: &str) -> Value {
    json!({"type": "string", "description": description})
}

/// Says of a schema of whole objects what all of them have.
fn add_whole(schema: &mut Value) {
    let properties = &mut schema["properties"];
    if !properties.is_object() {
        *properties = json!({});
    }
    properties["apiVersion"] = text(API_VERSION);
    properties["kind"] = text(KIND);
    properties["metadata"] = json!({
        "allOf": [{"$ref": format!("{REFERENCE}{META}")}],
        "description": "Metadata of the object.",
    });
}

/// Says in a schema that a user wrote what its extensions mean to those who do not know them.
fn complete(schema: &mut Value) {
    let Some(node) = schema.as_object_mut() else { return };
    for (key, value) in &mut *node {
        match (key.as_str(), value) {
            ("items" | "additionalProperties", value) => complete(value),
            ("properties", Value::Object(properties)) => {
                properties.values_mut().for_each(complete);
            }
            _ => {}
        }
    }
    let either = || json!([{"type": "integer"}, {"type": "string"}]);
    let is_said = node.get("anyOf") == Some(&either())
        || node.get("allOf").is_some_and(|all| all[0]["anyOf"] == either());
    if node.get("x-kubernetes-int-or-string") == Some(&Value::Bool(true)) && !is_said {
        match (node.contains_key("anyOf"), node.get_mut("allOf")) {
            (false, _) => drop(node.insert("anyOf".to_owned(), either())),
            (true, Some(Value::Array(all))) => all.insert(0, json!({"anyOf": either()})),
            (true, _) => drop(node.insert("allOf".to_owned(), json!([{"anyOf": either()}]))),
        }
    }
    if node.get("x-kubernetes-embedded-resource") == Some(&Value::Bool(true)) {
        let required = node.entry("required").or_insert(Value::Null);
        let mut names = required.as_array().cloned().unwrap_or_default();
        for name in ["kind", "apiVersion"] {
            if !names.contains(&name.into()) {
                names.push(name.into());
            }
        }
        *required = names.into();
        add_whole(schema);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extensions_are_put_in_words() {
        let either = json!([{"type": "integer"}, {"type": "string"}]);
        let mut given = json!({"type": "object", "properties": {
            "bare": {"x-kubernetes-int-or-string": true},
            "said": {"x-kubernetes-int-or-string": true, "anyOf": either},
            "said deeper": {"x-kubernetes-int-or-string": true, "allOf": [{"anyOf": either}]},
            "limited": {"x-kubernetes-int-or-string": true, "anyOf": [{"minimum": 1}]},
            "pods": {"type": "array", "items": {"type": "object",
                "x-kubernetes-embedded-resource": true, "required": ["spec", "kind"],
                "properties": {"spec": {"type": "object"}}}},
        }});
        complete(&mut given);
        let properties = &given["properties"];
        assert_eq!(properties["bare"]["anyOf"], either);
        assert_eq!(properties["said"].get("allOf"), None);
        assert_eq!(properties["said deeper"].get("anyOf"), None);
        assert_eq!(properties["limited"]["allOf"], json!([{"anyOf": either}]));
        let pod = &properties["pods"]["items"];
        assert_eq!(pod["required"], json!(["spec", "kind", "apiVersion"]));
        assert_eq!(pod["properties"]["kind"]["type"], "string");
        assert!(pod["properties"]["metadata"]["allOf"][0]["$ref"].is_string());
    }
}
