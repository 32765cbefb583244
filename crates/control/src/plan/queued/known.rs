//! Everything that has been seen and that decisions about jobs rest on.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::scheduling::v1::PriorityClass;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use lockstep_api::kueue::{
    ResourceFlavor, ResourceFlavorSpec, WaitForPodsReady, Workload, WorkloadPriorityClass,
};
use lockstep_api::labels::{self, kueue::JOB_UID};

use super::{JobKey, Kind, Object};
use crate::plan::Key;

/// What has been seen.
#[derive(Clone, Debug, Default)]
pub(super) struct Known {
    jobs: BTreeMap<JobKey, Object>,
    /// Jobs by the uid of their controller.
    children: BTreeMap<String, BTreeSet<JobKey>>,
    uids: BTreeMap<String, JobKey>,
    workloads: BTreeMap<Key, Arc<Workload>>,
    /// Workloads by the job they belong to.
    owned: BTreeMap<JobKey, BTreeSet<Key>>,
    pub(super) flavors: BTreeMap<String, ResourceFlavorSpec>,
    /// WorkloadPriorityClasses and their values.
    pub(super) classes: BTreeMap<String, i32>,
    pub(super) pod_classes: BTreeMap<String, PodClass>,
    /// Namespaces and their labels.
    pub(super) namespaces: BTreeMap<String, BTreeMap<String, String>>,
    /// What holds for single workloads about waiting for pods.
    pub(super) waits: BTreeMap<Key, Option<WaitForPodsReady>>,
}

/// A PriorityClass of pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PodClass {
    pub(super) value: i32,
    pub(super) is_default: bool,
}

impl Known {
    pub(super) fn job(&self, key: &JobKey) -> Option<&Object> {
        self.jobs.get(key)
    }

    pub(super) fn jobs(&self) -> impl Iterator<Item = (&JobKey, &Object)> {
        self.jobs.iter()
    }

    /// The jobs of one kind in one namespace.
    pub(super) fn jobs_in(&self, kind: Kind, namespace: &str) -> impl Iterator<Item = &JobKey> {
        let first = Key { namespace: namespace.to_owned(), name: String::new() };
        let keys = self.jobs.range(JobKey::new(kind, first)..).map(|(key, _)| key);
        keys.take_while(move |key| key.kind == kind && key.key.namespace == namespace)
    }

    /// The job of this uid.
    pub(super) fn job_of_uid(&self, uid: &str) -> Option<&JobKey> {
        self.uids.get(uid)
    }

    /// The jobs whose controller has this uid.
    pub(super) fn children(&self, uid: &str) -> impl Iterator<Item = &JobKey> {
        self.children.get(uid).into_iter().flatten()
    }

    pub(super) fn workload(&self, key: &Key) -> Option<&Workload> {
        self.workloads.get(key).map(Arc::as_ref)
    }

    /// The Workloads of a job, by their names.
    pub(super) fn workloads_of(&self, job: &JobKey) -> impl Iterator<Item = &Workload> {
        let keys = self.owned.get(job).into_iter().flatten();
        keys.filter_map(|key| self.workload(key))
    }

    /// The Workloads that were those of the job of this uid and have no owner now.
    pub(super) fn orphans_of(&self, uid: &str) -> Vec<JobKey> {
        let first = Key { namespace: String::new(), name: String::new() };
        let orphans = self.owned.range(JobKey::new(Kind::Orphan, first)..).map(|(key, _)| key);
        let is_of = |workload: &Workload| job_uid(workload) == Some(uid);
        orphans.filter(|key| self.workload(&key.key).is_some_and(is_of)).cloned().collect()
    }

    /// Notes a version of a job; nothing if a newer one is known.
    pub(super) fn job_seen(&mut self, key: &JobKey, job: Object) -> bool {
        if let Some(known) = self.jobs.get(key) {
            if !is_news(known.meta(), job.meta()) {
                return false;
            }
            self.forget_job(key);
        }
        let uid = uid(job.meta()).to_owned();
        if let Some(owner) = controller(job.meta()) {
            self.children.entry(owner.uid.clone()).or_default().insert(key.clone());
        }
        self.uids.insert(uid, key.clone());
        self.jobs.insert(key.clone(), job);
        true
    }

    /// Notes that the job of this uid is gone.
    pub(super) fn job_gone(&mut self, key: &JobKey, gone: &str) -> bool {
        let is_it = self.jobs.get(key).is_some_and(|known| uid(known.meta()) == gone);
        if is_it {
            self.forget_job(key);
        }
        is_it
    }

    fn forget_job(&mut self, key: &JobKey) {
        let Some(job) = self.jobs.remove(key) else { return };
        self.uids.remove(uid(job.meta()));
        if let Some(owner) = controller(job.meta())
            && let Some(children) = self.children.get_mut(&owner.uid)
        {
            children.remove(key);
            if children.is_empty() {
                self.children.remove(&owner.uid);
            }
        }
    }

    /// Notes a version of a Workload; nothing if a newer one is known. The jobs whose it was and is
    /// want a pass.
    pub(super) fn workload_seen(&mut self, workload: Arc<Workload>) -> Option<Vec<JobKey>> {
        let key = Key::of(&workload.metadata);
        let mut concerned = Vec::new();
        if let Some(known) = self.workloads.get(&key) {
            if !is_news(&known.metadata, &workload.metadata) {
                return None;
            }
            concerned.extend(self.forget_workload(&key));
        }
        if let Some(owner) = owner(&workload) {
            self.owned.entry(owner.clone()).or_default().insert(key.clone());
            if !concerned.contains(&owner) {
                concerned.push(owner);
            }
        }
        self.workloads.insert(key, workload);
        Some(concerned)
    }

    /// Notes that the Workload of this uid is gone. The job whose it was wants a pass.
    pub(super) fn workload_gone(&mut self, key: &Key, gone: &str) -> Option<Option<JobKey>> {
        self.workloads.get(key).filter(|known| uid(&known.metadata) == gone)?;
        self.waits.remove(key);
        Some(self.forget_workload(key))
    }

    fn forget_workload(&mut self, key: &Key) -> Option<JobKey> {
        let workload = self.workloads.remove(key)?;
        let owner = owner(&workload)?;
        if let Some(keys) = self.owned.get_mut(&owner) {
            keys.remove(key);
            if keys.is_empty() {
                self.owned.remove(&owner);
            }
        }
        Some(owner)
    }

    /// What holds about waiting for the pods of a workload, where it is told.
    pub(super) fn wait_of(&self, workload: &Workload) -> Option<&Option<WaitForPodsReady>> {
        self.waits.get(&Key::of(&workload.metadata))
    }

    pub(super) fn flavor_seen(&mut self, flavor: &ResourceFlavor) -> bool {
        put(&mut self.flavors, &flavor.metadata, flavor.spec.clone())
    }

    pub(super) fn class_seen(&mut self, class: &WorkloadPriorityClass) -> bool {
        put(&mut self.classes, &class.metadata, class.value)
    }

    pub(super) fn pod_class_seen(&mut self, class: &PriorityClass) {
        let is_default = class.global_default.unwrap_or_default();
        let value = class.value.unwrap_or_default();
        put(&mut self.pod_classes, &class.metadata, PodClass { value, is_default });
    }

    /// The labels of a namespace. Its name is one of them, whoever has set it up.
    pub(super) fn namespace_seen(&mut self, name: &str, labels: &BTreeMap<String, String>) -> bool {
        let mut labels = labels.clone();
        labels.entry(labels::NAMESPACE_NAME.to_owned()).or_insert_with(|| name.to_owned());
        let known = self.namespaces.insert(name.to_owned(), labels);
        known.as_ref() != self.namespaces.get(name)
    }
}

/// Whose Workload this is: that of its controller; of one that has been a job's and has no
/// controller, its own.
pub(super) fn owner(workload: &Workload) -> Option<JobKey> {
    let meta = &workload.metadata;
    let namespace = meta.namespace.as_deref().unwrap_or_default();
    if let Some(owner) = controller(meta) {
        return JobKey::of_owner(owner, namespace);
    }
    job_uid(workload).map(|_| JobKey::new(Kind::Orphan, Key::of(meta)))
}

/// The uid of the job a Workload says to be of.
pub(super) fn job_uid(workload: &Workload) -> Option<&str> {
    workload.metadata.labels.as_ref()?.get(JOB_UID).map(String::as_str)
}

/// The owner that controls an object.
pub(super) fn controller(meta: &ObjectMeta) -> Option<&OwnerReference> {
    meta.owner_references.iter().flatten().find(|owner| owner.controller == Some(true))
}

pub(super) fn uid(meta: &ObjectMeta) -> &str {
    meta.uid.as_deref().unwrap_or_default()
}

/// The version of an object as a number. Versions of one kind are ordered.
pub(super) fn version(meta: &ObjectMeta) -> u64 {
    meta.resource_version.as_deref().and_then(|version| version.parse().ok()).unwrap_or(0)
}

/// Whether an object is a later version of what is known of it, or one that came in its place.
fn is_news(known: &ObjectMeta, seen: &ObjectMeta) -> bool {
    if uid(known) == uid(seen) {
        return version(seen) > version(known) || version(seen) == 0;
    }
    version(seen) >= version(known)
}

fn put<V: PartialEq>(known: &mut BTreeMap<String, V>, meta: &ObjectMeta, value: V) -> bool {
    let name = meta.name.clone().unwrap_or_default();
    let is_news = known.get(&name) != Some(&value);
    known.insert(name, value);
    is_news
}
