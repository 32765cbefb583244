//! Checks objects that were made by a patch.

use std::fmt::Write;

use serde::de::DeserializeSeed;
use serde_json::Value;

use super::{
    Decoded, FieldValidation, Gvk, check_kind, custom,
    findings::{Findings, Wording},
    free::Free,
    given_kind, heeded, misfit, syntax,
    walk::Seed,
};
use crate::{
    field::{FieldError, Path},
    json::text,
    resource::Resource,
    status::{Cause, Details, Status},
    strategy::Json,
};

/// What made an object; the words of errors depend on it.
#[derive(Clone, Copy, Debug)]
pub enum PatchKind<'a> {
    /// A JSON patch or a merge patch.
    Json,
    /// A strategic merge patch: errors show the patch itself. What it says of the kind does not
    /// count.
    Strategic(&'a Value),
    /// A configuration that was applied.
    Applied(&'a Json),
}

/// Parses the body of a merge patch or a strategic merge patch. Returned beside it are fields that
/// are given twice, to be handed to [`prune_and_check`].
///
/// # Errors
/// Why it is no JSON object.
pub fn patch_body(body: &[u8]) -> Result<(Value, Vec<String>), String> {
    let mut findings = Findings::default();
    let mut reader = serde_json::Deserializer::from_slice(body);
    let parsed = Free { findings: &mut findings }
        .deserialize(&mut reader)
        .and_then(|value| reader.end().map(|()| value));
    match parsed {
        Ok(value @ Value::Object(_)) => Ok((value, findings.strict)),
        Ok(other) => {
            let found = match other {
                Value::Array(_) => "array",
                Value::String(_) => "string",
                Value::Bool(_) => "bool",
                Value::Number(_) => "number",
                Value::Null | Value::Object(_) => "null",
            };
            Err(format!(
                "json: cannot unmarshal {found} into Go value of type map[string]interface {{}}"
            ))
        }
        Err(error) => Err(syntax::message(body, &error)),
    }
}

/// Makes the outcome of a patch fit the schema of `resource`, as [`super::object`] does for a body.
/// `value` may have `apiVersion` and `kind` or lack them; `strict` is what was wrong with the patch
/// itself.
///
/// # Errors
/// 422 when it does not fit, 400 when it was applied and cannot be decoded.
pub fn prune_and_check(
    resource: &Resource,
    value: &Value,
    made_by: PatchKind<'_>,
    validation: FieldValidation,
    strict: Vec<String>,
) -> Result<Decoded, Status> {
    let expected = Gvk::of(resource);
    let refused = |why: &str| match made_by {
        PatchKind::Json => invalid(&value.to_string(), why),
        PatchKind::Strategic(patch) => invalid(&printed(patch), why),
        PatchKind::Applied(config) => not_converted(expected, config, why),
    };
    let wording = match made_by {
        PatchKind::Json => Wording::Decoded,
        PatchKind::Strategic(_) | PatchKind::Applied(_) => Wording::Converted,
    };
    if matches!(made_by, PatchKind::Json) && resource.takes_strategic_patches() {
        check_stated_kind(expected, value).map_err(|why| refused(&why))?;
    }
    let own = strict.len();
    let mut findings = Findings { strict, wording, ..Findings::default() };
    let parsed = read(expected, value, &mut findings);
    if wording == Wording::Converted {
        findings.strict[own..].sort_unstable();
    }
    if let Some(message) = findings.fatal.or(findings.mistyped) {
        return Err(refused(&message));
    }
    let Ok(Value::Object(mut object)) = parsed else {
        return Err(refused("the patched object is no JSON object"));
    };
    let api_version = object.remove("apiVersion");
    let kind = object.remove("kind");
    let owned = |value: &'_ Option<Value>| {
        value.as_ref().and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let (api_version, kind) = (owned(&api_version), owned(&kind));
    let mut strict = findings.strict;
    match resource.strategy.schema() {
        Some(schema) => {
            custom::check_type(resource, &mut object, &api_version, &kind)?;
            strict.extend(custom::fit(resource, schema, &mut object)?);
        }
        None if resource.takes_strategic_patches() => {}
        None => {
            let given = given_kind(expected, &api_version, &kind)?;
            check_kind(expected, given, super::KindRule::AsServed)?;
        }
    }
    let warnings = heeded(strict, validation).map_err(|message| refused(&message))?;
    Ok(Decoded { object, warnings })
}

fn read(kind: Gvk<'_>, value: &Value, findings: &mut Findings) -> serde_json::Result<Value> {
    match kind.schema() {
        Some(node) => Seed { findings, node }.deserialize(value),
        None => Free { findings }.deserialize(value),
    }
}

/// Whether a patched object still is of its kind, or of none. One of another kind is read as such
/// first, and may have faults of its own.
fn check_stated_kind(expected: Gvk<'_>, value: &Value) -> Result<(), String> {
    let said = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default();
    let given = given_kind(expected, said("apiVersion"), said("kind"))
        .map_err(|malformed| malformed.message)?;
    let Some(why) = misfit(expected, given) else { return Ok(()) };
    let mut findings = Findings::default();
    if given.schema().is_some() {
        // What it comes to makes no difference any more.
        drop(read(given, value, &mut findings));
    }
    Err(findings.fatal.or(findings.mistyped).unwrap_or(why))
}

/// 400 about what was applied: it has the fields of its kind, but not their values.
fn not_converted(kind: Gvk<'_>, config: &Json, why: &str) -> Status {
    let [namespace, name] = ["namespace", "name"].map(|key| text(config, &["metadata", key]));
    let kind = format!("{}/{}, Kind={}", kind.group, kind.version, kind.kind);
    Status::bad_request(format!(
        "failed to convert new object ({namespace}/{name}; {kind}) to proper version: unable to \
         convert unstructured object to {kind}: {why}"
    ))
}

/// 422 about the patch as such: it has no name or kind.
fn invalid(shown: &str, why: &str) -> Status {
    let error = FieldError::invalid(&Path::new("patch"), shown, why);
    let mut status = Status::bad_request(format!(" \"\" is invalid: {error}"));
    status.code = 422;
    "Invalid".clone_into(&mut status.reason);
    status.with_details(Details {
        causes: vec![Cause {
            reason: error.kind.reason().to_owned(),
            message: error.body.clone(),
            field: error.path.to_string(),
        }],
        ..Details::default()
    })
}

/// A JSON value as Go's `%+v` prints it: `map[spec:map[replicas:2]]`.
fn printed(value: &Value) -> String {
    let mut text = String::new();
    print(value, &mut text);
    text
}

fn print(value: &Value, text: &mut String) {
    match value {
        Value::Null => text.push_str("<nil>"),
        Value::String(string) => text.push_str(string),
        Value::Bool(_) | Value::Number(_) => drop(write!(text, "{value}")),
        Value::Array(list) => {
            text.push('[');
            for (at, item) in list.iter().enumerate() {
                if at > 0 {
                    text.push(' ');
                }
                print(item, text);
            }
            text.push(']');
        }
        Value::Object(map) => {
            text.push_str("map[");
            for (at, (key, item)) in map.iter().enumerate() {
                if at > 0 {
                    text.push(' ');
                }
                text.push_str(key);
                text.push(':');
                print(item, text);
            }
            text.push(']');
        }
    }
}
