//! Which pods a gang has, and which place each of them fills.

use std::collections::{HashMap, HashSet};
use std::sync::{PoisonError, RwLock};

/// The place that a pod fills.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seat {
    /// The place.
    pub slot: u32,
    /// The pod: of two pods of one place, the higher number is the later one.
    pub pod: u64,
    /// The generation it was made for.
    pub generation: u32,
}

/// The pods of one gang, by uid. Connections look here, so it has its own lock.
#[derive(Debug, Default)]
pub(super) struct Roster {
    seats: RwLock<(u64, HashMap<String, Seat>)>,
}

impl Roster {
    pub(super) fn seat(&self, uid: &str) -> Option<Seat> {
        self.seats.read().unwrap_or_else(PoisonError::into_inner).1.get(uid).copied()
    }

    /// Takes a pod in; pods must be told of in the order in which they were made.
    pub(super) fn add(&self, uid: &str, slot: u32, generation: u32) -> Seat {
        let mut seats = self.seats.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(seat) = seats.1.get(uid) {
            return *seat;
        }
        seats.0 += 1;
        let seat = Seat { slot, pod: seats.0, generation };
        seats.1.insert(uid.to_owned(), seat);
        seat
    }

    pub(super) fn remove(&self, uid: &str) -> Option<Seat> {
        self.seats.write().unwrap_or_else(PoisonError::into_inner).1.remove(uid)
    }

    /// The uids of these pods, of which there may be thousands.
    pub(super) fn uids(&self, pods: &HashSet<u64>) -> Vec<String> {
        let seats = self.seats.read().unwrap_or_else(PoisonError::into_inner);
        let those = seats.1.iter().filter(|(_, seat)| pods.contains(&seat.pod));
        those.map(|(uid, _)| uid.clone()).collect()
    }
}
