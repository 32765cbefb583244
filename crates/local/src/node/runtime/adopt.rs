//! Finds containers that a previous process started.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::UnixStream;

use super::orphans::{self, NamespaceNumber};
use super::{ContainerId, Recovered, RecoveredState, Shared, Started, attend};
use crate::node::shim::wire::{self, Reply};

/// A shim that lives answers at once; one that does not is stuck.
const GREETING_TIMEOUT: Duration = Duration::from_secs(5);

/// The newest instance of every container there are files of.
pub(super) fn recover(shared: &Arc<Shared>) -> Vec<Recovered> {
    let mut found = Vec::new();
    for (pod_uid, pod) in folders(&shared.dirs.pods()) {
        for (container, attempts) in folders(&pod.join("containers")) {
            let newest = folders(&attempts)
                .into_iter()
                .filter_map(|(name, dir)| Some((name.parse::<u32>().ok()?, dir)))
                .max_by_key(|(attempt, _)| *attempt);
            let Some((attempt, dir)) = newest else { continue };
            let id = ContainerId { pod_uid: pod_uid.clone(), container, attempt };
            if shared.handle(&id).is_some() {
                continue;
            }
            let state = state_of(shared, &id, &dir);
            found.push(Recovered { id, state });
        }
    }
    found.sort_by(|a, b| a.id.cmp(&b.id));
    found
}

fn state_of(shared: &Arc<Shared>, id: &ContainerId, dir: &Path) -> RecoveredState {
    if let Some(exited) = orphans::recorded_exit(dir) {
        return RecoveredState::Exited(exited);
    }
    match adopt(shared, id, dir) {
        Ok(started) => RecoveredState::Running(started),
        // It may have ended while it was being asked.
        Err(_) => match orphans::recorded_exit(dir) {
            Some(exited) => RecoveredState::Exited(exited),
            None => {
                orphans::sweep(dir, id, NamespaceNumber::MayBeReused);
                RecoveredState::Lost
            }
        },
    }
}

fn adopt(shared: &Arc<Shared>, id: &ContainerId, dir: &Path) -> io::Result<Started> {
    // That somebody accepts here proves that it is the shim: the socket is its own.
    let mut stream = attend::connect(dir)?;
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(GREETING_TIMEOUT))?;
    let Reply::Started(started) = wire::read_json(&mut stream)? else {
        return Err(io::ErrorKind::InvalidData.into());
    };
    stream.set_nonblocking(true)?;
    attend::attend(shared, id.clone(), UnixStream::from_std(stream)?, None, started.clone());
    Ok(started)
}

fn folders(dir: &Path) -> Vec<(String, PathBuf)> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| Some((entry.file_name().into_string().ok()?, entry.path())))
        .collect()
}
