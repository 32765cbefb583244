//! Pods that no Job counts any more, and that still carry the tracking finalizer.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::engine::{Backoff, WorkQueue, after};
use crate::plan::job::{Options, PodRef, jobs::Jobs};
use crate::plan::{Key, Refusal, RefusalKind};

/// A pod that nobody counts any more, and that still carries the tracking finalizer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Orphan {
    /// The pod.
    pub pod: PodRef,
    /// The Job that the pod names, and its uid, if no watch has ever told of it. It may be gone, or
    /// the watch of Jobs may be behind the one of pods: only the API knows.
    pub unseen: Option<(Key, String)>,
}

/// The namespace and name of a pod.
pub(super) type PodKey = (String, String);

/// Pods that may have to lose their finalizer without being counted.
#[derive(Clone, Debug)]
pub(super) struct Orphans {
    /// Each with whether its Job was seen to go.
    pods: BTreeMap<PodKey, (PodRef, bool)>,
    queue: WorkQueue<PodKey>,
    backoff: Backoff<PodKey>,
}

impl Orphans {
    pub(super) fn new(options: &Options) -> Self {
        Self {
            pods: BTreeMap::new(),
            queue: WorkQueue::new(),
            backoff: Backoff::new(options.api_backoff_base, options.api_backoff_max),
        }
    }

    pub(super) fn add(&mut self, pod: PodRef, now: Timestamp) {
        let key = (pod.namespace.clone(), pod.name.clone());
        self.queue.add(key.clone(), now);
        let known = self.pods.get(&key).filter(|(known, _)| known.uid == pod.uid);
        let is_left = known.is_some_and(|(_, is_left)| *is_left);
        self.pods.insert(key, (pod, is_left));
    }

    /// Adds a pod whose Job was seen to go.
    pub(super) fn add_left(&mut self, pod: PodRef, now: Timestamp) {
        let key = (pod.namespace.clone(), pod.name.clone());
        self.queue.add(key.clone(), now);
        // Nobody is left to count it, whatever has become of it since it was seen.
        self.pods.insert(key, (PodRef { version: None, ..pod }, true));
    }

    pub(super) fn remove(&mut self, key: &PodKey) {
        self.pods.remove(key);
        self.queue.remove(key);
        self.backoff.succeeded(key);
    }

    pub(super) fn next_due(&self) -> Option<Timestamp> {
        self.queue.next_due()
    }
}

impl Jobs {
    /// A pod that nobody counts any more and whose finalizer is to be removed, if there is one.
    /// If it has an unseen Job, ask the API for that; if it is there, the pod is no orphan, which
    /// is a [`RefusalKind::Conflict`]. Else send
    /// [`patch::remove_finalizer`](crate::plan::job::patch::remove_finalizer). Then say
    /// [`Jobs::orphan_done`].
    pub fn next_orphan(&mut self, now: Timestamp) -> Option<Orphan> {
        if !self.is_ready() {
            return None;
        }
        loop {
            let key = self.orphans.queue.take_due(now)?;
            let is_wanted = self.is_orphan(&key);
            match self.orphans.pods.get(&key) {
                Some((pod, is_left)) if is_wanted => {
                    let unseen = self.owner_of(&key).filter(|_| !is_left);
                    return Some(Orphan { pod: pod.clone(), unseen });
                }
                _ => {
                    self.orphans.queue.done(&key);
                    self.orphans.remove(&key);
                }
            }
        }
    }

    /// Says what became of the removal: nothing is wrong, or it was refused.
    pub fn orphan_done(&mut self, pod: &PodRef, refusal: Option<&Refusal>, now: Timestamp) {
        let key = (pod.namespace.clone(), pod.name.clone());
        self.orphans.queue.done(&key);
        match refusal {
            Some(refusal) if refusal.kind != RefusalKind::NotFound => {
                let delay = self.orphans.backoff.failed(&key);
                self.orphans.queue.add(key, after(now, delay));
            }
            _ => self.orphans.remove(&key),
        }
    }
}
