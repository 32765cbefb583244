//! What the runtime and a shim say to each other.
//!
//! A frame is a length (4 bytes, little endian), a kind byte and that many bytes of payload. Kind
//! `J` carries one JSON message; `1` carries the output of a probe's command. Whoever talks to a
//! process gets the ends of its streams themselves, as descriptors beside [`Reply::Streams`]: the
//! shim copies nothing, and what nobody reads holds up nobody but its writer.

use std::io::{self, Read};
use std::path::PathBuf;

use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::node::limits::CgroupPlan;
use crate::node::runtime::{
    Console, ContainerId, Credentials, ExecFailure, Exited, LimitedBy, Limits, Mount, Started,
    fallback,
};

/// No frame is longer; a longer one means that the other side is not one of ours.
const FRAME_MAX: usize = 1 << 20;

/// The kind of a frame with a JSON message.
pub(crate) const KIND_JSON: u8 = b'J';
/// The kind of a frame with the output of a command.
pub(crate) const KIND_OUTPUT: u8 = b'1';

/// The first argument that makes the executable a shim.
pub const SHIM_ARGUMENT: &str = "__shim";
/// The second argument of a shim that only tries what this machine allows.
pub(crate) const PROBE_ARGUMENT: &str = "probe";

/// Names of files in the folder of a container.
pub(crate) mod files {
    /// The socket of the shim.
    pub(crate) const CONTROL: &str = "control.sock";
    /// Which shim has the folder, and how the container started.
    pub(crate) const STATE: &str = "state.json";
    /// There from the moment in which the main process may have started.
    pub(crate) const BEGUN: &str = "begun";
    /// How it ended.
    pub(crate) const EXIT: &str = "exit.json";
    /// Its termination message.
    pub(crate) const MESSAGE: &str = "termination-log";
    /// Where the root of its view is put together.
    pub(crate) const ROOT: &str = "root";
}

/// How much of its own view of the machine a container can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Isolation {
    /// Own mounts and host name, by the rights this process has.
    Mount,
    /// Own mounts and host name, in a user namespace.
    UserMount,
    /// None: paths and names are replaced in the environment and the arguments.
    None,
}

/// How log files are rotated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogRotation {
    /// A file that reached this size is set aside.
    pub bytes_max: u64,
    /// How many files there are at most, the current one included.
    pub files_max: u32,
}

impl Default for LogRotation {
    fn default() -> Self {
        Self { bytes_max: 10 << 20, files_max: 5 }
    }
}

/// Everything a shim has to know.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ShimLaunch {
    pub(crate) id: ContainerId,
    pub(crate) dir: PathBuf,
    pub(crate) log_dir: PathBuf,
    pub(crate) data_dir: PathBuf,
    pub(crate) die_with_parent: bool,
    pub(crate) open_files: Option<u64>,
    pub(crate) isolation: Isolation,
    pub(crate) hostname: String,
    pub(crate) hosts_file: Option<PathBuf>,
    pub(crate) mounts: Vec<Mount>,
    /// Paths that it would have with mounts of its own, and where that is instead.
    pub(crate) moved: Vec<(PathBuf, PathBuf)>,
    pub(crate) termination_message_path: PathBuf,
    pub(crate) message_from_logs_on_error: bool,
    pub(crate) command: Vec<String>,
    pub(crate) env: Vec<(String, String)>,
    pub(crate) working_dir: PathBuf,
    pub(crate) credentials: Credentials,
    pub(crate) console: Console,
    pub(crate) limits: Limits,
    pub(crate) cgroup: CgroupPlan,
    pub(crate) rotation: LogRotation,
}

impl ShimLaunch {
    /// A command with the paths that its files really have, as the main process was given them.
    pub(crate) fn placed(&self, command: &[String]) -> Vec<String> {
        command.iter().map(|word| fallback::replace_paths(word, &self.moved)).collect()
    }
}

/// What is kept about a container from before it starts, to find it and all it has again.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct State {
    pub(crate) id: ContainerId,
    /// The boot the processes belong to; ids of another boot mean nothing.
    pub(crate) boot_id: String,
    pub(crate) shim_pid: u32,
    /// The mount namespace of the container, if it has its own.
    pub(crate) mount_namespace: Option<u64>,
    pub(crate) cgroup: CgroupPlan,
}

/// From the runtime to a shim.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Request {
    /// Start the main process: whoever asked for it still lives.
    Go,
    /// Send a signal to the main process.
    Signal(i32),
    /// Kill everything.
    Kill,
    /// Run a command in the container and answer with its output.
    Exec { command: Vec<String>, timeout_ms: u64 },
    /// Run a command in the container whose streams the caller gets. It ends with the connection.
    Run { command: Vec<String>, is_terminal: bool, streams: Streams },
    /// Hand out streams of the main process: what it writes from now on.
    Attach { streams: Streams },
    /// The input of the main process is over, if one client is all it gets.
    EndInput,
}

/// Some of the standard streams of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Streams {
    pub(crate) input: bool,
    pub(crate) out: bool,
    pub(crate) err: bool,
}

/// From a shim to the runtime.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Reply {
    /// Everything is prepared and on record: the main process starts on [`Request::Go`].
    Ready,
    /// The container runs; also the greeting on every later connection.
    Started(Started),
    /// It does not.
    NotExecuted(ExecFailure),
    /// It does not, because of a volume.
    NotMounted { volume: String, message: String },
    /// It does not, for a reason of ours.
    Broken(String),
    /// It ended and nothing of it is left.
    Exited(Box<Exited>),
    /// The command ended; its output came before.
    ExecEnded { code: i32 },
    /// The command was killed because it took too long.
    ExecTimedOut,
    /// The command could not be executed.
    ExecFailed(ExecFailure),
    /// The streams that come with it as descriptors, in the order of the fields.
    Streams { is_terminal: bool, streams: Streams },
}

/// What a probe found out.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Probed {
    pub(crate) isolation: Isolation,
    /// Why there is no isolation.
    pub(crate) reason: Option<String>,
}

/// The current time, as it is written into records.
pub(crate) fn now() -> Timestamp {
    Timestamp::now()
}

/// What a container without a name for it is limited by.
pub(crate) fn limited_by(plan: &CgroupPlan, limits: &Limits) -> LimitedBy {
    match plan {
        _ if limits.is_unlimited() => LimitedBy::Nothing,
        CgroupPlan::V2 { .. } => LimitedBy::Cgroup2,
        CgroupPlan::V1 { .. } => LimitedBy::Cgroup1,
        CgroupPlan::None => LimitedBy::Rlimit,
    }
}

/// Makes a frame.
pub(crate) fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("frames are far below 4 GiB");
    let mut bytes = Vec::with_capacity(payload.len() + 5);
    bytes.extend_from_slice(&length.to_le_bytes());
    bytes.push(kind);
    bytes.extend_from_slice(payload);
    bytes
}

/// Makes a frame of a message.
pub(crate) fn json_frame(message: &impl Serialize) -> Vec<u8> {
    frame(KIND_JSON, &serde_json::to_vec(message).expect("messages are plain data"))
}

/// Reads one message, skipping nothing.
pub(crate) fn read_json<T: DeserializeOwned>(from: &mut impl Read) -> io::Result<T> {
    let mut head = [0; 5];
    from.read_exact(&mut head)?;
    let mut payload = vec![0; payload_length(head)?];
    from.read_exact(&mut payload)?;
    parse(head[4], &payload)
}

/// The length of the payload that follows `head`.
pub(crate) fn payload_length(head: [u8; 5]) -> io::Result<usize> {
    let length = u32::from_le_bytes([head[0], head[1], head[2], head[3]]);
    match usize::try_from(length) {
        Ok(length) if length <= FRAME_MAX => Ok(length),
        _ => Err(io::Error::new(io::ErrorKind::InvalidData, "frame too long")),
    }
}

/// Reads the message in a payload.
pub(crate) fn parse<T: DeserializeOwned>(kind: u8, payload: &[u8]) -> io::Result<T> {
    if kind != KIND_JSON {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "not a message frame"));
    }
    serde_json::from_slice(payload).map_err(Into::into)
}

/// Takes the first whole frame out of `buffer`, if there is one.
pub(crate) fn take_frame(buffer: &mut Vec<u8>) -> io::Result<Option<(u8, Vec<u8>)>> {
    let Some(head) = buffer.first_chunk::<5>() else { return Ok(None) };
    let (kind, end) = (head[4], 5 + payload_length(*head)?);
    if buffer.len() < end {
        return Ok(None);
    }
    let payload = buffer[5..end].to_vec();
    buffer.drain(..end);
    Ok(Some((kind, payload)))
}
