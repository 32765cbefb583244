//! What an orchestrator tells its agents: the state they should be in.

use serde::{Deserialize, Serialize};

/// What a worker has to do in an epoch. Later ones win over earlier ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Duty {
    /// Be stopped, and wait.
    Hold,
    /// Run.
    Run,
    /// The gang is done: an exit is no longer held back, whatever it is.
    Finish,
    /// Stop, and wait for the end of the pod: the gang has failed.
    Fail,
    /// Stop, and wait for the end of the pod: it is no longer part of the gang. Told to one alone.
    Retire,
    /// Let the worker's failure be the pod's own. Told to one alone.
    Surrender,
}

impl Duty {
    /// Whether it is told to one agent alone, so that it says nothing of the gang. It is also the
    /// last thing such an agent is told.
    pub const fn is_personal(self) -> bool {
        matches!(self, Self::Retire | Self::Surrender)
    }

    /// Whether no worker may be there, of this epoch or another.
    pub(super) const fn is_over(self) -> bool {
        matches!(self, Self::Fail | Self::Retire | Self::Surrender)
    }
}

/// How far a gang is. Ranks only grow; of two states that contradict each other, the higher ranking
/// one is true.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Rank {
    /// How often all pods were made anew.
    pub generation: u32,
    /// How often the workers were started anew. It grows over generations too.
    pub epoch: u32,
    /// What they have to do.
    pub duty: Duty,
}

/// Restarts so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Restarts {
    /// All of them.
    pub total: u32,
    /// Those that count towards `maxRestarts`.
    pub counted: u32,
}

impl Restarts {
    /// The later of two accounts of the same restarts.
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        Self { total: self.total.max(other.total), counted: self.counted.max(other.counted) }
    }
}

/// The state an agent should be in. It is whole: whoever has the latest needs none before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// The leader that sends it. An agent does not listen to an earlier one than it has heard.
    pub fence: u64,
    /// The state.
    pub rank: Rank,
    /// The leader under which this epoch was held or released. A promise to wait given to one
    /// leader is no promise to another.
    pub by: u64,
    /// Restarts so far: kept by the agents for a leader that has lost them.
    pub restarts: Restarts,
    /// Whether a worker that has succeeded takes part in later epochs. Where it does not, its
    /// success is its own: its agent leaves with it, and asks nobody.
    pub is_rejoining: bool,
}
