//! Fields of objects as sets of paths, and what can be done with objects by such sets.
//!
//! Server-side apply knows an object as a tree of fields that each have owners. Which parts of it
//! are fields of their own follows from the schema: members of structs and maps, elements of lists
//! with keys. What is atomic has one owner as a whole. The rules are those of upstream's
//! structured-merge-diff.

mod compare;
mod element;
mod list;
mod merge;
mod owned;
mod place;
mod reconcile;
mod remove;
mod set;
mod typed;
mod wire;

pub use compare::{Comparison, compare};
pub use element::Element;
pub use merge::merge;
pub use owned::owned;
pub use place::Place;
pub use reconcile::reconciled;
pub use remove::{named_too, remove};
pub use set::{Path, Set};
pub use typed::check;
pub use wire::Malformed;

#[cfg(test)]
mod properties;
