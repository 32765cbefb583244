//! What an API server checks of a custom object by its schema alone: what is required, sizes,
//! ranges, patterns, enumerations, keys of lists that are maps. The JSON types were checked when
//! the object was decoded.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::LazyLock,
};

use regex::Regex;
use serde_json::Value;

use crate::{
    field::{ErrorKind, ErrorList, FieldError, Path},
    openapi::{self, REFERENCE},
    strategy::Json,
};

/// All schemas that custom kinds refer to, parsed once.
pub(super) static SCHEMAS: LazyLock<Schemas> = LazyLock::new(Schemas::load);

pub(super) struct Schemas {
    pub(super) named: BTreeMap<String, Value>,
    patterns: BTreeMap<String, Regex>,
}

/// What was found.
#[derive(Debug, Default)]
pub struct Checked {
    /// What is wrong.
    pub errors: ErrorList,
}

impl Checked {
    /// Whether rules about the meaning of values cannot be checked before this is put right.
    pub fn is_blocking(&self) -> bool {
        self.errors.iter().any(|error| {
            matches!(
                error.kind,
                ErrorKind::NotSupported
                    | ErrorKind::Required
                    | ErrorKind::TooLong
                    | ErrorKind::TooMany
                    | ErrorKind::TypeInvalid
            )
        })
    }
}

/// What is said when an object is so wrong that its meaning is not looked at.
pub(crate) const UNCHECKED: &str = "some validation rules were not checked because the object was invalid; \
                         correct the existing errors to complete validation";

/// What an API server finds wrong with the members `only` of an object by its definition alone:
/// by the schema `name`, and by the rules that the definition has as `expressions`.
pub fn by_definition(
    name: &str,
    object: &Json,
    only: &[&str],
    expressions: impl FnOnce(&Json) -> ErrorList,
) -> ErrorList {
    let checked = check(name, object, only);
    let is_blocking = checked.is_blocking();
    let mut errors = checked.errors;
    errors.extend(duplicates(name, object, only));
    if is_blocking {
        let nowhere = Path::new("<nil>");
        errors.push(FieldError::invalid(&nowhere, Value::Null, UNCHECKED));
        return errors;
    }
    errors.extend(expressions(object));
    errors
}

/// Checks the members `only` of an object by the schema `name`.
pub fn check(name: &str, object: &Json, only: &[&str]) -> Checked {
    let mut checked = Checked::default();
    let required = SCHEMAS.named.get(name).and_then(|schema| schema["required"].as_array());
    for member in required.into_iter().flatten().filter_map(Value::as_str) {
        if only.contains(&member) && object.get(member).is_none_or(Value::is_null) {
            checked.errors.push(FieldError::required(&Path::new(member), ""));
        }
    }
    each_member(name, object, only, |schema, value, path| {
        walk(schema, value, path, &mut checked.errors);
    });
    checked
}

/// Says which elements of lists have the keys of an earlier one.
pub fn duplicates(name: &str, object: &Json, only: &[&str]) -> ErrorList {
    let mut errors = ErrorList::new();
    each_member(name, object, only, |schema, value, path| {
        find_duplicates(schema, value, path, &mut errors);
    });
    errors
}

fn each_member(
    name: &str,
    object: &Json,
    only: &[&str],
    mut visit: impl FnMut(&Value, &Value, &Path),
) {
    let Some(schema) = SCHEMAS.named.get(name) else { return };
    for member in only {
        if let Some(value) = object.get(*member) {
            visit(&schema["properties"][member], value, &Path::new(*member));
        }
    }
}

impl Schemas {
    fn load() -> Self {
        let mut named = BTreeMap::new();
        let mut open: Vec<String> = openapi::custom_names().map(str::to_owned).collect();
        let mut patterns = BTreeMap::new();
        while let Some(name) = open.pop() {
            if named.contains_key(&name) {
                continue;
            }
            let Some(schema) = openapi::published(&name) else { continue };
            collect(&schema, &mut open, &mut patterns);
            named.insert(name, schema);
        }
        Self { named, patterns }
    }

    /// The schema itself, or the one it refers to.
    fn resolve<'a>(&'a self, schema: &'a Value) -> &'a Value {
        referred(schema).and_then(|name| self.named.get(name)).unwrap_or(schema)
    }
}

/// The name of the schema that one refers to.
pub(super) fn referred(schema: &Value) -> Option<&str> {
    let target = schema.get("$ref").or_else(|| schema.get("allOf")?.get(0)?.get("$ref"));
    target?.as_str()?.strip_prefix(REFERENCE)
}

/// Finds what a schema refers to and the patterns in it.
fn collect(schema: &Value, open: &mut Vec<String>, patterns: &mut BTreeMap<String, Regex>) {
    match schema {
        Value::Object(members) => {
            for (key, value) in members {
                match (key.as_str(), value) {
                    ("$ref", Value::String(target)) => {
                        open.extend(target.strip_prefix(REFERENCE).map(str::to_owned));
                    }
                    ("pattern", Value::String(pattern)) => {
                        if let Ok(regex) = Regex::new(pattern) {
                            patterns.insert(pattern.clone(), regex);
                        }
                    }
                    _ => collect(value, open, patterns),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, open, patterns)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn walk(schema: &Value, value: &Value, path: &Path, errors: &mut ErrorList) {
    let schema = SCHEMAS.resolve(schema);
    match value {
        Value::Object(object) => walk_object(schema, object, path, errors),
        Value::Array(items) => {
            let most = schema["maxItems"].as_u64().and_then(|most| usize::try_from(most).ok());
            if let Some(most) = most.filter(|most| items.len() > *most) {
                errors.push(FieldError::too_many(path, items.len(), most));
            }
            let least = schema["minItems"].as_u64().and_then(|least| usize::try_from(least).ok());
            if let Some(least) = least.filter(|least| items.len() < *least) {
                let why = format!("{path} in body should have at least {least} items");
                errors.push(FieldError::invalid(path, items.len(), &why));
            }
            for (at, item) in items.iter().enumerate() {
                walk(&schema["items"], item, &path.index(at), errors);
            }
        }
        Value::String(text) => errors.extend(check_text(schema, text, path)),
        Value::Number(number) => {
            if let (Some(least), Some(number)) = (schema["minimum"].as_i64(), number.as_i64())
                && number < least
            {
                let why = format!("{path} in body should be greater than or equal to {least}");
                errors.push(FieldError::invalid(path, number, &why));
            }
        }
        Value::Null | Value::Bool(_) => {}
    }
}

fn walk_object(schema: &Value, object: &Json, path: &Path, errors: &mut ErrorList) {
    let given = |name: &str| object.get(name).is_some_and(|value| !value.is_null());
    for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if !given(name) {
            errors.push(FieldError::required(&path.child(name), ""));
        }
    }
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        if let Some(value) = object.get(name) {
            walk(property, value, &path.child(name), errors);
        }
    }
    let most = schema["maxProperties"].as_u64().and_then(|most| usize::try_from(most).ok());
    if let Some(most) = most.filter(|most| object.len() > *most) {
        errors.push(FieldError::too_many(path, object.len(), most));
    }
    let extra = &schema["additionalProperties"];
    if extra.is_object() {
        for (name, value) in object {
            walk(extra, value, &path.child(name), errors);
        }
    }
}

fn check_text(schema: &Value, text: &str, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let length = u64::try_from(text.chars().count()).unwrap_or(u64::MAX);
    if let Some(most) = schema["maxLength"].as_u64().filter(|most| length > *most) {
        errors.push(FieldError::too_long(path, usize::try_from(most).unwrap_or(usize::MAX)));
    }
    if let Some(least) = schema["minLength"].as_u64().filter(|least| length < *least) {
        let why = format!("{path} in body should be at least {least} chars long");
        errors.push(FieldError::invalid(path, text, &why));
    }
    if let Some(pattern) = schema["pattern"].as_str()
        && SCHEMAS.patterns.get(pattern).is_some_and(|regex| !regex.is_match(text))
    {
        let why = format!("{path} in body should match '{pattern}'");
        errors.push(FieldError::invalid(path, text, &why));
    }
    if let Some(values) = schema["enum"].as_array() {
        let known: Vec<&str> = values.iter().filter_map(Value::as_str).collect();
        if !known.contains(&text) {
            errors.push(FieldError::not_supported(path, text, &known));
        }
    }
    errors
}

fn find_duplicates(schema: &Value, value: &Value, path: &Path, errors: &mut ErrorList) {
    let keys = &schema["x-kubernetes-list-map-keys"];
    let schema = SCHEMAS.resolve(schema);
    match value {
        Value::Object(object) => {
            for (name, property) in schema["properties"].as_object().into_iter().flatten() {
                if let Some(value) = object.get(name) {
                    find_duplicates(property, value, &path.child(name), errors);
                }
            }
        }
        Value::Array(items) => {
            let keys: Vec<&str> =
                keys.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
            errors.extend(doubled(&keys, items, path));
            for (at, item) in items.iter().enumerate() {
                find_duplicates(&schema["items"], item, &path.index(at), errors);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn doubled(keys: &[&str], items: &[Value], path: &Path) -> ErrorList {
    let mut seen = BTreeSet::new();
    let mut errors = ErrorList::new();
    if keys.is_empty() {
        return errors;
    }
    for (at, item) in items.iter().enumerate() {
        let key: Json =
            keys.iter().filter_map(|k| Some(((*k).to_owned(), item.get(*k)?.clone()))).collect();
        if !seen.insert(Value::from(key.clone()).to_string()) {
            errors.push(FieldError::duplicate(&path.index(at), &key));
        }
    }
    errors
}
