//! Which job.

use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use lockstep_api::jobset;

use crate::plan::Key;

/// What kind of object a pass is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A Job of batch/v1.
    Job,
    /// A JobSet.
    JobSet,
    /// A Workload that was some job's and is nobody's now. Steps concern nothing but itself.
    Orphan,
}

impl Kind {
    /// The name of the kind, as manifests have it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Job => "Job",
            Self::JobSet => jobset::KIND,
            Self::Orphan => "Workload",
        }
    }

    /// The API group of the kind.
    pub const fn group(self) -> &'static str {
        match self {
            Self::Job => "batch",
            Self::JobSet => jobset::GROUP,
            Self::Orphan => lockstep_api::kueue::GROUP,
        }
    }

    /// Group and version of the kind.
    pub const fn api_version(self) -> &'static str {
        match self {
            Self::Job => "batch/v1",
            Self::JobSet => jobset::API_VERSION,
            Self::Orphan => lockstep_api::kueue::API_VERSION,
        }
    }
}

/// A job, by its kind and name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct JobKey {
    /// What kind of job.
    pub kind: Kind,
    /// Its namespace and name.
    pub key: Key,
}

impl JobKey {
    /// The job of this kind, namespace and name.
    pub const fn new(kind: Kind, key: Key) -> Self {
        Self { kind, key }
    }

    /// The job that an object of this namespace names as its owner, if it is of a kind that is
    /// known here. Versions of an API group are one kind.
    pub(super) fn of_owner(owner: &OwnerReference, namespace: &str) -> Option<Self> {
        let group = owner.api_version.split_once('/').map_or("", |(group, _)| group);
        let kinds = [Kind::Job, Kind::JobSet];
        let kind =
            kinds.into_iter().find(|kind| kind.as_str() == owner.kind && kind.group() == group)?;
        let key = Key { namespace: namespace.to_owned(), name: owner.name.clone() };
        Some(Self { kind, key })
    }
}

impl fmt::Display for JobKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind.as_str(), self.key)
    }
}
