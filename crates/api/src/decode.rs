//! Turns the bytes of a request into an object that fits its kind's schema, or says what is wrong
//! with the words a Kubernetes API server uses.
//!
//! What comes out has the JSON types the schema promises, only fields the schema knows, and scalars
//! in canonical form. Values that Go cannot tell from absent ones (an empty string that is no
//! pointer, a null) are left out, so that defaulting sees one form of "not given"; [`complete()`]
//! puts back the ones that are always written.

mod complete;
mod custom;
mod either;
mod findings;
mod free;
mod operations;
mod patch;
mod protobuf;
mod scalar;
mod syntax;
mod walk;

use serde::de::{DeserializeOwned, DeserializeSeed};
use serde_json::{Map, Value};

pub use complete::complete;
pub(crate) use custom::fit_embedded;
pub use custom::metadata_node;
pub use operations::{Operation, patch_operations};
pub use patch::{PatchKind, patch_body, prune_and_check};
pub use protobuf::protobuf_to_json;

use crate::{
    quote::quoted,
    resource::Resource,
    schema::{self, SchemaNode},
    status::Status,
    strategy::Json,
};
use findings::Findings;
use free::Free;
use walk::Seed;

/// What happens to fields that are unknown or given twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FieldValidation {
    /// They are dropped in silence.
    Ignore,
    /// They are dropped, and the client is told.
    #[default]
    Warn,
    /// The request is refused.
    Strict,
}

impl FieldValidation {
    /// Reads the `fieldValidation` query parameter; empty means the default.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "" | "Warn" => Some(Self::Warn),
            "Strict" => Some(Self::Strict),
            "Ignore" => Some(Self::Ignore),
            _ => None,
        }
    }
}

/// An object that fits its schema.
#[derive(Clone, Debug, PartialEq)]
pub struct Decoded {
    /// The object, without `apiVersion` and `kind`.
    pub object: Json,
    /// What the client should be told.
    pub warnings: Vec<String>,
}

/// A group, a version and a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gvk<'a> {
    /// API group, empty for core.
    pub group: &'a str,
    /// API version.
    pub version: &'a str,
    /// Kind.
    pub kind: &'a str,
}

impl<'a> Gvk<'a> {
    /// The kind a resource serves.
    pub fn of(resource: &'a Resource) -> Self {
        Self { group: &resource.group, version: &resource.version, kind: &resource.kind }
    }

    fn schema(&self) -> Option<SchemaNode> {
        schema::of(self.group, self.version, self.kind)
    }

    fn api_version(&self) -> String {
        match self.group {
            "" => self.version.to_owned(),
            group => format!("{group}/{}", self.version),
        }
    }
}

/// Decodes the body of a create or update of `resource`.
///
/// # Errors
/// 400 when the body is malformed, of another kind, or does not fit the schema.
pub fn object(
    resource: &Resource,
    body: &[u8],
    validation: FieldValidation,
) -> Result<Decoded, Status> {
    let expected = Gvk::of(resource);
    let Some(schema) = resource.strategy.schema() else { return kind(expected, body, validation) };
    let (mut object, findings) = parse(expected, body)?;
    let [api_version, kind] = ["apiVersion", "kind"].map(|key| object.remove(key));
    let text = |value: &Option<Value>| {
        value.as_ref().and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let (api_version, kind) = (text(&api_version), text(&kind));
    must_name_kind(body, &api_version, &kind)?;
    custom::check_type(resource, &mut object, &api_version, &kind)?;
    let mut strict = findings.strict;
    strict.extend(custom::fit(resource, schema, &mut object)?);
    let refused =
        |message: &str| Status::bad_request(cannot_be_handled(expected, expected, message));
    let warnings = heeded(strict, validation).map_err(|message| refused(&message))?;
    Ok(Decoded { object, warnings })
}

/// What a client is told of what a strict reader minds; an error for the strict.
fn heeded(strict: Vec<String>, validation: FieldValidation) -> Result<Vec<String>, String> {
    match validation {
        FieldValidation::Ignore => Ok(Vec::new()),
        FieldValidation::Warn => Ok(strict),
        FieldValidation::Strict if strict.is_empty() => Ok(strict),
        FieldValidation::Strict => Err(strict_error(&strict)),
    }
}

/// Decodes a body that must be of kind `expected`.
///
/// # Errors
/// 400 when the body is malformed, of another kind, or does not fit the schema.
pub fn kind(
    expected: Gvk<'_>,
    body: &[u8],
    validation: FieldValidation,
) -> Result<Decoded, Status> {
    let (object, findings) = parse(expected, body)?;
    finish(expected, body, object, findings, validation, KindRule::AsServed)
}

/// Decodes the body of a request that is no object of its own, such as `DeleteOptions`. Options may
/// come in the name of any group; an empty body means the default.
///
/// # Errors
/// 400 when the body is malformed, of another kind, or does not fit the schema.
pub fn options<T: DeserializeOwned + Default>(expected: Gvk<'_>, body: &[u8]) -> Result<T, Status> {
    if body.is_empty() {
        return Ok(T::default());
    }
    let (object, findings) = parse(expected, body)?;
    let decoded =
        finish(expected, body, object, findings, FieldValidation::Ignore, KindRule::AnyGroup)?;
    serde_json::from_value(Value::Object(decoded.object)).map_err(|error| {
        Status::bad_request(cannot_be_handled(expected, expected, &error.to_string()))
    })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum KindRule {
    /// Group, version and kind must be those served.
    AsServed,
    /// Only the kind must be.
    AnyGroup,
}

fn parse(expected: Gvk<'_>, body: &[u8]) -> Result<(Json, Findings), Status> {
    let mut findings = Findings::default();
    let mut reader = serde_json::Deserializer::from_slice(body);
    let parsed = match expected.schema() {
        Some(node) => Seed { findings: &mut findings, node }.deserialize(&mut reader),
        None => Free { findings: &mut findings }.deserialize(&mut reader),
    };
    let parsed = parsed.and_then(|value| reader.end().map(|()| value));
    match parsed {
        Ok(Value::Object(object)) => Ok((object, findings)),
        // Go decodes null into nothing, and leaves the object as it was: empty.
        Ok(Value::Null) if findings.mistyped.is_none() => Ok((Map::new(), findings)),
        Ok(other) => Err(unrecognized(expected, body, &syntax::not_an_object(body, &other))),
        // Decoding stopped before the end, and bad syntax further on is the graver problem.
        Err(_) if findings.fatal.is_some() => match syntax::problem(body) {
            Some(message) => Err(unrecognized(expected, body, &message)),
            None => Ok((Map::new(), findings)),
        },
        Err(_) if std::str::from_utf8(body).is_err() => {
            // Go reads bytes that are no UTF-8 as U+FFFD.
            parse(expected, String::from_utf8_lossy(body).as_bytes())
        }
        Err(error) => Err(unrecognized(expected, body, &syntax::message(body, &error))),
    }
}

/// Checks what the body says it is, then reports what was found in it.
fn finish(
    expected: Gvk<'_>,
    body: &[u8],
    mut object: Json,
    findings: Findings,
    validation: FieldValidation,
    rule: KindRule,
) -> Result<Decoded, Status> {
    let api_version = object.remove("apiVersion");
    let kind = object.remove("kind");
    let api_version = api_version.as_ref().and_then(Value::as_str).unwrap_or_default();
    let kind = kind.as_ref().and_then(Value::as_str).unwrap_or_default();
    let is_custom = expected.schema().is_none_or(|node| !node.has_protobuf());
    // What ended the decoding came before whatever the body says it is.
    if is_custom && findings.fatal.is_none() {
        must_name_kind(body, api_version, kind)?;
    }
    let given = given_kind(expected, api_version, kind)?;
    check_kind(expected, given, rule)?;
    // Upstream says no place for its own kinds; others it checks by their schemas, and says it.
    let place = is_custom.then(|| findings.place());
    let stopped = findings.fatal.map(|message| match place {
        Some(place) if !place.is_empty() => format!("{place}: {message}"),
        _ => message,
    });
    if let Some(message) = stopped.or(findings.mistyped) {
        return Err(Status::bad_request(cannot_be_handled(given, expected, &message)));
    }
    let refused =
        |message: String| Status::bad_request(cannot_be_handled(given, expected, &message));
    let warnings = heeded(findings.strict, validation).map_err(refused)?;
    Ok(Decoded { object, warnings })
}

/// Custom kinds are not guessed from the path.
fn must_name_kind(body: &[u8], api_version: &str, kind: &str) -> Result<(), Status> {
    let missing = match (kind, api_version) {
        ("", _) => "Kind",
        (_, "") => "apiVersion",
        _ => return Ok(()),
    };
    let body = String::from_utf8_lossy(body);
    Err(Status::bad_request(format!("Object '{missing}' is missing in '{body}'")))
}

/// What the body says it is, filled up from what is expected.
fn given_kind<'a>(
    expected: Gvk<'a>,
    api_version: &'a str,
    kind: &'a str,
) -> Result<Gvk<'a>, Status> {
    let (group, version) = match api_version.split_once('/') {
        None if api_version.is_empty() => (expected.group, expected.version),
        None => ("", api_version),
        Some((group, version)) if !version.contains('/') => (group, version),
        Some(_) => {
            let message = format!("unexpected GroupVersion string: {api_version}");
            return Err(Status::bad_request(message));
        }
    };
    let version =
        if version.is_empty() && group == expected.group { expected.version } else { version };
    Ok(Gvk { group, version, kind: if kind.is_empty() { expected.kind } else { kind } })
}

fn check_kind(expected: Gvk<'_>, given: Gvk<'_>, rule: KindRule) -> Result<(), Status> {
    if given == expected || (rule == KindRule::AnyGroup && given.kind == expected.kind) {
        return Ok(());
    }
    match misfit(expected, given) {
        Some(message) => Err(Status::bad_request(cannot_be_handled(given, expected, &message))),
        None => Err(Status::bad_request(format!(
            "the API version in the data ({}) does not match the expected API version ({})",
            given.api_version(),
            expected.api_version()
        ))),
    }
}

/// Why an object of the kind `given` is none of the kind `expected`; nothing when it is one, of
/// whatever version.
fn misfit(expected: Gvk<'_>, given: Gvk<'_>) -> Option<String> {
    let Some(node) = given.schema() else {
        return Some(format!(
            "no kind {:?} is registered for version {:?} in scheme \
             \"pkg/api/legacyscheme/scheme.go:30\"",
            given.kind,
            given.api_version()
        ));
    };
    if given.kind == expected.kind {
        return None;
    }
    let package = match expected.group.split('.').next() {
        None | Some("") => "core",
        Some(group) => group,
    };
    Some(format!("converting ({}) to ({package}.{}): unknown conversion", node.go(), expected.kind))
}

/// `strict decoding error: unknown field "spec.foo", duplicate field "spec.bar"`.
fn strict_error(problems: &[String]) -> String {
    format!("strict decoding error: {}", problems.join(", "))
}

fn cannot_be_handled(given: Gvk<'_>, expected: Gvk<'_>, why: &str) -> String {
    format!(
        "{} in version {} cannot be handled as a {}: {why}",
        given.kind,
        quoted(given.version),
        expected.kind
    )
}

fn unrecognized(expected: Gvk<'_>, body: &[u8], why: &str) -> Status {
    Status::bad_request(format!(
        "the object provided is unrecognized (must be of type {}): couldn't get version/kind; json \
         parse error: {why} ({})",
        expected.kind,
        syntax::summary(body)
    ))
}

#[cfg(test)]
mod tests;
