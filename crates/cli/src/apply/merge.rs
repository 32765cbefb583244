//! What an object becomes when the manifest it was made from changes.
//!
//! Three objects go in: the manifest as it was applied last, the manifest now, and the object as
//! the server has it. What the user once wrote and no longer writes goes; what the user writes now
//! stands; what others wrote stays. Lists merge by key where the schema of the kind says so.

use lockstep_api::schema::SchemaNode;
use serde_json::{Map, Value};

type Json = Map<String, Value>;

/// The object `current` should become. `schema` is absent for kinds that are not built in: their
/// lists are replaced as a whole.
pub(crate) fn desired(
    original: Option<&Json>,
    modified: &Json,
    current: &Json,
    schema: Option<SchemaNode>,
) -> Json {
    let mut result = current.clone();
    let dropped = original.into_iter().flat_map(Json::keys);
    for key in dropped.filter(|key| !modified.contains_key(*key)) {
        result.remove(key);
    }
    for (key, value) in modified {
        if value.is_null() {
            result.remove(key);
            continue;
        }
        let below = schema.and_then(|schema| schema.field(key));
        let before = original.and_then(|original| original.get(key));
        let merged = match current.get(key) {
            Some(there) => merge_value(before, value, there, below),
            None => without_nulls(value),
        };
        result.insert(key.clone(), merged);
    }
    result
}

/// The JSON merge patch that turns `current` into `wanted`; `None` when they are equal.
pub(crate) fn patch(current: &Json, wanted: &Json) -> Option<Json> {
    let mut patch = Json::new();
    for key in current.keys().filter(|key| !wanted.contains_key(*key)) {
        patch.insert(key.clone(), Value::Null);
    }
    for (key, value) in wanted {
        match (current.get(key), value) {
            (Some(there), value) if there == value => {}
            (Some(Value::Object(there)), Value::Object(value)) => {
                if let Some(below) = self::patch(there, value) {
                    patch.insert(key.clone(), Value::Object(below));
                }
            }
            _ => drop(patch.insert(key.clone(), value.clone())),
        }
    }
    (!patch.is_empty()).then_some(patch)
}

fn merge_value(
    before: Option<&Value>,
    value: &Value,
    there: &Value,
    schema: Option<SchemaNode>,
) -> Value {
    let strategies = schema.map(|schema| schema.strategies()).unwrap_or_default();
    match (value, there) {
        (Value::Object(_), Value::Object(_)) if strategies.replace => without_nulls(value),
        (Value::Object(value), Value::Object(there)) => {
            let before = before.and_then(Value::as_object);
            let mut merged = desired(before, value, there, schema);
            if strategies.retain_keys {
                // One of many shapes, such as a volume's source: the shape not named goes.
                merged.retain(|key, _| value.contains_key(key));
            }
            Value::Object(merged)
        }
        (Value::Array(value), Value::Array(there)) if strategies.merge => {
            let before = before.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
            let items = schema.and_then(|schema| schema.items());
            match schema.and_then(|schema| schema.merge_key()) {
                Some(key) => {
                    let lists = Keyed { key, retain_keys: strategies.retain_keys, items };
                    Value::Array(lists.merge(before, value, there))
                }
                None => Value::Array(merge_set(before, value, there)),
            }
        }
        _ => without_nulls(value),
    }
}

/// How the elements of one list find their counterparts.
struct Keyed {
    key: &'static str,
    retain_keys: bool,
    items: Option<SchemaNode>,
}

impl Keyed {
    fn merge(&self, before: &[Value], value: &[Value], there: &[Value]) -> Vec<Value> {
        // Elements only others know keep their place relative to the ones we know.
        let is_theirs = |item: &&Value| {
            let key = &item[self.key];
            self.position(value, key).is_none() && self.position(before, key).is_none()
        };
        let mut merged = Vec::new();
        let mut passed = 0;
        for item in value {
            let found = self.position(there, &item[self.key]);
            if let Some(at) = found
                && at >= passed
            {
                merged.extend(there[passed..at].iter().filter(is_theirs).cloned());
                passed = at + 1;
            }
            merged.push(match found {
                Some(at) => self.merge_item(before, item, &there[at]),
                None => without_nulls(item),
            });
        }
        merged.extend(there[passed..].iter().filter(is_theirs).cloned());
        merged
    }

    fn merge_item(&self, before: &[Value], item: &Value, there: &Value) -> Value {
        let (Value::Object(item), Value::Object(there)) = (item, there) else {
            return without_nulls(item);
        };
        let before = self.position(before, &item[self.key]).and_then(|at| before[at].as_object());
        let mut merged = desired(before, item, there, self.items);
        if self.retain_keys {
            merged.retain(|key, _| item.contains_key(key));
        }
        Value::Object(merged)
    }

    fn position(&self, list: &[Value], key: &Value) -> Option<usize> {
        list.iter().position(|item| !key.is_null() && &item[self.key] == key)
    }
}

/// A list of plain values that many may add to, such as finalizers.
fn merge_set(before: &[Value], value: &[Value], there: &[Value]) -> Vec<Value> {
    let mut merged: Vec<Value> = there
        .iter()
        .filter(|item| value.contains(item) || !before.contains(item))
        .cloned()
        .collect();
    let added: Vec<Value> = value.iter().filter(|item| !merged.contains(item)).cloned().collect();
    merged.extend(added);
    merged
}

/// A value as the server would store it: a null field is one that is not there.
fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(object) => object
            .iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(key, value)| (key.clone(), without_nulls(value)))
            .collect(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(value: Value) -> Json {
        match value {
            Value::Object(object) => object,
            other => panic!("not an object: {other}"),
        }
    }

    #[test]
    fn users_others_and_defaults_get_along() {
        let pod = lockstep_api::schema::of("", "v1", "Pod");
        let cases = [
            (
                "what the user dropped goes, what others wrote stays",
                json!({"metadata": {"labels": {"a": "1", "b": "2"}}}),
                json!({"metadata": {"labels": {"a": "1"}}}),
                json!({"metadata": {"labels": {"a": "1", "b": "2", "theirs": "3"}}}),
                json!({"metadata": {"labels": {"a": "1", "theirs": "3"}}}),
            ),
            (
                "defaults inside a keyed list stay",
                json!({"spec": {"containers": [{"name": "c", "image": "x"}]}}),
                json!({"spec": {"containers": [{"name": "c", "image": "y"}]}}),
                json!({"spec": {"containers": [{"name": "c", "image": "x", "imagePullPolicy": "Always"}]}}),
                json!({"spec": {"containers": [{"name": "c", "image": "y", "imagePullPolicy": "Always"}]}}),
            ),
            (
                "an injected container keeps its place, a dropped one goes",
                json!({"spec": {"containers": [{"name": "a"}, {"name": "old"}]}}),
                json!({"spec": {"containers": [{"name": "new"}, {"name": "a"}]}}),
                json!({"spec": {"containers": [{"name": "sidecar"}, {"name": "a"}, {"name": "old"}]}}),
                json!({"spec": {"containers": [{"name": "new"}, {"name": "sidecar"}, {"name": "a"}]}}),
            ),
            (
                "a volume changes its source",
                json!({"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}}),
                json!({"spec": {"volumes": [{"name": "v", "configMap": {"name": "c"}}]}}),
                json!({"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}}),
                json!({"spec": {"volumes": [{"name": "v", "configMap": {"name": "c"}}]}}),
            ),
            (
                "finalizers are a set",
                json!({"metadata": {"finalizers": ["a", "b"]}}),
                json!({"metadata": {"finalizers": ["a", "c"]}}),
                json!({"metadata": {"finalizers": ["theirs", "a", "b"]}}),
                json!({"metadata": {"finalizers": ["theirs", "a", "c"]}}),
            ),
            (
                "a plain list is replaced",
                json!({"spec": {"containers": [{"name": "c", "args": ["1", "2"]}]}}),
                json!({"spec": {"containers": [{"name": "c", "args": ["3"]}]}}),
                json!({"spec": {"containers": [{"name": "c", "args": ["1", "2"]}]}}),
                json!({"spec": {"containers": [{"name": "c", "args": ["3"]}]}}),
            ),
            (
                "null is absent",
                json!({}),
                json!({"metadata": {"labels": null}, "spec": {"nodeName": null}}),
                json!({"metadata": {"labels": {"a": "1"}}}),
                json!({"metadata": {}, "spec": {}}),
            ),
        ];
        for (name, original, modified, current, want) in cases {
            let (original, modified, current) =
                (object(original), object(modified), object(current));
            let wanted = desired(Some(&original), &modified, &current, pod);
            assert_eq!(Value::Object(wanted.clone()), want, "{name}");
            let again = desired(Some(&modified), &modified, &wanted, pod);
            assert_eq!(again, wanted, "{name}: applying again changes nothing");
        }
    }

    #[test]
    fn a_patch_says_only_what_differs() {
        let current = object(json!({"a": 1, "b": {"c": 1, "d": 2}, "e": [1]}));
        let wanted = object(json!({"b": {"c": 1, "d": 3}, "e": [1], "f": {}}));
        let want = json!({"a": null, "b": {"d": 3}, "f": {}});
        assert_eq!(patch(&current, &wanted).map(Value::Object), Some(want));
        assert_eq!(patch(&current, &current), None);
    }
}
