//! Which domains pods were given: in v1beta1 domain by domain, in v1beta2 in slices that say once
//! what their domains have in common.

use serde_json::{Map, Value, json};

/// The most domains that one object is shown with: a slice may say of any number of domains that
/// they are equal.
const DOMAINS_MAX: usize = 100_000;

/// An assignment of v1beta2.
pub(super) fn to_stored(assignment: Value) -> Value {
    let Value::Object(mut members) = assignment else { return assignment };
    let Some(Value::Array(domains)) = members.remove("domains") else {
        return Value::Object(members);
    };
    let levels = members.get("levels").and_then(Value::as_array).map_or(0, Vec::len);
    let value = |domain: &Value, level: usize| domain["values"][level].clone();
    let values: Vec<Value> = (0..levels)
        .map(|level| {
            let roots: Vec<Value> = domains.iter().map(|domain| value(domain, level)).collect();
            match common(&roots) {
                Some(same) => json!({"universal": same}),
                None => json!({"individual": {"roots": roots}}),
            }
        })
        .collect();
    let counts: Vec<Value> = domains.iter().map(|domain| domain["count"].clone()).collect();
    let counts = match common(&counts) {
        Some(same) => json!({"universal": same}),
        None => json!({"individual": counts}),
    };
    let slices = match domains.len() {
        0 => json!([]),
        count => json!([{"domainCount": count, "valuesPerLevel": values, "podCounts": counts}]),
    };
    members.insert("slices".to_owned(), slices);
    Value::Object(members)
}

/// An assignment of v1beta1.
pub(super) fn from_stored(assignment: Value) -> Value {
    let Value::Object(mut members) = assignment else { return assignment };
    let Some(Value::Array(slices)) = members.remove("slices") else {
        return Value::Object(members);
    };
    let mut domains = Vec::new();
    for slice in slices.iter().filter_map(Value::as_object) {
        let count = slice.get("domainCount").and_then(Value::as_u64).unwrap_or_default();
        let count = usize::try_from(count).unwrap_or(DOMAINS_MAX);
        let room = DOMAINS_MAX.saturating_sub(domains.len());
        domains.extend((0..count.min(room)).map(|at| domain(slice, at)));
    }
    members.insert("domains".to_owned(), domains.into());
    Value::Object(members)
}

fn domain(slice: &Map<String, Value>, at: usize) -> Value {
    let levels = slice.get("valuesPerLevel").and_then(Value::as_array);
    let values: Vec<Value> =
        levels.into_iter().flatten().map(|level| value_of(level, at)).collect();
    let counts = slice.get("podCounts").unwrap_or(&Value::Null);
    let count = counts.get("universal").unwrap_or_else(|| &counts["individual"][at]);
    json!({"values": values, "count": count})
}

/// The value of one level of a domain.
fn value_of(level: &Value, at: usize) -> Value {
    if let Some(same) = level.get("universal") {
        return same.clone();
    }
    let own = &level["individual"];
    let part = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    (part(&own["prefix"]) + &part(&own["roots"][at]) + &part(&own["suffix"])).into()
}

/// The value that all are, if there are several.
fn common(values: &[Value]) -> Option<&Value> {
    let (first, rest) = values.split_first()?;
    (!rest.is_empty() && rest.iter().all(|value| value == first)).then_some(first)
}
