//! Replaces all files of a volume at once.
//!
//! The files are in a folder of their own, `..data` is a link to it, and what users see are links
//! through `..data`: moving that one link changes everything at the same moment.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use super::payload::{FileContent, Payload};

const DATA: &str = "..data";
const DATA_NEW: &str = "..data_tmp";

/// Makes `dir` contain exactly `payload`. Returns whether that changed anything.
pub(super) fn write(dir: &Path, payload: &Payload) -> io::Result<bool> {
    let old = fs::read_link(dir.join(DATA)).ok();
    if old.as_ref().is_some_and(|old| is_same(&dir.join(old), payload)) {
        // A crash may have come between the two steps below.
        return link_names(dir, payload).map(|()| false);
    }
    let new = new_folder(dir)?;
    for (path, content) in payload {
        write_file(&dir.join(&new).join(path), content)?;
    }
    let _ = fs::remove_file(dir.join(DATA_NEW));
    symlink(&new, dir.join(DATA_NEW))?;
    fs::rename(dir.join(DATA_NEW), dir.join(DATA))?;
    link_names(dir, payload)?;
    remove_old(dir, &new)?;
    Ok(true)
}

/// A new folder, named by the time as kubelets do.
fn new_folder(dir: &Path) -> io::Result<PathBuf> {
    let now = Timestamp::now().as_nanosecond();
    let mut number = now;
    loop {
        let name = PathBuf::from(format!("..{number}"));
        match fs::create_dir(dir.join(&name)) {
            Ok(()) => {
                fs::set_permissions(dir.join(&name), fs::Permissions::from_mode(0o755))?;
                return Ok(name);
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
            Err(error) => return Err(error),
        }
    }
}

fn write_file(path: &Path, content: &FileContent) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::write(path, &content.data)?;
    fs::set_permissions(path, fs::Permissions::from_mode(content.mode))
}

/// Links every first name of a path through `..data` and removes links to what is no more.
fn link_names(dir: &Path, payload: &Payload) -> io::Result<()> {
    let names: BTreeSet<&str> = payload.keys().filter_map(|path| path.split('/').next()).collect();
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let name = entry.file_name();
        let is_ours = name.to_str().is_some_and(|name| name.starts_with(".."));
        if !is_ours && !name.to_str().is_some_and(|name| names.contains(name)) {
            fs::remove_file(entry.path())?;
        }
    }
    for name in names {
        if fs::symlink_metadata(dir.join(name)).is_err() {
            symlink(Path::new(DATA).join(name), dir.join(name))?;
        }
    }
    Ok(())
}

fn remove_old(dir: &Path, new: &Path) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let name = entry.file_name();
        let is_folder = entry.file_type()?.is_dir();
        if is_folder && name.to_string_lossy().starts_with("..") && name != *new.as_os_str() {
            fs::remove_dir_all(entry.path())?;
        }
    }
    Ok(())
}

fn is_same(dir: &Path, payload: &Payload) -> bool {
    let matches = |(path, content): (&String, &FileContent)| {
        let path = dir.join(path);
        let mode = fs::metadata(&path).map(|meta| meta.permissions().mode() & 0o777);
        mode.is_ok_and(|mode| mode == content.mode)
            && fs::read(&path).is_ok_and(|data| data == content.data)
    };
    count_files(dir).is_ok_and(|count| count == payload.len()) && payload.iter().all(matches)
}

fn count_files(dir: &Path) -> io::Result<usize> {
    let mut count = 0;
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        count += if entry.file_type()?.is_dir() { count_files(&entry.path())? } else { 1 };
    }
    Ok(count)
}
