//! Reads the generated table of types.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use crate::resource::Text;

use super::{Field, Omit, Shape, Strategies, Type, TypeId, Types};

/// The table `cargo xtask openapi` writes.
pub(super) const TABLE: &str = include_str!("../../openapi/types.json");
/// The table `cargo xtask crds` writes.
pub(super) const CUSTOM: &str = include_str!("../../openapi/custom-types.json");

#[derive(Deserialize)]
struct Table<'a> {
    #[serde(borrow)]
    kinds: BTreeMap<&'a str, &'a str>,
    #[serde(borrow)]
    types: BTreeMap<&'a str, Entry<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry<'a> {
    kind: &'a str,
    #[serde(default)]
    go: &'a str,
    #[serde(default)]
    elem: &'a str,
    #[serde(default, rename = "isMessage")]
    is_message: bool,
    #[serde(default, borrow)]
    fields: Vec<FieldEntry<'a>>,
    #[serde(default)]
    map_type: &'a str,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FieldEntry<'a> {
    name: &'a str,
    #[serde(rename = "type")]
    type_name: &'a str,
    #[serde(default)]
    via: &'a str,
    #[serde(default)]
    omit: &'a str,
    #[serde(default)]
    proto: &'a str,
    #[serde(default)]
    merge_key: &'a str,
    #[serde(default)]
    strategy: &'a str,
    #[serde(default)]
    list_type: &'a str,
    #[serde(default, borrow)]
    list_keys: Vec<&'a str>,
    #[serde(default)]
    map_type: &'a str,
    key_default: Option<Value>,
}

/// Parses the tables as one. Types refer to each other by name in the text and by position
/// afterwards; pointers become a mark on the field that holds them.
pub(super) fn parse(texts: [&'static str; 2]) -> Types {
    let read = |text| -> Table<'static> {
        serde_json::from_str(text).expect("the generated table is well formed")
    };
    let [mut table, more] = texts.map(read);
    table.kinds.extend(more.kinds);
    table.types.extend(more.types);
    let order: BTreeMap<&str, u16> = table
        .types
        .keys()
        .enumerate()
        .map(|(at, name)| (*name, u16::try_from(at).expect("a few hundred types")))
        .collect();
    let behind = |name: &str| {
        let entry = &table.types[name];
        let is_pointer = entry.kind == "pointer";
        let name = if is_pointer { entry.elem } else { name };
        Target { id: TypeId(order[name]), shape: shape(table.types[name].kind), is_pointer }
    };
    let types = table
        .types
        .iter()
        .map(|(name, entry)| {
            let mut fields: Vec<Field> = entry
                .fields
                .iter()
                .map(|field| read_field(field, &behind(field.type_name)))
                .collect();
            fields.sort_unstable_by_key(|field| field.name);
            Type {
                shape: shape(entry.kind),
                go: if entry.go.is_empty() { name } else { entry.go },
                is_message: entry.is_message,
                elem: if entry.elem.is_empty() { TypeId(0) } else { behind(entry.elem).id },
                fields,
                is_atomic: entry.map_type == "atomic",
            }
        })
        .collect();
    let mut kinds: Vec<_> = table
        .kinds
        .iter()
        .map(|(path, name)| {
            let mut parts = path.splitn(3, '/');
            let mut part = || parts.next().expect("group/version/kind");
            ((part(), part(), part()), *name, TypeId(order[name]))
        })
        .collect();
    kinds.sort_unstable_by_key(|(kind, ..)| *kind);
    Types { types, kinds }
}

/// What a field or element refers to, behind the pointer if it is one.
struct Target {
    id: TypeId,
    shape: Shape,
    is_pointer: bool,
}

fn read_field(entry: &FieldEntry<'static>, target: &Target) -> Field {
    let mut strategies = Strategies::default();
    for strategy in entry.strategy.split(',') {
        match strategy {
            "merge" => strategies.merge = true,
            "replace" => strategies.replace = true,
            "retainKeys" => strategies.retain_keys = true,
            _ => {}
        }
    }
    let given = |text: &'static str| (!text.is_empty()).then_some(text);
    let omit = match entry.omit {
        "" => Omit::Never,
        "empty" => Omit::Empty,
        _ => Omit::Zero,
    };
    Field {
        name: entry.name,
        via: entry.via,
        omit,
        proto: entry.proto,
        is_pointer: target.is_pointer,
        is_always_written: is_always_written(omit, target),
        type_id: target.id,
        merge_key: given(entry.merge_key),
        strategies,
        list_type: given(entry.list_type),
        list_keys: entry.list_keys.iter().map(|key| Text::Borrowed(key)).collect(),
        is_atomic: given(entry.map_type).map(|map_type| map_type == "atomic"),
        key_default: entry.key_default.clone(),
    }
}

fn shape(kind: &str) -> Shape {
    match kind {
        "struct" => Shape::Struct,
        "map" => Shape::Map,
        "list" => Shape::List,
        "string" => Shape::String,
        "bool" => Shape::Bool,
        "int32" => Shape::Int32,
        "int64" => Shape::Int64,
        "bytes" => Shape::Bytes,
        "time" => Shape::Time,
        "microTime" => Shape::MicroTime,
        "duration" => Shape::Duration,
        "quantity" => Shape::Quantity,
        "intOrString" => Shape::IntOrString,
        // Fields of managed fields, raw extensions: JSON that is kept as it is.
        _ => Shape::Any,
    }
}

/// Whether a field is written when it has its zero value.
fn is_always_written(omit: Omit, target: &Target) -> bool {
    match omit {
        Omit::Never => true,
        Omit::Zero => false,
        // `omitempty` does not apply to structs, and these are structs in Go.
        Omit::Empty => {
            !target.is_pointer
                && matches!(
                    target.shape,
                    Shape::Struct
                        | Shape::Time
                        | Shape::MicroTime
                        | Shape::Duration
                        | Shape::Quantity
                        | Shape::IntOrString
                        | Shape::Any
                )
        }
    }
}
