//! The data directory of `lockstep up`, as far as commands need to know it.

use std::{
    fs::{self, File, TryLockError},
    io::Write,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

/// Where `up` keeps its data when it is not told: `$XDG_DATA_HOME/lockstep`.
pub(crate) fn default() -> Result<PathBuf> {
    let base = match std::env::var_os("XDG_DATA_HOME") {
        Some(folder) if !folder.is_empty() => PathBuf::from(folder),
        _ => std::env::home_dir()
            .context("no home directory: say where with --data-dir")?
            .join(".local")
            .join("share"),
    };
    Ok(base.join("lockstep"))
}

/// The kubeconfig `up` writes.
pub(crate) fn kubeconfig(folder: &Path) -> PathBuf {
    folder.join("kubeconfig")
}

/// Where a detached `up` puts what it has to say.
pub(crate) fn log(folder: &Path) -> PathBuf {
    folder.join("lockstep.log")
}

/// The command that stops whoever serves from a folder.
pub(crate) fn down(folder: &Path) -> String {
    if default().is_ok_and(|usual| usual == folder) {
        return "lockstep down".to_owned();
    }
    let shown = folder.display().to_string();
    let is_plain =
        shown.chars().all(|letter| letter.is_alphanumeric() || "/._-+,".contains(letter));
    if is_plain {
        format!("lockstep down --data-dir {shown}")
    } else {
        format!("lockstep down --data-dir '{}'", shown.replace('\'', "'\\''"))
    }
}

fn pid_file(folder: &Path) -> PathBuf {
    folder.join("lockstep.pid")
}

/// Says, for as long as it lives, that a process serves from a folder.
#[derive(Debug)]
pub(crate) struct Running {
    path: PathBuf,
    _locked: File,
}

impl Running {
    /// Claims `folder` for this process.
    pub(crate) fn claim(folder: &Path) -> Result<Self> {
        let path = pid_file(folder);
        let mut file = File::options()
            .create(true)
            .read(true)
            .write(true)
            .truncate(false)
            .open(&path)
            .with_context(|| format!("cannot write {}", path.display()))?;
        match lockstep_local::files::lock(&file, || running(folder)) {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let pid =
                    running(folder).map(|pid| format!(" (process {pid})")).unwrap_or_default();
                anyhow::bail!(
                    "another lockstep{pid} serves from {}; stop it with `{}`, or give this one its \
                     own --data-dir",
                    folder.display(),
                    down(folder)
                );
            }
            Err(TryLockError::Error(error)) => {
                return Err(error).with_context(|| format!("cannot lock {}", path.display()));
            }
        }
        file.set_len(0)?;
        writeln!(file, "{}", std::process::id())?;
        Ok(Self { path, _locked: file })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(fs::remove_file(&self.path));
    }
}

/// The process that serves from `folder`, if one does. A file left behind by a killed process does
/// not count: the lock on it went with the process.
pub(crate) fn running(folder: &Path) -> Option<u32> {
    let path = pid_file(folder);
    let file = File::open(&path).ok()?;
    match file.try_lock_shared() {
        Ok(()) | Err(TryLockError::Error(_)) => None,
        Err(TryLockError::WouldBlock) => fs::read_to_string(&path).ok()?.trim().parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_claimed_by_one_process_at_a_time() {
        let folder = tempfile::tempdir().expect("a folder");
        assert_eq!(running(folder.path()), None);
        let claim = Running::claim(folder.path()).expect("free");
        assert_eq!(running(folder.path()), Some(std::process::id()));
        let refused = Running::claim(folder.path()).expect_err("taken").to_string();
        assert!(refused.starts_with("another lockstep (process "), "{refused}");
        let stop = format!("`lockstep down --data-dir {}`", folder.path().display());
        assert!(refused.contains(&stop), "{refused}");
        drop(claim);
        assert_eq!(running(folder.path()), None);
        fs::write(pid_file(folder.path()), "1\n").expect("written");
        assert_eq!(running(folder.path()), None, "a stale file is no process");
    }

    #[test]
    fn the_command_that_stops_a_cluster_can_be_copied() {
        let usual = default().expect("a home");
        assert_eq!(down(&usual), "lockstep down");
        assert_eq!(down(Path::new("/a/b-1")), "lockstep down --data-dir /a/b-1");
        let odd = down(Path::new("/it's a"));
        assert_eq!(odd, "lockstep down --data-dir '/it'\\''s a'");
    }
}
