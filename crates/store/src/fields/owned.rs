//! The fields a configuration says something about: what whoever applies it will own.

use serde_json::Value;

use super::{
    Element, Place, Set,
    list::elements,
    place::{Form, ListForm},
};

/// All fields of `value`: its leaves, the elements of its lists and the entries of its maps.
pub fn owned(place: Place<'_>, value: &Value) -> Set {
    visit(place, value).1
}

/// Whether the value itself is a field, and the fields below it.
fn visit(place: Place<'_>, value: &Value) -> (bool, Set) {
    match (place.form(value), value) {
        (Form::Scalar | Form::List(ListForm::Atomic) | Form::Map { is_atomic: true }, _) => {
            (true, Set::default())
        }
        (Form::List(form), Value::Array(list)) => (false, of_list(form, place.items(), list)),
        (Form::Map { .. }, Value::Object(object)) => {
            let mut set = Set::default();
            for (name, value) in object {
                let Some(below) = place.field(name) else { continue };
                let (is_leaf, fields) = visit(below, value);
                let is_empty = value.is_null() || value.as_object().is_some_and(|it| it.is_empty());
                let is_member = is_leaf || is_empty || !place.is_struct();
                set.push(&Element::field(name), is_member, fields);
            }
            (false, set)
        }
        (Form::List(_) | Form::Map { .. }, _) => (false, Set::default()),
    }
}

fn of_list(form: ListForm<'_>, items: Place<'_>, list: &[Value]) -> Set {
    let mut found = elements(form, items, list);
    found.sort_by(|a, b| a.0.cmp(&b.0));
    let mut set = Set::default();
    for same in found.chunk_by(|a, b| a.0 == b.0) {
        let (element, value) = &same[0];
        let below = if same.len() == 1 { visit(items, value).1 } else { Set::default() };
        set.push(element, true, below);
    }
    set
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::World;

    #[test]
    fn whoever_applies_owns_leaves_elements_and_entries() {
        let resource = World::empty().resource("services");
        let place = Place::of(&resource);
        let service = json!({
            "apiVersion": "v1",
            "metadata": {"name": "s", "labels": {"a": "b"}, "annotations": {}},
            "spec": {
                "selector": {"a": "b"},
                "ports": [{"port": 80, "targetPort": "x"}],
                "externalIPs": ["1.2.3.4"],
            },
        });
        let mut out = Vec::new();
        owned(place, &service).write(&mut out);
        let want = json!({
            "f:apiVersion": {},
            "f:metadata": {"f:name": {}, "f:labels": {"f:a": {}}, "f:annotations": {}},
            "f:spec": {
                "f:externalIPs": {},
                "f:ports": {
                    "k:{\"port\":80,\"protocol\":\"TCP\"}":
                        {".": {}, "f:port": {}, "f:targetPort": {}},
                },
                "f:selector": {},
            },
        });
        assert_eq!(serde_json::from_slice::<Value>(&out).unwrap(), want);
    }
}
