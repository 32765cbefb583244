//! A sign of life: a file that the worker touches, or a line that it writes.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use regex::bytes::Regex;

use super::log::Ear;

/// How often it is looked within the time that a worker may be silent. One that goes silent is
/// noticed by so much later than that at most.
const LOOKS: u32 = 10;

/// How a worker shows that it lives.
#[derive(Clone, Debug)]
pub struct Heartbeat {
    sign: Sign,
    within: Duration,
    /// Since when nothing was seen of the worker that runs.
    since: Option<Instant>,
    seen: Mark,
}

#[derive(Clone, Debug)]
enum Sign {
    File(PathBuf),
    Line(Regex, Arc<AtomicU64>),
}

/// What is another one after each sign of life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mark {
    Touched(Option<SystemTime>),
    Lines(u64),
}

impl Heartbeat {
    /// A worker that touches `file` at least every `within`.
    pub const fn touching(file: PathBuf, within: Duration) -> Self {
        Self { sign: Sign::File(file), within, since: None, seen: Mark::Touched(None) }
    }

    /// A worker that writes a line with `pattern` in it at least every `within`, to its standard
    /// output or standard error.
    pub fn writing(pattern: Regex, within: Duration) -> Self {
        let sign = Sign::Line(pattern, Arc::default());
        Self { sign, within, since: None, seen: Mark::Lines(0) }
    }

    /// What has to listen to the worker, if it is not seen.
    pub(super) fn ear(&self) -> Option<Ear> {
        match &self.sign {
            Sign::File(_) => None,
            Sign::Line(pattern, heard) => Some(Ear::new(pattern.clone(), Arc::clone(heard))),
        }
    }

    /// A worker was started.
    pub(super) fn begin(&mut self) {
        self.since = Some(Instant::now());
        self.seen = self.mark();
    }

    /// It has ended.
    pub(super) const fn stop(&mut self) {
        self.since = None;
    }

    /// How long to wait before looking.
    pub(super) fn look_after(&self) -> Duration {
        self.since.map_or(Duration::MAX, |since| {
            self.within.saturating_sub(since.elapsed()).min(self.within / LOOKS)
        })
    }

    /// Looks. Whether the worker has been silent for too long.
    pub(super) fn is_missed(&mut self) -> bool {
        let Some(since) = self.since else { return false };
        let mark = self.mark();
        if mark != self.seen {
            self.seen = mark;
            self.since = Some(Instant::now());
            return false;
        }
        let is_missed = since.elapsed() >= self.within;
        if is_missed {
            self.since = None;
        }
        is_missed
    }

    fn mark(&self) -> Mark {
        match &self.sign {
            Sign::File(file) => {
                Mark::Touched(file.metadata().and_then(|metadata| metadata.modified()).ok())
            }
            Sign::Line(_, heard) => Mark::Lines(heard.load(Ordering::Relaxed)),
        }
    }
}
