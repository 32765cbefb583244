//! Event: what happened to an object. Two API versions show the same stored events: core/v1, which
//! is the stored form, and events.k8s.io/v1.

mod validation;

use jiff::Timestamp;
use serde_json::Value;

use crate::{
    duration::{UNKNOWN, since},
    field::ErrorList,
    json::{integer, text},
    names,
    strategy::{Column, Json, Strategy},
    table::{self, NAME, column, wide},
};

const COLUMNS: &[Column] = &[
    column("Last Seen", "How long ago it happened last."),
    column("Type", "Normal or Warning."),
    column("Reason", "Why, in one word."),
    column("Object", "What it happened to."),
    wide("Subobject", "The part of the object it happened to."),
    wide("Source", "Who reports it."),
    column("Message", "What happened."),
    wide("First Seen", "How long ago it happened first."),
    wide("Count", "How often it happened."),
    Column { priority: 1, ..NAME },
];

const REFERENCE_FIELDS: [&str; 7] =
    ["kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath"];

/// Fields that have one name in core/v1 and another in events.k8s.io/v1.
const RENAMED: [(&str, &str); 7] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
];

/// Event of core/v1.
#[derive(Debug)]
pub struct CoreEventStrategy;

/// Event of events.k8s.io/v1.
#[derive(Debug)]
pub struct EventStrategy;

impl Strategy for CoreEventStrategy {
    fn validate_create(&self, object: &Json) -> ErrorList {
        validation::validate(object, "reportingComponent")
    }

    /// Anything that fits into a path: core/v1 never was stricter.
    fn validate_name(&self, name: &str, is_prefix: bool) -> Vec<String> {
        names::path_segment(name, is_prefix)
    }

    fn allows_create_on_update(&self) -> bool {
        true
    }

    fn selectable_fields(&self) -> &'static [&'static str] {
        &[
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "involvedObject.apiVersion",
            "involvedObject.resourceVersion",
            "involvedObject.fieldPath",
            "reason",
            "reportingComponent",
            "source",
            "type",
        ]
    }

    fn field_value(&self, object: &Json, field: &str) -> String {
        match field {
            "reason" | "type" | "reportingComponent" => text(object, &[field]),
            "source" => match text(object, &["source", "component"]) {
                "" => text(object, &["reportingComponent"]),
                component => component,
            },
            _ => match field.strip_prefix("involvedObject.") {
                Some(member) if REFERENCE_FIELDS.contains(&member) => {
                    text(object, &["involvedObject", member])
                }
                _ => "",
            },
        }
        .to_owned()
    }

    fn columns(&self) -> &'static [Column] {
        COLUMNS
    }

    fn row(&self, object: &Json, now: Timestamp) -> Vec<Value> {
        let ago = |moment: &str| since(moment, now);
        let mut first = ago(text(object, &["firstTimestamp"]));
        if first == UNKNOWN {
            first = ago(text(object, &["eventTime"]));
        }
        let mut last = ago(text(object, &["lastTimestamp"]));
        if last == UNKNOWN {
            last.clone_from(&first);
        }
        let mut count = integer(object, &["count"]).filter(|count| *count != 0).unwrap_or(1);
        if object.get("series").is_some_and(Value::is_object) {
            last = ago(text(object, &["series", "lastObservedTime"]));
            count = integer(object, &["series", "count"]).unwrap_or_default();
        }
        let kind = text(object, &["involvedObject", "kind"]).to_lowercase();
        let target = match text(object, &["involvedObject", "name"]) {
            "" => kind,
            name => format!("{kind}/{name}"),
        };
        vec![
            last.into(),
            text(object, &["type"]).into(),
            text(object, &["reason"]).into(),
            target.into(),
            text(object, &["involvedObject", "fieldPath"]).into(),
            source_cell(object).into(),
            text(object, &["message"]).trim().into(),
            first.into(),
            count.into(),
            table::name(object),
        ]
    }
}

impl Strategy for EventStrategy {
    fn validate_create(&self, object: &Json) -> ErrorList {
        let event = self.to_stored(object.clone());
        let mut errors = validation::validate(&event, "reportingController");
        errors.extend(validation::validate_strict_create(&event));
        errors
    }

    fn validate_update(&self, object: &Json, old: &Json) -> ErrorList {
        let (event, old) = (self.to_stored(object.clone()), self.to_stored(old.clone()));
        let mut errors = validation::validate(&event, "reportingController");
        errors.extend(validation::validate_strict_update(&event, &old));
        errors
    }

    fn validate_name(&self, name: &str, is_prefix: bool) -> Vec<String> {
        names::name_is_dns_subdomain(name, is_prefix)
    }

    fn allows_create_on_update(&self) -> bool {
        true
    }

    fn selectable_fields(&self) -> &'static [&'static str] {
        &[
            "regarding.kind",
            "regarding.namespace",
            "regarding.name",
            "regarding.uid",
            "regarding.apiVersion",
            "regarding.resourceVersion",
            "regarding.fieldPath",
            "reason",
            "reportingController",
            "type",
        ]
    }

    fn field_value(&self, object: &Json, field: &str) -> String {
        match field.strip_prefix("regarding.") {
            Some(member) if REFERENCE_FIELDS.contains(&member) => {
                text(object, &["regarding", member])
            }
            Some(_) => "",
            None => text(object, &[field]),
        }
        .to_owned()
    }

    fn columns(&self) -> &'static [Column] {
        COLUMNS
    }

    fn row(&self, object: &Json, now: Timestamp) -> Vec<Value> {
        CoreEventStrategy.row(&self.to_stored(object.clone()), now)
    }

    fn to_stored(&self, object: Json) -> Json {
        renamed(object, RENAMED.map(|(core, newer)| (newer, core)))
    }

    fn from_stored(&self, object: Json) -> Json {
        renamed(object, RENAMED)
    }

    fn is_converted(&self) -> bool {
        true
    }
}

fn renamed(mut object: Json, names: [(&str, &str); 7]) -> Json {
    for (from, to) in names {
        if let Some(value) = object.remove(from) {
            object.insert(to.to_owned(), value);
        }
    }
    object
}

fn source_cell(object: &Json) -> String {
    let first = |one: &[&str], other: &str| match text(object, one) {
        "" => text(object, &[other]).to_owned(),
        text => text.to_owned(),
    };
    let component = first(&["source", "component"], "reportingComponent");
    let instance = first(&["source", "host"], "reportingInstance");
    if instance.is_empty() { component } else { format!("{component}, {instance}") }
}

#[cfg(test)]
mod tests;
