//! Commands that somebody talks to, beside the main process.

use std::io;

use lockstep_restart::children;
use rustix::process::Pid;

use super::process::Program;
use super::stdio::{self, Ours};
use super::wire::{Reply, Streams};
use crate::node::runtime::ExecFailure;

/// A command in a session of its own. While it runs all of that session ends with whoever talks to
/// it; what a command that has ended left running goes on, for as long as the container does.
pub(super) struct Session {
    pid: Pid,
    code: Option<i32>,
}

impl Session {
    /// Starts a command. Also gives back the ends of its streams, and what to say about them.
    pub(super) fn start(
        program: Program<'_>,
        is_terminal: bool,
        wanted: Streams,
    ) -> Result<(Self, Ours, Reply), ExecFailure> {
        let made = || -> io::Result<_> {
            if is_terminal {
                let (theirs, seat) = stdio::terminal(program.user())?;
                let streams = Streams { input: wanted.input, out: true, err: false };
                let input = wanted.input.then(|| seat.try_clone()).transpose()?;
                return Ok((theirs, Ours { input, out: Some(seat), err: None }, streams));
            }
            let (mut theirs, ours) = stdio::pipes(wanted)?;
            theirs.is_session = true;
            Ok((theirs, ours, wanted))
        };
        let (theirs, ours, streams) = made().map_err(|error| super::refused("stdio", &error))?;
        let pid = program.spawn(&theirs)?;
        Ok((Self { pid, code: None }, ours, Reply::Streams { is_terminal, streams }))
    }

    /// Notes that `pid` ended.
    pub(super) fn ended(&mut self, pid: Pid, code: i32) {
        if pid == self.pid {
            self.code = Some(code);
        }
    }

    /// How the command ended, if it did.
    pub(super) fn code(&self) -> Option<i32> {
        self.code
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if self.code.is_none() {
            children::kill_session(self.pid);
        }
    }
}
