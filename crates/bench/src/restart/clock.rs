//! One clock for all processes of the machine.

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds on it.
pub(super) fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    u64::try_from(time.tv_sec).unwrap() * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap()
}

/// Milliseconds between two times of it.
pub(super) fn milliseconds(from: u64, to: u64) -> f64 {
    to.saturating_sub(from) as f64 / 1e6
}
