//! One process per data directory.

use std::{
    fs::{File, OpenOptions, TryLockError},
    io::{Read as _, Seek as _, SeekFrom, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
};

use crate::{files, journal::JournalError};

/// The name of the file that is locked; it holds the pid of the process that has the lock.
const FILE: &str = "lock";

/// A directory held against other processes. The system lets go of it when the process ends,
/// however it ends.
pub(super) struct DirLock {
    _file: File,
}

impl DirLock {
    /// Takes the directory, or says who has it.
    pub(super) fn take(dir: &Path) -> Result<Self, JournalError> {
        let disk = |error: std::io::Error| JournalError::Disk {
            path: dir.join(FILE),
            why: error.to_string(),
        };
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(dir.join(FILE))
            .map_err(disk)?;
        let holder = || std::fs::read_to_string(dir.join(FILE)).ok()?.trim().parse().ok();
        match files::lock(&file, holder) {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(JournalError::InUse { path: dir.to_owned(), holder: pid(&mut file) });
            }
            Err(TryLockError::Error(error)) => return Err(disk(error)),
        }
        // The pid is for people; a full disk is no reason to refuse to read what is there.
        let _unnamed = write_pid(&mut file);
        Ok(Self { _file: file })
    }
}

fn pid(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

fn write_pid(file: &mut File) -> std::io::Result<()> {
    file.set_len(0)?;
    file.seek(SeekFrom::Start(0))?;
    writeln!(file, "{}", std::process::id())
}
