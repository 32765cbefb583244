//! Whether an object has the shape its kind has: known fields, and values of the right type.
//!
//! The server says the same with the names of Go types, and stops at the first. People who wrote
//! YAML are helped more by field paths, and by all of them.

use lockstep_api::{
    quantity::Quantity,
    schema::{SchemaNode, Shape},
};
use serde_json::Value;

use crate::suggest;

/// Something that does not fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Misfit {
    /// Where.
    pub(super) path: String,
    /// What is wrong, and what would be right.
    pub(super) what: String,
    /// Whether the value has a wrong type, so that nothing can be said about its meaning.
    pub(super) is_mistyped: bool,
}

/// Everything in `value` that does not fit `node`.
pub(super) fn check(node: SchemaNode, value: &Value) -> Vec<Misfit> {
    let mut misfits = Vec::new();
    Walk { misfits: &mut misfits }.visit(node, value, "");
    misfits
}

struct Walk<'a> {
    misfits: &'a mut Vec<Misfit>,
}

impl Walk<'_> {
    fn visit(&mut self, node: SchemaNode, value: &Value, path: &str) {
        // A null is a field that is not there.
        if value.is_null() {
            return;
        }
        match (node.shape(), value) {
            (Shape::Struct | Shape::Map, Value::Object(fields)) => {
                for (key, value) in fields {
                    let below = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                    match node.field(key) {
                        Some(field) => self.visit(field, value, &below),
                        None => {
                            let hint = suggest::did_you_mean(key, node.names());
                            let what = format!("unknown field{hint}");
                            self.misfits.push(Misfit { path: below, what, is_mistyped: false });
                        }
                    }
                }
            }
            (Shape::List, Value::Array(items)) => {
                let Some(node) = node.items() else { return };
                for (at, item) in items.iter().enumerate() {
                    self.visit(node, item, &format!("{path}[{at}]"));
                }
            }
            (shape, value) => {
                if let Some(what) = mistyped(shape, value) {
                    self.misfits.push(Misfit { path: path.to_owned(), what, is_mistyped: true });
                }
            }
        }
    }
}

/// What is wrong with a value that should have `shape`; nothing if it has.
fn mistyped(shape: Shape, value: &Value) -> Option<String> {
    let given = given(value);
    match (shape, value) {
        (Shape::Any, _)
        | (Shape::String | Shape::Duration | Shape::IntOrString, Value::String(_))
        | (Shape::Bool, Value::Bool(_)) => None,
        (Shape::Struct | Shape::Map, _) => {
            Some(format!("must be a mapping (`key: value` lines below it), not {given}"))
        }
        (Shape::List, _) => Some(format!("must be a list (lines with `- ` below it), not {given}")),
        (Shape::String, Value::Number(number)) => {
            Some(format!("must be a text, not {given}: write it in quotes, \"{number}\""))
        }
        (Shape::String, Value::Bool(_)) => Some(format!(
            "must be a text, not {given}: write the word in quotes (without them, y, n, yes, no, on \
             and off mean true and false)"
        )),
        (Shape::String, _) => Some(format!("must be a text, not {given}")),
        (Shape::Bool, _) => Some(format!("must be true or false, without quotes, not {given}")),
        (Shape::Int32 | Shape::Int64 | Shape::IntOrString, Value::Number(number)) => {
            let is_wide = shape == Shape::Int64;
            match number.as_i64() {
                Some(number) if is_wide || i32::try_from(number).is_ok() => None,
                Some(_) => Some(format!("must fit 32 bits, which {number} does not")),
                None => Some(format!("must be a whole number, not {number}")),
            }
        }
        (Shape::Int32 | Shape::Int64, Value::String(text)) if text.parse::<i64>().is_ok() => {
            Some(format!("must be a whole number, not {given}: leave out the quotes"))
        }
        (Shape::Int32 | Shape::Int64, _) => Some(format!("must be a whole number, not {given}")),
        (Shape::IntOrString, _) => Some(format!("must be a whole number or a text, not {given}")),
        (Shape::Quantity, Value::String(_) | Value::Number(_)) => {
            let text = value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned);
            Quantity::parse(&text)
                .is_err()
                .then(|| format!("must be an amount such as 2, 500m, 1.5 or 64Mi, not {given}"))
        }
        (Shape::Quantity, _) => {
            Some(format!("must be an amount such as 2, 500m, 1.5 or 64Mi, not {given}"))
        }
        (Shape::Time | Shape::MicroTime, Value::String(text))
            if text.parse::<jiff::Timestamp>().is_ok() =>
        {
            None
        }
        (Shape::Time | Shape::MicroTime, _) => {
            Some(format!("must be a moment such as 2026-01-31T12:00:00Z, not {given}"))
        }
        (Shape::Bytes, Value::String(text)) if is_base64(text) => None,
        (Shape::Bytes, _) => Some(format!(
            "must be base64, which {given} is not; a Secret takes plain texts under stringData"
        )),
        (Shape::Duration, _) => Some(format!("must be a duration such as 90s, not {given}")),
    }
}

/// A value in words: what it is, and what it says if that is short.
fn given(value: &Value) -> String {
    const LONG: usize = 40;
    match value {
        Value::Null => "nothing".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Number(number) => format!("the number {number}"),
        Value::String(text) if text.chars().count() <= LONG => format!("the text {text:?}"),
        Value::String(_) => "a text".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "a mapping".to_owned(),
    }
}

fn is_base64(text: &str) -> bool {
    let bytes: Vec<u8> = text.bytes().filter(|byte| !matches!(byte, b'\r' | b'\n')).collect();
    let padding = bytes.iter().rev().take_while(|&&byte| byte == b'=').count();
    let is_digit = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    bytes.len().is_multiple_of(4)
        && padding <= 2
        && bytes[..bytes.len() - padding].iter().all(is_digit)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_misfit_is_found_and_named() {
        let pod = lockstep_api::schema::of("", "v1", "Pod").expect("a schema");
        let object = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": 5, "labels": {"on": true}, "creationTimestamp": null},
            "spec": {
                "containers": [
                    {"name": "c", "imagee": "x", "command": "sleep 5", "env": "A=b",
                     "resources": {"limits": {"cpu": "lots", "memory": 64}}, "tty": "yes",
                     "livenessProbe": {"httpGet": {"port": 1.5}, "periodSeconds": 3_000_000_000_i64}},
                    "other",
                ],
                "activeDeadlineSeconds": "30",
                "dnsConfig": [],
            },
        });
        let found: Vec<String> =
            check(pod, &object).iter().map(|m| format!("{}: {}", m.path, m.what)).collect();
        let want = [
            "metadata.labels.on: must be a text, not true: write the word in quotes (without \
             them, y, n, yes, no, on and off mean true and false)",
            "metadata.name: must be a text, not the number 5: write it in quotes, \"5\"",
            "spec.activeDeadlineSeconds: must be a whole number, not the text \"30\": leave out \
             the quotes",
            "spec.containers[0].command: must be a list (lines with `- ` below it), not the text \
             \"sleep 5\"",
            "spec.containers[0].env: must be a list (lines with `- ` below it), not the text \
             \"A=b\"",
            "spec.containers[0].imagee: unknown field; did you mean \"image\"?",
            "spec.containers[0].livenessProbe.httpGet.port: must be a whole number, not 1.5",
            "spec.containers[0].livenessProbe.periodSeconds: must fit 32 bits, which 3000000000 \
             does not",
            "spec.containers[0].resources.limits.cpu: must be an amount such as 2, 500m, 1.5 or \
             64Mi, not the text \"lots\"",
            "spec.containers[0].tty: must be true or false, without quotes, not the text \"yes\"",
            "spec.containers[1]: must be a mapping (`key: value` lines below it), not the text \
             \"other\"",
            "spec.dnsConfig: must be a mapping (`key: value` lines below it), not a list",
        ];
        assert_eq!(found, want);
    }

    #[test]
    fn bytes_and_moments_are_looked_into() {
        for (shape, value, is_right) in [
            (Shape::Bytes, "aHVudGVyMg==", true),
            (Shape::Bytes, "hunter2", false),
            (Shape::Bytes, "", true),
            (Shape::Time, "2026-01-31T12:00:00Z", true),
            (Shape::Time, "yesterday", false),
            (Shape::Quantity, "1.5Gi", true),
        ] {
            assert_eq!(mistyped(shape, &json!(value)).is_none(), is_right, "{value}");
        }
    }
}
