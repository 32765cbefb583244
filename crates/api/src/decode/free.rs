//! Reads JSON that no schema describes.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::findings::{Findings, Step};

/// Reads JSON of any shape, noting doubled keys.
pub(super) struct Free<'f> {
    pub(super) findings: &'f mut Findings,
}

impl<'de> DeserializeSeed<'de> for Free<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Free<'_> {
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
        Ok(value.into())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E: Error>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let findings = self.findings;
        let mut list = Vec::new();
        loop {
            findings.path.push(Step::Index(list.len()));
            let next = seq.next_element_seed(Free { findings })?;
            findings.path.pop();
            match next {
                None => return Ok(Value::Array(list)),
                Some(value) => list.push(value),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let findings = self.findings;
        let mut object = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            if object.contains_key(&key) {
                findings.note("duplicate field", &key);
            }
            findings.path.push(Step::Key(key));
            let value = map.next_value_seed(Free { findings })?;
            if let Some(Step::Key(key)) = findings.path.pop() {
                object.insert(key, value);
            }
        }
        Ok(Value::Object(object))
    }
}
