//! How long each part of a restart took.

use std::time::Duration;

use super::super::{Cause, Moment};

/// One restart, from the failure to the last worker running.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waterfall {
    /// The epoch that it led to.
    pub epoch: u32,
    /// The worker whose failure was heard of first.
    pub slot: u32,
    /// What had happened to it.
    pub cause: Cause,
    /// How long it took to be heard of: the other end says so, so that no clock is shared.
    pub detected: Duration,
    /// When the failure was heard of.
    pub heard: Moment,
    /// When the new epoch was written down and told.
    pub decided: Option<Moment>,
    /// When nothing was left to stop.
    pub stopped: Option<Moment>,
    /// When all workers were waiting for the release.
    pub gathered: Option<Moment>,
    /// When the release was written down and told.
    pub released: Option<Moment>,
    /// When all workers were running.
    pub running: Option<Moment>,
}

impl Waterfall {
    pub(super) const fn new(epoch: u32, slot: u32, cause: Cause, heard: Moment) -> Self {
        Self {
            epoch,
            slot,
            cause,
            detected: Duration::ZERO,
            heard,
            decided: None,
            stopped: None,
            gathered: None,
            released: None,
            running: None,
        }
    }

    /// The parts by name, each with the time from the end of the one before.
    pub fn parts(&self) -> Vec<(&'static str, Duration)> {
        let ends = [
            ("decided", self.decided),
            ("stopped", self.stopped),
            ("gathered", self.gathered),
            ("released", self.released),
            ("running", self.running),
        ];
        let mut before = self.heard;
        let mut parts = Vec::new();
        for (name, end) in ends {
            if let Some(end) = end {
                parts.push((name, end.since(before)));
                before = before.max(end);
            }
        }
        parts
    }
}
