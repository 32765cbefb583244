//! What makes sense as an event. Events with an `eventTime` are of the newer style and must be
//! complete; older ones only have to live where the object lives they are about.

use jiff::Timestamp;
use serde_json::Value;

use crate::{
    field::{ErrorList, FieldError, Path},
    json::{at, integer, text},
    kinds::{IMMUTABLE, each},
    names,
    strategy::Json,
};

/// The rules that hold for events of both API versions. `reporter` is what the version calls the
/// field of the reporting controller.
pub(super) fn validate(event: &Json, reporter: &str) -> ErrorList {
    let mut errors = ErrorList::new();
    let namespace = text(event, &["metadata", "namespace"]);
    let about = text(event, &["involvedObject", "namespace"]);
    let has_time = moment(event, &["eventTime"]).is_some();
    let fits = match (about, has_time) {
        ("", false) => matches!(namespace, "" | "default"),
        ("", true) => matches!(namespace, "default" | "kube-system"),
        (about, false) => about == namespace,
        (_, true) => true,
    };
    if !fits {
        let path = Path::new("involvedObject").child("namespace");
        errors.push(FieldError::invalid(&path, about, "does not match event.namespace"));
    }
    if has_time {
        errors.extend(validate_completeness(event, reporter));
    }
    errors.extend(each(&Path::new("namespace"), namespace, names::dns1123_subdomain(namespace)));
    errors
}

/// What is demanded beyond [`validate`] of an event created through events.k8s.io/v1.
pub(super) fn validate_strict_create(event: &Json) -> ErrorList {
    let mut errors = validate_series(event);
    let unset = |field: &str| FieldError::invalid(&Path::new(field), "", "needs to be unset");
    if moment(event, &["eventTime"]).is_none() {
        errors.push(FieldError::required(&Path::new("eventTime"), ""));
    }
    let kind = text(event, &["type"]);
    if !matches!(kind, "Normal" | "Warning") {
        let why = format!("has invalid value: {kind}");
        errors.push(FieldError::invalid(&Path::new("type"), "", &why));
    }
    for field in ["firstTimestamp", "lastTimestamp"] {
        if moment(event, &[field]).is_some() {
            errors.push(unset(field));
        }
    }
    if integer(event, &["count"]).unwrap_or_default() != 0 {
        errors.push(unset("count"));
    }
    let source = |member: &str| text(event, &["source", member]);
    if !source("component").is_empty() || !source("host").is_empty() {
        errors.push(unset("source"));
    }
    errors
}

/// What is demanded beyond [`validate`] of an update through events.k8s.io/v1: only the series may
/// change.
pub(super) fn validate_strict_update(event: &Json, old: &Json) -> ErrorList {
    let mut errors = ErrorList::new();
    if present(event, "series") != present(old, "series") {
        errors.extend(validate_series(event));
    }
    let fields = [
        ("involvedObject", "involvedObject"),
        ("reason", "reason"),
        ("message", "message"),
        ("source", "source"),
        ("firstTimestamp", "firstTimestamp"),
        ("lastTimestamp", "lastTimestamp"),
        ("count", "count"),
        ("type", "type"),
        ("eventTime", "eventTime"),
        ("action", "action"),
        ("related", "related"),
        ("reportingComponent", "reportingController"),
        ("reportingInstance", "reportingInstance"),
    ];
    for (field, shown) in fields {
        let is_same = match field {
            // Times are equal when they are the same moment, to the microsecond.
            "eventTime" | "firstTimestamp" | "lastTimestamp" => {
                let micros = |of: &Json| moment(of, &[field]).map(Timestamp::as_microsecond);
                micros(event) == micros(old)
            }
            _ => present(event, field) == present(old, field),
        };
        if !is_same {
            let value = event.get(field).cloned().unwrap_or_else(|| zero_of(field));
            errors.push(FieldError::invalid(&Path::new(shown), value, IMMUTABLE));
        }
    }
    errors
}

fn validate_completeness(event: &Json, reporter: &str) -> ErrorList {
    let mut errors = ErrorList::new();
    let component = text(event, &["reportingComponent"]);
    let path = Path::new(reporter);
    if component.is_empty() {
        errors.push(FieldError::required(&path, ""));
    }
    errors.extend(each(&path, component, names::qualified_name(component)));
    for field in ["reportingInstance", "action", "reason"] {
        if text(event, &[field]).is_empty() {
            errors.push(FieldError::required(&Path::new(field), ""));
        }
        errors.extend(too_long(event, field, 128));
    }
    errors.extend(too_long(event, "message", 1024));
    errors
}

fn too_long(event: &Json, field: &str, max: usize) -> Option<FieldError> {
    (text(event, &[field]).len() > max).then(|| {
        FieldError::invalid(&Path::new(field), "", &format!("can have at most {max} characters"))
    })
}

fn validate_series(event: &Json) -> ErrorList {
    let mut errors = ErrorList::new();
    if present(event, "series").is_some() {
        if integer(event, &["series", "count"]).unwrap_or_default() < 2 {
            let path = Path::new("series.count");
            errors.push(FieldError::invalid(&path, "", "should be at least 2"));
        }
        if moment(event, &["series", "lastObservedTime"]).is_none() {
            errors.push(FieldError::required(&Path::new("series.lastObservedTime"), ""));
        }
    }
    errors
}

/// What a field that is absent is shown as.
fn zero_of(field: &str) -> Value {
    match field {
        "count" => 0.into(),
        "reason" | "message" | "type" | "action" | "reportingComponent" | "reportingInstance" => {
            "".into()
        }
        _ => Value::Null,
    }
}

fn moment(event: &Json, path: &[&str]) -> Option<Timestamp> {
    at(event, path)?.as_str()?.parse().ok()
}

/// A member that says something: null, zero and empty values count as absent.
fn present<'a>(event: &'a Json, field: &str) -> Option<&'a Value> {
    event.get(field).filter(|value| match value {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Object(members) => !members.is_empty(),
        Value::Number(number) => number.as_i64() != Some(0),
        Value::Bool(_) | Value::Array(_) => true,
    })
}
