//! Reads the JSON of a stored object, and sets its managed fields aside without a look at them.

use std::fmt;

use lockstep_api::strategy::Json;
use serde::{
    Deserializer,
    de::{DeserializeSeed, MapAccess, Visitor},
};
use serde_json::{Value, value::RawValue};

/// The object without `metadata.managedFields`, and the text of those; empty when there are none.
pub(super) fn parse(body: &[u8]) -> Result<(Json, &[u8]), serde_json::Error> {
    let mut managed = None;
    let mut reader = serde_json::Deserializer::from_slice(body);
    let json = Members { managed: &mut managed, depth: 0 }.deserialize(&mut reader)?;
    Ok((json, managed.map_or(&[], |text| text.get().as_bytes())))
}

/// Reads the members of an object: that of `metadata` in it, when the depth is 0.
struct Members<'a, 'de> {
    managed: &'a mut Option<&'de RawValue>,
    depth: u8,
}

impl<'de> DeserializeSeed<'de> for Members<'_, 'de> {
    type Value = Json;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Json, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Members<'_, 'de> {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Json, A::Error> {
        let mut json = Json::new();
        while let Some(key) = map.next_key::<String>()? {
            match (self.depth, key.as_str()) {
                (0, "metadata") => {
                    let below = Members { managed: &mut *self.managed, depth: 1 };
                    json.insert(key, Value::Object(map.next_value_seed(below)?));
                }
                (1, "managedFields") => *self.managed = Some(map.next_value()?),
                _ => drop(json.insert(key, map.next_value()?)),
            }
        }
        Ok(json)
    }
}
