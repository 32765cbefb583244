//! Talks to processes of a container: commands that are run in it, and its main process.
//!
//! The streams come from the shim as descriptors and are used directly; the connection to the shim
//! stays open for as long as somebody talks, because it ends what was started for that.

use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use rustix::termios::{Winsize, tcsetwinsize};
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncWriteExt, Interest};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

use super::attend::{connect, read_reply};
use super::{ContainerId, ExecError};
use crate::node::dirs::NodeDirs;
use crate::node::shim::wire::{self, Reply, Request, Streams};

/// A shim that lives answers at once; one that does not is stuck.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// A process that somebody talks to.
pub(crate) struct Talk {
    pub(crate) input: Option<Arc<End>>,
    pub(crate) out: Option<Arc<End>>,
    pub(crate) err: Option<Arc<End>>,
    /// Says when the process has ended.
    pub(crate) ending: Ending,
    /// Says that its input has.
    pub(crate) input_end: InputEnd,
}

/// Starts a command in a container.
///
/// # Errors
/// The container does not run, or the command cannot be executed.
pub(crate) async fn run(
    dirs: &NodeDirs,
    id: &ContainerId,
    command: Vec<String>,
    is_terminal: bool,
    streams: Streams,
) -> Result<Talk, ExecError> {
    open(dirs, id, Request::Run { command, is_terminal, streams }).await
}

/// Sees what the main process of a container writes from now on, and writes to it.
///
/// # Errors
/// The container does not run.
pub(crate) async fn attach(
    dirs: &NodeDirs,
    id: &ContainerId,
    streams: Streams,
) -> Result<Talk, ExecError> {
    open(dirs, id, Request::Attach { streams }).await
}

async fn open(dirs: &NodeDirs, id: &ContainerId, request: Request) -> Result<Talk, ExecError> {
    let absent = |_| ExecError::NotRunning { id: id.to_string() };
    let gone = |source| ExecError::Gone { id: id.to_string(), source };
    let is_command = matches!(request, Request::Run { .. });
    let stream = connect(&dirs.container(id)).map_err(absent)?;
    let mut stream = UnixStream::from_std(stream).map_err(gone)?;
    stream.write_all(&wire::json_frame(&request)).await.map_err(gone)?;
    let answer = tokio::time::timeout(ANSWER_TIMEOUT, answer(&stream)).await;
    let late = |_| gone(io::ErrorKind::TimedOut.into());
    let (reply, fds) = answer.map_err(late)?.map_err(gone)?;
    match reply {
        Reply::Streams { streams, .. } => talk(stream, streams, fds, is_command).map_err(gone),
        Reply::ExecFailed(failure) => Err(ExecError::Exec(failure)),
        _ => Err(gone(io::ErrorKind::UnexpectedEof.into())),
    }
}

fn talk(
    stream: UnixStream,
    streams: Streams,
    fds: Vec<OwnedFd>,
    is_command: bool,
) -> io::Result<Talk> {
    let mut fds = fds.into_iter();
    let mut end = |is_there: bool| -> io::Result<_> {
        let fd = if is_there { fds.next() } else { None };
        fd.map(|fd| End::new(fd).map(Arc::new)).transpose()
    };
    let (input, out, err) = (end(streams.input)?, end(streams.out)?, end(streams.err)?);
    let (shim, writer) = stream.into_split();
    let ending = Ending { shim, is_command };
    Ok(Talk { input, out, err, ending, input_end: InputEnd(writer) })
}

/// The answer of a shim to a request for streams, with the descriptors that came beside it.
async fn answer(stream: &UnixStream) -> io::Result<(Reply, Vec<OwnedFd>)> {
    let (mut bytes, mut fds) = (Vec::new(), Vec::new());
    loop {
        while let Some((kind, payload)) = wire::take_frame(&mut bytes)? {
            match wire::parse(kind, &payload)? {
                // Every connection is greeted with it.
                Reply::Started(_) => {}
                reply => return Ok((reply, fds)),
            }
        }
        let read = stream.async_io(Interest::READABLE, || {
            let mut chunk = [0; 4096];
            let count = receive(stream, &mut chunk, &mut fds)?;
            Ok(chunk[..count].to_vec())
        });
        match read.await? {
            chunk if chunk.is_empty() => return Err(io::ErrorKind::UnexpectedEof.into()),
            chunk => bytes.extend(chunk),
        }
    }
}

fn receive(stream: &UnixStream, chunk: &mut [u8], fds: &mut Vec<OwnedFd>) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC;
    let received = recvmsg(stream, &mut [IoSliceMut::new(chunk)], &mut ancillary, flags)?;
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(received) = message {
            fds.extend(received);
        }
    }
    Ok(received.bytes)
}

/// How a talk came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// The command ended with this code.
    Command(i32),
    /// The container did, and everything in it.
    Container,
    /// Nobody knows: the shim is gone.
    Lost,
}

/// Says when a process has ended.
pub(crate) struct Ending {
    shim: OwnedReadHalf,
    is_command: bool,
}

impl Ending {
    /// Waits for the end.
    pub(crate) async fn wait(&mut self) -> Ended {
        loop {
            match read_reply(&mut self.shim).await {
                Ok(Reply::ExecEnded { code }) => return Ended::Command(code),
                // It was killed with everything else.
                Ok(Reply::Exited(_)) if self.is_command => return Ended::Command(137),
                Ok(Reply::Exited(_)) => return Ended::Container,
                Ok(_) => {}
                Err(_) => return Ended::Lost,
            }
        }
    }
}

/// Says that there will be no more input.
pub(crate) struct InputEnd(OwnedWriteHalf);

impl InputEnd {
    /// Says so. A shim that is gone need not know.
    pub(crate) async fn tell(&mut self) {
        let _ = self.0.write_all(&wire::json_frame(&Request::EndInput)).await;
    }
}

/// One end of a stream.
pub(crate) struct End(AsyncFd<OwnedFd>);

impl End {
    fn new(fd: OwnedFd) -> io::Result<Self> {
        #[expect(unsafe_code, reason = "the only way to wait for a descriptor of any sort")]
        // SAFETY: the descriptor is owned, so it stays open and the same until it is dropped, which
        // happens together with its registration.
        let registered = unsafe { AsyncFd::register(fd) };
        Ok(Self(registered?))
    }

    /// Reads some; nothing at the end.
    pub(crate) async fn read(&self, into: &mut [u8]) -> io::Result<usize> {
        let read = |fd: &OwnedFd| Ok(rustix::io::read(fd, &mut *into)?);
        match self.0.async_io(Interest::READABLE, read).await {
            // A terminal that nobody is at any more.
            Err(error) if error.raw_os_error() == Some(libc::EIO) => Ok(0),
            other => other,
        }
    }

    /// Writes everything.
    pub(crate) async fn write_all(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let write = |fd: &OwnedFd| Ok(rustix::io::write(fd, bytes)?);
            let count = self.0.async_io(Interest::WRITABLE, write).await?;
            bytes = &bytes[count..];
        }
        Ok(())
    }

    /// Tells a terminal how large it is. Nothing else has a size.
    pub(crate) fn resize(&self, columns: u16, rows: u16) {
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        let _ = tcsetwinsize(self.0.get_ref(), size);
    }
}
