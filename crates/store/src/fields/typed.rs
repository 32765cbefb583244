//! Whether a configuration fits the schema, in the words of upstream's structured-merge-diff.

use std::collections::BTreeSet;

use lockstep_api::{
    quote::quoted,
    schema::{SchemaNode, Shape},
};
use serde_json::{Map, Value};

use super::{Element, Place, list::element_of, place::Form, place::ListForm};

/// Checks that `value` has only fields the schema knows, of the types it wants, and that the
/// elements of lists can be told apart.
///
/// # Errors
/// All that is wrong with it, in one text.
pub fn check(place: Place, value: &Value) -> Result<(), String> {
    let mut faults = Vec::new();
    visit(place, value, &mut String::new(), &mut faults);
    match faults.as_slice() {
        [] => Ok(()),
        [one] => Err(one.clone()),
        many => Err(format!("errors:\n  {}", many.join("\n  "))),
    }
}

fn visit(place: Place, value: &Value, path: &mut String, faults: &mut Vec<String>) {
    if value.is_null() {
        return;
    }
    match (place.form(value), value) {
        (Form::Scalar, _) => {
            if let Place::Known(node) = place
                && let Some(why) = scalar_fault(node, value)
            {
                faults.push(at(path, &why));
            }
        }
        (Form::Map { .. }, Value::Object(object)) => of_map(place, object, path, faults),
        (Form::List(form), Value::Array(list)) => {
            of_list(form, place.items(), list, path, faults);
        }
        (Form::Map { .. }, _) => {
            faults.push(at(path, &format!("expected map, got &{{{}}}", plain(value))));
        }
        (Form::List(_), _) => {
            faults.push(at(path, &format!("expected list, got &{{{}}}", plain(value))));
        }
    }
}

fn at(path: &str, why: &str) -> String {
    if path.is_empty() { why.to_owned() } else { format!("{path}: {why}") }
}

fn of_map(place: Place, object: &Map<String, Value>, path: &mut String, faults: &mut Vec<String>) {
    for (name, value) in object {
        let length = path.len();
        path.push('.');
        path.push_str(name);
        match place.field(name) {
            Some(place) => visit(place, value, path, faults),
            None => faults.push(at(path, "field not declared in schema")),
        }
        path.truncate(length);
    }
}

fn of_list(
    form: ListForm,
    items: Place,
    list: &[Value],
    path: &mut String,
    faults: &mut Vec<String>,
) {
    let mut seen: BTreeSet<Element> = BTreeSet::new();
    for (index, item) in list.iter().enumerate() {
        let element = match form {
            ListForm::Atomic => Element::Index(i64::try_from(index).unwrap_or(i64::MAX)),
            ListForm::Set | ListForm::Keyed(_) => match element_of(form, items, item) {
                Ok(element) => element,
                Err(why) => {
                    faults.push(at(path, &format!("element {index}: {why}")));
                    return;
                }
            },
        };
        if seen.contains(&element) {
            faults.push(at(path, &format!("duplicate entries for key {element}")));
        }
        let length = path.len();
        path.push_str(&element.to_string());
        visit(items, item, path, faults);
        path.truncate(length);
        if form != ListForm::Atomic {
            seen.insert(element);
        }
    }
}

fn scalar_fault(node: SchemaNode, value: &Value) -> Option<String> {
    let is_scalar = !value.is_object() && !value.is_array();
    match node.shape() {
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
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(list) => {
            format!("[{}]", list.iter().map(plain).collect::<Vec<_>>().join(" "))
        }
        Value::Object(object) => {
            let members = object.iter().map(|(name, value)| format!("{name}:{}", plain(value)));
            format!("map[{}]", members.collect::<Vec<_>>().join(" "))
        }
        Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

/// A value as Go's `%#v` prints it.
fn literal(value: &Value) -> String {
    match value {
        Value::Null => "interface {}(nil)".to_owned(),
        Value::String(text) => quoted(text),
        Value::Array(list) => {
            let items = list.iter().map(literal).collect::<Vec<_>>();
            format!("[]interface {{}}{{{}}}", items.join(", "))
        }
        Value::Object(object) => {
            let members =
                object.iter().map(|(name, value)| format!("{}:{}", quoted(name), literal(value)));
            let members = members.collect::<Vec<_>>();
            format!("map[string]interface {{}}{{{}}}", members.join(", "))
        }
        Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::World;

    #[test]
    fn what_does_not_fit_is_named_with_its_path() {
        let place = Place::of(&World::empty().resource("pods"));
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
        ];
        for (value, want) in cases {
            let got = check(place, &value).err().unwrap_or_default();
            assert_eq!(got, want, "{value}");
        }
    }
    #[test]
    fn long_lists_are_checked_in_little_more_than_the_time_to_read_them() {
        let place = Place::of(&World::empty().resource("pods"));
        // Where each element is looked for in all others, this takes minutes.
        let list: Vec<Value> = (0..100_000).map(|it| format!("example.com/{it}").into()).collect();
        assert_eq!(check(place, &json!({"metadata": {"finalizers": list}})), Ok(()));
    }
}
