//! How definitions are filled in, checked and shown.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{check, rules, schema::Schema, validation};
use crate::{
    custom,
    field::ErrorList,
    json::{list, object_mut, set_default, text},
    names,
    strategy::{Column, Json, Strategy, WriteContext, keep},
    table::{NAME, column},
};

/// CustomResourceDefinition.
#[derive(Debug)]
pub struct DefinitionStrategy;

const CREATED: Column =
    Column { kind: "date", ..column("Created At", "When the definition was made.") };
const COLUMNS: &[Column] = &[NAME, CREATED];

impl Strategy for DefinitionStrategy {
    fn fill_defaults(&self, object: &mut Json) {
        let spec = object_mut(object, "spec");
        let kind = text(spec, &["names", "kind"]).to_owned();
        let names = object_mut(spec, "names");
        if text(names, &["singular"]).is_empty() && !kind.is_empty() {
            names.insert("singular".to_owned(), kind.to_lowercase().into());
        }
        if text(names, &["listKind"]).is_empty() && !kind.is_empty() {
            names.insert("listKind".to_owned(), format!("{kind}List").into());
        }
        set_default(spec, "conversion", json!({"strategy": "None"}));
        let service = "/conversion/webhook/clientConfig/service";
        let mut whole = Value::Object(std::mem::take(spec));
        if let Some(Value::Object(service)) = whole.pointer_mut(service) {
            set_default(service, "port", 443);
        }
        if let Value::Object(whole) = whole {
            *spec = whole;
        }
    }

    fn prepare_create(&self, object: &mut Json, _context: &WriteContext) {
        object.remove("status");
        store_version(object);
    }

    fn validate_create(&self, object: &Json) -> ErrorList {
        validation::of_new(object)
    }

    fn prepare_update(&self, object: &mut Json, old: &Json, _context: &WriteContext) {
        keep(object, old, "status");
        store_version(object);
    }

    fn validate_update(&self, object: &Json, old: &Json) -> ErrorList {
        validation::of_changed(object, old)
    }

    fn validate_status_update(&self, object: &Json, _old: &Json) -> ErrorList {
        validation::of_status_update(object)
    }

    fn warnings(&self, object: &Json, old: Option<&Json>) -> Vec<String> {
        let before = old.map(warnings).unwrap_or_default();
        let mut now = warnings(object);
        now.retain(|warning| !before.contains(warning));
        now
    }

    fn validate_name(&self, name: &str, is_prefix: bool) -> Vec<String> {
        names::name_is_dns_subdomain(name, is_prefix)
    }

    fn has_status(&self) -> bool {
        true
    }

    fn allows_unconditional_update(&self) -> bool {
        false
    }

    fn columns(&self) -> &'static [Column] {
        COLUMNS
    }

    fn row(&self, object: &Json, _now: Timestamp) -> Vec<Value> {
        let created = text(object, &["metadata", "creationTimestamp"]);
        vec![text(object, &["metadata", "name"]).into(), created.into()]
    }
}

/// Notes the version that objects are stored in from now on.
fn store_version(definition: &mut Json) {
    let versions = list(definition, &["spec", "versions"]);
    let Some(storage) = versions.iter().find(|version| version["storage"] == true) else { return };
    let name = storage["name"].clone();
    // Nothing is stored by a definition of a kind that is built in, whoever made it.
    let is_built_in = custom::is_defined(text(definition, &["metadata", "name"]));
    let status = object_mut(definition, "status");
    let slot = status.entry("storedVersions").or_insert_with(|| json!([]));
    if slot.is_null() || is_built_in {
        *slot = json!([]);
    }
    if let Value::Array(stored) = slot
        && !stored.contains(&name)
    {
        stored.push(name);
    }
}

/// What a user should know of a definition: what in it means nothing here.
fn warnings(definition: &Json) -> Vec<String> {
    let mut warnings = Vec::new();
    for (at, version) in list(definition, &["spec", "versions"]).iter().enumerate() {
        let given = &version["schema"]["openAPIV3Schema"];
        unknown_formats(given, &mut warnings);
        let path = format!("spec.versions[{at}].schema.openAPIV3Schema");
        warnings.extend(rules::unenforced(&Schema::read(given), &path));
    }
    if text(definition, &["spec", "conversion", "strategy"]) == "Webhook" {
        warnings.push(
            "spec.conversion.strategy: Webhook is not supported: nobody is asked to convert, and \
             objects are served in every version as they are stored, as with None"
                .to_owned(),
        );
    }
    warnings
}

fn unknown_formats(schema: &Value, warnings: &mut Vec<String>) {
    let Some(members) = schema.as_object() else { return };
    let format = text(members, &["format"]);
    if !format.is_empty() && !check::is_format_known(text(members, &["type"]), format) {
        let warning = format!("unrecognized format {format:?}");
        if !warnings.contains(&warning) {
            warnings.push(warning);
        }
    }
    let properties = schema["properties"].as_object().into_iter().flatten();
    properties.for_each(|(_, property)| unknown_formats(property, warnings));
    for key in ["items", "additionalProperties", "not"] {
        unknown_formats(&schema[key], warnings);
    }
    for key in ["allOf", "anyOf", "oneOf"] {
        let nested = schema[key].as_array().into_iter().flatten();
        nested.for_each(|nested| unknown_formats(nested, warnings));
    }
}
