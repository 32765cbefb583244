//! Makes schemas of Rust types.

mod definition;
mod normal;
mod table;

use std::collections::BTreeMap;

use schemars::{JsonSchema, generate::SchemaSettings};
use serde_json::{Value, json};

use crate::{
    jobset::{self, JobSet},
    openapi::REFERENCE,
};

/// What is generated.
#[derive(Clone, Debug)]
pub struct Generated {
    /// OpenAPI schemas of custom kinds, one per line: `crates/api/openapi/custom-schemas.json`.
    pub schemas: String,
    /// The table of their types, one per line: `crates/api/openapi/custom-types.json`.
    pub types: String,
    /// The CustomResourceDefinition of JobSets.
    pub jobsets: Value,
}

/// A custom kind, for the documents about it.
struct Kind {
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    /// Before the names of its types in OpenAPI documents.
    prefix: &'static str,
}

const JOBSET: Kind = Kind {
    group: jobset::GROUP,
    version: jobset::VERSION,
    kind: jobset::KIND,
    prefix: "io.x-k8s.jobset.v1alpha2.",
};

/// Generates everything.
pub fn files() -> Generated {
    let schemas = schemas::<JobSet>(&JOBSET);
    Generated {
        types: table::text(&[&JOBSET], &schemas),
        jobsets: definition::jobsets(&schemas),
        schemas: one_per_line(&schemas) + "\n",
    }
}

/// The schemas of a kind, of its list, and of what they refer to and nobody published, by name.
fn schemas<T: JsonSchema>(kind: &Kind) -> BTreeMap<String, Value> {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    });
    let mut generator = settings.into_generator();
    generator.subschema_for::<T>();
    let mut schemas: BTreeMap<String, Value> = generator
        .take_definitions(true)
        .into_iter()
        .map(|(name, schema)| (full_name(kind, &name), normal::form(kind, schema)))
        .collect();
    let gvk = |name: &str| json!([{"group": kind.group, "kind": name, "version": kind.version}]);
    let name = full_name(kind, kind.kind);
    if let Some(object) = schemas.get_mut(&name) {
        object["properties"]["apiVersion"] = described("The version of the schema of this object.");
        object["properties"]["kind"] = described("The kind of this object.");
        object["x-kubernetes-group-version-kind"] = gvk(kind.kind);
    }
    let list = format!("{}List", kind.kind);
    let schema = json!({
        "description": format!("{list} is a list of {}.", kind.kind),
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": described("The version of the schema of this list."),
            "kind": described("The kind of this list."),
            "metadata": {
                "allOf": [{"$ref":
                    format!("{REFERENCE}io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta")}],
                "description": "Standard list metadata.",
            },
            "items": {
                "description": "The objects.",
                "type": "array",
                "items": {"$ref": format!("{REFERENCE}{name}")},
            },
        },
        "x-kubernetes-group-version-kind": gvk(&list),
    });
    schemas.insert(full_name(kind, &list), schema);
    schemas
}

fn described(description: &str) -> Value {
    json!({"type": "string", "description": description})
}

/// Published names have dots; ours get the prefix of their kind.
fn full_name(kind: &Kind, name: &str) -> String {
    if name.contains('.') { name.to_owned() } else { format!("{}{name}", kind.prefix) }
}

fn one_per_line(entries: &BTreeMap<String, Value>) -> String {
    let lines: Vec<String> =
        entries.iter().map(|(name, value)| format!("{}:{value}", json!(name))).collect();
    if lines.is_empty() { "{\n}".to_owned() } else { format!("{{\n{}\n}}", lines.join(",\n")) }
}
