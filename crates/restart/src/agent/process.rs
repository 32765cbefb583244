//! The processes of a worker.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus, Stdio};

use lockstep_control::plan::restart::Cause;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::log::{Ear, Log};
use crate::children;

/// A child that has ended.
pub(super) enum Taken {
    /// The worker's main process, with how it failed unless it ended well.
    Main(Option<Cause>),
    /// Something else, and more are left.
    Other,
    /// There is none any more.
    Last,
}

/// The worker of an agent: what to run, and the group of what runs.
pub(super) struct Worker {
    command: Vec<OsString>,
    main: Option<Pid>,
    /// What shows that its main process has ended, where the system has such a thing.
    pidfd: Option<AsyncFd<OwnedFd>>,
    /// The group of the last one, whose members may outlive it.
    group: Option<Pid>,
    /// Whether something was started, so that there is something to be gone.
    is_there: bool,
    /// What it writes, if that is listened to; otherwise it goes where this program's does.
    log: Option<Log>,
}

impl Worker {
    pub(super) fn new(command: Vec<OsString>, ear: Option<Ear>) -> Self {
        let log = ear.map(Log::new);
        Self { command, main: None, pidfd: None, group: None, is_there: false, log }
    }

    /// Starts the worker, in a group of its own.
    pub(super) fn spawn(&mut self, epoch: u32, restarts: u32) -> io::Result<()> {
        let [program, arguments @ ..] = &self.command[..] else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "there is no command to run"));
        };
        let mut command = Command::new(program);
        command
            .args(arguments)
            .env("LOCKSTEP_EPOCH", epoch.to_string())
            .env("LOCKSTEP_RESTARTS", restarts.to_string())
            .process_group(0);
        #[expect(unsafe_code, reason = "the worker must not outlive its agent")]
        // SAFETY: the closure makes one system call; it neither allocates nor takes locks.
        unsafe {
            command.pre_exec(|| {
                rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
                Ok(())
            });
        }
        if self.log.is_some() {
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
        }
        let mut child = command.spawn().map_err(|error| {
            io::Error::new(error.kind(), format!("{}: {error}", program.to_string_lossy()))
        })?;
        let pid = Pid::from_child(&child);
        (self.main, self.group, self.is_there) = (Some(pid), Some(pid), true);
        self.pidfd = watch(pid)
            .inspect_err(|error| tracing::debug!(%error, "no pidfd, signals have to do"))
            .ok();
        if let Some(log) = &mut self.log {
            // One that nobody can listen to finds its output closed, and ends of it.
            log.follow(&mut child).unwrap_or_else(|error| tracing::error!(%error, "no log"));
        }
        Ok(())
    }

    /// Waits until the main process has ended; for ever where that is not to be seen.
    pub(super) async fn ended(&self) {
        let Some(pidfd) = &self.pidfd else { return std::future::pending().await };
        match pidfd.readable().await {
            // It is taken by then. If not, the signal is what is left.
            Ok(mut seen) => seen.clear_ready(),
            Err(_) => std::future::pending().await,
        }
    }

    /// Lets what it wrote last be passed on.
    pub(super) fn finish(&mut self) {
        if let Some(log) = &mut self.log {
            log.finish();
        }
    }

    /// Asks all of it to end.
    pub(super) fn terminate(&self) {
        if let Some(group) = self.group {
            // A group without members is what it is to become.
            let _ = kill_process_group(group, Signal::TERM);
        }
    }

    /// Passes a signal on.
    pub(super) fn signal(&self, number: i32) {
        if let (Some(group), Some(signal)) = (self.group, Signal::from_named_raw(number)) {
            let _ = kill_process_group(group, signal);
        }
    }

    /// Ends all of it, wherever it has gone.
    pub(super) fn kill(&self) {
        if let Some(group) = self.group {
            let _ = kill_process_group(group, Signal::KILL);
        }
        if children::kill_all() == children::Reach::SomeBeyond {
            tracing::warn!("some processes of the worker belong to another user");
        }
    }

    /// Takes a child that has ended, if there is one.
    pub(super) fn reap(&mut self) -> Option<Taken> {
        match children::reap() {
            Ok(Some((pid, status))) if self.main == Some(pid) => {
                (self.main, self.pidfd) = (None, None);
                Some(Taken::Main(failure(ExitStatus::from_raw(status.as_raw()))))
            }
            Ok(Some(_)) => {
                // What it had started is ours now, and may have to be ended too.
                if self.main.is_none() {
                    children::kill_all();
                }
                Some(Taken::Other)
            }
            Ok(None) => None,
            Err(children::NoChildren) if self.is_there => {
                (self.group, self.is_there) = (None, false);
                Some(Taken::Last)
            }
            Err(children::NoChildren) => None,
        }
    }
}

/// What becomes readable when this child ends.
fn watch(pid: Pid) -> io::Result<AsyncFd<OwnedFd>> {
    let pidfd = pidfd_open(pid, PidfdFlags::empty())?;
    #[expect(unsafe_code, reason = "the runtime has to be promised that the descriptor stays")]
    // SAFETY: it is owned by what is registered, always gives the same one, and is closed with it.
    let watched = unsafe { AsyncFd::register_with_interest(pidfd, Interest::READABLE) };
    Ok(watched?)
}

fn failure(status: ExitStatus) -> Option<Cause> {
    match (status.code(), status.signal()) {
        (Some(0), _) => None,
        (Some(code), _) => Some(Cause::Exited(code)),
        (None, signal) => {
            let signal = signal.unwrap_or(0);
            Some(Cause::Signalled { signal, is_out_of_memory: false })
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    #[tokio::test]
    async fn the_end_of_a_worker_is_seen_without_a_signal() {
        let mut child = Command::new("sleep").arg("0.3").spawn().unwrap();
        let mut worker = Worker::new(Vec::new(), None);
        worker.pidfd = Some(watch(Pid::from_child(&child)).unwrap());
        assert!(timeout(Duration::from_millis(50), worker.ended()).await.is_err(), "it runs");
        timeout(Duration::from_secs(20), worker.ended()).await.unwrap();
        assert!(child.try_wait().unwrap().is_some(), "it can be taken at once");
        worker.pidfd = None;
        assert!(timeout(Duration::from_millis(50), worker.ended()).await.is_err());
    }
}
