//! Which set a Job belongs to, and which Services there are.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::{api::batch::v1::Job, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use lockstep_api::jobset::{API_VERSION, KIND};

use super::version;
use crate::plan::Key;

/// Everything that is known of Jobs and Services, whether or not their set is known yet: watches of
/// different kinds are not in step.
#[derive(Clone, Debug, Default)]
pub(super) struct Routes {
    /// Jobs by the uid of their set, then by their own.
    jobs: BTreeMap<String, BTreeMap<String, Arc<Job>>>,
    /// The uid of the set, by that of the Job.
    owners: BTreeMap<String, String>,
    sets: BTreeMap<String, Key>,
    services: BTreeMap<Key, Known>,
    /// Jobs that no watch has told of so far, only the answer to a request, and the listing that
    /// was the last by then.
    answered: BTreeMap<String, u64>,
    jobs_listing: u64,
    services_listing: u64,
}

/// A Service.
#[derive(Clone, Debug)]
struct Known {
    uid: String,
    /// The listing that was the last when it was seen.
    listing: u64,
}

/// The uid of the set a Job belongs to: found by its controller, never by its name.
pub(crate) fn owner(job: &Job) -> Option<&str> {
    let mut owners = job.metadata.owner_references.iter().flatten();
    let found = owners.find(|owner| {
        owner.controller == Some(true) && owner.api_version == API_VERSION && owner.kind == KIND
    });
    found.map(|owner| owner.uid.as_str())
}

impl Routes {
    pub(super) fn set_known(&mut self, uid: &str, key: &Key) {
        self.sets.insert(uid.to_owned(), key.clone());
    }

    pub(super) fn set_gone(&mut self, uid: &str) {
        self.sets.remove(uid);
    }

    pub(super) fn set_of(&self, uid: &str) -> Option<&Key> {
        self.sets.get(uid)
    }

    pub(super) fn jobs_of(&self, uid: &str) -> impl Iterator<Item = &Arc<Job>> {
        self.jobs.get(uid).into_iter().flat_map(BTreeMap::values)
    }

    pub(super) fn owner_of(&self, job: &str) -> Option<&str> {
        self.owners.get(job).map(String::as_str)
    }

    /// Notes a Job of a set, unless a newer version of it is known.
    pub(super) fn job_seen(&mut self, owner: &str, job: &Arc<Job>) -> bool {
        let uid = job.metadata.uid.clone().unwrap_or_default();
        let jobs = self.jobs.entry(owner.to_owned()).or_default();
        let known = jobs.get(&uid).map(|known| version(&known.metadata));
        if known.is_some_and(|known| version(&job.metadata) < known) {
            return false;
        }
        jobs.insert(uid.clone(), Arc::clone(job));
        self.owners.insert(uid, owner.to_owned());
        true
    }

    /// Forgets a Job, and says whose it was.
    pub(super) fn forget_job(&mut self, uid: &str) -> Option<String> {
        self.answered.remove(uid);
        let owner = self.owners.remove(uid)?;
        if let Some(jobs) = self.jobs.get_mut(&owner) {
            jobs.remove(uid);
            if jobs.is_empty() {
                self.jobs.remove(&owner);
            }
        }
        Some(owner)
    }

    /// An answer has told of a Job: until a watch does, listings may miss it.
    pub(super) fn answered(&mut self, uid: &str) {
        if !self.owners.contains_key(uid) || self.answered.contains_key(uid) {
            self.answered.insert(uid.to_owned(), self.jobs_listing);
        }
    }

    /// A watch has told of a Job.
    pub(super) fn told(&mut self, uid: &str) {
        self.answered.remove(uid);
    }

    pub(super) fn jobs_listing(&mut self) {
        self.jobs_listing += 1;
    }

    /// The Jobs that a listing should have shown, and has not.
    pub(super) fn jobs_listed(&mut self) -> Vec<(Key, String)> {
        let listing = self.jobs_listing;
        let missed = self.answered.iter().filter(|(_, answered)| **answered < listing);
        let missed = missed.filter_map(|(uid, _)| {
            let job = self.jobs.get(self.owners.get(uid)?)?.get(uid)?;
            Some((Key::of(&job.metadata), uid.clone()))
        });
        missed.collect()
    }

    pub(super) fn service_seen(&mut self, meta: &ObjectMeta) {
        let uid = meta.uid.clone().unwrap_or_default();
        self.services.insert(Key::of(meta), Known { uid, listing: self.services_listing });
    }

    /// Forgets a Service, unless it is another one by now.
    pub(super) fn service_gone(&mut self, key: &Key, uid: &str) -> bool {
        let is_it = self.services.get(key).is_some_and(|known| known.uid == uid);
        if is_it {
            self.services.remove(key);
        }
        is_it
    }

    pub(super) fn has_service(&self, namespace: &str, name: &str) -> bool {
        let key = Key { namespace: namespace.to_owned(), name: name.to_owned() };
        self.services.contains_key(&key)
    }

    pub(super) fn services_listing(&mut self) {
        self.services_listing += 1;
    }

    /// The Services that a listing should have shown, and has not.
    pub(super) fn services_listed(&self) -> Vec<(Key, String)> {
        let missed = self.services.iter();
        let missed = missed.filter(|(_, known)| known.listing < self.services_listing);
        missed.map(|(key, known)| (key.clone(), known.uid.clone())).collect()
    }
}
