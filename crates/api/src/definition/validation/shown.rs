//! Versions of a definition as messages show them: by the names that they have in Go, without what
//! all of them have in common, which upstream holds elsewhere.

use serde::Serialize;
use serde_json::Value;

use super::Shared;

/// One version. Of a schema that is not that of all versions the JSON is shown.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Version<'a> {
    name: &'a str,
    served: bool,
    storage: bool,
    deprecated: bool,
    deprecation_warning: Option<&'a str>,
    schema: Option<&'a Value>,
    subresources: Option<Subresources<'a>>,
    additional_printer_columns: Option<Vec<Column<'a>>>,
    selectable_fields: Option<Vec<Field<'a>>>,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Subresources<'a> {
    status: Option<Status>,
    scale: Option<Scale<'a>>,
}

#[derive(Serialize)]
struct Status {}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Scale<'a> {
    spec_replicas_path: &'a str,
    status_replicas_path: &'a str,
    label_selector_path: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Column<'a> {
    name: &'a str,
    #[serde(rename = "Type")]
    kind: &'a str,
    format: &'a str,
    description: &'a str,
    priority: i64,
    #[serde(rename = "JSONPath")]
    path: &'a str,
}

#[derive(Serialize)]
struct Field<'a> {
    #[serde(rename = "JSONPath")]
    path: &'a str,
}

impl<'a> Version<'a> {
    pub(super) fn of(version: &'a Value, shared: &Shared) -> Self {
        let subresources = version.get("subresources").filter(|_| !shared.has_subresources);
        let columns = version.get("additionalPrinterColumns").filter(|_| !shared.has_columns);
        let fields = version.get("selectableFields").filter(|_| !shared.has_fields);
        let scale = |it: &'a Value| Scale {
            spec_replicas_path: text(it, "specReplicasPath"),
            status_replicas_path: text(it, "statusReplicasPath"),
            label_selector_path: it["labelSelectorPath"].as_str(),
        };
        let column = |it: &'a Value| Column {
            name: text(it, "name"),
            kind: text(it, "type"),
            format: text(it, "format"),
            description: text(it, "description"),
            priority: it["priority"].as_i64().unwrap_or_default(),
            path: text(it, "jsonPath"),
        };
        Self {
            name: text(version, "name"),
            served: version["served"] == true,
            storage: version["storage"] == true,
            deprecated: version["deprecated"] == true,
            deprecation_warning: version["deprecationWarning"].as_str(),
            schema: version.get("schema").filter(|_| !shared.has_schema),
            subresources: subresources.map(|it| Subresources {
                status: it.get("status").map(|_| Status {}),
                scale: it.get("scale").map(scale),
            }),
            additional_printer_columns: columns.map(|list| each(list).map(column).collect()),
            selectable_fields: fields
                .map(|list| each(list).map(|it| Field { path: text(it, "jsonPath") }).collect()),
        }
    }
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

fn each(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn versions_are_shown_without_what_they_share() {
        let version = |name: &str, more: Value| {
            let mut version = json!({"name": name, "served": true, "storage": false,
                "schema": {"openAPIV3Schema": {"type": "object"}}});
            version.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
            version
        };
        let versions = [
            version("v1", json!({"subresources": {"status": {}}})),
            version("v2", json!({"selectableFields": [{"jsonPath": ".spec.a"}]})),
        ];
        let shared = Shared::of(&versions);
        let shown = versions.each_ref().map(|version| Version::of(version, &shared));
        assert_eq!(
            serde_json::to_string(&shown).unwrap(),
            "[{\"Name\":\"v1\",\"Served\":true,\"Storage\":false,\"Deprecated\":false,\
              \"DeprecationWarning\":null,\"Schema\":null,\"Subresources\":{\"Status\":{},\
              \"Scale\":null},\"AdditionalPrinterColumns\":null,\"SelectableFields\":null},\
              {\"Name\":\"v2\",\"Served\":true,\"Storage\":false,\"Deprecated\":false,\
              \"DeprecationWarning\":null,\"Schema\":null,\"Subresources\":null,\
              \"AdditionalPrinterColumns\":null,\"SelectableFields\":[{\"JSONPath\":\".spec.a\"}]}]"
        );
    }
}
