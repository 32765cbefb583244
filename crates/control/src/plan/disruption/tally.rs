//! The pods that a budget selects, counted as they come and go.

use std::collections::BTreeMap;

/// What matters of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Its uid: of two pods of one name the later counts.
    pub uid: String,
    /// Whether it is ready.
    pub is_ready: bool,
    /// Whether it is being deleted.
    pub is_leaving: bool,
    /// Who controls it.
    pub owner: Option<Owner>,
}

impl Seen {
    fn is_healthy(&self) -> bool {
        self.is_ready && !self.is_leaving
    }
}

/// Who controls a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Its uid.
    pub uid: String,
    /// Its version, with the group.
    pub api_version: String,
    /// Its kind.
    pub kind: String,
    /// Its name.
    pub name: String,
}

/// All pods of a budget: what is asked of them is kept up to date with each that changes.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    pods: BTreeMap<String, Seen>,
    healthy: usize,
    unmanaged: usize,
    owners: BTreeMap<String, Owned>,
}

/// The pods of one owner.
#[derive(Clone, Debug)]
pub struct Owned {
    /// Who owns them.
    pub owner: Owner,
    /// One of its pods.
    pub pod: String,
    count: usize,
}

impl Tally {
    /// Notes a pod as it is now; whether that changes anything.
    pub fn put(&mut self, name: &str, seen: Seen) -> bool {
        if self.pods.get(name) == Some(&seen) {
            return false;
        }
        self.take(name);
        self.healthy += usize::from(seen.is_healthy());
        match &seen.owner {
            None => self.unmanaged += 1,
            Some(owner) => {
                let owned = self.owners.entry(owner.uid.clone()).or_insert_with(|| Owned {
                    owner: owner.clone(),
                    pod: name.to_owned(),
                    count: 0,
                });
                owned.count += 1;
            }
        }
        self.pods.insert(name.to_owned(), seen);
        true
    }

    /// Forgets the pod of this name and uid; whether it was there.
    pub fn remove(&mut self, name: &str, uid: &str) -> bool {
        let is_known = self.pods.get(name).is_some_and(|seen| seen.uid == uid);
        if is_known {
            self.take(name);
        }
        is_known
    }

    fn take(&mut self, name: &str) {
        let Some(seen) = self.pods.remove(name) else { return };
        self.healthy -= usize::from(seen.is_healthy());
        let Some(owner) = &seen.owner else {
            self.unmanaged -= 1;
            return;
        };
        if let Some(owned) = self.owners.get_mut(&owner.uid) {
            owned.count -= 1;
            if owned.count == 0 {
                self.owners.remove(&owner.uid);
            }
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.pods.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.pods.is_empty()
    }

    /// How many are ready and stay.
    pub(super) fn healthy(&self) -> usize {
        self.healthy
    }

    /// How many nobody controls.
    pub(super) fn unmanaged(&self) -> usize {
        self.unmanaged
    }

    /// Those who control pods, by uid.
    pub fn owners(&self) -> impl Iterator<Item = (&String, &Owned)> {
        self.owners.iter()
    }

    /// Whether this one is ready and stays.
    pub(super) fn is_healthy(&self, name: &str) -> bool {
        self.pods.get(name).is_some_and(Seen::is_healthy)
    }

    /// Whether this one is there and not being deleted.
    pub(super) fn is_staying(&self, name: &str) -> bool {
        self.pods.get(name).is_some_and(|seen| !seen.is_leaving)
    }
}
