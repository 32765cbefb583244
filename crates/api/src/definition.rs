//! CustomResourceDefinitions of users: what is wrong with them, which names they get, and the kinds
//! that they make.
//!
//! A definition is an object like any other. [`names::settle`] says which of its names are accepted
//! beside those of others, [`served::of`] turns an established one into resources whose strategy
//! ([`kind::CustomStrategy`]) goes by the schema alone. Nobody here knows where definitions are
//! kept, or when.

mod check;
mod defaults;
pub(crate) mod embedded;
mod fieldpath;
mod fill;
pub mod kind;
mod lists;
pub mod names;
mod printed;
mod prune;
mod rules;
pub mod scale;
pub mod schema;
pub mod served;
mod strategy;
mod validation;
mod walk;

use serde_json::Value;

use crate::{json::list, strategy::Json};

pub use strategy::DefinitionStrategy;

/// The group of definitions.
pub const GROUP: &str = "apiextensions.k8s.io";
/// The plural name of definitions, and the name of their table.
pub const PLURAL: &str = "customresourcedefinitions";
/// Keeps a definition until the objects of its kind are gone.
pub const FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";

/// The condition `name` of a definition.
pub fn condition<'a>(definition: &'a Json, name: &str) -> Option<&'a Value> {
    list(definition, &["status", "conditions"]).iter().find(|it| it["type"] == name)
}

/// Whether a condition of a definition is true.
pub fn is_true(definition: &Json, name: &str) -> bool {
    condition(definition, name).is_some_and(|condition| condition["status"] == "True")
}
