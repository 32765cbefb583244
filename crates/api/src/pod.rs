//! Pods: what is filled in, what is refused, how they are shown.
//!
//! Jobs reuse [`fill_pod_spec`] and [`validation::validate_template`] for their templates.

mod account;
mod admission;
mod binding;
mod conditions;
mod defaults;
mod image;
#[cfg(test)]
mod properties;
mod qos;
mod row;
mod strategy;
pub mod validation;
mod warnings;

pub use account::{ROOT_CA, TOKEN_FOLDER, TOKEN_VOLUME, add_account};
pub use admission::{admit, set_priority};
pub use binding::bind;
pub use defaults::{fill_pod, fill_pod_spec};
pub use image::tag as image_tag;
pub use qos::class as qos_class;
pub use strategy::PodStrategy;
pub use warnings::warnings_for_template;

use crate::strategy::Json;

/// The lists of containers a pod has, in the order upstream visits them.
pub(crate) const CONTAINER_LISTS: [&str; 3] =
    ["initContainers", "containers", "ephemeralContainers"];

/// The objects of the list `key`.
fn objects_mut<'a>(
    object: &'a mut Json,
    key: &str,
) -> impl Iterator<Item = &'a mut Json> + use<'a> {
    object
        .get_mut(key)
        .and_then(serde_json::Value::as_array_mut)
        .into_iter()
        .flatten()
        .filter_map(serde_json::Value::as_object_mut)
}

/// The object at `key`, if there is one.
fn object_mut<'a>(object: &'a mut Json, key: &str) -> Option<&'a mut Json> {
    object.get_mut(key).and_then(serde_json::Value::as_object_mut)
}
