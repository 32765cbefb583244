//! `--sort-by`: the order of a field's values.

use std::cmp::Ordering;

use anyhow::Result;
use lockstep_api::quantity::Quantity;
use serde_json::Value;

use crate::{exit::usage, jsonpath::Template};

/// Sorts `items` by the field a path leads to in the object of each; those without it come first.
///
/// # Errors
/// When no object has the field, or it holds what cannot be sorted.
pub(super) fn sort<T>(
    items: &mut Vec<T>,
    path: &Template,
    named: &str,
    object: impl Fn(&T) -> &Value,
) -> Result<()> {
    let mut keyed: Vec<(Option<Value>, T)> = Vec::with_capacity(items.len());
    for item in items.drain(..) {
        let found = path.values(object(&item)).map_err(|error| usage(error.to_string()))?;
        keyed.push((found.into_iter().next(), item));
    }
    if !keyed.is_empty() && keyed.iter().all(|(key, _)| key.is_none()) {
        return Err(usage(format!(
            "error: couldn't find any field with path {named:?} in the list of objects"
        )));
    }
    if let Some((Some(key), _)) =
        keyed.iter().find(|(key, _)| matches!(key, Some(Value::Array(_) | Value::Object(_))))
    {
        let kind = if key.is_array() { "a list" } else { "an object" };
        return Err(usage(format!("error: --sort-by {named:?} leads to {kind}, not to a value")));
    }
    keyed.sort_by(|(a, _), (b, _)| compare(a.as_ref(), b.as_ref()));
    items.extend(keyed.into_iter().map(|(_, item)| item));
    Ok(())
}

fn compare(a: Option<&Value>, b: Option<&Value>) -> Ordering {
    match (a, b) {
        (Some(Value::String(a)), Some(Value::String(b))) => {
            match (Quantity::parse(a), Quantity::parse(b)) {
                (Ok(a), Ok(b)) => a.cmp(&b),
                _ => a.cmp(b),
            }
        }
        (Some(Value::Number(a)), Some(Value::Number(b))) => {
            a.as_f64().partial_cmp(&b.as_f64()).unwrap_or(Ordering::Equal)
        }
        (Some(Value::Bool(a)), Some(Value::Bool(b))) => a.cmp(b),
        (Some(_), Some(_)) => Ordering::Equal,
        (a, b) => a.is_some().cmp(&b.is_some()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_sort_by_what_they_mean() {
        let cases = [
            ("numbers", json!([10, 9, null]), json!([null, 9, 10])),
            ("quantities", json!(["1Gi", "500Mi", "2Ki"]), json!(["2Ki", "500Mi", "1Gi"])),
            ("texts", json!(["b", "a10", "a9"]), json!(["a10", "a9", "b"])),
            (
                "moments",
                json!(["2026-01-02T00:00:00Z", "2026-01-01T00:00:00Z"]),
                json!(["2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"]),
            ),
        ];
        let path = Template::relaxed(".x").expect("a path");
        for (name, values, want) in cases {
            let objects = values.as_array().expect("a list").iter().cloned();
            let mut objects: Vec<Value> =
                objects.map(|x| if x.is_null() { json!({}) } else { json!({ "x": x }) }).collect();
            sort(&mut objects, &path, ".x", |object| object).expect(name);
            let sorted: Vec<Value> = objects.iter().map(|object| object["x"].clone()).collect();
            assert_eq!(Value::Array(sorted), want, "{name}");
        }
        let refused = |object: Value| sort(&mut vec![object], &path, ".x", |object| object);
        assert!(refused(json!({"y": 1})).is_err(), "nobody has the field");
        assert!(refused(json!({"x": [1]})).is_err(), "a list has no order");
    }
}
