//! Time as the machines of a restart see it.

use std::ops::Add;
use std::time::Duration;

/// A moment on the clock of one process, which never steps. Moments of two processes mean nothing
/// to each other, so none is ever sent or stored: what crosses a border is a duration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(Duration);

impl Moment {
    /// The moment this long after the process's own beginning.
    pub const fn after(start: Duration) -> Self {
        Self(start)
    }

    /// How long it is since `earlier`; nothing if that is still to come.
    pub const fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<Duration> for Moment {
    type Output = Self;

    fn add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(span))
    }
}
