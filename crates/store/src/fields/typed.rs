//! Whether a configuration fits the schema, in the words of upstream's structured-merge-diff.
//!
//! What is wrong is told with its path and its value, both of which a request may make as long as
//! it likes and repeat as often: texts are cut where they get long, and so is their list.

use std::{
    collections::BTreeSet,
    fmt::{self, Write},
};

use lockstep_api::{definition::schema::Schema, quote::quoted, schema::Shape};
use serde_json::{Map, Value};

use super::{Element, Place, list::element_of, place::Form, place::ListForm};

/// How many faults are listed.
const FAULTS_MAX: usize = 100;
/// How many bytes of faults are listed, but for the rest of the last one.
const FAULTS_BYTES_MAX: usize = 64 << 10;
/// How many bytes of a value are shown.
const VALUE_MAX: usize = 4 << 10;
/// How many bytes of one step of a path are shown.
const ELEMENT_MAX: usize = 1 << 10;

/// Checks that `value` has only fields the schema knows, of the types it wants, and that the
/// elements of lists can be told apart.
///
/// # Errors
/// What is wrong with it, in one text.
pub fn check(place: Place<'_>, value: &Value) -> Result<(), String> {
    let mut faults = Faults::default();
    visit(place, value, &mut String::new(), &mut faults);
    if faults.is_cut {
        faults.texts.push("too many errors".to_owned());
    }
    match faults.texts.as_slice() {
        [] => Ok(()),
        [one] => Err(one.clone()),
        many => Err(format!("errors:\n  {}", many.join("\n  "))),
    }
}

/// What is wrong, as far as it is listed.
#[derive(Default)]
struct Faults {
    texts: Vec<String>,
    bytes: usize,
    /// Whether there was more.
    is_cut: bool,
}

impl Faults {
    fn push(&mut self, path: &str, why: &str) {
        if self.texts.len() >= FAULTS_MAX || self.bytes >= FAULTS_BYTES_MAX {
            self.is_cut = true;
            return;
        }
        let text = if path.is_empty() { why.to_owned() } else { format!("{path}: {why}") };
        self.bytes += text.len();
        self.texts.push(text);
    }
}

/// A text that ends in dots where it would get too long.
struct Short {
    text: String,
    max: usize,
}

impl Short {
    fn of(max: usize, write: impl FnOnce(&mut Self) -> fmt::Result) -> String {
        let mut short = Self { text: String::new(), max };
        if write(&mut short).is_err() {
            short.text.push_str("...");
        }
        short.text
    }
}

impl Write for Short {
    /// Fails when there is no more room, so that nothing more is written.
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = text.floor_char_boundary(self.max.saturating_sub(self.text.len()));
        self.text.push_str(&text[..room]);
        if room == text.len() { Ok(()) } else { Err(fmt::Error) }
    }
}

fn visit(place: Place<'_>, value: &Value, path: &mut String, faults: &mut Faults) {
    if value.is_null() || faults.is_cut {
        return;
    }
    match (place.form(value), value) {
        (Form::Scalar, _) => {
            let shape = match place {
                Place::Known(node) => node.shape(),
                Place::Whole(schema) | Place::Part(schema) => shape_of(schema),
                Place::Free => Shape::Any,
            };
            if let Some(why) = scalar_fault(shape, value) {
                faults.push(path, &why);
            }
        }
        (Form::Map { .. }, Value::Object(object)) => of_map(place, object, path, faults),
        (Form::List(form), Value::Array(list)) => {
            of_list(form, place.items(), list, path, faults);
        }
        (Form::Map { .. }, _) => {
            faults.push(path, &format!("expected map, got &{{{}}}", plain(value)));
        }
        (Form::List(_), _) => {
            faults.push(path, &format!("expected list, got &{{{}}}", plain(value)));
        }
    }
}

fn of_map(place: Place<'_>, object: &Map<String, Value>, path: &mut String, faults: &mut Faults) {
    for (name, value) in object {
        let length = path.len();
        path.push_str(&Short::of(ELEMENT_MAX, |out| write!(out, ".{name}")));
        match place.field(name) {
            Some(place) => visit(place, value, path, faults),
            None => faults.push(path, "field not declared in schema"),
        }
        path.truncate(length);
    }
}

fn of_list(
    form: ListForm<'_>,
    items: Place<'_>,
    list: &[Value],
    path: &mut String,
    faults: &mut Faults,
) {
    let mut seen: BTreeSet<Element> = BTreeSet::new();
    for (index, item) in list.iter().enumerate() {
        let element = match form {
            ListForm::Atomic => Element::Index(i64::try_from(index).unwrap_or(i64::MAX)),
            ListForm::Set | ListForm::Keyed(_) => match element_of(form, items, item) {
                Ok(element) => element,
                Err(why) => {
                    faults.push(path, &format!("element {index}: {why}"));
                    return;
                }
            },
        };
        let shown = Short::of(ELEMENT_MAX, |out| write!(out, "{element}"));
        if seen.contains(&element) {
            faults.push(path, &format!("duplicate entries for key {shown}"));
        }
        let length = path.len();
        path.push_str(&shown);
        visit(items, item, path, faults);
        path.truncate(length);
        if form != ListForm::Atomic {
            seen.insert(element);
        }
    }
}

/// What a scalar is by the schema of a definition.
fn shape_of(schema: &Schema) -> Shape {
    match &*schema.kind {
        _ if schema.is_int_or_string => Shape::IntOrString,
        "string" => Shape::String,
        "boolean" => Shape::Bool,
        "integer" | "number" => Shape::Int64,
        _ => Shape::Any,
    }
}

fn scalar_fault(shape: Shape, value: &Value) -> Option<String> {
    let is_scalar = !value.is_object() && !value.is_array();
    match shape {
        Shape::Int32 | Shape::Int64 if !value.is_number() => {
            Some(format!("expected numeric (int or float), got {}", type_of(value)))
        }
        Shape::String | Shape::Bytes if !value.is_string() => Some(format!(
            "expected string, got &value.valueUnstructured{{Value:{}}}",
            literal(value)
        )),
        Shape::Bool if !value.is_boolean() => {
            Some(format!("expected boolean, got &{{{}}}", plain(value)))
        }
        Shape::Time | Shape::MicroTime | Shape::Duration | Shape::Quantity | Shape::IntOrString
            if !is_scalar =>
        {
            Some(format!("expected any scalar, got &{{{}}}", plain(value)))
        }
        Shape::Struct
        | Shape::Map
        | Shape::List
        | Shape::String
        | Shape::Bool
        | Shape::Int32
        | Shape::Int64
        | Shape::Bytes
        | Shape::Time
        | Shape::MicroTime
        | Shape::Duration
        | Shape::Quantity
        | Shape::IntOrString
        | Shape::Any => None,
    }
}

/// The name of a value's type in Go.
fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// A value as Go's `%v` prints it.
fn plain(value: &Value) -> String {
    Short::of(VALUE_MAX, |out| write_plain(out, value))
}

fn write_plain(out: &mut Short, value: &Value) -> fmt::Result {
    match value {
        Value::Null => out.write_str("<nil>"),
        Value::String(text) => out.write_str(text),
        Value::Array(list) => {
            out.write_str("[")?;
            for (at, item) in list.iter().enumerate() {
                out.write_str(if at == 0 { "" } else { " " })?;
                write_plain(out, item)?;
            }
            out.write_str("]")
        }
        Value::Object(object) => {
            out.write_str("map[")?;
            for (at, (name, value)) in object.iter().enumerate() {
                write!(out, "{}{name}:", if at == 0 { "" } else { " " })?;
                write_plain(out, value)?;
            }
            out.write_str("]")
        }
        Value::Bool(_) | Value::Number(_) => write!(out, "{value}"),
    }
}

/// A value as Go's `%#v` prints it.
fn literal(value: &Value) -> String {
    Short::of(VALUE_MAX, |out| write_literal(out, value))
}

fn write_literal(out: &mut Short, value: &Value) -> fmt::Result {
    match value {
        Value::Null => out.write_str("interface {}(nil)"),
        Value::String(text) => out.write_str(&quoted(text)),
        Value::Array(list) => {
            out.write_str("[]interface {}{")?;
            for (at, item) in list.iter().enumerate() {
                out.write_str(if at == 0 { "" } else { ", " })?;
                write_literal(out, item)?;
            }
            out.write_str("}")
        }
        Value::Object(object) => {
            out.write_str("map[string]interface {}{")?;
            for (at, (name, value)) in object.iter().enumerate() {
                write!(out, "{}{}:", if at == 0 { "" } else { ", " }, quoted(name))?;
                write_literal(out, value)?;
            }
            out.write_str("}")
        }
        Value::Bool(_) | Value::Number(_) => write!(out, "{value}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::World;

    #[test]
    fn what_does_not_fit_is_named_with_its_path() {
        let resource = World::empty().resource("pods");
        let place = Place::of(&resource);
        let cases = [
            (json!({"spec": {"containers": [{"name": "a", "env": null}]}}), ""),
            (json!({"spec": {"foo": 1}}), ".spec.foo: field not declared in schema"),
            (
                json!({"metadata": {"labels": {"a": 5}}}),
                ".metadata.labels.a: expected string, got &value.valueUnstructured{Value:5}",
            ),
            (
                json!({"spec": {"containers": [{"image": "i"}, {"name": "a"}, {"name": "a"}]}}),
                ".spec.containers: duplicate entries for key [name=\"a\"]",
            ),
            (
                json!({"spec": {"hostNetwork": "yes"}}),
                ".spec.hostNetwork: expected boolean, got &{yes}",
            ),
            (
                json!({"spec": {"activeDeadlineSeconds": "yes"}}),
                ".spec.activeDeadlineSeconds: expected numeric (int or float), got string",
            ),
            (
                json!({"spec": {"containers": {}, "volumes": 3}}),
                "errors:\n  .spec.containers: expected list, got &{map[]}\n  \
                 .spec.volumes: expected list, got &{3}",
            ),
            (
                json!({"spec": {"tolerations": [{"kay": "x"}]}}),
                ".spec.tolerations[0].kay: field not declared in schema",
            ),
            (
                json!({"spec": {"hostNetwork": {"a": [1, null, "x", {}], "b": true}}}),
                ".spec.hostNetwork: expected boolean, got &{map[a:[1 <nil> x map[]] b:true]}",
            ),
            (
                json!({"metadata": {"labels": {"a": {"b": [1, null, "x\"", {}], "c": true}}}}),
                ".metadata.labels.a: expected string, got &value.valueUnstructured{Value:\
                 map[string]interface {}{\"b\":[]interface {}{1, interface {}(nil), \"x\\\"\", \
                 map[string]interface {}{}}, \"c\":true}}",
            ),
        ];
        for (value, want) in cases {
            let got = check(place, &value).err().unwrap_or_default();
            assert_eq!(got, want, "{value}");
        }
    }
    fn fault(value: &Value) -> String {
        check(Place::of(&World::empty().resource("pods")), value).unwrap_err()
    }

    #[test]
    fn long_texts_are_cut() {
        let long = "é".repeat(1 << 20);
        let dots = |max: usize| format!("{}...", &long[..long.floor_char_boundary(max)]);
        let cases = [
            (
                json!({"spec": {&long: 1}}),
                format!(".spec.{}: field not declared in schema", dots(ELEMENT_MAX - 1)),
            ),
            (
                json!({"spec": {"containers": [{"name": long, "x": 1}]}}),
                format!(
                    ".spec.containers[name=\"{}.x: field not declared in schema",
                    dots(ELEMENT_MAX - "[name=\"".len())
                ),
            ),
            (
                json!({"spec": {"containers": [{"name": long}, {"name": long}]}}),
                format!(
                    ".spec.containers: duplicate entries for key [name=\"{}",
                    dots(ELEMENT_MAX - "[name=\"".len())
                ),
            ),
            (
                json!({"spec": {"hostNetwork": [long, 1]}}),
                format!(
                    ".spec.hostNetwork: expected boolean, got &{{[{}}}",
                    dots(VALUE_MAX - "[".len())
                ),
            ),
            (
                json!({"metadata": {"labels": {"a": [long]}}}),
                format!(
                    ".metadata.labels.a: expected string, got &value.valueUnstructured{{Value:\
                     []interface {{}}{{\"{}}}",
                    dots(VALUE_MAX - "[]interface {}{\"".len())
                ),
            ),
        ];
        for (value, want) in cases {
            assert_eq!(fault(&value), want);
        }
    }

    #[test]
    fn no_more_faults_are_listed_than_anybody_reads() {
        let unknown = |count: usize| -> Value {
            (0..count).map(|it| (format!("x{it:03}"), json!(1))).collect()
        };
        let all = fault(&json!({"spec": unknown(FAULTS_MAX)}));
        assert_eq!(all.lines().count(), 1 + FAULTS_MAX);
        assert!(all.ends_with("\n  .spec.x099: field not declared in schema"));
        let cut = fault(&json!({"spec": unknown(FAULTS_MAX + 1)}));
        assert_eq!(cut, format!("{all}\n  too many errors"));
        // A long name that is on the path of each of them.
        let mut container = unknown(FAULTS_MAX);
        container["name"] = json!("x".repeat(1 << 20));
        let long = fault(&json!({"spec": {"containers": [container]}}));
        assert!(long.len() < FAULTS_BYTES_MAX + 2 * ELEMENT_MAX, "{}", long.len());
        assert!(long.ends_with("\n  too many errors"));
    }

    #[test]
    fn long_lists_are_checked_in_little_more_than_the_time_to_read_them() {
        let resource = World::empty().resource("pods");
        let place = Place::of(&resource);
        // Where each element is looked for in all others, this takes minutes.
        let list: Vec<Value> = (0..100_000).map(|it| format!("example.com/{it}").into()).collect();
        assert_eq!(check(place, &json!({"metadata": {"finalizers": list}})), Ok(()));
    }
}
