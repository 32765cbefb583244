//! What the types of built-in kinds look like: their fields, and how lists in them merge.
//!
//! The table behind this is generated from the published Go types and OpenAPI documents (see
//! `cargo xtask openapi`). It is parsed once, when first asked for, and borrows its text from the
//! binary.

mod load;

use std::sync::LazyLock;

use serde_json::Value;

use crate::resource::Text;

/// How the value of a field is represented in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// An object with known fields.
    Struct,
    /// An object with free keys and values of one type.
    Map,
    /// A list of values of one type.
    List,
    /// A string.
    String,
    /// `true` or `false`.
    Bool,
    /// An integer of 32 bits.
    Int32,
    /// An integer of 64 bits.
    Int64,
    /// Bytes, written in base64.
    Bytes,
    /// A moment, to the second, in RFC 3339.
    Time,
    /// A moment, to the microsecond, in RFC 3339.
    MicroTime,
    /// A Go duration.
    Duration,
    /// A resource quantity.
    Quantity,
    /// An integer or a string.
    IntOrString,
    /// Any JSON value.
    Any,
}

/// When an encoder leaves a field out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Omit {
    /// Never: the zero value is written.
    Never,
    /// When it is false, 0, or an empty string, list or map; a struct is always written.
    Empty,
    /// Also when a struct is all zero.
    Zero,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TypeId(u16);

/// One type of the table.
#[derive(Debug)]
pub(crate) struct Type {
    pub(crate) shape: Shape,
    /// The name of the Go type, as it appears in error messages.
    pub(crate) go: &'static str,
    /// The type of elements, for lists and maps.
    elem: TypeId,
    /// Whether protobuf has a message of its own for the list.
    is_message: bool,
    /// Sorted by name.
    fields: Vec<Field>,
    /// Whether values have one owner as a whole.
    is_atomic: bool,
}

/// One field of a struct.
#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) name: &'static str,
    /// The embedded Go structs it was found through, joined by dots.
    pub(crate) via: &'static str,
    pub(crate) omit: Omit,
    /// Its number in protobuf, behind those of the messages it lies in; empty when it has none.
    pub(crate) proto: &'static str,
    /// Whether Go tells "absent" from "zero".
    pub(crate) is_pointer: bool,
    /// Whether it is written even when it has its zero value.
    is_always_written: bool,
    type_id: TypeId,
    merge_key: Option<&'static str>,
    strategies: Strategies,
    list_type: Option<&'static str>,
    list_keys: Vec<Text>,
    /// Whether an object here has one owner as a whole, if that differs from its type.
    is_atomic: Option<bool>,
    /// What it is when it is left out, for fields by which the elements of a list are matched.
    key_default: Option<Value>,
}

/// The patch strategies of a field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Strategies {
    /// List elements merge with those already there, instead of replacing them.
    pub merge: bool,
    /// The value is replaced as a whole.
    pub replace: bool,
    /// Keys that the patch does not list under `$retainKeys` are removed.
    pub retain_keys: bool,
}

/// All types of built-in kinds.
#[derive(Debug)]
pub(crate) struct Types {
    types: Vec<Type>,
    /// Sorted.
    kinds: Vec<(Kind, &'static str, TypeId)>,
}

/// Group, version and kind.
type Kind = (&'static str, &'static str, &'static str);

static TYPES: LazyLock<Types> = LazyLock::new(|| load::parse([load::TABLE, load::CUSTOM]));

/// The schema of a built-in kind.
pub fn of(group: &str, version: &str, kind: &str) -> Option<SchemaNode> {
    let types = &*TYPES;
    let at = types.position(group, version, kind)?;
    Some(SchemaNode { types, node: types.type_of(types.kinds[at].2), field: None })
}

/// The name of a built-in kind's schema in OpenAPI documents.
pub fn name_of(group: &str, version: &str, kind: &str) -> Option<&'static str> {
    TYPES.position(group, version, kind).map(|at| TYPES.kinds[at].1)
}

/// The built-in kinds there are schemas for: group, version, kind.
pub fn kinds() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    TYPES.kinds.iter().map(|(kind, ..)| *kind)
}

impl Types {
    fn position(&self, group: &str, version: &str, kind: &str) -> Option<usize> {
        self.kinds.binary_search_by(|(known, ..)| known.cmp(&(group, version, kind))).ok()
    }

    fn type_of(&self, id: TypeId) -> &Type {
        &self.types[usize::from(id.0)]
    }
}

/// A place in a schema: the object itself, one of its fields, an element of a list.
#[derive(Clone, Copy, Debug)]
pub struct SchemaNode {
    types: &'static Types,
    node: &'static Type,
    field: Option<&'static Field>,
}

impl SchemaNode {
    /// How values here look in JSON.
    pub fn shape(&self) -> Shape {
        self.node.shape
    }

    /// The field `name` of a struct, or an entry of a map.
    pub fn field(&self, name: &str) -> Option<Self> {
        if self.node.shape == Shape::Map {
            return Some(self.at_type(self.node.elem));
        }
        let fields = &self.node.fields;
        let at = fields.binary_search_by(|field| field.name.cmp(name)).ok()?;
        Some(self.at_field(&fields[at]))
    }

    /// The names of a struct's fields, sorted.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + use<> {
        self.node.fields.iter().map(|field| field.name)
    }

    /// An element of a list.
    pub fn items(&self) -> Option<Self> {
        (self.node.shape == Shape::List).then(|| self.at_type(self.node.elem))
    }

    /// The key by which a strategic merge patch matches the elements of the list here.
    pub fn merge_key(&self) -> Option<&'static str> {
        self.field?.merge_key
    }

    /// How a strategic merge patch treats the value here.
    pub fn strategies(&self) -> Strategies {
        self.field.map(|field| field.strategies).unwrap_or_default()
    }

    /// How server-side apply treats the list here: `atomic`, `set` or `map`.
    pub fn list_type(&self) -> Option<&'static str> {
        self.field?.list_type
    }

    /// The keys by which server-side apply matches the elements of the list here.
    pub fn list_keys(&self) -> &'static [Text] {
        self.field.map(|field| field.list_keys.as_slice()).unwrap_or_default()
    }

    /// Whether server-side apply takes the object here as a whole.
    pub fn is_atomic(&self) -> bool {
        self.field.and_then(|field| field.is_atomic).unwrap_or(self.node.is_atomic)
    }

    /// What the field here is when it is left out, if the elements of a list are matched by it.
    pub fn key_default(&self) -> Option<&'static Value> {
        self.field?.key_default.as_ref()
    }

    /// The fields of a struct, sorted by name.
    pub(crate) fn fields(&self) -> &'static [Field] {
        &self.node.fields
    }

    /// The fields of a struct that are written even when they have their zero value.
    pub(crate) fn always_written(&self) -> impl Iterator<Item = &'static Field> {
        self.node.fields.iter().filter(|field| field.is_always_written)
    }

    /// Whether the struct here has a form in protobuf.
    pub fn has_protobuf(&self) -> bool {
        self.node.fields.iter().any(|field| !field.proto.is_empty())
    }

    /// Whether protobuf has a message of its own for the list here.
    pub(crate) fn is_message(&self) -> bool {
        self.node.is_message
    }

    pub(crate) fn at_field(&self, field: &'static Field) -> Self {
        Self { types: self.types, node: self.types.type_of(field.type_id), field: Some(field) }
    }

    pub(crate) fn elem(&self) -> Self {
        self.at_type(self.node.elem)
    }

    /// The name of the Go type, as it appears in error messages.
    pub(crate) fn go(&self) -> &'static str {
        self.node.go
    }

    fn at_type(&self, id: TypeId) -> Self {
        Self { types: self.types, node: self.types.type_of(id), field: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walk(path: &[&str]) -> SchemaNode {
        let pod = of("", "v1", "Pod").unwrap();
        path.iter().fold(pod, |node, step| match *step {
            "[]" => node.items().unwrap(),
            name => node.field(name).unwrap_or_else(|| panic!("no field {name}")),
        })
    }

    #[test]
    fn lists_of_pods_merge_by_the_keys_kubernetes_documents() {
        let cases: &[(&[&str], Option<&str>, bool, bool)] = &[
            (&["spec", "containers"], Some("name"), true, false),
            (&["spec", "volumes"], Some("name"), true, true),
            (&["spec", "containers", "[]", "ports"], Some("containerPort"), true, false),
            (&["spec", "containers", "[]", "volumeMounts"], Some("mountPath"), true, false),
            (&["spec", "containers", "[]", "command"], None, false, false),
            (&["spec", "tolerations"], None, false, false),
            (&["spec", "topologySpreadConstraints"], Some("topologyKey"), true, false),
            (&["metadata", "finalizers"], None, true, false),
            (&["metadata", "ownerReferences"], Some("uid"), true, false),
            (&["status", "conditions"], Some("type"), true, false),
        ];
        for (path, key, merge, retain_keys) in cases {
            let node = walk(path);
            assert_eq!(node.merge_key(), *key, "{path:?}");
            let want = Strategies { merge: *merge, replace: false, retain_keys: *retain_keys };
            assert_eq!(node.strategies(), want, "{path:?}");
        }
    }

    #[test]
    fn apply_keys_differ_from_patch_keys_where_upstream_says_so() {
        let ports = walk(&["spec", "containers", "[]", "ports"]);
        assert_eq!(ports.list_type(), Some("map"));
        assert_eq!(ports.list_keys(), ["containerPort", "protocol"]);
        let protocol = walk(&["spec", "containers", "[]", "ports", "[]", "protocol"]);
        assert_eq!(protocol.key_default(), Some(&Value::from("TCP")));
    }

    #[test]
    fn some_objects_have_one_owner_as_a_whole() {
        let cases: &[(&[&str], bool)] = &[
            (&["metadata", "labels"], false),
            (&["metadata", "ownerReferences", "[]"], true),
            (&["spec", "nodeSelector"], true),
            (&["spec", "securityContext"], false),
            (&["spec", "imagePullSecrets", "[]"], true),
        ];
        for (path, want) in cases {
            assert_eq!(walk(path).is_atomic(), *want, "{path:?}");
        }
    }

    #[test]
    fn nodes_know_their_shape() {
        let cases: &[(&[&str], Shape)] = &[
            (&[], Shape::Struct),
            (&["metadata", "labels"], Shape::Map),
            (&["metadata", "labels", "any/key"], Shape::String),
            (&["metadata", "creationTimestamp"], Shape::Time),
            (&["metadata", "managedFields", "[]", "fieldsV1"], Shape::Any),
            (&["spec", "activeDeadlineSeconds"], Shape::Int64),
            (&["spec", "containers", "[]", "resources", "limits", "cpu"], Shape::Quantity),
            (&["spec", "containers", "[]", "livenessProbe", "httpGet", "port"], Shape::IntOrString),
        ];
        for (path, want) in cases {
            assert_eq!(walk(path).shape(), *want, "{path:?}");
        }
        assert!(walk(&[]).field("specs").is_none());
        assert!(walk(&["spec"]).items().is_none());
    }

    #[test]
    fn unknown_kinds_have_no_schema() {
        assert!(of("", "v1", "Pods").is_none());
        assert!(of("batch", "v2", "Job").is_none());
        assert!(of("batch", "v1", "Job").is_some());
    }
}
