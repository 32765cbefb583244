//! Where the store's records are made safe.

pub mod disk;

use std::path::PathBuf;

use bytes::Bytes;
use lockstep_store::{Record, Revision};

/// The tables whose writes may be lost in a crash, because whoever writes them writes them again:
/// heartbeats, and notes about what happened. Everything else is safe before it is seen.
const RELAXED: [&str; 2] = ["events", "leases"];

/// Whether writes to a table need not survive a crash.
pub fn is_relaxed(table: &str) -> bool {
    RELAXED.contains(&table)
}

/// What a journal had kept.
#[derive(Debug, Default)]
pub struct Loaded {
    /// Every object: table, key, body.
    pub objects: Vec<(String, String, Bytes)>,
    /// No revision up to this one may be given out again.
    pub highest: Revision,
    /// Who this cluster is, for as long as its journal lives.
    pub cluster_uid: String,
}

/// Keeps records. One thread owns a journal and calls it.
pub trait Journal: Send {
    /// Everything kept so far.
    ///
    /// # Errors
    /// When it cannot be read.
    fn load(&mut self) -> Result<Loaded, JournalError>;

    /// Makes `records` safe: when this returns, a crash does not lose them.
    ///
    /// # Errors
    /// When they could not be made safe; then none of them was kept, and a later commit may
    /// succeed.
    fn commit(&mut self, records: &[Record]) -> Result<(), JournalError>;

    /// Says that no commit will follow.
    fn close(&mut self) {}
}

/// Why records cannot be kept or read. The message names the file.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// Another process has it open.
    #[error("{} is in use by another process{}", path.display(), holder.map(|pid| format!(" (pid {pid})")).unwrap_or_default())]
    InUse {
        /// The directory.
        path: PathBuf,
        /// The process, if known.
        holder: Option<u32>,
    },
    /// It is not what we wrote.
    #[error("{} is damaged ({why}): restore it from a backup, or move it away to begin with an empty cluster", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The disk said no.
    #[error("cannot write {}: {why}", path.display())]
    Disk {
        /// The file.
        path: PathBuf,
        /// What the disk said.
        why: String,
    },
}
