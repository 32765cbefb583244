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
    definition::{embedded, kind::prune, schema::Schema},
    field::{FieldError, Path},
    json::{text, whole},
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
        return Err(Status::invalid_kind((expected.group, given.kind), name, &vec![error]));
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
    let gvk = Gvk::of(resource);
    let refused = |why: &str| Status::bad_request(cannot_be_handled(gvk, gvk, why));
    let mut strict = Vec::new();
    fit_metadata(object, "metadata", &mut strict).map_err(|why| refused(&why))?;
    object.values_mut().for_each(make_whole);
    let unknown = prune(schema, object);
    strict.extend(unknown.iter().map(|path| format!("unknown field {}", quoted(path))));
    if schema.any(&|schema| schema.is_embedded) {
        let mut within = Vec::new();
        let mut fit = |object: &mut Json, path: &Path| fit_embedded(object, path, &mut within);
        let fitted = embedded::fit_each(schema, object, &Path::default(), &mut fit);
        fitted.map_err(|fault| refused(&fault.to_string()))?;
        within.sort();
        strict.extend(within);
    }
    Ok(strict)
}

/// Makes what is called `metadata` in an object, and lies at `path`, what metadata is.
fn fit_metadata(object: &mut Json, path: &str, strict: &mut Vec<String>) -> Result<(), String> {
    let Some(metadata) = object.remove("metadata").filter(|value| !value.is_null()) else {
        return Ok(());
    };
    let mut findings = Findings::default();
    findings.path.push(Step::Key(path.to_owned()));
    let seed = Seed { findings: &mut findings, node: metadata_node() };
    let read = seed.deserialize(&metadata);
    if let Some(message) = findings.fatal.or(findings.mistyped) {
        return Err(message);
    }
    strict.extend(findings.strict);
    if let Ok(Value::Object(metadata)) = read {
        object.insert("metadata".to_owned(), Value::Object(metadata));
    }
    Ok(())
}

/// Makes an object inside of another what objects are.
pub(crate) fn fit_embedded(
    object: &mut Json,
    path: &Path,
    strict: &mut Vec<String>,
) -> Result<(), FieldError> {
    for name in ["apiVersion", "kind"] {
        if let Some(value) = object.get(name).filter(|value| !value.is_string()) {
            return Err(FieldError::invalid(&path.child(name), value, "must be a string"));
        }
    }
    let path = path.child("metadata");
    let given = object.get("metadata").cloned().unwrap_or_default();
    fit_metadata(object, &path.to_string(), strict)
        .map_err(|why| FieldError::invalid(&path, &given, &why))
}

/// Writes numbers without fractions that do not need them: `2.0` is 2 to whoever reads it next.
fn make_whole(value: &mut Value) {
    match value {
        Value::Number(number) => {
            let fraction = number.as_f64().filter(|_| number.is_f64());
            if let Some(whole) = fraction.and_then(whole) {
                *value = whole.into();
            }
        }
        Value::Array(list) => list.iter_mut().for_each(make_whole),
        Value::Object(members) => members.values_mut().for_each(make_whole),
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_have_fractions_only_where_they_need_them() {
        let mut value = json!({"a": [2.0, -3.0, 2.5], "b": {"c": 1e20}, "d": 7});
        make_whole(&mut value);
        assert_eq!(value.to_string(), r#"{"a":[2,-3,2.5],"b":{"c":1e+20},"d":7}"#);
    }
}
