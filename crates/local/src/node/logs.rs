//! Reads the logs of containers: from the end or from a time, and on as they are written.

mod choose;
mod line;
mod reader;
mod watch;

use std::io;
use std::path::PathBuf;

use bytes::Bytes;
use futures::Stream;
use jiff::Timestamp;

pub use self::choose::{LogError, choose};

use self::reader::{Next, Reader};
use self::watch::Changes;
use super::dirs::NodeDirs;
use super::runtime::ContainerId;
use super::shim::wire::files;

/// Which lines of a log are wanted, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogOptions {
    /// Go on until the container ends.
    pub follow: bool,
    /// Only so many lines from the end.
    pub tail_lines: Option<u64>,
    /// Only lines written at this time or later.
    pub since: Option<Timestamp>,
    /// The time before every line.
    pub timestamps: bool,
    /// Only so many bytes, even in the middle of a line.
    pub limit_bytes: Option<u64>,
    /// Which of the two streams.
    pub stream: LogStream,
}

/// A stream of output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogStream {
    /// Both, as they came.
    #[default]
    All,
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// Reads the log of one container instance of the pod `namespace`/`name`.
///
/// The stream ends at the end of the log or, when following, after the container ended and
/// everything it wrote was read. Dropping it is enough to stop.
pub fn read(
    dirs: &NodeDirs,
    namespace: &str,
    name: &str,
    id: &ContainerId,
    options: LogOptions,
) -> impl Stream<Item = io::Result<Bytes>> + Send + use<> {
    let dir = dirs.pod_logs(namespace, name, &id.pod_uid).join(&id.container);
    let follow = options.follow.then(|| Follow { log_dir: dir.clone(), dir: dirs.container(id) });
    let reader = Reader::new(dir, id.attempt, options);
    futures::stream::try_unfold(Reading { reader: Some(reader), follow, changes: None }, next)
}

/// A log that is being read.
struct Reading {
    reader: Option<Reader>,
    follow: Option<Follow>,
    changes: Option<(Changes, Changes)>,
}

/// What to look at while following.
struct Follow {
    log_dir: PathBuf,
    dir: PathBuf,
}

impl Follow {
    /// Whether the container ended. Its socket is there from before its log until after its last
    /// line.
    fn has_ended(&self) -> bool {
        !self.dir.join(files::CONTROL).exists()
    }
}

async fn next(mut reading: Reading) -> io::Result<Option<(Bytes, Reading)>> {
    let Some(mut reader) = reading.reader.take() else { return Ok(None) };
    if reading.follow.is_some() && reading.changes.is_none() {
        reading.changes = watch_both(&reading)?;
    }
    loop {
        // Asked before reading: what is written in between is not missed.
        let has_ended = reading.follow.as_ref().is_none_or(Follow::has_ended);
        if let Some((log, state)) = &mut reading.changes {
            log.mark_seen();
            state.mark_seen();
        }
        let read = tokio::task::spawn_blocking(move || {
            let next = reader.next();
            (reader, next)
        });
        let (back, next) = read.await.map_err(io::Error::other)?;
        reader = back;
        match next? {
            Next::Data(bytes) => {
                reading.reader = Some(reader);
                return Ok(Some((bytes, reading)));
            }
            Next::Complete => return Ok(None),
            Next::CaughtUp if has_ended => return Ok(None),
            Next::CaughtUp => match &mut reading.changes {
                Some((log, state)) => {
                    let is_there = tokio::select! {
                        is_there = log.changed() => is_there,
                        is_there = state.changed() => is_there,
                    };
                    if !is_there {
                        return Ok(None);
                    }
                }
                None => return Ok(None),
            },
        }
    }
}

fn watch_both(reading: &Reading) -> io::Result<Option<(Changes, Changes)>> {
    let Some(follow) = &reading.follow else { return Ok(None) };
    match (watch::changes_in(&follow.log_dir), watch::changes_in(&follow.dir)) {
        (Ok(log), Ok(state)) => Ok(Some((log, state))),
        // Without the folders there is nothing to wait for; what there is, is read.
        (Err(error), _) | (_, Err(error)) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        (Err(error), _) | (_, Err(error)) => Err(error),
    }
}

#[cfg(test)]
mod tests;
