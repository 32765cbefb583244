//! Filling in the defaults that the schemas of custom kinds have.
//!
//! There are few of them, far apart: a Workload holds whole pods, and of those hardly anything has
//! a default by schema. So of each schema only the ways that lead to one are kept.

use std::{
    collections::BTreeMap,
    sync::{Arc, LazyLock},
};

use serde_json::Value;

use super::check::{SCHEMAS, referred};
use crate::strategy::Json;

/// What is to be filled in, by the name of a schema. Who asks for none has none.
static FILLINGS: LazyLock<BTreeMap<&'static str, Arc<Filling>>> = LazyLock::new(|| {
    let mut known = BTreeMap::new();
    for name in SCHEMAS.named.keys() {
        named(name, &mut known);
    }
    known.into_iter().filter_map(|(name, filling)| Some((name, filling?))).collect()
});

/// What is to be filled in at a place and below it.
#[derive(Debug, Default)]
struct Filling {
    defaults: Vec<(&'static str, &'static Value)>,
    members: Vec<(&'static str, Arc<Self>)>,
    items: Option<Arc<Self>>,
}

/// Fills in the defaults that the schema `name` has, in the members of `object` that are there.
pub fn fill(name: &str, object: &mut Json) {
    if let Some(filling) = FILLINGS.get(name) {
        filling.fill_object(object);
    }
}

impl Filling {
    fn fill_object(&self, object: &mut Json) {
        for (name, default) in &self.defaults {
            let slot = object.entry(*name).or_insert(Value::Null);
            if slot.is_null() {
                *slot = Value::clone(default);
            }
        }
        for (name, filling) in &self.members {
            if let Some(value) = object.get_mut(*name) {
                filling.fill_value(value);
            }
        }
    }

    fn fill_value(&self, value: &mut Value) {
        match (value, &self.items) {
            (Value::Object(object), _) => self.fill_object(object),
            (Value::Array(items), Some(filling)) => {
                items.iter_mut().for_each(|item| filling.fill_value(item));
            }
            _ => {}
        }
    }
}

/// What is to be filled in by the schema of this name, if anything is.
fn named(
    name: &'static str,
    known: &mut BTreeMap<&'static str, Option<Arc<Filling>>>,
) -> Option<Arc<Filling>> {
    if let Some(filling) = known.get(name) {
        return filling.clone();
    }
    // None of them contains itself: a place in there would have no end of defaults.
    known.insert(name, None);
    let filling = SCHEMAS.named.get(name).and_then(|schema| inline(schema, known));
    known.insert(name, filling.clone());
    filling
}

fn inline(
    schema: &'static Value,
    known: &mut BTreeMap<&'static str, Option<Arc<Filling>>>,
) -> Option<Arc<Filling>> {
    let mut filling = Filling::default();
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let default = property.get("default").filter(|value| !is_empty(value));
        filling.defaults.extend(default.map(|default| (name.as_str(), default)));
        filling.members.extend(of(property, known).map(|below| (name.as_str(), below)));
    }
    filling.items = schema.get("items").and_then(|items| of(items, known));
    let is_any =
        !filling.defaults.is_empty() || !filling.members.is_empty() || filling.items.is_some();
    is_any.then(|| Arc::new(filling))
}

/// What is to be filled in by a schema, or by the one it refers to.
fn of(
    schema: &'static Value,
    known: &mut BTreeMap<&'static str, Option<Arc<Filling>>>,
) -> Option<Arc<Filling>> {
    match referred(schema) {
        Some(name) => named(name, known),
        None => inline(schema, known),
    }
}

/// Go's zero values stand as defaults in published schemas, and mean that there is none.
fn is_empty(default: &Value) -> bool {
    match default {
        Value::String(text) => text.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Number(number) => number.as_i64() == Some(0),
        Value::Bool(value) => !value,
        Value::Null => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contains(schema: &'static Value, path: &mut Vec<&'static str>) -> bool {
        let name = referred(schema);
        if let Some(name) = name {
            if path.contains(&name) {
                return true;
            }
            path.push(name);
        }
        let schema = name.and_then(|name| SCHEMAS.named.get(name)).unwrap_or(schema);
        let members = schema["properties"].as_object().into_iter().flatten();
        let below = members.map(|(_, property)| property).chain(schema.get("items"));
        let found = below.into_iter().any(|property| contains(property, path));
        if name.is_some() {
            path.pop();
        }
        found
    }

    #[test]
    fn no_schema_contains_itself() {
        for (name, schema) in &SCHEMAS.named {
            assert!(!contains(schema, &mut vec![name]), "{name}");
        }
    }

    #[test]
    fn little_of_a_pod_is_filled_in_by_schema() {
        fn places(filling: &Filling) -> usize {
            let below = filling.members.iter().map(|(_, below)| below).chain(&filling.items);
            filling.defaults.len() + below.map(|below| places(below)).sum::<usize>()
        }
        for (name, filling) in FILLINGS.iter().filter(|(name, _)| name.ends_with(".Workload")) {
            assert!(places(filling) < 100, "{name}: {}", places(filling));
        }
        assert!(FILLINGS.keys().any(|name| name.ends_with(".Workload")));
    }
}
