//! What Jobs and JobSets have in common, as far as queues are concerned.

use std::sync::Arc;

use k8s_openapi::api::{batch::v1::Job, core::v1::PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use lockstep_api::jobset::JobSet;
use lockstep_api::kueue::{PodSet, ReclaimablePod};

use super::{JobKey, Kind, known, of_job, of_jobset};
use crate::plan::Key;

/// A job, as it was seen.
#[derive(Clone, Debug, PartialEq)]
pub enum Object {
    /// A Job.
    Job(Arc<Job>),
    /// A JobSet.
    JobSet(Arc<JobSet>),
}

/// How a job has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct End<'a> {
    pub(super) has_succeeded: bool,
    pub(super) message: &'a str,
}

impl Object {
    /// What kind of job it is.
    pub const fn kind(&self) -> Kind {
        match self {
            Self::Job(_) => Kind::Job,
            Self::JobSet(_) => Kind::JobSet,
        }
    }

    /// Its metadata.
    pub fn meta(&self) -> &ObjectMeta {
        match self {
            Self::Job(job) => &job.metadata,
            Self::JobSet(jobset) => &jobset.metadata,
        }
    }

    /// Which job it is.
    pub fn key(&self) -> JobKey {
        JobKey::new(self.kind(), Key::of(self.meta()))
    }

    /// Its uid.
    pub fn uid(&self) -> &str {
        known::uid(self.meta())
    }

    pub(super) fn label(&self, key: &str) -> Option<&str> {
        self.meta().labels.as_ref()?.get(key).map(String::as_str).filter(|value| !value.is_empty())
    }

    pub(super) fn annotation(&self, key: &str) -> Option<&str> {
        self.meta().annotations.as_ref()?.get(key).map(String::as_str)
    }

    /// Whether it stands still, with its templates as users wrote them. A Job that is being stopped
    /// does not count until that is over.
    pub(super) fn is_suspended(&self) -> bool {
        match self {
            Self::Job(job) => of_job::is_suspended(job),
            Self::JobSet(jobset) => jobset.spec.suspend == Some(true),
        }
    }

    /// How it has ended, if it has.
    pub(super) fn finished(&self) -> Option<End<'_>> {
        match self {
            Self::Job(job) => of_job::finished(job),
            Self::JobSet(jobset) => of_jobset::finished(jobset),
        }
    }

    /// Whether pods of it run, as its own status has it.
    pub(super) fn reports_active(&self) -> bool {
        match self {
            Self::Job(job) => of_job::is_active(job),
            Self::JobSet(jobset) => of_jobset::is_active(jobset),
        }
    }

    /// The groups of equal pods it consists of.
    pub(super) fn pod_sets(&self) -> Vec<PodSet> {
        match self {
            Self::Job(job) => vec![of_job::pod_set(job)],
            Self::JobSet(jobset) => of_jobset::pod_sets(jobset),
        }
    }

    /// The templates of its pods, in the order of its pod sets.
    pub(super) fn templates(&self) -> Vec<Option<&PodTemplateSpec>> {
        match self {
            Self::Job(job) => vec![job.spec.as_ref().map(|spec| &spec.template)],
            Self::JobSet(jobset) => of_jobset::templates(jobset).collect(),
        }
    }

    /// How many pods of each set are not needed any more.
    pub(super) fn reclaimable(&self) -> Vec<ReclaimablePod> {
        match self {
            Self::Job(job) => of_job::reclaimable(job),
            Self::JobSet(jobset) => of_jobset::reclaimable(jobset),
        }
    }
}
