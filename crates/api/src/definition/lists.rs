//! Elements that cannot be told apart in lists that are sets or maps.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{schema::Schema, walk::walk};
use crate::{
    field::{ErrorList, FieldError, Path},
    strategy::Json,
};

/// What is wrong with the lists in an object.
pub(super) fn duplicates(schema: &Schema, object: &Json) -> ErrorList {
    let mut errors = ErrorList::new();
    walk(schema, object, &mut |schema, value, path| {
        let Value::Array(list) = value else { return };
        match schema.list_type.as_deref() {
            Some("set") => {
                let doubled = doubled(list.iter().map(ToString::to_string));
                let error = |at: usize| FieldError::duplicate(&path.index(at), &list[at]);
                errors.extend(doubled.into_iter().map(error));
            }
            Some("map") => errors.extend(in_map(schema, list, path)),
            _ => {}
        }
    });
    errors
}

fn in_map(schema: &Schema, list: &[Value], path: &Path) -> ErrorList {
    let stranger = list.iter().position(|item| !item.is_object() && !item.is_null());
    if let Some(at) = stranger {
        let why = "must be an object for an array of list-type map";
        return vec![FieldError::invalid(&path.index(at), &list[at], why)];
    }
    let keys: Vec<Value> = list
        .iter()
        .map(|item| {
            let given = |key: &&str| Some(((*key).to_owned(), item.get(*key)?.clone()));
            let keys: Vec<&str> = schema.list_keys.iter().map(AsRef::as_ref).collect();
            Value::Object(keys.iter().filter_map(given).collect())
        })
        .collect();
    let doubled = doubled(keys.iter().map(ToString::to_string));
    doubled.into_iter().map(|at| FieldError::duplicate(&path.index(at), &keys[at])).collect()
}

/// The positions at which something is there for the second time.
fn doubled(texts: impl Iterator<Item = String>) -> Vec<usize> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut found = Vec::new();
    for (at, text) in texts.enumerate() {
        let times = seen.entry(text).or_default();
        *times += 1;
        if *times == 2 {
            found.push(at);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn doubled_elements_are_found_once_each() {
        let schema = Schema::read(&json!({"type": "object", "properties": {"spec": {
        "type": "object", "properties": {
            "set": {"type": "array", "x-kubernetes-list-type": "set",
                    "items": {"type": "string"}},
            "map": {"type": "array", "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["a", "b"], "items": {"type": "object"}},
            "plain": {"type": "array", "items": {"type": "string"}},
        }}}}));
        let given = json!({"spec": {
            "set": ["x", "y", "x", "x"],
            "map": [{"a": 1, "b": 2, "c": 3}, {"a": 1, "b": 2}, {"a": 1}, {"a": 1}],
            "plain": ["x", "x"],
        }});
        let Value::Object(object) = given else { unreachable!("it is one") };
        let found: Vec<String> =
            duplicates(&schema, &object).iter().map(ToString::to_string).collect();
        assert_eq!(
            found,
            [
                "spec.map[1]: Duplicate value: {\"a\":1,\"b\":2}",
                "spec.map[3]: Duplicate value: {\"a\":1}",
                "spec.set[2]: Duplicate value: \"x\"",
            ]
        );
    }
}
