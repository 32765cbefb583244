//! Sets of paths as the API has them: `FieldsV1`, an object of objects.

use std::{borrow::Cow, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{Error, IgnoredAny, MapAccess, Visitor},
};
use serde_json::{Map, Value};

use super::{Element, Set, set::Node};

/// Why a text is no step of a path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// It does not begin with the sort of step and a colon.
    #[error("{0:?} does not begin with a letter and a colon")]
    Prefix(String),
    /// What follows cannot be read.
    #[error("{0:?} does not say which element is meant")]
    Content(String),
}

impl Element {
    /// Reads a step; `None` when it is of a sort that is not known, which later versions may have.
    ///
    /// # Errors
    /// When it is none.
    pub fn parse(text: &str) -> Result<Option<Self>, Malformed> {
        let malformed = || Malformed::Content(text.to_owned());
        let Some((sort, rest)) = text.split_at_checked(2).filter(|(sort, _)| sort.ends_with(':'))
        else {
            return Err(Malformed::Prefix(text.to_owned()));
        };
        Ok(Some(match sort {
            "f:" => Self::field(rest),
            "v:" => Self::Value(serde_json::from_str(rest).map_err(|_| malformed())?),
            "k:" => {
                let keys: Map<String, Value> =
                    serde_json::from_str(rest).map_err(|_| malformed())?;
                Self::Key(keys.into_iter().map(|(name, value)| (name.into(), value)).collect())
            }
            "i:" => Self::Index(rest.parse().map_err(|_| malformed())?),
            _ => return Ok(None),
        }))
    }

    /// Writes the step as the name of a member.
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            // Few names need escaping, and those that do not are most of what is written.
            Self::Field(name) if name.bytes().all(is_plain) => {
                out.extend_from_slice(b"\"f:");
                out.extend_from_slice(name.as_bytes());
                out.push(b'"');
            }
            Self::Field(name) => write_json(out, &format!("f:{name}")),
            Self::Key(keys) => {
                let mut text = String::from("k:{");
                for (at, (name, value)) in keys.iter().enumerate() {
                    let comma = if at == 0 { "" } else { "," };
                    text.extend([comma, &Value::from(&**name).to_string(), ":"]);
                    text.push_str(&value.to_string());
                }
                text.push('}');
                write_json(out, &text);
            }
            Self::Value(value) => write_json(out, &format!("v:{value}")),
            Self::Index(index) => write_json(out, &format!("i:{index}")),
        }
    }
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_graphic() && byte != b'"' && byte != b'\\'
}

fn write_json(out: &mut Vec<u8>, text: &str) {
    serde_json::to_writer(out, text).expect("text can always be written to memory");
}

impl Set {
    /// Writes the set as `FieldsV1`.
    pub fn write(&self, out: &mut Vec<u8>) {
        self.write_object(out, false);
    }

    fn write_object(&self, out: &mut Vec<u8>, is_member: bool) {
        out.push(b'{');
        let mut is_first = true;
        if is_member && !self.is_empty() {
            out.extend_from_slice(b"\".\":{}");
            is_first = false;
        }
        for node in &self.nodes {
            if !is_first {
                out.push(b',');
            }
            is_first = false;
            node.element.write(out);
            out.push(b':');
            node.below.write_object(out, node.is_member);
        }
        out.push(b'}');
    }
}

impl<'de> Deserialize<'de> for Set {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Fields).map(|(_, set)| set)
    }
}

/// What is below a member, and whether the member itself is meant.
struct Below(bool, Set);

impl<'de> Deserialize<'de> for Below {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Fields).map(|(is_member, set)| Self(is_member, set))
    }
}

struct Fields;

impl<'de> Visitor<'de> for Fields {
    type Value = (bool, Set);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of fields")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut set = Set::default();
        let mut is_member = false;
        let mut is_sorted = true;
        while let Some(Key(name)) = map.next_key::<Key<'_>>()? {
            if name == "." {
                is_member = true;
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            let Some(element) = Element::parse(&name).map_err(Error::custom)? else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            let Below(is_member, below) = map.next_value()?;
            is_sorted &= set.nodes.last().is_none_or(|last| last.element < element);
            set.nodes.push(Node { element, is_member, below });
        }
        if !is_sorted {
            set.nodes.sort_by(|a, b| a.element.cmp(&b.element));
            // Of two that say the same, the later one is meant.
            set.nodes.reverse();
            set.nodes.dedup_by(|a, b| a.element == b.element);
            set.nodes.reverse();
        }
        // Nothing below means that the member itself is meant.
        let is_member = is_member || set.is_empty();
        Ok((is_member, set))
    }
}

/// The name of a member, borrowed where it needs no unescaping.
struct Key<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for Key<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl<'de> Visitor<'de> for Text {
            type Value = Key<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a name")
            }

            fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Borrowed(text)))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(Text)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn written(set: &Set) -> String {
        let mut out = Vec::new();
        set.write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn sets_are_read_and_written_as_upstream_does() {
        let cases = [
            ("{}", "{}"),
            (r#"{".":{}}"#, "{}"),
            (r#"{"f:a":{}}"#, r#"{"f:a":{}}"#),
            (r#"{"f:a":{".":{}}}"#, r#"{"f:a":{}}"#),
            (r#"{"f:a":{".":{},"f:b":{}}}"#, r#"{"f:a":{".":{},"f:b":{}}}"#),
            (r#"{"f:a":{"f:b":{}}}"#, r#"{"f:a":{"f:b":{}}}"#),
            (r#"{"f:b":{},"f:a":{}}"#, r#"{"f:a":{},"f:b":{}}"#),
            (r#"{"x:b":{"f:c":{}},"f:a":{}}"#, r#"{"f:a":{}}"#),
            (r#"{"f:a":{"x:b":{}}}"#, r#"{"f:a":{}}"#),
            (
                r#"{"k:{\"protocol\":\"TCP\",\"port\":80}":{},"v:\"x\"":{},"i:3":{},"f:a b":{}}"#,
                r#"{"f:a b":{},"k:{\"port\":80,\"protocol\":\"TCP\"}":{},"v:\"x\"":{},"i:3":{}}"#,
            ),
        ];
        for (text, want) in cases {
            let set: Set = serde_json::from_str(text).unwrap();
            assert_eq!(written(&set), want, "{text}");
            let value: Value = serde_json::from_str(text).unwrap();
            assert_eq!(Set::deserialize(&value).unwrap(), set, "{text}");
        }
    }

    #[test]
    fn what_is_no_set_is_refused() {
        for text in
            ["[]", "null", r#"{"f":{}}"#, r#"{"abc":{}}"#, r#"{"k:x":{}}"#, r#"{"i:x":{}}"#, "{"]
        {
            assert!(serde_json::from_str::<Set>(text).is_err(), "{text}");
        }
        assert!(Set::deserialize(&json!({"f:a": 3})).is_err());
    }
}
