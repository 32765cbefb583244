//! What an API server finds wrong with a value by its schema, in its words.

mod email;
mod format;
mod number;

use std::collections::BTreeSet;

use serde_json::Value;

use super::schema::{Additional, Keyed, Limits, Schema};
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
        Value::Number(number) if number.as_i64().is_none() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// The format of a schema, if it is one for values of its type; others mean nothing.
fn effective_format(schema: &Schema) -> &str {
    let kind = if schema.is_int_or_string { "" } else { &*schema.kind };
    if format::is_known(kind, &schema.format) { &schema.format } else { "" }
}

#[derive(Default)]
struct Found {
    errors: ErrorList,
    /// All of them: what is told once is not told again.
    told: BTreeSet<(ErrorKind, Path, String)>,
    /// How much was looked at, and how much of it was right: of alternatives that all fail,
    /// upstream lists the faults of the one with the most.
    matches: usize,
}

impl Found {
    fn push(&mut self, error: FieldError) {
        if self.told.insert((error.kind, error.path.clone(), error.body.clone())) {
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
        if old.is_some_and(|old| schema.is_same(value, old)) {
            return;
        }
        self.check_type(schema, value, path);
        if value.is_null() {
            self.check_choices(&schema.limits, value, path);
            return;
        }
        self.check_parts(schema, value, path);
        self.matches += match value {
            Value::String(text) => {
                self.check_text(schema, text, path);
                1 + usize::from(!effective_format(schema).is_empty())
            }
            Value::Number(number) => {
                self.check_number(schema, number, path);
                2
            }
            Value::Array(list) => {
                let old = old.and_then(Value::as_array).map(Vec::as_slice);
                self.check_list(schema, list, old.unwrap_or_default(), path);
                2
            }
            Value::Object(_) => 1,
            Value::Null | Value::Bool(_) => 0,
        };
        self.check_choices(&schema.limits, value, path);
        if let Value::Object(object) = value {
            self.object(schema, object, old.and_then(Value::as_object), path);
        }
        // Choices, and the value as a whole.
        self.matches += 2;
    }

    fn check_type(&mut self, schema: &Schema, value: &Value, path: &str) {
        let given = type_of(value);
        let format = effective_format(schema);
        let wanted: &[&str] = match &*schema.kind {
            _ if schema.is_int_or_string => &["integer", "string"],
            "" if value.is_null() => {
                self.matches += 1;
                return;
            }
            "" if format.is_empty() => return,
            "" => &[],
            kind => &[kind],
        };
        self.matches += usize::from(!value.is_null());
        let is_number = wanted.contains(&"integer") || wanted.contains(&"number");
        let is_right = match given {
            "null" => schema.is_nullable,
            "integer" => is_number,
            "number" if wanted.contains(&"integer") => {
                wanted.contains(&"number") || value.as_f64().is_some_and(number::is_whole)
            }
            // What a text with a format must be like is found with the format.
            "string" | "array" if !format.is_empty() && !is_number => true,
            given => wanted.contains(&given),
        };
        if is_right {
            self.matches += 1;
            return;
        }
        // What is neither text nor a list is told by formats, where there is one.
        let instead = match value {
            Value::Number(_) if given == "number" => Some("float64"),
            Value::Number(_) => Some("int64"),
            Value::Bool(_) | Value::Object(_) => Some(""),
            Value::Null | Value::String(_) | Value::Array(_) => None,
        };
        match instead.filter(|_| !format.is_empty()) {
            Some(given) => self.mistyped(path, format, given),
            None => self.mistyped(path, &wanted.join(","), given),
        }
    }

    fn mistyped(&mut self, path: &str, wanted: &str, given: &str) {
        let given = quoted(given);
        let body =
            format!("Invalid value: {given}: {path} in body must be of type {wanted}: {given}");
        self.push(FieldError { kind: ErrorKind::TypeInvalid, path: place(path), body });
    }

    /// Takes over what was found of the same value by another schema.
    fn merge(&mut self, other: Self) {
        self.matches += other.matches;
        other.errors.into_iter().for_each(|error| self.push(error));
    }

    /// Alternatives look at all of a value: what in it did not change may decide between them.
    fn check_parts(&mut self, schema: &Schema, value: &Value, path: &str) {
        let limits = &schema.limits;
        let tried = |schema: &Schema| {
            let mut found = Self::default();
            found.value(schema, value, None, path);
            found
        };
        self.check_any(limits.any_of.iter().map(tried), path);
        self.check_one(limits.one_of.iter().map(tried).collect(), path);
        let (mut valid, count) = (0, limits.all_of.len());
        for found in limits.all_of.iter().map(tried) {
            valid += usize::from(found.errors.is_empty());
            self.merge(found);
        }
        if valid < count {
            let more = if valid == 0 { ". None validated" } else { "" };
            let path = quoted(path);
            self.whole(&format!("{path} must validate all the schemas (allOf){more}"));
        }
        if limits.not.as_deref().is_some_and(|schema| tried(schema).errors.is_empty()) {
            self.whole(&format!("{} must not validate the schema (not)", quoted(path)));
        }
        self.matches += 2;
    }

    fn check_any(&mut self, tried: impl Iterator<Item = Self>, path: &str) {
        let mut best: Option<Self> = None;
        for found in tried {
            if found.errors.is_empty() {
                return self.merge(found);
            }
            if best.as_ref().is_none_or(|best| found.matches > best.matches) {
                best = Some(found);
            }
        }
        let Some(best) = best else { return };
        self.whole(&format!("{} must validate at least one schema (anyOf)", quoted(path)));
        self.merge(best);
    }

    fn check_one(&mut self, tried: Vec<Self>, path: &str) {
        if tried.is_empty() {
            return;
        }
        let valid = tried.iter().filter(|found| found.errors.is_empty()).count();
        // The first of those with the most.
        let best = tried.into_iter().reduce(|best, found| {
            let is_better = match valid {
                0 => found.matches > best.matches,
                _ => found.errors.is_empty() && !best.errors.is_empty(),
            };
            if is_better { found } else { best }
        });
        if valid != 1 {
            let more = match valid {
                0 => "Found none valid".to_owned(),
                count => format!("Found {count} valid alternatives"),
            };
            let path = quoted(path);
            self.whole(&format!("{path} must validate one and only one schema (oneOf). {more}"));
        }
        if valid < 2 {
            best.into_iter().for_each(|best| self.merge(best));
        }
    }

    fn check_text(&mut self, schema: &Schema, text: &str, path: &str) {
        self.check_limits_of_text(&schema.limits, text, path);
        let format = effective_format(schema);
        if !format.is_empty() && !format::is_valid(format, text) {
            self.mistyped(path, format, text);
        }
    }

    /// The first limit that a text goes beyond is the one that is told.
    fn check_limits_of_text(&mut self, limits: &Limits, text: &str, path: &str) {
        let length = u64::try_from(text.chars().count()).unwrap_or(u64::MAX);
        if let Some(most) = limits.length[1].filter(|most| length > *most) {
            let most = usize::try_from(most).unwrap_or(usize::MAX);
            self.push(FieldError::too_long(&place(path), most));
        } else if let Some(least) = limits.length[0].filter(|least| length < *least) {
            self.invalid(path, text, &format!("should be at least {least} chars long"));
        } else if let Some(shape) = limits.pattern.as_ref().filter(|shape| shape.refuses(text)) {
            self.invalid(path, text, &format!("should match '{}'", shape.text));
        }
    }

    fn check_list(&mut self, schema: &Schema, list: &[Value], old: &[Value], path: &str) {
        if let Some(items) = schema.items.as_deref() {
            let old = Keyed::of(schema, old);
            for (at, item) in list.iter().enumerate() {
                self.value(items, item, old.find(item), &format!("{path}[{at}]"));
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
    }

    fn check_choices(&mut self, limits: &Limits, value: &Value, path: &str) {
        let Some(choices) = &limits.choices else { return };
        if choices.iter().any(|choice| is_choice(choice, value)) {
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
        // Both are said by the version that is asked for, before as now.
        let is_said = |name: &str| path.is_empty() && matches!(name, "apiVersion" | "kind");
        let was = |name: &str| old.filter(|_| !is_said(name)).and_then(|old| old.get(name));
        let child = |name: &str| match path {
            "" => name.to_owned(),
            path => format!("{path}.{name}"),
        };
        let count = u64::try_from(object.len()).unwrap_or(u64::MAX);
        if let Some(least) = schema.limits.properties[0].filter(|least| count < *least) {
            self.invalid(path, count, &format!("should have at least {least} properties"));
        }
        if let Some(most) = schema.limits.properties[1].filter(|most| count > *most) {
            let most = usize::try_from(most).unwrap_or(usize::MAX);
            self.push(FieldError::too_many(&place(path), object.len(), most));
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

/// Whether a value is one of those there are, numbers by what they are in the type of that: the
/// fraction of one counts only where that has any. Null is never one of them.
fn is_choice(choice: &Value, value: &Value) -> bool {
    match (choice, value) {
        (Value::Null, _) => false,
        (Value::Number(choice), Value::Number(value)) if choice.as_i64().is_some() => {
            match value.as_i64() {
                Some(value) => choice.as_i64() == Some(value),
                None => choice.as_f64() == value.as_f64().map(f64::trunc),
            }
        }
        (Value::Number(choice), Value::Number(value)) => choice.as_f64() == value.as_f64(),
        (choice, value) => choice == value,
    }
}

/// The path of an error; the object itself has none.
fn place(path: &str) -> Path {
    Path::new(if path.is_empty() { "<nil>" } else { path })
}

#[cfg(test)]
mod tests;
