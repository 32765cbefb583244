//! What an API server finds wrong with a value by its schema, in its words.

mod format;

use std::collections::BTreeSet;

use serde_json::{Number, Value};

use super::schema::{Additional, Limits, Schema};
use crate::{
    field::{ErrorKind, ErrorList, FieldError, Path},
    quote::quoted,
    strategy::Json,
};

pub(super) use format::is_known as is_format_known;

/// What is wrong with an object by its schema. What was so before, in an `old` one, may stay.
pub(super) fn check(schema: &Schema, object: &Json, old: Option<&Json>) -> ErrorList {
    let mut found = Found::default();
    let whole = Value::Object(object.clone());
    found.value(schema, &whole, old.map(|old| Value::Object(old.clone())).as_ref(), "");
    found.errors
}

/// What is wrong with a part of an object, which is at `prefix`. Texts begin at the part.
pub(super) fn check_part(
    schema: &Schema,
    value: &Value,
    old: Option<&Value>,
    prefix: &Path,
) -> ErrorList {
    let mut found = Found::default();
    found.value(schema, value, old, "");
    for error in &mut found.errors {
        error.path = match error.path.to_string().as_str() {
            "<nil>" => prefix.clone(),
            path => prefix.child(path),
        };
    }
    found.errors
}

/// A number as Go's `%v` prints it.
pub(super) fn go_float(number: f64) -> String {
    let scientific = format!("{number:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if (-4..6).contains(&exponent) {
        return number.to_string();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

/// The name of a value's JSON type.
fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[derive(Default)]
struct Found {
    errors: ErrorList,
}

impl Found {
    fn push(&mut self, error: FieldError) {
        if !self.errors.contains(&error) {
            self.errors.push(error);
        }
    }

    fn invalid(&mut self, path: &str, value: impl serde::Serialize, why: &str) {
        self.push(FieldError::invalid(&place(path), value, &format!("{path} in body {why}")));
    }

    /// An error that is about no field.
    fn whole(&mut self, why: &str) {
        self.push(FieldError::invalid(&Path::new("<nil>"), "", why));
    }

    fn value(&mut self, schema: &Schema, value: &Value, old: Option<&Value>, path: &str) {
        if old == Some(value) {
            return;
        }
        self.check_type(schema, value, path);
        if value.is_null() {
            self.check_choices(&schema.limits, value, path);
            return;
        }
        self.check_parts(schema, value, old, path);
        match value {
            Value::String(text) => self.check_text(schema, text, path),
            Value::Number(number) => self.check_number(&schema.limits, number, path),
            Value::Array(list) => {
                let old = old.and_then(Value::as_array).map(Vec::as_slice);
                self.check_list(schema, list, old.unwrap_or_default(), path);
            }
            Value::Null | Value::Bool(_) | Value::Object(_) => {}
        }
        self.check_choices(&schema.limits, value, path);
        if let Value::Object(object) = value {
            self.object(schema, object, old.and_then(Value::as_object), path);
        }
    }

    fn check_type(&mut self, schema: &Schema, value: &Value, path: &str) {
        let given = type_of(value);
        let wanted: &[&str] = match &*schema.kind {
            _ if schema.is_int_or_string => &["integer", "string"],
            "" => return,
            kind => &[kind],
        };
        let is_whole = value.as_f64().is_some_and(|number| number.fract() == 0.0);
        let is_right = match given {
            "null" => schema.is_nullable,
            "integer" => wanted.contains(&"integer") || wanted.contains(&"number"),
            "number" => wanted.contains(&"number") || wanted.contains(&"integer") && is_whole,
            given => wanted.contains(&given),
        };
        if is_right {
            return;
        }
        // What is neither text nor a list is told by formats, where there is one.
        let format = match value {
            Value::Number(number) if number.is_f64() => Some("float64"),
            Value::Number(_) => Some("int64"),
            Value::Bool(_) | Value::Object(_) => Some(""),
            Value::Null | Value::String(_) | Value::Array(_) => None,
        };
        match format.filter(|_| !schema.format.is_empty()) {
            Some(format) => self.mistyped(path, &schema.format, format),
            None => self.mistyped(path, &wanted.join(","), given),
        }
    }

    fn mistyped(&mut self, path: &str, wanted: &str, given: &str) {
        let given = quoted(given);
        let body =
            format!("Invalid value: {given}: {path} in body must be of type {wanted}: {given}");
        self.push(FieldError { kind: ErrorKind::TypeInvalid, path: place(path), body });
    }

    fn check_parts(&mut self, schema: &Schema, value: &Value, old: Option<&Value>, path: &str) {
        let limits = &schema.limits;
        let faults = |schema: &Schema| {
            let mut found = Self::default();
            found.value(schema, value, old, path);
            found.errors
        };
        if !limits.any_of.is_empty() {
            let tried: Vec<ErrorList> = limits.any_of.iter().map(faults).collect();
            if tried.iter().all(|errors| !errors.is_empty()) {
                let path = quoted(path);
                self.whole(&format!("{path} must validate at least one schema (anyOf)"));
                tried.into_iter().take(1).flatten().for_each(|error| self.push(error));
            }
        }
        if !limits.one_of.is_empty() {
            let tried: Vec<ErrorList> = limits.one_of.iter().map(faults).collect();
            let valid = tried.iter().filter(|errors| errors.is_empty()).count();
            if valid != 1 {
                let more = match valid {
                    0 => "Found none valid".to_owned(),
                    count => format!("Found {count} valid alternatives"),
                };
                let path = quoted(path);
                self.whole(&format!(
                    "{path} must validate one and only one schema (oneOf). {more}"
                ));
            }
            if valid == 0 {
                tried.into_iter().take(1).flatten().for_each(|error| self.push(error));
            }
        }
        if !limits.all_of.is_empty() {
            let tried: Vec<ErrorList> = limits.all_of.iter().map(faults).collect();
            let valid = tried.iter().filter(|errors| errors.is_empty()).count();
            let count = tried.len();
            tried.into_iter().flatten().for_each(|error| self.push(error));
            if valid < count {
                let more = if valid == 0 { ". None validated" } else { "" };
                let path = quoted(path);
                self.whole(&format!("{path} must validate all the schemas (allOf){more}"));
            }
        }
        if limits.not.as_deref().is_some_and(|schema| faults(schema).is_empty()) {
            self.whole(&format!("{} must not validate the schema (not)", quoted(path)));
        }
    }

    fn check_text(&mut self, schema: &Schema, text: &str, path: &str) {
        let limits = &schema.limits;
        let length = u64::try_from(text.chars().count()).unwrap_or(u64::MAX);
        if let Some(most) = limits.length[1].filter(|most| length > *most) {
            let most = usize::try_from(most).unwrap_or(usize::MAX);
            self.push(FieldError::too_long(&place(path), most));
        }
        if let Some(least) = limits.length[0].filter(|least| length < *least) {
            self.invalid(path, text, &format!("should be at least {least} chars long"));
        }
        if let Some(shape) = limits.pattern.as_ref().filter(|shape| shape.refuses(text)) {
            self.invalid(path, text, &format!("should match '{}'", shape.text));
        }
        if matches!(&*schema.kind, "" | "string")
            && !schema.format.is_empty()
            && !format::is_valid(&schema.format, text)
        {
            self.mistyped(path, &schema.format, text);
        }
    }

    fn check_number(&mut self, limits: &Limits, number: &Number, path: &str) {
        let Some(value) = number.as_f64() else { return };
        if let Some(factor) = limits.multiple_of {
            let times = value / factor;
            if times.is_finite() && times.fract() != 0.0 {
                let why = format!("should be a multiple of {}", go_float(factor));
                self.invalid(path, number, &why);
            }
        }
        if let Some((most, is_exclusive)) = limits.maximum
            && (value > most || is_exclusive && value >= most)
        {
            let or_equal = if is_exclusive { "" } else { " or equal to" };
            let why = format!("should be less than{or_equal} {}", go_float(most));
            self.invalid(path, number, &why);
        }
        if let Some((least, is_exclusive)) = limits.minimum
            && (value < least || is_exclusive && value <= least)
        {
            let or_equal = if is_exclusive { "" } else { " or equal to" };
            let why = format!("should be greater than{or_equal} {}", go_float(least));
            self.invalid(path, number, &why);
        }
    }

    fn check_list(&mut self, schema: &Schema, list: &[Value], old: &[Value], path: &str) {
        if let Some(items) = schema.items.as_deref() {
            for (at, item) in list.iter().enumerate() {
                self.value(items, item, schema.same_element(old, item), &format!("{path}[{at}]"));
            }
        }
        let count = u64::try_from(list.len()).unwrap_or(u64::MAX);
        if let Some(least) = schema.limits.items[0].filter(|least| count < *least) {
            self.invalid(path, count, &format!("should have at least {least} items"));
        }
        if let Some(most) = schema.limits.items[1].filter(|most| count > *most) {
            let most = usize::try_from(most).unwrap_or(usize::MAX);
            self.push(FieldError::too_many(&place(path), list.len(), most));
        }
        let texts: BTreeSet<String> = list.iter().map(ToString::to_string).collect();
        if schema.limits.has_unique_items && texts.len() < list.len() {
            self.invalid(path, "", "shouldn't contain duplicates");
        }
    }

    fn check_choices(&mut self, limits: &Limits, value: &Value, path: &str) {
        let Some(choices) = &limits.choices else { return };
        if choices.iter().any(|choice| is_equal(choice, value)) {
            return;
        }
        let texts: Vec<String> = choices
            .iter()
            .map(|choice| choice.as_str().map_or_else(|| choice.to_string(), str::to_owned))
            .collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        self.push(FieldError::not_supported(&place(path), value, &texts));
    }

    fn object(&mut self, schema: &Schema, object: &Json, old: Option<&Json>, path: &str) {
        let was = |name: &str| old.and_then(|old| old.get(name));
        let child = |name: &str| match path {
            "" => name.to_owned(),
            path => format!("{path}.{name}"),
        };
        let count = u64::try_from(object.len()).unwrap_or(u64::MAX);
        if let Some(least) = schema.limits.properties[0].filter(|least| count < *least) {
            self.invalid(path, count, &format!("should have at least {least} properties"));
            return;
        }
        if let Some(most) = schema.limits.properties[1].filter(|most| count > *most) {
            let most = usize::try_from(most).unwrap_or(usize::MAX);
            self.push(FieldError::too_many(&place(path), object.len(), most));
            return;
        }
        if let Additional::Of(additional) = &schema.additional {
            for (name, value) in object {
                if !schema.properties.contains_key(name) {
                    self.value(additional, value, was(name), &child(name));
                }
            }
        }
        for (name, property) in &schema.properties {
            if let Some(value) = object.get(name) {
                self.value(property, value, was(name), &child(name));
            }
        }
        for name in &schema.limits.required {
            if !object.contains_key(name) {
                self.push(FieldError::required(&place(&child(name)), ""));
            }
        }
    }
}

/// Whether two values are the same, numbers by what they count.
fn is_equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a.as_f64() == b.as_f64(),
        (a, b) => a == b,
    }
}

/// The path of an error; the object itself has none.
fn place(path: &str) -> Path {
    Path::new(if path.is_empty() { "<nil>" } else { path })
}

#[cfg(test)]
mod tests;
