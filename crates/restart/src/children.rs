//! The processes below this one, however far they strayed.
//!
//! Orphans come back to a process that is a subreaper, so killing all children again and again
//! until none is left ends everything, also what started new sessions or forked twice.

use std::fs;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, kill_process, wait};

/// Takes one ended child. `Err` means that there are no children at all.
pub fn reap() -> Result<Option<(Pid, WaitStatus)>, NoChildren> {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(ended) => return Ok(ended),
            Err(Errno::INTR) => {}
            Err(_) => return Err(NoChildren),
        }
    }
}

/// There is nothing to wait for.
pub struct NoChildren;

/// Kills every process below this one. Returns whether any is out of reach.
pub fn kill_all() -> Reach {
    let own = rustix::process::getpid();
    let mut reach = Reach::All;
    let mut queue = children_of(own);
    while let Some(pid) = queue.pop() {
        queue.extend(children_of(pid));
        if kill_process(pid, Signal::KILL) == Err(Errno::PERM) {
            reach = Reach::SomeBeyond;
        }
    }
    reach
}

/// Kills every process below this one that is in a session.
pub fn kill_session(session: Pid) {
    let mut queue = children_of(rustix::process::getpid());
    while let Some(pid) = queue.pop() {
        queue.extend(children_of(pid));
        if rustix::process::getsid(Some(pid)) == Ok(session) {
            // One that another user owns is beyond our reach, here as everywhere.
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

/// Whether all processes could be signalled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// They could.
    All,
    /// Some belong to another user.
    SomeBeyond,
}

fn children_of(pid: Pid) -> Vec<Pid> {
    let id = pid.as_raw_nonzero();
    // Every thread has its own list of children.
    let Ok(threads) = fs::read_dir(format!("/proc/{id}/task")) else { return Vec::new() };
    let mut found = Vec::new();
    for thread in threads.flatten() {
        match fs::read_to_string(thread.path().join("children")) {
            Ok(list) => found.extend(
                list.split_ascii_whitespace().filter_map(|pid| Pid::from_raw(pid.parse().ok()?)),
            ),
            Err(_) => return scan_for_children_of(id.get()),
        }
    }
    found
}

/// The slow way, for kernels without lists of children.
fn scan_for_children_of(parent: i32) -> Vec<Pid> {
    let Ok(processes) = fs::read_dir("/proc") else { return Vec::new() };
    processes
        .flatten()
        .filter_map(|entry| {
            let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
            let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
            // The name may contain anything, so the fields are counted from its end.
            let ppid = stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(1)?;
            (ppid.parse::<i32>() == Ok(parent)).then(|| Pid::from_raw(pid))?
        })
        .collect()
}
