//! Where two JSON values differ.

use std::fmt;

use serde_json::Value;

/// One place where two values differ.
#[derive(Debug, PartialEq)]
pub(super) struct Difference {
    /// A JSON pointer.
    pub(super) at: String,
    real: Option<Value>,
    ours: Option<Value>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown =
            |value: &Option<Value>| value.as_ref().map_or_else(|| "-".into(), Value::to_string);
        write!(f, "{}\n    real: {}\n    ours: {}", self.at, shown(&self.real), shown(&self.ours))
    }
}

/// All places where `ours` differs from `real`, the innermost ones.
pub(super) fn differences(real: &Value, ours: &Value) -> Vec<Difference> {
    let mut found = Vec::new();
    walk(String::new(), Some(real), Some(ours), &mut found);
    found
}

fn walk(at: String, real: Option<&Value>, ours: Option<&Value>, found: &mut Vec<Difference>) {
    match (real, ours) {
        (Some(Value::Object(real)), Some(Value::Object(ours))) => {
            let added = ours.keys().filter(|key| !real.contains_key(*key));
            for key in real.keys().chain(added) {
                let inner = format!("{at}/{}", key.replace('~', "~0").replace('/', "~1"));
                walk(inner, real.get(key), ours.get(key), found);
            }
        }
        (Some(Value::Array(real)), Some(Value::Array(ours))) => {
            for index in 0..real.len().max(ours.len()) {
                walk(format!("{at}/{index}"), real.get(index), ours.get(index), found);
            }
        }
        (real, ours) if real == ours => {}
        (real, ours) => {
            found.push(Difference { at, real: real.cloned(), ours: ours.cloned() });
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_innermost_places_are_named() {
        let real = json!({"a": {"b/c": 1, "d": [1, 2]}, "e": null});
        let ours = json!({"a": {"b/c": 2, "d": [1]}, "f": true});
        let places: Vec<String> =
            differences(&real, &ours).into_iter().map(|found| found.at).collect();
        assert_eq!(places, ["/a/b~1c", "/a/d/1", "/e", "/f"]);
        assert_eq!(differences(&real, &real), []);
    }
}
