//! What a plan is made of.

use jiff::Timestamp;
use k8s_openapi::api::{batch::v1::JobStatus, core::v1::Pod};

use crate::plan::job::{Event, Fact, Waiting};

/// The outcome of one planning pass over one Job.
#[derive(Clone, Debug, Default, PartialEq)]
#[must_use = "a plan does nothing until a shell carries it out"]
pub struct Plan {
    /// What to do, in this order. A step that fails ends the pass: nothing after it is done.
    pub steps: Vec<Step>,
    /// When to plan again even if nothing happens until then.
    pub next: Option<Timestamp>,
    /// Why there is nothing to do; always there when there are no steps.
    pub waiting: Option<Waiting>,
    /// What the pass is about, for metrics; nothing if the Job is left alone.
    pub action: Option<Action>,
    /// Why pods are created, for metrics.
    pub creation: Creation,
    /// How many pods were looked at to make this plan.
    pub pods_visited: usize,
}

/// Why pods are created, as the label `reason` of the metric says it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Creation {
    /// No pod has failed so far.
    #[default]
    New,
    /// Pods have failed, and are replaced once they have ended.
    RecreateFailed,
    /// Pods have failed or are ending, and are replaced at once.
    RecreateTerminatingOrFailed,
}

impl Creation {
    /// The label's value.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::RecreateFailed => "recreate_failed",
            Self::RecreateTerminatingOrFailed => "recreate_terminating_or_failed",
        }
    }
}

/// What a pass over a Job did, as the label `action` of the sync metrics says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Action {
    /// The number of pods was not looked at: the Job is ending.
    Reconciling,
    /// The number of pods is right.
    Tracking,
    /// Pods are missing (they may have to wait for a back-off).
    PodsCreated,
    /// There are pods that should not be.
    PodsDeleted,
}

impl Action {
    /// The label's value.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Reconciling => "reconciling",
            Self::Tracking => "tracking",
            Self::PodsCreated => "pods_created",
            Self::PodsDeleted => "pods_deleted",
        }
    }
}

/// One thing for a shell to carry out. Carrying it out twice is harmless.
///
/// Every request carries the uid of what it is about: a pod or a Job of the same name that came
/// later is never touched.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Write the status of the Job; then `Jobs::status_written`.
    WriteStatus(Box<StatusWrite>),
    /// Make pods without an owner pods of the Job. First read the Job itself (not a cache): it
    /// must have this uid and must not be deleted, else the step fails. Then send
    /// [`patch::adopt`](crate::plan::job::patch::adopt) for each pod, and `Jobs::patched`.
    Adopt {
        /// The uid the Job must still have.
        job_uid: String,
        /// The pods.
        pods: Vec<PodRef>,
    },
    /// Let pods go whose labels no longer match: send
    /// [`patch::release`](crate::plan::job::patch::release) for each, then `Jobs::patched`.
    Release {
        /// The uid of the Job, as it stands in the owner references.
        job_uid: String,
        /// The pods.
        pods: Vec<PodRef>,
    },
    /// List all pods of the namespace from the API itself (not a cache), then `Jobs::relisted`:
    /// the status names finished pods that nobody here has ever seen, or there are pods that no
    /// listing has shown. All of them, because one that the Job's selector no longer selects is not
    /// gone.
    Relist {
        /// The uids that are looked for.
        uids: Vec<String>,
    },
    /// Create these pods, in batches as [`slow_start`] cuts them; then `Jobs::created` or
    /// `Jobs::create_failed` for each. After a batch with a failure the rest is not tried.
    Create(Vec<NewPod>),
    /// Delete these pods, with their own grace period; then `Jobs::deleted` or
    /// `Jobs::delete_failed` for each. A failure does not keep the others from being deleted.
    Delete {
        /// The pods.
        pods: Vec<PodRef>,
        /// Send [`patch::remove_finalizer`](crate::plan::job::patch::remove_finalizer) before
        /// deleting a pod, so that its end counts for nothing.
        strip_finalizer_first: bool,
    },
    /// Send [`patch::remove_finalizer`](crate::plan::job::patch::remove_finalizer) for each; then
    /// `Jobs::patched` or `Jobs::patch_failed`. A failure does not keep the others from being
    /// patched.
    RemoveFinalizers(Vec<PodRef>),
    /// Record an event on the Job.
    Emit(Event),
    /// Count something.
    Note(Fact),
}

/// A whole status to write.
#[derive(Clone, Debug, PartialEq)]
pub struct StatusWrite {
    /// The uid of the Job.
    pub uid: String,
    /// The version of the Job the decision was made on: the write must fail if it has changed.
    pub resource_version: String,
    /// The status.
    pub status: JobStatus,
}

/// A pod, and exactly that one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PodRef {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// The version it must still have when it is patched, where that matters: a pod that had not
    /// ended when its finalizer was to go, whose end would be counted for nothing; a pod to adopt.
    pub version: Option<String>,
}

impl PodRef {
    /// A pod, whatever its version.
    pub fn new(namespace: &str, name: &str, uid: &str) -> Self {
        let (namespace, name, uid) = (namespace.to_owned(), name.to_owned(), uid.to_owned());
        Self { namespace, name, uid, version: None }
    }
}

/// A pod to create.
#[derive(Clone, Debug, PartialEq)]
pub struct NewPod {
    /// Its name. It is a function of the Job's uid, the index and the pods that are known, so that
    /// a create that is sent twice, or on an old view, is refused instead of making a second pod.
    pub name: String,
    /// Its completion index, if the Job is Indexed.
    pub index: Option<i32>,
    /// The whole object to send.
    pub pod: Box<Pod>,
}

impl Plan {
    /// A plan that only waits.
    pub fn wait(waiting: Waiting) -> Self {
        Self { waiting: Some(waiting), ..Self::default() }
    }

    /// Asks to be planned again at `at`, if not earlier.
    pub(crate) fn wake(&mut self, at: Timestamp) {
        self.next = Some(self.next.map_or(at, |known| known.min(at)));
    }
}

/// Cuts `total` creations into batches: one, then two, then four, and so on. When the first ones
/// fail for a reason that will meet all of them, few requests were wasted.
pub fn slow_start(total: usize) -> impl Iterator<Item = std::ops::Range<usize>> {
    let (mut start, mut size) = (0, 1);
    std::iter::from_fn(move || {
        let end = total.min(start + size);
        let batch = (start < end).then_some(start..end)?;
        (start, size) = (end, size * 2);
        Some(batch)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    // rule: job 2.5
    #[test]
    fn batches_double_and_the_last_is_what_is_left() {
        let sizes = |total| slow_start(total).map(|batch| batch.len()).collect::<Vec<_>>();
        assert_eq!(sizes(0), [0; 0]);
        assert_eq!(sizes(1), [1]);
        assert_eq!(sizes(10), [1, 2, 4, 3]);
        assert_eq!(slow_start(4).last(), Some(3..4));
    }
}
