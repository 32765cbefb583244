//! Connections of a shim: to the process that started it, and to whoever came later.

use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Signal, kill_process_group};
use serde::Serialize;

use super::process::Program;
use super::wire::{self, KIND_OUTPUT, Reply, Request};
use crate::node::runtime::ExecFailure;

/// As much output of a command as is kept.
const OUTPUT_MAX: usize = 64 << 10;

/// One connection.
pub(super) struct Connection {
    pub(super) stream: UnixStream,
    /// Whether the other end is the process that started this one.
    pub(super) is_parent: bool,
    /// The command that was asked for on this connection.
    pub(super) exec: Option<Exec>,
    received: Vec<u8>,
}

impl Connection {
    pub(super) fn new(stream: UnixStream, is_parent: bool) -> Self {
        Self { stream, is_parent, exec: None, received: Vec::new() }
    }

    /// Takes the requests that arrived. An error means that the other end is gone.
    pub(super) fn take_requests(&mut self) -> io::Result<Vec<Request>> {
        let mut requests = Vec::new();
        let mut chunk = [0; 4096];
        loop {
            match self.stream.read(&mut chunk) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => self.received.extend_from_slice(&chunk[..count]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        while let Some((kind, payload)) = wire::take_frame(&mut self.received)? {
            requests.push(wire::parse(kind, &payload)?);
        }
        Ok(requests)
    }

    /// Sends a message. A peer that does not read is given up: the shim must never wait for one.
    pub(super) fn send(&mut self, message: &impl Serialize) -> io::Result<()> {
        self.stream.write_all(&wire::json_frame(message))
    }

    /// Starts a command whose outcome will be sent on this connection.
    pub(super) fn start_exec(&mut self, program: Program<'_>, timeout_ms: u64) -> io::Result<()> {
        if self.exec.is_some() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "one command at a time"));
        }
        match Exec::start(program, timeout_ms) {
            Ok(exec) => {
                self.exec = Some(exec);
                Ok(())
            }
            Err(failure) => self.send(&Reply::ExecFailed(failure)),
        }
    }

    /// Sends the outcome of the command if it is known.
    pub(super) fn settle_exec(&mut self, now: Instant) -> io::Result<()> {
        let Some(exec) = &mut self.exec else { return Ok(()) };
        let reply = match exec.code {
            Some(code) => {
                exec.read();
                Reply::ExecEnded { code }
            }
            None if exec.deadline.is_some_and(|deadline| now >= deadline) => Reply::ExecTimedOut,
            None => return Ok(()),
        };
        let output = std::mem::take(&mut exec.output);
        // Drops it, which kills what is left of its process group.
        self.exec = None;
        self.stream.write_all(&wire::frame(KIND_OUTPUT, &output))?;
        self.send(&reply)
    }
}

/// A command that runs beside the main process.
pub(super) struct Exec {
    pid: Pid,
    pub(super) pipe: Option<OwnedFd>,
    pub(super) deadline: Option<Instant>,
    output: Vec<u8>,
    code: Option<i32>,
}

impl Exec {
    fn start(program: Program<'_>, timeout_ms: u64) -> Result<Self, ExecFailure> {
        let pipe = || -> io::Result<_> {
            let (ours, theirs) = pipe_with(PipeFlags::CLOEXEC)?;
            rustix::io::ioctl_fionbio(&ours, true)?;
            Ok((ours, theirs.try_clone()?, theirs))
        };
        let (ours, out, err) = pipe().map_err(|error| super::refused("pipe", &error))?;
        let pid = program.spawn(out, err)?;
        let deadline = Instant::now().checked_add(Duration::from_millis(timeout_ms));
        Ok(Self { pid, pipe: Some(ours), deadline, output: Vec::new(), code: None })
    }

    /// Takes its output.
    pub(super) fn read(&mut self) {
        let Some(pipe) = &self.pipe else { return };
        let mut chunk = [0; 8192];
        loop {
            match rustix::io::read(pipe, &mut chunk) {
                Ok(0) => break,
                Ok(count) => {
                    let room = OUTPUT_MAX - self.output.len();
                    self.output.extend_from_slice(&chunk[..count.min(room)]);
                }
                Err(rustix::io::Errno::AGAIN) => return,
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => break,
            }
        }
        self.pipe = None;
    }

    /// Notes that `pid` ended.
    pub(super) fn ended(&mut self, pid: Pid, code: i32) {
        if pid == self.pid {
            self.code = Some(code);
        }
    }
}

impl Drop for Exec {
    fn drop(&mut self) {
        let _ = kill_process_group(self.pid, Signal::KILL);
    }
}
