//! Where in an object one is: what the schema says of the value there.

use lockstep_api::{
    Resource,
    decode::metadata_node,
    definition::schema::{Additional, Schema},
    resource::Text,
    schema::{self, SchemaNode, Shape},
};
use serde_json::Value;

/// A place in an object.
#[derive(Clone, Copy, Debug)]
pub enum Place<'a> {
    /// What a schema describes.
    Known(SchemaNode),
    /// What the schema of a definition describes: a whole object.
    Whole(&'a Schema),
    /// What the schema of a definition describes: a part of an object.
    Part(&'a Schema),
    /// Where anything goes: objects are taken apart, lists are not.
    Free,
}

/// What a value is to its owners.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form<'a> {
    /// No object and no list.
    Scalar,
    /// A list.
    List(ListForm<'a>),
    /// An object; one with a single owner if it is atomic.
    Map { is_atomic: bool },
}

/// How the elements of a list are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ListForm<'a> {
    /// Not at all.
    Atomic,
    /// By what they are.
    Set,
    /// By some of their fields.
    Keyed(&'a [Text]),
}

impl<'a> Place<'a> {
    /// The objects of a resource.
    pub fn of(resource: &'a Resource) -> Self {
        if let Some(schema) = resource.strategy.schema() {
            return Self::Whole(schema);
        }
        schema::of(&resource.group, &resource.version, &resource.kind)
            .map_or(Self::Free, Self::Known)
    }

    /// What `value` is here.
    pub(super) fn form(self, value: &Value) -> Form<'a> {
        let node = match self {
            Self::Known(node) if node.shape() != Shape::Any => node,
            Self::Whole(_) => return Form::Map { is_atomic: false },
            Self::Part(schema) => return form_by(schema, value),
            Self::Known(_) | Self::Free => return form_of(value),
        };
        match node.shape() {
            Shape::Struct | Shape::Map => Form::Map { is_atomic: node.is_atomic() },
            Shape::List => Form::List(match node.list_type() {
                Some("set") => ListForm::Set,
                Some("map") => ListForm::Keyed(node.list_keys()),
                _ => ListForm::Atomic,
            }),
            Shape::String
            | Shape::Bool
            | Shape::Int32
            | Shape::Int64
            | Shape::Bytes
            | Shape::Time
            | Shape::MicroTime
            | Shape::Duration
            | Shape::Quantity
            | Shape::IntOrString
            | Shape::Any => Form::Scalar,
        }
    }

    /// The member `name` of an object; nothing when there can be none.
    pub(super) fn field(self, name: &str) -> Option<Self> {
        match self {
            Self::Known(node) if node.shape() != Shape::Any => node.field(name).map(Self::Known),
            Self::Whole(schema) => match name {
                "apiVersion" | "kind" => Some(Self::Free),
                "metadata" => Some(Self::Known(metadata_node())),
                name => member(schema, name),
            },
            Self::Part(schema) => member(schema, name),
            Self::Known(_) | Self::Free => Some(Self::Free),
        }
    }

    /// Whether members have names that the schema gives them.
    pub(super) fn is_struct(self) -> bool {
        match self {
            Self::Known(node) => node.shape() == Shape::Struct,
            Self::Whole(_) => true,
            Self::Part(schema) => !schema.properties.is_empty(),
            Self::Free => false,
        }
    }

    /// Whether an object or a list here has one owner as a whole, as far as is known without a look
    /// at it.
    pub(super) fn is_atomic(self) -> bool {
        match self {
            Self::Known(node) => match node.shape() {
                Shape::Struct | Shape::Map => node.is_atomic(),
                Shape::List => !matches!(node.list_type(), Some("set" | "map")),
                Shape::String
                | Shape::Bool
                | Shape::Int32
                | Shape::Int64
                | Shape::Bytes
                | Shape::Time
                | Shape::MicroTime
                | Shape::Duration
                | Shape::Quantity
                | Shape::IntOrString
                | Shape::Any => false,
            },
            Self::Part(schema) => match &*schema.kind {
                "object" => schema.is_atomic,
                "array" => !matches!(schema.list_type.as_deref(), Some("set" | "map")),
                _ => false,
            },
            Self::Whole(_) | Self::Free => false,
        }
    }

    /// The elements of a list.
    pub(super) fn items(self) -> Self {
        match self {
            Self::Known(node) => node.items().map_or(Self::Free, Self::Known),
            Self::Whole(schema) | Self::Part(schema) => {
                schema.items.as_deref().map_or(Self::Free, place_of)
            }
            Self::Free => Self::Free,
        }
    }

    /// What the member `name` of an element is when it is left out.
    pub(super) fn key_default(self, name: &str) -> Option<&'a Value> {
        match self.field(name)? {
            Self::Known(node) => node.key_default(),
            Self::Whole(schema) | Self::Part(schema) => schema.default.as_ref(),
            Self::Free => None,
        }
    }
}

fn place_of(schema: &Schema) -> Place<'_> {
    if schema.is_embedded { Place::Whole(schema) } else { Place::Part(schema) }
}

fn member<'a>(schema: &'a Schema, name: &str) -> Option<Place<'a>> {
    if let Some(property) = schema.properties.get(name) {
        return Some(place_of(property));
    }
    match &schema.additional {
        Additional::Of(additional) => Some(place_of(additional)),
        Additional::Allowed(true) => Some(Place::Free),
        Additional::Allowed(false) => None,
        // An object of which nothing is said may have anything in it.
        Additional::Unsaid => {
            (schema.keeps_unknown || schema.properties.is_empty()).then_some(Place::Free)
        }
    }
}

/// What a value is by its schema.
fn form_by<'a>(schema: &'a Schema, value: &Value) -> Form<'a> {
    match &*schema.kind {
        "object" => Form::Map { is_atomic: schema.is_atomic },
        "array" => Form::List(match schema.list_type.as_deref() {
            Some("set") => ListForm::Set,
            Some("map") => ListForm::Keyed(&schema.list_keys),
            _ => ListForm::Atomic,
        }),
        "" if !schema.is_int_or_string => form_of(value),
        _ => Form::Scalar,
    }
}

/// What a value is where nothing is known.
fn form_of(value: &Value) -> Form<'static> {
    match value {
        Value::Array(_) => Form::List(ListForm::Atomic),
        Value::Object(_) | Value::Null => Form::Map { is_atomic: false },
        Value::Bool(_) | Value::Number(_) | Value::String(_) => Form::Scalar,
    }
}
