//! Connections of a shim: to the process that started it, and to whoever came later.

use std::io::{self, IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Signal, kill_process_group};
use serde::Serialize;

use super::attach::Attached;
use super::process::Program;
use super::session::Session;
use super::stdio::{Ours, Theirs};
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
    /// The command that the other end talks to.
    pub(super) session: Option<Session>,
    /// What the other end sees of the main process.
    pub(super) attached: Option<Attached>,
    received: Vec<u8>,
}

impl Connection {
    pub(super) fn new(stream: UnixStream, is_parent: bool) -> Self {
        Self { stream, is_parent, exec: None, session: None, attached: None, received: Vec::new() }
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

    /// Sends a message together with descriptors.
    pub(super) fn send_with(&mut self, message: &impl Serialize, fds: &Ours) -> io::Result<()> {
        let frame = wire::json_frame(message);
        let fds: Vec<_> = fds.all().map(OwnedFd::as_fd).collect();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        if !fds.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(&fds)) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "too many descriptors"));
        }
        let flags = SendFlags::NOSIGNAL;
        let sent = sendmsg(&self.stream, &[IoSlice::new(&frame)], &mut ancillary, flags)?;
        // It is far smaller than what the socket holds: who leaves it no room does not read.
        if sent == frame.len() { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
    }

    /// Starts a command whose outcome will be sent on this connection.
    pub(super) fn start_exec(&mut self, program: Program<'_>, timeout_ms: u64) -> io::Result<()> {
        if self.is_taken() {
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

    /// Starts a command that the other end talks to.
    pub(super) fn start_session(
        &mut self,
        started: Result<(Session, Ours, Reply), ExecFailure>,
    ) -> io::Result<()> {
        match started {
            Ok((session, ours, reply)) => {
                self.session = Some(session);
                self.send_with(&reply, &ours)
            }
            Err(failure) => self.send(&Reply::ExecFailed(failure)),
        }
    }

    /// Whether a command or the main process is already being talked to.
    pub(super) fn is_taken(&self) -> bool {
        self.exec.is_some() || self.session.is_some() || self.attached.is_some()
    }

    /// Sends what is known by now. An error means that the other end is gone or as good as gone.
    pub(super) fn settle(&mut self, now: Instant) -> io::Result<()> {
        if let Some(attached) = &mut self.attached {
            attached.flush(now);
            if attached.deadline().is_some_and(|deadline| now >= deadline) {
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
        if let Some(code) = self.session.as_ref().and_then(Session::code) {
            self.session = None;
            self.send(&Reply::ExecEnded { code })?;
        }
        self.settle_exec(now)
    }

    /// When to look again at the latest.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let exec = self.exec.as_ref().and_then(|exec| exec.deadline);
        let attached = self.attached.as_ref().and_then(Attached::deadline);
        exec.into_iter().chain(attached).min()
    }

    /// Notes that a process ended.
    pub(super) fn ended(&mut self, pid: Pid, code: i32) {
        if let Some(exec) = &mut self.exec {
            exec.ended(pid, code);
        }
        if let Some(session) = &mut self.session {
            session.ended(pid, code);
        }
    }

    /// Sends the outcome of the command if it is known.
    fn settle_exec(&mut self, now: Instant) -> io::Result<()> {
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
    deadline: Option<Instant>,
    output: Vec<u8>,
    code: Option<i32>,
}

impl Exec {
    fn start(program: Program<'_>, timeout_ms: u64) -> Result<Self, ExecFailure> {
        let pipe = || -> io::Result<_> {
            let (ours, theirs) = pipe_with(PipeFlags::CLOEXEC)?;
            rustix::io::ioctl_fionbio(&ours, true)?;
            let (out, err) = (Some(theirs.try_clone()?), Some(theirs));
            Ok((ours, Theirs { out, err, ..Theirs::default() }))
        };
        let (ours, theirs) = pipe().map_err(|error| super::refused("pipe", &error))?;
        let pid = program.spawn(&theirs)?;
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
    fn ended(&mut self, pid: Pid, code: i32) {
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
