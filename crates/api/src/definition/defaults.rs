//! What there is when nothing is given, where whole objects are embedded: metadata is what this
//! server knows as such, whatever a schema says.

use serde_json::Value;

use super::{
    check, embedded, prune, rules,
    schema::{META_FIELDS, Schema},
};
use crate::{
    decode::{fit_embedded, metadata_node},
    field::{ErrorList, FieldError, Path},
    schema::{SchemaNode, Shape},
    strategy::Json,
};

/// Whether defaults are what their schemas describe.
pub(super) fn faults(schema: &Schema, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    // A definition makes whole objects, though its schema does not say so.
    let place = Place { whole: schema, around: None, is_meta: false };
    of_node(schema, path, &place, true, &mut errors);
    errors
}

/// Where in a schema one is.
#[derive(Clone, Copy)]
struct Place<'a> {
    /// The schema of the whole object that one is in.
    whole: &'a Schema,
    /// The way there from that.
    around: Option<&'a Around<'a>>,
    /// Whether that goes through what every object has.
    is_meta: bool,
}

/// A step of the way from a whole object.
struct Around<'a> {
    outer: Option<&'a Self>,
    /// The field; none for an element of a list.
    name: Option<&'a str>,
}

impl Around<'_> {
    /// An object in which a value is where the way leads to.
    fn wrap(&self, value: Value) -> Value {
        let value = match self.name {
            Some(name) => Value::Object(std::iter::once((name.to_owned(), value)).collect()),
            None => Value::Array(vec![value]),
        };
        match self.outer {
            Some(outer) => outer.wrap(value),
            None => value,
        }
    }
}

fn of_node(
    schema: &Schema,
    path: &Path,
    place: &Place<'_>,
    is_whole: bool,
    errors: &mut ErrorList,
) {
    let embedded = Place { whole: schema, around: None, is_meta: false };
    let place = if is_whole { &embedded } else { place };
    if let Some(default) = &schema.default {
        let path = path.child("default");
        let mut found = match place.around.filter(|_| place.is_meta) {
            Some(around) => of_meta(default, place.whole, around, &path),
            None => {
                errors.extend(unknown(schema, default, &path));
                of_plain(schema, default, is_whole, &path)
            }
        };
        if found.is_empty() {
            found = check::check_part(schema, default, None, &path);
        }
        if found.is_empty() {
            found = rules::check_default(schema, default, is_whole, &path);
        }
        errors.extend(found);
    }
    if let Some(items) = schema.items.as_deref() {
        let around = Around { outer: place.around, name: None };
        let inner = Place { around: Some(&around), ..*place };
        of_node(items, &path.child("items"), &inner, items.is_embedded, errors);
    }
    for (name, property) in &schema.properties {
        let around = Around { outer: place.around, name: Some(name) };
        let is_meta = place.is_meta || is_whole && META_FIELDS.contains(&name.as_str());
        let inner = Place { around: Some(&around), is_meta, ..*place };
        let path = path.child("properties").key(name);
        of_node(property, &path, &inner, property.is_embedded, errors);
    }
}

/// What is wrong with a part of what every object has.
fn of_meta(default: &Value, whole: &Schema, around: &Around<'_>, path: &Path) -> ErrorList {
    let mut value = around.wrap(default.clone());
    let Some(object) = value.as_object_mut() else { return ErrorList::new() };
    object.entry("apiVersion").or_insert_with(|| "validation/v1".into());
    object.entry("kind").or_insert_with(|| "Validation".into());
    let at = Path::default();
    let fault = fit(whole, &mut value, true, &at).err();
    let why = match fault {
        Some(fault) => Some(fault.to_string()),
        None => together(&meta_faults(whole, &value, true, &at)),
    };
    let error =
        |why| FieldError::invalid(path, default, &format!("must result in valid metadata: {why}"));
    why.map(error).into_iter().collect()
}

/// That a default has more in it than its schema knows.
fn unknown(schema: &Schema, default: &Value, path: &Path) -> Option<FieldError> {
    let is_pruned = !prune::prune_value(schema, &mut default.clone()).is_empty();
    is_pruned.then(|| FieldError::invalid(path, default, "must not have unknown fields"))
}

/// What is wrong with a default as far as objects are in it.
fn of_plain(schema: &Schema, default: &Value, is_whole: bool, path: &Path) -> ErrorList {
    let mut value = default.clone();
    match fit(schema, &mut value, is_whole, path) {
        Err(fault) => vec![fault],
        Ok(()) => meta_faults(schema, &value, is_whole, path),
    }
}

fn fit(schema: &Schema, value: &mut Value, is_whole: bool, path: &Path) -> Result<(), FieldError> {
    let mut strict = Vec::new();
    let mut fit = |object: &mut Json, path: &Path| fit_embedded(object, path, &mut strict);
    if let (true, Value::Object(object)) = (is_whole && !schema.is_embedded, &mut *value) {
        fit(object, path)?;
    }
    embedded::fit_in(schema, value, path, &mut fit)
}

fn meta_faults(schema: &Schema, value: &Value, is_whole: bool, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    if let (true, Value::Object(object)) = (is_whole && !schema.is_embedded, value) {
        errors.extend(embedded::of_one(object, path));
    }
    errors.extend(embedded::faults_in(schema, value, path));
    errors
}

/// Errors as one, if there are any.
fn together(errors: &ErrorList) -> Option<String> {
    let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
    match &texts[..] {
        [] => None,
        [one] => Some(one.clone()),
        many => Some(format!("[{}]", many.join(", "))),
    }
}

/// Takes out of defaults what is no metadata where metadata is.
pub(super) fn prune(schema: &mut Schema) {
    prune_node(schema, Known::Anything, true);
}

/// What is known of a place, beside what its schema says.
#[derive(Clone, Copy)]
enum Known {
    /// Nothing.
    Anything,
    /// A part of metadata, if there is such a part.
    Meta(Option<SchemaNode>),
}

fn prune_node(schema: &mut Schema, known: Known, is_whole: bool) {
    let known = if is_whole { Known::Anything } else { known };
    if let Some(mut default) = schema.default.take() {
        match known {
            Known::Anything => prune_embedded(schema, &mut default, is_whole),
            Known::Meta(Some(node)) => prune_meta(node, &mut default),
            Known::Meta(None) => default = Value::Null,
        }
        schema.default = Some(default).filter(|default| !default.is_null());
    }
    let within = |node: Option<SchemaNode>| Known::Meta(node);
    if let Some(items) = schema.items.as_deref_mut() {
        let known = match known {
            Known::Anything => known,
            Known::Meta(node) => within(node.and_then(|node| node.items())),
        };
        let is_whole = items.is_embedded;
        prune_node(items, known, is_whole);
    }
    if let super::schema::Additional::Of(additional) = &mut schema.additional {
        let known = match known {
            Known::Anything => known,
            Known::Meta(node) => within(node.and_then(|node| node.field("*"))),
        };
        let is_whole = additional.is_embedded;
        prune_node(additional, known, is_whole);
    }
    for (name, property) in &mut schema.properties {
        let known = match known {
            Known::Anything if is_whole && name == "metadata" => within(Some(metadata_node())),
            Known::Anything => known,
            Known::Meta(node) => within(node.and_then(|node| node.field(name))),
        };
        let is_whole = property.is_embedded;
        prune_node(property, known, is_whole);
    }
}

/// Takes what is no metadata out of the objects in a value.
fn prune_embedded(schema: &Schema, value: &mut Value, is_whole: bool) {
    match value {
        Value::Object(object) => {
            if is_whole && let Some(metadata) = object.get_mut("metadata") {
                prune_meta(metadata_node(), metadata);
            }
            for (name, value) in object {
                if let Some(schema) = schema.field(name) {
                    prune_embedded(schema, value, schema.is_embedded);
                }
            }
        }
        Value::Array(list) => {
            let Some(items) = schema.items.as_deref() else { return };
            list.iter_mut().for_each(|item| prune_embedded(items, item, items.is_embedded));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn prune_meta(node: SchemaNode, value: &mut Value) {
    match (node.shape(), value) {
        (Shape::Struct, Value::Object(object)) => {
            object.retain(|name, _| node.field(name).is_some());
            for (name, value) in object {
                node.field(name).into_iter().for_each(|node| prune_meta(node, value));
            }
        }
        (Shape::List, Value::Array(list)) => {
            let items = node.items();
            list.iter_mut().for_each(|item| {
                items.into_iter().for_each(|node| prune_meta(node, item));
            });
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn found(spec: Value) -> Vec<String> {
        let schema = Schema::read(&json!({"type": "object", "properties": {"spec": spec}}));
        faults(&schema, &Path::new("s")).iter().map(ToString::to_string).collect()
    }

    /// The schema of an object in another one, with a default of its own and one of its metadata.
    fn embedded(default: Value, metadata: Value) -> Value {
        json!({"type": "object", "x-kubernetes-embedded-resource": true, "default": default,
               "x-kubernetes-preserve-unknown-fields": true,
               "properties": {"metadata": {"type": "object", "default": metadata}}})
    }

    #[test]
    fn defaults_are_checked_as_what_they_are_part_of() {
        let pod = || json!({"apiVersion": "v1", "kind": "Pod"});
        let rule = |rule: &str| json!([{"rule": rule, "message": "no"}]);
        let default = "s.properties[spec].default";
        let of_meta = "s.properties[spec].properties[metadata].default";
        let valid = "must result in valid metadata";
        let cases = [
            (embedded(pod(), json!({"name": "a", "unknown": "x"})), None),
            (
                embedded(json!({"kind": "Pod"}), json!({})),
                Some(format!("{default}.apiVersion: Required value")),
            ),
            (
                embedded(pod(), json!({"labels": {"a": 5}})),
                Some(format!("{of_meta}: Invalid value: {{\"labels\":{{\"a\":5}}}}: {valid}: ")),
            ),
            (
                embedded(pod(), json!({"name": "a/b"})),
                Some(format!(
                    "{of_meta}: Invalid value: {{\"name\":\"a/b\"}}: {valid}: metadata.name: \
                     Invalid value: \"a/b\": may not contain '/'"
                )),
            ),
            (
                json!({"type": "integer", "default": 5,
                       "x-kubernetes-validations": rule("self < 5")}),
                Some(format!("{default}: Invalid value: 5: no")),
            ),
            (
                json!({"type": "integer", "default": 5,
                       "x-kubernetes-validations": rule("self >= oldSelf")}),
                None,
            ),
            (
                json!({"type": "object", "additionalProperties": {"type": "integer",
                                                                  "default": "x"}}),
                None,
            ),
            (
                json!({"type": "array", "default": [{"kind": "Pod"}], "items": {
                    "type": "object", "x-kubernetes-embedded-resource": true,
                    "x-kubernetes-preserve-unknown-fields": true}}),
                Some(format!("{default}[0].apiVersion: Required value")),
            ),
        ];
        for (schema, want) in cases {
            let found = found(schema.clone());
            assert_eq!(found.len(), usize::from(want.is_some()), "{schema}: {found:?}");
            let is_so = want.is_none_or(|want| found[0].starts_with(&want));
            assert!(is_so, "{schema}: {found:?}");
        }
    }

    #[test]
    fn what_is_no_metadata_is_not_filled_in() {
        let mut schema = Schema::read(&json!({"type": "object", "properties": {
            "spanning": {"type": "object", "properties": {
                "one": embedded(json!({}), json!({"name": "a", "unknown": 1}))},
                "default": {"one": {"metadata": {"name": "b", "unknown": 1}, "free": 1}}},
            "fields": {"type": "object", "x-kubernetes-embedded-resource": true, "properties": {
                "kind": {"type": "string", "default": "Foo"},
                "metadata": {"type": "object", "properties": {
                    "name": {"type": "string", "default": "c"},
                    "unknown": {"type": "string", "default": "d"}}}}},
        }}));
        prune(&mut schema);
        let at = |path: &[&str]| {
            let found = path.iter().try_fold(&schema, |schema, name| schema.field(name));
            found.unwrap().default.clone()
        };
        let want = json!({"one": {"metadata": {"name": "b"}, "free": 1}});
        assert_eq!(at(&["spanning"]), Some(want));
        assert_eq!(at(&["spanning", "one", "metadata"]), Some(json!({"name": "a"})));
        assert_eq!(at(&["fields", "kind"]), Some(json!("Foo")));
        assert_eq!(at(&["fields", "metadata", "name"]), Some(json!("c")));
        assert_eq!(at(&["fields", "metadata", "unknown"]), None);
    }
}
