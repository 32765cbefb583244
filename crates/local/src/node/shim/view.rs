//! The container's own view of the machine's files.
//!
//! The container sees the machine as it is, with its volumes on top. A volume's path need not exist
//! here, and nothing is ever created on the machine: a folder that lacks an entry is covered with a
//! small file system in memory into which its children are mounted back. For `/` itself that is a
//! new root.

mod device;
mod place;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use lockstep_api::pod::TOKEN_FOLDER;
use rustix::fs::{StatVfsMountFlags, statvfs};
use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_bind_recursive, mount_change,
    mount_remount, unmount,
};
use rustix::process::{chdir, pivot_root};
use rustix::thread::{UnshareFlags, unshare_unsafe};

use super::wire::{Isolation, ShimLaunch, files};
use place::Tree;

/// Why the view could not be put together.
#[derive(Debug)]
pub(super) enum ViewError {
    /// A volume is to blame.
    Volume { volume: String, message: String },
    /// The machine does not allow it.
    Machine(String),
}

/// Enters the container's namespaces and arranges its files. Returns warnings for the user.
pub(super) fn enter(launch: &ShimLaunch) -> Result<Vec<String>, ViewError> {
    unshare(launch.isolation).map_err(|error| machine("enter namespaces", &error))?;
    set_hostname(&launch.hostname).map_err(|error| machine("set the host name", &error))?;
    let needs_root = launch
        .mounts
        .iter()
        .map(|mount| mount.target.as_path())
        .chain([launch.termination_message_path.as_path(), launch.working_dir.as_path()])
        .any(|target| !Path::new("/").join(first_component(target)).exists());
    let root = if needs_root {
        let staging = launch.dir.join(files::ROOT);
        build_root(&staging).map_err(|error| machine("build a root", &error))?;
        staging
    } else {
        PathBuf::from("/")
    };
    let mut tree = Tree::new(root.clone(), needs_root);
    device::populate(&mut tree).map_err(|error| machine("build /dev", &error))?;
    mount_volumes(&mut tree, launch)?;
    mount_own_files(&mut tree, launch).map_err(|error| machine("mount its files", &error))?;
    hide(&mut tree, &launch.data_dir).map_err(|error| machine("hide the data", &error))?;
    if needs_root {
        change_root(&root).map_err(|error| machine("change the root", &error))?;
    }
    Ok(tree.into_warnings())
}

/// Tries what [`enter`] needs, from the most to the least powerful way.
pub(super) fn probe() -> (Isolation, Option<String>) {
    let try_mount = |isolation| {
        unshare(isolation)?;
        mount("tmpfs", "/proc", "tmpfs", MountFlags::empty(), None)
    };
    let Err(_) = try_mount(Isolation::Mount) else { return (Isolation::Mount, None) };
    match try_mount(Isolation::UserMount) {
        Ok(()) => (Isolation::UserMount, None),
        Err(error) => (Isolation::None, Some(error.to_string())),
    }
}

fn unshare(isolation: Isolation) -> rustix::io::Result<()> {
    let (uid, gid) = (rustix::process::getuid(), rustix::process::getgid());
    let mut flags = UnshareFlags::NEWNS | UnshareFlags::NEWUTS;
    if isolation == Isolation::UserMount {
        flags |= UnshareFlags::NEWUSER;
    }
    #[expect(unsafe_code, reason = "unshare is unsafe only for file descriptor tables")]
    // SAFETY: the flags leave the file descriptor table shared, and this process has one thread.
    unsafe {
        unshare_unsafe(flags)?;
    }
    if isolation == Isolation::UserMount {
        let write = |file: &str, text: String| {
            fs::write(format!("/proc/self/{file}"), text).map_err(|error| {
                rustix::io::Errno::from_io_error(&error).unwrap_or(rustix::io::Errno::PERM)
            })
        };
        // An unprivileged user may map itself only, and groups only after giving up setgroups.
        write("setgroups", "deny".to_owned())?;
        write("uid_map", format!("{0} {0} 1", uid.as_raw()))?;
        write("gid_map", format!("{0} {0} 1", gid.as_raw()))?;
    }
    // Nothing mounted here may be seen outside; what the machine mounts later is still seen here.
    mount_change("/", MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC)
}

fn set_hostname(name: &str) -> rustix::io::Result<()> {
    // The kernel holds 64 bytes; pod host names have 63 at most.
    rustix::system::sethostname(&name.as_bytes()[..name.len().min(64)])
}

/// Makes a root in memory that has everything `/` has.
fn build_root(staging: &Path) -> io::Result<()> {
    fs::create_dir_all(staging)?;
    mount("tmpfs", staging, "tmpfs", MountFlags::empty(), Some(c"mode=0755"))?;
    // Else the recursive mounts below would contain the root that is being built.
    mount_change(staging, MountPropagationFlags::UNBINDABLE)?;
    place::mirror(Path::new("/"), staging)
}

fn change_root(root: &Path) -> io::Result<()> {
    mount_change(root, MountPropagationFlags::PRIVATE)?;
    chdir(root)?;
    // Stacks the old root on the new one, from where it can be let go.
    pivot_root(".", ".")?;
    unmount(".", UnmountFlags::DETACH)?;
    chdir("/")?;
    Ok(())
}

fn mount_volumes(tree: &mut Tree, launch: &ShimLaunch) -> Result<(), ViewError> {
    let mut mounts: Vec<_> = launch.mounts.iter().collect();
    // Volumes inside volumes come after the ones they are in.
    mounts.sort_by_key(|mount| mount.target.components().count());
    for volume in mounts {
        let failed = |message: String| ViewError::Volume { volume: volume.volume.clone(), message };
        // Every pod has it, and nobody chose its path.
        tree.set_quiet(volume.target == Path::new(TOKEN_FOLDER));
        let target = tree
            .place(&volume.target, &volume.source)
            .map_err(|error| failed(format!("cannot mount at {:?}: {error}", volume.target)))?;
        bind(&volume.source, &target, volume.read_only)
            .map_err(|error| failed(format!("cannot mount {:?}: {error}", volume.source)))?;
        tree.set_quiet(false);
        tree.mounted(target.clone(), volume.read_only);
        // A volume that contains the data directory must not show it either.
        if let Ok(rest) = launch.data_dir.strip_prefix(&volume.source) {
            let inside = if rest.as_os_str().is_empty() { target } else { target.join(rest) };
            cover(&inside).map_err(|error| failed(format!("cannot hide the data: {error}")))?;
        }
    }
    Ok(())
}

fn mount_own_files(tree: &mut Tree, launch: &ShimLaunch) -> io::Result<()> {
    let message = launch.dir.join(files::MESSAGE);
    let target = tree.place(&launch.termination_message_path, &message)?;
    bind(&message, &target, false)?;
    if let Some(hosts) = &launch.hosts_file {
        let target = tree.place(Path::new("/etc/hosts"), hosts)?;
        bind(hosts, &target, true)?;
    }
    Ok(())
}

fn hide(tree: &mut Tree, data_dir: &Path) -> io::Result<()> {
    match tree.existing(data_dir) {
        Some(dir) => cover(&dir),
        None => Ok(()),
    }
}

/// Puts an empty, unreadable folder over `dir`.
fn cover(dir: &Path) -> io::Result<()> {
    mount("tmpfs", dir, "tmpfs", MountFlags::RDONLY, Some(c"mode=0000,size=4k"))?;
    Ok(())
}

/// Mounts `source` at `target` too.
fn bind(source: &Path, target: &Path, read_only: bool) -> io::Result<()> {
    mount_bind_recursive(source, target)?;
    if read_only {
        // What the mount already forbids must be said again, or the kernel refuses the change.
        let kept = statvfs(target)?.f_flag;
        let mut flags = MountFlags::BIND | MountFlags::RDONLY;
        for (is, keep) in [
            (StatVfsMountFlags::NOSUID, MountFlags::NOSUID),
            (StatVfsMountFlags::NODEV, MountFlags::NODEV),
            (StatVfsMountFlags::NOEXEC, MountFlags::NOEXEC),
            (StatVfsMountFlags::NOATIME, MountFlags::NOATIME),
            (StatVfsMountFlags::NODIRATIME, MountFlags::NODIRATIME),
            (StatVfsMountFlags::RELATIME, MountFlags::RELATIME),
        ] {
            if kept.contains(is) {
                flags |= keep;
            }
        }
        mount_remount(target, flags, c"")?;
    }
    Ok(())
}

fn first_component(path: &Path) -> PathBuf {
    path.components()
        .find(|part| matches!(part, std::path::Component::Normal(_)))
        .map_or_else(PathBuf::new, |part| PathBuf::from(part.as_os_str()))
}

fn machine(what: &str, error: &dyn std::fmt::Display) -> ViewError {
    ViewError::Machine(format!("cannot {what}: {error}"))
}
