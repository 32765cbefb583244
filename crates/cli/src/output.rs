//! The one place that writes to the terminal: data on stdout, everything else on stderr.

use std::io::{self, Write};

/// Writes data, as it is, and sends it off at once.
pub(crate) fn data(bytes: impl AsRef<[u8]>) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(bytes.as_ref())?;
    stdout.flush()
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

/// Whether an error only says that the reader of our output has gone, as in `lockstep get | head`.
pub(crate) fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let causes = error.chain().filter_map(|cause| cause.downcast_ref::<io::Error>());
    causes.into_iter().any(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
}
