//! The process that looks after one container.
//!
//! The `lockstep` executable starts itself once per container with a hidden first argument. The
//! shim enters the container's namespaces, starts its main process, copies its output into log
//! files, carries out requests, and when the main process ends it kills whatever is left, writes
//! down how it ended, and goes. It has one thread, and it outlives `lockstep` unless it is told not
//! to.

mod children;
mod connection;
mod log_writer;
mod process;
mod record;
mod serve;
mod signals;
mod view;
pub(crate) mod wire;

use std::ffi::OsStr;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::ExitCode;

use rustix::fs::{Mode, OFlags, open};
use rustix::pipe::{PipeFlags, pipe_with};

use self::log_writer::LogWriter;
use self::process::Program;
use self::record::Folder;
use self::serve::{Parts, Shim};
use self::view::ViewError;
use self::wire::{Isolation, PROBE_ARGUMENT, Probed, Reply, ShimLaunch, State, files};
use super::limits::{Cgroup, CgroupPlan};
use super::runtime::{ExecFailure, Started};

pub(crate) use self::record::boot_id;
pub use self::wire::SHIM_ARGUMENT;

/// Whether this process was started as a shim: ask before anything else, then call [`main`].
pub fn is_requested() -> bool {
    std::env::args_os().nth(1).is_some_and(|argument| argument == OsStr::new(SHIM_ARGUMENT))
}

/// Runs this process as a shim.
pub fn main() -> ExitCode {
    if std::env::args_os().nth(2).is_some_and(|argument| argument == OsStr::new(PROBE_ARGUMENT)) {
        return probe();
    }
    close_inherited();
    // Only for people who look at the list of processes.
    let _ = rustix::thread::set_name(c"lockstep-shim");
    // Standard input holds the launch, standard output is the socket of the parent.
    let (Ok(launch), Ok(parent)) =
        (serde_json::from_reader::<_, ShimLaunch>(io::stdin().lock()), parent_socket())
    else {
        return ExitCode::FAILURE;
    };
    match set_up(&launch, &parent) {
        Ok(parts) => {
            Shim::new(launch, parent, parts).run();
            ExitCode::SUCCESS
        }
        Err(reply) => {
            let _ = wire::write_json(&mut &parent, &reply);
            ExitCode::FAILURE
        }
    }
}

/// Closes whatever `lockstep` itself inherited: a container must not hold on to the pipes of a
/// shell.
#[expect(unsafe_code, reason = "closing descriptors by number has no safe wrapper")]
fn close_inherited() {
    // SAFETY: nothing in this process has opened a descriptor beyond the standard three yet.
    // Kernels without the call leave them open, which is untidy but sound.
    unsafe {
        libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, 0);
    }
}

fn probe() -> ExitCode {
    let (isolation, reason) = view::probe();
    let text = serde_json::to_vec(&Probed { isolation, reason }).expect("plain data");
    match io::stdout().write_all(&text) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn parent_socket() -> io::Result<UnixStream> {
    let stream = UnixStream::from(io::stdout().as_fd().try_clone_to_owned()?);
    stream.set_nonblocking(true)?;
    Ok(stream)
}

/// Everything up to a running main process.
fn set_up(launch: &ShimLaunch, parent: &UnixStream) -> Result<Parts, Reply> {
    let broken = |what: &str, error: &dyn std::fmt::Display| {
        Reply::Broken(format!("cannot {what}: {error}"))
    };
    // Fails only for a group leader, which a fresh child is not.
    let _ = rustix::process::setsid();
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
        .map_err(|error| broken("adopt orphans", &error))?;
    rustix::process::umask(Mode::from_raw_mode(0o022));
    let signals = signals::block().map_err(|error| broken("handle signals", &error))?;
    let folder = Folder::open(&launch.dir).map_err(|error| broken("open its folder", &error))?;
    // Readers of the log take the socket as a sign that more is to come, so it must be there first.
    let listener = listen(launch).map_err(|error| broken("listen", &error))?;
    let log = LogWriter::open(&launch.log_dir, launch.id.attempt, launch.rotation)
        .map_err(|error| broken("open its log", &error))?;
    folder.write(files::MESSAGE, b"", 0o666).map_err(|error| broken("write", &error))?;

    let mut warnings = Vec::new();
    let cgroup = limit(launch, &mut warnings);
    let entered = match launch.isolation {
        Isolation::None => Ok(Vec::new()),
        Isolation::Mount | Isolation::UserMount => view::enter(launch),
    };
    let result = entered.map_err(|error| match error {
        ViewError::Volume { volume, message } => Reply::NotMounted { volume, message },
        ViewError::Machine(message) => Reply::Broken(message),
    });
    let result = result.and_then(|more| {
        warnings.extend(more);
        start_main(launch, cgroup.as_ref())
    });
    let (pid, out, err) = match result {
        Ok(started) => started,
        Err(reply) => {
            if let Some(cgroup) = &cgroup {
                cgroup.remove();
            }
            folder.remove(files::CONTROL);
            return Err(reply);
        }
    };
    let plan = cgroup.as_ref().map_or(CgroupPlan::None, |_| launch.cgroup.clone());
    let started = Started {
        pid: pid.as_raw_nonzero().get().unsigned_abs(),
        at: wire::now(),
        limited_by: wire::limited_by(&plan, &launch.limits),
        warnings,
    };
    let state = State {
        id: launch.id.clone(),
        boot_id: boot_id(),
        shim_pid: std::process::id(),
        mount_namespace: record::own_mount_namespace(launch.isolation),
        cgroup: plan,
        started: started.clone(),
    };
    // Without the record the container cannot be found again, but it can still run.
    let _ = folder.write(files::STATE, &serde_json::to_vec(&state).expect("plain data"), 0o600);
    let _ = wire::write_json(&mut &*parent, &Reply::Started(started.clone()));
    Ok(Parts { folder, log, listener, signals, cgroup, main: pid, out, err, started })
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

type MainProcess = (rustix::process::Pid, OwnedFd, OwnedFd);

fn start_main(launch: &ShimLaunch, cgroup: Option<&Cgroup>) -> Result<MainProcess, Reply> {
    let broken = |error: io::Error| Reply::Broken(format!("cannot make a pipe: {error}"));
    let (out, out_child) = pipe_with(PipeFlags::CLOEXEC).map_err(|e| broken(e.into()))?;
    let (err, err_child) = pipe_with(PipeFlags::CLOEXEC).map_err(|e| broken(e.into()))?;
    for fd in [&out, &err] {
        rustix::io::ioctl_fionbio(fd, true).map_err(|e| broken(e.into()))?;
    }
    let program = Program::of(launch, &launch.command, cgroup);
    let pid = program.spawn(out_child, err_child).map_err(Reply::NotExecuted)?;
    Ok((pid, out, err))
}

/// Opens a folder only to work relative to it, whatever is mounted over its path later.
fn open_folder(path: &std::path::Path) -> io::Result<OwnedFd> {
    Ok(open(path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?)
}

/// What a failed system call means for the program that was to run.
fn refused(program: &str, error: &io::Error) -> ExecFailure {
    ExecFailure::Refused { program: program.to_owned(), cause: system_words(error) }
}

/// The words of the system for an error, without Rust's addition and in lower case, as Go has them.
fn system_words(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_lowercase()
}
