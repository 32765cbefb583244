//! YAML and JSON text to values, with the line of every node kept.
//!
//! Scalars are read as kubectl reads them: `yes`, `on` and their like are booleans and a leading
//! zero means octal, so that `defaultMode: 0644` is what people mean by it.

use std::{collections::BTreeMap, fmt};

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use serde_saphyr::{Options, Spanned};

/// One document of a stream.
#[derive(Clone, Debug)]
pub(crate) struct Document {
    /// What it says.
    pub(crate) value: Value,
    /// The line of each node, by field path (`spec.containers[0].name`); the root is the empty
    /// path.
    pub(crate) lines: BTreeMap<String, u64>,
}

/// Text that is not YAML.
#[derive(Debug, thiserror::Error)]
#[error("{what}")]
pub(crate) struct YamlError {
    /// Where, if known.
    pub(crate) line: Option<u64>,
    /// Why.
    pub(crate) what: String,
}

/// Reads all documents; empty ones are left out.
pub(crate) fn parse(text: &str) -> Result<Vec<Document>, YamlError> {
    // The byte order mark some editors write is no part of the document.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let nodes: Vec<Spanned<Node>> = serde_saphyr::from_multiple_with_options(text, options())
        .map_err(|error| YamlError {
            line: error.location().map(|at| at.line()).filter(|&line| line > 0),
            what: first_line(&error.without_snippet().to_string()),
        })?;
    let documents = nodes.into_iter().map(|node| {
        let mut lines = BTreeMap::new();
        let value = settle(node, "", &mut lines);
        Document { value, lines }
    });
    Ok(documents.filter(|document| !document.value.is_null()).collect())
}

/// A value as YAML, in the order of its keys.
pub(crate) fn render(value: &Value) -> String {
    serde_saphyr::to_string(value).expect("a JSON value is always valid YAML")
}

fn options() -> Options {
    serde_saphyr::options! {
        legacy_octal_numbers: true,
    }
}

/// The message without the place, which is reported beside the file's name.
fn first_line(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    line.split(" at line ").next().unwrap_or_default().trim().to_owned()
}

enum Node {
    Scalar(Value),
    List(Vec<Spanned<Self>>),
    Map(Vec<(String, Spanned<Self>)>),
}

fn settle(node: Spanned<Node>, path: &str, lines: &mut BTreeMap<String, u64>) -> Value {
    lines.insert(path.to_owned(), node.referenced.line());
    match node.value {
        Node::Scalar(value) => value,
        Node::List(items) => {
            let settled = items.into_iter().enumerate();
            settled.map(|(at, item)| settle(item, &format!("{path}[{at}]"), lines)).collect()
        }
        Node::Map(entries) => {
            let mut object = Map::new();
            for (key, value) in entries {
                let below = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                object.insert(key, settle(value, &below, lines));
            }
            Value::Object(object)
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

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Node, E> {
        // JSON has no infinity and no NaN, and neither has the API.
        let number = Number::from_f64(value)
            .ok_or_else(|| E::custom("infinite and undefined numbers cannot be used here"))?;
        Ok(Node::Scalar(Value::Number(number)))
    }

    fn visit_str<E>(self, value: &str) -> Result<Node, E> {
        Ok(Node::Scalar(Value::String(value.to_owned())))
    }

    fn visit_string<E>(self, value: String) -> Result<Node, E> {
        Ok(Node::Scalar(Value::String(value)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Node, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element()? {
            items.push(item);
        }
        Ok(Node::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Node, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = access.next_entry()? {
            entries.push(entry);
        }
        Ok(Node::Map(entries))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn scalars_are_read_as_kubectl_reads_them() {
        for (text, want) in [
            ("yes", json!(true)),
            ("Off", json!(false)),
            ("\"yes\"", json!("yes")),
            ("0644", json!(420)),
            ("-1", json!(-1)),
            ("1.5", json!(1.5)),
            ("1e3", json!(1000.0)),
            ("2026-01-02", json!("2026-01-02")),
            ("100m", json!("100m")),
            ("[1, a]", json!([1, "a"])),
            ("a: ~", json!({"a": null})),
            ("{\"a\": {\"b\": 1}}", json!({"a": {"b": 1}})),
            ("1: x", json!({"1": "x"})),
        ] {
            let documents = parse(text).expect(text);
            assert_eq!(documents[0].value, want, "{text}");
        }
    }

    #[test]
    fn a_stream_keeps_its_lines_and_loses_its_empty_documents() {
        let text = "# head\n---\na: 1\nb:\n- c: x\n- d\n---\n---\n# nothing\n---\nz: 2\n";
        let documents = parse(text).expect("valid");
        assert_eq!(documents.len(), 2);
        assert_eq!(documents[0].lines["a"], 3);
        assert_eq!(documents[0].lines["b[0].c"], 5);
        assert_eq!(documents[0].lines["b[1]"], 6);
        assert_eq!(documents[1].lines["z"], 11);
    }

    #[test]
    fn broken_text_says_where() {
        for (text, line) in [("a: 1\nb: [\n", 2), ("a: 1\na: 2\n", 2), ("a: b: c\n", 1)] {
            let error = parse(text).expect_err(text);
            assert_eq!(error.line, Some(line), "{text:?}: {error}");
        }
        assert!(parse("a: .inf").is_err(), "JSON knows no infinity");
    }
}
