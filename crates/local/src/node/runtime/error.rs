//! Why a container did not start or a command could not be run in it.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Why a container did not start. None of these goes away by trying the same again.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The container has no command; images are not pulled, so there is nothing to fall back to.
    #[error("no command specified")]
    NoCommand,
    /// This instance already runs.
    #[error("container {id} is already running")]
    AlreadyRunning {
        /// Which one.
        id: String,
    },
    /// The node is shutting down.
    #[error("the node is shutting down")]
    Closed,
    /// The program could not be executed, in the words of a container runtime.
    #[error("failed to create process: {0}")]
    Exec(ExecFailure),
    /// A volume cannot be shown at its path.
    #[error("MountVolume.SetUp failed for volume \"{volume}\" : {message}")]
    Mount {
        /// The name of the volume.
        volume: String,
        /// What is in the way.
        message: String,
    },
    /// The files of the container cannot be written.
    #[error("cannot prepare {path}")]
    Prepare {
        /// What was to be written.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// The process that looks after the container could not be started or died early.
    #[error("cannot start the container's shim: {message}")]
    Shim {
        /// What happened.
        message: String,
    },
}

impl StartError {
    /// The reason a kubelet reports for the terminated container.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::NoCommand => "CreateContainerConfigError",
            Self::Mount { .. } | Self::Prepare { .. } | Self::Closed => "CreateContainerError",
            Self::AlreadyRunning { .. } | Self::Exec(_) | Self::Shim { .. } => "StartError",
        }
    }

    /// The exit code that goes with it: containerd reports 128 for whatever could not be started.
    pub fn exit_code(&self) -> i32 {
        128
    }

    /// Whether the right event is `FailedMount` rather than `Failed`.
    pub fn is_mount_failure(&self) -> bool {
        matches!(self, Self::Mount { .. })
    }
}

/// Why a program could not be executed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum ExecFailure {
    /// A bare name that no folder of `PATH` has.
    #[error("exec: {program:?}: executable file not found in $PATH")]
    NotInPath {
        /// The name.
        program: String,
    },
    /// A path with nothing there.
    #[error("exec: {program:?}: stat {program}: no such file or directory")]
    NotFound {
        /// The path.
        program: String,
    },
    /// A path that may not be executed.
    #[error("exec: {program:?}: permission denied")]
    PermissionDenied {
        /// The path.
        program: String,
    },
    /// A folder.
    #[error("exec: {program:?}: is a directory")]
    IsDirectory {
        /// The path.
        program: String,
    },
    /// The working folder cannot be entered.
    #[error("chdir to cwd ({dir:?}) failed: {cause}")]
    WorkingDir {
        /// The folder.
        dir: PathBuf,
        /// Why not, in the words of the system.
        cause: String,
    },
    /// The system refused: a bad format, a missing interpreter, arguments too long, ...
    #[error("exec {program}: {cause}")]
    Refused {
        /// The program.
        program: String,
        /// Why, in the words of the system.
        cause: String,
    },
}

/// Why a command inside a container has no outcome.
#[derive(Debug, thiserror::Error)]
pub enum ExecError {
    /// No such container runs.
    #[error("container {id} is not running")]
    NotRunning {
        /// Which one.
        id: String,
    },
    /// The command did not end in time and was killed.
    #[error("command {command:?} timed out after {timeout:?}")]
    TimedOut {
        /// The command line.
        command: String,
        /// How long it had.
        timeout: Duration,
    },
    /// The command could not be executed.
    #[error("{0}")]
    Exec(ExecFailure),
    /// The container ended, or its shim did, before the command was through.
    #[error("container {id} ended while the command ran")]
    Gone {
        /// Which one.
        id: String,
        /// How it was noticed.
        #[source]
        source: io::Error,
    },
}
