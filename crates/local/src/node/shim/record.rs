//! What a shim writes down about its container.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags, flock, open, openat, renameat, unlinkat};
use rustix::io::Errno;

use super::wire::Isolation;

/// As much of a termination message as a kubelet keeps.
const MESSAGE_MAX: u64 = 4096;

/// The folder of the container. It stays within reach when its path is covered, and belongs to this
/// shim for as long as it lives: the kernel lets go of the lock when it ends, however it ends.
#[derive(Debug)]
pub(super) struct Folder(OwnedFd);

impl Folder {
    /// Takes the folder; `None` while another shim has it.
    pub(super) fn claim(path: &Path) -> io::Result<Option<Self>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = open(path, flags, Mode::empty())?;
        match flock(&folder, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Self(folder))),
            Err(Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Makes an empty file.
    pub(super) fn touch(&self, name: &str) -> io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::CLOEXEC;
        openat(&self.0, name, flags, Mode::from_raw_mode(0o600))?;
        Ok(())
    }

    /// Writes a file as a whole: it is there with its content or not at all.
    pub(super) fn write(&self, name: &str, content: &[u8], mode: u32) -> io::Result<()> {
        let temporary = format!("{name}.new");
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(mode);
        let mut file = File::from(openat(&self.0, temporary.as_str(), flags, mode)?);
        file.write_all(content)?;
        // The umask must not take away what was asked for.
        rustix::fs::fchmod(&file, mode)?;
        renameat(&self.0, temporary.as_str(), &self.0, name)?;
        Ok(())
    }

    pub(super) fn remove(&self, name: &str) {
        let _ = unlinkat(&self.0, name, AtFlags::empty());
    }

    /// The last words of the container.
    pub(super) fn message(&self, name: &str) -> String {
        let read = || -> io::Result<Vec<u8>> {
            // The container may have put anything here, even a pipe nobody writes to.
            let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
            let mut file = File::from(openat(&self.0, name, flags, Mode::empty())?);
            let meta = file.metadata()?;
            if !meta.is_file() {
                return Ok(Vec::new());
            }
            file.seek(SeekFrom::Start(meta.len().saturating_sub(MESSAGE_MAX)))?;
            let mut bytes = Vec::new();
            file.take(MESSAGE_MAX).read_to_end(&mut bytes)?;
            Ok(bytes)
        };
        let bytes = read().unwrap_or_default();
        let mut text = String::from_utf8_lossy(&bytes).into_owned();
        // Replacement characters are longer than what they replace.
        while text.len() > 4096 {
            text.pop();
        }
        text
    }
}

/// The current boot.
pub(crate) fn boot_id() -> String {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    id.trim().to_owned()
}

/// The number of the mount namespace of this process, if it has its own.
pub(super) fn own_mount_namespace(isolation: Isolation) -> Option<u64> {
    match isolation {
        Isolation::None => None,
        Isolation::Mount | Isolation::UserMount => {
            fs::metadata("/proc/self/ns/mnt").ok().map(|meta| meta.ino())
        }
    }
}
