//! What a kind decides for itself: defaults, validation, what an update may touch, how it is shown.
//!
//! The order in which the server calls these for a write is: decode and check against the schema,
//! [`Strategy::fill_defaults`], [`Strategy::prepare_create`] or [`Strategy::prepare_update`],
//! common metadata rules, then validation. Objects come as JSON without `apiVersion` and `kind`.

use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::{
    definition::{scale::Scale, schema::Schema},
    field::ErrorList,
    table,
};

/// A JSON object.
pub type Json = Map<String, Value>;

/// Who writes, and when. Time and identity come in as values.
#[derive(Clone, Debug)]
pub struct WriteContext {
    /// The moment of the write.
    pub now: Timestamp,
    /// The uid a new object gets, and 128 bits of fresh randomness for whatever else needs some.
    pub uid: String,
    /// The name of the user.
    pub user: String,
}

/// What happens to the dependents of a deleted object when the request does not say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Propagation {
    /// The object goes at once, its dependents later.
    Background,
    /// The dependents go first.
    Foreground,
    /// The dependents stay.
    Orphan,
}

/// A column of a kind's Table.
#[derive(Clone, Debug)]
pub struct Column {
    /// Header.
    pub name: &'static str,
    /// OpenAPI type of the cell: `string`, `integer`, `number`, `boolean`, `date`.
    pub kind: &'static str,
    /// `name` for the column that identifies the object, otherwise empty.
    pub format: &'static str,
    /// What the column means.
    pub description: &'static str,
    /// 0 for columns always shown, 1 for `-o wide`.
    pub priority: i32,
}

/// How a kind checks the metadata of a new version, after what holds for every kind was checked.
/// Nothing new is found by that, but whatever is wrong is listed again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetadataCheck {
    /// As what has changed.
    Change,
    /// As that of a new object.
    New,
    /// Both ways.
    Both,
}

/// How objects of one kind are filled in, checked and shown.
pub trait Strategy: Send + Sync {
    /// Fills in what the user left out.
    fn fill_defaults(&self, _object: &mut Json) {}

    /// Makes a decoded and defaulted object ready to be created (beyond metadata, which is common
    /// to all kinds): clears what users may not set (status, where it has its own subresource) and
    /// adds what only the server can.
    fn prepare_create(&self, object: &mut Json, _context: &WriteContext) {
        if self.has_status() {
            object.remove("status");
        }
    }

    /// Says what is wrong with a new object (metadata is checked elsewhere).
    fn validate_create(&self, _object: &Json) -> ErrorList {
        ErrorList::new()
    }

    /// Carries over from `old` what an update of the main resource may not touch.
    fn prepare_update(&self, object: &mut Json, old: &Json, _context: &WriteContext) {
        if self.has_status() {
            keep(object, old, "status");
        }
    }

    /// Says what is wrong with an update of the main resource.
    fn validate_update(&self, object: &Json, _old: &Json) -> ErrorList {
        self.validate_create(object)
    }

    /// Cleans up an update through `/status`. Everything but `metadata` and `status` has been
    /// carried over from the old object before this is called.
    fn prepare_status_update(&self, _object: &mut Json, _old: &Json, _context: &WriteContext) {}

    /// Says what is wrong with an update through `/status`. Everything but `metadata` and `status`
    /// has been carried over from the old object before this is called.
    fn validate_status_update(&self, _object: &Json, _old: &Json) -> ErrorList {
        ErrorList::new()
    }

    /// Says what is wrong with an update through a subresource that changes `part` of the object.
    fn validate_part_update(&self, part: &str, object: &Json, old: &Json) -> ErrorList {
        match part {
            "status" => self.validate_status_update(object, old),
            _ => ErrorList::new(),
        }
    }

    /// Says what a user should know about an accepted object: sent as Warning headers.
    fn warnings(&self, _object: &Json, _old: Option<&Json>) -> Vec<String> {
        Vec::new()
    }

    /// What every client is told that uses this version of the kind, when it should use another.
    fn deprecation(&self) -> Option<&str> {
        None
    }

    /// Why there are no objects of this kind and what to use instead, for kinds that are known by
    /// name only.
    fn refusal(&self) -> Option<&'static str> {
        None
    }

    /// Says what cannot be meant in an object that the API takes all the same. A warning of the API
    /// server; an error of `lockstep validate`.
    fn lint(&self, _object: &Json) -> ErrorList {
        ErrorList::new()
    }

    /// Whether an API server elsewhere knows the kind by a CustomResourceDefinition alone, so that
    /// it goes by the rules that all such kinds have.
    fn is_custom(&self) -> bool {
        false
    }

    /// What is wrong with `name` for this kind, as the texts of field errors; `is_prefix` for
    /// `generateName`.
    fn validate_name(&self, name: &str, is_prefix: bool) -> Vec<String>;

    /// Whether a new object without a name gets one, instead of being refused.
    fn is_named_by_the_server(&self) -> bool {
        false
    }

    /// Whether finalizers must be the system's own or qualified by a domain, as all built-in kinds
    /// demand. Custom kinds never did.
    fn needs_qualified_finalizers(&self) -> bool {
        !self.is_custom()
    }

    /// How new versions are checked for their metadata once more.
    fn metadata_check(&self) -> MetadataCheck {
        MetadataCheck::Change
    }

    /// Whether `status` is written through its own subresource.
    fn has_status(&self) -> bool {
        false
    }

    /// What a write through the main resource, or through the subresource `part`, cannot change
    /// and nobody comes to own by it.
    fn reset_fields(&self, part: Option<&str>) -> &'static [&'static [&'static str]] {
        match part {
            Some("status") => &[&["spec"]],
            _ if self.has_status() => &[&["status"]],
            _ => &[],
        }
    }

    /// Whether `metadata.generation` is kept (1 at creation, one more for each change outside
    /// `metadata` and `status`).
    fn has_generation(&self) -> bool {
        self.has_status()
    }

    /// Whether a PUT without `metadata.resourceVersion` is allowed.
    fn allows_unconditional_update(&self) -> bool {
        !self.is_custom()
    }

    /// Whether a PUT to a name that does not exist creates the object.
    fn allows_create_on_update(&self) -> bool {
        false
    }

    /// What happens to dependents when the request does not say.
    fn default_propagation(&self) -> Propagation {
        Propagation::Background
    }

    /// What to tell somebody who deletes an object without a word on its dependents.
    fn warning_on_default_propagation(&self) -> Option<&'static str> {
        None
    }

    /// How many seconds of grace a deletion gets, given what the request asked for; `None` when the
    /// kind is always deleted at once.
    fn grace_period(&self, _object: &Json, _requested: Option<i64>) -> Option<i64> {
        None
    }

    /// Whether a delete answers with the object instead of a Status.
    fn delete_returns_object(&self) -> bool {
        false
    }

    /// The fields selectors may name beside `metadata.name` and `metadata.namespace`, whose values
    /// are kept beside each object.
    fn selectable_fields(&self) -> &'static [&'static str] {
        &[]
    }

    /// Whether selectors may name a field beside `metadata.name` and `metadata.namespace`.
    fn is_selectable(&self, field: &str) -> bool {
        self.selectable_fields().contains(&field)
    }

    /// The value of a selectable field; empty when absent.
    fn field_value(&self, _object: &Json, _field: &str) -> String {
        String::new()
    }

    /// What a client is told that selects by a field this kind cannot be selected by.
    fn unsupported_field(&self, field: &str) -> String {
        if self.selectable_fields().is_empty() && !self.is_custom() {
            format!(
                "{field:?} is not a known field selector: only \"metadata.name\", \
                 \"metadata.namespace\""
            )
        } else {
            format!("field label not supported: {field}")
        }
    }

    /// The columns of the kind's Table.
    fn columns(&self) -> &'static [Column];

    /// `columnDefinitions` of the kind's Table.
    fn column_definitions(&self) -> Vec<Value> {
        self.columns().iter().map(table::definition).collect()
    }

    /// One row of the kind's Table: a cell for each of [`Strategy::column_definitions`].
    fn row(&self, object: &Json, now: Timestamp) -> Vec<Value>;

    /// What a row says beside its cells, as TableRowCondition objects.
    fn row_conditions(&self, _object: &Json) -> Vec<Value> {
        Vec::new()
    }

    /// The schema by which objects are decoded, for kinds that were defined at run time.
    fn schema(&self) -> Option<&Schema> {
        None
    }

    /// The schema that clients are shown, for kinds that were defined at run time.
    fn published_schema(&self) -> Option<&Value> {
        None
    }

    /// The kind of lists, if it is not the kind followed by `List`.
    fn list_kind(&self) -> Option<&str> {
        None
    }

    /// How replicas are scaled, if objects have any.
    fn scale(&self) -> Option<&Scale> {
        None
    }

    /// Turns an object of this resource's version into the stored form. Most kinds are stored as
    /// they are served.
    fn to_stored(&self, object: Json) -> Json {
        object
    }

    /// Turns a stored object into this resource's version.
    #[expect(clippy::wrong_self_convention, reason = "`self` is a kind, not what is converted")]
    fn from_stored(&self, object: Json) -> Json {
        object
    }

    /// The verbs that clients are told of, if those are not all that there are.
    fn listed_verbs(&self) -> Option<&'static [&'static str]> {
        None
    }

    /// Whether [`Strategy::to_stored`] and [`Strategy::from_stored`] do anything.
    fn is_converted(&self) -> bool {
        false
    }
}

/// Makes `field` of `object` what it is in `old`.
pub fn keep(object: &mut Json, old: &Json, field: &str) {
    match old.get(field) {
        Some(value) => drop(object.insert(field.to_owned(), value.clone())),
        None => drop(object.remove(field)),
    }
}
