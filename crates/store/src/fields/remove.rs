//! An object without some of its fields.

use serde_json::{Map, Value};

use super::{
    Element, Place, Set,
    list::element_of,
    place::{Form, ListForm},
};

/// `value` without the fields of `set`. What is atomic, and something below it is to go, goes as a
/// whole. What has nothing left in it is null.
pub fn remove(place: Place<'_>, value: &Value, set: &Set) -> Value {
    match (place.form(value), value) {
        (Form::Scalar, _) => value.clone(),
        (Form::List(form), Value::Array(list)) if form != ListForm::Atomic => {
            match of_list(form, place.items(), list, set) {
                kept if kept.is_empty() => Value::Null,
                kept => Value::Array(kept),
            }
        }
        (Form::Map { is_atomic: false }, Value::Object(object)) => {
            match of_map(place, object, set) {
                kept if kept.is_empty() => Value::Null,
                kept => Value::Object(kept),
            }
        }
        (Form::List(_) | Form::Map { .. }, _) => Value::Null,
    }
}

fn of_list(form: ListForm<'_>, items: Place<'_>, list: &[Value], set: &Set) -> Vec<Value> {
    let mut kept = Vec::new();
    for item in list {
        let element = element_of(form, items, item).ok();
        match element.and_then(|element| set.at(&element)) {
            Some((true, _)) => {}
            Some((false, below)) => kept.push(remove(items, item, below)),
            None => kept.push(item.clone()),
        }
    }
    kept
}

fn of_map(place: Place<'_>, object: &Map<String, Value>, set: &Set) -> Map<String, Value> {
    let mut kept = Map::new();
    for (name, value) in object {
        let value = match (set.at_field(name), place.field(name)) {
            (Some((true, _)), _) => continue,
            (Some((false, below)), Some(place)) => remove(place, value, below),
            (Some((false, _)) | None, _) => value.clone(),
        };
        kept.insert(name.clone(), value);
    }
    kept
}

/// `set` with the members of structs that have something below them in it, which are otherwise
/// only there through that.
#[must_use]
pub fn named_too(place: Option<Place<'_>>, set: &Set) -> Set {
    let mut all = Set::default();
    for node in &set.nodes {
        let (is_named, below) = match &node.element {
            Element::Field(name) => {
                let is_struct = place.is_some_and(Place::is_struct);
                let field = place.and_then(|place| place.field(name));
                (is_struct && field.is_some(), field)
            }
            Element::Key(_) => (false, place.map(Place::items)),
            Element::Value(_) | Element::Index(_) => (false, None),
        };
        let is_member = node.is_member || (is_named && !node.below.is_empty());
        all.push(&node.element, is_member, named_too(below, &node.below));
    }
    all
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::World;

    #[test]
    fn fields_go_with_what_is_below_them() {
        let resource = World::empty().resource("pods");
        let place = Place::of(&resource);
        let pod = json!({
            "metadata": {"labels": {"a": "1", "b": "2"}, "finalizers": ["x", "y"]},
            "spec": {"nodeSelector": {"a": "1"}, "containers": [{"name": "c", "image": "i"}]},
        });
        let cases = [
            (
                json!({"f:metadata": {"f:labels": {"f:a": {}}, "f:finalizers": {"v:\"x\"": {}}}}),
                json!({
                    "metadata": {"labels": {"b": "2"}, "finalizers": ["y"]},
                    "spec": pod["spec"],
                }),
            ),
            (
                json!({"f:metadata": {"f:labels": {"f:a": {}, "f:b": {}}, "f:finalizers": {}}}),
                json!({"metadata": {"labels": null}, "spec": pod["spec"]}),
            ),
            (
                json!({"f:spec": {
                    "f:nodeSelector": {"f:a": {}},
                    "f:containers": {"k:{\"name\":\"c\"}": {"f:image": {}}},
                }}),
                json!({
                    "metadata": pod["metadata"],
                    "spec": {"containers": [{"name": "c"}], "nodeSelector": null},
                }),
            ),
        ];
        for (set, want) in cases {
            let got = remove(place, &pod, &serde_json::from_value(set.clone()).unwrap());
            assert_eq!(got, want, "{set}");
        }
    }
}
