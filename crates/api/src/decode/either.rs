//! Schemas of definitions where something else may be: Go reads those by code of their own.

use std::{fmt, mem};

use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Number, Value};

use super::{
    findings::{Findings, Found, Step, Wording},
    walk::Seed,
};
use crate::{json::whole, schema::SchemaNode};

/// What may be at a place whose type the table has no shape for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A number.
    Float,
    /// A schema, or whether there may be anything.
    OrBool,
    /// A schema, or a list of them.
    OrArray,
    /// A schema, or a list of names.
    OrNames,
}

/// Reads what is at such a place.
pub(super) struct Either<'f> {
    seed: Seed<'f>,
    kind: Kind,
}

impl<'f> Either<'f> {
    /// The reader of a place, if it is one of those; the others keep what they are given.
    pub(super) fn of(seed: Seed<'f>) -> Result<Self, Seed<'f>> {
        let kind = match seed.node.go() {
            "float64" => Kind::Float,
            "v1.JSONSchemaPropsOrBool" => Kind::OrBool,
            "v1.JSONSchemaPropsOrArray" => Kind::OrArray,
            "v1.JSONSchemaPropsOrStringArray" => Kind::OrNames,
            _ => return Err(seed),
        };
        Ok(Self { seed, kind })
    }

    pub(super) fn read<'de, D: Deserializer<'de>>(self, from: D) -> Result<Value, D::Error> {
        from.deserialize_any(self)
    }

    /// What comes of something that may not be here; lists are not looked for in it.
    fn other<E: Error>(self, found: &Found) -> Result<Value, E> {
        match self.kind {
            Kind::Float => self.seed.mistyped(found),
            Kind::OrBool => self.seed.fatal("boolean or JSON schema expected".to_owned()),
            Kind::OrArray | Kind::OrNames => Ok(Value::Null),
        }
    }

    fn number<E: Error>(self, number: Number) -> Result<Value, E> {
        match self.kind {
            Kind::Float => Ok(Value::Number(shortest(number))),
            Kind::OrBool | Kind::OrArray | Kind::OrNames => self.other(&Found::Number(number)),
        }
    }
}

/// A number as Go writes those that it holds as `float64`: without a fraction that says nothing.
fn shortest(number: Number) -> Number {
    let fraction = number.as_f64().filter(|_| number.is_f64());
    fraction.and_then(whole).map_or(number, Number::from)
}

/// A name in a list of names.
fn name(findings: &mut Findings, given: Value) -> Value {
    let found = match given {
        Value::String(_) => return given,
        Value::Null => return Value::from(""),
        Value::Bool(_) => Found::Bool,
        Value::Number(number) => Found::Number(number),
        Value::Array(_) => Found::Array,
        Value::Object(_) => Found::Object,
    };
    if findings.mistyped.is_none() {
        findings.mistyped = Some(findings.unmarshal_error(found.name(), "string"));
    }
    Value::Null
}

/// Reads something that Go decodes by itself: fields that nobody knows are not told of there, and
/// the first value of a wrong type is the end.
fn apart<E: Error>(
    findings: &mut Findings,
    node: SchemaNode,
    read: impl FnOnce(Seed<'_>) -> Result<Value, E>,
) -> Result<Value, E> {
    let is_converted = findings.wording == Wording::Converted;
    let mut inner = Findings { wording: Wording::Decoded, ..Findings::default() };
    // The outer decoder adds its path to what the inner one says, but for the converter.
    if !is_converted {
        inner.path = mem::take(&mut findings.path);
    }
    let result = read(Seed { findings: &mut inner, node });
    if !is_converted {
        findings.path = inner.path;
    }
    match inner.fatal.or(inner.mistyped) {
        Some(message) => Seed { findings, node }.fatal(message),
        None => result,
    }
}

impl<'de> Visitor<'de> for Either<'_> {
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
        match self.kind {
            Kind::OrBool => Ok(Value::Bool(value)),
            Kind::Float | Kind::OrArray | Kind::OrNames => self.other(&Found::Bool),
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
            None => self.other(&Found::Number(0.into())),
        }
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<Value, E> {
        self.other(&Found::String)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let is_list = matches!(self.kind, Kind::OrArray | Kind::OrNames);
        if !is_list {
            while seq.next_element::<IgnoredAny>()?.is_some() {}
            return self.other(&Found::Array);
        }
        let Self { seed: Seed { findings, node }, kind } = self;
        apart(findings, node.elem(), |Seed { findings, node }| {
            let mut list = Vec::new();
            loop {
                findings.path.push(Step::Index(list.len()));
                let next = match kind {
                    Kind::OrNames => {
                        let next = seq.next_element::<Value>();
                        next.map(|it| it.map(|given| name(findings, given)))
                    }
                    Kind::Float | Kind::OrBool | Kind::OrArray => {
                        seq.next_element_seed(Seed { findings, node })
                    }
                };
                findings.path.pop();
                match next? {
                    None if list.is_empty() => return Ok(Value::Null),
                    None => return Ok(Value::Array(list)),
                    Some(value) => list.push(value),
                }
            }
        })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        if self.kind == Kind::Float {
            while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            return self.other(&Found::Object);
        }
        let Self { seed: Seed { findings, node }, .. } = self;
        apart(findings, node.elem(), |seed| seed.visit_map(map))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{Status, builtin, decode};

    /// What a definition becomes whose schema has `spec` in it.
    fn decoded(spec: &Value) -> Result<Value, Status> {
        let body = json!({"apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition", "spec": {"versions": [{"name": "v1", "schema": {
                "openAPIV3Schema": {"properties": {"spec": spec}}}}]}});
        let registry = builtin::registry();
        let resource = registry.iter().find(|it| it.kind == "CustomResourceDefinition").unwrap();
        let strict = decode::FieldValidation::Strict;
        let found = decode::object(resource, body.to_string().as_bytes(), strict)?;
        let version = &found.object["spec"]["versions"][0];
        Ok(version["schema"]["openAPIV3Schema"]["properties"]["spec"].clone())
    }

    #[test]
    fn schemas_are_read_as_such_wherever_they_are() {
        let cases = [
            (
                json!({"items": {"type": "", "enum": [], "whatever": 1, "maxLength": 5,
                                 "minimum": 1.0, "multipleOf": 0.5}}),
                json!({"items": {"maxLength": 5, "minimum": 1, "multipleOf": 0.5}}),
            ),
            (
                json!({"items": [{"type": "string", "title": ""}]}),
                json!({"items": [{"type": "string"}]}),
            ),
            (
                json!({"additionalProperties": {"items": {"nullable": false}}}),
                json!({"additionalProperties": {"items": {}}}),
            ),
            (json!({"additionalProperties": false}), json!({"additionalProperties": false})),
            (json!({"items": "x"}), json!({})),
            (
                json!({"dependencies": {"a": ["b", null]}}),
                json!({"dependencies": {"a": ["b", ""]}}),
            ),
        ];
        for (given, want) in cases {
            assert_eq!(decoded(&given).unwrap(), want, "{given}");
        }
    }

    #[test]
    fn what_is_no_schema_is_refused() {
        let field = "Go struct field JSONSchemaProps.spec.versions.schema.openAPIV3Schema";
        let mistyped = |found: &str, path: &str, wanted: &str| {
            format!(
                "json: cannot unmarshal {found} into {field}.properties.{path} of type {wanted}"
            )
        };
        let cases = [
            (json!({"additionalProperties": "x"}), "boolean or JSON schema expected".to_owned()),
            (json!({"additionalProperties": [1]}), "boolean or JSON schema expected".to_owned()),
            (json!({"items": {"maxLength": "5"}}), mistyped("string", "items.maxLength", "int64")),
            (
                json!({"additionalProperties": {"properties": {"x": {"minimum": "1"}}}}),
                mistyped("string", "additionalProperties.properties.minimum", "float64"),
            ),
            (json!({"maximum": true}), mistyped("bool", "maximum", "float64")),
            (json!({"dependencies": {"a": [1]}}), mistyped("number", "dependencies", "string")),
        ];
        for (given, want) in cases {
            let found = decoded(&given).unwrap_err();
            assert!(found.message.ends_with(&want), "{given}: {}", found.message);
        }
    }
}
