//! Worlds of one gang that is restarted in place: the real machines of both ends, and everything
//! around them made up. Pods, processes, connections, the store and the leaders all fail as the
//! seed says, and the user changes or deletes the job. Some of them side by side are a crowd.
//!
//! There is no store of objects here and no API: a world is a few hundred events, and millions of
//! them fit into a second.

mod changes;
pub mod check;
mod crowd;
mod events;
mod fleet;
mod leader;
mod net;
pub mod prototype;
mod trouble;
mod vault;
mod world;

/// What to run.
#[derive(Clone, Debug, Default)]
pub struct Setup {
    /// The seed: what happens is drawn from it and from nothing else.
    pub seed: u64,
    /// How many workers; drawn from three to five if not given.
    pub slots: Option<u32>,
    /// Whether there are several gangs, which fail at once.
    pub is_crowd: bool,
    /// Whether workers that succeed leave at once, instead of waiting for the others.
    pub is_parting: bool,
    /// Whether to tell the story.
    pub is_told: bool,
    /// What is broken on purpose.
    pub broken: Option<Broken>,
}

impl Setup {
    /// The world of a seed, as many of them are run: every thousandth is a gang of 5,000, every
    /// fiftieth a crowd, and all others are small. In every tenth workers leave when they succeed.
    pub fn sampled(seed: u64) -> Self {
        let slots = seed.is_multiple_of(1000).then_some(5000);
        let (is_crowd, is_parting) = (seed % 50 == 25, seed % 10 == 7);
        Self { seed, slots, is_crowd, is_parting, ..Self::default() }
    }
}

/// Something that is broken on purpose: the checkers are worth something only if they find it out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// A store does not remember that a job was deleted.
    Forgetful,
    /// Leaders are not told of pods that are no longer part of their gang.
    Blind,
    /// The number of workers changes within an epoch.
    Unfrozen,
    /// Of several gangs, one is attended to until its restart is over, and then the next.
    OneByOne,
}

/// Runs one world, or a crowd of them, to the end.
pub fn run(setup: &Setup) -> Outcome {
    if setup.is_crowd { crowd::run(setup) } else { world::run(setup) }
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
    /// Whether the gang has succeeded; otherwise it has failed, or was deleted.
    pub is_complete: bool,
    /// Whether the job was deleted before it came to its end.
    pub is_deleted: bool,
    /// How often the number of workers changed.
    pub sizes: u32,
    /// What must never happen, and did.
    pub violation: Option<String>,
    /// What happened, if it was to be told.
    pub story: Vec<String>,
}
