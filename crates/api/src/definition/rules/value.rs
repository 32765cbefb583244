//! Values as expressions see them: by their schema, under names that expressions can have.

use std::sync::Arc;

use base64::{
    Engine, alphabet,
    engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig},
};
use chrono::{DateTime, NaiveDate, TimeDelta};
use kube_cel::cel::{
    Value as Seen,
    objects::{Key, Map},
};
use serde_json::Value;

use super::super::schema::Schema;
use crate::{duration::parse_go, strategy::Json};

/// Bits that are left over may be anything, as in Go.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
);

/// Words that mean something to expressions, and are no names in them.
const RESERVED: &[&str] = &[
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// A value as expressions see it; `is_whole` for an object of the API.
pub(super) fn of(schema: &Schema, value: &Value, is_whole: bool) -> Seen {
    match value {
        Value::Null => Seen::Null,
        Value::Bool(is_so) => Seen::Bool(*is_so),
        Value::Number(number) => match (number.as_i64(), &*schema.kind) {
            (Some(whole), kind) if kind != "number" => Seen::Int(whole),
            (_, "integer") => {
                // It was checked before, and is whole; a double holds no more.
                let text = format!("{:.0}", number.as_f64().unwrap_or_default());
                Seen::Int(text.parse().unwrap_or_default())
            }
            _ => Seen::Float(number.as_f64().unwrap_or_default()),
        },
        Value::String(text) => text_of(schema, text),
        Value::Array(list) => {
            let unknown = Schema::default();
            let items = schema.items.as_deref().unwrap_or(&unknown);
            Seen::List(Arc::new(
                list.iter().map(|item| of(items, item, items.is_embedded)).collect(),
            ))
        }
        Value::Object(object) => object_of(schema, object, is_whole),
    }
}

fn object_of(schema: &Schema, object: &Json, is_whole: bool) -> Seen {
    let unknown = Schema::default();
    let is_free = schema.properties.is_empty() && schema.additional.schema().is_none();
    let members = object.iter().filter_map(|(name, value)| {
        if is_whole && name == "metadata" {
            return Some((named(name), metadata_of(value)));
        }
        if is_whole && matches!(name.as_str(), "apiVersion" | "kind") {
            return Some((named(name), of(&unknown, value, false)));
        }
        if let Some(property) = schema.properties.get(name) {
            return Some((named(name), of(property, value, property.is_embedded)));
        }
        // The keys of a map are no names.
        if let Some(additional) = schema.additional.schema() {
            return Some((name.clone(), of(additional, value, additional.is_embedded)));
        }
        is_free.then(|| (name.clone(), of(&unknown, value, false)))
    });
    map(members)
}

/// Of metadata, expressions see the name and what it was made of.
fn metadata_of(value: &Value) -> Seen {
    let seen = ["name", "generateName"].into_iter().filter_map(|name| {
        let text = value.get(name)?.as_str()?;
        Some((name.to_owned(), Seen::from(text)))
    });
    map(seen)
}

fn map(members: impl Iterator<Item = (String, Seen)>) -> Seen {
    let members = members.map(|(name, value)| (Key::from(name), value));
    Seen::Map(Map { map: Arc::new(members.collect()) })
}

fn text_of(schema: &Schema, text: &str) -> Seen {
    let special = match &*schema.format {
        "date-time" | "datetime" => DateTime::parse_from_rfc3339(text).ok().map(Seen::Timestamp),
        "date" => {
            let midnight = text.parse::<NaiveDate>().ok().and_then(|day| day.and_hms_opt(0, 0, 0));
            midnight.map(|at| Seen::Timestamp(at.and_utc().fixed_offset()))
        }
        "duration" => parse_go(text).and_then(|it| {
            let nanoseconds = u32::try_from(it.subsec_nanos().rem_euclid(1_000_000_000)).ok()?;
            let seconds = if it.subsec_nanos() < 0 { it.as_secs() - 1 } else { it.as_secs() };
            TimeDelta::new(seconds, nanoseconds).map(Seen::Duration)
        }),
        "byte" => BASE64.decode(text).ok().map(|bytes| Seen::Bytes(Arc::new(bytes))),
        _ => None,
    };
    special.unwrap_or_else(|| Seen::from(text))
}

/// The name of a field in expressions.
fn named(name: &str) -> String {
    if RESERVED.contains(&name) {
        return format!("__{name}__");
    }
    name.replace("__", "__underscores__")
        .replace('.', "__dot__")
        .replace('-', "__dash__")
        .replace('/', "__slash__")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_expressions_cannot_have_are_spelled_out() {
        let cases = [
            ("plain", "plain"),
            ("one_two", "one_two"),
            ("one__two", "one__underscores__two"),
            ("a-b.c/d", "a__dash__b__dot__c__slash__d"),
            ("namespace", "__namespace__"),
        ];
        for (name, want) in cases {
            assert_eq!(named(name), want);
        }
    }
}
