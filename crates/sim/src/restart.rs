//! Worlds of one gang that is restarted in place: the real machines of both ends, and everything
//! around them made up. Pods, processes, connections, the store and the leaders all fail as the
//! seed says.
//!
//! There is no store of objects here and no API: a world is a few hundred events, and millions of
//! them fit into a second.

pub mod check;
mod events;
mod fleet;
mod leader;
mod net;
pub mod prototype;
mod trouble;
mod vault;
mod world;

pub use world::run;

/// What to run.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The seed: what happens is drawn from it and from nothing else.
    pub seed: u64,
    /// How many workers; drawn from three to five if not given.
    pub slots: Option<u32>,
    /// Whether to tell the story.
    pub is_told: bool,
}

/// How it went.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// How many events there were.
    pub events: u64,
    /// How many faults.
    pub faults: u32,
    /// How often a release was written.
    pub releases: u32,
    /// Whether the gang has succeeded; otherwise it has failed.
    pub is_complete: bool,
    /// What must never happen, and did.
    pub violation: Option<String>,
    /// What happened, if it was to be told.
    pub story: Vec<String>,
}
