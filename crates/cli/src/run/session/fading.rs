//! Whether what is being ended still comes nearer to its end.

use tokio::time::Instant;

use super::{PATIENCE, QUICK};
use crate::run::model::Model;

/// How few pods were left, and since when.
#[derive(Debug)]
pub(super) struct Fading {
    least: usize,
    since: Instant,
}

impl Fading {
    /// Nothing was counted yet.
    pub(super) fn new() -> Self {
        Self { least: usize::MAX, since: Instant::now() }
    }

    /// Whether nothing more is to be waited for: for longer than the pods that are left have to
    /// end, none did; or there are none, and all that is missing is that somebody says so. That the
    /// number falls is all that counts as progress, so there is an end to it.
    pub(super) fn is_over(&mut self, model: &Model, is_asking: bool) -> bool {
        let left = model.running().count();
        if left < self.least {
            *self = Self { least: left, since: Instant::now() };
        }
        let grace = model.running().map(|pod| pod.grace).max().unwrap_or_default();
        let grace = std::time::Duration::from_secs(u64::try_from(grace).unwrap_or_default());
        let allowed = if left > 0 || is_asking { grace.saturating_add(PATIENCE) } else { QUICK };
        self.since.elapsed() >= allowed
    }
}
