//! Makes objects fit the schema of a kind that was defined at run time.

use serde::de::DeserializeSeed;
use serde_json::Value;

use super::{
    Gvk, cannot_be_handled,
    findings::{Findings, Step},
    given_kind,
    walk::Seed,
};
use crate::{
    definition::{kind::prune, schema::Schema},
    field::{FieldError, Path},
    json::text,
    quote::quoted,
    resource::Resource,
    schema::{self, SchemaNode},
    status::Status,
    strategy::Json,
};

/// What metadata looks like, of whatever kind.
pub fn metadata_node() -> SchemaNode {
    let node = schema::of("", "v1", "ConfigMap").and_then(|node| node.field("metadata"));
    node.expect("every kind has metadata")
}

/// Checks what an object says it is; `apiVersion` and `kind` are taken out of it.
pub(super) fn check_type(
    resource: &Resource,
    object: &mut Json,
    api_version: &str,
    kind: &str,
) -> Result<(), Status> {
    let expected = Gvk::of(resource);
    let given = given_kind(expected, api_version, kind)?;
    if (given.group, given.version) != (expected.group, expected.version) {
        return Err(Status::bad_request(format!(
            "the API version in the data ({}) does not match the expected API version ({})",
            given.api_version(),
            expected.api_version()
        )));
    }
    if given.kind != expected.kind {
        let why = format!("must be {}", expected.kind);
        let error = FieldError::invalid(&Path::new("kind"), given.kind, &why);
        let name = text(object, &["metadata", "name"]);
        return Err(Status::invalid(resource, name, &vec![error]));
    }
    Ok(())
}

/// Takes out of an object what its schema does not know, and makes its metadata what metadata is.
/// The answer is what a strict reader minds.
pub(super) fn fit(
    resource: &Resource,
    schema: &Schema,
    object: &mut Json,
) -> Result<Vec<String>, Status> {
    let mut strict = Vec::new();
    if let Some(metadata) = object.remove("metadata").filter(|value| !value.is_null()) {
        let mut findings = Findings::default();
        findings.path.push(Step::Key("metadata".to_owned()));
        let seed = Seed { findings: &mut findings, node: metadata_node() };
        let read = seed.deserialize(&metadata);
        if let Some(message) = findings.fatal.or(findings.mistyped) {
            let gvk = Gvk::of(resource);
            return Err(Status::bad_request(cannot_be_handled(gvk, gvk, &message)));
        }
        strict.extend(findings.strict);
        if let Ok(Value::Object(metadata)) = read {
            object.insert("metadata".to_owned(), Value::Object(metadata));
        }
    }
    let unknown = prune(schema, object);
    strict.extend(unknown.iter().map(|path| format!("unknown field {}", quoted(path))));
    Ok(strict)
}
