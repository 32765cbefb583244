//! One version of one object: accepted JSON, encoded once, with what is asked most beside it.

use std::{borrow::Cow, ops::Range};

use bytes::Bytes;
use lockstep_api::{
    Resource,
    meta::Meta,
    selector::{FieldSelector, LabelSelector},
    strategy::{Json, Strategy},
};
use serde_json::Value;

use crate::Revision;

/// What stands before the digits of the resourceVersion.
const VERSION_MEMBER: &[u8] = b"\"resourceVersion\":\"";

/// One version of one object. Shared by the tables, the history and everyone who watches.
#[derive(Debug)]
pub struct Object {
    /// The metadata, parsed.
    pub meta: Meta,
    /// The JSON without `apiVersion` and `kind`.
    pub body: Bytes,
    /// Where in `body` the metadata is.
    metadata: Range<usize>,
    /// Where in `body` the digits of `metadata.resourceVersion` are.
    version: Range<usize>,
    /// The values of the kind's selectable fields, in the kind's order.
    fields: Box<[Box<str>]>,
}

/// The selectors of a list or a watch.
#[derive(Clone, Debug, Default)]
pub struct Selectors {
    /// By label.
    pub labels: LabelSelector,
    /// By field.
    pub fields: FieldSelector,
}

impl Selectors {
    /// Whether everything matches.
    pub fn is_empty(&self) -> bool {
        self.labels.is_everything() && self.fields.is_empty()
    }
}

impl Object {
    /// The JSON, parsed.
    pub fn json(&self) -> Json {
        serde_json::from_slice(&self.body).expect("the body was encoded from a JSON object")
    }

    /// The JSON of the metadata alone, as it is in [`Object::body`].
    pub fn metadata_json(&self) -> &[u8] {
        &self.body[self.metadata.clone()]
    }

    /// The revision that wrote this version.
    pub fn revision(&self) -> Revision {
        self.meta.resource_version
    }

    /// The key of the object in its table.
    pub fn key(&self) -> String {
        key(&self.meta.namespace, &self.meta.name)
    }

    /// The value of a selectable field, for resources that are stored as they are served.
    pub fn field(&self, resource: &Resource, field: &str) -> Option<&str> {
        let at = resource.strategy.selectable_fields().iter().position(|name| *name == field)?;
        self.fields.get(at).map(|value| &**value)
    }

    /// Whether the object, seen as `resource`, is selected.
    pub fn matches(&self, selectors: &Selectors, resource: &Resource) -> bool {
        selectors.labels.matches(|key| self.meta.label(key))
            && (selectors.fields.is_empty() || self.matches_fields(&selectors.fields, resource))
    }

    fn matches_fields(&self, fields: &FieldSelector, resource: &Resource) -> bool {
        let strategy = &*resource.strategy;
        if strategy.is_converted() {
            return fields.matches_object(&strategy.from_stored(self.json()), strategy);
        }
        fields.matches(|field| {
            Cow::Borrowed(match field {
                "metadata.name" => &*self.meta.name,
                "metadata.namespace" => &*self.meta.namespace,
                other => self.field(resource, other).unwrap_or_default(),
            })
        })
    }

    /// The same object as written by `revision`: what a deletion leaves for watchers.
    pub(crate) fn at_revision(&self, revision: Revision) -> Self {
        let meta = Meta { resource_version: revision, ..self.meta.clone() };
        let (body, version) = spliced(&self.body, self.version.clone(), revision);
        let metadata = self.metadata.start..self.metadata.end - self.version.len() + version.len();
        Self { meta, body, metadata, version, fields: self.fields.clone() }
    }

    /// Takes back an object that was persisted.
    pub fn recover(body: Bytes, strategy: &dyn Strategy) -> Result<Self, serde_json::Error> {
        let json: Json = serde_json::from_slice(&body)?;
        let revision = Meta::of(&json).resource_version;
        Ok(Draft::new(&json, strategy).into_object(revision))
    }
}

/// The key of an object in its table, ordered as etcd orders them.
pub fn key(namespace: &str, name: &str) -> String {
    if namespace.is_empty() { name.to_owned() } else { [namespace, "/", name].concat() }
}

/// An object that is ready but for its revision. Encoding is the costly part of a write and needs
/// no lock; putting in the digits is cheap.
#[derive(Clone, Debug)]
pub struct Draft {
    meta: Meta,
    encoded: Vec<u8>,
    /// Where the metadata is.
    metadata: Range<usize>,
    /// Where the digits of the resourceVersion go.
    version_at: usize,
    fields: Box<[Box<str>]>,
}

impl Draft {
    /// Encodes `object`, which must be in the stored form. Its resourceVersion is left out.
    pub fn new(object: &Json, strategy: &dyn Strategy) -> Self {
        let mut encoded = Vec::with_capacity(1024);
        let (metadata, version_at) = encode(object, &mut encoded);
        let fields = strategy
            .selectable_fields()
            .iter()
            .map(|field| strategy.field_value(object, field).into())
            .collect();
        let meta = Meta { resource_version: 0, ..Meta::of(object) };
        Self { meta, encoded, metadata, version_at, fields }
    }

    /// The metadata, without a resourceVersion.
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    /// Whether the encoding is that of `object`, the revision apart.
    pub fn is_same_as(&self, object: &Object) -> bool {
        let (head, tail) = self.encoded.split_at(self.version_at);
        let rest = &object.body[object.version.end..];
        object.version.start == head.len() && object.body.starts_with(head) && rest == tail
    }

    /// The object as it would be if it were written now, without a resourceVersion.
    pub fn into_preview(self) -> Object {
        let body = unversioned(&self.encoded, self.version_at);
        let removed = self.encoded.len() - body.len();
        let metadata = self.metadata.start..self.metadata.end - removed;
        Object { meta: self.meta, body, metadata, version: 0..0, fields: self.fields }
    }

    /// The object as written by `revision`.
    pub fn into_object(self, revision: Revision) -> Object {
        let meta = Meta { resource_version: revision, ..self.meta };
        let (body, version) = spliced(&self.encoded, self.version_at..self.version_at, revision);
        let metadata = self.metadata.start..self.metadata.end + version.len();
        Object { meta, body, metadata, version, fields: self.fields }
    }
}

/// `encoded` without the member that would hold the digits at `at`.
fn unversioned(encoded: &[u8], at: usize) -> Bytes {
    let (mut start, mut end) = (at - VERSION_MEMBER.len(), at + 1);
    if encoded.get(end) == Some(&b',') {
        end += 1;
    } else if encoded[start - 1] == b',' {
        start -= 1;
    }
    [&encoded[..start], &encoded[end..]].concat().into()
}

/// `encoded` with the digits of `revision` at `at`, in a buffer of exactly that size.
fn spliced(encoded: &[u8], at: Range<usize>, revision: Revision) -> (Bytes, Range<usize>) {
    let digits = revision.to_string();
    let parts = [&encoded[..at.start], digits.as_bytes(), &encoded[at.end..]];
    (parts.concat().into(), at.start..at.start + digits.len())
}

/// Writes `object` with an empty `metadata.resourceVersion`; the answer is where the metadata is,
/// and where the digits go.
fn encode(object: &Json, out: &mut Vec<u8>) -> (Range<usize>, usize) {
    const VERSION: &str = "resourceVersion";
    let mut version_at = 0;
    let mut metadata = 0..0;
    out.push(b'{');
    for (key, value) in object {
        if out.len() > 1 {
            out.push(b',');
        }
        write_value(out, key);
        out.push(b':');
        let Some(meta) = value.as_object().filter(|_| key == "metadata") else {
            write_value(out, value);
            continue;
        };
        metadata.start = out.len();
        out.push(b'{');
        // Keys stay in order, so that bytes can be compared.
        for (key, value) in meta.iter().filter(|(key, _)| key.as_str() < VERSION) {
            write_member(out, key, value);
            out.push(b',');
        }
        out.extend_from_slice(VERSION_MEMBER);
        version_at = out.len();
        out.push(b'"');
        for (key, value) in meta.iter().filter(|(key, _)| key.as_str() > VERSION) {
            out.push(b',');
            write_member(out, key, value);
        }
        out.push(b'}');
        metadata.end = out.len();
    }
    if version_at == 0 {
        let comma = if out.len() > 1 { "," } else { "" };
        out.extend_from_slice(format!("{comma}\"metadata\":").as_bytes());
        metadata.start = out.len();
        out.push(b'{');
        out.extend_from_slice(VERSION_MEMBER);
        version_at = out.len();
        out.extend_from_slice(b"\"}");
        metadata.end = out.len();
    }
    out.push(b'}');
    (metadata, version_at)
}

fn write_member(out: &mut Vec<u8>, key: &str, value: &Value) {
    write_value(out, key);
    out.push(b':');
    write_value(out, value);
}

fn write_value(out: &mut Vec<u8>, value: &(impl serde::Serialize + ?Sized)) {
    serde_json::to_writer(out, value).expect("JSON values can always be written to memory");
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::{World, map};

    #[test]
    fn metadata_is_found_in_every_form_of_an_object() {
        let world = World::empty();
        let strategy = &*world.resource("configmaps").strategy;
        let cases = [
            json!({}),
            json!({"data": {"a": "{\"metadata\":1}"}}),
            json!({"metadata": {"name": "a", "uid": "u"}, "data": {"a": "b"}}),
            json!({"metadata": {"name": "a"}, "immutable": true}),
        ];
        for case in cases {
            let draft = Draft::new(&map(case.clone()), strategy);
            let object = draft.clone().into_object(9);
            for object in [draft.into_preview(), object.at_revision(12_345), object] {
                let found: Value = serde_json::from_slice(object.metadata_json()).unwrap();
                assert_eq!(found, object.json()["metadata"], "{case}");
            }
        }
    }
}
