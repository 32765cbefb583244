//! Finds containers that a previous process started.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tokio::net::UnixStream;

use super::attend::{Attended, Process};
use super::orphans::{self, HeldNamespace};
use super::{ContainerId, Recovered, RecoveredState, Shared, Started, attend};
use crate::node::shim::wire::{self, Reply, files};

/// A shim that lives answers at once; one that does not is stuck.
const GREETING_TIMEOUT: Duration = Duration::from_secs(5);

/// The newest instance of every container there are files of. One that never began is none.
pub(super) fn recover(shared: &Arc<Shared>) -> Vec<Recovered> {
    let mut found = Vec::new();
    for (pod_uid, pod) in folders(&shared.dirs.pods()) {
        for (container, attempts) in folders(&pod.join("containers")) {
            let mut attempts: Vec<(u32, PathBuf)> = folders(&attempts)
                .into_iter()
                .filter_map(|(name, dir)| Some((name.parse::<u32>().ok()?, dir)))
                .collect();
            attempts.sort_by_key(|(attempt, _)| std::cmp::Reverse(*attempt));
            found.extend(attempts.into_iter().find_map(|(attempt, dir)| {
                let (pod_uid, container) = (pod_uid.clone(), container.clone());
                let id = ContainerId { pod_uid, container, attempt };
                if shared.handle(&id).is_some() {
                    return Some(None);
                }
                state_of(shared, &id, &dir).map(|state| Some(Recovered { id, state }))
            }));
        }
    }
    let mut found: Vec<Recovered> = found.into_iter().flatten().collect();
    found.sort_by(|a, b| a.id.cmp(&b.id));
    found
}

/// What became of an instance; `None` when it never began, and never will.
fn state_of(shared: &Arc<Shared>, id: &ContainerId, dir: &Path) -> Option<RecoveredState> {
    if let Some(exited) = orphans::recorded_exit(dir) {
        return Some(RecoveredState::Exited(exited));
    }
    if let Ok(started) = adopt(shared, id, dir) {
        return Some(RecoveredState::Running(started));
    }
    orphans::end_shim(dir);
    // It may have ended while it was being asked.
    if let Some(exited) = orphans::recorded_exit(dir) {
        return Some(RecoveredState::Exited(exited));
    }
    let has_begun = dir.join(files::BEGUN).exists();
    orphans::sweep(dir, id, None);
    if has_begun {
        return Some(RecoveredState::Lost);
    }
    let _ = fs::remove_dir_all(dir);
    None
}

fn adopt(shared: &Arc<Shared>, id: &ContainerId, dir: &Path) -> io::Result<Started> {
    // That somebody accepts here proves that it is the shim: the socket is its own.
    let mut stream = attend::connect(dir)?;
    // Held before it answers: as long as it lives its number is its own.
    let process = process_of(dir);
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(GREETING_TIMEOUT))?;
    let Reply::Started(started) = wire::read_json(&mut stream)? else {
        return Err(io::ErrorKind::InvalidData.into());
    };
    stream.set_nonblocking(true)?;
    let stream = UnixStream::from_std(stream)?;
    // It answered just now, so the number it wrote down is its own.
    let pid = orphans::recorded_state(dir).map(|state| state.shim_pid);
    let namespace = pid.and_then(HeldNamespace::of);
    let shim =
        Attended { stream, process: process.map_or(Process::Unknown, Process::Adopted), namespace };
    attend::attend(shared.busy(), id.clone(), shim, started.clone());
    Ok(started)
}

fn process_of(dir: &Path) -> Option<OwnedFd> {
    let pid = Pid::from_raw(i32::try_from(orphans::recorded_state(dir)?.shim_pid).ok()?)?;
    pidfd_open(pid, PidfdFlags::empty()).ok()
}

fn folders(dir: &Path) -> Vec<(String, PathBuf)> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| Some((entry.file_name().into_string().ok()?, entry.path())))
        .collect()
}
