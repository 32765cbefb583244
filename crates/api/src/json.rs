//! Small readers for JSON objects, for code that must not lose fields it does not know.

use serde_json::{Map, Value};

/// The value at a path of keys, if every step is there.
pub fn at<'a>(object: &'a Map<String, Value>, path: &[&str]) -> Option<&'a Value> {
    let (first, rest) = path.split_first()?;
    let mut value = object.get(*first)?;
    for key in rest {
        value = value.as_object()?.get(*key)?;
    }
    Some(value)
}

/// The string at a path, or the empty string.
pub fn text<'a>(object: &'a Map<String, Value>, path: &[&str]) -> &'a str {
    at(object, path).and_then(Value::as_str).unwrap_or_default()
}

/// The integer at a path.
pub fn integer(object: &Map<String, Value>, path: &[&str]) -> Option<i64> {
    at(object, path).and_then(Value::as_i64)
}

/// The boolean at a path, or `false`.
pub fn flag(object: &Map<String, Value>, path: &[&str]) -> bool {
    at(object, path).and_then(Value::as_bool).unwrap_or_default()
}

/// The list at a path, or an empty one.
pub fn list<'a>(object: &'a Map<String, Value>, path: &[&str]) -> &'a [Value] {
    at(object, path).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// The object at `key`, made if it is not there.
///
/// # Panics
/// When the value is there and is not an object: the schema was checked before.
pub fn object_mut<'a>(object: &'a mut Map<String, Value>, key: &str) -> &'a mut Map<String, Value> {
    let slot = object.entry(key).or_insert(Value::Null);
    if slot.is_null() {
        *slot = Value::Object(Map::new());
    }
    slot.as_object_mut().expect("the schema was checked before")
}

/// Sets `key` unless it is there (JSON null counts as absent).
pub fn set_default(object: &mut Map<String, Value>, key: &str, value: impl Into<Value>) {
    let slot = object.entry(key).or_insert(Value::Null);
    if slot.is_null() {
        *slot = value.into();
    }
}

/// The whole part of a number, or the nearest one that there is.
pub(crate) fn truncated(number: f64) -> i64 {
    let nearest = if number < 0.0 { i64::MIN } else { i64::MAX };
    format!("{:.0}", number.trunc()).parse().unwrap_or(nearest)
}

/// What a number is as a whole one, if it is one.
pub(crate) fn whole(number: f64) -> Option<i64> {
    let text = || format!("{number:.0}");
    if number.fract() == 0.0 { text().parse().ok() } else { None }
}
