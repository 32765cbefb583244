//! The container's own `/dev`: the usual nodes, and the accelerators of the machine.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::symlink;
use std::path::Path;

use rustix::mount::{MountFlags, mount, mount_bind_recursive};

use super::place::Tree;

/// Nodes every container has.
const NODES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];
const LINKS: [(&str, &str); 5] = [
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
    ("ptmx", "pts/ptmx"),
];
/// Beginnings of the names of accelerators and fast networks, and of what their libraries open.
const ACCELERATORS: [&str; 11] = [
    "nvidia",
    "kfd",
    "dri",
    "infiniband",
    "gdrdrv",
    "accel",
    "neuron",
    "vfio",
    "fuse",
    "kvm",
    "hugepages",
];

/// Makes `/dev`.
pub(super) fn populate(tree: &mut Tree) -> io::Result<()> {
    let Some(dev) = tree.existing(Path::new("/dev")) else { return Ok(()) };
    let names: Vec<_> = fs::read_dir("/dev")?
        .filter_map(|entry| Some(entry.ok()?.file_name()))
        .filter(|name| name.to_str().is_some_and(is_wanted))
        .collect();
    // Sources are reached through a descriptor, because the mount below covers them.
    let held = File::open("/dev")?;
    let source = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&held));
    mount("tmpfs", &dev, "tmpfs", MountFlags::NOSUID, Some(c"mode=0755"))?;
    for name in names {
        let (from, to) = (Path::new(&source).join(&name), dev.join(&name));
        if fs::metadata(&from)?.is_dir() {
            fs::create_dir(&to)?;
        } else {
            File::create(&to)?;
        }
        mount_bind_recursive(&from, &to)?;
    }
    for (name, target) in LINKS {
        symlink(target, dev.join(name))?;
    }
    // Shared memory of its own is given back when the container ends, whatever it left there.
    let shm = dev.join("shm");
    fs::create_dir(&shm)?;
    mount("tmpfs", &shm, "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, Some(c"mode=1777"))?;
    terminals(&dev, Path::new(&source))?;
    tree.note_own(dev);
    Ok(())
}

/// Own terminals, or the machine's where own ones are not allowed.
fn terminals(dev: &Path, source: &Path) -> io::Result<()> {
    let pts = dev.join("pts");
    fs::create_dir(&pts)?;
    let flags = MountFlags::NOSUID | MountFlags::NOEXEC;
    let options = c"newinstance,ptmxmode=0666,mode=0620";
    if mount("devpts", &pts, "devpts", flags, Some(options)).is_err() {
        mount_bind_recursive(source.join("pts"), &pts)?;
    }
    Ok(())
}

fn is_wanted(name: &str) -> bool {
    NODES.contains(&name) || ACCELERATORS.iter().any(|start| name.starts_with(start))
}
