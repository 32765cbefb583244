//! The process that looks after one container.
//!
//! The `lockstep` executable starts itself once per container with a hidden first argument. The
//! shim enters the container's namespaces, starts its main process, copies its output into log
//! files, carries out requests, and when the main process ends it kills whatever is left, writes
//! down how it ended, and goes. It has one thread, and it outlives `lockstep` unless it is told not
//! to.

mod attach;
mod connection;
mod log_writer;
mod process;
mod record;
mod serve;
mod session;
mod setup;
mod signals;
mod stdio;
mod view;
pub(crate) mod wire;

use std::ffi::OsStr;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;

use rustix::fs::{Mode, OFlags, open};

use self::connection::Connection;
use self::serve::Shim;
use self::wire::{PROBE_ARGUMENT, Probed, ShimLaunch};
use super::runtime::{ExecFailure, open_files};

pub(crate) use self::log_writer::files_aside;
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
    open_files::restore(launch.open_files);
    let mut parent = Connection::new(parent, true);
    match setup::set_up(&launch, &mut parent) {
        Ok(parts) => {
            Shim::new(launch, parent, parts).run();
            ExitCode::SUCCESS
        }
        Err(reply) => {
            let _ = parent.send(&reply);
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
