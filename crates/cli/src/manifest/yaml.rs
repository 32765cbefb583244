//! YAML and JSON text to values, with the line of every node kept.
//!
//! Scalars are read as kubectl reads them: `yes`, `on` and their like are booleans and a leading
//! zero means octal, so that `defaultMode: 0644` is what people mean by it.

mod diagnose;

use std::{collections::BTreeMap, fmt};

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use serde_saphyr::{DuplicateKeyPolicy, Error, Options, Spanned};

/// One document of a stream.
#[derive(Clone, Debug)]
pub(crate) struct Document {
    /// What it says.
    pub(crate) value: Value,
    /// The line of each node, by field path (`spec.containers[0].name`); the root is the empty
    /// path.
    pub(crate) lines: BTreeMap<String, u64>,
}

/// Text that is not YAML, or says something twice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct YamlError {
    /// Where.
    pub(crate) line: u64,
    /// What is wrong, and what would be right.
    pub(crate) what: String,
}

/// Reads all documents; empty ones are left out. A document that cannot be read does not keep
/// others from it.
pub(crate) fn parse(text: &str) -> Vec<Result<Document, YamlError>> {
    // The byte order mark some editors write is no part of the document.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if let Ok(nodes) = read(text, DuplicateKeyPolicy::Error) {
        return settle_all(nodes).map(Ok).collect();
    }
    let mut results = Vec::new();
    for (before, part) in split(text) {
        match one(part, before) {
            Ok(documents) => results.extend(documents.into_iter().map(Ok)),
            Err(errors) => results.extend(errors.into_iter().map(Err)),
        }
    }
    results
}

/// A value as YAML, in the order of its keys.
pub(crate) fn render(value: &Value) -> String {
    serde_saphyr::to_string(value).expect("a JSON value is always valid YAML")
}

fn read(text: &str, policy: DuplicateKeyPolicy) -> Result<Vec<Spanned<Node>>, Error> {
    let options: Options = serde_saphyr::options! {
        legacy_octal_numbers: true,
        duplicate_keys: policy,
    };
    serde_saphyr::from_multiple_with_options(text, options)
}

/// The documents of a text that is one document, or has several that only the parser can tell
/// apart. There are so many lines `before` it.
fn one(text: &str, before: u64) -> Result<Vec<Document>, Vec<YamlError>> {
    let error = match read(text, DuplicateKeyPolicy::Error) {
        Ok(nodes) => {
            let mut documents: Vec<Document> = settle_all(nodes).collect();
            let lines = documents.iter_mut().flat_map(|document| document.lines.values_mut());
            lines.for_each(|line| *line += before);
            return Ok(documents);
        }
        Err(error) => error,
    };
    if matches!(error.without_snippet(), Error::DuplicateMappingKey { .. }) {
        // The parser stops at the first; read on to tell of all.
        let nodes = read(text, DuplicateKeyPolicy::LastWins).unwrap_or_default();
        let mut doubled = Vec::new();
        nodes.iter().for_each(|node| push_doubled(node, "", before, &mut doubled));
        if !doubled.is_empty() {
            return Err(doubled);
        }
    }
    let mut error = diagnose::explain(text, &error);
    error.line += before;
    Err(vec![error])
}

/// The text of each document, with the number of lines before it. A line that begins with three
/// dashes begins a document wherever it stands.
fn split(text: &str) -> Vec<(u64, &str)> {
    let mut parts = Vec::new();
    let (mut from, mut first_line) = (0, 0);
    let (mut at, mut line) = (0, 0);
    for text_line in text.split_inclusive('\n') {
        let is_start = text_line.strip_prefix("---").is_some_and(|rest| {
            rest.is_empty() || rest.starts_with(|letter: char| letter.is_whitespace())
        });
        if is_start && at > from {
            parts.push((first_line, &text[from..at]));
            (from, first_line) = (at, line);
        }
        at += text_line.len();
        line += 1;
    }
    parts.push((first_line, &text[from..]));
    parts
}

enum Node {
    Scalar(Value),
    List(Vec<Spanned<Self>>),
    Map(Vec<(Spanned<String>, Spanned<Self>)>),
}

fn settle_all(nodes: Vec<Spanned<Node>>) -> impl Iterator<Item = Document> {
    let documents = nodes.into_iter().map(|node| {
        let mut lines = BTreeMap::new();
        let line = node.referenced.line();
        let value = settle(node, "", line, &mut lines);
        Document { value, lines }
    });
    documents.filter(|document| !document.value.is_null())
}

/// The value of a node. `line` is where it begins, which for the value of a key is the key.
fn settle(node: Spanned<Node>, path: &str, line: u64, lines: &mut BTreeMap<String, u64>) -> Value {
    lines.insert(path.to_owned(), line);
    match node.value {
        Node::Scalar(value) => value,
        Node::List(items) => {
            let settled = items.into_iter().enumerate().map(|(at, item)| {
                let line = item.referenced.line();
                settle(item, &format!("{path}[{at}]"), line, lines)
            });
            settled.collect()
        }
        Node::Map(entries) => {
            let mut object = Map::new();
            for (key, value) in entries {
                let line = match key.referenced.line() {
                    0 => value.referenced.line(),
                    line => line,
                };
                let key = key.value;
                let below = below(path, &key);
                object.insert(key, settle(value, &below, line, lines));
            }
            Value::Object(object)
        }
    }
}

fn push_doubled(node: &Spanned<Node>, path: &str, before: u64, errors: &mut Vec<YamlError>) {
    match &node.value {
        Node::Scalar(_) => {}
        Node::List(items) => {
            for (at, item) in items.iter().enumerate() {
                push_doubled(item, &format!("{path}[{at}]"), before, errors);
            }
        }
        Node::Map(entries) => {
            let mut known: BTreeMap<&str, u64> = BTreeMap::new();
            for (key, value) in entries {
                let (line, below) = (key.referenced.line() + before, below(path, &key.value));
                match known.get(key.value.as_str()) {
                    Some(first) => errors.push(YamlError {
                        line,
                        what: format!(
                            "{below}: the key is given twice, first on line {first}: keep one of \
                             them"
                        ),
                    }),
                    None => drop(known.insert(&key.value, line)),
                }
                push_doubled(value, &below, before, errors);
            }
        }
    }
}

fn below(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
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
        let number = Number::from_f64(value).ok_or_else(|| E::custom(diagnose::NOT_FINITE))?;
        // Templates write large numbers as 1e+06. YAML does not tell whole numbers from others by
        // how they are written, and neither does what kubectl makes of them.
        let whole = format!("{value:.0}").parse::<i64>().ok().filter(|_| value.fract() == 0.0);
        Ok(Node::Scalar(whole.map_or(Value::Number(number), Value::from)))
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

    fn documents(text: &str) -> Vec<Document> {
        parse(text).into_iter().map(|document| document.expect(text)).collect()
    }

    fn errors(text: &str) -> Vec<YamlError> {
        parse(text).into_iter().filter_map(Result::err).collect()
    }

    #[test]
    fn scalars_are_read_as_kubectl_reads_them() {
        for (text, want) in [
            ("yes", json!(true)),
            ("Off", json!(false)),
            ("\"yes\"", json!("yes")),
            ("0644", json!(420)),
            ("-1", json!(-1)),
            ("1.5", json!(1.5)),
            ("1e3", json!(1000)),
            ("2.0", json!(2)),
            ("1e300", json!(1e300)),
            ("2026-01-02", json!("2026-01-02")),
            ("100m", json!("100m")),
            ("[1, a]", json!([1, "a"])),
            ("a: ~", json!({"a": null})),
            ("{\"a\": {\"b\": 1}}", json!({"a": {"b": 1}})),
            ("1: x", json!({"1": "x"})),
            ("a: &x {b: 1}\nc: *x", json!({"a": {"b": 1}, "c": {"b": 1}})),
        ] {
            assert_eq!(documents(text)[0].value, want, "{text}");
        }
    }

    #[test]
    fn a_stream_keeps_its_lines_and_loses_its_empty_documents() {
        let text = "# head\n---\na: 1\nb:\n- c: x\n- d\n---\n---\n# nothing\n---\nz:\n  y: 2\n";
        let documents = documents(text);
        assert_eq!(documents.len(), 2);
        assert_eq!(documents[0].lines["a"], 3);
        assert_eq!(documents[0].lines["b"], 4, "a key's own line, not that of its value");
        assert_eq!(documents[0].lines["b[0].c"], 5);
        assert_eq!(documents[0].lines["b[1]"], 6);
        assert_eq!(documents[1].lines["z"], 11);
        assert_eq!(documents[1].lines["z.y"], 12);
    }

    #[test]
    fn one_broken_document_does_not_hide_the_others() {
        let text = "a: 1\n---\nb: [\n---\nc: 3\n---\nd: 1\nd: 2\ne: 1\ne: 2\n";
        let read = parse(text);
        let shown: Vec<String> = read
            .iter()
            .map(|result| match result {
                Ok(document) => format!("{} {}", document.lines[""], document.value),
                Err(error) => format!("{} error", error.line),
            })
            .collect();
        assert_eq!(shown, ["1 {\"a\":1}", "3 error", "5 {\"c\":3}", "8 error", "10 error"]);
        assert_eq!(
            errors(text)[1].what,
            "d: the key is given twice, first on line 7: keep one of them"
        );
    }

    #[test]
    fn keys_given_twice_are_all_told() {
        let text = "spec:\n  containers:\n  - name: a\n    image: x\n    name: b\nspec: {}\n";
        let found = errors(text);
        let found: Vec<(u64, &str)> = found.iter().map(|e| (e.line, e.what.as_str())).collect();
        let words = "the key is given twice, first on line";
        assert_eq!(
            found,
            [
                (5, format!("spec.containers[0].name: {words} 3: keep one of them").as_str()),
                (6, format!("spec: {words} 1: keep one of them").as_str()),
            ]
        );
    }
}
