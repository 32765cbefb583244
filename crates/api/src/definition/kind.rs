//! How objects of a kind that a user defined are filled in, checked and shown: by the schema.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;

use super::{
    check, embedded, fill, lists, printed::Columns, prune, rules, scale::Scale, schema::Schema,
};
use crate::{
    custom::{self, UNCHECKED},
    field::{ErrorKind, ErrorList, FieldError, Path},
    json::{at, list, text},
    names,
    strategy::{Column, Json, Strategy, WriteContext, keep},
};

/// One version of a kind.
#[derive(Debug)]
pub struct CustomStrategy {
    pub(super) api_version: String,
    pub(super) kind: String,
    pub(super) list_kind: String,
    pub(super) schema: Schema,
    /// The schema of the version that objects are stored in, if that is another one.
    pub(super) stored: Option<Arc<Schema>>,
    /// The schema as it was given.
    pub(super) published: Value,
    pub(super) has_status: bool,
    pub(super) scale: Option<Scale>,
    pub(super) columns: Columns,
    /// Without the dot at the beginning.
    pub(super) selectable: Vec<String>,
    pub(super) deprecation: Option<String>,
    /// The verbs that clients are told of, if those are not all.
    pub(super) listed_verbs: Option<&'static [&'static str]>,
}

impl CustomStrategy {
    /// The object with what it says it is, which rules and schemas may look at.
    fn whole(&self, object: &Json) -> Json {
        let mut whole = object.clone();
        whole.insert("apiVersion".to_owned(), self.api_version.clone().into());
        whole.insert("kind".to_owned(), self.kind.clone().into());
        whole
    }

    fn faults(&self, object: &Json, old: Option<&Json>) -> ErrorList {
        let (object, old) = (self.whole(object), old.map(|old| self.whole(old)));
        let old = old.as_ref();
        let mut errors = check::check(&self.schema, &object, old);
        if let Some(scale) = &self.scale {
            errors.extend(scale.spec_faults(&object));
            errors.extend(scale.status_faults(&object));
        }
        errors.extend(embedded::faults(&self.schema, &object));
        self.add_other_faults(&object, old, &mut errors);
        errors
    }

    /// What is found by more than the schema's limits, and only when those hold.
    fn add_other_faults(&self, object: &Json, old: Option<&Json>, errors: &mut ErrorList) {
        let was_whole = old.is_none_or(|old| lists::duplicates(&self.schema, old).is_empty());
        if was_whole {
            errors.extend(lists::duplicates(&self.schema, object));
        }
        let is_blocking = |error: &FieldError| {
            matches!(
                error.kind,
                ErrorKind::NotSupported
                    | ErrorKind::Required
                    | ErrorKind::TooLong
                    | ErrorKind::TooMany
                    | ErrorKind::TypeInvalid
            )
        };
        if !self.schema.has_rules {
            return;
        }
        // What is wrong with the name is found elsewhere, and is in the way all the same.
        let is_nameless = text(object, &["metadata", "name"]).is_empty();
        if is_nameless || errors.iter().any(is_blocking) {
            errors.push(FieldError::invalid(&Path::new("<nil>"), Value::Null, UNCHECKED));
        } else {
            errors.extend(rules::check(&self.schema, object, old));
        }
    }
}

impl Strategy for CustomStrategy {
    fn fill_defaults(&self, object: &mut Json) {
        fill_in(&self.schema, object);
    }

    fn validate_create(&self, object: &Json) -> ErrorList {
        self.faults(object, None)
    }

    fn prepare_create(&self, object: &mut Json, _context: &WriteContext) {
        if self.has_status {
            object.remove("status");
        }
    }

    fn validate_update(&self, object: &Json, old: &Json) -> ErrorList {
        self.faults(object, Some(old))
    }

    /// Through `/status` nothing changes but the status.
    fn prepare_status_update(&self, object: &mut Json, old: &Json, _context: &WriteContext) {
        keep(object, old, "metadata");
    }

    fn validate_status_update(&self, object: &Json, old: &Json) -> ErrorList {
        let (object, old) = (self.whole(object), self.whole(old));
        let mut errors = ErrorList::new();
        let schema = self.schema.properties.get("status");
        if let (Some(schema), Some(status)) = (schema, object.get("status")) {
            let path = Path::new("status");
            errors.extend(check::check_part(schema, status, old.get("status"), &path));
        }
        if let Some(scale) = &self.scale {
            errors.extend(scale.status_faults(&object));
        }
        self.add_other_faults(&object, Some(&old), &mut errors);
        errors
    }

    fn warnings(&self, object: &Json, old: Option<&Json>) -> Vec<String> {
        let finalizers = |object: &Json| -> Vec<String> {
            let names = list(object, &["metadata", "finalizers"]).iter();
            names.filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let before = old.map(finalizers).unwrap_or_default();
        let mut added = finalizers(object);
        added.retain(|name| !before.contains(name));
        added.sort();
        let of_finalizers = added.iter().flat_map(|name| finalizer_warnings(name));
        let old = old.filter(|_| self.schema.has_rules).map(|old| self.whole(old));
        let let_pass = old.map(|old| rules::let_pass(&self.schema, &self.whole(object), &old));
        let let_pass = let_pass.into_iter().flatten().map(|error| error.to_string());
        let_pass.chain(of_finalizers).collect()
    }

    fn deprecation(&self) -> Option<&str> {
        self.deprecation.as_deref()
    }

    fn validate_name(&self, name: &str, is_prefix: bool) -> Vec<String> {
        names::name_is_dns_subdomain(name, is_prefix)
    }

    fn is_custom(&self) -> bool {
        true
    }

    fn has_status(&self) -> bool {
        self.has_status
    }

    fn reset_fields(&self, part: Option<&str>) -> &'static [&'static [&'static str]] {
        custom::reset_fields(self.has_status, part)
    }

    fn has_generation(&self) -> bool {
        true
    }

    fn is_selectable(&self, field: &str) -> bool {
        self.selectable.iter().any(|name| name == field)
    }

    fn field_value(&self, object: &Json, field: &str) -> String {
        let keys: Vec<&str> = field.split('.').collect();
        match at(object, &keys) {
            Some(Value::String(text)) => text.clone(),
            None | Some(Value::Null) => String::new(),
            Some(other) => other.to_string(),
        }
    }

    fn columns(&self) -> &'static [Column] {
        &[]
    }

    fn column_definitions(&self) -> Vec<Value> {
        self.columns.definitions()
    }

    fn row(&self, object: &Json, now: Timestamp) -> Vec<Value> {
        self.columns.row(object, now)
    }

    fn listed_verbs(&self) -> Option<&'static [&'static str]> {
        self.listed_verbs
    }

    fn schema(&self) -> Option<&Schema> {
        Some(&self.schema)
    }

    fn published_schema(&self) -> Option<&Value> {
        Some(&self.published)
    }

    fn list_kind(&self) -> Option<&str> {
        (!self.list_kind.is_empty()).then_some(&*self.list_kind)
    }

    fn scale(&self) -> Option<&Scale> {
        self.scale.as_ref()
    }

    /// The version that objects are stored in does not know all that others do.
    fn to_stored(&self, mut object: Json) -> Json {
        if let Some(stored) = &self.stored {
            prune::prune(stored, &mut object);
        }
        object
    }

    /// What is stored was written by the schema of its time, in the version of its time. What it
    /// lacks is filled in by the version that it is stored in, and by no other.
    fn from_stored(&self, mut object: Json) -> Json {
        let stored = self.stored.as_deref().unwrap_or(&self.schema);
        prune::prune(stored, &mut object);
        fill_in(stored, &mut object);
        if self.stored.is_some() {
            prune::prune(&self.schema, &mut object);
            prune::drop_nulls(Some(&self.schema), &mut object);
        }
        object
    }

    fn is_converted(&self) -> bool {
        true
    }
}

/// Fills in what an object lacks; what is null and may not be is lacking too.
fn fill_in(schema: &Schema, object: &mut Json) {
    prune::drop_nulls(Some(schema), object);
    fill::fill(schema, object);
}

/// Takes fields that a schema does not know out of an object. The answer is their paths.
pub fn prune(schema: &Schema, object: &mut Json) -> Vec<String> {
    prune::prune(schema, object)
}

fn finalizer_warnings(name: &str) -> Vec<String> {
    let place = format!("metadata.finalizers: {name:?}");
    let mut warnings: Vec<String> =
        names::qualified_name(name).iter().map(|fault| format!("{place}: {fault}")).collect();
    let known = ["orphan", "foregroundDeletion", "kubernetes"];
    if !name.contains('/') && !known.contains(&name) {
        let path = if name.contains('.') { " including a path (/)" } else { "" };
        warnings.push(format!(
            "{place}: prefer a domain-qualified finalizer name{path} to avoid accidental conflicts \
             with other finalizer writers"
        ));
    }
    warnings
}

#[cfg(test)]
mod tests;
