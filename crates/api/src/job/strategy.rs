//! How Jobs are filled in, checked and shown.

use jiff::Timestamp;
use serde_json::Value;

use crate::{
    job::table,
    json::integer,
    names,
    strategy::{Column, Json, Propagation, Strategy},
};

/// Job.
#[derive(Debug)]
pub struct JobStrategy;

impl Strategy for JobStrategy {
    fn validate_name(&self, name: &str, is_prefix: bool) -> Vec<String> {
        names::name_is_dns_subdomain(name, is_prefix)
    }

    fn has_status(&self) -> bool {
        true
    }

    fn default_propagation(&self) -> Propagation {
        Propagation::Orphan
    }

    fn selectable_fields(&self) -> &'static [&'static str] {
        &["status.successful"]
    }

    fn field_value(&self, object: &Json, _field: &str) -> String {
        integer(object, &["status", "succeeded"]).unwrap_or_default().to_string()
    }

    fn unsupported_field(&self, field: &str) -> String {
        format!("field label {field:?} not supported for Job")
    }

    fn columns(&self) -> &'static [Column] {
        table::COLUMNS
    }

    fn row(&self, object: &Json, now: Timestamp) -> Vec<Value> {
        table::row(object, now)
    }
}
