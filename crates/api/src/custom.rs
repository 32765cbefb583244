//! Kinds that Kubernetes does not have: their schemas are made of Rust types.
//!
//! [`generate::files`] turns the types into OpenAPI schemas, the table by which bodies are decoded
//! and patches pruned, and a CustomResourceDefinition. All of it is committed (`cargo xtask crds`
//! writes it, a test checks that it is current), so that at run time custom kinds go the way of
//! built-in ones. What an API server checks of a custom object by its schema alone is in
//! [`check()`].

mod check;
mod fill;
pub mod generate;
mod printed;
pub mod published;

use serde_json::Value;

pub(crate) use check::UNCHECKED;
pub use check::{Checked, by_definition, check, duplicates};
pub use fill::fill;
pub use printed::{Printed, columns, row};

/// The definitions of custom kinds, written by `cargo xtask crds`.
static DEFINITIONS: &str = include_str!("../openapi/definitions.json");

/// The definitions of custom kinds, as clients see them beside those of their own.
pub fn definitions() -> impl Iterator<Item = Value> {
    DEFINITIONS.lines().filter_map(|line| {
        let (_, text) = line.strip_prefix('"')?.split_once("\":")?;
        serde_json::from_str(text.strip_suffix(',').unwrap_or(text)).ok()
    })
}

/// Whether the definition of this name is one of those.
pub(crate) fn is_defined(name: &str) -> bool {
    let named = |line: &str| line.strip_prefix('"')?.strip_prefix(name).map(str::to_owned);
    DEFINITIONS.lines().filter_map(named).any(|rest| rest.starts_with("\":"))
}

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
