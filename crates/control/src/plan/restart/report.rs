//! What an agent tells its orchestrator: the state it is in.

use serde::{Deserialize, Serialize};

use super::{Cause, Rank, Restarts};

/// What an agent holds of the last order it took.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// The state it was given.
    pub rank: Rank,
    /// Under which leader it was decided.
    pub by: u64,
}

/// What the worker of an agent is doing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Worker {
    /// There is none, and nothing is left of an earlier one.
    Idle,
    /// It runs, started for this epoch.
    Running(u32),
    /// It ended in this epoch without being asked to.
    Failed(u32, Cause),
    /// It ended well in this epoch, and waits for the others.
    Succeeded(u32),
    /// Something of an earlier epoch is still being stopped.
    Stopping,
    /// Something of an earlier epoch cannot be stopped.
    Stuck,
    /// The agent was told to end, as a pod is that is being deleted.
    Leaving,
}

/// The state of one agent. It is whole, as an order is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// Its place in the gang.
    pub slot: u32,
    /// The pod it is in: of two pods of one slot the higher number is the later one.
    pub pod: u64,
    /// The agent's own life: another one after each start of its container.
    pub session: u64,
    /// Grows with each report of a session.
    pub sequence: u64,
    /// The generation its pod was made for.
    pub generation: u32,
    /// The latest leader it has heard of.
    pub fence: u64,
    /// The last order it took.
    pub held: Option<Held>,
    /// What that order said of restarts.
    pub restarts: Restarts,
    /// What its worker does.
    pub worker: Worker,
}
