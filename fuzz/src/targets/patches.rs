//! The three sorts of patches.

use std::collections::BTreeSet;

use lockstep_api::{
    Resource, Status,
    decode::{self, Decoded, FieldValidation},
    schema::{self, SchemaNode},
    strategy::Json,
};
use lockstep_store::patch::Patch;
use serde_json::{Map, Value, json};

use crate::{
    bound::bounded,
    kinds::{encoded, resource_of},
    parts::parts,
    world::expected,
};

/// An object and the body of a patch of it.
struct Case<'a> {
    resource: &'static Resource,
    object: Json,
    body: &'a [u8],
}

impl<'a> Case<'a> {
    fn of(bytes: &'a [u8]) -> Option<Self> {
        let mut parts = parts(bytes);
        let first = parts.next()?;
        let body = parts.next()?;
        let resource = resource_of(first);
        let decoded = decode::object(resource, first, FieldValidation::Ignore).ok()?;
        Some(Self { resource, object: decoded.object, body })
    }

    /// What the patch makes of an object, in one form.
    fn patched(&self, patch: &Patch, object: &Json) -> Result<Json, Status> {
        let validation = FieldValidation::Warn;
        let patched = bounded(|| patch.apply(self.resource, object, validation));
        let Decoded { mut object, .. } = patched.inspect_err(expected)?;
        decode::complete(self.resource, &mut object);
        Ok(object)
    }
}

/// Takes an object and a JSON patch of it.
pub fn feed_json(bytes: &[u8]) {
    let Some(case) = Case::of(bytes) else { return };
    let Ok(patch) = bounded(|| Patch::json(case.body)) else { return };
    let Ok(patched) = case.patched(&patch, &case.object) else { return };
    // To put the outcome in the place of all of it has the same outcome, and so has a test of it.
    let text = encoded(case.resource, &patched);
    let value: Value = serde_json::from_slice(&text).expect("it is JSON");
    let all = json!([
        {"op": "replace", "path": "", "value": value},
        {"op": "test", "path": "", "value": value},
    ]);
    let all = Patch::json(all.to_string().as_bytes()).expect("it is a patch");
    let again = case.patched(&all, &case.object);
    assert_eq!(again.unwrap_or_else(|status| panic!("{status:?}")), patched);
}

/// Takes an object and a merge patch of it.
pub fn feed_merge(bytes: &[u8]) {
    let Some(case) = Case::of(bytes) else { return };
    if let Ok(patch) = bounded(|| Patch::merge(case.body))
        && let Ok(patched) = case.patched(&patch, &case.object)
    {
        let again = case.patched(&patch, &patched);
        assert_eq!(again.unwrap_or_else(|status| panic!("{status:?}")), patched, "twice is once");
    }
    // The difference to another object of the kind makes that other one.
    let Ok(decoded) = decode::object(case.resource, case.body, FieldValidation::Ignore) else {
        return;
    };
    let mut want = decoded.object;
    if has_null(&want) {
        return;
    }
    let difference = Value::Object(difference(&case.object, &want)).to_string();
    let patch = Patch::merge(difference.as_bytes()).expect("it is an object");
    let got = case.patched(&patch, &case.object);
    decode::complete(case.resource, &mut want);
    assert_eq!(got.unwrap_or_else(|status| panic!("{status:?}")), want, "{difference}");
}

/// Takes an object and a strategic merge patch of it.
pub fn feed_strategic(bytes: &[u8]) {
    let Some(case) = Case::of(bytes) else { return };
    let Ok(patch) = bounded(|| Patch::strategic(case.body)) else { return };
    let Ok(patched) = case.patched(&patch, &case.object) else { return };
    // Lists without keys may be told to grow or to be in an order that names what is not there.
    if case.body.contains(&b'$') {
        return;
    }
    let again = |object: &Json| {
        let patched = case.patched(&patch, object);
        patched.unwrap_or_else(|status| panic!("{status:?}"))
    };
    let twice = again(&patched);
    let resource = case.resource;
    let schema = schema::of(&resource.group, &resource.version, &resource.kind);
    let whole = Value::Object(patched);
    // A list that was not there is taken as it is, also when it has a key twice; the second time,
    // both are merged into the first of them.
    if schema.is_some_and(|schema| has_twins(&whole, schema)) {
        assert_eq!(again(&twice), twice, "thrice is twice");
    } else {
        assert_eq!(Value::Object(twice), whole, "twice is once");
    }
}

/// Whether a list whose elements are merged by a key has one twice.
fn has_twins(value: &Value, node: SchemaNode) -> bool {
    match value {
        Value::Object(object) => object
            .iter()
            .any(|(name, value)| node.field(name).is_some_and(|node| has_twins(value, node))),
        Value::Array(items) => {
            let key = node.merge_key().filter(|_| node.strategies().merge);
            let keys =
                key.into_iter().flat_map(|key| items.iter().filter_map(move |it| it.get(key)));
            let mut seen = BTreeSet::new();
            keys.map(Value::to_string).any(|key| !seen.insert(key))
                || node.items().is_some_and(|node| items.iter().any(|it| has_twins(it, node)))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// The merge patch that makes `new` of `old`, when `new` has no null in it.
fn difference(old: &Json, new: &Json) -> Json {
    let mut patch = Map::new();
    for key in old.keys().filter(|key| !new.contains_key(*key)) {
        patch.insert(key.clone(), Value::Null);
    }
    for (key, value) in new {
        match (old.get(key), value) {
            (Some(old), new) if old == new => {}
            (Some(Value::Object(old)), Value::Object(new)) => {
                patch.insert(key.clone(), difference(old, new).into());
            }
            (_, new) => drop(patch.insert(key.clone(), new.clone())),
        }
    }
    patch
}

fn has_null(object: &Json) -> bool {
    fn is_in(value: &Value) -> bool {
        match value {
            Value::Null => true,
            Value::Array(items) => items.iter().any(is_in),
            Value::Object(object) => has_null(object),
            Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
        }
    }
    object.values().any(is_in)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twins_are_found_where_lists_are_merged_by_a_key() {
        let pod = schema::of("", "v1", "Pod").unwrap();
        let named = |names: [&str; 2]| {
            let containers = names.map(|name| json!({"name": name, "image": "i"}));
            json!({"spec": {"containers": containers}})
        };
        assert!(has_twins(&named(["c", "c"]), pod));
        assert!(!has_twins(&named(["c", "d"]), pod));
        let args = json!({"spec": {"containers": [{"name": "c", "args": ["x", "x"]}]}});
        assert!(!has_twins(&args, pod));
    }
}
