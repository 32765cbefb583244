//! Kinds that Kubernetes does not have: their schemas are made of Rust types.
//!
//! [`generate::files`] turns the types into OpenAPI schemas, the table by which bodies are decoded
//! and patches pruned, and a CustomResourceDefinition. All of it is committed (`cargo xtask crds`
//! writes it, a test checks that it is current), so that at run time custom kinds go the way of
//! built-in ones. What an API server checks of a custom object by its schema alone is in
//! [`check()`].

mod check;
pub mod generate;
mod printed;
pub mod published;

pub use check::{Checked, by_definition, check, duplicates, fill};
pub use printed::{Printed, columns, row};

/// What writes of a custom kind cannot change: through `/status` nothing but the status.
pub(crate) fn reset_fields(
    has_status: bool,
    part: Option<&str>,
) -> &'static [&'static [&'static str]] {
    match part {
        Some("status") => &[&["metadata"], &["spec"]],
        _ if has_status => &[&["status"]],
        _ => &[],
    }
}
