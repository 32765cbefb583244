//! Remembers: objects, their versions, what happened to them and who owns whom.
//!
//! A write is planned as a pure function over a [`Snapshot`] (see [`rest`]), which gives a
//! [`Change`]. A change is staged in the [`Store`], its records are persisted by the caller, and
//! only then is it published: no reader sees a revision before it is safe. This crate knows no
//! disk, no clock and no thread; it hands out records and takes back "they are safe" or "they are
//! lost".
#![forbid(unsafe_code)]
#![warn(clippy::wildcard_enum_match_arm, clippy::iter_over_hash_type)]

pub mod change;
pub mod collect;
pub mod fields;
pub mod log;
pub mod managed;
pub mod object;
pub mod page;
pub mod patch;
pub mod rest;
pub mod snapshot;
pub mod store;
pub mod watch;

#[cfg(test)]
mod testing;

pub use change::{Change, Check, Expect, Op, Record, StageError, Staged, Write};
pub use log::{Event, Expired, Limits, Log};
pub use object::{Draft, Object, Selectors};
pub use snapshot::Snapshot;
pub use store::{Batch, Store};

/// A point in the history of the whole store. Each write of one object takes the next one.
pub type Revision = u64;
