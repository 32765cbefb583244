//! How the process ends.

use std::process::ExitCode;

use anyhow::Result;

use crate::{output, refusal::Refused};

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
    /// The cluster itself failed: it did not start, cannot be reached, or stopped in the middle.
    Cluster = 4,
    /// Interrupted from the keyboard or by a signal.
    Interrupted = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// An error that knows how the process must end.
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

/// An error of whoever typed the command or wrote the manifest.
pub(crate) fn usage(message: impl Into<String>) -> anyhow::Error {
    Ending::error(Exit::Usage, message)
}

/// `error`, which ends the process with `exit` unless it knows better.
pub(crate) fn or(error: anyhow::Error, exit: Exit) -> anyhow::Error {
    if error.is::<Ending>() { error } else { Ending::error(exit, chain(&error)) }
}

/// How a command that failed with `error` ends the process.
pub(crate) fn of(error: &anyhow::Error) -> Exit {
    if let Some(ending) = error.downcast_ref::<Ending>() {
        return ending.exit;
    }
    error.downcast_ref::<Refused>().map_or(Exit::Failed, Refused::exit)
}

/// The whole chain of an error in one line, unless it is worded for people already.
pub(crate) fn explain(error: &anyhow::Error) -> String {
    let chain = chain(error);
    let is_worded = ["error: ", "Error from server", "The "].iter().any(|p| chain.starts_with(p));
    if is_worded || chain.is_empty() { chain } else { format!("error: {chain}") }
}

/// An error and its causes; what already stands in the words of another is not repeated.
fn chain(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if text.is_empty() {
            text = cause;
        } else if !text.contains(&cause) {
            text.push_str(": ");
            text.push_str(&cause);
        }
    }
    text
}

/// What failed while the rest went on. The first failure decides how the process ends.
#[derive(Debug, Default)]
pub(crate) struct Failures {
    first: Option<Exit>,
}

impl Failures {
    /// Says what failed, and remembers that something did.
    pub(crate) fn note(&mut self, error: &anyhow::Error) {
        let message = explain(error);
        if !message.is_empty() {
            output::note(message);
        }
        self.first.get_or_insert_with(|| of(error));
    }

    /// Whether nothing failed so far.
    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// The end of a command of which all has been said.
    pub(crate) fn end(&self) -> Result<()> {
        self.first.map_or(Ok(()), |exit| Err(Ending::silent(exit)))
    }
}

#[cfg(test)]
mod tests {
    use anyhow::Context;

    use super::*;

    #[test]
    fn the_first_failure_decides_and_context_hides_nothing() {
        let mut failures = Failures::default();
        assert!(failures.end().is_ok() && failures.is_empty());
        let usage = Err::<(), _>(usage("")).context("").expect_err("an error");
        assert_eq!(of(&usage), Exit::Usage);
        failures.note(&Ending::silent(Exit::Usage));
        failures.note(&Ending::silent(Exit::Cluster));
        assert_eq!(of(&failures.end().expect_err("failed")), Exit::Usage);
        assert_eq!(of(&anyhow::anyhow!("anything")), Exit::Failed);
    }

    #[test]
    fn a_cause_is_told_once() {
        let denied = || std::io::Error::other("denied");
        let error = anyhow::Error::new(denied()).context("cannot read a: denied").context("no a");
        assert_eq!(explain(&error), "error: no a: cannot read a: denied");
        let error = anyhow::Error::new(denied()).context("no a");
        assert_eq!(explain(&or(error, Exit::Usage)), "error: no a: denied");
    }
}
