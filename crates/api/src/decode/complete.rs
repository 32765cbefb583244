//! Fields that are written whether they were given or not.

use serde_json::{Map, Value};

use super::walk::zero;
use crate::{
    resource::Resource,
    schema::{self, SchemaNode, Shape},
    strategy::Json,
};

/// Adds to an object what Go writes even when nobody set it: fields without `omitempty` as their
/// zero value, embedded structs as `{}`, moments as null. To be called after defaulting, before an
/// object is stored.
pub fn complete(resource: &Resource, object: &mut Json) {
    if let Some(node) = schema::of(&resource.group, &resource.version, &resource.kind) {
        add_missing(node, object);
    }
}

fn add_missing(node: SchemaNode, object: &mut Map<String, Value>) {
    for field in node.always_written() {
        if !object.contains_key(field.name) {
            let value = if field.is_pointer { Value::Null } else { zero(node.at_field(field)) };
            object.insert(field.name.to_owned(), value);
        }
    }
    // Most are plain, and nothing can be missing in those.
    let nested = object.iter_mut().filter(|(_, value)| value.is_object() || value.is_array());
    for (name, value) in nested {
        if let Some(node) = node.field(name) {
            descend(node, value);
        }
    }
}

fn descend(node: SchemaNode, value: &mut Value) {
    match (node.shape(), value) {
        (Shape::Struct, Value::Object(object)) => add_missing(node, object),
        (Shape::List, Value::Array(list)) if node.elem().shape() == Shape::Struct => {
            list.iter_mut().for_each(|value| descend(node.elem(), value));
        }
        _ => {}
    }
}
