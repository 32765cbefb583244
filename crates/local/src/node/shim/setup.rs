//! From the orders to a running main process.
//!
//! A start must never be lost: whoever ordered it may be killed at any moment, and its successor
//! must find this shim or be sure that it starts nothing. So the shim first takes the folder of the
//! container and writes down who it is; then it prepares everything; then it asks for the word to
//! go. The word proves that the one who gave it was alive after the record was there, so whoever
//! comes after it finds the record. Without the word nothing starts.

use std::io;
use std::os::unix::net::UnixListener;
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::Mode;

use super::connection::Connection;
use super::log_writer::LogWriter;
use super::process::Program;
use super::record::{self, Folder};
use super::serve::Parts;
use super::signals;
use super::stdio::{self, Ours};
use super::view::{self, ViewError};
use super::wire::{self, Isolation, Reply, Request, ShimLaunch, State, Streams, files};
use crate::node::limits::{Cgroup, CgroupPlan};
use crate::node::runtime::{Input, Started};

/// How long to wait for a folder that a shim without a parent is about to leave.
const CLAIM_PATIENCE: Duration = Duration::from_secs(10);
/// How often to look whether it has.
const CLAIM_POLL: Duration = Duration::from_millis(5);

/// Everything up to a running main process. What was made of it is gone again if that fails.
pub(super) fn set_up(launch: &ShimLaunch, parent: &mut Connection) -> Result<Parts, Reply> {
    // Fails only for a group leader, which a fresh child is not.
    let _ = rustix::process::setsid();
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
        .map_err(|error| broken("adopt orphans", &error))?;
    rustix::process::umask(Mode::from_raw_mode(0o022));
    let signals = signals::block().map_err(|error| broken("handle signals", &error))?;
    let folder = claim(launch).map_err(|error| broken("take its folder", &error))?;
    let mut cgroup = None;
    let result = start(launch, parent, &folder, &mut cgroup);
    match result {
        Ok(Running { log, listener, main, streams, started }) => {
            Ok(Parts { folder, log, listener, signals, cgroup, main, streams, started })
        }
        Err(reply) => {
            if let Some(cgroup) = &cgroup {
                cgroup.remove();
            }
            for file in [files::CONTROL, files::STATE, files::BEGUN] {
                folder.remove(file);
            }
            Err(reply)
        }
    }
}

/// What a running main process consists of.
struct Running {
    log: LogWriter,
    listener: UnixListener,
    main: rustix::process::Pid,
    streams: Ours,
    started: Started,
}

fn start(
    launch: &ShimLaunch,
    parent: &mut Connection,
    folder: &Folder,
    cgroup: &mut Option<Cgroup>,
) -> Result<Running, Reply> {
    let mut state = State {
        id: launch.id.clone(),
        boot_id: super::boot_id(),
        shim_pid: std::process::id(),
        mount_namespace: None,
        cgroup: launch.cgroup.clone(),
    };
    write_state(folder, &state).map_err(|error| broken("write down who it is", &error))?;
    // Readers of the log take the socket as a sign that more is to come, so it must be there first.
    let listener = listen(launch).map_err(|error| broken("listen", &error))?;
    let log = LogWriter::open(&launch.log_dir, launch.id.attempt, launch.rotation)
        .map_err(|error| broken("open its log", &error))?;
    folder.write(files::MESSAGE, b"", 0o666).map_err(|error| broken("write", &error))?;
    let mut warnings = Vec::new();
    *cgroup = limit(launch, &mut warnings);
    let entered = match launch.isolation {
        Isolation::None => Ok(Vec::new()),
        Isolation::Mount | Isolation::UserMount => view::enter(launch),
    };
    warnings.extend(entered.map_err(|error| match error {
        ViewError::Volume { volume, message } => Reply::NotMounted { volume, message },
        ViewError::Machine(message) => Reply::Broken(message),
    })?);
    state.mount_namespace = record::own_mount_namespace(launch.isolation);
    if cgroup.is_none() {
        state.cgroup = CgroupPlan::None;
    }
    write_state(folder, &state).map_err(|error| broken("write down what it has", &error))?;
    wait_for_the_word(parent).map_err(|error| broken("get the word to start", &error))?;
    folder.touch(files::BEGUN).map_err(|error| broken("write down that it starts", &error))?;
    let (main, streams) = start_main(launch, cgroup.as_ref())?;
    let started = Started {
        pid: main.as_raw_nonzero().get().unsigned_abs(),
        at: wire::now(),
        limited_by: wire::limited_by(&state.cgroup, &launch.limits),
        warnings,
    };
    // A parent that is gone by now finds the container when it is back.
    let _ = parent.send(&Reply::Started(started.clone()));
    Ok(Running { log, listener, main, streams, started })
}

fn broken(what: &str, error: &dyn std::fmt::Display) -> Reply {
    Reply::Broken(format!("cannot {what}: {error}"))
}

/// Takes the folder of the container. A shim whose parent died before it gave the word may still
/// have it for a moment.
fn claim(launch: &ShimLaunch) -> io::Result<Folder> {
    let began = Instant::now();
    loop {
        if let Some(folder) = Folder::claim(&launch.dir)? {
            return Ok(folder);
        }
        if began.elapsed() > CLAIM_PATIENCE {
            return Err(io::Error::new(io::ErrorKind::WouldBlock, "another shim has it"));
        }
        thread::sleep(CLAIM_POLL);
    }
}

fn write_state(folder: &Folder, state: &State) -> io::Result<()> {
    folder.write(files::STATE, &serde_json::to_vec(state)?, 0o600)
}

/// Says that everything is prepared and waits until the parent wants it to start.
fn wait_for_the_word(parent: &mut Connection) -> io::Result<()> {
    parent.send(&Reply::Ready)?;
    loop {
        match poll(&mut [PollFd::new(&parent.stream, PollFlags::IN)], None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        // Nothing but this is asked of a shim before it has started its container.
        if parent.take_requests()?.iter().any(|request| matches!(request, Request::Go)) {
            return Ok(());
        }
    }
}

/// Binds the socket by a relative name: absolute ones are limited to some hundred bytes.
fn listen(launch: &ShimLaunch) -> io::Result<UnixListener> {
    std::env::set_current_dir(&launch.dir)?;
    let _ = std::fs::remove_file(files::CONTROL);
    let listener = UnixListener::bind(files::CONTROL)?;
    listener.set_nonblocking(true)?;
    std::env::set_current_dir("/")?;
    Ok(listener)
}

fn limit(launch: &ShimLaunch, warnings: &mut Vec<String>) -> Option<Cgroup> {
    if launch.cgroup == CgroupPlan::None {
        return None;
    }
    match Cgroup::create(&launch.cgroup, &launch.limits) {
        Ok(cgroup) => Some(cgroup),
        Err(error) => {
            warnings.push(format!("cannot limit the container by cgroup: {error}"));
            None
        }
    }
}

fn start_main(
    launch: &ShimLaunch,
    cgroup: Option<&Cgroup>,
) -> Result<(rustix::process::Pid, Ours), Reply> {
    let made = || -> io::Result<_> {
        let has_input = launch.console.input != Input::None;
        if launch.console.is_terminal {
            let (theirs, seat) = stdio::terminal(launch.credentials.user)?;
            let input = has_input.then(|| seat.try_clone()).transpose()?;
            return Ok((theirs, Ours { input, out: Some(seat), err: None }));
        }
        stdio::pipes(Streams { input: has_input, out: true, err: true })
    };
    let (theirs, ours) = made().map_err(|error| broken("make its streams", &error))?;
    let program = Program::of(launch, &launch.command, cgroup);
    let pid = program.spawn(&theirs).map_err(Reply::NotExecuted)?;
    Ok((pid, ours))
}
