//! The kinds beside Pod and Job: one file each.

mod address;
pub mod binding;
pub mod config_map;
pub mod disruption_budget;
pub mod endpoint_slice;
pub mod endpoints;
pub mod event;
pub mod lease;
pub mod limit_range;
pub mod namespace;
pub mod node;
pub mod priority_class;
pub mod rbac;
pub mod resource_quota;
pub mod secret;
pub mod service;
pub mod service_account;
pub mod volume_claim;

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{
    field::{ErrorList, FieldError, Path},
    strategy::Json,
};

/// The text of errors about fields that may never change.
pub(crate) const IMMUTABLE: &str = "field is immutable";

/// The text of errors about numbers below zero.
pub(crate) const NOT_NEGATIVE: &str = "must be greater than or equal to 0";

/// A typed view of one member of an object; the default when it is absent.
///
/// The schema was checked before, so a value that does not fit is rare (a number out of range); it
/// is reported like any other bad value.
pub(crate) fn view<T: DeserializeOwned + Default>(
    object: &Json,
    member: &str,
    errors: &mut ErrorList,
) -> T {
    match object.get(member) {
        None | Some(Value::Null) => T::default(),
        Some(value) => T::deserialize(value).unwrap_or_else(|why| {
            errors.push(FieldError::invalid(&Path::new(member), value, &why.to_string()));
            T::default()
        }),
    }
}

/// An error for each of the texts.
pub(crate) fn each<'a>(
    path: &'a Path,
    value: &'a str,
    faults: Vec<String>,
) -> impl Iterator<Item = FieldError> + 'a {
    faults.into_iter().map(move |fault| FieldError::invalid(path, value, &fault))
}

/// An error when a field that may never change is not what it was. JSON null counts as absent.
pub(crate) fn immutable(object: &Json, old: &Json, member: &str) -> Option<FieldError> {
    let present = |of: &Json| of.get(member).filter(|value| !value.is_null()).cloned();
    let (new, old) = (present(object), present(old));
    (new != old).then(|| FieldError::invalid(&Path::new(member), new, IMMUTABLE))
}

/// The value without members that say nothing: null and empty lists. Upstream compares objects that
/// way.
pub(crate) fn without_absent(value: &Value) -> Value {
    match value {
        Value::Object(members) => members
            .iter()
            .map(|(key, value)| (key.clone(), without_absent(value)))
            .filter(|(_, value)| match value {
                Value::Null => false,
                Value::Array(items) => !items.is_empty(),
                Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => true,
            })
            .collect(),
        Value::Array(items) => items.iter().map(without_absent).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}
