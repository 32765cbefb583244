//! Builds a JSON value from a deserializer while checking it against a schema.
//!
//! One pass does everything: fields nobody knows are dropped and noted, doubled ones are noted,
//! JSON types are checked, and scalars with a format are brought into the form Go would write.
//! Problems are found in the order of the document, worded as `sigs.k8s.io/json` words them.

use std::fmt;

use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use serde_json::{Map, Number, Value};

use super::{
    either::Either,
    findings::{Findings, Found, Step},
    scalar,
};
use crate::schema::{Field, Omit, SchemaNode, Shape};

/// Reads one value at a place of the schema.
pub(super) struct Seed<'f> {
    pub(super) findings: &'f mut Findings,
    pub(super) node: SchemaNode,
}

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        if self.node.shape() != Shape::Any {
            return deserializer.deserialize_any(self);
        }
        match Either::of(self) {
            Ok(either) => either.read(deserializer),
            Err(_) => Value::deserialize(deserializer),
        }
    }
}

impl Seed<'_> {
    /// Notes a value of the wrong type; decoding goes on, as the first one is reported at the end.
    pub(super) fn mistyped<E: Error>(self, found: &Found) -> Result<Value, E> {
        let message = self.findings.type_error(found, self.node);
        // These read their value themselves, and Go stops when they cannot.
        let reads_itself = matches!(
            self.node.shape(),
            Shape::Quantity | Shape::Time | Shape::MicroTime | Shape::Duration | Shape::IntOrString
        );
        if reads_itself {
            return self.fatal(message);
        }
        self.findings.mistyped.get_or_insert(message);
        Ok(Value::Null)
    }

    pub(super) fn fatal<E: Error>(self, message: String) -> Result<Value, E> {
        self.findings.fatal = Some(message);
        Err(E::custom("stopped"))
    }

    fn number<E: Error>(self, number: Number) -> Result<Value, E> {
        let integer = number.as_i64().or_else(|| self.findings.whole(&number));
        match (self.node.shape(), integer) {
            (Shape::Int64, Some(n)) => Ok(Value::from(n)),
            (Shape::Int32 | Shape::IntOrString, Some(n)) if i32::try_from(n).is_ok() => {
                Ok(Value::from(n))
            }
            (Shape::Quantity, _) => self.text(number.to_string()),
            _ => self.mistyped(&Found::Number(number)),
        }
    }

    fn text<E: Error>(self, text: String) -> Result<Value, E> {
        let checked = match self.node.shape() {
            Shape::String | Shape::IntOrString => Ok(text),
            Shape::Bytes => match scalar::bytes(text) {
                Ok(text) => Ok(text),
                // As with a wrong type, Go goes on and reports it at the end.
                Err(message) => {
                    let message = self.findings.inner_error(message);
                    self.findings.mistyped.get_or_insert(message);
                    return Ok(Value::Null);
                }
            },
            Shape::Time => scalar::time(&text),
            Shape::MicroTime => scalar::micro_time(&text),
            Shape::Duration => scalar::duration(text),
            Shape::Quantity => scalar::quantity(&text),
            Shape::Struct
            | Shape::Map
            | Shape::List
            | Shape::Bool
            | Shape::Int32
            | Shape::Int64
            | Shape::Any => return self.mistyped(&Found::String),
        };
        match checked {
            Ok(text) => Ok(Value::String(text)),
            Err(message) => self.fatal(message),
        }
    }

    fn read_struct<'de, A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let Self { findings, node } = self;
        let mut object = Map::new();
        let mut seen = 0_u64;
        while let Some(found) = map.next_key_seed(Key { findings, node })? {
            let Some((at, field)) = found else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            // No struct of the table has more than 64 fields.
            if seen & (1 << at) != 0 {
                findings.note("duplicate field", field.name);
            }
            seen |= 1 << at;
            findings.path.push(Step::Field(node.go(), field));
            let value = map.next_value_seed(Seed { findings, node: node.at_field(field) })?;
            findings.path.pop();
            // An empty list of owners is not an absent one: it clears them.
            let clears_owners =
                field.name == "managedFields" && findings.path.len() == 1 && value.is_array();
            let is_absent = is_same_as_absent(field, node.at_field(field).shape(), &value);
            if clears_owners || !is_absent {
                insert(&mut object, field.name, value);
            }
        }
        Ok(Value::Object(object))
    }

    /// Go takes a list of numbers for bytes as well.
    fn read_bytes<'de, A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut bytes = Vec::new();
        while let Some(value) = seq.next_element::<Value>()? {
            let found = match value {
                Value::Null => Ok(0),
                Value::Number(n) => match n.as_u64().and_then(|n| u8::try_from(n).ok()) {
                    Some(byte) => Ok(byte),
                    None => Err(Found::Number(n)),
                },
                Value::Bool(_) => Err(Found::Bool),
                Value::String(_) => Err(Found::String),
                Value::Array(_) => Err(Found::Array),
                Value::Object(_) => Err(Found::Object),
            };
            match found {
                Ok(byte) => bytes.push(byte),
                Err(found) => {
                    let message = self.findings.unmarshal_error(&found.with_number(), "uint8");
                    self.findings.mistyped.get_or_insert(message);
                }
            }
        }
        Ok(Value::String(scalar::base64(&bytes)))
    }

    fn read_map<'de, A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let Self { findings, node } = self;
        let node = node.elem();
        let mut object = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            if object.contains_key(&key) {
                findings.note("duplicate field", &key);
            }
            let mut value = map.next_value_seed(Seed { findings, node })?;
            if value.is_null() {
                value = zero(node);
            }
            object.insert(key, value);
        }
        Ok(Value::Object(object))
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        if self.node.shape() == Shape::Bool {
            Ok(Value::Bool(value))
        } else {
            self.mistyped(&Found::Bool)
        }
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        self.number(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        self.number(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        match Number::from_f64(value) {
            Some(number) => self.number(number),
            None => self.mistyped(&Found::Number(0.into())),
        }
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        self.text(value.to_owned())
    }

    fn visit_string<E: Error>(self, value: String) -> Result<Value, E> {
        self.text(value)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        if self.node.shape() == Shape::Bytes {
            return self.read_bytes(seq);
        }
        if self.node.shape() != Shape::List {
            while seq.next_element::<IgnoredAny>()?.is_some() {}
            return self.mistyped(&Found::Array);
        }
        let Self { findings, node } = self;
        let node = node.elem();
        let mut list = Vec::new();
        loop {
            findings.path.push(Step::Index(list.len()));
            let next = seq.next_element_seed(Seed { findings, node })?;
            findings.path.pop();
            match next {
                None => return Ok(Value::Array(list)),
                Some(Value::Null) => list.push(zero(node)),
                Some(value) => list.push(value),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        if self.node.shape() == Shape::Struct {
            return self.read_struct(map);
        }
        if self.node.shape() == Shape::Map {
            return self.read_map(map);
        }
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        self.mistyped(&Found::Object)
    }
}

/// Finds the field a key names; `None` for one that is unknown, which is noted.
struct Key<'f> {
    findings: &'f mut Findings,
    node: SchemaNode,
}

impl<'de> DeserializeSeed<'de> for Key<'_> {
    type Value = Option<(usize, &'static Field)>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Key<'_> {
    type Value = Option<(usize, &'static Field)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: Error>(self, key: &str) -> Result<Self::Value, E> {
        let fields = self.node.fields();
        match fields.binary_search_by(|field| field.name.cmp(key)) {
            Ok(at) => Ok(Some((at, &fields[at]))),
            Err(_) => {
                self.findings.note("unknown field", key);
                Ok(None)
            }
        }
    }
}

/// Whether Go could not tell this value from one that was never given.
fn is_same_as_absent(field: &Field, shape: Shape, value: &Value) -> bool {
    if value.is_null() {
        return true;
    }
    if field.is_pointer {
        return false;
    }
    match (shape, value) {
        (Shape::String, Value::String(text)) => text.is_empty(),
        (Shape::Bytes, Value::String(text)) => text.is_empty() && field.omit != Omit::Never,
        (Shape::Bool, Value::Bool(value)) => !value,
        (Shape::Int32 | Shape::Int64 | Shape::IntOrString, Value::Number(n)) => {
            n.as_i64() == Some(0)
        }
        (Shape::List, Value::Array(list)) => list.is_empty() && field.omit != Omit::Never,
        (Shape::Map, Value::Object(map)) => map.is_empty() && field.omit != Omit::Never,
        _ => false,
    }
}

/// What Go puts in a list or map where JSON says null, and writes of a field nobody set.
pub(super) fn zero(node: SchemaNode) -> Value {
    match node.shape() {
        Shape::String => Value::from(""),
        Shape::Bool => Value::from(false),
        Shape::Int32 | Shape::Int64 | Shape::IntOrString => Value::from(0),
        Shape::Quantity => Value::from("0"),
        Shape::Duration => Value::from("0s"),
        Shape::Struct => Value::Object(Map::new()),
        Shape::Map | Shape::List | Shape::Bytes | Shape::Time | Shape::MicroTime | Shape::Any => {
            Value::Null
        }
    }
}

/// Puts a field in, or, when it is doubled, over what is there: structs merge, as Go decodes both
/// into the same memory.
fn insert(object: &mut Map<String, Value>, name: &str, value: Value) {
    match (object.get_mut(name), value) {
        (Some(Value::Object(there)), Value::Object(more)) => {
            for (key, value) in more {
                insert(there, &key, value);
            }
        }
        (Some(there), value) => *there = value,
        (None, value) => drop(object.insert(name.to_owned(), value)),
    }
}
