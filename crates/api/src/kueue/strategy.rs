//! How the kinds of the group are filled in, checked and shown.

use jiff::Timestamp;
use serde_json::Value;

use super::{OLD_VERSION_WARNING, convert, kinds::Kind};
use crate::{
    annotations, custom,
    field::ErrorList,
    json::text,
    names,
    strategy::{Column, Json, Strategy, WriteContext, keep},
};

/// A kind in the version that is stored.
#[derive(Debug)]
pub struct QueueingStrategy(pub &'static Kind);

impl QueueingStrategy {
    fn schema(&self) -> &'static str {
        self.0.schemas[0]
    }

    /// What is wrong with an object that may have been another before.
    fn faults(&self, object: &Json, old: Option<&Json>) -> ErrorList {
        let errors = custom::by_definition(self.schema(), object, self.0.members, |object| {
            (self.0.expressions)(object, old)
        });
        if errors.is_empty() { (self.0.webhook)(object, old) } else { errors }
    }
}

impl Strategy for QueueingStrategy {
    fn fill_defaults(&self, object: &mut Json) {
        custom::fill(self.schema(), object);
    }

    fn prepare_create(&self, object: &mut Json, _context: &WriteContext) {
        if self.0.has_status {
            object.remove("status");
        }
        custom::fill(self.schema(), object);
    }

    fn validate_create(&self, object: &Json) -> ErrorList {
        self.faults(object, None)
    }

    fn prepare_update(&self, object: &mut Json, old: &Json, _context: &WriteContext) {
        if self.0.has_status {
            keep(object, old, "status");
        }
        custom::fill(self.schema(), object);
    }

    fn validate_update(&self, object: &Json, old: &Json) -> ErrorList {
        self.faults(object, Some(old))
    }

    fn validate_status_update(&self, object: &Json, old: &Json) -> ErrorList {
        let errors = custom::by_definition(self.schema(), object, &["status"], |object| {
            (self.0.expressions)(object, Some(old))
        });
        if errors.is_empty() { (self.0.webhook)(object, Some(old)) } else { errors }
    }

    fn warnings(&self, object: &Json, old: Option<&Json>) -> Vec<String> {
        // Those of Workloads come from their jobs, of which they are told.
        if self.0.name == "Workload" {
            return Vec::new();
        }
        annotations::warnings(object, old, annotations::OF_QUEUES)
    }

    fn validate_name(&self, name: &str, is_prefix: bool) -> Vec<String> {
        names::name_is_dns_subdomain(name, is_prefix)
    }

    fn is_custom(&self) -> bool {
        true
    }

    fn has_status(&self) -> bool {
        self.0.has_status
    }

    fn reset_fields(&self, part: Option<&str>) -> &'static [&'static [&'static str]] {
        custom::reset_fields(self.0.has_status, part)
    }

    /// Custom objects have one whether or not they have a status.
    fn has_generation(&self) -> bool {
        true
    }

    fn selectable_fields(&self) -> &'static [&'static str] {
        self.0.selectable
    }

    fn field_value(&self, object: &Json, field: &str) -> String {
        text(object, &field.split('.').collect::<Vec<_>>()).to_owned()
    }

    fn columns(&self) -> &'static [Column] {
        self.0.columns
    }

    fn row(&self, object: &Json, now: Timestamp) -> Vec<Value> {
        custom::row(self.0.printed, object, now)
    }
}

/// A kind in the version that is served by conversion.
///
/// What the older schema says is checked by it; everything else is checked of what the object
/// becomes, in the words of the stored version, as upstream's webhooks do.
#[derive(Debug)]
pub struct OldQueueingStrategy(pub &'static Kind);

impl OldQueueingStrategy {
    fn schema(&self) -> &'static str {
        self.0.schemas[1]
    }

    fn stored(&self) -> QueueingStrategy {
        QueueingStrategy(self.0)
    }

    fn converted(&self, object: &Json) -> Json {
        let mut stored = convert::to_stored(self.0.name, object.clone());
        self.stored().fill_defaults(&mut stored);
        stored
    }

    fn by_schema(&self, object: &Json, members: &[&str]) -> ErrorList {
        custom::by_definition(self.schema(), object, members, |_| ErrorList::new())
    }
}

impl Strategy for OldQueueingStrategy {
    fn fill_defaults(&self, object: &mut Json) {
        custom::fill(self.schema(), object);
    }

    fn prepare_create(&self, object: &mut Json, _context: &WriteContext) {
        if self.0.has_status {
            object.remove("status");
        }
        custom::fill(self.schema(), object);
    }

    fn validate_create(&self, object: &Json) -> ErrorList {
        let errors = self.by_schema(object, self.0.members);
        if !errors.is_empty() {
            return errors;
        }
        self.stored().validate_create(&self.converted(object))
    }

    fn prepare_update(&self, object: &mut Json, old: &Json, _context: &WriteContext) {
        if self.0.has_status {
            keep(object, old, "status");
        }
        custom::fill(self.schema(), object);
    }

    fn validate_update(&self, object: &Json, old: &Json) -> ErrorList {
        let errors = self.by_schema(object, self.0.members);
        if !errors.is_empty() {
            return errors;
        }
        self.stored().validate_update(&self.converted(object), &self.converted(old))
    }

    fn validate_status_update(&self, object: &Json, old: &Json) -> ErrorList {
        let errors = self.by_schema(object, &["status"]);
        if !errors.is_empty() {
            return errors;
        }
        self.stored().validate_status_update(&self.converted(object), &self.converted(old))
    }

    fn warnings(&self, object: &Json, old: Option<&Json>) -> Vec<String> {
        let old = old.map(|old| self.converted(old));
        self.stored().warnings(&self.converted(object), old.as_ref())
    }

    fn deprecation(&self) -> Option<&'static str> {
        Some(OLD_VERSION_WARNING)
    }

    fn validate_name(&self, name: &str, is_prefix: bool) -> Vec<String> {
        self.stored().validate_name(name, is_prefix)
    }

    fn is_custom(&self) -> bool {
        true
    }

    fn has_status(&self) -> bool {
        self.0.has_status
    }

    fn reset_fields(&self, part: Option<&str>) -> &'static [&'static [&'static str]] {
        custom::reset_fields(self.0.has_status, part)
    }

    fn has_generation(&self) -> bool {
        true
    }

    fn selectable_fields(&self) -> &'static [&'static str] {
        self.0.selectable
    }

    fn field_value(&self, object: &Json, field: &str) -> String {
        self.stored().field_value(object, field)
    }

    fn columns(&self) -> &'static [Column] {
        self.0.columns
    }

    fn row(&self, object: &Json, now: Timestamp) -> Vec<Value> {
        self.stored().row(&self.to_stored(object.clone()), now)
    }

    fn to_stored(&self, object: Json) -> Json {
        convert::to_stored(self.0.name, object)
    }

    fn from_stored(&self, object: Json) -> Json {
        convert::from_stored(self.0.name, object)
    }

    fn is_converted(&self) -> bool {
        true
    }
}
