//! Signals as readable events.

use std::io;
use std::os::fd::{AsFd, FromRawFd, OwnedFd};

use rustix::process::Signal;

/// Blocks the signals a shim acts on and returns a descriptor that reports them.
#[expect(unsafe_code, reason = "signal masks and signalfd have no safe wrapper among our crates")]
pub(super) fn block() -> io::Result<OwnedFd> {
    // SAFETY: the set is initialised by sigemptyset before it is read, and every pointer is to it.
    // The descriptor is fresh and owned by nobody else.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        for signal in [libc::SIGCHLD, libc::SIGTERM, libc::SIGINT, libc::SIGHUP] {
            libc::sigaddset(&raw mut set, signal);
        }
        if libc::sigprocmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) != 0 {
            return Err(io::Error::last_os_error());
        }
        let fd = libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

/// Unblocks everything; for a child about to become another program.
#[expect(unsafe_code, reason = "signal masks have no safe wrapper among our crates")]
pub(super) fn unblock_all() -> io::Result<()> {
    // SAFETY: the set is initialised by sigemptyset before it is read; both calls are
    // async-signal-safe.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        if libc::sigprocmask(libc::SIG_SETMASK, &raw const set, std::ptr::null_mut()) != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// Takes the signals that arrived.
pub(super) fn take(fd: &OwnedFd) -> Vec<i32> {
    const SIZE: usize = size_of::<libc::signalfd_siginfo>();
    let mut taken = Vec::new();
    let mut buffer = [0_u8; SIZE];
    while let Ok(SIZE) = rustix::io::read(fd.as_fd(), &mut buffer) {
        // The number of the signal is the first field.
        let number = u32::from_ne_bytes([buffer[0], buffer[1], buffer[2], buffer[3]]);
        taken.extend(i32::try_from(number));
    }
    taken
}

/// A signal by its number, the real-time ones included.
pub(super) fn by_number(number: i32) -> Option<Signal> {
    Signal::from_named_raw(number).or_else(|| {
        // 32 and 33 belong to the C library.
        if !(34..=64).contains(&number) {
            return None;
        }
        #[expect(unsafe_code, reason = "rustix names no real-time signals")]
        // SAFETY: the number is that of a signal which no library uses for itself.
        let signal = unsafe { Signal::from_raw_unchecked(number) };
        Some(signal)
    })
}
