//! Which pod concerns which Jobs.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use lockstep_api::labels;

use crate::plan::job::{
    Fact, Key, Metric, PodRef, View,
    jobs::{Jobs, orphans::PodKey},
    seen,
};

/// What is known of pods beyond the views of their Jobs.
#[derive(Clone, Debug, Default)]
pub(super) struct Routes {
    pods: BTreeMap<PodKey, Route>,
    /// Pods by the Job that owns them, known or not.
    owned: BTreeMap<Key, BTreeSet<String>>,
    /// Pods without a controller, by namespace.
    free: BTreeMap<String, BTreeSet<String>>,
    /// Jobs whose selector is not just their own uid, by namespace.
    by_hand: BTreeMap<String, BTreeSet<Key>>,
    /// Jobs by uid.
    by_uid: BTreeMap<String, Key>,
    /// Pods that only the answers to our own requests have shown so far.
    unwatched: BTreeSet<PodKey>,
    /// Uids of pods that the API has said are gone, while the watch may still tell of their past.
    pub(super) buried: BTreeSet<String>,
    /// Moves with each listing of all pods.
    listing: u64,
    /// While one is going on, the newest version in it.
    listed_through: Option<u64>,
}

#[derive(Clone, Debug)]
struct Route {
    uid: String,
    version: u64,
    owner: Owner,
    is_deleting: bool,
    is_tracked: bool,
    has_ended: bool,
    listing: u64,
    /// The pod itself, while no view has it.
    pod: Option<Box<Pod>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Owner {
    Job { key: Key, uid: String },
    Nobody,
    SomethingElse,
}

impl Owner {
    fn of(pod: &Pod) -> Self {
        match seen::controller(&pod.metadata) {
            None => Self::Nobody,
            Some(owner) if owner.kind == "Job" && owner.api_version == "batch/v1" => {
                let namespace = pod.metadata.namespace.clone().unwrap_or_default();
                let key = Key { namespace, name: owner.name.clone() };
                Self::Job { key, uid: owner.uid.clone() }
            }
            Some(_) => Self::SomethingElse,
        }
    }

    fn key(&self) -> Option<&Key> {
        match self {
            Self::Job { key, .. } => Some(key),
            Self::Nobody | Self::SomethingElse => None,
        }
    }
}

impl Jobs {
    /// Notes a version of a pod.
    pub fn pod_seen(&mut self, pod: &Pod, now: Timestamp) {
        let key = pod_key(pod);
        self.routes.unwatched.remove(&key);
        for job in self.see(pod) {
            self.enqueue(&job, now);
        }
        let version = seen::version(&pod.metadata);
        match &mut self.routes.listed_through {
            // A listing is not in order: what it tells is complete when it ends.
            Some(newest) => *newest = version.max(*newest),
            None => self.pods_through = version.max(self.pods_through),
        }
        let is_orphan = self.is_orphan(&key);
        match self.routes.pods.get(&key) {
            // A Job that is not known may only not be known yet.
            Some(route) if is_orphan && (route.is_deleting || route.owner == Owner::Nobody) => {
                self.orphans.add(reference(&key, &route.uid), now);
            }
            Some(_) if is_orphan => {}
            _ => self.orphans.remove(&key),
        }
    }

    /// Notes that a pod is gone.
    pub fn pod_gone(&mut self, pod: &PodRef, now: Timestamp) {
        self.routes.buried.remove(&pod.uid);
        for job in self.drop_pod(pod) {
            self.enqueue(&job, now);
        }
    }

    /// Takes a pod out of the views of all Jobs it concerns; these are the ones that knew it.
    pub(super) fn drop_pod(&mut self, pod: &PodRef) -> BTreeSet<Key> {
        let key = (pod.namespace.clone(), pod.name.clone());
        let Some(route) = self.routes.pods.get(&key).filter(|route| route.uid == pod.uid) else {
            return BTreeSet::new();
        };
        if route.is_tracked && route.has_ended {
            self.facts.push(Metric::TrackedTerminatedPods.fact(1, &["delete"]));
        }
        self.orphans.remove(&key);
        let mut concerned = self.routes.concerned(&key);
        self.routes.remove(&key);
        self.routes.unwatched.remove(&key);
        concerned.retain(|job| {
            self.entries.get_mut(job).is_some_and(|entry| {
                if let Some(pass) = &mut entry.pass {
                    pass.course.gone.insert(pod.uid.clone());
                }
                entry.view.forget_pod(&pod.name, &pod.uid)
            })
        });
        concerned
    }

    /// A listing of all pods begins: what is not seen from now on until it ends is gone.
    pub fn pods_listing(&mut self) {
        self.routes.listing += 1;
        self.routes.buried.clear();
        self.routes.listed_through = Some(0);
    }

    /// The listing of all pods has ended.
    pub fn pods_listed(&mut self, now: Timestamp) {
        let newest = self.routes.listed_through.take().unwrap_or_default();
        self.pods_through = self.pods_through.max(newest);
        let listing = self.routes.listing;
        let gone = self.routes.pods.iter().filter(|(_, route)| route.listing < listing);
        let gone: Vec<PodRef> = gone.map(|(key, route)| reference(key, &route.uid)).collect();
        for pod in gone {
            self.pod_gone(&pod, now);
        }
        self.is_listed.pods = true;
        self.doubt_unwatched(now);
    }

    /// Pods that no watch has ever shown may have come and gone while none was listening: their
    /// Jobs ask the API.
    fn doubt_unwatched(&mut self, now: Timestamp) {
        for key in std::mem::take(&mut self.routes.unwatched) {
            let Some(route) = self.routes.pods.get(&key) else { continue };
            let Some(job) = route.owner.key().cloned() else { continue };
            if let Some(entry) = self.entries.get_mut(&job) {
                entry.memory.doubtful.insert(route.uid.clone());
                self.enqueue(&job, now);
            }
        }
    }

    /// Whether a pod carries the finalizer and nobody counts it: it has no controller and no Job
    /// that would adopt it, or its Job is not known. Pods of Jobs that have ended are let go by
    /// their Jobs.
    pub(super) fn is_orphan(&self, key: &PodKey) -> bool {
        let Some(route) = self.routes.pods.get(key).filter(|route| route.is_tracked) else {
            return false;
        };
        match &route.owner {
            Owner::Job { uid, .. } => !self.routes.by_uid.contains_key(uid),
            Owner::Nobody if route.is_deleting => true,
            Owner::Nobody => !route.pod.as_ref().is_some_and(|pod| {
                self.routes.suitors(pod).iter().any(|job| {
                    self.entries.get(job).is_some_and(|entry| {
                        entry.adopts(&self.options) && entry.view.is_selected(pod)
                    })
                })
            }),
            Owner::SomethingElse => false,
        }
    }

    /// The Job that a pod names as its owner, and its uid.
    pub(super) fn owner_of(&self, key: &PodKey) -> Option<(Key, String)> {
        match &self.routes.pods.get(key)?.owner {
            Owner::Job { key, uid } => Some((key.clone(), uid.clone())),
            Owner::Nobody | Owner::SomethingElse => None,
        }
    }

    /// Looks again at the pods of a namespace that have no controller: a Job that might have
    /// adopted one no longer will.
    pub(super) fn free_orphans(&mut self, namespace: &str, now: Timestamp) {
        let names = self.routes.free.get(namespace).into_iter().flatten();
        let keys: Vec<PodKey> = names.map(|name| (namespace.to_owned(), name.clone())).collect();
        for key in keys {
            if self.is_orphan(&key)
                && let Some(route) = self.routes.pods.get(&key)
            {
                self.orphans.add(reference(&key, &route.uid), now);
            }
        }
    }

    /// Notes a version of a pod in the views of all Jobs it concerns; these are the ones to which
    /// it was news.
    pub(super) fn see(&mut self, pod: &Pod) -> BTreeSet<Key> {
        let key = pod_key(pod);
        if self.routes.buried.contains(pod.metadata.uid.as_deref().unwrap_or_default()) {
            return BTreeSet::new();
        }
        if !self.routes.note(&key, pod, &mut self.facts) {
            return BTreeSet::new();
        }
        let mut concerned = self.routes.concerned(&key);
        concerned.extend(self.routes.suitors(pod));
        concerned
            .retain(|job| self.entries.get_mut(job).is_some_and(|entry| entry.observe_pod(pod)));
        self.routes.settle(&key, pod, |job, uid| {
            self.entries.get(job).is_some_and(|entry| entry.view.uid() == uid)
        });
        concerned
    }
}

impl Routes {
    /// A new Job: its pods, and the pods it might adopt, come into its view.
    pub(super) fn claim(&mut self, key: &Key, view: &mut View) {
        self.by_uid.insert(view.uid().to_owned(), key.clone());
        let own = (labels::CONTROLLER_UID, view.uid());
        let is_by_hand = view.selector().to_string() != format!("{}={}", own.0, own.1);
        if is_by_hand {
            self.by_hand.entry(key.namespace.clone()).or_default().insert(key.clone());
        }
        let owned = self.owned.get(key).into_iter().flatten();
        let free = self.free.get(&key.namespace).into_iter().flatten();
        let names: Vec<String> = owned.chain(free).cloned().collect();
        for name in names {
            let Some(route) = self.pods.get_mut(&(key.namespace.clone(), name)) else { continue };
            let Some(pod) = &route.pod else { continue };
            view.observe_pod(pod);
            let is_owner = matches!(&route.owner, Owner::Job { uid, .. } if uid == view.uid());
            if is_owner {
                route.pod = None;
            }
        }
    }

    /// A Job is gone.
    pub(super) fn disown(&mut self, key: &Key, uid: &str) {
        self.by_uid.remove(uid);
        if let Some(jobs) = self.by_hand.get_mut(&key.namespace) {
            jobs.remove(key);
        }
    }

    /// Notes a version; whether it is news.
    fn note(&mut self, key: &PodKey, pod: &Pod, facts: &mut Vec<Fact>) -> bool {
        let version = seen::version(&pod.metadata);
        let listing = self.listing;
        let before = self.pods.get_mut(key);
        if let Some(known) = before {
            known.listing = listing;
            if version <= known.version && version != 0 {
                return false;
            }
        }
        let before = self.pods.get(key);
        let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
        let has_ended = matches!(phase, Some("Succeeded" | "Failed"));
        let is_tracked = seen::is_tracked(&pod.metadata);
        let was_counted = before.is_some_and(|known| known.is_tracked && known.has_ended);
        match (was_counted, is_tracked && has_ended) {
            (false, true) => facts.push(Metric::TrackedTerminatedPods.fact(1, &["add"])),
            (true, false) => facts.push(Metric::TrackedTerminatedPods.fact(1, &["delete"])),
            _ => {}
        }
        true
    }

    /// Files the pod under its owner. The pod itself is kept while no view has it.
    fn settle(&mut self, key: &PodKey, pod: &Pod, has_view: impl Fn(&Key, &str) -> bool) {
        self.remove(key);
        let owner = Owner::of(pod);
        let is_kept = match &owner {
            Owner::Job { key: job, uid } => {
                self.owned.entry(job.clone()).or_default().insert(key.1.clone());
                !has_view(job, uid)
            }
            Owner::Nobody => {
                self.free.entry(key.0.clone()).or_default().insert(key.1.clone());
                true
            }
            // Pods of others are many, and none of our business.
            Owner::SomethingElse if !seen::is_tracked(&pod.metadata) => return,
            Owner::SomethingElse => false,
        };
        let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
        let route = Route {
            uid: pod.metadata.uid.clone().unwrap_or_default(),
            version: seen::version(&pod.metadata),
            owner,
            is_deleting: pod.metadata.deletion_timestamp.is_some(),
            is_tracked: seen::is_tracked(&pod.metadata),
            has_ended: matches!(phase, Some("Succeeded" | "Failed")),
            listing: self.listing,
            pod: is_kept.then(|| Box::new(pod.clone())),
        };
        self.pods.insert(key.clone(), route);
    }

    /// Notes that only the answer to a request has shown the pod, if no watch has.
    pub(super) fn answered(&mut self, key: PodKey) {
        if !self.pods.contains_key(&key) {
            self.unwatched.insert(key);
        }
    }

    fn remove(&mut self, key: &PodKey) {
        let Some(route) = self.pods.remove(key) else { return };
        if let Some(owner) = route.owner.key()
            && let Some(names) = self.owned.get_mut(owner)
        {
            names.remove(&key.1);
            if names.is_empty() {
                self.owned.remove(&owner.clone());
            }
        }
        if route.owner == Owner::Nobody
            && let Some(names) = self.free.get_mut(&key.0)
        {
            names.remove(&key.1);
        }
    }

    /// The Jobs whose views may hold the pod as it was.
    fn concerned(&self, key: &PodKey) -> BTreeSet<Key> {
        let Some(route) = self.pods.get(key) else { return BTreeSet::new() };
        let mut jobs: BTreeSet<Key> = route.owner.key().cloned().into_iter().collect();
        if let Some(pod) = &route.pod {
            jobs.extend(self.suitors(pod));
        }
        jobs
    }

    /// The Jobs that own the pod, or would adopt it: those whose uid it names in its label, and
    /// those whose selectors were written by hand.
    fn suitors(&self, pod: &Pod) -> BTreeSet<Key> {
        match Owner::of(pod) {
            Owner::Job { key, .. } => BTreeSet::from([key]),
            Owner::SomethingElse => BTreeSet::new(),
            Owner::Nobody => {
                let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
                let label =
                    pod.metadata.labels.as_ref().and_then(|all| all.get(labels::CONTROLLER_UID));
                let named = label.and_then(|uid| self.by_uid.get(uid));
                let by_hand = self.by_hand.get(namespace).into_iter().flatten();
                named.into_iter().chain(by_hand).cloned().collect()
            }
        }
    }
}

pub(super) fn pod_key(pod: &Pod) -> PodKey {
    let meta = &pod.metadata;
    (meta.namespace.clone().unwrap_or_default(), meta.name.clone().unwrap_or_default())
}

fn reference(key: &PodKey, uid: &str) -> PodRef {
    PodRef::new(&key.0, &key.1, uid)
}
