//! What webhooks do to Jobs and JobSets that wait in queues: fill new ones in, and refuse changes
//! that nobody could follow.

mod validate;

use serde_json::Value;

pub use validate::{validate_create, validate_update};

use crate::{
    json::{at, object_mut, text},
    labels::kueue::{DEFAULT_NAME, ELASTIC_JOB, PRIORITY_CLASS, QUEUE_NAME},
    strategy::Json,
};

/// What kind of job it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobKind {
    /// A Job of batch/v1.
    Job,
    /// A JobSet.
    JobSet,
}

impl JobKind {
    /// The kind of a group and kind, if jobs of it may wait in queues.
    pub fn of(group: &str, kind: &str) -> Option<Self> {
        match (group, kind) {
            ("batch", "Job") => Some(Self::Job),
            (crate::jobset::GROUP, crate::jobset::KIND) => Some(Self::JobSet),
            _ => None,
        }
    }
}

/// What is decided about all jobs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobPolicy {
    /// Whether jobs that name no queue are managed too.
    pub manages_without_queue: bool,
    /// The queue that jobs are given which name none.
    pub queue_for_all: Option<String>,
    /// Whether jobs are given the class `default` where there is one.
    pub defaults_class: bool,
}

/// Who owns a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// Nobody of a kind that waits in queues.
    Nobody,
    /// A job that is not managed.
    Unmanaged,
    /// A job that is managed, or is owned by one that is: it waits for its owner.
    Managed,
}

/// What a decision about a job looks at beside the job.
pub trait JobSurroundings {
    /// Whether the namespace of the job has a LocalQueue `default`.
    fn has_default_queue(&self) -> bool;
    /// Whether there is a WorkloadPriorityClass `default`.
    fn has_default_class(&self) -> bool;
    /// Whether jobs of the namespace are managed.
    fn is_namespace_managed(&self) -> bool;
    /// Who owns the job.
    fn owner(&self) -> Owner;
}

/// The queue a job names; empty when it names none.
pub fn queue_name(object: &Json) -> &str {
    text(object, &["metadata", "labels", QUEUE_NAME])
}

/// Fills in a new job: the queue and the class it is given when it names none, and that it waits.
pub fn fill_new(object: &mut Json, policy: &JobPolicy, around: &impl JobSurroundings) {
    let may_need_queue = queue_name(object).is_empty()
        && (policy.queue_for_all.is_some() || around.has_default_queue());
    if queue_name(object).is_empty() && !may_need_queue && !policy.manages_without_queue {
        return;
    }
    if !around.is_namespace_managed() {
        return;
    }
    let owner = around.owner();
    if may_need_queue && owner == Owner::Nobody {
        // Who has made a queue `default` in the namespace means it for this namespace.
        let queue = match &policy.queue_for_all {
            Some(queue) if !around.has_default_queue() => queue.as_str(),
            _ => DEFAULT_NAME,
        };
        set_label(object, QUEUE_NAME, queue);
    }
    let is_managed = !queue_name(object).is_empty() || policy.manages_without_queue;
    if !is_managed || owner == Owner::Managed {
        return;
    }
    if policy.defaults_class
        && owner == Owner::Nobody
        && text(object, &["metadata", "labels", PRIORITY_CLASS]).is_empty()
        && around.has_default_class()
    {
        set_label(object, PRIORITY_CLASS, DEFAULT_NAME);
    }
    if object.get("spec").is_some_and(Value::is_object) {
        object_mut(object, "spec").insert("suspend".to_owned(), true.into());
    }
}

/// Says what a user should know about a job that is taken.
pub fn warnings(object: &Json) -> Vec<String> {
    let is_elastic = text(object, &["metadata", "annotations", ELASTIC_JOB]) == "true";
    let warning = is_elastic.then(|| {
        format!(
            "metadata.annotations[{ELASTIC_JOB}]: jobs that change their size while they run are \
             not supported so far: the annotation has no effect"
        )
    });
    warning.into_iter().collect()
}

fn set_label(object: &mut Json, key: &str, value: &str) {
    let is_fine = at(object, &["metadata"]).is_none_or(Value::is_object)
        && at(object, &["metadata", "labels"]).is_none_or(|it| it.is_object() || it.is_null());
    if is_fine {
        let labels = object_mut(object_mut(object, "metadata"), "labels");
        labels.insert(key.to_owned(), value.into());
    }
}
