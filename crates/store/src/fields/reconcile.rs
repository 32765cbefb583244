//! Sets of fields after their schema has changed.

use super::{Element, Place, Set, set::Node};

/// `set` as it is when what has become atomic has one owner as a whole: whoever owned something in
/// it owns it. Nothing when the set can stay as it is. What has stopped being atomic is taken to
/// have been owned as it was.
pub fn reconciled(place: Place<'_>, set: &Set) -> Option<Set> {
    let mut changed: Option<Set> = None;
    for (at, node) in set.nodes.iter().enumerate() {
        let Some(place) = below(place, &node.element) else { continue };
        let new = if node.below.is_empty() {
            continue;
        } else if place.is_atomic() {
            Node { element: node.element.clone(), is_member: true, below: Set::default() }
        } else if let Some(below) = reconciled(place, &node.below) {
            Node { below, ..node.clone() }
        } else {
            continue;
        };
        changed.get_or_insert_with(|| set.clone()).nodes[at] = new;
    }
    changed
}

/// What the schema says of an element; nothing where it says nothing.
fn below<'a>(place: Place<'a>, element: &Element) -> Option<Place<'a>> {
    let place = match element {
        Element::Field(name) => place.field(name)?,
        Element::Key(_) | Element::Value(_) | Element::Index(_) => place.items(),
    };
    (!matches!(place, Place::Free)).then_some(place)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::World;

    #[test]
    fn what_has_become_atomic_has_one_owner() {
        let resource = World::empty().resource("jobs");
        let place = Place::of(&resource);
        let cases = [
            (
                json!({"f:spec": {"f:selector": {"f:matchLabels": {".": {}, "f:a": {}}}}}),
                Some(json!({"f:spec": {"f:selector": {}}})),
            ),
            (
                json!({"f:spec": {"f:template": {"f:spec": {"f:tolerations": {
                    "i:0": {".": {}, "f:key": {}}}}}}}),
                Some(json!({"f:spec": {"f:template": {"f:spec": {"f:tolerations": {}}}}})),
            ),
            (json!({"f:spec": {"f:selector": {}, "f:parallelism": {}}}), None),
            (
                json!({"f:spec": {"f:template": {"f:spec": {"f:containers": {
                    "k:{\"name\":\"a\"}": {".": {}, "f:image": {}}}}}}}),
                None,
            ),
            (json!({"f:metadata": {"f:labels": {".": {}, "f:a": {}}}}), None),
            (json!({"f:odd": {"f:a": {"f:b": {}}}}), None),
        ];
        for (set, want) in cases {
            let read =
                |set: &serde_json::Value| -> Set { serde_json::from_value(set.clone()).unwrap() };
            assert_eq!(reconciled(place, &read(&set)), want.as_ref().map(read), "{set}");
        }
    }
}
