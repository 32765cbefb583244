//! One container's cgroups.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use rustix::event::EventfdFlags;

use super::CgroupPlan;
use crate::node::runtime::Limits;

const PERIOD_US: u64 = 100_000;
/// The kernel refuses less than a millisecond per period.
const QUOTA_US_MIN: u64 = 1_000;

/// The cgroups of a running container.
#[derive(Debug)]
pub(crate) struct Cgroup {
    plan: CgroupPlan,
    procs: Vec<File>,
    /// Version 1 only: becomes readable when the limit was hit.
    oom: Option<OwnedFd>,
}

impl Cgroup {
    /// Makes the cgroups of `plan` and sets `limits` on them.
    pub(crate) fn create(plan: &CgroupPlan, limits: &Limits) -> io::Result<Self> {
        let mut cgroup = Self { plan: plan.clone(), procs: Vec::new(), oom: None };
        match cgroup.set(limits) {
            Ok(()) => Ok(cgroup),
            Err(error) => {
                cgroup.remove();
                Err(error)
            }
        }
    }

    /// Files a process writes `0` to, to join.
    pub(crate) fn procs(&self) -> Vec<OwnedFd> {
        self.procs.iter().filter_map(|file| file.as_fd().try_clone_to_owned().ok()).collect()
    }

    /// What becomes readable when memory ran out, where the kernel does not end the container
    /// itself.
    pub(crate) fn oom(&self) -> Option<&OwnedFd> {
        self.oom.as_ref()
    }

    /// How many processes were killed because memory ran out.
    pub(crate) fn oom_kills(&self) -> u64 {
        let (file, key) = match &self.plan {
            CgroupPlan::V2 { dir } => (dir.join("memory.events"), "oom_kill "),
            CgroupPlan::V1 { memory: Some(dir), .. } => {
                (dir.join("memory.oom_control"), "oom_kill ")
            }
            CgroupPlan::V1 { memory: None, .. } | CgroupPlan::None => return 0,
        };
        let text = fs::read_to_string(file).unwrap_or_default();
        let count = text.lines().find_map(|line| line.strip_prefix(key));
        count.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
    }

    /// Kills everything in the cgroups.
    pub(crate) fn kill(&self) {
        for dir in self.plan.dirs() {
            kill(dir);
        }
    }

    /// Removes the cgroups, once they are empty.
    pub(crate) fn remove(&self) {
        for dir in self.plan.dirs() {
            remove(dir);
        }
    }

    fn set(&mut self, limits: &Limits) -> io::Result<()> {
        for dir in self.plan.dirs() {
            super::make_dir(dir)?;
            self.procs.push(OpenOptions::new().write(true).open(dir.join("cgroup.procs"))?);
        }
        match self.plan.clone() {
            CgroupPlan::V2 { dir } => set_v2(&dir, limits),
            CgroupPlan::V1 { memory, cpu } => {
                if let Some(memory) = memory {
                    self.oom = set_v1_memory(&memory, limits)?;
                }
                cpu.map_or(Ok(()), |cpu| set_v1_cpu(&cpu, limits))
            }
            CgroupPlan::None => Ok(()),
        }
    }
}

/// Kills everything in the cgroups of `plan` and removes them; for containers whose shim is gone.
pub(crate) fn destroy(plan: &CgroupPlan) {
    for dir in plan.dirs() {
        kill(dir);
        remove(dir);
    }
}

/// Kills everything in one cgroup.
fn kill(dir: &Path) {
    if fs::write(dir.join("cgroup.kill"), "1").is_ok() {
        return;
    }
    let procs = fs::read_to_string(dir.join("cgroup.procs")).unwrap_or_default();
    for pid in procs.lines().filter_map(|pid| pid.parse().ok()) {
        if let Some(pid) = rustix::process::Pid::from_raw(pid) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
    }
}

/// Removes one cgroup. The last process may still be on its way out, so a few tries are needed.
fn remove(dir: &Path) {
    for _ in 0..50 {
        match fs::remove_dir(dir) {
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                thread::sleep(Duration::from_millis(2));
            }
            _ => return,
        }
    }
}

fn set_v2(dir: &Path, limits: &Limits) -> io::Result<()> {
    if let Some(bytes) = limits.memory_bytes {
        fs::write(dir.join("memory.max"), bytes.to_string())?;
        // Without swap the limit is the limit; the file is missing where there is no swap
        // accounting.
        let _ = fs::write(dir.join("memory.swap.max"), "0");
    }
    let _ = fs::write(dir.join("memory.oom.group"), "1");
    if let Some(milli) = limits.cpu_milli {
        let quota = format!("{} {PERIOD_US}", quota_us(milli));
        optional(dir.join("cpu.max"), &quota)?;
    }
    if let Some(milli) = limits.cpu_request_milli {
        optional(dir.join("cpu.weight"), &weight(milli).to_string())?;
    }
    Ok(())
}

fn set_v1_memory(dir: &Path, limits: &Limits) -> io::Result<Option<OwnedFd>> {
    let Some(bytes) = limits.memory_bytes else { return Ok(None) };
    fs::write(dir.join("memory.limit_in_bytes"), bytes.to_string())?;
    let _ = fs::write(dir.join("memory.memsw.limit_in_bytes"), bytes.to_string());
    // Version 1 kills one process only; the shim is told and ends the rest, as oom.group would.
    let event = rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
    let control = File::open(dir.join("memory.oom_control"))?;
    let line = format!("{} {}", event.as_raw_fd(), control.as_raw_fd());
    Ok(fs::write(dir.join("cgroup.event_control"), line).is_ok().then_some(event))
}

fn set_v1_cpu(dir: &Path, limits: &Limits) -> io::Result<()> {
    if let Some(milli) = limits.cpu_milli {
        fs::write(dir.join("cpu.cfs_period_us"), PERIOD_US.to_string())?;
        fs::write(dir.join("cpu.cfs_quota_us"), quota_us(milli).to_string())?;
    }
    if let Some(milli) = limits.cpu_request_milli {
        fs::write(dir.join("cpu.shares"), shares(milli).to_string())?;
    }
    Ok(())
}

/// Writes a file that exists only where its controller is on.
fn optional(file: PathBuf, value: &str) -> io::Result<()> {
    match fs::write(file, value) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        other => other,
    }
}

fn quota_us(milli: u64) -> u64 {
    (milli.saturating_mul(PERIOD_US) / 1000).max(QUOTA_US_MIN)
}

fn shares(milli: u64) -> u64 {
    (milli.saturating_mul(1024) / 1000).clamp(2, 262_144)
}

/// The kubelet's mapping of shares to weights.
fn weight(milli: u64) -> u64 {
    1 + ((shares(milli) - 2) * 9999) / 262_142
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn limits_of_version_2_are_written_as_the_kernel_reads_them() {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path();
        for file in ["cgroup.procs", "cpu.max", "cpu.weight"] {
            fs::write(dir.join(file), "").unwrap();
        }
        let limits = Limits {
            memory_bytes: Some(1 << 20),
            cpu_milli: Some(1500),
            cpu_request_milli: Some(1000),
        };
        let cgroup = Cgroup::create(&CgroupPlan::V2 { dir: dir.to_owned() }, &limits).unwrap();
        let read = |file: &str| fs::read_to_string(dir.join(file)).unwrap();
        assert_eq!(
            (read("memory.max").as_str(), read("memory.swap.max").as_str()),
            ("1048576", "0")
        );
        assert_eq!(
            (read("cpu.max").as_str(), read("cpu.weight").as_str()),
            ("150000 100000", "39")
        );
        assert_eq!(read("memory.oom.group"), "1");
        fs::write(dir.join("memory.events"), "oom 3\noom_kill 2\n").unwrap();
        assert_eq!(cgroup.oom_kills(), 2);
    }

    #[test]
    fn a_group_of_version_2_takes_processes_in_and_ends_them_all() {
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
        let root = super::super::mount_point(&mounts, "cgroup2", None);
        let dir = root.map(|root| root.join(format!("lockstep-test-{}", std::process::id())));
        let Some(dir) = dir.filter(|dir| fs::create_dir(dir).is_ok()) else {
            println!("skipped: no groups of version 2 can be made here");
            return;
        };
        let plan = CgroupPlan::V2 { dir: dir.clone() };
        let cgroup = Cgroup::create(&plan, &Limits::default()).unwrap();
        let mut shell = Command::new("sh")
            .args(["-c", "read go; setsid sleep 977 & sleep 977"])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        rustix::io::write(&cgroup.procs()[0], shell.id().to_string().as_bytes()).unwrap();
        shell.stdin.take().unwrap().write_all(b"go\n").unwrap();
        let count = || fs::read_to_string(dir.join("cgroup.procs")).unwrap().lines().count();
        while count() < 3 {
            thread::sleep(Duration::from_millis(5));
        }
        cgroup.kill();
        assert!(!shell.wait().unwrap().success());
        cgroup.remove();
        assert!(!dir.exists());
    }

    #[test]
    fn cpu_values_are_the_kubelets() {
        let cases = [(0, 1_000, 2, 1), (100, 10_000, 102, 4), (1000, 100_000, 1024, 39)];
        for (milli, quota, share, want_weight) in cases {
            assert_eq!(quota_us(milli), quota, "{milli}");
            assert_eq!(shares(milli), share, "{milli}");
            assert_eq!(weight(milli), want_weight, "{milli}");
        }
        assert_eq!(weight(u64::MAX), 10_000);
    }
}
