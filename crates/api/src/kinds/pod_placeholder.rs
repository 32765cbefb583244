//! Pod until its own module registers it.

use jiff::Timestamp;
use serde_json::Value;

use crate::{
    names,
    strategy::{Column, Json, Strategy},
    table::{NAME_AND_AGE, name_and_age},
};

/// Pod.
#[derive(Debug)]
pub struct PodPlaceholder;

impl Strategy for PodPlaceholder {
    fn validate_name(&self, name: &str, is_prefix: bool) -> Vec<String> {
        names::name_is_dns_subdomain(name, is_prefix)
    }

    fn has_status(&self) -> bool {
        true
    }

    fn delete_returns_object(&self) -> bool {
        true
    }

    fn columns(&self) -> &'static [Column] {
        NAME_AND_AGE
    }

    fn row(&self, object: &Json, now: Timestamp) -> Vec<Value> {
        name_and_age(object, now)
    }
}
