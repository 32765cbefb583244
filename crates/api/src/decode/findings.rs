//! What decoding finds wrong, and where.

use serde_json::Number;

use super::scalar;
use crate::{
    json::whole,
    quote::quoted,
    schema::{Field, SchemaNode, Shape},
};

/// More problems than this are not listed.
const PROBLEMS_MAX: usize = 100;

/// What was found on the way.
#[derive(Default)]
pub(super) struct Findings {
    /// Unknown and doubled fields.
    pub(super) strict: Vec<String>,
    /// The first value of a wrong type.
    pub(super) mistyped: Option<String>,
    /// What ended the decoding.
    pub(super) fatal: Option<String>,
    /// How wrong types are worded.
    pub(super) wording: Wording,
    /// The way from the root to where decoding is.
    pub(super) path: Vec<Step>,
}

/// Go has two ways to make an object, with words of their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Wording {
    /// From bytes, by `sigs.k8s.io/json`.
    #[default]
    Decoded,
    /// From maps and lists, by the converter of `runtime`; for strategic merge patches.
    Converted,
}

/// A value of a type that was not wanted.
pub(super) enum Found {
    String,
    Bool,
    Number(Number),
    Array,
    Object,
}

impl Found {
    /// What Go's decoder calls it.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Bool => "bool",
            Self::Number(_) => "number",
            Self::Array => "array",
            Self::Object => "object",
        }
    }

    /// Its name; numbers are spelled out, as is usual where another number was wanted.
    pub(super) fn with_number(&self) -> String {
        match self {
            Self::Number(number) => format!("number {number}"),
            Self::String | Self::Bool | Self::Array | Self::Object => self.name().to_owned(),
        }
    }

    /// The kind of the Go value that stands for it.
    fn go_kind(&self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Bool => "bool",
            Self::Number(number) if number.is_f64() => "float64",
            Self::Number(_) => "int64",
            Self::Array => "slice",
            Self::Object => "map",
        }
    }
}

/// One step of the way from the root to where we are.
pub(super) enum Step {
    /// A field of a struct, and the Go name of the struct.
    Field(&'static str, &'static Field),
    /// A key of free-form JSON.
    Key(String),
    /// A position in a list.
    Index(usize),
}

impl Findings {
    /// Where we are: `spec.containers[0]`.
    pub(super) fn place(&self) -> String {
        let mut text = String::new();
        let mut add = |name: &str| {
            if !text.is_empty() {
                text.push('.');
            }
            text.push_str(name);
        };
        let mut steps = self.path.iter().peekable();
        let mut segment = String::new();
        while let Some(step) = steps.next() {
            match step {
                Step::Field(_, field) => field.name.clone_into(&mut segment),
                Step::Key(key) => segment.clone_from(key),
                // Only where a list is all there is: elsewhere it follows a name, see below.
                Step::Index(at) => segment = format!("[{at}]"),
            }
            while let Some(Step::Index(at)) = steps.peek() {
                segment = format!("{segment}[{at}]");
                steps.next();
            }
            add(&segment);
        }
        text
    }

    /// Where the field `name` of where we are is.
    fn path_to(&self, name: &str) -> String {
        match self.place() {
            place if place.is_empty() => name.to_owned(),
            place => format!("{place}.{name}"),
        }
    }

    /// Notes that the field `name` of where we are is unknown or doubled.
    pub(super) fn note(&mut self, problem: &str, name: &str) {
        if self.strict.len() < PROBLEMS_MAX {
            let text = format!("{problem} {}", quoted(&self.path_to(name)));
            if !self.strict.contains(&text) {
                self.strict.push(text);
            }
        }
    }

    /// What is wrong with `found` at `node`.
    pub(super) fn type_error(&self, found: &Found, node: SchemaNode) -> String {
        let shape = node.shape();
        if shape == Shape::Quantity {
            return scalar::QUANTITY_FORMAT.to_owned();
        }
        if self.wording == Wording::Converted {
            return conversion_error(found, node);
        }
        match shape {
            Shape::Time | Shape::MicroTime | Shape::Duration => {
                self.unmarshal_error(found.name(), "string")
            }
            Shape::IntOrString => self.unmarshal_error(&found.with_number(), "int32"),
            Shape::Int32 | Shape::Int64 => self.unmarshal_error(&found.with_number(), node.go()),
            Shape::Struct
            | Shape::Map
            | Shape::List
            | Shape::String
            | Shape::Bool
            | Shape::Bytes
            | Shape::Any
            | Shape::Quantity => self.unmarshal_error(found.name(), node.go()),
        }
    }

    /// Words what is wrong with the inside of a string.
    pub(super) fn inner_error(&self, message: String) -> String {
        match self.wording {
            Wording::Decoded => message,
            Wording::Converted => format!("error decoding from json: {message}"),
        }
    }

    /// The integer a number written as a fraction stands for: `-0` always, `1.0` where Go converts
    /// numbers instead of parsing them.
    pub(super) fn whole(&self, number: &Number) -> Option<i64> {
        let value = number.as_f64()?;
        let is_zero = value == 0.0 && value.is_sign_negative();
        let is_whole = self.wording == Wording::Converted && value.fract() == 0.0;
        if is_zero || is_whole { whole(value) } else { None }
    }

    /// `json: cannot unmarshal string into Go struct field PodSpec.spec.containers of type ...`.
    pub(super) fn unmarshal_error(&self, found: &str, wanted: &str) -> String {
        let mut fields = self.path.iter().filter_map(|step| match step {
            Step::Field(owner, field) => Some((owner, field)),
            Step::Key(_) | Step::Index(_) => None,
        });
        let Some((owner, _)) = fields.clone().next_back() else {
            return format!("json: cannot unmarshal {found} into Go value of type {wanted}");
        };
        let mut path = String::new();
        for (_, field) in &mut fields {
            for part in [field.via, field.name] {
                if !part.is_empty() {
                    path.push('.');
                    path.push_str(part);
                }
            }
        }
        let owner = owner.rsplit_once('.').map_or(*owner, |(_, name)| name);
        format!(
            "json: cannot unmarshal {found} into Go struct field {owner}{path} of type {wanted}"
        )
    }
}

fn conversion_error(found: &Found, node: SchemaNode) -> String {
    let (kind, go) = (found.go_kind(), node.go());
    let is_number = matches!(found, Found::Number(_));
    match node.shape() {
        Shape::Struct => format!("cannot restore struct from: {kind}"),
        Shape::Map => format!("cannot restore map from {kind}"),
        Shape::List | Shape::Bytes => format!("cannot restore slice from {kind}"),
        // Go can turn numbers into each other and into strings, and has to be kept from it.
        Shape::String if kind == "int64" => format!("cannot convert {kind} to {go}"),
        Shape::Int32 | Shape::Int64 if is_number => format!("cannot convert {kind} to {go}"),
        Shape::String => "unrecognized type: string".to_owned(),
        Shape::Bool => "unrecognized type: bool".to_owned(),
        Shape::Int32 => "unrecognized type: int32".to_owned(),
        Shape::Int64 => "unrecognized type: int64".to_owned(),
        Shape::IntOrString => {
            format!("json: cannot unmarshal {} into Go value of type int32", found.with_number())
        }
        Shape::Any => format!("unrecognized type: {go}"),
        Shape::Time | Shape::MicroTime | Shape::Duration | Shape::Quantity => {
            format!("json: cannot unmarshal {} into Go value of type string", found.name())
        }
    }
}
