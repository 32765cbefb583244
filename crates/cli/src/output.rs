//! The one place that writes to the terminal: data on stdout, everything else on stderr.

use std::io::{self, Write};

/// The reader of our output has gone, as in `lockstep get | head`.
#[derive(Debug, thiserror::Error)]
#[error("nobody reads the output any more")]
struct ReaderGone;

/// Writes data, as it is, and sends it off at once.
pub(crate) fn data(bytes: impl AsRef<[u8]>) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(bytes.as_ref()).and_then(|()| stdout.flush()).map_err(|error| {
        match error.kind() {
            io::ErrorKind::BrokenPipe => io::Error::new(error.kind(), ReaderGone),
            kind => io::Error::new(kind, format!("cannot write to stdout: {error}")),
        }
    })
}

/// Writes one line of data.
pub(crate) fn line(text: impl AsRef<str>) -> io::Result<()> {
    data(format!("{}\n", text.as_ref()))
}

/// Writes one line beside the data. Nobody reading it is no reason to fail.
pub(crate) fn note(text: impl AsRef<str>) {
    let mut stderr = io::stderr().lock();
    drop(writeln!(stderr, "{}", text.as_ref()));
}

/// Writes beside the data, as it is, in one go.
pub(crate) fn aside(bytes: &[u8]) {
    let mut stderr = io::stderr().lock();
    drop(stderr.write_all(bytes));
}

/// Whether an error only says that the reader of our output has gone. A connection that breaks is
/// another thing, though the system calls it the same.
pub(crate) fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let causes = error.chain().filter_map(|cause| cause.downcast_ref::<io::Error>());
    causes.into_iter().any(|cause| cause.get_ref().is_some_and(|inner| inner.is::<ReaderGone>()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_closed_output_counts_as_one() {
        let network: anyhow::Error = io::Error::from(io::ErrorKind::BrokenPipe).into();
        assert!(!is_closed_pipe(&network));
        let output: anyhow::Error = io::Error::new(io::ErrorKind::BrokenPipe, ReaderGone).into();
        assert!(is_closed_pipe(&output.context("while listing")));
    }
}
