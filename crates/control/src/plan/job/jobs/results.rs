//! What became of the steps of a pass.

use std::collections::BTreeSet;

use jiff::Timestamp;
use k8s_openapi::api::{batch::v1::Job, core::v1::Pod};

use crate::engine::{Failure, Stale, after};
use crate::plan::job::{
    Metric, NewPod, PodRef,
    jobs::{Entry, Jobs, route},
    memory::Stage,
    seen,
};
use crate::plan::{Event, Key, Refusal, RefusalKind};

impl Jobs {
    /// The status was written: this is the Job now.
    pub fn status_written(&mut self, key: &Key, job: &Job) {
        if let Some(entry) = self.entry_of(key, job.metadata.uid.as_deref()) {
            entry.view.observe_job(job);
            // A pass over it had all that there is to know about the version before.
            let version = seen::version(&job.metadata);
            (entry.doubt.told, entry.doubt.listed) = (version, version);
        }
    }

    /// A pod was created.
    pub fn created(&mut self, key: &Key, pod: &Pod) -> Event {
        self.absorb(key, pod);
        self.count_creation(key, "succeeded");
        Event::pod_created(pod.metadata.name.as_deref().unwrap_or_default())
    }

    /// A pod could not be created. If a pod of that name is there already, `found` is that pod, as
    /// the API has it now (nothing if it has gone meanwhile).
    pub fn create_failed(
        &mut self,
        key: &Key,
        wanted: &NewPod,
        refusal: &Refusal,
        found: Option<&Pod>,
    ) -> Option<Event> {
        match refusal.kind {
            RefusalKind::AlreadyExists => {
                let entry = self.entries.get_mut(key)?;
                let ours = found.filter(|pod| {
                    let owner = seen::controller(&pod.metadata);
                    owner.is_some_and(|owner| owner.uid == entry.view.uid())
                });
                if let Some(pod) = ours {
                    // We have made it before, and did not know.
                    self.absorb(key, pod);
                } else if found.is_some() {
                    entry.memory.names_taken.insert(wanted.name.clone());
                    entry.view.touch();
                }
                None
            }
            RefusalKind::NamespaceTerminating => {
                self.entries.get_mut(key)?.fail(Failure::Silent, Some(Stage::Pods));
                None
            }
            RefusalKind::NotFound
            | RefusalKind::Conflict
            | RefusalKind::Refused
            | RefusalKind::Other => {
                let entry = self.entries.get_mut(key)?;
                entry.fail(Failure::Error, Some(Stage::Pods));
                entry.doubt.is_pod_unknown |= refusal.kind == RefusalKind::Other;
                self.count_creation(key, "failed");
                Some(Event::pod_not_created(refusal))
            }
        }
    }

    /// A pod was patched: this is it now.
    pub fn patched(&mut self, key: &Key, pod: &Pod) {
        self.absorb(key, pod);
    }

    /// A pod could not be patched.
    pub fn patch_failed(&mut self, key: &Key, pod: &PodRef, refusal: &Refusal) -> Option<Event> {
        if refusal.kind == RefusalKind::NotFound {
            self.forget(key, pod);
            return None;
        }
        let entry = self.entries.get_mut(key)?;
        if refusal.kind == RefusalKind::Conflict {
            entry.fail(Failure::Outdated, Some(Stage::Finalizers));
            return None;
        }
        entry.fail(Failure::Error, Some(Stage::Finalizers));
        Some(Event::pod_not_patched(&pod.name, refusal))
    }

    /// A pod was deleted; `answer` is what the API answered, if that was the pod.
    pub fn deleted(&mut self, key: &Key, pod: &PodRef, answer: Option<&Pod>) -> Event {
        if let Some(answer) = answer {
            self.absorb(key, answer);
        }
        if let Some(entry) = self.entries.get_mut(key) {
            entry.view.mark_deleted(&pod.name, &pod.uid);
        }
        Event::pod_deleted(&pod.name)
    }

    /// A pod could not be deleted.
    pub fn delete_failed(&mut self, key: &Key, pod: &PodRef, refusal: &Refusal) -> Option<Event> {
        if refusal.kind == RefusalKind::NotFound {
            self.forget(key, pod);
            return None;
        }
        let entry = self.entries.get_mut(key)?;
        if refusal.kind == RefusalKind::Conflict {
            // It is looked at again before anybody need know.
            entry.fail(Failure::Outdated, Some(Stage::Pods));
            return None;
        }
        entry.fail(Failure::Error, Some(Stage::Pods));
        Some(Event::pod_not_deleted(refusal))
    }

    /// All pods of the Job's namespace, read from the API itself because of these uids. One that
    /// is not among them is gone, whatever a watch that is behind may still tell of it.
    pub fn relisted(&mut self, key: &Key, uids: &[String], pods: &[Pod]) {
        let listed: BTreeSet<&str> =
            pods.iter().filter_map(|pod| pod.metadata.uid.as_deref()).collect();
        for uid in uids.iter().filter(|uid| !listed.contains(uid.as_str())) {
            self.routes.buried.insert(uid.clone());
            let view = self.entries.get(key).map(|entry| &entry.view);
            if let Some(pod) = view.and_then(|view| view.reference_of(uid)) {
                self.drop_pod(&pod);
            }
        }
        for pod in pods {
            if self.entries.get(key).is_some_and(|entry| entry.view.may_take(pod)) {
                self.absorb(key, pod);
            }
        }
        if let Some(entry) = self.entries.get_mut(key) {
            entry.view.confirm_gone(uids, &listed);
            entry.doubt.is_pod_unknown = false;
            if let Some(pass) = &entry.pass {
                entry.doubt.listed = entry.doubt.listed.max(pass.doubt.told);
            }
            let asked: BTreeSet<&String> = uids.iter().collect();
            entry.memory.doubtful.retain(|uid| !asked.contains(uid));
        }
    }

    /// Any other step failed: the writing of the status, a look at the Job itself, a list.
    pub fn failed(&mut self, key: &Key, refusal: &Refusal, now: Timestamp) {
        let delay = self.options.api_backoff_base;
        let Some(entry) = self.entries.get_mut(key) else { return };
        entry.fail(Failure::Error, None);
        if refusal.kind == RefusalKind::Conflict {
            // What we know of the Job is old. To decide again on it would be refused again.
            let version = entry.pass.as_ref().map_or(0, |pass| pass.course.version);
            entry.stale = Some(Stale { version, until: after(now, delay) });
        }
    }

    /// Notes the answer to a request of ours, before any watch brings it.
    fn absorb(&mut self, key: &Key, pod: &Pod) {
        let uid = pod.metadata.uid.as_deref().unwrap_or_default();
        let Some(entry) = self.entries.get(key) else { return };
        if entry.pass.as_ref().is_some_and(|pass| pass.course.gone.contains(uid)) {
            return;
        }
        self.routes.answered(route::pod_key(pod));
        self.see(pod);
    }

    fn forget(&mut self, key: &Key, pod: &PodRef) {
        if let Some(entry) = self.entries.get_mut(key)
            && entry.view.forget_pod(&pod.name, &pod.uid)
        {
            self.routes.buried.insert(pod.uid.clone());
        }
    }

    fn entry_of(&mut self, key: &Key, uid: Option<&str>) -> Option<&mut Entry> {
        self.entries.get_mut(key).filter(|entry| Some(entry.view.uid()) == uid)
    }

    fn count_creation(&mut self, key: &Key, status: &str) {
        let pass = self.entries.get(key).and_then(|entry| entry.pass.as_ref());
        let reason = pass.map(|pass| pass.creation).unwrap_or_default();
        self.facts.push(Metric::PodsCreated.fact(1, &[reason.as_str(), status]));
    }
}
