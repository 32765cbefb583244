//! What a schema of a definition may not say, node by node.

use std::cell::OnceCell;

use serde_json::Value;

use super::super::{fieldpath::follow, rules, schema::Schema};
use crate::{
    field::{ErrorList, FieldError, Path},
    strategy::Json,
};

const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];
const META: [&str; 3] = ["metadata", "kind", "apiVersion"];
const REASONS: [&str; 4] =
    ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];

/// What a schema may say at its root when there is a status: Go's names, and those in JSON.
const AT_ROOT: [(&str, &str); 22] = [
    ("Description", "description"),
    ("Type", "type"),
    ("Format", "format"),
    ("Title", "title"),
    ("Maximum", "maximum"),
    ("ExclusiveMaximum", "exclusiveMaximum"),
    ("Minimum", "minimum"),
    ("ExclusiveMinimum", "exclusiveMinimum"),
    ("MaxLength", "maxLength"),
    ("MinLength", "minLength"),
    ("Pattern", "pattern"),
    ("MaxItems", "maxItems"),
    ("MinItems", "minItems"),
    ("UniqueItems", "uniqueItems"),
    ("MultipleOf", "multipleOf"),
    ("Required", "required"),
    ("Items", "items"),
    ("Properties", "properties"),
    ("ExternalDocs", "externalDocs"),
    ("Example", "example"),
    ("XPreserveUnknownFields", "x-kubernetes-preserve-unknown-fields"),
    ("XValidations", "x-kubernetes-validations"),
];

/// What the root of a schema may not say when there is a status.
pub(super) fn at_root(schema: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let kind = schema["type"].as_str().unwrap_or_default();
    if !kind.is_empty() && kind != "object" {
        let why = "only \"object\" is allowed as the type at the root of the schema if the status \
                   subresource is enabled";
        errors.push(FieldError::invalid(&path.child("type"), kind, why));
        return errors;
    }
    let is_known = |key: &str| AT_ROOT.iter().any(|(_, known)| *known == key);
    let is_said = |value: &Value| !matches!(value, Value::Null | Value::Bool(false));
    let mut said = schema.as_object().into_iter().flatten();
    if said.any(|(key, value)| !is_known(key) && is_said(value)) {
        let names: Vec<&str> = AT_ROOT.iter().map(|(name, _)| *name).collect();
        let why = format!(
            "only [{}] fields are allowed at the root of the schema if the status subresource is \
             enabled",
            names.join(" ")
        );
        errors.push(FieldError::invalid(path, schema, &why));
    }
    errors
}

/// What is wrong with a schema, which was `read` before, and with those in it. `has_values` says
/// whether it describes values well enough for rules to be looked at; what is wrong with them comes
/// last.
pub(super) fn faults(schema: &Value, read: &Schema, has_values: bool, path: &Path) -> ErrorList {
    let mut found = Found::default();
    let context = Context {
        read: Some(read),
        has_values,
        forbids_defaults: None,
        is_meta: false,
        uncorrelated: None,
    };
    of_node(schema, path, true, &context, &mut found);
    found.errors.extend(found.of_rules);
    found.errors
}

/// What is wrong with schemas, and with the rules of those that nothing else is wrong with.
#[derive(Default)]
struct Found {
    errors: ErrorList,
    of_rules: ErrorList,
}

/// What holds for a part of a schema because of where it is.
#[derive(Clone)]
struct Context<'a> {
    /// The part as it was read; nothing for what only restricts values.
    read: Option<&'a Schema>,
    /// Whether rules can be looked at.
    has_values: bool,
    forbids_defaults: Option<String>,
    is_meta: bool,
    /// Where values can no longer be told to be those of before.
    uncorrelated: Option<Path>,
}

impl<'a> Context<'a> {
    /// What holds for a part of this part.
    fn part(&self, find: impl FnOnce(&'a Schema) -> Option<&'a Schema>) -> Self {
        Self { read: self.read.and_then(find), ..self.clone() }
    }

    fn uncorrelated(&self, path: &Path) -> Self {
        let mut inner = self.clone();
        inner.uncorrelated.get_or_insert_with(|| path.clone());
        inner
    }
}

fn of_node(schema: &Value, path: &Path, is_root: bool, context: &Context<'_>, found: &mut Found) {
    let Some(node) = schema.as_object() else { return };
    let before = found.errors.len();
    of_standard(node, path, context, &mut found.errors);
    if schema["uniqueItems"] == true {
        let why =
            "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
        found.errors.push(FieldError::forbidden(&path.child("uniqueItems"), why));
    }
    of_children(schema, path, is_root, context, found);
    if schema["x-kubernetes-preserve-unknown-fields"] == false {
        let path = path.child("x-kubernetes-preserve-unknown-fields");
        found.errors.push(FieldError::invalid(&path, false, "must be true or undefined"));
    }
    of_maps_and_lists(schema, path, &mut found.errors);
    of_rules(schema, path, context, &mut found.errors);
    // What an expression can do nobody knows while anything is wrong here or further in.
    let is_right = context.has_values && found.errors.len() == before;
    if let Some(read) = context.read.filter(|_| is_right) {
        let path = path.child("x-kubernetes-validations");
        let uncorrelated = context.uncorrelated.as_ref();
        for at in 0..read.rules.len() {
            found.of_rules.extend(rules::faults(read, at, &path.index(at), uncorrelated));
        }
    }
}

fn of_standard(node: &Json, path: &Path, context: &Context<'_>, errors: &mut ErrorList) {
    let kind = node.get("type").and_then(Value::as_str).unwrap_or_default();
    if !kind.is_empty() && !TYPES.contains(&kind) {
        errors.push(FieldError::not_supported(&path.child("type"), kind, &TYPES));
    }
    let is_given = |key: &str| match node.get(key) {
        None | Some(Value::Null) => false,
        Some(Value::String(text)) => !text.is_empty(),
        Some(Value::Object(members)) => !members.is_empty(),
        Some(_) => true,
    };
    if let Some(reason) = context.forbids_defaults.as_ref().filter(|_| is_given("default")) {
        let why = format!("must not be set {reason}");
        errors.push(FieldError::forbidden(&path.child("default"), &why));
    }
    for key in ["id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref"]
    {
        if is_given(key) {
            errors
                .push(FieldError::forbidden(&path.child(key), &format!("{key} is not supported")));
        }
    }
    if kind == "null" {
        let why = "type cannot be set to null, use nullable as an alternative";
        errors.push(FieldError::forbidden(&path.child("type"), why));
    }
    if node.get("items").and_then(Value::as_array).is_some_and(|items| !items.is_empty()) {
        let why = "items must be a schema object and not an array";
        errors.push(FieldError::forbidden(&path.child("items"), why));
    }
    if context.is_meta && node.get("x-kubernetes-embedded-resource") == Some(&Value::Bool(true)) {
        let path = path.child("x-kubernetes-embedded-resource");
        errors.push(FieldError::forbidden(&path, "must not be used inside of resource meta"));
    }
}

fn of_children(
    schema: &Value,
    path: &Path,
    is_root: bool,
    context: &Context<'_>,
    found: &mut Found,
) {
    let properties = schema["properties"].as_object();
    let additional = &schema["additionalProperties"];
    if !additional.is_null() {
        let path = path.child("additionalProperties");
        if properties.is_some_and(|it| !it.is_empty()) && *additional != true {
            let why = "additionalProperties and properties are mutual exclusive";
            found.errors.push(FieldError::forbidden(&path, why));
        }
        let mut inner = context.part(|schema| schema.additional.schema());
        if context.is_meta {
            let why = "inside additionalProperties applying to object metadata";
            inner.forbids_defaults = Some(why.to_owned());
        }
        of_node(additional, &path, false, &inner, found);
    }
    let is_whole = is_root || schema["x-kubernetes-embedded-resource"] == true;
    for (name, property) in properties.into_iter().flatten() {
        let mut inner = context.part(|schema| schema.properties.get(name));
        if is_whole && META.contains(&name.as_str()) {
            inner.is_meta = true;
            if is_root {
                inner.forbids_defaults = Some(format!("in top-level {name}"));
            }
        }
        of_node(property, &path.child("properties").key(name), false, &inner, found);
    }
    // Rules have no place in what only restricts values.
    let nested_context = context.part(|_| None);
    of_node(&schema["not"], &path.child("not"), false, &nested_context, found);
    for key in ["allOf", "oneOf", "anyOf"] {
        let list = schema[key].as_array().into_iter().flatten();
        for (at, nested) in list.enumerate() {
            of_node(nested, &path.child(key).index(at), false, &nested_context, found);
        }
    }
    let items = context.part(|schema| schema.items.as_deref());
    let inner = match schema["x-kubernetes-list-type"].as_str() {
        Some("map") => items,
        _ => items.uncorrelated(path),
    };
    of_node(&schema["items"], &path.child("items"), false, &inner, found);
}

fn of_maps_and_lists(schema: &Value, path: &Path, errors: &mut ErrorList) {
    let kind = schema["type"].as_str().unwrap_or_default();
    let kind_path = path.child("type");
    let must_be = |wanted: &str, why: &str| match kind {
        kind if kind == wanted => None,
        "" => Some(FieldError::required(&kind_path, why)),
        kind => Some(FieldError::invalid(&kind_path, kind, why)),
    };
    if let Some(map_type) = schema["x-kubernetes-map-type"].as_str() {
        errors.extend(must_be("object", "must be object if x-kubernetes-map-type is specified"));
        let known = ["atomic", "granular"];
        if !known.contains(&map_type) {
            let path = path.child("x-kubernetes-map-type");
            errors.push(FieldError::not_supported(&path, map_type, &known));
        }
    }
    let keys = schema["x-kubernetes-list-map-keys"].as_array().map(Vec::as_slice);
    let keys = keys.unwrap_or_default();
    let list_path = path.child("x-kubernetes-list-type");
    let Some(list_type) = schema["x-kubernetes-list-type"].as_str() else {
        if !keys.is_empty() {
            let why = "must be map if x-kubernetes-list-map-keys is non-empty";
            errors.push(FieldError::required(&list_path, why));
        }
        return;
    };
    let items = &schema["items"];
    let not_a_list = must_be("array", "must be array if x-kubernetes-list-type is specified");
    if not_a_list.is_none() && list_type == "set" {
        let why = "must be atomic as item of a list with x-kubernetes-list-type=set";
        let path = path.child("items");
        let inner = items["x-kubernetes-list-type"].as_str();
        if items["type"] == "array" && inner.is_some_and(|inner| inner != "atomic") {
            let path = path.child("x-kubernetes-list-type");
            errors.push(FieldError::invalid_json(&path, inner, why));
        }
        if items["type"] == "object" && items["x-kubernetes-map-type"] != "atomic" {
            let path = path.child("x-kubernetes-map-type");
            errors.push(FieldError::invalid_json(&path, inner, why));
        }
    }
    errors.extend(not_a_list);
    let known = ["atomic", "set", "map"];
    if !known.contains(&list_type) {
        errors.push(FieldError::not_supported(&list_path, list_type, &known));
    }
    if !keys.is_empty() && list_type != "map" {
        let why = "must be map if x-kubernetes-list-map-keys is non-empty";
        errors.push(FieldError::invalid(&list_path, list_type, why));
    }
    if list_type == "map" {
        of_keyed_list(items, keys, path, errors);
    }
    if matches!(list_type, "set" | "map") && items["nullable"] == true {
        let why = format!("cannot be nullable when x-kubernetes-list-type is {list_type}");
        errors.push(FieldError::forbidden(&path.child("items").child("nullable"), &why));
    }
}

fn of_keyed_list(items: &Value, keys: &[Value], path: &Path, errors: &mut ErrorList) {
    let keys_path = path.child("x-kubernetes-list-map-keys");
    if keys.is_empty() {
        let why = "must not be empty if x-kubernetes-list-type is map";
        errors.push(FieldError::required(&keys_path, why));
    }
    let path = path.child("items");
    if !items.is_object() {
        let why = "must have a schema if x-kubernetes-list-type is map";
        errors.push(FieldError::required(&path, why));
        return;
    }
    if items["type"] != "object" {
        let kind = items["type"].as_str().unwrap_or_default();
        let why = "must be object if parent array's x-kubernetes-list-type is map";
        errors.push(FieldError::invalid(&path.child("type"), kind, why));
        return;
    }
    let required = items["required"].as_array().map(Vec::as_slice).unwrap_or_default();
    for (at, key) in keys.iter().enumerate() {
        let name = key.as_str().unwrap_or_default();
        let Some(property) = items["properties"].get(name) else {
            let why = "entries must all be names of item properties";
            errors.push(FieldError::invalid(&keys_path, keys, why));
            continue;
        };
        let path = path.child("properties").key(name);
        if property["type"] == "array" || property["type"] == "object" {
            let why = "must be a scalar type if parent array's x-kubernetes-list-type is map";
            errors.push(FieldError::invalid(&path.child("type"), &items["type"], why));
        }
        if keys[..at].contains(key) {
            errors.push(FieldError::invalid(
                &keys_path,
                keys,
                "must not contain duplicate entries",
            ));
        }
        if !required.contains(key) && property["default"].is_null() {
            let why = "this property is in x-kubernetes-list-map-keys, so it must have a default \
                       or be a required property";
            errors.push(FieldError::required(&path.child("default"), why));
        }
        if property["nullable"] == true {
            let why = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
            errors.push(FieldError::forbidden(&path.child("nullable"), why));
        }
    }
}

fn of_rules(schema: &Value, path: &Path, context: &Context<'_>, errors: &mut ErrorList) {
    let Some(given) = schema["x-kubernetes-validations"].as_array() else { return };
    let apart = OnceCell::new();
    let read = || context.read.unwrap_or_else(|| apart.get_or_init(|| Schema::read(schema)));
    for (at, rule) in given.iter().enumerate() {
        let path = path.child("x-kubernetes-validations").index(at);
        of_rule(rule, &read, &path, errors);
    }
}

fn of_rule<'a>(rule: &Value, read: &impl Fn() -> &'a Schema, path: &Path, errors: &mut ErrorList) {
    let text = |key: &str| rule[key].as_str().unwrap_or_default();
    let has_lines = |text: &str| text.contains(['\n', '\r']);
    let (body, message) = (text("rule").trim(), text("message").trim());
    let message_path = path.child("message");
    if body.is_empty() {
        errors.push(FieldError::required(&path.child("rule"), "rule is not specified"));
    } else if !text("message").is_empty() && message.is_empty() {
        let why = "must be non-empty if specified";
        errors.push(FieldError::invalid(&message_path, text("message"), why));
    } else if has_lines(message) {
        let why = "must not contain line breaks";
        errors.push(FieldError::invalid(&message_path, text("message"), why));
    } else if has_lines(body) && message.is_empty() {
        let why = "message must be specified if rule contains line breaks";
        errors.push(FieldError::required(&message_path, why));
    }
    let expression = text("messageExpression");
    if !expression.is_empty() && expression.trim().is_empty() {
        let why = "messageExpression must be non-empty if specified";
        errors.push(FieldError::required(&path.child("messageExpression"), why));
    }
    let reason = text("reason");
    if !reason.is_empty() && !REASONS.contains(&reason) {
        errors.push(FieldError::not_supported(&path.child("reason"), reason, &REASONS));
    }
    let field = text("fieldPath");
    if !field.is_empty() && field.trim().is_empty() {
        let why = "must be non-empty if specified";
        errors.push(FieldError::invalid(&path.child("fieldPath"), field, why));
    }
    if has_lines(field) {
        let why = "must not contain line breaks";
        errors.push(FieldError::invalid(&path.child("fieldPath"), field, why));
    }
    if !field.is_empty() && follow(read(), field, true).is_err() {
        let path = path.child("fieldPath");
        errors.push(FieldError::invalid(&path, field, "must be a valid path"));
    }
}
