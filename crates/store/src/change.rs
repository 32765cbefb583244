//! A change to the store as data: what to write, and what must still be true for it.

use std::sync::Arc;

use bytes::Bytes;

use crate::{
    Revision,
    object::{Draft, Object},
};

/// What must be true of a key for a change to go in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// There is no object.
    Absent,
    /// The object was last written by this revision.
    Revision(Revision),
    /// Anything goes.
    Any,
}

/// One write of one object.
#[derive(Clone, Debug)]
pub struct Op {
    /// The table.
    pub table: Arc<str>,
    /// The key in the table.
    pub key: Arc<str>,
    /// What must be true of the key.
    pub expect: Expect,
    /// What to do.
    pub write: Write,
}

/// What an op does to its object.
#[derive(Clone, Debug)]
pub enum Write {
    /// Makes this the current version.
    Put(Draft),
    /// Removes the object. Watchers are told its last state: this one, or else the current one.
    Delete(Option<Draft>),
}

/// Something that was looked at but is not written, and must not have changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Check {
    /// One object.
    Object {
        /// The table.
        table: Arc<str>,
        /// The key in the table.
        key: Arc<str>,
        /// What must be true of the key.
        expect: Expect,
    },
    /// A whole table: nothing in it was written after the revision.
    Table {
        /// The table.
        table: Arc<str>,
        /// The last write that was seen.
        revision: Revision,
    },
}

/// Writes that go in together or not at all.
#[derive(Clone, Debug, Default)]
#[must_use = "a change does nothing until it is staged"]
pub struct Change {
    /// What must still be true.
    pub checks: Vec<Check>,
    /// The writes, in order.
    pub ops: Vec<Op>,
}

/// What the caller must make safe before the change may be published.
#[derive(Clone, Debug)]
pub struct Record {
    /// The revision of the write.
    pub revision: Revision,
    /// The table.
    pub table: Arc<str>,
    /// The key in the table.
    pub key: Arc<str>,
    /// The new version, or nothing for a deletion.
    pub body: Option<Bytes>,
}

/// A change that was given its revisions and waits to be published.
#[derive(Debug)]
pub struct Staged {
    /// For each op the version it wrote, or for a deletion the last state with the revision of the
    /// deletion.
    pub objects: Vec<Arc<Object>>,
    /// What to make safe, in the order of revisions.
    pub records: Vec<Record>,
    /// The last revision of the change.
    pub revision: Revision,
}

/// Why a change cannot go in. Planning again on a newer snapshot may help.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StageError {
    /// Somebody else wrote first.
    #[error("{table} {key} changed since it was read")]
    Changed {
        /// The table.
        table: Arc<str>,
        /// The key; empty when it is about the table as a whole.
        key: Arc<str>,
    },
}
