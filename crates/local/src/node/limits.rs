//! CPU and memory limits: cgroups where this user may make them, else per-process limits.
//!
//! [`CgroupBase::find`] runs once per process and looks for a place where cgroups can be made;
//! [`Cgroup`] is one container's, made and removed by its shim.

mod cgroup;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::Access;
use serde::{Deserialize, Serialize};

pub(crate) use cgroup::{Cgroup, destroy};

use super::runtime::{ContainerId, LimitedBy, Limits};

/// The cgroups of one container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum CgroupPlan {
    /// One in the unified hierarchy.
    V2 { dir: PathBuf },
    /// One per controller.
    V1 { memory: Option<PathBuf>, cpu: Option<PathBuf> },
    /// None.
    None,
}

impl CgroupPlan {
    /// The folders of the cgroups.
    pub(crate) fn dirs(&self) -> Vec<&Path> {
        match self {
            Self::V2 { dir } => vec![dir],
            Self::V1 { memory, cpu } => memory.iter().chain(cpu).map(PathBuf::as_path).collect(),
            Self::None => Vec::new(),
        }
    }
}

/// A place where this process may make cgroups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CgroupBase {
    V2(PathBuf),
    V1 { memory: PathBuf, cpu: Option<PathBuf> },
    None,
}

impl CgroupBase {
    /// Looks for a place and claims it under the name `instance`.
    pub(crate) fn find(instance: &str) -> Self {
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        if let Some(dir) = unified(&mounts, &own, instance) {
            return Self::V2(dir);
        }
        let claim = |controller| {
            let dir = v1_dir(&mounts, &own, controller)?.join(instance);
            make_dir(&dir).ok()?;
            Some(dir)
        };
        match claim("memory") {
            Some(memory) => Self::V1 { memory, cpu: claim("cpu") },
            None => Self::None,
        }
    }

    /// The cgroups for one container: only those it needs, because entering one takes the kernel
    /// some ten milliseconds, one process at a time.
    pub(crate) fn plan(&self, id: &ContainerId, limits: &Limits) -> CgroupPlan {
        let needs_memory = limits.memory_bytes.is_some();
        let needs_cpu = limits.cpu_milli.is_some() || limits.cpu_request_milli.is_some();
        if !needs_memory && !needs_cpu {
            return CgroupPlan::None;
        }
        let name = format!("{}.{}.{}", id.pod_uid, id.container, id.attempt);
        match self {
            Self::V2(base) => CgroupPlan::V2 { dir: base.join(name) },
            Self::V1 { memory, cpu } => CgroupPlan::V1 {
                memory: needs_memory.then(|| memory.join(&name)),
                cpu: cpu.as_ref().filter(|_| needs_cpu).map(|cpu| cpu.join(&name)),
            },
            Self::None => CgroupPlan::None,
        }
    }

    /// What limits are enforced by here.
    pub(crate) fn limited_by(&self) -> LimitedBy {
        match self {
            Self::V2(_) => LimitedBy::Cgroup2,
            Self::V1 { .. } => LimitedBy::Cgroup1,
            Self::None => LimitedBy::Rlimit,
        }
    }

    /// Gives the place back, if no container is left in it.
    pub(crate) fn release(&self) {
        let dirs = match self {
            Self::V2(dir) => vec![dir],
            Self::V1 { memory, cpu } => std::iter::once(memory).chain(cpu).collect(),
            Self::None => Vec::new(),
        };
        for dir in dirs {
            // Containers that outlive this process keep it in place; then it is found again.
            let _ = fs::remove_dir(dir);
        }
    }
}

/// A place in the unified hierarchy whose cgroups can limit memory.
fn unified(mounts: &str, own: &str, instance: &str) -> Option<PathBuf> {
    let root = mount_point(mounts, "cgroup2", None)?;
    let controllers = fs::read_to_string(root.join("cgroup.controllers")).ok()?;
    if !names(&controllers).any(|name| name == "memory") {
        return None;
    }
    let path = own.lines().find_map(|line| line.strip_prefix("0::"))?;
    let current = root.join(path.trim_start_matches('/'));
    // Processes may live in the root cgroup and in leaves only, so a place above our own cgroup
    // needs no move, while in our own we have to step aside into a leaf first.
    let above = current.ancestors().skip(1).take_while(|dir| dir.starts_with(&root));
    for parent in above {
        if let Some(dir) = claim_unified(parent, instance) {
            return Some(dir);
        }
    }
    step_aside(&current, instance)
}

/// Makes `parent/instance` and switches the controllers on in it.
fn claim_unified(parent: &Path, instance: &str) -> Option<PathBuf> {
    rustix::fs::access(parent.join("cgroup.procs"), Access::WRITE_OK).ok()?;
    let dir = parent.join(instance);
    let enabled = make_dir(&dir).and_then(|()| enable(parent)).and_then(|()| enable(&dir));
    if enabled.is_err() {
        let _ = fs::remove_dir(&dir);
        return None;
    }
    Some(dir)
}

/// Moves this process into a leaf of its cgroup, so that the cgroup may have limited children.
fn step_aside(current: &Path, instance: &str) -> Option<PathBuf> {
    rustix::fs::access(current.join("cgroup.procs"), Access::WRITE_OK).ok()?;
    let leaf = current.join("lockstep-self");
    make_dir(&leaf).ok()?;
    let pid = std::process::id().to_string();
    fs::write(leaf.join("cgroup.procs"), &pid).ok()?;
    claim_unified(current, instance).or_else(|| {
        let _ = fs::write(current.join("cgroup.procs"), &pid);
        let _ = fs::remove_dir(&leaf);
        None
    })
}

/// Switches the controllers on for the children of `dir`.
fn enable(dir: &Path) -> io::Result<()> {
    let file = dir.join("cgroup.subtree_control");
    let enabled = fs::read_to_string(&file)?;
    for controller in ["memory", "cpu", "pids"] {
        if names(&enabled).any(|name| name == controller) {
            continue;
        }
        let switched = fs::write(&file, format!("+{controller}"));
        // Memory is what must be limited; a missing cpu controller is only a weaker limit.
        if controller == "memory" {
            switched?;
        }
    }
    Ok(())
}

/// The folder of the cgroup this process is in, for a version 1 controller.
fn v1_dir(mounts: &str, own: &str, controller: &str) -> Option<PathBuf> {
    let root = mount_point(mounts, "cgroup", Some(controller))?;
    let path = own.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let has = fields.next()?.split(',').any(|name| name == controller);
        has.then(|| fields.next()).flatten()
    })?;
    let dir = root.join(path.trim_start_matches('/'));
    // Inside a container the path may be the host's; the mount is then the place itself.
    Some(if dir.is_dir() { dir } else { root })
}

/// Where a hierarchy is mounted.
fn mount_point(mounts: &str, kind: &str, option: Option<&str>) -> Option<PathBuf> {
    mounts.lines().find_map(|line| {
        let mut fields = line.split(' ').skip(1);
        let (dir, fs, options) = (fields.next()?, fields.next()?, fields.next()?);
        let wanted = option.is_none_or(|option| options.split(',').any(|name| name == option));
        (fs == kind && wanted).then(|| PathBuf::from(dir))
    })
}

fn names(list: &str) -> impl Iterator<Item = &str> {
    list.split_ascii_whitespace()
}

fn make_dir(dir: &Path) -> io::Result<()> {
    match fs::create_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "tmpfs /sys/fs/cgroup tmpfs rw,mode=755 0 0\n\
        cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,cpu,cpuacct 0 0\n\
        cgroup /sys/fs/cgroup/memory cgroup rw,relatime,memory 0 0\n\
        cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n";

    #[test]
    fn mount_points_are_found_by_kind_and_controller() {
        let cases = [
            ("cgroup", Some("memory"), Some("/sys/fs/cgroup/memory")),
            ("cgroup", Some("cpu"), Some("/sys/fs/cgroup/cpu,cpuacct")),
            ("cgroup", Some("rdma"), None),
            ("cgroup2", None, Some("/sys/fs/cgroup/unified")),
        ];
        for (kind, option, want) in cases {
            assert_eq!(mount_point(MOUNTS, kind, option), want.map(PathBuf::from), "{option:?}");
        }
    }

    #[test]
    fn own_cgroup_is_the_parent_only_where_it_is_visible() {
        let own = "4:memory:/not/visible/here\n1:cpu,cpuacct:/\n0::/\n";
        let dir = v1_dir(MOUNTS, own, "memory");
        assert_eq!(dir, Some(PathBuf::from("/sys/fs/cgroup/memory")));
        assert_eq!(v1_dir(MOUNTS, "0::/\n", "memory"), None);
    }
}
