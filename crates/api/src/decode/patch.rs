//! Checks objects that were made by a patch.

use std::fmt::Write;

use serde::de::DeserializeSeed;
use serde_json::Value;

use super::{
    Decoded, FieldValidation, Gvk, check_kind, custom,
    findings::{Findings, Wording},
    free::Free,
    given_kind, heeded, syntax,
    walk::Seed,
};
use crate::{
    field::{FieldError, Path},
    resource::Resource,
    status::{Cause, Details, Status},
};

/// Which kind of patch made an object; the words of errors depend on it.
#[derive(Clone, Copy, Debug)]
pub enum PatchKind<'a> {
    /// A JSON patch or a merge patch.
    Json,
    /// A strategic merge patch: errors show the patch itself.
    Strategic(&'a Value),
}

/// Parses the body of a merge patch or a strategic merge patch. Returned beside it are fields that
/// are given twice, to be handed to [`prune_and_check`].
///
/// # Errors
/// 400 when it is no JSON object.
pub fn patch_body(body: &[u8]) -> Result<(Value, Vec<String>), Status> {
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
            Err(Status::bad_request(format!(
                "error decoding patch: json: cannot unmarshal {found} into Go value of type \
                 map[string]interface {{}}"
            )))
        }
        Err(error) => {
            let message = syntax::message(body, &error);
            Err(Status::bad_request(format!("error decoding patch: {message}")))
        }
    }
}

/// Makes the outcome of a patch fit the schema of `resource`, as [`super::object`] does for a body.
/// `value` may have `apiVersion` and `kind` or lack them; `strict` is what was wrong with the patch
/// itself.
///
/// # Errors
/// 422 when it does not fit, 400 when the patch changed the kind.
pub fn prune_and_check(
    resource: &Resource,
    value: &Value,
    made_by: PatchKind<'_>,
    validation: FieldValidation,
    strict: Vec<String>,
) -> Result<Decoded, Status> {
    let expected = Gvk::of(resource);
    let shown = |value: &Value| match made_by {
        PatchKind::Json => value.to_string(),
        PatchKind::Strategic(patch) => printed(patch),
    };
    let wording = match made_by {
        PatchKind::Json => Wording::Decoded,
        PatchKind::Strategic(_) => Wording::Converted,
    };
    let own = strict.len();
    let mut findings = Findings { strict, wording, ..Findings::default() };
    let parsed = match expected.schema() {
        Some(node) => Seed { findings: &mut findings, node }.deserialize(value),
        None => Free { findings: &mut findings }.deserialize(value),
    };
    if wording == Wording::Converted {
        findings.strict[own..].sort_unstable();
    }
    if let Some(message) = findings.fatal.or(findings.mistyped) {
        return Err(invalid(&shown(value), &message));
    }
    let Ok(Value::Object(mut object)) = parsed else {
        return Err(invalid(&shown(value), "the patched object is no JSON object"));
    };
    let api_version = object.remove("apiVersion");
    let kind = object.remove("kind");
    let text = |value: &'_ Option<Value>| {
        value.as_ref().and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let (api_version, kind) = (text(&api_version), text(&kind));
    let mut strict = findings.strict;
    match resource.strategy.schema() {
        Some(schema) => {
            custom::check_type(resource, &mut object, &api_version, &kind)?;
            strict.extend(custom::fit(resource, schema, &mut object)?);
        }
        None => {
            let given = given_kind(expected, &api_version, &kind)?;
            check_kind(expected, given, super::KindRule::AsServed)?;
        }
    }
    let warnings =
        heeded(strict, validation).map_err(|message| invalid(&shown(value), &message))?;
    Ok(Decoded { object, warnings })
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
