//! How long anything is waited for. What does not come to its end says so, and why.

use std::fmt;
use std::io::{BufRead, BufReader, Read};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::timeout;

/// How long anything may take. A leader that waits for agents gives up long before that.
pub(super) const PATIENCE: Duration = Duration::from_secs(90);
/// The same for the start of thousands.
pub(super) const START: Duration = Duration::from_secs(240);

/// Why a measurement did not come to its end.
#[derive(Debug)]
pub(super) struct Stalled(String);

impl Stalled {
    pub(super) fn new(why: impl Into<String>) -> Self {
        Self(why.into())
    }

    /// What is known beside that.
    pub(super) fn beside(self, what: &str) -> Self {
        Self(format!("{} ({what})", self.0))
    }
}

impl fmt::Display for Stalled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<std::io::Error> for Stalled {
    fn from(error: std::io::Error) -> Self {
        Self(error.to_string())
    }
}

/// Waits so long, and not longer.
pub(super) async fn within<T>(
    longest: Duration,
    what: &str,
    wait: impl Future<Output = T>,
) -> Result<T, Stalled> {
    let seconds = longest.as_secs();
    let late = |_| Stalled(format!("waited {seconds} s for {what}, in vain"));
    timeout(longest, wait).await.map_err(late)
}

/// What somebody says, line by line. Reading cannot be given up, so a thread does it.
pub(super) struct Lines(mpsc::UnboundedReceiver<String>);

impl Lines {
    pub(super) fn of(source: impl Read + Send + 'static) -> Self {
        let (tell, lines) = mpsc::unbounded_channel();
        std::thread::spawn(move || {
            for line in BufReader::new(source).lines().map_while(Result::ok) {
                if tell.send(line).is_err() {
                    return;
                }
            }
        });
        Self(lines)
    }

    /// The next line; `None` if there will be none.
    pub(super) async fn next(&mut self) -> Option<String> {
        self.0.recv().await
    }

    /// What was said up to now is of no interest.
    pub(super) fn forget(&mut self) {
        while self.0.try_recv().is_ok() {}
    }
}
