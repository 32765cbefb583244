//! What clients are shown of stored objects: the objects themselves, their metadata, or tables.

use std::{borrow::Cow, sync::Arc};

use bytes::{BufMut, Bytes, BytesMut};
use jiff::Timestamp;
use lockstep_api::{Resource, Status, table};
use lockstep_store::Object;
use serde_json::{Map, Value, json};

use super::{
    call::Call,
    negotiate::Shape,
    respond::{put_with_type, type_header, typed_header},
};

/// What the rows of a table carry beside their cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Include {
    Nothing,
    Metadata,
    Object,
}

/// Turns objects of one resource into what a client asked for.
#[derive(Clone)]
pub(crate) struct Presenter {
    resource: Arc<Resource>,
    shape: Shape,
    type_header: Bytes,
    partial_header: Bytes,
    meta_version: &'static str,
    include: Include,
    /// Whether managed fields are left out: the parts of this process have no use for them, and
    /// would spend more on reading and keeping them than on all the rest.
    is_bare: bool,
    now: Timestamp,
}

impl Presenter {
    /// A presenter of one object. What cannot be shown is refused here, before anything is done.
    pub(crate) fn of_one(call: &Call, resource: &Arc<Resource>) -> Result<Self, Status> {
        match call.output.shape {
            Shape::MetadataList => Err(not_acceptable(
                "you requested PartialObjectMetadataList, but the requested object is not a list",
            )),
            _ => Self::new(resource, call),
        }
    }

    /// A presenter of a list. What cannot be shown is refused here, before anything is done.
    pub(crate) fn of_list(call: &Call, resource: &Arc<Resource>) -> Result<Self, Status> {
        match call.output.shape {
            Shape::Metadata => Err(not_acceptable(
                "you requested PartialObjectMetadata, but the requested object is a list",
            )),
            _ => Self::new(resource, call),
        }
    }

    /// Whether objects are shown as they are, of a kind that Go has no struct for: what is empty
    /// in the metadata of their lists is shown then.
    pub(crate) fn shows_custom_objects(&self) -> bool {
        self.shape == Shape::Object && self.resource.strategy.is_custom()
    }

    /// A presenter of the events of a watch.
    pub(crate) fn of_events(call: &Call, resource: &Arc<Resource>) -> Result<Self, Status> {
        Self::new(resource, call)
    }

    fn new(resource: &Arc<Resource>, call: &Call) -> Result<Self, Status> {
        let output = call.output;
        let include = match call.query.text("includeObject") {
            "" | "Metadata" => Include::Metadata,
            "None" => Include::Nothing,
            "Object" => Include::Object,
            other if output.shape == Shape::Table => {
                return Err(Status::bad_request(format!(
                    "Unable to convert to Table as requested: includeObject: Invalid value: \
                     {other:?}: must be 'Metadata', 'Object', 'None', or empty"
                )));
            }
            _ => Include::Metadata,
        };
        let meta_api = format!("meta.k8s.io/{}", output.meta_version);
        Ok(Self {
            resource: Arc::clone(resource),
            shape: output.shape,
            type_header: type_header(resource),
            partial_header: typed_header(&meta_api, "PartialObjectMetadata"),
            meta_version: output.meta_version,
            include,
            is_bare: call.component.is_some(),
            now: Timestamp::now(),
        })
    }

    /// The same presenter for what is written from now on: ages are counted from its moment.
    pub(crate) fn refresh(&mut self) {
        self.now = Timestamp::now();
    }

    /// One object, whole.
    pub(crate) fn single(&self, object: &Object) -> Bytes {
        let mut bytes = BytesMut::with_capacity(self.type_header.len() + object.body.len());
        self.put_element(&mut bytes, object, true);
        bytes.freeze()
    }

    /// Writes one object as a watch shows it; `is_first` for the first of a stream.
    pub(crate) fn put_element(&self, to: &mut BytesMut, object: &Object, is_first: bool) {
        match self.shape {
            Shape::Object => self.put_object(to, object),
            Shape::Metadata | Shape::MetadataList => self.put_metadata(to, object),
            Shape::Table => {
                let revision = object.revision().to_string();
                let meta = json!({ "resourceVersion": revision });
                self.put_table_head(to, &meta, is_first);
                self.put_row(to, object);
                to.put_slice(b"]}");
            }
        }
    }

    /// Writes one item of a list.
    pub(crate) fn put_item(&self, to: &mut BytesMut, object: &Object) {
        match self.shape {
            // The items of a list carry no type: the list says what they are. Those of custom
            // kinds do all the same.
            Shape::Object if self.resource.strategy.is_custom() => {
                self.put_object(to, object);
            }
            Shape::Object => self.body(object).iter().for_each(|part| to.put_slice(part)),
            Shape::Metadata | Shape::MetadataList => self.put_metadata(to, object),
            Shape::Table => self.put_row(to, object),
        }
    }

    /// Writes what comes before the items of a list; `meta` is the list's metadata.
    pub(crate) fn put_list_head(&self, to: &mut BytesMut, meta: &Value) {
        match self.shape {
            Shape::Table => return self.put_table_head(to, meta, true),
            Shape::Object => {
                let kind = self.resource.list_kind();
                to.put_slice(&typed_header(&self.resource.api_version(), &kind));
            }
            Shape::Metadata | Shape::MetadataList => {
                let api_version = format!("meta.k8s.io/{}", self.meta_version);
                to.put_slice(&typed_header(&api_version, "PartialObjectMetadataList"));
            }
        }
        to.put_slice(b"\"metadata\":");
        to.put_slice(meta.to_string().as_bytes());
        to.put_slice(b",\"items\":[");
    }

    /// Writes the object of a bookmark: nothing but a revision and, at the end of the initial
    /// events of a stream, a mark.
    pub(crate) fn put_bookmark(&self, to: &mut BytesMut, revision: u64, is_end_of_initial: bool) {
        let mut meta = Map::new();
        meta.insert("resourceVersion".to_owned(), revision.to_string().into());
        if is_end_of_initial {
            let mark = json!({ "k8s.io/initial-events-end": "true" });
            meta.insert("annotations".to_owned(), mark);
        }
        let stored = json!({ "metadata": meta }).to_string();
        match self.shape {
            Shape::Object => put_with_type(to, &self.type_header, stored.as_bytes()),
            Shape::Metadata | Shape::MetadataList => {
                put_with_type(to, &self.partial_header, stored.as_bytes());
            }
            Shape::Table => {
                let list_meta = json!({ "resourceVersion": revision.to_string() });
                self.put_table_head(to, &list_meta, false);
                to.put_slice(b"{\"cells\":[],\"object\":");
                put_with_type(to, &self.partial_header, stored.as_bytes());
                to.put_slice(b"}]}");
            }
        }
    }

    /// The object in the version of the request, in two parts.
    fn body<'a>(&self, object: &'a Object) -> [Cow<'a, [u8]>; 2] {
        if !self.resource.strategy.is_converted() {
            let parts = if self.is_bare { object.bare() } else { [&object.body[..], &[]] };
            return parts.map(Cow::Borrowed);
        }
        let mut converted = self.resource.strategy.from_stored(object.json());
        if let Some(managed) = serde_json::from_slice::<Value>(object.managed()).ok()
            && let Some(Value::Object(meta)) = converted.get_mut("metadata")
            && !self.is_bare
        {
            meta.insert("managedFields".to_owned(), managed);
        }
        let whole = Value::Object(converted).to_string().into_bytes();
        [Cow::Owned(whole), Cow::Borrowed(&[])]
    }

    fn put_object(&self, to: &mut BytesMut, object: &Object) {
        let [head, tail] = self.body(object);
        put_with_type(to, &self.type_header, &head);
        to.put_slice(&tail);
    }

    fn put_metadata(&self, to: &mut BytesMut, object: &Object) {
        to.put_slice(&self.partial_header);
        to.put_slice(b"\"metadata\":");
        let parts =
            if self.is_bare { object.bare_metadata() } else { [object.metadata_json(), &[]] };
        parts.iter().for_each(|part| to.put_slice(part));
        to.put_slice(b"}");
    }

    fn put_table_head(&self, to: &mut BytesMut, meta: &Value, with_columns: bool) {
        let api_version = format!("meta.k8s.io/{}", self.meta_version);
        to.put_slice(&typed_header(&api_version, "Table"));
        to.put_slice(b"\"metadata\":");
        to.put_slice(meta.to_string().as_bytes());
        to.put_slice(b",\"columnDefinitions\":");
        // Watches say what the columns are only once.
        let columns = match with_columns {
            true => self.resource.strategy.column_definitions().into(),
            false => Value::Null,
        };
        to.put_slice(columns.to_string().as_bytes());
        to.put_slice(b",\"rows\":[");
    }

    fn put_row(&self, to: &mut BytesMut, object: &Object) {
        let shown = self.resource.strategy.from_stored(object.json());
        let row = table::row(&*self.resource.strategy, &shown, self.now);
        let row = Value::Object(row).to_string();
        to.put_slice(row.strip_suffix('}').unwrap_or(&row).as_bytes());
        to.put_slice(b",\"object\":");
        match self.include {
            Include::Nothing => to.put_slice(b"null"),
            Include::Metadata => self.put_metadata(to, object),
            Include::Object => self.put_object(to, object),
        }
        to.put_slice(b"}");
    }
}

fn not_acceptable(message: &str) -> Status {
    super::error::failure(406, "NotAcceptable", message)
}
