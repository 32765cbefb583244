//! What became of the steps of a pass.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::{batch::v1::Job, core::v1::Service};
use lockstep_api::jobset::JobSet;

use super::{JobSets, route};
use crate::engine::{Failure, Stale, after};
use crate::plan::jobset::JobRef;
use crate::plan::{Event, Key, Refusal, RefusalKind};

impl JobSets {
    /// The status was written: this is the set now.
    pub fn status_written(&mut self, key: &Key, jobset: &JobSet) -> Option<Event> {
        let entry = self.entries.get_mut(key)?;
        if Some(entry.view.uid()) != jobset.metadata.uid.as_deref() {
            return None;
        }
        entry.view.jobset_seen(jobset.clone());
        let is_kept = jobset.status.as_ref().is_some_and(|status| status.lockstep.is_some());
        let is_lost = !is_kept && entry.pass.as_ref().is_some_and(|pass| pass.writes_beyond);
        if !(is_lost && entry.view.keeps_beyond()) {
            return None;
        }
        entry.view.drop_beyond();
        Some(Event::beyond_not_kept())
    }

    /// An annotation was set: this is the set now.
    pub fn annotated(&mut self, key: &Key, jobset: &JobSet) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        if Some(entry.view.uid()) == jobset.metadata.uid.as_deref() {
            entry.view.jobset_seen(jobset.clone());
        }
    }

    /// A Job was created, patched, or is being deleted: this is it now.
    pub fn job_written(&mut self, key: &Key, job: Job, now: Timestamp) {
        let uid = job.metadata.uid.as_deref().unwrap_or_default();
        let pass = self.entries.get(key).and_then(|entry| entry.pass.as_ref());
        if pass.is_some_and(|pass| pass.course.gone.contains(uid)) {
            return;
        }
        self.routes.answered(uid);
        self.see_job(&Arc::new(job), now);
    }

    /// A Job was deleted, and nothing is left of it.
    pub fn job_deleted(&mut self, job: &JobRef, now: Timestamp) {
        let key = Key { namespace: job.namespace.clone(), name: job.name.clone() };
        self.job_gone(&key, &job.uid, now);
    }

    /// A Job could not be created. If one of that name is there already, `found` is that one. Says
    /// whether that is a failure: a Job of the set that nobody here knew of is none.
    pub fn job_not_created(
        &mut self,
        key: &Key,
        refusal: &Refusal,
        found: Option<Job>,
        now: Timestamp,
    ) -> bool {
        let Some(entry) = self.entries.get_mut(key) else { return false };
        let is_ours = found.as_ref().and_then(route::owner) == Some(entry.view.uid());
        match (refusal.kind, found) {
            (RefusalKind::AlreadyExists, Some(job)) if is_ours => {
                self.job_written(key, job, now);
                false
            }
            (RefusalKind::NamespaceTerminating, _) => {
                entry.fail(Failure::Silent);
                false
            }
            _ => {
                entry.fail(Failure::Error);
                true
            }
        }
    }

    /// A Job could not be changed or deleted. One that is gone is no failure. Says what users
    /// should know.
    pub fn job_not_written(
        &mut self,
        key: &Key,
        job: &JobRef,
        refusal: &Refusal,
        now: Timestamp,
    ) -> Option<Event> {
        if refusal.kind == RefusalKind::NotFound {
            self.job_deleted(job, now);
            return None;
        }
        let is_outdated = refusal.kind == RefusalKind::Conflict;
        let failure = if is_outdated { Failure::Outdated } else { Failure::Error };
        self.entries.get_mut(key)?.fail(failure);
        refused(refusal)
    }

    /// The Service was created.
    pub fn service_created(&mut self, key: &Key, service: &Service) {
        let uid = service.metadata.uid.as_deref().unwrap_or_default();
        let pass = self.entries.get(key).and_then(|entry| entry.pass.as_ref());
        if !pass.is_some_and(|pass| pass.course.gone.contains(uid)) {
            self.routes.service_seen(&service.metadata);
        }
    }

    /// The Service could not be created. If there is one of that name already, `found` is that one:
    /// it is left as it is.
    pub fn service_not_created(
        &mut self,
        key: &Key,
        refusal: &Refusal,
        found: Option<&Service>,
    ) -> Option<Event> {
        if let Some(service) = found {
            self.service_created(key, service);
            return None;
        }
        self.fail_loudly(key, refusal).then(|| Event::service_not_created(&refusal.message))
    }

    /// There is a volume claim of this name, whoever has made it.
    pub fn claim_created(&mut self, key: &Key, name: &str) {
        if let Some(entry) = self.entries.get_mut(key) {
            entry.view.claim_seen(name);
        }
    }

    /// Volume claims could not be created. What users should know is one event, a line for each.
    pub fn claims_not_created(&mut self, key: &Key, refusals: &[Refusal]) -> Option<Event> {
        let mut told = Vec::new();
        for refusal in refusals {
            if self.fail_loudly(key, refusal) {
                told.push(refusal.message.as_str());
            }
        }
        (!told.is_empty()).then(|| Event::claims_not_created(&told.join("\n")))
    }

    /// Any other step failed: the writing of the status, the deletion of the set. Says what users
    /// should know.
    pub fn failed(&mut self, key: &Key, refusal: &Refusal, now: Timestamp) -> Option<Event> {
        let delay = self.options.api_backoff_base;
        let entry = self.entries.get_mut(key)?;
        match refusal.kind {
            RefusalKind::Conflict => {
                // What we know of the set is old. To decide again on it would be refused again.
                let version = entry.pass.as_ref().map_or(0, |pass| pass.course.version);
                entry.stale = Some(Stale { version, until: after(now, delay) });
                entry.fail(Failure::Outdated);
            }
            // It will be heard of.
            RefusalKind::NotFound => entry.fail(Failure::Outdated),
            RefusalKind::AlreadyExists
            | RefusalKind::NamespaceTerminating
            | RefusalKind::Refused
            | RefusalKind::Other => entry.fail(Failure::Error),
        }
        refused(refusal)
    }

    /// Notes a failure, and says whether users should know.
    fn fail_loudly(&mut self, key: &Key, refusal: &Refusal) -> bool {
        let is_silent = refusal.kind == RefusalKind::NamespaceTerminating;
        if let Some(entry) = self.entries.get_mut(key) {
            entry.fail(if is_silent { Failure::Silent } else { Failure::Error });
        }
        !is_silent
    }
}

/// What users should know of a refusal that will come again: that the API does not want this.
fn refused(refusal: &Refusal) -> Option<Event> {
    (refusal.kind == RefusalKind::Refused).then(|| Event::not_written(&refusal.message))
}
