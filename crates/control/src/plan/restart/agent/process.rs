//! The worker of an agent, as far as it has processes.

use super::super::{Cause, Moment};

/// How a worker ended by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// With code 0.
    Well,
    /// Any other way.
    Badly(Cause),
}

/// What there is of a worker.
#[derive(Clone, Debug)]
pub(super) enum Process {
    /// Nothing.
    None,
    /// It is being started for this epoch.
    Starting(u32),
    /// It runs, started for this epoch.
    Alive(u32),
    /// It is being stopped, or was left behind by a main process that has ended.
    Stopping(Stop),
}

/// A stop under way.
#[derive(Clone, Debug)]
pub(super) struct Stop {
    /// When to kill, for the first time or again; never, if somebody else keeps the time.
    at: Option<Moment>,
    kills: u32,
}

impl Stop {
    /// A worker was asked to end, and is killed at `kill_at`.
    pub(super) const fn asked(kill_at: Option<Moment>) -> Self {
        Self { at: kill_at, kills: 0 }
    }

    /// A worker was killed, and should be gone by `gone_at`.
    pub(super) const fn killed(gone_at: Moment) -> Self {
        Self { at: Some(gone_at), kills: 1 }
    }

    pub(super) const fn deadline(&self) -> Option<Moment> {
        self.at
    }

    /// It is killed now, and should be gone by `gone_at`.
    pub(super) const fn kill(&mut self, gone_at: Moment) {
        self.at = Some(gone_at);
        self.kills += 1;
    }

    pub(super) const fn is_killed(&self) -> bool {
        self.kills > 0
    }

    /// Whether it has outlived a kill.
    pub(super) const fn is_stuck(&self) -> bool {
        self.kills > 1
    }
}
