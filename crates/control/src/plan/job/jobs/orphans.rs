//! Pods that no Job counts any more, and that still carry the tracking finalizer.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::engine::{Backoff, WorkQueue};
use crate::plan::job::{
    Options, PodRef,
    jobs::{Jobs, Refusal, RefusalKind, after},
};

/// The namespace and name of a pod.
pub(super) type PodKey = (String, String);

/// Pods that may have to lose their finalizer without being counted.
#[derive(Clone, Debug)]
pub(super) struct Orphans {
    pods: BTreeMap<PodKey, PodRef>,
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
        self.pods.insert(key, pod);
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
    /// A pod that nobody counts any more and whose finalizer is to be removed, if there is one:
    /// send [`patch::remove_finalizer`](crate::plan::job::patch::remove_finalizer), then say
    /// [`Jobs::orphan_done`].
    pub fn next_orphan(&mut self, now: Timestamp) -> Option<PodRef> {
        if !self.is_ready() {
            return None;
        }
        loop {
            let key = self.orphans.queue.take_due(now)?;
            let is_wanted = self.is_orphan(&key);
            match self.orphans.pods.get(&key) {
                Some(pod) if is_wanted => return Some(pod.clone()),
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
