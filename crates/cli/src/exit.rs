//! How the process ends.

use std::process::ExitCode;

/// Why a command ended. The numbers are documented and never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Exit {
    /// All went well; for `run`, everything it started succeeded.
    Success = 0,
    /// The command failed; for `run`, something it started failed.
    Failed = 1,
    /// Wrong usage or an invalid manifest.
    Usage = 2,
    /// The time allowed ran out.
    TimedOut = 3,
    /// The cluster itself failed.
    Cluster = 4,
    /// Interrupted from the keyboard or by a signal.
    Interrupted = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// An error that knows how the process must end; anything else ends with [`Exit::Failed`].
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Ending {
    /// How to end.
    pub(crate) exit: Exit,
    /// What to say first.
    pub(crate) message: String,
}

impl Ending {
    /// An error that ends the process with `exit`.
    pub(crate) fn error(exit: Exit, message: impl Into<String>) -> anyhow::Error {
        Self { exit, message: message.into() }.into()
    }

    /// Ends the process with `exit` when everything has been said already.
    pub(crate) fn silent(exit: Exit) -> anyhow::Error {
        Self::error(exit, "")
    }
}

/// `error`, which ends the process with `exit` unless it knows better.
pub(crate) fn or(error: anyhow::Error, exit: Exit) -> anyhow::Error {
    if error.is::<Ending>() { error } else { Ending::error(exit, format!("{error:#}")) }
}

/// How a command that failed with `error` ends the process.
pub(crate) fn of(error: &anyhow::Error) -> Exit {
    error.downcast_ref::<Ending>().map_or(Exit::Failed, |ending| ending.exit)
}
