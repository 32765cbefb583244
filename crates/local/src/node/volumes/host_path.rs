//! hostPath volumes and their type checks, in the words of a kubelet.

use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The path to mount, if it is what `kind` says.
pub(super) fn check(path: &Path, kind: Option<&str>, data_dir: &Path) -> Result<PathBuf, String> {
    refuse_own(path, data_dir)?;
    let created = |error: io::Error| format!("cannot create {}: {error}", path.display());
    match kind.unwrap_or_default() {
        // Without a type anything goes, and what is missing becomes a folder.
        "" if !path.exists() => fs::create_dir_all(path).map_err(created)?,
        "DirectoryOrCreate" if !path.exists() => {
            fs::create_dir_all(path).map_err(created)?;
            fs::set_permissions(path, fs::Permissions::from_mode(0o755)).map_err(created)?;
        }
        "FileOrCreate" if !path.exists() => {
            fs::write(path, b"").map_err(created)?;
            fs::set_permissions(path, fs::Permissions::from_mode(0o644)).map_err(created)?;
        }
        _ => {}
    }
    let meta = fs::metadata(path).ok();
    let is = |test: fn(&fs::Metadata) -> bool| meta.as_ref().is_some_and(test);
    let wrong = |what| Err(format!("hostPath type check failed: {} is not {what}", path.display()));
    match kind.unwrap_or_default() {
        "" => {}
        "Directory" | "DirectoryOrCreate" if is(fs::Metadata::is_dir) => {}
        "Directory" | "DirectoryOrCreate" => return wrong("a directory"),
        "File" | "FileOrCreate" if is(fs::Metadata::is_file) => {}
        "File" | "FileOrCreate" => return wrong("a file"),
        "Socket" if is(|meta| meta.file_type().is_socket()) => {}
        "Socket" => return wrong("a socket file"),
        "CharDevice" if is(|meta| meta.file_type().is_char_device()) => {}
        "CharDevice" => return wrong("a character device"),
        "BlockDevice" if is(|meta| meta.file_type().is_block_device()) => {}
        "BlockDevice" => return wrong("a block device"),
        other => return Err(format!("{other} is an invalid volume type")),
    }
    refuse_own(path, data_dir)?;
    // Resolved, so that what is mounted is what was looked at.
    path.canonicalize().map_err(|error| format!("{}: {error}", path.display()))
}

/// Refuses what is inside the data directory, or would be once it is created.
fn refuse_own(path: &Path, data_dir: &Path) -> Result<(), String> {
    let nearest = path.ancestors().find_map(|part| part.canonicalize().ok());
    if nearest.is_some_and(|nearest| super::is_inside(&nearest, data_dir)) {
        return Err(format!("{} belongs to the cluster itself", path.display()));
    }
    Ok(())
}
