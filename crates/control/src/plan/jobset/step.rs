//! What a plan is made of.

use jiff::Timestamp;
use k8s_openapi::api::{
    batch::v1::Job,
    core::v1::{PersistentVolumeClaim, Service},
};
use lockstep_api::jobset::{InPlaceRestart, JobSetStatus};
use serde_json::Value;

use super::Waiting;
use crate::plan::Event;

/// The outcome of one planning pass over one JobSet.
#[derive(Clone, Debug, Default, PartialEq)]
#[must_use = "a plan does nothing until a shell carries it out"]
pub struct Plan {
    /// What to do, in this order. A step that fails ends the pass: nothing after it is done.
    pub steps: Vec<Step>,
    /// When to plan again even if nothing happens until then.
    pub next: Option<Timestamp>,
    /// Why there is nothing to do; always there when there are no steps.
    pub waiting: Option<Waiting>,
}

impl Plan {
    /// A plan that only waits.
    pub fn wait(waiting: Waiting) -> Self {
        Self { waiting: Some(waiting), ..Self::default() }
    }
}

/// One thing for a shell to carry out. Carrying it out twice is harmless.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Write the status of the set.
    WriteStatus(Box<StatusWrite>),
    /// Delete these Jobs, their pods first.
    DeleteJobs(Vec<JobRef>),
    /// Delete the set itself, what it owns first.
    DeleteJobSet {
        /// Its uid.
        uid: String,
    },
    /// Create the headless Service. One that is there already is left as it is. A failure is told
    /// of as [`Event::service_not_created`].
    CreateService(Box<Service>),
    /// Create these volume claims, those of one policy together. Those that are there already are
    /// left as they are. A failure keeps the rest of its policy from being created, but no other;
    /// all failures are told of as one [`Event::claims_not_created`].
    CreateClaims(Vec<Vec<PersistentVolumeClaim>>),
    /// Give these Jobs another size: send a merge patch of `spec.parallelism` and
    /// `spec.completions` for each.
    ResizeJobs(Vec<Resize>),
    /// Set an annotation of the set: send a merge patch.
    Annotate(Annotation),
    /// Put the ticket for agents of a generation into the Secret of the set, unless it is there.
    PutTicket(Ticket),
    /// Create these Jobs. A failure does not keep the others from being created, and is told of as
    /// [`Event::jobs_not_created`].
    CreateJobs(Vec<Job>),
    /// Suspend these Jobs: send `{"spec": {"suspend": true}}` for each.
    SuspendJobs(Vec<JobRef>),
    /// Take `status.startTime` away from these Jobs: their templates cannot change before.
    ClearStartTimes(Vec<JobRef>),
    /// Resume these Jobs.
    ResumeJobs(Vec<Resumption>),
    /// Record an event on the set.
    Emit(Event),
    /// Count something.
    Note(Fact),
}

/// A whole status to write.
#[derive(Clone, Debug, PartialEq)]
pub struct StatusWrite {
    /// The uid of the set.
    pub uid: String,
    /// The version of the set the decision was made on: the write must fail if it has changed, or
    /// a restart would be counted twice.
    pub resource_version: String,
    /// The status.
    pub status: JobSetStatus,
}

/// An annotation to set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Annotation {
    /// The uid of the set.
    pub uid: String,
    /// The version of the set the decision was made on.
    pub resource_version: String,
    /// Its key.
    pub key: String,
    /// Its value.
    pub value: String,
}

/// What lets the agents of a set's workers speak to whoever leads them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ticket {
    /// The uid of the set.
    pub uid: String,
    /// The generation of the pods that it is for.
    pub generation: u32,
}

/// A Job, and exactly that one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct JobRef {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
}

/// A Job to resume.
#[derive(Clone, Debug, PartialEq)]
pub struct Resumption {
    /// The Job.
    pub job: JobRef,
    /// The merge patch to send, with the version it was made for.
    pub patch: Value,
}

/// A Job that gets another size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resize {
    /// The Job.
    pub job: JobRef,
    /// Its parallelism and completions.
    pub size: i32,
}

/// The controller that reports events of JobSets, with the action `Reconciling`.
pub const CONTROLLER: &str = "jobset";

impl Event {
    /// Jobs could not be created: each with the reason.
    pub fn jobs_not_created(failures: &[(String, String)]) -> Self {
        let texts: Vec<String> = failures
            .iter()
            .map(|(job, why)| format!("job {job:?} creation failed with error: {why}"))
            .collect();
        Self::warning("JobCreationFailed", texts.join("\n"))
    }

    /// The cluster has the CustomResourceDefinition of another version or maker.
    pub fn beyond_not_kept() -> Self {
        let message = "the JobSet CustomResourceDefinition of this cluster drops status.lockstep: \
                       restart limits of single rules have no effect, and finished Jobs with a \
                       time to live run again when a controller was away. Apply the definition \
                       that comes with lockstep";
        Self::warning("StatusFieldDropped", message)
    }

    /// All workers were restarted in place.
    pub fn restarted_in_place(restart: &InPlaceRestart, workers: u32) -> Self {
        let InPlaceRestart { epoch, worker, cause, .. } = restart;
        let millis = restart.total_micros() / 1000;
        let message = format!(
            "restarted {workers} workers in place in {millis} ms, epoch {epoch}: {worker} {cause}"
        );
        Self::warning("InPlaceRestart", message)
    }

    /// The set cannot be worked on.
    pub fn invalid(why: &str) -> Self {
        Self::warning("InvalidJobSet", format!("the JobSet cannot be worked on: {why}"))
    }

    /// The API does not take what is to be written.
    pub fn not_written(why: &str) -> Self {
        Self::warning("UpdateRefused", format!("trying again: {why}"))
    }

    /// A volume claim could not be created.
    pub fn claims_not_created(why: &str) -> Self {
        Self::warning("PVCCreationFailed", why)
    }

    /// The headless Service could not be created.
    pub fn service_not_created(why: &str) -> Self {
        Self::warning("HeadlessServiceCreationFailed", why)
    }
}

/// Something to count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fact {
    /// The set is complete: `jobset_completed_total`.
    Completed,
    /// The set has failed: `jobset_failed_total`.
    Failed,
}
