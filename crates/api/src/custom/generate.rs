//! Makes schemas of Rust types.

mod definition;
mod normal;
mod older;
mod package;
mod table;

use std::collections::BTreeMap;

use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

use crate::openapi::REFERENCE;
use package::{Kind, PACKAGES, Package};

/// What is generated.
#[derive(Clone, Debug)]
pub struct Generated {
    /// OpenAPI schemas of custom kinds, one per line: `crates/api/openapi/custom-schemas.json`.
    pub schemas: String,
    /// The table of their types, one per line: `crates/api/openapi/custom-types.json`.
    pub types: String,
    /// The CustomResourceDefinitions, by name.
    pub definitions: BTreeMap<String, Value>,
    /// The same, one per line: `crates/api/openapi/definitions.json`.
    pub listed: String,
}

/// Generates everything.
pub fn files() -> Generated {
    let mut all = BTreeMap::new();
    let mut named = BTreeMap::new();
    let mut definitions = BTreeMap::new();
    for package in &PACKAGES {
        let schemas = schemas(package);
        for kind in package.kinds {
            let path = format!("{}/{}/{}", package.group, package.version, kind.kind);
            named.insert(path, Value::from(full_name(package.prefix, kind.kind)));
            let name = format!("{}.{}", kind.plural, package.group);
            definitions.insert(name, definition::of(package, kind, &schemas));
        }
        if let Some(older) = &package.older {
            for kind in package.kinds {
                let path = format!("{}/{}/{}", package.group, older.version, kind.kind);
                named.insert(path, Value::from(full_name(older.prefix, kind.kind)));
            }
            all.extend(older::schemas(package, older, &schemas));
        }
        all.extend(schemas);
    }
    Generated {
        types: table::text(&named, &all),
        schemas: one_per_line(&all) + "\n",
        listed: one_per_line(&definitions) + "\n",
        definitions,
    }
}

/// The schemas of the kinds of a package, of lists of them, and of what they refer to and nobody
/// published, by name.
fn schemas(package: &Package) -> BTreeMap<String, Value> {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    });
    let mut generator = settings.into_generator();
    package.kinds.iter().for_each(|kind| (kind.derive)(&mut generator));
    let mut schemas: BTreeMap<String, Value> = generator
        .take_definitions(true)
        .into_iter()
        .map(|(name, schema)| {
            (full_name(package.prefix, &name), normal::form(package.prefix, schema))
        })
        .collect();
    for kind in package.kinds {
        add_kind(package, kind, &mut schemas);
    }
    schemas
}

/// Marks the schema of a kind as one, and adds that of its list.
fn add_kind(package: &Package, kind: &Kind, schemas: &mut BTreeMap<String, Value>) {
    let Package { group, version, prefix, .. } = package;
    let gvk = |name: &str| json!([{"group": group, "kind": name, "version": version}]);
    let name = full_name(prefix, kind.kind);
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
    schemas.insert(full_name(prefix, &list), schema);
}

fn described(description: &str) -> Value {
    json!({"type": "string", "description": description})
}

/// Published names have dots; ours get the prefix of their package.
fn full_name(prefix: &str, name: &str) -> String {
    if name.contains('.') { name.to_owned() } else { format!("{prefix}{name}") }
}

fn one_per_line(entries: &BTreeMap<String, Value>) -> String {
    let lines: Vec<String> =
        entries.iter().map(|(name, value)| format!("{}:{value}", json!(name))).collect();
    if lines.is_empty() { "{\n}".to_owned() } else { format!("{{\n{}\n}}", lines.join(",\n")) }
}
