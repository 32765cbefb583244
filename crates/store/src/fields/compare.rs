//! What differs between two versions of an object, as sets of paths.

use lockstep_api::strategy::Json;
use serde_json::Value;

use super::{
    Element, Place, Set,
    list::elements,
    place::{Form, ListForm},
};

/// What differs between two versions. No path is in two of the sets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    /// What only the new one has.
    pub added: Set,
    /// What both have, with different values.
    pub modified: Set,
    /// What only the old one has.
    pub removed: Set,
}

impl Comparison {
    /// Whether nothing differs.
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.modified.is_empty() && self.removed.is_empty()
    }

    /// What the new version says, where it differs.
    pub fn written(&self) -> Set {
        self.added.union(&self.modified)
    }
}

/// Compares two versions of an object, but for what is at or below `ignored`.
pub fn compare(place: Place<'_>, old: &Json, new: &Json, ignored: &Set) -> Comparison {
    let mut found = Found::default();
    found.visit_map(place, Some(old), Some(new), Some(ignored));
    Comparison {
        added: found.added.below,
        modified: found.modified.below,
        removed: found.removed.below,
    }
}

/// What differs at one place and below it.
#[derive(Default)]
struct Found {
    added: Branch,
    modified: Branch,
    removed: Branch,
}

#[derive(Default)]
struct Branch {
    is_member: bool,
    below: Set,
}

impl Found {
    /// Compares the values at `place`.
    fn visit(
        &mut self,
        place: Place<'_>,
        old: Option<&Value>,
        new: Option<&Value>,
        ignored: Option<&Set>,
    ) {
        let forms = [old, new].map(|value| value.map(|value| place.form(value)));
        let is_leaf = match forms {
            [Some(was), Some(is)] if was != is => {
                // Where anything goes, a value may have become another sort of value.
                self.visit_as(was, place, (old, new), ignored);
                self.visit_as(is, place, (old, new), ignored)
            }
            [_, Some(form)] | [Some(form), None] => self.visit_as(form, place, (old, new), ignored),
            [None, None] => return,
        };
        if !is_leaf {
            self.added.is_member |= old.is_none();
            self.removed.is_member |= new.is_none();
        }
    }

    /// Compares values of one form, and says whether they were compared as wholes.
    fn visit_as(
        &mut self,
        form: Form<'_>,
        place: Place<'_>,
        (old, new): (Option<&Value>, Option<&Value>),
        ignored: Option<&Set>,
    ) -> bool {
        match form {
            Form::Scalar => {}
            Form::List(form) => {
                let [was, is] = [old, new].map(list_of);
                if form != ListForm::Atomic && !(was.is_empty() && is.is_empty()) {
                    self.visit_list(form, place.items(), was, is);
                    return false;
                }
            }
            Form::Map { is_atomic } => {
                let [was, is] = [old, new].map(|value| value.and_then(Value::as_object));
                let is_empty = [was, is].into_iter().flatten().all(Json::is_empty);
                if !is_atomic && !is_empty {
                    self.visit_map(place, was, is, ignored);
                    return false;
                }
            }
        }
        self.leaf(old, new);
        true
    }

    fn leaf(&mut self, old: Option<&Value>, new: Option<&Value>) {
        match (old, new) {
            (None, _) => self.added.is_member = true,
            (_, None) => self.removed.is_member = true,
            (Some(old), Some(new)) => self.modified.is_member |= old != new,
        }
    }

    fn visit_map(
        &mut self,
        place: Place<'_>,
        old: Option<&Json>,
        new: Option<&Json>,
        ignored: Option<&Set>,
    ) {
        let mut was = old.into_iter().flatten().peekable();
        let mut is = new.into_iter().flatten().peekable();
        loop {
            // Members come sorted by name.
            let name: &str = match (was.peek(), is.peek()) {
                (None, None) => return,
                (Some((name, _)), None) | (None, Some((name, _))) => name,
                (Some((a, _)), Some((b, _))) => (*a).min(*b),
            };
            let old = was.next_if(|(member, _)| *member == name).map(|(_, value)| value);
            let new = is.next_if(|(member, _)| *member == name).map(|(_, value)| value);
            if old == new {
                continue;
            }
            let ignored = match ignored.and_then(|ignored| ignored.at_field(name)) {
                Some((true, _)) => continue,
                Some((false, below)) => Some(below),
                None => None,
            };
            let Some(place) = place.field(name) else { continue };
            let mut found = Self::default();
            found.visit(place, old, new, ignored);
            self.add(&Element::field(name), found);
        }
    }

    fn visit_list(&mut self, form: ListForm<'_>, items: Place<'_>, old: &[Value], new: &[Value]) {
        let mut was = elements(form, items, old);
        let mut is = elements(form, items, new);
        // Both sorts are stable: of elements that cannot be told apart the order is kept.
        was.sort_by(|a, b| a.0.cmp(&b.0));
        is.sort_by(|a, b| a.0.cmp(&b.0));
        let (mut was, mut is) = (was.as_slice(), is.as_slice());
        while let Some(element) = least(was, is) {
            let (old, new) = (take(&mut was, &element), take(&mut is, &element));
            let mut found = Self::default();
            found.visit_elements(items, old, new);
            self.add(&element, found);
        }
    }

    /// Compares the elements that have the same keys, of which there should be one.
    fn visit_elements(
        &mut self,
        items: Place<'_>,
        old: &[(Element, &Value)],
        new: &[(Element, &Value)],
    ) {
        match (old.len(), new.len()) {
            (0 | 1, 0 | 1) => {
                let (old, new) = (old.first(), new.first());
                let [old, new] = [old, new].map(|found| found.map(|(_, value)| *value));
                if old != new {
                    self.visit(items, old, new, None);
                }
            }
            (2.., 2..) => {
                let values = |list: &[(Element, &Value)]| {
                    list.iter().map(|(_, value)| (*value).clone()).collect::<Vec<_>>()
                };
                self.modified.is_member = values(old) != values(new);
            }
            (2.., _) => {
                if let Some((_, new)) = new.first() {
                    self.visit(items, None, Some(new), None);
                }
                self.removed.is_member = true;
            }
            (_, _) => {
                if let Some((_, old)) = old.first() {
                    self.visit(items, Some(old), None, None);
                }
                self.added.is_member = true;
            }
        }
    }

    fn add(&mut self, element: &Element, found: Self) {
        self.added.below.push(element, found.added.is_member, found.added.below);
        self.modified.below.push(element, found.modified.is_member, found.modified.below);
        self.removed.below.push(element, found.removed.is_member, found.removed.below);
    }
}

fn list_of(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// The first of two sorted lists' first elements.
fn least(a: &[(Element, &Value)], b: &[(Element, &Value)]) -> Option<Element> {
    let [a, b] = [a, b].map(|list| list.first().map(|(element, _)| element));
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b).clone()),
        (a, b) => a.or(b).cloned(),
    }
}

/// Cuts off all that are at `element`, with which the sorted list begins if it has any.
fn take<'a, 'b>(
    list: &mut &'a [(Element, &'b Value)],
    element: &Element,
) -> &'a [(Element, &'b Value)] {
    let count = list.iter().take_while(|(at, _)| at == element).count();
    let (head, tail) = list.split_at(count);
    *list = tail;
    head
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::{World, map};

    fn compared(plural: &str, old: Value, new: Value) -> [Vec<String>; 3] {
        let resource = World::empty().resource(plural);
        let place = Place::of(&resource);
        let found = compare(place, &map(old), &map(new), &Set::of(&[&["status"]]));
        [found.added, found.modified, found.removed]
            .map(|set| set.paths().iter().map(ToString::to_string).collect())
    }

    #[test]
    fn differences_are_found_where_the_schema_has_fields() {
        for (old, new, want) in differences() {
            let text = format!("{old} {new}");
            assert_eq!(compared("pods", old, new), want, "{text}");
        }
    }

    type Paths = &'static [&'static str];

    /// Before, after, and what was added, modified and removed.
    fn differences() -> Vec<(Value, Value, [Paths; 3])> {
        let container = |image: &str| json!({"name": "c", "image": image});
        let pod = |spec: Value| json!({"spec": spec});
        let ports = |ports: Value| pod(json!({"containers": [{"name": "c", "ports": ports}]}));
        vec![
            (
                pod(json!({"containers": [container("a")]})),
                pod(json!({"containers": [container("b")]})),
                [&[], &[".spec.containers[name=\"c\"].image"], &[]],
            ),
            (
                json!({"status": {"phase": "a"}, "metadata": {"labels": {"a": "1", "b": "2"}}}),
                json!({"status": {"phase": "b"}, "metadata": {"labels": {"b": "3", "c": "4"}}}),
                [&[".metadata.labels.c"], &[".metadata.labels.b"], &[".metadata.labels.a"]],
            ),
            (
                json!({"metadata": {}}),
                json!({"metadata": {"labels": {"a": "1"}, "finalizers": ["x", "y"]}}),
                [
                    &[
                        ".metadata.finalizers",
                        ".metadata.labels",
                        ".metadata.finalizers[=\"x\"]",
                        ".metadata.finalizers[=\"y\"]",
                        ".metadata.labels.a",
                    ],
                    &[],
                    &[],
                ],
            ),
            (
                pod(json!({"nodeSelector": {"a": "1"}, "tolerations": [{"key": "a"}]})),
                pod(json!({"nodeSelector": {"b": "1"}, "tolerations": [{"key": "b"}]})),
                [&[], &[".spec.nodeSelector", ".spec.tolerations"], &[]],
            ),
            (
                ports(json!([{"containerPort": 80}, {"containerPort": 90, "protocol": "UDP"}])),
                ports(json!([{"containerPort": 80, "protocol": "TCP", "name": "a"}])),
                [
                    &[
                        ".spec.containers[name=\"c\"].ports[containerPort=80,protocol=\"TCP\"]\
                         .name",
                        ".spec.containers[name=\"c\"].ports[containerPort=80,protocol=\"TCP\"]\
                         .protocol",
                    ],
                    &[],
                    &[
                        ".spec.containers[name=\"c\"].ports[containerPort=90,protocol=\"UDP\"]",
                        ".spec.containers[name=\"c\"].ports[containerPort=90,protocol=\"UDP\"]\
                         .containerPort",
                        ".spec.containers[name=\"c\"].ports[containerPort=90,protocol=\"UDP\"]\
                         .protocol",
                    ],
                ],
            ),
            (
                ports(json!([{"containerPort": 80}, {"containerPort": 80}])),
                ports(json!([{"containerPort": 80}])),
                [
                    &[
                        ".spec.containers[name=\"c\"].ports[containerPort=80,protocol=\"TCP\"]",
                        ".spec.containers[name=\"c\"].ports[containerPort=80,protocol=\"TCP\"]\
                         .containerPort",
                    ],
                    &[],
                    &[".spec.containers[name=\"c\"].ports[containerPort=80,protocol=\"TCP\"]"],
                ],
            ),
        ]
    }
}
