//! The schemas of kinds that users have defined.

use serde_json::{Value, json};

use super::REFERENCE;
use crate::{resource::Resource, schema};

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
const LIST_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta";
const API_VERSION: &str = "APIVersion says which version of the kind this is, as group/version.";
const KIND: &str = "Kind says what this is.";

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
    let text = |description: &str| json!({"type": "string", "description": description});
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
    schema["x-kubernetes-group-version-kind"] = mark(kind);
    let list_kind = resource.list_kind();
    let list = json!({
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
    vec![(name_of_kind(resource, &list_kind), list), (name, schema)]
}
