//! The processes of a worker.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus, Stdio};

use lockstep_control::plan::restart::Cause;
use rustix::process::{Pid, Signal, kill_process_group};

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
    /// The group of the last one, whose members may outlive it.
    group: Option<Pid>,
    /// Whether something was started, so that there is something to be gone.
    is_there: bool,
    /// What it writes, if that is listened to; otherwise it goes where this program's does.
    log: Option<Log>,
}

impl Worker {
    pub(super) fn new(command: Vec<OsString>, ear: Option<Ear>) -> Self {
        Self { command, main: None, group: None, is_there: false, log: ear.map(Log::new) }
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
        if let Some(log) = &mut self.log {
            // One that nobody can listen to finds its output closed, and ends of it.
            log.follow(&mut child).unwrap_or_else(|error| tracing::error!(%error, "no log"));
        }
        Ok(())
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
                self.main = None;
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
