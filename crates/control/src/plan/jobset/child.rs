//! One Job of a JobSet: what matters of it, and to which attempt it belongs.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::batch::v1::Job;
use lockstep_api::{
    Gates,
    jobset::{JobSet, JobSetStatus},
    labels::jobset::{JOB_INDEX, JOB_RESTART_ATTEMPT, REPLICATED_JOB_NAME, RESTART_ATTEMPT},
};

use super::{JobRef, group};

/// How a Job has ended, if it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It has not.
    Running,
    /// It is complete.
    Complete,
    /// It has failed.
    Failed {
        /// The reason of its condition.
        reason: String,
        /// The message of its condition.
        message: String,
        /// When, as its condition says.
        at: Option<Timestamp>,
    },
}

/// Where a Job belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Bucket {
    /// To an attempt that is over.
    Previous,
    /// To this attempt, and it has not ended.
    Active,
    /// To this attempt, and it has failed.
    Failed,
    /// To this attempt, and it is complete.
    Successful,
}

/// A Job of the set.
#[derive(Clone, Debug, PartialEq)]
pub struct Child {
    /// The Job as it was seen last.
    pub job: Arc<Job>,
    /// How it has ended.
    pub outcome: Outcome,
    /// Whether as many pods are ready or have succeeded as there should be.
    pub is_ready: bool,
    /// Whether its own time to live has taken it away after it ended: it still counts.
    pub is_gone: bool,
    /// Whether it has failed and was left so, which is all that is known of it.
    pub is_left: bool,
}

impl Child {
    /// What matters of a Job.
    pub fn of(job: Arc<Job>) -> Self {
        let (outcome, is_ready) = (outcome(&job), is_ready(&job));
        Self { job, outcome, is_ready, is_gone: false, is_left: false }
    }

    /// The Job's name.
    pub fn name(&self) -> &str {
        self.job.metadata.name.as_deref().unwrap_or_default()
    }

    /// The name of its replicated job.
    pub fn group(&self) -> Option<&str> {
        self.label(REPLICATED_JOB_NAME)
    }

    /// Its index within the replicated job.
    pub fn index(&self) -> Option<usize> {
        self.label(JOB_INDEX)?.parse().ok()
    }

    /// Whether it is suspended.
    pub fn is_suspended(&self) -> bool {
        self.job.spec.as_ref().and_then(|spec| spec.suspend) == Some(true)
    }

    /// Whether it has pods that run.
    pub fn is_active(&self) -> bool {
        self.job.status.as_ref().and_then(|status| status.active).unwrap_or_default() > 0
    }

    /// Whether it is being deleted.
    pub fn is_deleting(&self) -> bool {
        self.job.metadata.deletion_timestamp.is_some()
    }

    /// Whether it has ended, and goes away by itself.
    pub(super) fn is_fleeting(&self) -> bool {
        self.is_gone || (self.outcome != Outcome::Running && self.time_to_live().is_some())
    }

    /// Whether it has ended, and its time to live is over at `now`.
    pub(super) fn is_expired(&self, now: Timestamp) -> bool {
        let status = self.job.status.as_ref();
        let mut conditions =
            status.into_iter().flat_map(|status| status.conditions.iter().flatten());
        let ended = conditions
            .find(|one| one.status == "True" && (one.type_ == "Complete" || one.type_ == "Failed"))
            .and_then(|one| one.last_transition_time.as_ref());
        let (Some(ended), Some(seconds)) = (ended, self.time_to_live()) else { return false };
        let gone = self.job.metadata.deletion_timestamp.as_ref().map_or(now, |time| time.0);
        gone.duration_since(ended.0) >= SignedDuration::from_secs(seconds.into())
    }

    fn time_to_live(&self) -> Option<i32> {
        self.job.spec.as_ref()?.ttl_seconds_after_finished
    }

    /// The Job, for requests.
    pub fn reference(&self) -> JobRef {
        let meta = &self.job.metadata;
        JobRef {
            namespace: meta.namespace.clone().unwrap_or_default(),
            name: self.name().to_owned(),
            uid: meta.uid.clone().unwrap_or_default(),
        }
    }

    /// Where it belongs, or why that cannot be said.
    pub(super) fn bucket(
        &self,
        jobset: &JobSet,
        status: &JobSetStatus,
        gates: Gates,
    ) -> Result<Bucket, String> {
        if self.number(RESTART_ATTEMPT)? < i64::from(status.restarts) {
            return Ok(Bucket::Previous);
        }
        if gates.restart_job && self.is_replaced(jobset, status)? {
            return Ok(Bucket::Previous);
        }
        Ok(match self.outcome {
            Outcome::Running => Bucket::Active,
            Outcome::Complete => Bucket::Successful,
            Outcome::Failed { .. } => Bucket::Failed,
        })
    }

    /// Whether this Job alone was restarted since it was made.
    fn is_replaced(&self, jobset: &JobSet, status: &JobSetStatus) -> Result<bool, String> {
        let name = self.group().ok_or_else(|| self.missing(REPLICATED_JOB_NAME))?;
        let index = usize::try_from(self.number(JOB_INDEX)?)
            .map_err(|_| format!("job {}: label {JOB_INDEX} is negative", self.name()))?;
        // A Job from before there was this label stays.
        if self.label(JOB_RESTART_ATTEMPT).is_none() {
            return Ok(false);
        }
        let attempt = self.number(JOB_RESTART_ATTEMPT)?;
        match group::restarts_of(jobset, status, name, index) {
            Some(restarts) => Ok(attempt < i64::from(restarts)),
            None => {
                Err(format!("job {}: index {index} is none of replicated job {name}", self.name()))
            }
        }
    }

    fn label(&self, key: &str) -> Option<&str> {
        self.job.metadata.labels.as_ref()?.get(key).map(String::as_str)
    }

    fn number(&self, key: &str) -> Result<i64, String> {
        let text = self.label(key).ok_or_else(|| self.missing(key))?;
        text.parse().map_err(|_| {
            format!("job {}: label {key} must be a number, and is {text:?}", self.name())
        })
    }

    fn missing(&self, key: &str) -> String {
        format!("job {}: label {key} is missing", self.name())
    }
}

/// The first condition that ends a Job says how it ended.
fn outcome(job: &Job) -> Outcome {
    let conditions = job.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let mut ended = conditions.filter(|one| one.status == "True");
    let found = ended.find(|one| one.type_ == "Complete" || one.type_ == "Failed");
    match found {
        None => Outcome::Running,
        Some(one) if one.type_ == "Complete" => Outcome::Complete,
        Some(one) => Outcome::Failed {
            reason: one.reason.clone().unwrap_or_default(),
            message: one.message.clone().unwrap_or_default(),
            at: one.last_transition_time.as_ref().map(|time| time.0),
        },
    }
}

fn is_ready(job: &Job) -> bool {
    let spec = job.spec.as_ref();
    let parallelism = spec.and_then(|spec| spec.parallelism).unwrap_or(1);
    let completions = spec.and_then(|spec| spec.completions).unwrap_or(parallelism);
    let status = job.status.as_ref();
    let succeeded = status.and_then(|status| status.succeeded).unwrap_or_default();
    let ready = status.and_then(|status| status.ready).unwrap_or_default();
    succeeded.saturating_add(ready) >= parallelism.min(completions)
}
