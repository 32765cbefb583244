//! Makes places for mounts without creating anything on the machine.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{Mode, OFlags, open};
use rustix::mount::{MountFlags, mount, mount_bind_recursive};

/// A folder with more entries is not covered: each would be a mount of its own.
const CHILDREN_MAX: usize = 4096;
/// As the kernel has it.
const LINKS_MAX: usize = 40;

/// The files of the container, at `root` while they are arranged.
pub(super) struct Tree {
    root: PathBuf,
    /// Folders in memory, where anything can be created.
    own: BTreeSet<PathBuf>,
    /// Volumes already mounted, and whether they are read-only.
    volumes: Vec<(PathBuf, bool)>,
    warnings: Vec<String>,
    /// Whether there is nothing to tell about what is placed next.
    is_quiet: bool,
}

impl Tree {
    pub(super) fn new(root: PathBuf, root_is_own: bool) -> Self {
        let own = if root_is_own { BTreeSet::from([root.clone()]) } else { BTreeSet::new() };
        Self { root, own, volumes: Vec::new(), warnings: Vec::new(), is_quiet: false }
    }

    pub(super) fn into_warnings(self) -> Vec<String> {
        self.warnings
    }

    /// Says whether users are to be told what placing the next volume costs them.
    pub(super) fn set_quiet(&mut self, is_quiet: bool) {
        self.is_quiet = is_quiet;
    }

    /// Notes that something is mounted at `target`.
    pub(super) fn mounted(&mut self, target: PathBuf, read_only: bool) {
        self.volumes.push((target, read_only));
    }

    /// Notes that `dir` is in memory.
    pub(super) fn note_own(&mut self, dir: PathBuf) {
        self.own.insert(dir);
    }

    /// Where `path` of the container is right now, if it exists.
    pub(super) fn existing(&self, path: &Path) -> Option<PathBuf> {
        let (found, missing) = self.resolve(path).ok()?;
        missing.is_empty().then_some(found)
    }

    /// Where `source` can be mounted so that the container sees it at `target`.
    pub(super) fn place(&mut self, target: &Path, source: &Path) -> io::Result<PathBuf> {
        let is_dir = fs::metadata(source)?.is_dir();
        let (found, missing) = self.resolve(target)?;
        if missing.is_empty() {
            return match (is_dir, fs::metadata(&found)?.is_dir()) {
                (true, false) => Err(io::Error::new(
                    io::ErrorKind::NotADirectory,
                    "a directory cannot be mounted onto a file",
                )),
                (false, true) => Err(io::Error::new(
                    io::ErrorKind::IsADirectory,
                    "a file cannot be mounted onto a directory",
                )),
                _ => Ok(found),
            };
        }
        self.make_writable(&found)?;
        let mut path = found;
        for (index, name) in missing.iter().enumerate() {
            path.push(name);
            if is_dir || index + 1 < missing.len() {
                fs::create_dir(&path)?;
                fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
                if !self.is_in_volume(&path) {
                    self.own.insert(path.clone());
                }
            } else {
                File::create(&path)?;
            }
        }
        Ok(path)
    }

    /// Follows `path` as far as it exists. Links are followed within the container's root.
    fn resolve(&self, path: &Path) -> io::Result<(PathBuf, Vec<OsString>)> {
        let mut todo: Vec<OsString> = normal_components(path);
        todo.reverse();
        let mut at = self.root.clone();
        let mut links = 0;
        while let Some(name) = todo.pop() {
            if name == ".." {
                if at != self.root {
                    at.pop();
                }
                continue;
            }
            let next = at.join(&name);
            let meta = match fs::symlink_metadata(&next) {
                Ok(meta) => meta,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    todo.push(name);
                    todo.reverse();
                    return Ok((at, todo));
                }
                Err(error) => return Err(error),
            };
            if !meta.is_symlink() {
                at = next;
                continue;
            }
            links += 1;
            if links > LINKS_MAX {
                return Err(io::Error::new(io::ErrorKind::InvalidInput, "too many links"));
            }
            let link = fs::read_link(&next)?;
            if link.is_absolute() {
                at.clone_from(&self.root);
            }
            todo.extend(normal_components(&link).into_iter().rev());
        }
        Ok((at, todo))
    }

    /// Makes it possible to create an entry in `dir` that the machine does not get to see.
    fn make_writable(&mut self, dir: &Path) -> io::Result<()> {
        if self.own.contains(dir) {
            return Ok(());
        }
        if let Some((_, read_only)) = self.volumes.iter().find(|(at, _)| dir.starts_with(at)) {
            // As elsewhere, a mount inside a volume creates its folder in that volume.
            return if *read_only {
                Err(io::Error::new(io::ErrorKind::ReadOnlyFilesystem, "read-only volume"))
            } else {
                Ok(())
            };
        }
        if !fs::metadata(dir)?.is_dir() {
            return Err(io::Error::new(io::ErrorKind::NotADirectory, "not a directory"));
        }
        let held = File::from(open(
            dir,
            OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
        )?);
        let meta = held.metadata()?;
        let options = format!("mode={:o}", meta.mode() & 0o7777);
        let options = std::ffi::CString::new(options).expect("digits have no NUL");
        mount("tmpfs", dir, "tmpfs", MountFlags::empty(), Some(options.as_c_str()))?;
        // In a user namespace other owners cannot be given; then it is our own.
        let _ = std::os::unix::fs::chown(dir, Some(meta.uid()), Some(meta.gid()));
        mirror(Path::new(&format!("/proc/self/fd/{}", held.as_raw_fd())), dir)?;
        self.own.insert(dir.to_owned());
        let seen = Path::new("/").join(dir.strip_prefix(&self.root).unwrap_or(dir));
        if !self.is_quiet && seen != Path::new("/") && seen != Path::new("/dev") {
            self.warnings.push(format!(
                "a path below {} does not exist on this machine: \
                 what the container itself creates in that folder is not kept",
                seen.display()
            ));
        }
        Ok(())
    }

    fn is_in_volume(&self, path: &Path) -> bool {
        self.volumes.iter().any(|(at, _)| path.starts_with(at))
    }
}

/// Shows every entry of `from` in the empty folder `to`.
pub(super) fn mirror(from: &Path, to: &Path) -> io::Result<()> {
    let entries = match fs::read_dir(from) {
        // Who cannot list the folder would not have seen its entries either.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Ok(()),
        other => other?,
    };
    for (count, entry) in entries.enumerate() {
        if count == CHILDREN_MAX {
            return Err(io::Error::other(format!("{} has too many entries", to.display())));
        }
        let entry = entry?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type()?;
        if kind.is_symlink() {
            symlink(fs::read_link(&source)?, &target)?;
            continue;
        }
        if kind.is_dir() {
            fs::create_dir(&target)?;
        } else {
            File::create(&target)?;
        }
        match mount_bind_recursive(&source, &target) {
            // The entry went away meanwhile, or cannot be mounted: it is left out.
            Err(error) if error == rustix::io::Errno::NOENT => {
                let _ = fs::remove_dir(&target).or_else(|_| fs::remove_file(&target));
            }
            other => other?,
        }
    }
    Ok(())
}

/// The names of `path`, with `..` kept where it has an effect.
fn normal_components(path: &Path) -> Vec<OsString> {
    path.components()
        .filter_map(|part| match part {
            Component::Normal(name) => Some(name.to_owned()),
            Component::ParentDir => Some(OsString::from("..")),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
        })
        .collect()
}
