//! Where in an object one is: what the schema says of the value there.

use lockstep_api::{
    Resource,
    schema::{self, SchemaNode, Shape},
};
use serde_json::Value;

/// A place in an object.
#[derive(Clone, Copy, Debug)]
pub enum Place {
    /// What a schema describes.
    Known(SchemaNode),
    /// Where anything goes: objects are taken apart, lists are not.
    Free,
}

/// What a value is to its owners.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// No object and no list.
    Scalar,
    /// A list.
    List(ListForm),
    /// An object; one with a single owner if it is atomic.
    Map { is_atomic: bool },
}

/// How the elements of a list are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ListForm {
    /// Not at all.
    Atomic,
    /// By what they are.
    Set,
    /// By some of their fields.
    Keyed(&'static [&'static str]),
}

impl Place {
    /// The objects of a resource.
    pub fn of(resource: &Resource) -> Self {
        schema::of(&resource.group, &resource.version, &resource.kind)
            .map_or(Self::Free, Self::Known)
    }

    /// What `value` is here.
    pub(super) fn form(self, value: &Value) -> Form {
        let node = match self {
            Self::Known(node) if node.shape() != Shape::Any => node,
            Self::Known(_) | Self::Free => {
                return match value {
                    Value::Array(_) => Form::List(ListForm::Atomic),
                    Value::Object(_) | Value::Null => Form::Map { is_atomic: false },
                    Value::Bool(_) | Value::Number(_) | Value::String(_) => Form::Scalar,
                };
            }
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
            Self::Known(_) | Self::Free => Some(Self::Free),
        }
    }

    /// Whether members have names that the schema gives them.
    pub(super) fn is_struct(self) -> bool {
        matches!(self, Self::Known(node) if node.shape() == Shape::Struct)
    }

    /// The elements of a list.
    pub(super) fn items(self) -> Self {
        match self {
            Self::Known(node) => node.items().map_or(Self::Free, Self::Known),
            Self::Free => Self::Free,
        }
    }

    /// What the member `name` of an element is when it is left out.
    pub(super) fn key_default(self, name: &str) -> Option<&'static Value> {
        match self.field(name)? {
            Self::Known(node) => node.key_default(),
            Self::Free => None,
        }
    }
}
