//! The life of a shim: waits for whatever happens next until nothing of the container is left.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::Instant;

use jiff::Timestamp;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, WaitStatus, kill_process, kill_process_group};

use super::attach::Attached;
use super::connection::Connection;
use super::log_writer::{LogWriter, Stream};
use super::process::Program;
use super::record::Folder;
use super::session::Session;
use super::signals;
use super::stdio::Ours;
use super::wire::{self, Reply, Request, ShimLaunch, Streams, files};
use crate::node::limits::Cgroup;
use crate::node::runtime::{Exited, Input, Started};
use lockstep_restart::children::{self, NoChildren, Reach};

/// What a set-up shim consists of.
pub(super) struct Parts {
    pub(super) folder: Folder,
    pub(super) log: LogWriter,
    pub(super) listener: UnixListener,
    pub(super) signals: OwnedFd,
    pub(super) cgroup: Option<Cgroup>,
    pub(super) main: Pid,
    pub(super) streams: Ours,
    pub(super) started: Started,
}

/// A shim with a running container.
pub(super) struct Shim {
    launch: ShimLaunch,
    folder: Folder,
    log: LogWriter,
    listener: UnixListener,
    signals: OwnedFd,
    cgroup: Option<Cgroup>,
    main: Pid,
    outputs: [Option<OwnedFd>; 2],
    /// Where the main process reads what attached clients write.
    input: Option<OwnedFd>,
    started: Started,
    connections: Vec<Connection>,
    ended: Option<(WaitStatus, Timestamp)>,
    is_ending: bool,
    ran_out_of_memory: bool,
}

/// Something that became ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ready {
    Signal,
    Output(Stream),
    Memory,
    Caller,
    Connection(usize),
    Exec(usize),
    /// An attached client has made room.
    Room,
}

impl Shim {
    pub(super) fn new(launch: ShimLaunch, parent: Connection, parts: Parts) -> Self {
        Self {
            launch,
            folder: parts.folder,
            log: parts.log,
            listener: parts.listener,
            signals: parts.signals,
            cgroup: parts.cgroup,
            main: parts.main,
            outputs: [parts.streams.out, parts.streams.err],
            input: parts.streams.input,
            started: parts.started,
            connections: vec![parent],
            ended: None,
            is_ending: false,
            ran_out_of_memory: false,
        }
    }

    /// Looks after the container until its end, and writes that down.
    pub(super) fn run(mut self) {
        // Children are looked for first: one may have ended before its signal could be seen.
        while !self.reap() {
            let now = Instant::now();
            for index in (0..self.connections.len()).rev() {
                if self.connections[index].settle(now).is_err() {
                    self.part_with(index);
                }
            }
            for ready in self.wait() {
                self.react(ready);
            }
        }
        self.finish();
    }

    fn wait(&self) -> Vec<Ready> {
        let mut sources = vec![(Ready::Signal, PollFd::new(&self.signals, PollFlags::IN))];
        for (stream, fd) in [Stream::Out, Stream::Err].into_iter().zip(&self.outputs) {
            // Whoever is attached must have taken what came before.
            let attached = self.connections.iter().filter_map(|it| it.attached.as_ref());
            let is_held = attached.flat_map(Attached::stuck).any(|(held, _)| held == stream);
            if let Some(fd) = fd.as_ref().filter(|_| !is_held) {
                sources.push((Ready::Output(stream), PollFd::new(fd, PollFlags::IN)));
            }
        }
        let oom = self.cgroup.as_ref().and_then(Cgroup::oom);
        if let Some(oom) = oom.filter(|_| !self.ran_out_of_memory) {
            sources.push((Ready::Memory, PollFd::new(oom, PollFlags::IN)));
        }
        sources.push((Ready::Caller, PollFd::new(&self.listener, PollFlags::IN)));
        let mut deadline: Option<Instant> = None;
        for (index, connection) in self.connections.iter().enumerate() {
            let fd = PollFd::new(&connection.stream, PollFlags::IN);
            sources.push((Ready::Connection(index), fd));
            deadline = deadline.into_iter().chain(connection.deadline()).min();
            if let Some(pipe) = connection.exec.as_ref().and_then(|exec| exec.pipe.as_ref()) {
                sources.push((Ready::Exec(index), PollFd::new(pipe, PollFlags::IN)));
            }
            for (_, fd) in connection.attached.iter().flat_map(Attached::stuck) {
                sources.push((Ready::Room, PollFd::new(fd, PollFlags::OUT)));
            }
        }
        let timeout = deadline.map(|deadline| {
            let left = deadline.saturating_duration_since(Instant::now());
            Timespec::try_from(left).unwrap_or(Timespec { tv_sec: 3600, tv_nsec: 0 })
        });
        let (mut ready, mut fds): (Vec<_>, Vec<_>) = sources.into_iter().unzip();
        if poll(&mut fds, timeout.as_ref()).is_err() {
            return Vec::new();
        }
        let mut fds = fds.iter();
        ready.retain(|_| fds.next().is_some_and(|fd| !fd.revents().is_empty()));
        // Connections are removed by index, so the last come first.
        ready.reverse();
        ready
    }

    fn react(&mut self, ready: Ready) {
        match ready {
            Ready::Signal => {
                for signal in signals::take(&self.signals) {
                    // The machine is shutting down, or somebody means the container.
                    if signal == Signal::TERM.as_raw() && self.is_alive() {
                        let _ = kill_process(self.main, Signal::TERM);
                    }
                }
            }
            Ready::Output(stream) => self.copy_output(stream),
            Ready::Memory => {
                self.ran_out_of_memory = true;
                self.end();
            }
            Ready::Caller => {
                if let Ok((stream, _)) = self.listener.accept() {
                    self.greet(stream);
                }
            }
            Ready::Connection(index) => self.serve(index),
            Ready::Exec(index) => {
                if let Some(exec) = self.connections.get_mut(index).and_then(|c| c.exec.as_mut()) {
                    exec.read();
                }
            }
            // Clients are given more whenever the shim wakes up.
            Ready::Room => {}
        }
    }

    fn greet(&mut self, stream: UnixStream) {
        let mut connection = Connection::new(stream, false);
        let greeted = connection.stream.set_nonblocking(true);
        if greeted.and_then(|()| connection.send(&Reply::Started(self.started.clone()))).is_ok() {
            self.connections.push(connection);
        }
    }

    fn serve(&mut self, index: usize) {
        let Some(connection) = self.connections.get_mut(index) else { return };
        let Ok(requests) = connection.take_requests() else {
            return self.part_with(index);
        };
        for request in requests {
            match request {
                // It was heard before the container started.
                Request::Go => {}
                Request::Signal(number) => {
                    if let Some(signal) = signals::by_number(number).filter(|_| self.is_alive()) {
                        let _ = kill_process(self.main, signal);
                    }
                }
                Request::Kill => self.end(),
                Request::Exec { command, timeout_ms } => {
                    let command = self.launch.placed(&command);
                    let program = Program::of(&self.launch, &command, self.cgroup.as_ref());
                    // A peer that breaks the rules is treated like one that went away.
                    let connection = &mut self.connections[index];
                    if connection.start_exec(program, timeout_ms).is_err() {
                        let _ = connection.stream.shutdown(std::net::Shutdown::Both);
                    }
                }
                Request::Run { command, is_terminal, streams } => {
                    let command = self.launch.placed(&command);
                    let program = Program::of(&self.launch, &command, self.cgroup.as_ref());
                    let connection = &mut self.connections[index];
                    let started = match connection.is_taken() {
                        true => Err(io::ErrorKind::InvalidInput.into()),
                        false => {
                            connection.start_session(Session::start(program, is_terminal, streams))
                        }
                    };
                    if started.is_err() {
                        let _ = connection.stream.shutdown(std::net::Shutdown::Both);
                    }
                }
                Request::Attach { streams } => {
                    if self.attach(index, streams).is_err() {
                        let _ = self.connections[index].stream.shutdown(std::net::Shutdown::Both);
                    }
                }
                Request::EndInput => {
                    let attached = &mut self.connections[index].attached;
                    if attached.as_mut().is_some_and(|it| std::mem::take(&mut it.has_input)) {
                        self.end_input();
                    }
                }
            }
        }
    }

    /// Shows a client what the main process writes from now on, and lets it write to it.
    fn attach(&mut self, index: usize, wanted: Streams) -> io::Result<()> {
        let is_terminal = self.launch.console.is_terminal;
        let streams = Streams {
            input: wanted.input && self.input.is_some(),
            out: wanted.out,
            err: wanted.err && !is_terminal,
        };
        let connection = &mut self.connections[index];
        if connection.is_taken() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let (attached, mut ours) = Attached::new(streams)?;
        ours.input = match &self.input {
            Some(input) if streams.input => Some(input.try_clone()?),
            _ => None,
        };
        connection.attached = Some(attached);
        connection.send_with(&Reply::Streams { is_terminal, streams }, &ours)
    }

    /// The client that had the input of the main process writes no more.
    fn end_input(&mut self) {
        // A terminal has no end: whoever comes next sits down at it again.
        let console = self.launch.console;
        if console.input == Input::Once && !console.is_terminal {
            self.input = None;
        }
    }

    /// Lets a connection go, and whatever lived by it.
    fn part_with(&mut self, index: usize) {
        let gone = self.connections.swap_remove(index);
        if gone.attached.as_ref().is_some_and(|attached| attached.has_input) {
            self.end_input();
        }
        if gone.is_parent && self.launch.die_with_parent {
            self.end();
        }
    }

    /// Whether the main process has not been reaped: else its id may belong to somebody else.
    fn is_alive(&self) -> bool {
        self.ended.is_none()
    }

    /// Kills everything, now and whenever something more turns up.
    fn end(&mut self) {
        self.is_ending = true;
        if self.is_alive() {
            let _ = kill_process_group(self.main, Signal::KILL);
        }
        if let Some(cgroup) = &self.cgroup {
            cgroup.kill();
        }
        children::kill_all();
    }

    /// Takes ended children. Returns whether everything is over.
    fn reap(&mut self) -> bool {
        loop {
            match children::reap() {
                Ok(Some((pid, status))) => {
                    let code = exit_code(status);
                    for connection in &mut self.connections {
                        connection.ended(pid, code);
                    }
                    if pid == self.main {
                        self.ended = Some((status, wire::now()));
                        self.is_ending = true;
                    }
                }
                Ok(None) if self.is_ending => {
                    if let Some(cgroup) = &self.cgroup {
                        cgroup.kill();
                    }
                    // What another user owns cannot be waited for.
                    return children::kill_all() == Reach::SomeBeyond && !self.is_alive();
                }
                Ok(None) => return false,
                Err(NoChildren) => return true,
            }
        }
    }

    fn copy_output(&mut self, stream: Stream) {
        let Some(fd) = &self.outputs[stream as usize] else { return };
        let mut chunk = [0; 32 << 10];
        match rustix::io::read(fd, &mut chunk) {
            Ok(0) => self.outputs[stream as usize] = None,
            Ok(count) => {
                self.log.write(stream, &chunk[..count], wire::now());
                for attached in self.connections.iter_mut().filter_map(|c| c.attached.as_mut()) {
                    attached.offer(stream, &chunk[..count], Instant::now());
                }
            }
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => {}
            Err(_) => self.outputs[stream as usize] = None,
        }
    }

    /// Takes what is left in the pipes. Whoever still holds them writes to nobody.
    fn drain_output(&mut self) {
        for stream in [Stream::Out, Stream::Err] {
            while self.outputs[stream as usize].as_ref().is_some_and(has_input) {
                self.copy_output(stream);
            }
        }
        self.log.finish(wire::now());
    }

    fn finish(mut self) {
        self.drain_output();
        for connection in &mut self.connections {
            // Commands that ended before the container did are told of by their own code.
            let _ = connection.settle(Instant::now());
        }
        let (status, finished_at) = self.ended.unzip();
        let code = status.map_or(137, exit_code);
        let oom_kills = self.cgroup.as_ref().map_or(0, Cgroup::oom_kills);
        let exited = Exited {
            id: self.launch.id.clone(),
            code,
            signal: status.and_then(WaitStatus::terminating_signal),
            oom_killed: code != 0 && (self.ran_out_of_memory || oom_kills > 0),
            started_at: self.started.at,
            finished_at: finished_at.unwrap_or_else(wire::now),
            message: self.message(code),
        };
        // The cgroup goes first: who hears of the end may count on everything being gone.
        if let Some(cgroup) = &self.cgroup {
            cgroup.remove();
        }
        let record = serde_json::to_vec(&exited).expect("plain data");
        let _ = self.folder.write(files::EXIT, &record, 0o600);
        self.folder.remove(files::CONTROL);
        for connection in &mut self.connections {
            let _ = connection.send(&Reply::Exited(Box::new(exited.clone())));
        }
        // Nobody else waits for them any more.
        for attached in self.connections.iter_mut().filter_map(|c| c.attached.as_mut()) {
            attached.finish();
        }
    }

    fn message(&self, code: i32) -> String {
        let message = self.folder.message(files::MESSAGE);
        if message.is_empty() && code != 0 && self.launch.message_from_logs_on_error {
            return self.log.tail();
        }
        message
    }
}

fn has_input(fd: &OwnedFd) -> bool {
    let mut fds = [PollFd::new(fd, PollFlags::IN)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    matches!(poll(&mut fds, Some(&now)), Ok(count) if count > 0)
}

fn exit_code(status: WaitStatus) -> i32 {
    let by_signal = || status.terminating_signal().map(|signal| 128 + signal);
    status.exit_status().or_else(by_signal).unwrap_or(137)
}
