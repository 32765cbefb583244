//! Starts shims and stays with them.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream as StdStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::Ordering;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{MemfdFlags, Mode, OFlags, memfd_create, open};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc;

use super::orphans::{self, HeldNamespace};
use super::{Busy, ContainerId, ExecError, ExecOutcome, RuntimeEvent, StartError, Started};
use crate::node::dirs::NodeDirs;
use crate::node::shim::wire::{
    self, KIND_OUTPUT, Reply, Request, SHIM_ARGUMENT, ShimLaunch, files,
};

/// A shim that takes longer to start its container hangs in a system call, on a dead network mount
/// say.
const START_TIMEOUT: Duration = Duration::from_secs(120);
/// How long a shim that was killed may take to be gone; one that hangs in a system call goes when
/// that returns, which may be never.
const REAP_PATIENCE: Duration = Duration::from_secs(5);
/// How much longer than its timeout an exec may take before the shim is taken for stuck.
const EXEC_SLACK: Duration = Duration::from_secs(5);

/// What a shim finds in its own environment, which is not that of its container. Its allocator asks
/// for memory piece by piece: as a whole, some kernels would give it in pages of 2 MiB.
const SHIM_ENVIRONMENT: [(&str, &str); 1] = [("MIMALLOC_ARENA_EAGER_COMMIT", "0")];

/// A way to ask the shim of a running container.
#[derive(Clone)]
pub(super) struct Handle {
    requests: mpsc::UnboundedSender<Request>,
}

impl Handle {
    /// Asks; a container that just ended does not hear it.
    pub(super) fn send(&self, request: Request) {
        let _ = self.requests.send(request);
    }
}

/// The process of a shim.
pub(super) enum Process {
    /// A child of this process.
    Child(Child),
    /// Somebody else's by now, held so that its end can be waited for.
    Adopted(OwnedFd),
    /// Kernels without a way to hold a process: it is gone a moment after its last word.
    Unknown,
}

/// A shim with a container, as it is looked after.
pub(super) struct Attended {
    pub(super) stream: UnixStream,
    pub(super) process: Process,
    pub(super) namespace: Option<HeldNamespace>,
}

/// Starts a shim and hears whether its container runs.
pub(super) async fn start(
    busy: Busy,
    shim: PathBuf,
    launch: ShimLaunch,
) -> Result<Started, StartError> {
    let failed = |error: io::Error| StartError::Shim { message: error.to_string() };
    let id = launch.id.clone();
    let spawned = tokio::task::spawn_blocking(move || spawn(&shim, &launch)).await;
    let (mut child, stream) = spawned.map_err(io::Error::other).and_then(|r| r).map_err(failed)?;
    let mut stream = UnixStream::from_std(stream).map_err(failed)?;
    let mut namespace = None;
    let hold = || namespace = HeldNamespace::of(child.id());
    let reply = tokio::time::timeout(START_TIMEOUT, negotiate(&busy, &mut stream, hold)).await;
    let error = match reply.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())) {
        Ok(Some(Reply::Started(started))) => {
            let shim = Attended { stream, process: Process::Child(child), namespace };
            attend(busy, id, shim, started.clone());
            return Ok(started);
        }
        Ok(None) => StartError::Closed,
        Ok(Some(Reply::NotExecuted(failure))) => StartError::Exec(failure),
        Ok(Some(Reply::NotMounted { volume, message })) => StartError::Mount { volume, message },
        Ok(Some(Reply::Broken(message))) => StartError::Shim { message },
        Ok(Some(_)) => StartError::Shim { message: "it answered out of turn".to_owned() },
        Err(error) => {
            // It may have been half way through, and what it left must not stay.
            let _ = child.kill();
            StartError::Shim { message: format!("it died: {error}") }
        }
    };
    // Without its parent it goes by itself.
    drop(stream);
    let dir = busy.0.dirs.container(&id);
    let clean_up = async move {
        ended(Process::Child(child)).await;
        let sweep = move || orphans::sweep(&dir, &id, namespace.as_ref());
        let _ = tokio::task::spawn_blocking(sweep).await;
    };
    let clean_up = tokio::spawn(clean_up);
    let _ = tokio::time::timeout(REAP_PATIENCE, clean_up).await;
    Err(error)
}

/// Gives a shim the word to start when it is ready, and hears what comes of it; `None` when nothing
/// may start any more. `on_ready` is called when it has everything its container will have.
async fn negotiate(
    busy: &Busy,
    stream: &mut UnixStream,
    on_ready: impl FnOnce(),
) -> io::Result<Option<Reply>> {
    match read_reply(stream).await? {
        Reply::Ready if busy.0.is_closed.load(Ordering::SeqCst) => return Ok(None),
        Reply::Ready => {}
        other => return Ok(Some(other)),
    }
    on_ready();
    stream.write_all(&wire::json_frame(&Request::Go)).await?;
    read_reply(stream).await.map(Some)
}

/// Notes a running container and waits in the background for its end.
pub(super) fn attend(
    busy: Busy,
    id: ContainerId,
    Attended { stream, process, namespace }: Attended,
    started: Started,
) {
    let (requests, receiver) = mpsc::unbounded_channel();
    busy.0.lock().insert(id.clone(), Handle { requests });
    tokio::spawn(async move {
        let shared = &busy.0;
        let (reader, writer) = stream.into_split();
        let reply = converse(reader, writer, receiver).await;
        let exited = match reply {
            Some(Reply::Exited(exited)) => *exited,
            // The shim is gone without a word. It may have written some down.
            _ => {
                let dir = shared.dirs.container(&id);
                let lost = orphans::exit_of_lost(&dir, &id, &started, namespace);
                tokio::task::spawn_blocking(lost).await.expect("cleaning up does not panic")
            }
        };
        shared.lock().remove(&id);
        // Nobody listens any more when the node shuts down.
        let _ = shared.events.send(RuntimeEvent::Exited(exited));
        ended(process).await;
    });
}

/// Passes requests on until the shim says how the container ended, or is gone.
async fn converse(
    mut reader: OwnedReadHalf,
    mut writer: OwnedWriteHalf,
    mut requests: mpsc::UnboundedReceiver<Request>,
) -> Option<Reply> {
    let pass_on = async {
        while let Some(request) = requests.recv().await {
            if writer.write_all(&wire::json_frame(&request)).await.is_err() {
                break;
            }
        }
        std::future::pending::<()>().await;
    };
    let hear = async {
        loop {
            match read_reply(&mut reader).await {
                Ok(reply @ Reply::Exited(_)) => return Some(reply),
                Ok(_) => {}
                Err(_) => return None,
            }
        }
    };
    tokio::select! {
        reply = hear => reply,
        () = pass_on => None,
    }
}

/// Runs a command in a container, on a connection of its own.
pub(super) async fn exec(
    dirs: &NodeDirs,
    id: &ContainerId,
    command: &[String],
    timeout: Duration,
) -> Result<ExecOutcome, ExecError> {
    let gone = |source| ExecError::Gone { id: id.to_string(), source };
    let stream = connect(&dirs.container(id)).map_err(gone)?;
    let mut stream = UnixStream::from_std(stream).map_err(gone)?;
    let timeout_ms = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
    let request = Request::Exec { command: command.to_vec(), timeout_ms };
    stream.write_all(&wire::json_frame(&request)).await.map_err(gone)?;
    let answer = tokio::time::timeout(timeout.saturating_add(EXEC_SLACK), exec_answer(&mut stream));
    let timed_out = || ExecError::TimedOut { command: command.join(" "), timeout };
    let (reply, output) = answer.await.map_err(|_| timed_out())?.map_err(gone)?;
    match reply {
        Reply::ExecEnded { code } => Ok(ExecOutcome { code, output }),
        Reply::ExecTimedOut => Err(timed_out()),
        Reply::ExecFailed(failure) => Err(ExecError::Exec(failure)),
        _ => Err(gone(io::ErrorKind::UnexpectedEof.into())),
    }
}

async fn exec_answer(stream: &mut UnixStream) -> io::Result<(Reply, Vec<u8>)> {
    let mut output = Vec::new();
    loop {
        let (kind, payload) = read_frame(stream).await?;
        if kind == KIND_OUTPUT {
            output.extend_from_slice(&payload);
            continue;
        }
        match wire::parse(kind, &payload)? {
            // Every connection is greeted with it.
            Reply::Started(_) => {}
            reply => return Ok((reply, output)),
        }
    }
}

/// Connects to the shim whose folder is `dir`, however long its path is.
pub(super) fn connect(dir: &Path) -> io::Result<StdStream> {
    let folder = open(dir, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let path = format!("/proc/self/fd/{}/{}", folder.as_raw_fd(), files::CONTROL);
    let stream = StdStream::connect(path)?;
    stream.set_nonblocking(true)?;
    Ok(stream)
}

fn spawn(shim: &Path, launch: &ShimLaunch) -> io::Result<(Child, StdStream)> {
    let orders = memfd_create("launch", MemfdFlags::CLOEXEC)?;
    let mut orders = std::fs::File::from(orders);
    io::Write::write_all(&mut orders, &serde_json::to_vec(launch)?)?;
    io::Seek::rewind(&mut orders)?;
    let (ours, theirs) = StdStream::pair()?;
    ours.set_nonblocking(true)?;
    let child = Command::new(shim)
        .arg0("lockstep")
        .arg(SHIM_ARGUMENT)
        .env_clear()
        .envs(SHIM_ENVIRONMENT)
        .stdin(orders)
        .stdout(OwnedFd::from(theirs))
        .stderr(Stdio::null())
        .spawn()?;
    Ok((child, ours))
}

pub(super) async fn read_reply(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Reply> {
    let (kind, payload) = read_frame(stream).await?;
    wire::parse(kind, &payload)
}

async fn read_frame(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<(u8, Vec<u8>)> {
    let mut head = [0; 5];
    stream.read_exact(&mut head).await?;
    let mut payload = vec![0; wire::payload_length(head)?];
    stream.read_exact(&mut payload).await?;
    Ok((head[4], payload))
}

/// Waits for the end of a shim, so that nothing of it is left. It has closed its socket, so it is
/// all but gone.
async fn ended(process: Process) {
    match process {
        Process::Child(mut child) => {
            let _ = tokio::task::spawn_blocking(move || child.wait()).await;
        }
        Process::Adopted(held) => {
            let wait = move || poll(&mut [PollFd::new(&held, PollFlags::IN)], None).is_ok();
            let _ = tokio::task::spawn_blocking(wait).await;
        }
        Process::Unknown => {}
    }
}
