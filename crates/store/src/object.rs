//! One version of one object: accepted JSON, encoded once, with what is asked most beside it.

mod body;

use std::{borrow::Cow, ops::Range};

use bytes::Bytes;
use lockstep_api::{
    Resource,
    meta::Meta,
    selector::{FieldSelector, LabelSelector},
    strategy::{Json, Strategy},
};
use serde_json::Value;

use crate::{Revision, managed};

/// What stands before the digits of the resourceVersion.
const VERSION_MEMBER: &[u8] = b"\"resourceVersion\":\"";
/// What stands before the list of owners.
const MANAGED_MEMBER: &[u8] = b"\"managedFields\":";

/// One version of one object. Shared by the tables, the history and everyone who watches.
#[derive(Debug)]
pub struct Object {
    /// The metadata, parsed.
    pub meta: Meta,
    /// The JSON without `apiVersion` and `kind`, with `metadata.managedFields`.
    pub body: Bytes,
    /// Where in `body` the metadata is.
    metadata: Range<usize>,
    /// Where in `body` the value of `metadata.managedFields` is; nowhere when there is none.
    managed: Range<usize>,
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
    /// The JSON, parsed, without `metadata.managedFields`, which few look at.
    pub fn json(&self) -> Json {
        body::parse(&self.body).expect("the body was encoded from a JSON object").0
    }

    /// The JSON of `metadata.managedFields`; empty when there is none.
    pub fn managed(&self) -> &[u8] {
        &self.body[self.managed.clone()]
    }

    /// [`Object::body`] in two parts, between which `metadata.managedFields` is left out.
    pub fn bare(&self) -> [&[u8]; 2] {
        self.without_managed(0..self.body.len())
    }

    /// [`Object::metadata_json`] in two parts, between which `managedFields` is left out.
    pub fn bare_metadata(&self) -> [&[u8]; 2] {
        self.without_managed(self.metadata.clone())
    }

    fn without_managed(&self, part: Range<usize>) -> [&[u8]; 2] {
        if self.managed.is_empty() {
            return [&self.body[part], &[]];
        }
        let mut start = self.managed.start - MANAGED_MEMBER.len();
        let mut end = self.managed.end;
        if self.body.get(end) == Some(&b',') {
            end += 1;
        } else if self.body[start - 1] == b',' {
            start -= 1;
        }
        [&self.body[part.start..start], &self.body[end..part.end]]
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
        let (managed, fields) = (self.managed.clone(), self.fields.clone());
        Self { meta, body, metadata, managed, version, fields }
    }

    /// Takes back an object that was persisted.
    pub fn recover(body: Bytes, strategy: &dyn Strategy) -> Result<Self, serde_json::Error> {
        let (json, managed) = body::parse(&body)?;
        let revision = Meta::of(&json).resource_version;
        Ok(Draft::new(&json, managed, strategy).into_object(revision))
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
    /// Where the value of `metadata.managedFields` is.
    managed: Range<usize>,
    /// Where the digits of the resourceVersion go.
    version_at: usize,
    fields: Box<[Box<str>]>,
}

impl Draft {
    /// Encodes `object`, which must be in the stored form. Its resourceVersion is left out; its
    /// managed fields are those encoded in `managed`.
    pub fn new(object: &Json, managed: &[u8], strategy: &dyn Strategy) -> Self {
        let mut encoded = Vec::with_capacity(1024 + managed.len());
        let Encoded { metadata, managed, version_at } = encode(object, managed, &mut encoded);
        let fields = strategy
            .selectable_fields()
            .iter()
            .map(|field| strategy.field_value(object, field).into())
            .collect();
        let meta = Meta { resource_version: 0, ..Meta::of(object) };
        Self { meta, encoded, metadata, managed, version_at, fields }
    }

    /// The metadata, without a resourceVersion.
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    /// How many bytes the encoding takes.
    pub(crate) fn size(&self) -> usize {
        self.encoded.len()
    }

    /// The same without managed fields.
    pub(crate) fn without_owners(self) -> Self {
        let object = body::parse(&self.encoded).expect("the encoding is that of an object").0;
        let mut encoded = Vec::with_capacity(self.encoded.len());
        let Encoded { metadata, managed, version_at } = encode(&object, &[], &mut encoded);
        Self { meta: self.meta, encoded, metadata, managed, version_at, fields: self.fields }
    }

    /// Whether the encoding is that of `object`, the revision and the times of owners apart.
    pub fn is_same_as(&self, object: &Object) -> bool {
        let (at, is) = (self.version_at, &self.encoded);
        let (version, was) = (object.version.clone(), &object.body);
        let (new, old) = (&self.managed, &object.managed);
        is[..new.start] == was[..old.start]
            && is[new.end..at] == was[old.end..version.start]
            && is[at..] == was[version.end..]
            && managed::is_same_but_for_times(&is[new.clone()], &was[old.clone()])
    }

    /// The object as it would be if it were written now, without a resourceVersion.
    pub fn into_preview(self) -> Object {
        let body = unversioned(&self.encoded, self.version_at);
        let removed = self.encoded.len() - body.len();
        let metadata = self.metadata.start..self.metadata.end - removed;
        let (managed, fields) = (self.managed, self.fields);
        Object { meta: self.meta, body, metadata, managed, version: 0..0, fields }
    }

    /// The object as written by `revision`.
    pub fn into_object(self, revision: Revision) -> Object {
        let meta = Meta { resource_version: revision, ..self.meta };
        let (body, version) = spliced(&self.encoded, self.version_at..self.version_at, revision);
        let metadata = self.metadata.start..self.metadata.end + version.len();
        Object { meta, body, metadata, managed: self.managed, version, fields: self.fields }
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

/// Where in an encoding something is.
#[derive(Default)]
struct Encoded {
    metadata: Range<usize>,
    managed: Range<usize>,
    version_at: usize,
}

/// Writes `object` with its managed fields and an empty `metadata.resourceVersion`.
fn encode(object: &Json, managed: &[u8], out: &mut Vec<u8>) -> Encoded {
    let mut encoded = Encoded::default();
    out.push(b'{');
    for (key, value) in object {
        if out.len() > 1 {
            out.push(b',');
        }
        write_value(out, key);
        out.push(b':');
        match value.as_object().filter(|_| key == "metadata") {
            Some(meta) => encoded = encode_metadata(meta, managed, out),
            None => write_value(out, value),
        }
    }
    if encoded.version_at == 0 {
        let comma = if out.len() > 1 { "," } else { "" };
        out.extend_from_slice(format!("{comma}\"metadata\":").as_bytes());
        encoded = encode_metadata(&Json::new(), managed, out);
    }
    out.push(b'}');
    encoded
}

fn encode_metadata(meta: &Json, managed: &[u8], out: &mut Vec<u8>) -> Encoded {
    const MANAGED: &str = "managedFields";
    const VERSION: &str = "resourceVersion";
    let mut encoded = Encoded::default();
    encoded.metadata.start = out.len();
    out.push(b'{');
    // Keys stay in order, so that bytes can be compared.
    for (key, value) in meta.iter().filter(|(key, _)| key.as_str() < MANAGED) {
        write_member(out, key, value);
        out.push(b',');
    }
    if !managed.is_empty() {
        out.extend_from_slice(MANAGED_MEMBER);
        encoded.managed.start = out.len();
        out.extend_from_slice(managed);
        encoded.managed.end = out.len();
        out.push(b',');
    } else {
        encoded.managed = out.len()..out.len();
    }
    for (key, value) in meta {
        if (MANAGED..VERSION).contains(&key.as_str()) && key != MANAGED {
            write_member(out, key, value);
            out.push(b',');
        }
    }
    out.extend_from_slice(VERSION_MEMBER);
    encoded.version_at = out.len();
    out.push(b'"');
    for (key, value) in meta.iter().filter(|(key, _)| key.as_str() > VERSION) {
        out.push(b',');
        write_member(out, key, value);
    }
    out.push(b'}');
    encoded.metadata.end = out.len();
    encoded
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
            json!({"metadata": {"labels": {"a": "b"}}}),
        ];
        let read = |parts: [&[u8]; 2]| -> Value {
            serde_json::from_slice(&parts.concat()).expect("what is left is JSON")
        };
        for (case, managed) in cases.iter().flat_map(|it| [(it, ""), (it, "[{\"a\":[]}]")]) {
            let draft = Draft::new(&map(case.clone()), managed.as_bytes(), strategy);
            let object = draft.clone().into_object(9);
            for object in [draft.clone().into_preview(), object.at_revision(12_345), object] {
                let mut found: Value = serde_json::from_slice(object.metadata_json()).unwrap();
                let owners = found.as_object_mut().unwrap().remove("managedFields");
                assert_eq!(owners.map_or(String::new(), |it| it.to_string()), managed, "{case}");
                assert_eq!(object.managed(), managed.as_bytes(), "{case}");
                assert_eq!(found, object.json()["metadata"], "{case}");
                assert_eq!(read(object.bare_metadata()), found, "{case}");
                assert_eq!(read(object.bare()), Value::Object(object.json()), "{case}");
            }
            let object = draft.clone().into_object(9);
            assert!(draft.is_same_as(&object));
            let again = Object::recover(object.body.clone(), strategy).unwrap();
            assert_eq!(again.body, object.body, "{case}");
        }
    }
}
