//! What an orchestrator writes down before it acts.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Duty, Order, Rank, Restarts, Terms};

/// Why a gang has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reason {
    /// One restart more than `maxRestarts` would have been needed.
    ReachedMaxRestarts,
    /// Too many epochs in a row have ended before they got anywhere.
    NoProgress,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ReachedMaxRestarts => write!(f, "ReachedMaxRestarts"),
            Self::NoProgress => write!(f, "NoProgress"),
        }
    }
}

/// Where a gang is. Waiting at the barrier is no phase of its own: it is the part of stopping in
/// which nothing is left to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Phase {
    /// The workers of a generation come together for their first epoch.
    Forming,
    /// They were released.
    Running,
    /// They stop and gather for a new epoch.
    Stopping,
    /// All pods are made anew, and come together as in `Forming`.
    Recreating,
    /// There are no pods, because the job is suspended.
    Suspended,
    /// The failure of this worker was handed to the job's own failure policy, which will restart or
    /// end the job. The others go on.
    Surrendered(u32),
    /// Success is decided; the workers leave.
    Succeeding,
    /// The gang has failed.
    Failed(Reason),
}

impl Phase {
    /// Whether nothing can change any more.
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Succeeding | Self::Failed(_))
    }

    /// Whether the epoch has been released, and nothing has been decided since that ends it.
    pub const fn is_running(self) -> bool {
        matches!(self, Self::Running | Self::Surrendered(_))
    }

    /// Whether workers gather for an epoch that has not been released.
    pub const fn is_gathering(self) -> bool {
        matches!(self, Self::Forming | Self::Stopping | Self::Recreating)
    }

    /// Its name, for people.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Forming => "Forming",
            Self::Running => "Running",
            Self::Stopping => "Stopping",
            Self::Recreating => "Recreating",
            Self::Suspended => "Suspended",
            Self::Surrendered(_) => "Surrendered",
            Self::Succeeding => "Succeeding",
            Self::Failed(_) => "Failed",
        }
    }

    /// What agents have to do in it.
    pub const fn duty(self) -> Duty {
        match self {
            Self::Forming | Self::Stopping | Self::Recreating | Self::Suspended => Duty::Hold,
            Self::Running | Self::Surrendered(_) => Duty::Run,
            Self::Succeeding => Duty::Finish,
            Self::Failed(_) => Duty::Fail,
        }
    }
}

/// What must be in the store for a record to be written, beside that it is older.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// Anything that is older.
    Older,
    /// Nothing else than was found, or what the same leader has written since: a leader before it
    /// must not have decided anything in between, for that would be overwritten.
    Found(Option<(u64, u64)>),
}

impl Expected {
    /// Whether `record` may be written over what is there.
    pub fn allows(self, there: Option<&Record>, record: &Record) -> bool {
        let is_older = there.is_none_or(|there| there.version() < record.version());
        is_older
            && match self {
                Self::Older => true,
                Self::Found(found) => {
                    there.map(Record::version) == found
                        || there.is_some_and(|there| there.fence == record.fence)
                }
            }
    }
}

/// All that must survive a leader: small, and written a fixed number of times for each restart,
/// however many workers there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The leader that wrote it. A store takes no record of an earlier leader than it has, and none
    /// of the same leader that is not newer: compare [`Record::version`].
    pub fence: u64,
    /// Counts what one leader has written.
    pub revision: u64,
    /// How often all pods were made anew.
    pub generation: u32,
    /// How often the workers were started anew.
    pub epoch: u32,
    /// Where the gang is.
    pub phase: Phase,
    /// The leader to which the workers of this epoch have promised to wait. A leader that takes
    /// over asks for the promise again; after the release it stays.
    pub by: u64,
    /// Restarts so far.
    pub restarts: Restarts,
    /// Epochs in a row that ended before they got anywhere.
    pub stalled: u32,
    /// How many workers the epoch needs.
    pub slots: u32,
    /// Whether a worker that has succeeded takes part in later epochs. It stays as it was when the
    /// gang was first led: a worker that was let go would be missed, or taken for proof of success.
    pub is_rejoining: bool,
    /// How often the job had made pods of single Jobs anew when the epoch was released.
    pub remade: u32,
}

impl Record {
    /// The record of a gang nothing is known of.
    pub const fn new(fence: u64, terms: &Terms) -> Self {
        let phase = if terms.is_suspended { Phase::Suspended } else { Phase::Forming };
        Self {
            fence,
            revision: 0,
            generation: terms.generation,
            epoch: 0,
            phase,
            by: fence,
            restarts: terms.restarts,
            stalled: 0,
            slots: terms.slots,
            is_rejoining: terms.is_rejoining,
            remade: terms.remade,
        }
    }

    /// What a store compares: it must grow with every write.
    pub const fn version(&self) -> (u64, u64) {
        (self.fence, self.revision)
    }

    /// How far the gang is.
    pub const fn rank(&self) -> Rank {
        Rank { generation: self.generation, epoch: self.epoch, duty: self.phase.duty() }
    }

    /// What agents are told of it.
    pub const fn order(&self) -> Order {
        let Self { fence, by, restarts, is_rejoining, .. } = *self;
        Order { fence, rank: self.rank(), by, restarts, is_rejoining }
    }

    /// A new epoch, for which this leader asks everybody to wait.
    #[must_use]
    pub const fn next_epoch(self, phase: Phase) -> Self {
        Self { epoch: self.epoch.saturating_add(1), phase, by: self.fence, ..self }
    }

    /// One restart more.
    #[must_use]
    pub const fn charged(self, is_counted: bool) -> Self {
        let Restarts { total, counted } = self.restarts;
        let counted = if is_counted { counted.saturating_add(1) } else { counted };
        Self { restarts: Restarts { total: total.saturating_add(1), counted }, ..self }
    }
}
