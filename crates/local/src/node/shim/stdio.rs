//! The standard streams of a process, and their other ends.

use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::fchown;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Gid, Uid};
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};

use super::wire::Streams;

/// What a process gets; where there is nothing it gets `/dev/null`.
#[derive(Debug, Default)]
pub(super) struct Theirs {
    pub(super) input: Option<OwnedFd>,
    pub(super) out: Option<OwnedFd>,
    pub(super) err: Option<OwnedFd>,
    /// Whether the process leads a session of its own.
    pub(super) is_session: bool,
    /// Whether its input is the terminal of that session.
    pub(super) is_terminal: bool,
}

/// The other ends, none of which makes who uses it wait.
#[derive(Debug, Default)]
pub(super) struct Ours {
    pub(super) input: Option<OwnedFd>,
    pub(super) out: Option<OwnedFd>,
    pub(super) err: Option<OwnedFd>,
}

impl Ours {
    /// All there are, in the order of the fields.
    pub(super) fn all(&self) -> impl Iterator<Item = &OwnedFd> {
        [&self.input, &self.out, &self.err].into_iter().flatten()
    }
}

/// A pipe for each of the wanted streams.
pub(super) fn pipes(wanted: Streams) -> io::Result<(Theirs, Ours)> {
    let (mut theirs, mut ours) = (Theirs::default(), Ours::default());
    if wanted.input {
        let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
        rustix::io::ioctl_fionbio(&write, true)?;
        (theirs.input, ours.input) = (Some(read), Some(write));
    }
    for (is_wanted, theirs, ours) in
        [(wanted.out, &mut theirs.out, &mut ours.out), (wanted.err, &mut theirs.err, &mut ours.err)]
    {
        if is_wanted {
            let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
            rustix::io::ioctl_fionbio(&read, true)?;
            (*theirs, *ours) = (Some(write), Some(read));
        }
    }
    Ok((theirs, ours))
}

/// A terminal of the container that belongs to `user`, and the end at which somebody sits.
pub(super) fn terminal(user: Option<u32>) -> io::Result<(Theirs, OwnedFd)> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let seat = openpt(flags)?;
    grantpt(&seat)?;
    unlockpt(&seat)?;
    // By descriptor, because the terminals of the container may be mounted anywhere or nowhere.
    let line = ioctl_tiocgptpeer(&seat, flags)?;
    // Only root can, and only root has to.
    let _ = fchown(&line, user.map(Uid::from_raw), None::<Gid>);
    rustix::io::ioctl_fionbio(&seat, true)?;
    let theirs = Theirs {
        input: Some(line.try_clone()?),
        out: Some(line.try_clone()?),
        err: Some(line),
        is_session: true,
        is_terminal: true,
    };
    Ok((theirs, seat))
}
