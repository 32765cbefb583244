//! What the body of a request says, whatever it is written in.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use bytes::Bytes;
use lockstep_api::{Status, decode, strategy::Json};
use lockstep_store::rest::Configuration;
use serde::{
    Serialize, Serializer,
    de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor},
    ser::SerializeMap,
};
use serde_json::{Number, Value};
use serde_saphyr::{DuplicateKeyPolicy, Spanned};

/// Turns the first document of YAML into JSON; others are not looked at. A key that is there twice
/// is so in the JSON too, with null at all but its last place: whether anybody minds is found when
/// the JSON is read.
///
/// # Errors
/// 400 when it is no YAML.
pub fn yaml_to_json(bytes: &[u8]) -> Result<Bytes, Status> {
    let refused = |error: &dyn fmt::Display| {
        Status::bad_request(format!("error converting YAML to JSON: {error}"))
    };
    let node = document(bytes).map_err(|error| refused(&error))?;
    let json = serde_json::to_vec(&node).map_err(|error| refused(&error))?;
    Ok(Bytes::from(json))
}

/// Reads a configuration to apply, in YAML or JSON. Members that are there twice are a fault to the
/// strict only.
///
/// # Errors
/// 400 when it is neither.
pub fn configuration(body: &[u8], is_forced: bool) -> Result<Configuration, Status> {
    if let Ok((Value::Object(object), faults)) = decode::patch_body(body)
        && faults.is_empty()
    {
        return Ok(Configuration { object, is_forced, doubled: Vec::new() });
    }
    let refused =
        |error: &dyn fmt::Display| Status::bad_request(format!("error decoding YAML: {error}"));
    let node = document(body).map_err(|error| refused(&error))?;
    let mut doubled = Vec::new();
    push_doubled(&node, &mut doubled);
    let json = serde_json::to_vec(&node).map_err(|error| refused(&error))?;
    let object = serde_json::from_slice::<Option<Json>>(&json).map_err(|error| refused(&error))?;
    Ok(Configuration { object: object.unwrap_or_default(), is_forced, doubled })
}

/// The first document of a text.
fn document(bytes: &[u8]) -> Result<Node, serde_saphyr::Error> {
    let options = serde_saphyr::options! {
        legacy_octal_numbers: true,
        duplicate_keys: DuplicateKeyPolicy::LastWins,
    };
    let mut reader = bytes;
    let mut documents = serde_saphyr::read_with_options::<_, Node>(&mut reader, options);
    documents.next().unwrap_or(Ok(Node::Scalar(Value::Null)))
}

/// Says of each key that is there already where it is once more.
fn push_doubled(node: &Node, doubled: &mut Vec<String>) {
    match node {
        Node::Scalar(_) => {}
        Node::List(items) => items.iter().for_each(|item| push_doubled(item, doubled)),
        Node::Map(entries) => {
            let mut known = BTreeSet::new();
            for (key, value) in entries {
                push_doubled(&value.value, doubled);
                if !known.insert(key) {
                    let line = value.referenced.line();
                    doubled.push(format!("line {line}: key {key:?} already set in map"));
                }
            }
        }
    }
}

/// What YAML says, with keys that are there twice.
enum Node {
    Scalar(Value),
    List(Vec<Self>),
    Map(Vec<(String, Spanned<Self>)>),
}

impl Serialize for Node {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Scalar(value) => value.serialize(serializer),
            Self::List(items) => items.serialize(serializer),
            Self::Map(entries) => {
                let places = entries.iter().enumerate().map(|(at, (key, _))| (key.as_str(), at));
                let last: BTreeMap<&str, usize> = places.collect();
                let mut map = serializer.serialize_map(Some(entries.len()))?;
                for (at, (key, value)) in entries.iter().enumerate() {
                    let is_last = last.get(key.as_str()) == Some(&at);
                    map.serialize_entry(key, &is_last.then_some(&value.value))?;
                }
                map.end()
            }
        }
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Scalar(Value::Null))
    }

    fn visit_none<E>(self) -> Result<Node, E> {
        Ok(Node::Scalar(Value::Null))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Node, E> {
        Ok(Node::Scalar(Value::Bool(value)))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Node, E> {
        Ok(Node::Scalar(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Node, E> {
        Ok(Node::Scalar(value.into()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Node, E> {
        // JSON has no infinity and no NaN.
        let number = Number::from_f64(value)
            .ok_or_else(|| E::custom(format!("json: unsupported value: {value}")))?;
        // YAML does not tell whole numbers from others by how they are written: 1e+06 is one.
        let whole = format!("{value:.0}").parse::<i64>().ok().filter(|_| value.fract() == 0.0);
        Ok(Node::Scalar(whole.map_or(Value::Number(number), Value::from)))
    }

    fn visit_str<E>(self, value: &str) -> Result<Node, E> {
        Ok(Node::Scalar(value.into()))
    }

    fn visit_string<E>(self, value: String) -> Result<Node, E> {
        Ok(Node::Scalar(value.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Node, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(Node::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry()? {
            entries.push(entry);
        }
        Ok(Node::Map(entries))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn json(text: &str) -> String {
        String::from_utf8(yaml_to_json(text.as_bytes()).unwrap().to_vec()).unwrap()
    }

    #[test]
    fn yaml_is_read_as_upstream_reads_it() {
        for (text, want) in [
            ("mode: 0644\nbig: 1e+06\nhalf: 0.5", r#"{"mode":420,"big":1000000,"half":0.5}"#),
            ("a: 1\n---\nb: 2\n", r#"{"a":1}"#),
            ("a: 1\n--- [\n", r#"{"a":1}"#),
            ("---\n- a\n- b: yes\n", r#"["a",{"b":true}]"#),
            ("a: 1\nb: {c: 2, c: 3}\na: 4\n", r#"{"a":null,"b":{"c":null,"c":3},"a":4}"#),
            ("", "null"),
        ] {
            assert_eq!(json(text), want, "{text}");
        }
        assert_eq!(yaml_to_json(b"a: [").unwrap_err().code, 400);
    }

    #[test]
    fn keys_that_are_there_twice_are_told_of() {
        let text = "a: 1\nb:\n  c: 2\n  c: 3\na:\n  d: 4\n";
        let config = configuration(text.as_bytes(), false).unwrap();
        assert_eq!(Value::Object(config.object), json!({"a": {"d": 4}, "b": {"c": 3}}));
        let want =
            [r#"line 4: key "c" already set in map"#, r#"line 6: key "a" already set in map"#];
        assert_eq!(config.doubled, want);
        let config = configuration(br#"{"a": 1, "a": 2}"#, false).unwrap();
        assert_eq!(config.doubled, [r#"line 1: key "a" already set in map"#]);
        assert!(configuration(b"null", false).unwrap().object.is_empty());
        assert_eq!(configuration(b"[]", false).unwrap_err().code, 400);
    }
}
