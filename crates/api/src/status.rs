//! The Status object: how the API says no, with the words clients match on.

use serde::{Deserialize, Serialize};

use crate::{field::ErrorList, resource::Resource};

/// One cause inside a Status.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Cause {
    /// A machine-readable reason, such as `FieldValueInvalid`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// What a person reads.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The field at fault.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub field: String,
}

/// What a Status is about.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Details {
    /// The object's name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Its API group.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// The resource (or, for `Invalid`, the kind).
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// The object's uid.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// What exactly is wrong.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<Cause>,
    /// When to try again.
    #[serde(skip_serializing_if = "is_zero")]
    pub retry_after_seconds: u32,
}

/// The `metadata` of a Status; only `continue` is ever set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StatusMeta {
    /// A continue token to go on with after `Expired`.
    #[serde(rename = "continue", skip_serializing_if = "String::is_empty")]
    pub continue_token: String,
    /// Unused by us, kept for reading other servers' answers.
    #[serde(rename = "resourceVersion", skip_serializing_if = "String::is_empty")]
    pub resource_version: String,
}

/// `metav1.Status`, as an error value: a request that was refused, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
#[serde(default)]
pub struct Status {
    #[serde(skip_deserializing)]
    kind: StatusKind,
    #[serde(rename = "apiVersion", skip_deserializing)]
    api_version: CoreV1,
    /// Only `continue` is ever set. Boxed, as errors should be small.
    pub metadata: Box<StatusMeta>,
    /// `Success` or `Failure`.
    pub status: String,
    /// What a person reads.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// What a program matches on.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// What it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<Box<Details>>,
    /// The HTTP code.
    #[serde(skip_serializing_if = "is_zero16")]
    pub code: u16,
}

/// Written as `Status`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct StatusKind;

impl Serialize for StatusKind {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str("Status")
    }
}

/// Written as `v1`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct CoreV1;

impl Serialize for CoreV1 {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str("v1")
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes fields by reference")]
fn is_zero(n: &u32) -> bool {
    *n == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes fields by reference")]
fn is_zero16(n: &u16) -> bool {
    *n == 0
}

impl Default for Status {
    fn default() -> Self {
        Self {
            kind: StatusKind,
            api_version: CoreV1,
            metadata: Box::default(),
            status: "Failure".to_owned(),
            message: String::new(),
            reason: String::new(),
            details: None,
            code: 0,
        }
    }
}

impl Status {
    fn failure(code: u16, reason: &str, message: impl Into<String>) -> Self {
        Self { code, reason: reason.to_owned(), message: message.into(), ..Self::default() }
    }

    /// The same Status with `details` set.
    #[must_use]
    pub fn with_details(mut self, details: Details) -> Self {
        self.details = Some(Box::new(details));
        self
    }

    /// `Success`, as DELETE answers for an object that is gone.
    pub fn deleted(resource: &Resource, name: &str, uid: &str) -> Self {
        Self { status: "Success".to_owned(), ..Self::default() }
            .with_details(Details { uid: uid.to_owned(), ..about(resource, name) })
    }

    /// 400: the request itself makes no sense.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::failure(400, "BadRequest", message)
    }

    /// 401.
    pub fn unauthorized() -> Self {
        Self::failure(401, "Unauthorized", "Unauthorized")
    }

    /// 403 about one object: `pods "x" is forbidden: <why>`.
    pub fn forbidden(resource: &Resource, name: &str, why: &str) -> Self {
        let subject = resource.group_resource();
        let message = if name.is_empty() {
            format!("{subject} is forbidden: {why}")
        } else {
            format!("{subject} {name:?} is forbidden: {why}")
        };
        Self::failure(403, "Forbidden", message).with_details(about(resource, name))
    }

    /// 403 about what may not even be known to be there: `jobs.batch "x" is forbidden: <why>`.
    pub fn not_allowed((group, resource): (&str, &str), name: &str, why: &str) -> Self {
        let dot = if group.is_empty() { "" } else { "." };
        let named = if name.is_empty() { String::new() } else { format!(" {name:?}") };
        let message = format!("{resource}{dot}{group}{named} is forbidden: {why}");
        let (name, group) = (name.to_owned(), group.to_owned());
        let details = Details { name, group, kind: resource.to_owned(), ..Details::default() };
        Self::failure(403, "Forbidden", message).with_details(details)
    }

    /// 403 from a webhook, in its own words.
    pub fn denied(message: impl Into<String>) -> Self {
        Self::failure(403, "Forbidden", message)
    }

    /// 404 about one object: `jobs.batch "x" not found`.
    pub fn not_found(resource: &Resource, name: &str) -> Self {
        let message = format!("{} {name:?} not found", resource.group_resource());
        Self::failure(404, "NotFound", message).with_details(about(resource, name))
    }

    /// 404 about a path nobody serves.
    pub fn no_such_resource() -> Self {
        Self::failure(404, "NotFound", "the server could not find the requested resource")
            .with_details(Details::default())
    }

    /// 405.
    pub fn method_not_allowed(resource: &Resource, action: &str) -> Self {
        let message = format!(
            "{action} is not supported on resources of kind {:?}",
            resource.group_resource()
        );
        Self::failure(405, "MethodNotAllowed", message).with_details(about(resource, ""))
    }

    /// 405 about a kind that is known by name only, with what to use instead.
    pub fn refused(resource: &Resource, instead: &str) -> Self {
        let mut status = Self::method_not_allowed(resource, "create");
        status.message.push_str(": ");
        status.message.push_str(instead);
        status
    }

    /// 406: none of the accepted media types can be served.
    pub fn not_acceptable(accepted: &[&str]) -> Self {
        let message =
            format!("406: Not Acceptable\n\nAvailable representations: {}", accepted.join(", "));
        Self::failure(406, "NotAcceptable", message).with_details(Details::default())
    }

    /// 409: an object of that name is there already.
    pub fn already_exists(resource: &Resource, name: &str) -> Self {
        let message = format!("{} {name:?} already exists", resource.group_resource());
        Self::failure(409, "AlreadyExists", message).with_details(about(resource, name))
    }

    /// 409: `Operation cannot be fulfilled on jobs.batch "x": <why>`.
    pub fn conflict(resource: &Resource, name: &str, why: &str) -> Self {
        let message = format!(
            "Operation cannot be fulfilled on {} {name:?}: {why}",
            resource.group_resource()
        );
        Self::failure(409, "Conflict", message).with_details(about(resource, name))
    }

    /// 409 about something below an object's path, such as `pods/binding`.
    pub fn conflict_on(resource: &str, name: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {resource} {name:?}: {why}");
        Self::failure(409, "Conflict", message).with_details(Details {
            name: name.to_owned(),
            kind: resource.to_owned(),
            ..Details::default()
        })
    }

    /// 409: an apply would take fields from others.
    pub fn apply_conflict(message: impl Into<String>) -> Self {
        Self::failure(409, "Conflict", message)
    }

    /// 409: the object changed since the client read it.
    pub fn modified(resource: &Resource, name: &str) -> Self {
        Self::conflict(
            resource,
            name,
            "the object has been modified; please apply your changes to the latest version and \
             try again",
        )
    }

    /// 410: the history asked for is no longer kept.
    pub fn expired(message: impl Into<String>) -> Self {
        Self::failure(410, "Expired", message)
    }

    /// 413.
    pub fn too_large(message: impl Into<String>) -> Self {
        Self::failure(413, "RequestEntityTooLarge", message)
    }

    /// 415 for a patch, of which upstream does not say what would have been understood.
    pub fn unsupported_patch() -> Self {
        Self::failure(415, "UnsupportedMediaType", "415: Unsupported Media Type")
            .with_details(Details::default())
    }

    /// 415: `accepted` are the media types that would have been understood.
    pub fn unsupported_media_type(accepted: &[&str]) -> Self {
        let message = format!(
            "the body of the request was in an unknown format - accepted media types include: {}",
            accepted.join(", ")
        );
        Self::failure(415, "UnsupportedMediaType", message)
    }

    /// 422 about something of a group and kind that is no resource, such as `Binding`.
    pub fn invalid_kind((group, kind): (&str, &str), name: &str, errors: &ErrorList) -> Self {
        let dot = if group.is_empty() { "" } else { "." };
        let (group_kind, group) = (format!("{kind}{dot}{group}"), group.to_owned());
        let details = Details { name: name.to_owned(), group, ..Details::default() };
        Self::invalid_with(&group_kind, kind, name, errors, details)
    }

    /// 422: `Pod "x" is invalid: <field errors>`.
    pub fn invalid(resource: &Resource, name: &str, errors: &ErrorList) -> Self {
        let details = about(resource, name);
        Self::invalid_with(&resource.group_kind(), &resource.kind, name, errors, details)
    }

    fn invalid_with(
        group_kind: &str,
        kind: &str,
        name: &str,
        errors: &ErrorList,
        details: Details,
    ) -> Self {
        let mut listed: Vec<String> = Vec::with_capacity(errors.len());
        for error in errors.iter().map(ToString::to_string) {
            // Said once, however often it was found.
            if !listed.contains(&error) {
                listed.push(error);
            }
        }
        let why = match listed.as_slice() {
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        let causes = errors
            .iter()
            .map(|e| Cause {
                reason: e.kind.reason().to_owned(),
                message: e.body.clone(),
                field: e.path.to_string(),
            })
            .collect();
        Self::failure(422, "Invalid", format!("{group_kind} {name:?} is invalid: {why}"))
            .with_details(Details { kind: kind.to_owned(), causes, ..details })
    }

    /// 429: try again after so many seconds.
    pub fn too_many_requests(message: impl Into<String>, retry_after_seconds: u32) -> Self {
        Self::failure(429, "TooManyRequests", message)
            .with_details(Details { retry_after_seconds, ..Details::default() })
    }

    /// 500: something of ours went wrong.
    pub fn internal(message: impl std::fmt::Display) -> Self {
        Self::failure(500, "InternalError", format!("Internal error occurred: {message}"))
            .with_details(Details {
                causes: vec![Cause { message: message.to_string(), ..Cause::default() }],
                ..Details::default()
            })
    }

    /// 500 without a reason: what upstream did not expect a client to do.
    pub fn unexpected(message: impl Into<String>) -> Self {
        Self::failure(500, "", message)
    }

    /// 503: not now.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::failure(503, "ServiceUnavailable", message)
    }

    /// 504: the resourceVersion asked for has not been reached.
    pub fn too_large_resource_version(asked: u64, current: u64) -> Self {
        Self::failure(
            504,
            "Timeout",
            format!("Timeout: Too large resource version: {asked}, current: {current}"),
        )
        .with_details(Details {
            causes: vec![Cause {
                reason: "ResourceVersionTooLarge".to_owned(),
                message: "Too large resource version".to_owned(),
                field: String::new(),
            }],
            retry_after_seconds: 1,
            ..Details::default()
        })
    }
}

fn about(resource: &Resource, name: &str) -> Details {
    Details {
        name: name.to_owned(),
        group: resource.group.to_string(),
        kind: resource.plural.to_string(),
        ..Details::default()
    }
}
