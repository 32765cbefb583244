//! The parts of a control loop that need no IO: which key is due, what a pass came to, and how long
//! to wait after a failure.

mod backoff;
mod queue;
mod turns;

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

pub use backoff::{Backoff, delay};
pub use queue::WorkQueue;
pub use turns::{Failure, Pass, Stale, Turns};

/// The moment that is `delay` after `now`, or the last there is.
pub fn after(now: Timestamp, delay: Duration) -> Timestamp {
    let delay = SignedDuration::try_from(delay).unwrap_or(SignedDuration::MAX);
    now.saturating_add(delay).unwrap_or(Timestamp::MAX)
}
