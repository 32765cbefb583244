//! Protobuf bodies, as Go clients send them for built-in kinds.
//!
//! A body is turned into the JSON that says the same, by the numbers the table of types has for
//! fields, and then decoded like any other. Go writes zero values of fields that are no pointers;
//! they need no care here, since [decoding](super) leaves out what Go cannot tell from absent.

use jiff::Timestamp;
use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};
use serde_json::{Map, Value};

use super::{Gvk, scalar};
use crate::{
    schema::{SchemaNode, Shape},
    status::Status,
    strategy::Json,
};

/// What every body begins with.
const MAGIC: &[u8] = b"k8s\0";
/// How deep messages may lie in each other. The deepest of Kubernetes' own are about 20 deep.
const DEPTH_MAX: usize = 64;

/// Turns a protobuf body into JSON, as bytes.
///
/// # Errors
/// 400 when the body is malformed or of a kind that is not known; 415 when its kind, a custom one,
/// has no form in protobuf.
pub fn protobuf_to_json(body: &[u8]) -> Result<Vec<u8>, Status> {
    let envelope = Envelope::read(body).map_err(|problem| unreadable(&problem))?;
    let Envelope { api_version, kind, raw } = envelope;
    let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
    let given = Gvk { group, version, kind: &kind };
    // Options are of every group and version: typed clients send those of the object they delete.
    let options = Gvk { group: "", version: "v1", kind: "DeleteOptions" };
    let node = if kind == options.kind { options.schema() } else { given.schema() };
    let Some(node) = node else {
        return Err(Status::bad_request(format!(
            "no kind {kind:?} is registered for version {api_version:?} in scheme \
             \"pkg/api/legacyscheme/scheme.go:30\""
        )));
    };
    if !node.has_protobuf() {
        return Err(Status::unsupported_media_type(&["application/json", "application/yaml"]));
    }
    let mut object = Map::new();
    message(&node, raw, &mut object, 0).map_err(|problem| unreadable(&problem))?;
    object.insert("apiVersion".to_owned(), Value::from(api_version.as_str()));
    object.insert("kind".to_owned(), Value::from(kind.as_str()));
    Ok(Value::Object(object).to_string().into_bytes())
}

fn unreadable(problem: &Problem) -> Status {
    Status::bad_request(format!("cannot read the protobuf body: {problem}"))
}

/// Why bytes are no message of the kind they should be.
#[derive(Debug, thiserror::Error)]
enum Problem {
    #[error(
        "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"
    )]
    Magic,
    #[error("it is cut off, or a length in it goes beyond its end")]
    CutOff,
    #[error("field {field} has another wire type than expected")]
    WireType { field: &'static str },
    #[error("field {field} is no UTF-8")]
    NotUtf8 { field: &'static str },
    #[error("field {field} holds no JSON")]
    NotJson { field: &'static str },
    #[error("field {field} holds a time that is out of range")]
    Time { field: &'static str },
    #[error("messages lie in each other more than {DEPTH_MAX} deep")]
    TooDeep,
    #[error("it is encoded as {0:?}, which is not known")]
    Encoding(String),
}

type Read<T> = Result<T, Problem>;

/// `runtime.Unknown`: what the body is, and the body.
struct Envelope<'a> {
    api_version: String,
    kind: String,
    raw: &'a [u8],
}

impl<'a> Envelope<'a> {
    fn read(body: &'a [u8]) -> Read<Self> {
        let mut rest = body.strip_prefix(MAGIC).ok_or(Problem::Magic)?;
        let mut envelope = Self { api_version: String::new(), kind: String::new(), raw: &[] };
        while let Some(part) = Part::take(&mut rest)? {
            match (part.number, part.wire) {
                (1, Wire::Bytes(mut meta)) => {
                    while let Some(part) = Part::take(&mut meta)? {
                        match part.number {
                            1 => envelope.api_version = part.wire.text("apiVersion")?.to_owned(),
                            2 => envelope.kind = part.wire.text("kind")?.to_owned(),
                            _ => {}
                        }
                    }
                }
                (2, Wire::Bytes(raw)) => envelope.raw = raw,
                (3, Wire::Bytes(encoding)) if !encoding.is_empty() => {
                    return Err(Problem::Encoding(String::from_utf8_lossy(encoding).into_owned()));
                }
                _ => {}
            }
        }
        Ok(envelope)
    }
}

/// One field of a message as it stands on the wire.
struct Part<'a> {
    number: u32,
    wire: Wire<'a>,
}

#[derive(Clone, Copy)]
enum Wire<'a> {
    Varint(u64),
    Bytes(&'a [u8]),
    Double(f64),
    /// Of a form that no field of a kind has.
    Other,
}

impl<'a> Part<'a> {
    /// Takes the next field of a message, if there is one.
    fn take(rest: &mut &'a [u8]) -> Read<Option<Self>> {
        if rest.is_empty() {
            return Ok(None);
        }
        let (number, wire_type) = decode_key(rest).map_err(|_| Problem::CutOff)?;
        let wire = match wire_type {
            WireType::Varint => Wire::Varint(decode_varint(rest).map_err(|_| Problem::CutOff)?),
            WireType::LengthDelimited => {
                let length = decode_varint(rest).map_err(|_| Problem::CutOff)?;
                let length = usize::try_from(length).map_err(|_| Problem::CutOff)?;
                let (bytes, after) = rest.split_at_checked(length).ok_or(Problem::CutOff)?;
                *rest = after;
                Wire::Bytes(bytes)
            }
            WireType::SixtyFourBit => {
                let (bytes, after) = rest.split_first_chunk::<8>().ok_or(Problem::CutOff)?;
                let double = f64::from_le_bytes(*bytes);
                *rest = after;
                Wire::Double(double)
            }
            WireType::ThirtyTwoBit | WireType::StartGroup | WireType::EndGroup => {
                skip_field(wire_type, number, rest, DecodeContext::default())
                    .map_err(|_| Problem::CutOff)?;
                Wire::Other
            }
        };
        Ok(Some(Self { number, wire }))
    }
}

impl<'a> Wire<'a> {
    fn bytes(self, field: &'static str) -> Read<&'a [u8]> {
        match self {
            Self::Bytes(bytes) => Ok(bytes),
            Self::Varint(_) | Self::Double(_) | Self::Other => Err(Problem::WireType { field }),
        }
    }

    fn text(self, field: &'static str) -> Read<&'a str> {
        std::str::from_utf8(self.bytes(field)?).map_err(|_| Problem::NotUtf8 { field })
    }

    /// An integer, in two's complement.
    fn integer(self, field: &'static str) -> Read<i64> {
        match self {
            Self::Varint(value) => Ok(value.cast_signed()),
            Self::Bytes(_) | Self::Double(_) | Self::Other => Err(Problem::WireType { field }),
        }
    }
}

/// Reads a message of a struct into `object`. Numbers that are not known are of a newer client.
fn message(node: &SchemaNode, bytes: &[u8], object: &mut Json, depth: usize) -> Read<()> {
    inner_message(node, "", bytes, object, depth)
}

/// Reads a message whose fields lie in the struct `node` at `outer`: Go embeds some messages in
/// others, so that JSON has one object where protobuf has two.
fn inner_message(
    node: &SchemaNode,
    outer: &str,
    mut rest: &[u8],
    object: &mut Json,
    depth: usize,
) -> Read<()> {
    if depth > DEPTH_MAX {
        return Err(Problem::TooDeep);
    }
    while let Some(part) = Part::take(&mut rest)? {
        let place = format!("{outer}{}", part.number);
        if let Some(field) = node.fields().iter().find(|field| field.proto == place) {
            put(&node.at_field(field), field.name, part.wire, object, depth + 1)?;
            continue;
        }
        let below = place + ".";
        if let Some(field) = node.fields().iter().find(|field| field.proto.starts_with(&below)) {
            inner_message(node, &below, part.wire.bytes(field.via)?, object, depth + 1)?;
        }
    }
    Ok(())
}

/// Puts one value of a field into an object: the value itself, or one more element or entry.
fn put(
    node: &SchemaNode,
    name: &'static str,
    wire: Wire<'_>,
    object: &mut Json,
    depth: usize,
) -> Read<()> {
    match node.shape() {
        Shape::Struct => {
            let below = object.entry(name).or_insert_with(|| Value::Object(Map::new()));
            if let Value::Object(below) = below {
                message(node, wire.bytes(name)?, below, depth)?;
            }
        }
        Shape::Map => {
            let (key, value) = entry(node, name, wire.bytes(name)?, depth)?;
            let map = object.entry(name).or_insert_with(|| Value::Object(Map::new()));
            if let Value::Object(map) = map {
                map.insert(key, value);
            }
        }
        Shape::List if !node.is_message() => {
            let element = value(&node.elem(), name, wire, depth)?;
            let list = object.entry(name).or_insert_with(|| Value::Array(Vec::new()));
            if let Value::Array(list) = list {
                list.push(element);
            }
        }
        Shape::List
        | Shape::String
        | Shape::Bool
        | Shape::Int32
        | Shape::Int64
        | Shape::Bytes
        | Shape::Time
        | Shape::MicroTime
        | Shape::Duration
        | Shape::Quantity
        | Shape::IntOrString
        | Shape::Any => {
            object.insert(name.to_owned(), value(node, name, wire, depth)?);
        }
    }
    Ok(())
}

/// An entry of a map: a message of a key and a value.
fn entry(
    node: &SchemaNode,
    name: &'static str,
    mut rest: &[u8],
    depth: usize,
) -> Read<(String, Value)> {
    let elem = node.elem();
    let mut key = String::new();
    let mut found = None;
    while let Some(part) = Part::take(&mut rest)? {
        match part.number {
            1 => part.wire.text(name)?.clone_into(&mut key),
            2 => found = Some(value(&elem, name, part.wire, depth + 1)?),
            _ => {}
        }
    }
    let found = match found {
        Some(found) => found,
        None => value(&elem, name, Wire::Bytes(&[]), depth + 1)?,
    };
    Ok((key, found))
}

fn value(node: &SchemaNode, name: &'static str, wire: Wire<'_>, depth: usize) -> Read<Value> {
    Ok(match node.shape() {
        Shape::Struct => {
            let mut object = Map::new();
            message(node, wire.bytes(name)?, &mut object, depth + 1)?;
            Value::Object(object)
        }
        Shape::List => {
            let (mut rest, mut list) = (wire.bytes(name)?, Vec::new());
            while let Some(part) = Part::take(&mut rest)? {
                list.push(value(&node.elem(), name, part.wire, depth + 1)?);
            }
            Value::Array(list)
        }
        // Maps are read entry by entry, and no built-in kind has durations.
        Shape::Map | Shape::Duration => return Err(Problem::WireType { field: name }),
        Shape::String => Value::from(wire.text(name)?),
        Shape::Bool => Value::from(wire.integer(name)? != 0),
        Shape::Int32 | Shape::Int64 => Value::from(wire.integer(name)?),
        Shape::Bytes => Value::from(scalar::base64(wire.bytes(name)?)),
        Shape::Time => time(name, wire.bytes(name)?, 0)?,
        Shape::MicroTime => time(name, wire.bytes(name)?, 6)?,
        Shape::Quantity => Value::from(Scalars::read(name, wire.bytes(name)?)?.text(name, 0)?),
        Shape::IntOrString => {
            let scalars = Scalars::read(name, wire.bytes(name)?)?;
            match scalars.integers[0] {
                0 => Value::from(scalars.integers[1]),
                _ => Value::from(scalars.text(name, 2)?),
            }
        }
        Shape::Any if node.go() == "float64" => double(name, wire)?,
        Shape::Any if node.go().starts_with("v1.JSONSchemaPropsOr") => {
            alternative(node, name, wire.bytes(name)?, depth)?
        }
        Shape::Any => {
            let scalars = Scalars::read(name, wire.bytes(name)?)?;
            match scalars.bytes[0] {
                [] => Value::Null,
                raw => serde_json::from_slice(raw).map_err(|_| Problem::NotJson { field: name })?,
            }
        }
    })
}

/// A number as JSON writes it: whole ones without a fraction.
fn double(field: &'static str, wire: Wire<'_>) -> Read<Value> {
    let Wire::Double(number) = wire else { return Err(Problem::WireType { field }) };
    let whole = (number.fract() == 0.0).then(|| format!("{number:.0}").parse::<i64>().ok());
    Ok(whole.flatten().map_or_else(|| Value::from(number), Value::from))
}

/// What may be a schema, or something else: in JSON just that, in protobuf a message of both.
fn alternative(
    node: &SchemaNode,
    name: &'static str,
    mut rest: &[u8],
    depth: usize,
) -> Read<Value> {
    let is_bool = node.go().ends_with("OrBool");
    let (mut single, mut many, mut is_allowed) = (None, Vec::new(), false);
    while let Some(part) = Part::take(&mut rest)? {
        match (part.number, is_bool) {
            (1, true) => is_allowed = part.wire.integer(name)? != 0,
            (1, false) | (2, true) => {
                single = Some(value(&node.elem(), name, part.wire, depth + 1)?);
            }
            (2, false) if node.go().ends_with("OrStringArray") => {
                many.push(Value::from(part.wire.text(name)?));
            }
            (2, false) => many.push(value(&node.elem(), name, part.wire, depth + 1)?),
            _ => {}
        }
    }
    let schemas = single.iter_mut().chain(&mut many).filter(|schema| schema.is_object());
    schemas.for_each(|schema| drop_zeros(&node.elem(), schema));
    Ok(match single {
        _ if !many.is_empty() => Value::Array(many),
        Some(schema) => schema,
        None if is_bool => Value::Bool(is_allowed),
        None => Value::Null,
    })
}

/// Takes out what Go writes into protobuf although it is not there, where no schema is applied
/// later that would.
fn drop_zeros(node: &SchemaNode, value: &mut Value) {
    match value {
        Value::Object(object) if node.shape() == Shape::Struct => {
            for field in node.fields() {
                let is_zero = |value: &Value| match value {
                    Value::Null | Value::Bool(false) => true,
                    Value::String(text) => text.is_empty(),
                    Value::Array(list) => list.is_empty(),
                    Value::Object(members) => members.is_empty(),
                    Value::Number(number) => number.as_f64() == Some(0.0),
                    Value::Bool(true) => false,
                };
                if !field.is_pointer && object.get(field.name).is_some_and(is_zero) {
                    object.remove(field.name);
                }
                if let Some(below) = object.get_mut(field.name) {
                    drop_zeros(&node.at_field(field), below);
                }
            }
        }
        Value::Object(object) if node.shape() == Shape::Map => {
            object.values_mut().for_each(|value| drop_zeros(&node.elem(), value));
        }
        Value::Array(list) if node.shape() == Shape::List => {
            list.iter_mut().for_each(|value| drop_zeros(&node.elem(), value));
        }
        Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::Array(_)
        | Value::Object(_) => {}
    }
}

/// The first fields of a small message of scalars, by their numbers from 1 on.
#[derive(Default)]
struct Scalars<'a> {
    integers: [i64; 3],
    bytes: [&'a [u8]; 3],
}

impl<'a> Scalars<'a> {
    fn read(field: &'static str, mut rest: &'a [u8]) -> Read<Self> {
        let mut all = Self::default();
        while let Some(part) = Part::take(&mut rest)? {
            let at = (part.number as usize).wrapping_sub(1);
            match part.wire {
                Wire::Varint(_) if at < 3 => all.integers[at] = part.wire.integer(field)?,
                Wire::Bytes(bytes) if at < 3 => all.bytes[at] = bytes,
                Wire::Varint(_) | Wire::Bytes(_) | Wire::Double(_) | Wire::Other => {}
            }
        }
        Ok(all)
    }

    fn text(&self, field: &'static str, at: usize) -> Read<&'a str> {
        std::str::from_utf8(self.bytes[at]).map_err(|_| Problem::NotUtf8 { field })
    }
}

/// A moment: nothing for Go's zero time, which is the year 1.
fn time(field: &'static str, bytes: &[u8], digits: u8) -> Read<Value> {
    /// Seconds from Go's zero time to 1970.
    const ZERO_SECONDS: i64 = -62_135_596_800;
    // Go writes a time that is not set as an empty message.
    if bytes.is_empty() {
        return Ok(Value::Null);
    }
    let [seconds, nanoseconds, _] = Scalars::read(field, bytes)?.integers;
    if seconds == ZERO_SECONDS {
        return Ok(Value::Null);
    }
    // Of moments in seconds, Go's decoder does not look at the fraction.
    let nanoseconds = if digits == 0 { 0 } else { nanoseconds };
    let nanoseconds = i32::try_from(nanoseconds).map_err(|_| Problem::Time { field })?;
    let moment = Timestamp::new(seconds, nanoseconds).map_err(|_| Problem::Time { field })?;
    Ok(Value::from(format!("{moment:.*}", usize::from(digits))))
}

#[cfg(test)]
mod tests;
