//! An object with a configuration laid over it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::{
    Element, Place,
    list::elements,
    place::{Form, ListForm},
};

/// The `live` object with all that `config` says. Nothing is taken away. Both fit the schema.
pub fn merge(place: Place<'_>, live: &Value, config: &Value) -> Value {
    visit(place, Some(live), Some(config)).unwrap_or(Value::Null)
}

/// The merged value; nothing when both are objects or lists without anything in them.
fn visit(place: Place<'_>, live: Option<&Value>, config: Option<&Value>) -> Option<Value> {
    let value = config.or(live)?;
    let (live, config) = (live, config);
    match place.form(value) {
        Form::Map { is_atomic: false } => {
            let [was, is] = [live, config].map(|it| it.and_then(Value::as_object));
            if was.is_some_and(|it| !it.is_empty()) || is.is_some_and(|it| !it.is_empty()) {
                return maps(place, was, is);
            }
        }
        Form::List(form) if form != ListForm::Atomic => {
            let [was, is] = [live, config]
                .map(|it| it.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default());
            if !was.is_empty() || !is.is_empty() {
                let merged = lists(form, place.items(), was, is);
                return (!merged.is_empty()).then_some(Value::Array(merged));
            }
        }
        Form::Scalar | Form::List(_) | Form::Map { .. } => {}
    }
    Some(value.clone())
}

fn maps(
    place: Place<'_>,
    live: Option<&Map<String, Value>>,
    config: Option<&Map<String, Value>>,
) -> Option<Value> {
    let names = [live, config].into_iter().flatten().flat_map(Map::keys);
    let mut merged = Map::new();
    for name in names {
        if merged.contains_key(name) {
            continue;
        }
        let [was, is] = [live, config].map(|it| it.and_then(|it| it.get(name)));
        let value = match place.field(name) {
            Some(place) => visit(place, was, is),
            None => is.or(was).cloned(),
        };
        if let Some(value) = value {
            merged.insert(name.clone(), value);
        }
    }
    (!merged.is_empty()).then_some(Value::Object(merged))
}

/// The elements of both lists. Those that the configuration has come in its order, the others
/// where they were between them.
fn lists(form: ListForm<'_>, items: Place<'_>, live: &[Value], config: &[Value]) -> Vec<Value> {
    let live = elements(form, items, live);
    let config = elements(form, items, config);
    let in_config: BTreeSet<&Element> = config.iter().map(|(element, _)| element).collect();
    let mut in_live: BTreeMap<&Element, &Value> = BTreeMap::new();
    for (element, value) in &live {
        // Elements that cannot be told apart are not merged with anything.
        in_live.entry(element).and_modify(|it| *it = &Value::Null).or_insert(value);
    }
    let was = |element: &Element| in_live.get(element).copied();
    let mut shared =
        config.iter().map(|(element, _)| element).filter(|it| in_live.contains_key(it));
    let mut next_shared = shared.next();
    let mut done: BTreeSet<&Element> = BTreeSet::new();
    let mut merged = Vec::new();
    let (mut l, mut c) = (0, 0);
    while l < live.len() || c < config.len() {
        if let (Some((element, _)), Some((wanted, value))) = (live.get(l), config.get(c)) {
            if element == wanted {
                done.insert(wanted);
                merged.extend(visit(items, was(element), Some(value)));
                (l, c) = (l + 1, c + 1);
                next_shared = shared.next();
                continue;
            }
            if in_config.contains(element) && next_shared.is_some_and(|next| next != element) {
                l += 1;
                continue;
            }
        }
        if let Some((element, value)) = live.get(l) {
            if !in_config.contains(element) {
                merged.extend(visit(items, Some(value), None));
                l += 1;
                continue;
            }
            if done.contains(element) {
                l += 1;
            }
        }
        if let Some((wanted, value)) = config.get(c) {
            done.insert(wanted);
            merged.extend(visit(items, was(wanted), Some(value)));
            c += 1;
            if next_shared == Some(wanted) {
                next_shared = shared.next();
            }
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::World;

    #[test]
    fn elements_keep_their_places_unless_the_configuration_says_otherwise() {
        let resource = World::empty().resource("pods");
        let place = Place::of(&resource);
        let pod = |names: &str| {
            let list: Vec<Value> =
                names.chars().map(|name| json!({"name": name.to_string()})).collect();
            json!({"spec": {"containers": list}})
        };
        let cases = [
            ("abc", "", "abc"),
            ("", "abc", "abc"),
            ("abc", "b", "abc"),
            ("abc", "d", "abcd"),
            ("abc", "cb", "acb"),
            ("abc", "cba", "cba"),
            ("abcd", "db", "acdb"),
            ("abc", "da", "dabc"),
            ("axbyc", "cdba", "xycdba"),
        ];
        for (live, config, want) in cases {
            let merged = merge(place, &pod(live), &pod(config));
            let names = merged["spec"]["containers"].as_array().unwrap().iter();
            let got: String = names.map(|it| it["name"].as_str().unwrap()).collect();
            assert_eq!(got, want, "{live} {config}");
        }
    }

    #[test]
    fn long_lists_are_merged_in_little_more_than_the_time_to_read_them() {
        let resource = World::empty().resource("pods");
        let place = Place::of(&resource);
        let pod = |numbers: &mut dyn Iterator<Item = usize>| {
            let list: Vec<Value> = numbers.map(|it| json!(format!("example.com/{it}"))).collect();
            json!({"metadata": {"finalizers": list}})
        };
        // Where each element is looked for in all others, this takes minutes.
        let count = 60_000;
        let live = pod(&mut (0..count));
        assert_eq!(merge(place, &live, &live), live);
        let reversed = pod(&mut (0..count).rev());
        assert_eq!(merge(place, &live, &reversed), reversed);
        let others = pod(&mut (count..2 * count));
        assert_eq!(merge(place, &live, &others), pod(&mut (0..2 * count)));
    }

    #[test]
    fn a_configuration_adds_and_replaces_but_removes_nothing() {
        let resource = World::empty().resource("pods");
        let place = Place::of(&resource);
        let live = json!({
            "metadata": {"labels": {"a": "1", "b": "2"}, "annotations": {"x": "y"}},
            "spec": {"nodeSelector": {"a": "1"}, "containers": [{"name": "c", "image": "i"}]},
        });
        let config = json!({
            "metadata": {"labels": {"b": "3"}, "annotations": null},
            "spec": {"nodeSelector": {"b": "1"}, "containers": [{"name": "c", "tty": true}]},
        });
        let want = json!({
            "metadata": {"labels": {"a": "1", "b": "3"}, "annotations": {"x": "y"}},
            "spec": {
                "nodeSelector": {"b": "1"},
                "containers": [{"name": "c", "image": "i", "tty": true}],
            },
        });
        assert_eq!(merge(place, &live, &config), want);
    }
}
