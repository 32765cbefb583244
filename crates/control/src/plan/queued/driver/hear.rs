//! What watches bring.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::{batch::v1::Job, scheduling::v1::PriorityClass};
use lockstep_api::jobset::JobSet;
use lockstep_api::kueue::{ResourceFlavor, WaitForPodsReady, Workload, WorkloadPriorityClass};
use lockstep_api::labels::kueue as labels;

use super::{Need, QueuedJobs};
use crate::plan::Key;
use crate::plan::queued::{JobKey, Kind, Object, Waiting, known};

impl QueuedJobs {
    /// Notes a version of a Job.
    pub fn job_seen(&mut self, job: &Arc<Job>, now: Timestamp) {
        self.see_job(Object::Job(Arc::clone(job)), now);
    }

    /// Notes that a Job is gone.
    pub fn job_gone(&mut self, key: &Key, uid: &str, now: Timestamp) {
        self.lose_job(JobKey::new(Kind::Job, key.clone()), uid, now);
    }

    /// All Jobs that there are have been told.
    pub fn jobs_listed(&mut self) {
        self.is_listed.jobs = true;
    }

    /// Notes a version of a JobSet.
    pub fn jobset_seen(&mut self, jobset: &Arc<JobSet>, now: Timestamp) {
        self.see_job(Object::JobSet(Arc::clone(jobset)), now);
    }

    /// Notes that a JobSet is gone.
    pub fn jobset_gone(&mut self, key: &Key, uid: &str, now: Timestamp) {
        self.lose_job(JobKey::new(Kind::JobSet, key.clone()), uid, now);
    }

    /// All JobSets that there are have been told.
    pub fn jobsets_listed(&mut self) {
        self.is_listed.jobsets = true;
    }

    /// A listing of all Workloads begins.
    pub fn workloads_listing(&mut self) {
        self.workloads_listing += 1;
    }

    /// Notes a version of a Workload. One that is no job's is nobody's business here.
    pub fn workload_seen(&mut self, workload: &Arc<Workload>, now: Timestamp) {
        self.answered.remove(&Key::of(&workload.metadata));
        self.see_workload(Arc::clone(workload), now);
    }

    /// Notes that a Workload is gone.
    pub fn workload_gone(&mut self, key: &Key, uid: &str, now: Timestamp) {
        if self.answered.get(key).is_some_and(|(answered, _)| answered == uid) {
            self.answered.remove(key);
        }
        // An answer that tells of it may still be on its way, to any job that is in a pass.
        for job in &self.running {
            if let Some(pass) = self.entries.get_mut(job).and_then(|entry| entry.pass.as_mut()) {
                pass.gone.insert(uid.to_owned());
            }
        }
        if let Some(Some(job)) = self.known.workload_gone(key, uid) {
            self.lose_workload(job, now);
        }
    }

    /// The listing of all Workloads has ended: what was neither seen nor made since it began is
    /// gone. No watch will tell so: these are for the shell to tell others of.
    #[must_use = "nobody else knows that they are gone"]
    pub fn workloads_listed(&mut self, now: Timestamp) -> Vec<(Key, String)> {
        self.is_listed.workloads = true;
        let listing = self.workloads_listing;
        let missed = self.answered.iter().filter(|(_, (_, answered))| *answered < listing);
        let missed: Vec<(Key, String)> =
            missed.map(|(key, (uid, _))| (key.clone(), uid.clone())).collect();
        for (key, uid) in &missed {
            self.workload_gone(key, uid, now);
        }
        missed
    }

    /// Notes what holds for one Workload about waiting for its pods; none, and nobody waits for
    /// them. Until it is told, the settings hold.
    pub fn wait_seen(&mut self, workload: &Key, wait: Option<WaitForPodsReady>, now: Timestamp) {
        let known = self.known.waits.get(workload).unwrap_or(&self.settings.wait_for_pods_ready);
        if *known == wait {
            return;
        }
        self.known.waits.insert(workload.clone(), wait);
        let job = self.known.workload(workload).and_then(known::owner);
        self.wake(job, now);
    }

    /// Notes a ResourceFlavor.
    pub fn flavor_seen(&mut self, flavor: &ResourceFlavor, now: Timestamp) {
        if self.known.flavor_seen(flavor) {
            let name = flavor.metadata.name.clone().unwrap_or_default();
            self.met(&Need::Flavor(name), now);
        }
    }

    /// Notes that a ResourceFlavor is gone. What was started with it runs on.
    pub fn flavor_gone(&mut self, name: &str) {
        self.known.flavors.remove(name);
    }

    /// All ResourceFlavors that there are have been told.
    pub fn flavors_listed(&mut self) {
        self.is_listed.flavors = true;
    }

    /// Notes a WorkloadPriorityClass. Its value is for [`crate::plan::workload::Workloads`] to
    /// follow.
    pub fn priority_class_seen(&mut self, class: &WorkloadPriorityClass, now: Timestamp) {
        if !self.known.class_seen(class) {
            return;
        }
        let name = class.metadata.name.as_deref();
        let of_class =
            self.known.jobs().filter(|(_, job)| job.label(labels::PRIORITY_CLASS) == name);
        let of_class: Vec<JobKey> = of_class.map(|(key, _)| key.clone()).collect();
        self.wake(of_class, now);
    }

    /// Notes that a WorkloadPriorityClass is gone. Workloads keep what they have.
    pub fn priority_class_gone(&mut self, name: &str) {
        self.known.classes.remove(name);
    }

    /// All WorkloadPriorityClasses that there are have been told.
    pub fn priority_classes_listed(&mut self) {
        self.is_listed.classes = true;
    }

    /// Notes a PriorityClass of pods.
    pub fn pod_priority_class_seen(&mut self, class: &PriorityClass, now: Timestamp) {
        self.known.pod_class_seen(class);
        let name = class.metadata.name.clone().unwrap_or_default();
        self.met(&Need::PodClass(name), now);
    }

    /// Notes that a PriorityClass of pods is gone.
    pub fn pod_priority_class_gone(&mut self, name: &str) {
        self.known.pod_classes.remove(name);
    }

    /// All PriorityClasses of pods that there are have been told.
    pub fn pod_priority_classes_listed(&mut self) {
        self.is_listed.pod_classes = true;
    }

    /// Notes a namespace and its labels.
    pub fn namespace_seen(
        &mut self,
        name: &str,
        labels: &BTreeMap<String, String>,
        now: Timestamp,
    ) {
        if self.known.namespace_seen(name, labels) {
            for kind in [Kind::Job, Kind::JobSet] {
                let jobs: Vec<JobKey> = self.known.jobs_in(kind, name).cloned().collect();
                self.wake(jobs, now);
            }
        }
    }

    /// Notes that a namespace is gone.
    pub fn namespace_gone(&mut self, name: &str) {
        self.known.namespaces.remove(name);
    }

    /// All namespaces that there are have been told.
    pub fn namespaces_listed(&mut self) {
        self.is_listed.namespaces = true;
    }

    /// Takes in a version of a job. Those that belong to it look again when it is new, or when it
    /// waits in a queue now and did not.
    pub(super) fn see_job(&mut self, job: Object, now: Timestamp) {
        let key = job.key();
        let queue = |job: &Object| job.label(labels::QUEUE_NAME).map(str::to_owned);
        let known = self.known.job(&key).map(queue);
        let (seen, uid) = (queue(&job), job.uid().to_owned());
        let owner = known::controller(job.meta()).map(|owner| owner.uid.clone());
        if !self.known.job_seen(&key, job) {
            return;
        }
        if known != Some(seen) {
            let children: Vec<JobKey> = self.known.children(&uid).cloned().collect();
            self.wake(children, now);
            self.met(&Need::Owner(key.clone()), now);
        }
        self.wake_owner(owner, now);
        self.touch(key.clone(), now);
        if let Some(entry) = self.entries.get_mut(&key) {
            entry.vanished = 0;
        }
    }

    /// Whoever waits for its parts to stop looks again when one of them has changed.
    fn wake_owner(&mut self, uid: Option<String>, now: Timestamp) {
        let owner = uid.and_then(|uid| self.known.job_of_uid(&uid)).cloned();
        let waits = |owner: &JobKey| self.waiting(owner) == Some(&Waiting::PodsActive);
        let owner = owner.filter(waits);
        self.wake(owner, now);
    }

    fn lose_job(&mut self, key: JobKey, uid: &str, now: Timestamp) {
        if let Some(entry) = self.entries.get_mut(&key)
            && let Some(pass) = &mut entry.pass
        {
            pass.gone.insert(uid.to_owned());
        }
        let owner = self.known.job(&key).and_then(|job| known::controller(job.meta()));
        let owner = owner.map(|owner| owner.uid.clone());
        if self.known.job_gone(&key, uid) {
            self.wake_owner(owner, now);
            self.touch(key.clone(), now);
            self.drop_if_gone(&key);
        }
        // Workloads that outlive it are to be ended.
        let orphans = self.known.orphans_of(uid);
        self.wake(orphans, now);
    }
}
