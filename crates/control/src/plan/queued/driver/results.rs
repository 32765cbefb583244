//! What became of the steps of a pass.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use lockstep_api::jobset::JobSet;
use lockstep_api::kueue::Workload;

use super::QueuedJobs;
use crate::engine::{Failure, Stale, after};
use crate::plan::queued::known::{self, controller};
use crate::plan::queued::{JobKey, Object};
use crate::plan::{Event, Key, Refusal, RefusalKind};

impl QueuedJobs {
    /// A Workload was created, patched, or its status was written: this is it now.
    pub fn workload_written(&mut self, key: &JobKey, workload: Workload, now: Timestamp) {
        let uid = known::uid(&workload.metadata).to_owned();
        if self.is_gone(key, &uid) {
            return;
        }
        let name = Key::of(&workload.metadata);
        let is_told =
            self.known.workload(&name).is_some_and(|one| known::uid(&one.metadata) == uid)
                && !self.answered.contains_key(&name);
        if !is_told {
            self.answered.insert(name, (uid, self.workloads_listing));
        }
        self.see_workload(Arc::new(workload), now);
    }

    /// A Workload was written by others of this process: this is it now. One that has gone stays
    /// gone, and one of which no watch has told is still one of those.
    pub fn workload_written_elsewhere(&mut self, workload: &Arc<Workload>, now: Timestamp) {
        let known = self.known.workload(&Key::of(&workload.metadata));
        if known.is_some_and(|known| known.metadata.uid == workload.metadata.uid) {
            self.see_workload(Arc::clone(workload), now);
        }
    }

    /// A Workload was deleted, and nothing is left of it.
    pub fn workload_deleted(&mut self, workload: &Key, uid: &str, now: Timestamp) {
        self.workload_gone(workload, uid, now);
    }

    /// A Workload could not be created. If one of that name is there already, `found` is that one:
    /// one of the job that nobody here knew of is no failure. Says what users should know.
    pub fn workload_not_created(
        &mut self,
        key: &JobKey,
        refusal: &Refusal,
        found: Option<Workload>,
        now: Timestamp,
    ) -> Option<Event> {
        let uid = self.known.job(key).map(|job| job.uid().to_owned());
        let owner = found.as_ref().and_then(|found| controller(&found.metadata));
        let is_ours = owner.is_some() && owner.map(|owner| &owner.uid) == uid.as_ref();
        match (refusal.kind, found) {
            (RefusalKind::AlreadyExists, Some(workload)) if is_ours => {
                self.workload_written(key, workload, now);
                None
            }
            (RefusalKind::NamespaceTerminating, _) => {
                self.fail(key, Failure::Silent);
                None
            }
            _ => {
                self.fail(key, Failure::Error);
                Some(Event::workload_not_created(&refusal.message))
            }
        }
    }

    /// The Job was patched: this is it now.
    pub fn job_written(&mut self, key: &JobKey, job: Job, now: Timestamp) {
        self.object_written(key, Object::Job(Arc::new(job)), now);
    }

    /// The JobSet was patched: this is it now.
    pub fn jobset_written(&mut self, key: &JobKey, jobset: JobSet, now: Timestamp) {
        self.object_written(key, Object::JobSet(Arc::new(jobset)), now);
    }

    /// Any other step failed. Says what users should know.
    pub fn refused(&mut self, key: &JobKey, refusal: &Refusal, now: Timestamp) -> Option<Event> {
        let delay = self.settings.api_backoff_base;
        let entry = self.entries.get_mut(key)?;
        match refusal.kind {
            RefusalKind::Conflict => {
                // What is known is old. To decide again on it would be refused again.
                let version = entry.pass.as_ref().map_or(entry.revision, |pass| pass.revision);
                entry.stale = Some(Stale { version, until: after(now, delay) });
                entry.fail(Failure::Outdated);
            }
            // It will be heard of.
            RefusalKind::NotFound => entry.fail(Failure::Outdated),
            RefusalKind::NamespaceTerminating => entry.fail(Failure::Silent),
            RefusalKind::AlreadyExists | RefusalKind::Refused | RefusalKind::Other => {
                entry.fail(Failure::Error);
            }
        }
        (refusal.kind == RefusalKind::Refused).then(|| Event::not_written(&refusal.message))
    }

    fn object_written(&mut self, key: &JobKey, job: Object, now: Timestamp) {
        if !self.is_gone(key, job.uid()) {
            self.see_job(job, now);
        }
    }

    /// Whether an object has gone while the pass ran that tells of it.
    fn is_gone(&self, key: &JobKey, uid: &str) -> bool {
        let pass = self.entries.get(key).and_then(|entry| entry.pass.as_ref());
        pass.is_some_and(|pass| pass.gone.contains(uid))
    }

    fn fail(&mut self, key: &JobKey, failure: Failure) {
        if let Some(entry) = self.entries.get_mut(key) {
            entry.fail(failure);
        }
    }
}

impl Event {
    /// The Workload of a job could not be created.
    pub(crate) fn workload_not_created(why: &str) -> Self {
        Self::warning("FailedCreateWorkload", format!("trying again: {why}"))
    }
}
