//! A count of the commits made safe, kept beside the file that holds them.
//!
//! The engine takes a newest commit that makes no sense for one cut short by a crash, and goes back
//! to the one before. That is right for a commit nobody was told of. For one that was promised it
//! would be a silent loss, so the count of promised commits is kept where the engine does not go:
//! a state with fewer is damaged.

use std::{
    fs::{File, OpenOptions},
    io,
    os::unix::fs::{FileExt as _, OpenOptionsExt as _},
    path::Path,
};

/// The name of the file in the data directory.
const FILE: &str = "state.commits";
/// The count, and its complement, by which a torn or foreign file is known.
const LENGTH: usize = 16;

/// The count of a data directory.
pub(super) struct Witness {
    file: File,
}

impl Witness {
    pub(super) fn open(dir: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        Ok(Self { file: options.open(dir.join(FILE))? })
    }

    /// How many commits were promised, at the least.
    pub(super) fn promised(&self) -> u64 {
        let mut bytes = [0; LENGTH];
        if self.file.read_exact_at(&mut bytes, 0).is_err() {
            return 0;
        }
        let [count, complement] =
            [0, 8].map(|at| u64::from_le_bytes(std::array::from_fn(|index| bytes[at + index])));
        if complement == !count { count } else { 0 }
    }

    /// Notes that so many commits are safe.
    ///
    /// It is written and not made safe itself: after a loss of power the count may be behind, which
    /// accuses nobody, and a commit costs no second flush. A disk that takes no more writes is the
    /// next commit's to report.
    pub(super) fn promise(&self, commits: u64) {
        let mut bytes = [0; LENGTH];
        bytes[..8].copy_from_slice(&commits.to_le_bytes());
        bytes[8..].copy_from_slice(&(!commits).to_le_bytes());
        let _behind = self.file.write_all_at(&bytes, 0);
    }
}
