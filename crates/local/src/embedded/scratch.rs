//! The folder of a cluster that is kept nowhere.

use std::{
    fs::{self, File, OpenOptions},
    io,
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use crate::{
    files::{self, FileError},
    node::{dirs::NodeDirs, volumes},
};

const PREFIX: &str = "lockstep-run-";
/// Locked for as long as the cluster lives: the system lets go of it however the process ends.
const ALIVE: &str = "alive";

/// A temporary folder, removed when dropped with all that its pods had in memory.
pub(super) struct Scratch {
    path: PathBuf,
    _alive: File,
}

impl Scratch {
    /// Makes a folder, and clears away those of clusters that were killed.
    pub(super) fn new() -> Result<Self, FileError> {
        Self::new_in(&std::env::temp_dir())
    }

    fn new_in(parent: &Path) -> Result<Self, FileError> {
        sweep(parent);
        let path = parent.join(format!("{PREFIX}{}", uuid::Uuid::new_v4().simple()));
        files::private_folder(&path)?;
        let lock = || -> io::Result<File> {
            let path = path.join(ALIVE);
            let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
            file.lock()?;
            Ok(file)
        };
        let failed = |source| FileError { action: "lock", path: path.join(ALIVE), source };
        let alive = lock().map_err(failed)?;
        Ok(Self { path, _alive: alive })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        remove(&self.path);
    }
}

/// Removes the folders of clusters of this user that no longer live.
fn sweep(parent: &Path) {
    let own = rustix::process::geteuid().as_raw();
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let path = entry.path();
        let is_named = entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX));
        let is_own = || entry.metadata().is_ok_and(|meta| meta.is_dir() && meta.uid() == own);
        if !is_named || !is_own() {
            continue;
        }
        // One without the file is just being made, or just being removed.
        let Ok(file) = File::open(path.join(ALIVE)) else { continue };
        if file.try_lock().is_ok() {
            remove(&path);
        }
    }
}

fn remove(path: &Path) {
    volumes::remove_all_memory(&NodeDirs::new(path));
    // What cannot be removed was put there by pods; it is theirs to clean up.
    let _left_behind = fs::remove_dir_all(path);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_dead_clusters_are_cleared_away_and_others_are_not() {
        let parent = tempfile::tempdir().unwrap();
        let alive = Scratch::new_in(parent.path()).unwrap();
        let dead = parent.path().join(format!("{PREFIX}dead"));
        let fresh = parent.path().join(format!("{PREFIX}fresh"));
        let other = parent.path().join("other");
        for dir in [&dead, &fresh, &other] {
            fs::create_dir(dir).unwrap();
        }
        for dir in [&dead, &other] {
            fs::write(dir.join(ALIVE), "").unwrap();
        }
        let second = Scratch::new_in(parent.path()).unwrap();
        assert!(alive.path().is_dir() && fresh.is_dir() && other.is_dir());
        assert!(!dead.exists());
        let path = second.path().to_owned();
        drop(second);
        assert!(!path.exists());
    }
}
