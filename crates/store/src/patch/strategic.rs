//! Strategic merge patches: maps merge, and so do lists whose elements the schema gives a key.

mod list;

use lockstep_api::{
    Status,
    schema::{SchemaNode, Strategies},
    strategy::Json,
};
use serde_json::Value;

const DIRECTIVE: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_PREFIX: &str = "$deleteFromPrimitiveList";
const ORDER_PREFIX: &str = "$setElementOrder";

/// `original` with `patch` merged in. Without a schema every list is replaced as a whole.
pub(super) fn merge(
    mut original: Json,
    patch: Json,
    schema: Option<SchemaNode>,
) -> Result<Json, Status> {
    merge_map(&mut original, patch, schema)?;
    Ok(original)
}

fn merge_map(
    original: &mut Json,
    mut patch: Json,
    schema: Option<SchemaNode>,
) -> Result<(), Status> {
    if let Some(directive) = patch.remove(DIRECTIVE) {
        match directive.as_str() {
            Some("replace") => *original = patch,
            Some("delete") => original.clear(),
            _ => {
                patch.insert(DIRECTIVE.to_owned(), directive);
                return Err(bad_directive(&Value::Object(patch)));
            }
        }
        return Ok(());
    }
    retain_keys(original, &mut patch)?;
    order_lists(original, &mut patch, schema)?;
    for (key, value) in patch {
        let (key, is_deletion) = match target_of(&key, DELETE_PREFIX) {
            Target::None => (key, false),
            Target::Field(field) => (field.to_owned(), true),
            Target::Malformed => {
                return Err(Status::bad_request("invalid patch format of primitive list"));
            }
        };
        let node = schema.and_then(|schema| schema.field(&key));
        merge_member(original, key, value, node, is_deletion)?;
    }
    Ok(())
}

fn merge_member(
    original: &mut Json,
    key: String,
    value: Value,
    node: Option<SchemaNode>,
    is_deletion: bool,
) -> Result<(), Status> {
    if value.is_null() {
        original.remove(&key);
        return Ok(());
    }
    let strategies = node.map_or_else(Strategies::default, |node| node.strategies());
    match (original.get_mut(&key), value) {
        (Some(Value::Object(map)), Value::Object(patch)) => {
            if strategies.replace {
                *map = patch;
                return Ok(());
            }
            return merge_map(map, patch, node);
        }
        (Some(Value::Array(items)), Value::Array(patch)) => {
            if is_deletion {
                items.retain(|item| !patch.contains(item));
            } else if strategies.merge {
                *items = list::merge(std::mem::take(items), patch, node)?;
            } else {
                *items = patch;
            }
        }
        // There is nothing to delete from.
        (_, _) if is_deletion => {}
        (_, value) => match cleaned(value) {
            Some(value) => drop(original.insert(key, value)),
            None => drop(original.remove(&key)),
        },
    }
    Ok(())
}

/// A value of the patch as it is when nothing is there to merge with: without nulls in maps and
/// without whatever carries a directive.
fn cleaned(value: Value) -> Option<Value> {
    match value {
        Value::Object(map) if map.contains_key(DIRECTIVE) => None,
        Value::Object(map) => {
            let kept = map
                .into_iter()
                .filter(|(_, value)| !value.is_null())
                .filter_map(|(key, value)| Some((key, cleaned(value)?)));
            Some(Value::Object(kept.collect()))
        }
        Value::Array(items) => Some(items.into_iter().filter_map(cleaned).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Some(value),
    }
}

/// `$retainKeys`: whatever it does not name goes.
fn retain_keys(original: &mut Json, patch: &mut Json) -> Result<(), Status> {
    let Some(keys) = patch.remove(RETAIN_KEYS) else {
        return Ok(());
    };
    let refuse = || Status::bad_request("invalid patch format of retainKeys");
    let keys = keys.as_array().ok_or_else(refuse)?;
    let is_retained = |key: &str| keys.iter().any(|name| name.as_str() == Some(key));
    let is_directive = |key: &str| key.starts_with(DELETE_PREFIX) || key.starts_with(ORDER_PREFIX);
    for (key, value) in &*patch {
        if !value.is_null() && !is_directive(key) && !is_retained(key) {
            return Err(refuse());
        }
    }
    original.retain(|key, _| is_retained(key));
    Ok(())
}

/// `$setElementOrder`: merges the lists it names, and puts them in that order.
fn order_lists(
    original: &mut Json,
    patch: &mut Json,
    schema: Option<SchemaNode>,
) -> Result<(), Status> {
    let refuse = || Status::bad_request("invalid patch format of setElementOrder list");
    let names: Vec<String> =
        patch.keys().filter(|key| key.starts_with(ORDER_PREFIX)).cloned().collect();
    for name in names {
        let Some(Value::Array(order)) = patch.remove(&name) else {
            return Err(refuse());
        };
        let Target::Field(key) = target_of(&name, ORDER_PREFIX) else {
            return Err(refuse());
        };
        let node = schema.and_then(|schema| schema.field(key));
        let patched = match patch.remove(key) {
            None => None,
            Some(Value::Array(items)) => Some(items),
            Some(_) => return Err(refuse()),
        };
        let current = match original.remove(key) {
            None => None,
            Some(Value::Array(items)) => Some(items),
            Some(_) => return Err(refuse()),
        };
        if let Some(items) = list::ordered(current, patched, &order, node)? {
            original.insert(key.to_owned(), Value::Array(items));
        }
    }
    Ok(())
}

/// What a key like `$setElementOrder/containers` is about.
enum Target<'a> {
    None,
    Field(&'a str),
    Malformed,
}

fn target_of<'a>(key: &'a str, prefix: &str) -> Target<'a> {
    match key.strip_prefix(prefix).map(|rest| rest.strip_prefix('/')) {
        None => Target::None,
        Some(Some(field)) => Target::Field(field),
        Some(None) => Target::Malformed,
    }
}

/// What is said of a map whose directive is none.
fn bad_directive(map: &Value) -> Status {
    let directive = map.get(DIRECTIVE).map(go_value).unwrap_or_default();
    Status::bad_request(format!("unknown patch type: {directive} in map: {}", go_value(map)))
}

/// A value as Go prints it where nobody has said how.
fn go_value(value: &Value) -> String {
    let joined = |parts: Vec<String>| parts.join(" ");
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::Array(list) => format!("[{}]", joined(list.iter().map(go_value).collect())),
        Value::Object(members) => {
            let pair = |(key, value): (&String, &Value)| format!("{key}:{}", go_value(value));
            format!("map[{}]", joined(members.iter().map(pair).collect()))
        }
    }
}

#[cfg(test)]
mod tests;
