//! Whether a schema is structural: types stand where values are described, and nowhere else.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::{
    field::{ErrorList, FieldError, Path},
    re2::Pattern,
};

/// Where in a schema one is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Item,
    Field,
}

/// What keeps a schema from being structural, sorted.
pub(super) fn faults(schema: &Value, path: &Path) -> ErrorList {
    let mut found = Found::default();
    of_node(schema, Level::Root, path, &mut found);
    of_completeness(schema, Some(schema), path, path, &mut found);
    found.errors.sort_by_key(ToString::to_string);
    found.errors
}

#[derive(Default)]
struct Found {
    errors: ErrorList,
    /// What is wrong with patterns. Few are there once only, and to read one takes time.
    patterns: BTreeMap<String, Option<String>>,
}

impl Found {
    fn push(&mut self, error: FieldError) {
        self.errors.push(error);
    }

    fn pattern_fault(&mut self, pattern: &str) -> Option<String> {
        if let Some(known) = self.patterns.get(pattern) {
            return known.clone();
        }
        let fault = Pattern::new(pattern).err().map(|fault| fault.to_string());
        self.patterns.insert(pattern.to_owned(), fault.clone());
        fault
    }
}

fn members<'a>(schema: &'a Value, key: &str) -> impl Iterator<Item = (&'a String, &'a Value)> {
    schema[key].as_object().into_iter().flatten()
}

fn of_node(schema: &Value, level: Level, path: &Path, errors: &mut Found) {
    let kind = schema["type"].as_str().unwrap_or_default();
    let flag = |key: &str| schema[key] == true;
    let items = &schema["items"];
    if kind == "array" && !items.is_object() && !items.is_array() {
        errors.push(FieldError::required(&path.child("items"), "must be specified"));
    }
    if items.is_object() {
        of_node(items, Level::Item, &path.child("items"), errors);
    }
    for (name, property) in members(schema, "properties") {
        of_node(property, Level::Field, &path.child("properties").key(name), errors);
    }
    let additional = schema.get("additionalProperties").filter(|value| !value.is_null());
    if let Some(additional) = additional {
        let path = path.child("additionalProperties");
        if level == Level::Root {
            errors.push(FieldError::forbidden(&path, "must not be used at the root"));
        }
        if additional.is_object() {
            of_node(additional, Level::Field, &path, errors);
        }
    }
    let [is_int, is_free, is_embedded] = [
        "x-kubernetes-int-or-string",
        "x-kubernetes-preserve-unknown-fields",
        "x-kubernetes-embedded-resource",
    ]
    .map(flag);
    let why = "must be false if x-kubernetes-int-or-string is true";
    if is_int && is_free {
        let path = path.child("x-kubernetes-preserve-unknown-fields");
        errors.push(FieldError::invalid(&path, true, why));
    }
    if is_int && is_embedded {
        let path = path.child("x-kubernetes-embedded-resource");
        errors.push(FieldError::invalid(&path, true, why));
    }
    let is_any_of = is_int_or_string(&schema["anyOf"]);
    let is_all_of = is_int_or_string(&schema["allOf"][0]["anyOf"]);
    of_values(schema, [is_any_of, is_all_of], path, errors);
    of_type(schema, level, path, errors);
    if is_embedded && additional.is_some() {
        let why = "must not be used if x-kubernetes-embedded-resource is set";
        errors.push(FieldError::forbidden(&path.child("additionalProperties"), why));
    }
    let has_no_properties = members(schema, "properties").next().is_none();
    if is_embedded && !is_free && has_no_properties {
        let why = "must not be empty if x-kubernetes-embedded-resource is true without \
                   x-kubernetes-preserve-unknown-fields";
        errors.push(FieldError::required(&path.child("properties"), why));
    }
    of_metadata(schema, level, path, errors);
}

fn of_type(schema: &Value, level: Level, path: &Path, errors: &mut Found) {
    let kind = schema["type"].as_str().unwrap_or_default();
    let flag = |key: &str| schema[key] == true;
    let path = path.child("type");
    let embedded = "must be object if x-kubernetes-embedded-resource is true";
    let is_embedded = flag("x-kubernetes-embedded-resource");
    if is_embedded && kind.is_empty() {
        errors.push(FieldError::required(&path, embedded));
    } else if is_embedded && kind != "object" {
        errors.push(FieldError::invalid(&path, kind, embedded));
    } else if kind.is_empty()
        && !flag("x-kubernetes-int-or-string")
        && !flag("x-kubernetes-preserve-unknown-fields")
    {
        let why = match level {
            Level::Root => "must not be empty at the root",
            Level::Item => "must not be empty for specified array items",
            Level::Field => "must not be empty for specified object fields",
        };
        errors.push(FieldError::required(&path, why));
    }
    if level == Level::Root && !kind.is_empty() && kind != "object" {
        errors.push(FieldError::invalid(&path, kind, "must be object at the root"));
    }
}

fn of_metadata(schema: &Value, level: Level, path: &Path, errors: &mut Found) {
    let is_whole = level == Level::Root || schema["x-kubernetes-embedded-resource"] == true;
    let properties = path.child("properties");
    for name in ["kind", "apiVersion"] {
        let Some(property) = schema["properties"].get(name).filter(|_| is_whole) else { continue };
        if property["type"] != "string" {
            let kind = property["type"].as_str().unwrap_or_default();
            let path = properties.key(name).child("type");
            errors.push(FieldError::invalid(&path, kind, "must be string"));
        }
    }
    let Some(metadata) = schema["properties"].get("metadata") else { return };
    let path = properties.key("metadata");
    let kind = metadata["type"].as_str().unwrap_or_default();
    if is_whole && kind != "object" {
        errors.push(FieldError::invalid(&path.child("type"), kind, "must be object"));
    }
    if level != Level::Root {
        return;
    }
    let is_name = |name: &&String| ["name", "generateName"].contains(&name.as_str());
    let has_only_names = members(metadata, "properties").all(|(name, _)| is_name(&name));
    let said = ["type", "properties", "default"];
    let is_plain = metadata
        .as_object()
        .is_none_or(|metadata| metadata.keys().all(|key| said.contains(&key.as_str())));
    if !has_only_names || !is_plain {
        let why = "must not specify anything other than name and generateName, but metadata is \
                   implicitly specified";
        errors.push(FieldError::forbidden(&path, why));
    }
}

/// What keeps the parts of a schema that only restrict values from doing just that.
fn of_values(
    schema: &Value,
    [skips_any_of, skips_all_of]: [bool; 2],
    path: &Path,
    errors: &mut Found,
) {
    let each = |key: &'static str| {
        let list = schema[key].as_array().into_iter().flatten().enumerate();
        list.map(move |(at, nested)| (nested, path.child(key).index(at), at))
    };
    for (nested, path, _) in each("anyOf").filter(|_| !skips_any_of) {
        of_nested(nested, false, &path, errors);
    }
    for (nested, path, at) in each("allOf") {
        of_nested(nested, skips_all_of && at == 0, &path, errors);
    }
    for (nested, path, _) in each("oneOf") {
        of_nested(nested, false, &path, errors);
    }
    if schema["not"].is_object() {
        of_nested(&schema["not"], false, &path.child("not"), errors);
    }
    let pattern = schema["pattern"].as_str().unwrap_or_default();
    if let Some(fault) = errors.pattern_fault(pattern) {
        let why =
            format!("must be a valid regular expression, but isn't: error parsing regexp: {fault}");
        errors.push(FieldError::invalid(&path.child("pattern"), pattern, &why));
    }
}

fn of_nested(nested: &Value, skips_any_of: bool, path: &Path, errors: &mut Found) {
    of_values(nested, [skips_any_of, false], path, errors);
    if nested["items"].is_object() {
        of_nested(&nested["items"], false, &path.child("items"), errors);
    }
    for (name, property) in members(nested, "properties") {
        of_nested(property, false, &path.child("properties").key(name), errors);
    }
    let is_given = |key: &str| match nested.get(key) {
        None | Some(Value::Null | Value::Bool(false)) => false,
        Some(Value::String(text)) => !text.is_empty(),
        Some(Value::Array(list)) => !list.is_empty(),
        Some(_) => true,
    };
    let forbidden = [
        ("type", "must be empty to be structural"),
        ("additionalProperties", "must be undefined to be structural"),
        ("default", "must be undefined to be structural"),
        ("title", "must be empty to be structural"),
        ("description", "must be empty to be structural"),
        ("nullable", "must be false to be structural"),
        ("x-kubernetes-preserve-unknown-fields", "must be false to be structural"),
        ("x-kubernetes-embedded-resource", "must be false to be structural"),
        ("x-kubernetes-int-or-string", "must be false to be structural"),
        ("x-kubernetes-list-map-keys", "must be empty to be structural"),
        ("x-kubernetes-list-type", "must be undefined to be structural"),
        ("x-kubernetes-map-type", "must be undefined to be structural"),
        ("x-kubernetes-validations", "must be empty to be structural"),
    ];
    for (key, why) in forbidden.into_iter().filter(|(key, _)| is_given(key)) {
        errors.push(FieldError::forbidden(&path.child(key), why));
    }
    if nested["properties"].get("metadata").is_some() {
        let path = path.child("properties").key("metadata");
        errors.push(FieldError::forbidden(&path, "must not be specified in a nested context"));
    }
}

fn is_int_or_string(any_of: &Value) -> bool {
    *any_of == json!([{"type": "integer"}, {"type": "string"}])
}

/// Whatever is restricted must be described too.
fn of_completeness(
    restricting: &Value,
    described: Option<&Value>,
    place: &Path,
    path: &Path,
    errors: &mut Found,
) {
    let mut nested: Vec<(&Value, Path)> = Vec::new();
    if restricting["not"].is_object() {
        nested.push((&restricting["not"], path.child("not")));
    }
    for key in ["allOf", "anyOf", "oneOf"] {
        let list = restricting[key].as_array().into_iter().flatten().enumerate();
        nested.extend(list.map(|(at, schema)| (schema, path.child(key).index(at))));
    }
    for (schema, path) in nested {
        of_nested_completeness(schema, described, place, &path, errors);
    }
}

fn of_nested_completeness(
    nested: &Value,
    described: Option<&Value>,
    place: &Path,
    path: &Path,
    errors: &mut Found,
) {
    let Some(described) = described else {
        let why = format!("because it is defined in {path}");
        errors.push(FieldError::required(place, &why));
        return;
    };
    of_completeness(nested, Some(described), place, path, errors);
    if nested["items"].is_object() {
        let items = described.get("items").filter(|items| items.is_object());
        let [place, path] = [place, path].map(|path| path.child("items"));
        of_nested_completeness(&nested["items"], items, &place, &path, errors);
    }
    for (name, property) in members(nested, "properties") {
        let [place, path] = [place, path].map(|path| path.child("properties").key(name));
        let described = described["properties"].get(name);
        of_nested_completeness(property, described, &place, &path, errors);
    }
}
