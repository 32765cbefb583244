//! Files that must be whole or absent, and readable by their owner only.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

/// What went wrong with a file, and which one it was.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} {}", path.display())]
pub struct FileError {
    /// What was tried, as a verb.
    pub action: &'static str,
    /// The file.
    pub path: PathBuf,
    /// Why it failed.
    #[source]
    pub source: io::Error,
}

/// Replaces `path` with `content`, mode 0600: a reader sees the old file or the new one, never a
/// part.
pub fn write_private(path: &Path, content: &[u8]) -> Result<(), FileError> {
    let failed = |source| FileError { action: "write", path: path.to_owned(), source };
    let folder = path.parent().unwrap_or_else(|| Path::new("."));
    let mut name = path.file_name().unwrap_or_default().to_owned();
    // The process id keeps two writers of one file from sharing a temporary one.
    name.push(format!(".{}.tmp", std::process::id()));
    let temporary = folder.join(name);
    let write = || -> io::Result<()> {
        match fs::remove_file(&temporary) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file =
            OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
        file.write_all(content)?;
        file.sync_all()?;
        fs::rename(&temporary, path)?;
        File::open(folder)?.sync_all()
    };
    write().map_err(failed)
}

/// Reads a file whole; `None` when it is not there.
pub fn read_if_present(path: &Path) -> Result<Option<String>, FileError> {
    match fs::read_to_string(path) {
        Ok(content) => Ok(Some(content)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(FileError { action: "read", path: path.to_owned(), source }),
    }
}

/// Makes a folder, and those above it, mode 0700 where they are new.
pub fn private_folder(path: &Path) -> Result<(), FileError> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(|source| FileError {
        action: "make",
        path: path.to_owned(),
        source,
    })
}

/// How long a file may stay locked by a process that is no more.
const LEFT_LOCKED: Duration = Duration::from_secs(2);

/// Locks `file` for this process. A process that was killed keeps its locks for a moment, as does
/// one that it was just starting, so while `holder` names one that has ended this waits.
///
/// # Errors
/// When another process has the lock, or there are no locks here.
pub fn lock(file: &File, holder: impl Fn() -> Option<u32>) -> Result<(), TryLockError> {
    let began = Instant::now();
    loop {
        match file.try_lock() {
            Err(TryLockError::WouldBlock)
                if began.elapsed() < LEFT_LOCKED && holder().is_some_and(has_ended) =>
            {
                thread::sleep(Duration::from_millis(5));
            }
            other => return other,
        }
    }
}

/// Whether a process is gone, or on its way: then it has no command line any more.
fn has_ended(pid: u32) -> bool {
    fs::read(format!("/proc/{pid}/cmdline")).map_or(true, |line| line.is_empty())
}

#[cfg(test)]
mod lock_tests {
    use super::*;

    #[test]
    fn locks_of_the_dead_are_waited_for_and_those_of_the_living_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let held = File::create(&path).unwrap();
        held.lock().unwrap();
        let file = File::open(&path).unwrap();
        let began = Instant::now();
        assert!(matches!(lock(&file, || Some(1)), Err(TryLockError::WouldBlock)));
        assert!(matches!(lock(&file, || None), Err(TryLockError::WouldBlock)));
        assert!(began.elapsed() < LEFT_LOCKED);
        let freeing = thread::spawn(move || {
            thread::sleep(Duration::from_millis(50));
            drop(held);
        });
        assert!(lock(&file, || Some(u32::MAX)).is_ok());
        freeing.join().unwrap();
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn private_files_are_replaced_whole_and_closed_to_others() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/b/secret");
        private_folder(path.parent().unwrap()).unwrap();
        for content in ["one", "two, longer"] {
            write_private(&path, content.as_bytes()).unwrap();
            assert_eq!(read_if_present(&path).unwrap().unwrap(), content);
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        }
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "nothing left behind");
    }

    #[test]
    fn errors_name_the_file() {
        let error = write_private(Path::new("/nonexistent/x"), b"").unwrap_err();
        assert_eq!(error.to_string(), "cannot write /nonexistent/x");
        assert!(read_if_present(Path::new("/nonexistent/x")).unwrap().is_none());
    }
}
