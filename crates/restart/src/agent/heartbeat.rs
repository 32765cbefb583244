//! A sign of life: a file that the worker touches.

use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

/// How a worker shows that it lives.
#[derive(Clone, Debug)]
pub struct Heartbeat {
    file: PathBuf,
    within: Duration,
    /// Since when nothing was seen of the worker that runs.
    since: Option<Instant>,
    seen: Option<SystemTime>,
}

impl Heartbeat {
    /// A worker that touches `file` at least every `within`.
    pub const fn new(file: PathBuf, within: Duration) -> Self {
        Self { file, within, since: None, seen: None }
    }

    /// A worker was started.
    pub(super) fn begin(&mut self) {
        self.since = Some(Instant::now());
        self.seen = self.touched();
    }

    /// It has ended.
    pub(super) const fn stop(&mut self) {
        self.since = None;
    }

    /// How long to wait before looking.
    pub(super) fn look_after(&self) -> Duration {
        self.since.map_or(Duration::MAX, |since| self.within.saturating_sub(since.elapsed()))
    }

    /// Looks. Whether the worker has been silent for too long.
    pub(super) fn is_missed(&mut self) -> bool {
        let Some(since) = self.since else { return false };
        let touched = self.touched();
        if touched != self.seen {
            self.seen = touched;
            self.since = Some(Instant::now());
            return false;
        }
        let is_missed = since.elapsed() >= self.within;
        if is_missed {
            self.since = None;
        }
        is_missed
    }

    fn touched(&self) -> Option<SystemTime> {
        self.file.metadata().and_then(|metadata| metadata.modified()).ok()
    }
}
