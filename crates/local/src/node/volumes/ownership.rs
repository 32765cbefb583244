//! Volumes that belong to the group of their pod (`fsGroup`), as a kubelet gives them to it.

use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt, lchown};
use std::path::Path;

use k8s_openapi::api::core::v1::Pod;

use crate::node::process::{Rights, fs_group};

/// What the group may do with the files of a volume that is only read.
pub(super) const READ: u32 = 0o440;
/// What the group may do with the files of other volumes.
pub(super) const WRITE: u32 = 0o660;

/// What folders allow besides: to be entered, and that what is made in them belongs to the group.
const FOLDER: u32 = 0o2110;

/// The group that the volumes of a pod are given to, if this process may give it anything.
pub(super) fn wanted(pod: &Pod) -> Option<u32> {
    fs_group(pod).filter(|group| Rights::own().may_have_group(*group))
}

/// Gives everything below `path` to a group that may do `mode` with it.
pub(super) fn give(path: &Path, group: u32, mode: u32) -> io::Result<()> {
    let meta = fs::symlink_metadata(path)?;
    lchown(path, None, Some(group))?;
    if meta.is_symlink() {
        return Ok(());
    }
    let more = if meta.is_dir() { mode | FOLDER } else { mode };
    let permissions = meta.permissions().mode() & 0o7777;
    fs::set_permissions(path, fs::Permissions::from_mode(permissions | more))?;
    if meta.is_dir() {
        for entry in fs::read_dir(path)? {
            give(&entry?.path(), group, mode)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt, symlink};

    use super::*;

    #[test]
    fn everything_below_belongs_to_the_group_and_links_are_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (volume, outside) = (folder.path().join("v"), folder.path().join("outside"));
        fs::create_dir_all(volume.join("sub")).unwrap();
        for file in [&volume.join("sub/file"), &outside] {
            fs::write(file, "").unwrap();
            fs::set_permissions(file, fs::Permissions::from_mode(0o400)).unwrap();
        }
        symlink(&outside, volume.join("link")).unwrap();
        // One that anybody may give files to.
        let own = rustix::process::getegid().as_raw();
        let group = if rustix::process::geteuid().is_root() { 12_345 } else { own };
        give(&volume, group, WRITE).unwrap();
        let seen = |path: &Path| {
            let meta = fs::metadata(path).unwrap();
            (meta.gid(), meta.mode() & 0o7777)
        };
        assert_eq!(seen(&volume.join("sub/file")), (group, 0o660));
        let (gid, mode) = seen(&volume.join("sub"));
        assert_eq!((gid, mode & 0o2770), (group, 0o2770));
        assert_eq!(seen(&outside).1, 0o400);
    }
}
