//! What the workers of a gang do, for people: those that do the same are told of together.

use std::collections::BTreeMap;

use super::super::Worker;
use super::Orchestrator;
use super::slots::Standing;
use crate::plan::job::Indexes;

/// Workers that do the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workers {
    /// What they do, in a word.
    pub state: &'static str,
    /// The epoch they were started for, if they were.
    pub epoch: Option<u32>,
    /// Which they are.
    pub places: Indexes,
}

impl Orchestrator {
    /// What the workers do, in a few lines however many there are.
    pub fn workers(&self) -> Vec<Workers> {
        let mut groups: BTreeMap<(&'static str, Option<u32>), Indexes> = BTreeMap::new();
        for (at, slot) in self.slots.iter() {
            let state = match self.slots.standing(at) {
                Standing::Unknown | Standing::Missing | Standing::Haunted => "Missing",
                Standing::Behind => "Stopping",
                Standing::Ready => "Waiting",
                Standing::Released => "Starting",
                Standing::Running => "Running",
                Standing::Succeeded => "Succeeded",
                Standing::Failed => "Failed",
                Standing::Finished => "Completed",
            };
            let epoch = match slot.worker {
                Worker::Running(epoch) | Worker::Failed(epoch, _) | Worker::Succeeded(epoch) => {
                    Some(epoch)
                }
                Worker::Idle | Worker::Stopping | Worker::Stuck | Worker::Leaving => None,
            };
            let places = groups.entry((state, epoch)).or_default();
            places.insert(i32::try_from(at).unwrap_or(i32::MAX));
        }
        let named = |((state, epoch), places)| Workers { state, epoch, places };
        groups.into_iter().map(named).collect()
    }
}
