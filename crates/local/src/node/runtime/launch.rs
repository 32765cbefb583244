//! What the runtime is asked to start, and what it answers.

use std::fmt;
use std::path::PathBuf;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::node::network::Names;

/// One instance of one container of one pod.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ContainerId {
    /// The uid of the pod.
    pub pod_uid: String,
    /// The name of the container in its pod.
    pub container: String,
    /// How often the container was started before: its restart count.
    pub attempt: u32,
}

impl ContainerId {
    /// How the status of a pod names it.
    pub fn url(&self) -> String {
        format!("proc://{self}")
    }

    /// The one that the status of a pod names.
    pub fn from_url(url: &str) -> Option<Self> {
        let mut parts = url.strip_prefix("proc://")?.split('/');
        let (pod_uid, container, attempt) = (parts.next()?, parts.next()?, parts.next()?);
        let attempt = attempt.parse().ok()?;
        let id = Self { pod_uid: pod_uid.to_owned(), container: container.to_owned(), attempt };
        parts.next().is_none().then_some(id)
    }
}

impl fmt::Display for ContainerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.pod_uid, self.container, self.attempt)
    }
}

/// A file or folder of this machine that a container sees at a path of its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mount {
    /// The name of the volume, for messages and for `LOCKSTEP_VOLUME_<NAME>`.
    pub volume: String,
    /// What is mounted.
    pub source: PathBuf,
    /// Where the container sees it.
    pub target: PathBuf,
    /// Whether the container may not write to it.
    pub read_only: bool,
}

/// What a container may use; `None` is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// CPU limit, in thousandths of a core.
    pub cpu_milli: Option<u64>,
    /// CPU request, in thousandths of a core: the share under contention.
    pub cpu_request_milli: Option<u64>,
    /// Memory limit.
    pub memory_bytes: Option<u64>,
}

impl Limits {
    /// Whether nothing at all is limited.
    pub fn is_unlimited(&self) -> bool {
        self.cpu_milli.is_none() && self.memory_bytes.is_none()
    }
}

/// Who a container runs as; by default whoever runs this process, with all its rights.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Credentials {
    /// Its user. Only root can become another.
    pub user: Option<u32>,
    /// Its group; that of its user if not given. Only root can change it.
    pub group: Option<u32>,
    /// Groups beside that. Only root can change them.
    pub groups: Vec<u32>,
    /// Whether nothing it starts can get more rights than it has.
    pub no_new_privileges: bool,
    /// Capabilities that it and what it starts cannot have, by number.
    pub dropped_capabilities: Vec<u32>,
}

/// What somebody who attaches to a container can talk to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Console {
    /// Its standard input.
    pub input: Input,
    /// Whether its streams are a terminal of its own.
    pub is_terminal: bool,
}

/// The standard input of a container.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Input {
    /// Nothing to read.
    #[default]
    None,
    /// What attached clients write, however many come and go.
    Open,
    /// What the first attached client writes: it ends when that client goes.
    Once,
}

/// Everything needed to start one container.
#[derive(Clone, Debug)]
pub struct Launch {
    /// Which container this is.
    pub id: ContainerId,
    /// The namespace of the pod.
    pub pod_namespace: String,
    /// The name of the pod.
    pub pod_name: String,
    /// The program and its arguments, expanded. Must not be empty.
    pub command: Vec<String>,
    /// The environment, expanded.
    pub env: Vec<(String, String)>,
    /// Whether the container also gets the environment of this process, below `env`.
    pub inherit_caller_env: bool,
    /// Where it starts; `/` if not given.
    pub working_dir: Option<PathBuf>,
    /// Volumes.
    pub mounts: Vec<Mount>,
    /// The host name it sees.
    pub hostname: String,
    /// What it sees as `/etc/hosts`.
    pub hosts_file: Option<PathBuf>,
    /// The names of its gang, for machines where it cannot have its own hosts file.
    pub names: Names,
    /// What attached clients can talk to.
    pub console: Console,
    /// Resource limits.
    pub limits: Limits,
    /// Who it runs as.
    pub credentials: Credentials,
    /// Where it may leave its last words.
    pub termination_message_path: String,
    /// `terminationMessagePolicy: FallbackToLogsOnError`.
    pub message_from_logs_on_error: bool,
}

impl Launch {
    /// A launch of `command` with everything else at its default.
    pub fn new(id: ContainerId, command: Vec<String>) -> Self {
        Self {
            pod_namespace: "default".to_owned(),
            pod_name: id.pod_uid.clone(),
            hostname: id.pod_uid.clone(),
            id,
            command,
            env: Vec::new(),
            inherit_caller_env: false,
            working_dir: None,
            mounts: Vec::new(),
            hosts_file: None,
            names: Names::default(),
            console: Console::default(),
            limits: Limits::default(),
            credentials: Credentials::default(),
            termination_message_path: "/dev/termination-log".to_owned(),
            message_from_logs_on_error: false,
        }
    }
}

/// What enforces the limits of a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LimitedBy {
    /// A cgroup of the unified hierarchy.
    Cgroup2,
    /// Cgroups of the memory and cpu controllers.
    Cgroup1,
    /// Per-process limits: memory is limited per process, CPU only by priority.
    Rlimit,
    /// No limits were asked for, or none could be set.
    Nothing,
}

impl fmt::Display for LimitedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cgroup2 => "cgroup v2",
            Self::Cgroup1 => "cgroup v1",
            Self::Rlimit => "rlimit",
            Self::Nothing => "nothing",
        })
    }
}

/// A container that runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Started {
    /// The process id of its main process.
    pub pid: u32,
    /// When it started.
    pub at: Timestamp,
    /// What enforces its limits.
    pub limited_by: LimitedBy,
    /// What could not be honoured, in words for a user.
    pub warnings: Vec<String>,
}

/// What happens to containers by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuntimeEvent {
    /// A container ended, and nothing of it is left.
    Exited(Exited),
}

/// How a container ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exited {
    /// Which container.
    pub id: ContainerId,
    /// Its exit code; 128 + n for a death by signal n.
    pub code: i32,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Whether it ended because it used more memory than its limit.
    pub oom_killed: bool,
    /// When it started.
    pub started_at: Timestamp,
    /// When its main process ended.
    pub finished_at: Timestamp,
    /// Its termination message, at most 4096 bytes.
    pub message: String,
}

/// A container found after a restart of this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovered {
    /// Which container.
    pub id: ContainerId,
    /// What became of it.
    pub state: RecoveredState,
}

/// What became of a container while this process was away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecoveredState {
    /// It runs; its end will be reported as usual.
    Running(Started),
    /// It ended.
    Exited(Exited),
    /// It is gone and nobody knows how it ended; whatever was left of it has been killed.
    Lost,
}

/// What a command inside a container did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecOutcome {
    /// Its exit code; 128 + n for a death by signal n.
    pub code: i32,
    /// Its output and errors together, cut at 64 KiB.
    pub output: Vec<u8>,
}
