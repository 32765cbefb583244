//! jobset.x-k8s.io/v1alpha2 JobSet.

mod cel;
mod defaults;
mod fill;
pub mod in_place;
mod lint;
mod matching;
pub mod names;
mod strategy;
mod table;
#[cfg(test)]
mod tests;
mod types;
mod update;
mod validation;

pub use matching::{MessagePatterns, pattern_fault};
pub use strategy::JobSetStrategy;
pub(crate) use table::PRINTED;
pub use types::*;

use crate::{field::ErrorList, strategy::Json};

/// Says what is wrong with the volume claim policies of a new set whose claims exist already;
/// `find` gives the claim of a name in the namespace of the set.
pub fn validate_existing_claims(object: &Json, find: impl Fn(&str) -> Option<Json>) -> ErrorList {
    validation::validate_existing(object, find)
}

/// The API group.
pub const GROUP: &str = "jobset.x-k8s.io";
/// The API version.
pub const VERSION: &str = "v1alpha2";
/// Group and version.
pub const API_VERSION: &str = "jobset.x-k8s.io/v1alpha2";
/// The kind.
pub const KIND: &str = "JobSet";
/// The name in paths.
pub const PLURAL: &str = "jobsets";

/// Of how many Jobs of a replicated job the status can keep how often each was restarted. Larger
/// ones cannot have their Jobs restarted one by one.
pub const RESTARTS_KEPT_MAX: i32 = 1024;

/// The name of the schema in OpenAPI documents.
const SCHEMA: &str = "io.x-k8s.jobset.v1alpha2.JobSet";
