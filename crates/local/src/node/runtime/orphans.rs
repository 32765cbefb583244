//! Containers whose shim is gone.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal};

use super::{CONTAINER_VARIABLE, ContainerId, Exited, Started};
use crate::node::limits;
use crate::node::shim::wire::{self, State, files};

/// How often to look again for processes that were just being born.
const ROUNDS_MAX: usize = 50;
/// How long a shim may take to end that was killed.
const KILL_PATIENCE: Duration = Duration::from_secs(5);

/// What is known about the end of a container whose shim is gone. Kills what is left of it.
pub(super) fn exit_of_lost(
    dir: &Path,
    id: &ContainerId,
    started: &Started,
    namespace: Option<HeldNamespace>,
) -> impl FnOnce() -> Exited + Send + 'static {
    let (dir, id, started_at) = (dir.to_owned(), id.clone(), started.at);
    move || {
        recorded_exit(&dir).unwrap_or_else(|| {
            sweep(&dir, &id, namespace.as_ref());
            Exited {
                id,
                code: 137,
                signal: Some(9),
                oom_killed: false,
                started_at,
                finished_at: wire::now(),
                message: "the process that looked after the container was killed".to_owned(),
            }
        })
    }
}

/// The end as the shim wrote it down.
pub(super) fn recorded_exit(dir: &Path) -> Option<Exited> {
    serde_json::from_slice(&fs::read(dir.join(files::EXIT)).ok()?).ok()
}

/// Ends the shim that has the folder, if one does, and waits until it is gone.
pub(super) fn end_shim(dir: &Path) {
    let began = Instant::now();
    while is_claimed(dir) && began.elapsed() < KILL_PATIENCE {
        let pid = recorded_state(dir).and_then(|state| i32::try_from(state.shim_pid).ok());
        let held =
            pid.and_then(Pid::from_raw).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        // Still claimed: so the process that is held now is the one that wrote itself down.
        if let Some(shim) = held.filter(|_| is_claimed(dir)) {
            let _ = pidfd_send_signal(shim, Signal::KILL);
        }
        thread::sleep(Duration::from_millis(2));
    }
}

/// Whether a shim has the folder.
fn is_claimed(dir: &Path) -> bool {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(folder) = open(dir, flags, Mode::empty()) else { return false };
    flock(&folder, FlockOperation::NonBlockingLockExclusive).is_err()
}

/// What the shim wrote down about itself in this boot.
pub(super) fn recorded_state(dir: &Path) -> Option<State> {
    let state: State = serde_json::from_slice(&fs::read(dir.join(files::STATE)).ok()?).ok()?;
    (state.boot_id == crate::node::shim::boot_id()).then_some(state)
}

/// The process id of the shim of the container whose folder is `dir`, if it wrote one down in this
/// boot.
pub(crate) fn shim_pid(dir: &Path) -> Option<u32> {
    recorded_state(dir).map(|state| state.shim_pid)
}

/// The mount namespace of a shim, kept from going away.
///
/// Processes of a container whose shim is gone are known by it. The kernel gives the number of a
/// namespace that is gone to the next one, which belongs to a container that has nothing to do with
/// it, so a number says something only as long as the namespace is held.
pub(super) struct HeldNamespace(fs::File);

impl HeldNamespace {
    /// Holds the namespace of a process; `None` where that is not allowed.
    pub(super) fn of(pid: u32) -> Option<Self> {
        fs::File::open(format!("/proc/{pid}/ns/mnt")).ok().map(Self)
    }

    fn number(&self) -> Option<u64> {
        self.0.metadata().ok().map(|meta| meta.ino())
    }
}

/// Kills every process that belongs to the container and removes its cgroups. Without its namespace
/// those that dropped their environment are not found.
pub(super) fn sweep(dir: &Path, id: &ContainerId, namespace: Option<&HeldNamespace>) {
    // Who follows the log waits for this to go.
    let _ = fs::remove_file(dir.join(files::CONTROL));
    let Some(state) = recorded_state(dir) else { return };
    limits::destroy(&state.cgroup);
    // Its own, as it wrote down itself: before it had one, it was in the namespace of everybody.
    let held = namespace.and_then(HeldNamespace::number);
    let namespace = state.mount_namespace.filter(|own| held == Some(*own));
    let marker = format!("{CONTAINER_VARIABLE}={id}");
    for _ in 0..ROUNDS_MAX {
        let strays = strays(&marker, namespace);
        if strays.is_empty() {
            return;
        }
        for pid in strays {
            let _ = kill_process(pid, Signal::KILL);
        }
        thread::sleep(Duration::from_millis(2));
    }
}

fn strays(marker: &str, namespace: Option<u64>) -> Vec<Pid> {
    let Ok(processes) = fs::read_dir("/proc") else { return Vec::new() };
    processes
        .flatten()
        .filter_map(|entry| {
            let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
            let path = entry.path();
            let is_inside = || {
                let number = fs::metadata(path.join("ns/mnt")).ok().map(|meta| meta.ino());
                namespace.is_some() && number == namespace
            };
            let is_marked = || {
                let environ = fs::read(path.join("environ")).unwrap_or_default();
                environ.split(|byte| *byte == 0).any(|entry| entry == marker.as_bytes())
            };
            (is_marked() || is_inside()).then(|| Pid::from_raw(pid))?
        })
        .collect()
}
