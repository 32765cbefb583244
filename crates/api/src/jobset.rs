//! jobset.x-k8s.io/v1alpha2 JobSet.

mod cel;
mod defaults;
mod fill;
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

pub use strategy::JobSetStrategy;
pub use table::{PRINTED, Printed};
pub use types::*;

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

/// The name of the schema in OpenAPI documents.
const SCHEMA: &str = "io.x-k8s.jobset.v1alpha2.JobSet";
