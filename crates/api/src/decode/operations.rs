//! Reads JSON patches.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use super::{
    findings::{Findings, Step},
    free::Free,
    syntax,
};
use crate::{status::Status, strategy::Json};

/// The members that an operation may have.
const MEMBERS: [&str; 4] = ["from", "op", "path", "value"];

/// One operation of a JSON patch, as it was sent: whether it makes sense is found when it is
/// applied.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Operation {
    /// What to do.
    pub op: Option<String>,
    /// Where.
    pub path: Option<String>,
    /// Where from, for what moves and copies.
    pub from: Option<String>,
    /// With what; null when nothing is said.
    pub value: Value,
}

/// Parses a JSON patch. Returned beside its operations are fields that are unknown or given twice,
/// to be handed to [`super::prune_and_check`].
///
/// # Errors
/// 400 when it is no list of operations.
pub fn patch_operations(body: &[u8]) -> Result<(Vec<Operation>, Vec<String>), Status> {
    let refused = |why: &str| Status::bad_request(format!("error decoding patch: {why}"));
    let mut reader = serde_json::Deserializer::from_slice(body);
    let value = Free { findings: &mut Findings::default() }
        .deserialize(&mut reader)
        .and_then(|value| reader.end().map(|()| value))
        .map_err(|error| refused(&syntax::message(body, &error)))?;
    let list = match value {
        Value::Array(list) => list,
        Value::Null => Vec::new(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
            return Err(refused(&misfit(&value, "value of type []handlers.jsonPatchOp")));
        }
    };
    let operations: Result<Vec<_>, _> = list.into_iter().map(operation).collect();
    let operations = operations.map_err(|why| refused(&why))?;
    let mut findings = Findings::default();
    let mut reader = serde_json::Deserializer::from_slice(body);
    // All of it could be read, so nothing can go wrong now.
    drop(reader.deserialize_any(Operations { findings: &mut findings }));
    let faults = findings.strict.iter().map(|fault| format!("json patch {fault}"));
    Ok((operations, faults.collect()))
}

fn operation(value: Value) -> Result<Operation, String> {
    let mut members = match value {
        Value::Object(members) => members,
        Value::Null => Json::new(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            return Err(misfit(&value, "value of type handlers.jsonPatchOp"));
        }
    };
    let value = members.remove("value").unwrap_or_default();
    let mut text = |name: &str| match members.remove(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(other) => {
            Err(misfit(&other, &format!("struct field jsonPatchOp.{name} of type string")))
        }
    };
    Ok(Operation { op: text("op")?, path: text("path")?, from: text("from")?, value })
}

fn misfit(value: &Value, wanted: &str) -> String {
    let found = match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    format!("json: cannot unmarshal {found} into Go {wanted}")
}

/// Notes what a strict reader minds in a list of operations.
struct Operations<'f> {
    findings: &'f mut Findings,
}

impl<'de> Visitor<'de> for Operations<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of operations")
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let findings = self.findings;
        for at in 0.. {
            findings.path.push(Step::Index(at));
            let next = seq.next_element_seed(Members { findings })?;
            findings.path.pop();
            if next.is_none() {
                break;
            }
        }
        Ok(())
    }
}

/// Notes what a strict reader minds in an operation.
struct Members<'f> {
    findings: &'f mut Findings,
}

impl<'de> DeserializeSeed<'de> for Members<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Members<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an operation")
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let findings = self.findings;
        let mut seen = [false; MEMBERS.len()];
        while let Some(key) = map.next_key::<String>()? {
            let Some(at) = MEMBERS.iter().position(|member| *member == key) else {
                findings.note("unknown field", &key);
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            if std::mem::replace(&mut seen[at], true) {
                findings.note("duplicate field", &key);
            }
            findings.path.push(Step::Key(key));
            map.next_value_seed(Free { findings })?;
            findings.path.pop();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn operations_are_read_with_what_the_strict_mind() {
        let body = br#"[
            {"op": "add", "foo": {"a": 1, "a": 2}, "path": "/a"},
            {"op": "copy", "path": "/b", "path": "/c", "from": "/a"},
            null,
            {"op": "test", "path": null, "value": {"x": [{"y": 1, "y": 2}]}}
        ]"#;
        let (operations, faults) = patch_operations(body).unwrap();
        let operation = |op: &str, path: &str| Operation {
            op: Some(op.to_owned()),
            path: Some(path.to_owned()),
            ..Operation::default()
        };
        let test = Operation {
            op: Some("test".to_owned()),
            value: json!({"x": [{"y": 2}]}),
            ..Operation::default()
        };
        let copy = Operation { from: Some("/a".to_owned()), ..operation("copy", "/c") };
        assert_eq!(operations, [operation("add", "/a"), copy, Operation::default(), test]);
        let want = [
            r#"json patch unknown field "[0].foo""#,
            r#"json patch duplicate field "[1].path""#,
            r#"json patch duplicate field "[3].value.x[0].y""#,
        ];
        assert_eq!(faults, want);
        assert_eq!(patch_operations(b"null").unwrap(), (Vec::new(), Vec::new()));
    }

    #[test]
    fn what_is_no_list_of_operations_is_refused() {
        for (body, want) in [
            ("{}", "json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp"),
            ("[1]", "json: cannot unmarshal number into Go value of type handlers.jsonPatchOp"),
            (
                r#"[{"op": "add", "path": 1}]"#,
                "json: cannot unmarshal number into Go struct field jsonPatchOp.path of type \
                 string",
            ),
            ("[", "unexpected end of JSON input"),
            ("[] x", "invalid character 'x' after top-level value"),
        ] {
            let status = patch_operations(body.as_bytes()).unwrap_err();
            assert_eq!(status.message, format!("error decoding patch: {want}"), "{body}");
            assert_eq!(status.code, 400);
        }
    }
}
