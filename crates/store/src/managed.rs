//! Who owns which fields of an object: `metadata.managedFields`, and what writes do to it.
//!
//! Owners are kept as the JSON they are shown as, beside the object and not in it: most writes
//! carry them over without a look, and those that do look read them straight into sets. What a
//! write changes is found by comparing versions, so a write costs what it changes.

mod apply;
mod cap;
mod conflict;
mod entry;
mod last_applied;
mod scale;
mod update;

use std::sync::LazyLock;

use jiff::Timestamp;
use lockstep_api::strategy::Json;

pub use apply::Applied;
pub use conflict::Conflict;
pub use entry::{Entry, Managers, Operation, Stated, is_same_but_for_times};
pub use scale::Replicas;

use crate::fields::{Place, Set};

/// Fields that nobody ever owns.
static UNOWNED: LazyLock<Set> = LazyLock::new(|| {
    Set::of(&[
        &["apiVersion"],
        &["kind"],
        &["metadata"],
        &["metadata", "name"],
        &["metadata", "namespace"],
        &["metadata", "creationTimestamp"],
        &["metadata", "selfLink"],
        &["metadata", "uid"],
        &["metadata", "clusterName"],
        &["metadata", "generation"],
        &["metadata", "managedFields"],
        &["metadata", "resourceVersion"],
    ])
});

/// The versions a kind is served in.
pub trait Versions {
    /// What objects look like in a version, nothing if it is not served.
    fn place(&self, api_version: &str) -> Option<Place<'_>>;

    /// An object of one version in another, nothing if that is not served.
    fn convert(&self, object: &Json, from: &str, to: &str) -> Option<Json>;
}

/// One write, as far as owners are concerned.
#[derive(Clone, Copy)]
pub struct Writer<'a> {
    /// Who writes.
    pub manager: &'a str,
    /// The version of the request.
    pub api_version: &'a str,
    /// The part of the object that is written, empty for all of it.
    pub subresource: &'a str,
    /// What the write cannot change, whatever it says.
    pub reset: &'a Set,
    /// The moment of the write.
    pub now: Timestamp,
    /// The versions of the kind.
    pub versions: &'a dyn Versions,
}

impl Writer<'_> {
    /// The place of objects in the version of the request.
    fn place(&self) -> Place<'_> {
        self.versions.place(self.api_version).unwrap_or(Place::Free)
    }
}

#[cfg(test)]
mod tests;
