//! Why a worker counts as failed.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What ended a worker, or took it away.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cause {
    /// It exited with this code, which is not 0.
    Exited(i32),
    /// This signal ended it.
    Signalled {
        /// Number of the signal.
        signal: i32,
        /// Whether the kernel did it for want of memory.
        is_out_of_memory: bool,
    },
    /// It could not be started: what the system said.
    NotStarted(String),
    /// It showed no sign of life for its timeout.
    Hung,
    /// Its agent is a new one, which does not know of it: the container has been restarted.
    AgentRestarted,
    /// Its pod is gone, going, or replaced.
    PodLost,
}

impl Cause {
    /// The code a container would have ended with, for rules on exit codes; `None` where no process
    /// has ended.
    pub const fn code(&self) -> Option<i32> {
        match self {
            Self::Exited(code) => Some(*code),
            Self::Signalled { signal, .. } => Some(128 + *signal),
            Self::NotStarted(_) => Some(127),
            // Killed by its agent.
            Self::Hung => Some(137),
            Self::AgentRestarted | Self::PodLost => None,
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited(code) => write!(f, "exited with code {code}"),
            Self::Signalled { signal, is_out_of_memory: false } => {
                write!(f, "killed by signal {signal}")
            }
            Self::Signalled { signal, is_out_of_memory: true } => {
                write!(f, "killed by signal {signal}, out of memory")
            }
            Self::NotStarted(why) => write!(f, "could not be started: {why}"),
            Self::Hung => write!(f, "showed no sign of life"),
            Self::AgentRestarted => write!(f, "its container was restarted"),
            Self::PodLost => write!(f, "its pod was lost"),
        }
    }
}
