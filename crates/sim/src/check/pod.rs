//! What the checkers remember of one pod.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{ContainerStatus, Pod, PodCondition};
use lockstep_api::labels;
use lockstep_store::{Event, Revision};

use super::{Author, Checker, JobBook};
use crate::api::{Api, Kind};

/// How far a pod has got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Alive,
    Succeeded,
    Failed,
}

/// Everything that is known of one pod.
#[derive(Debug)]
pub(super) struct PodBook {
    pub(super) name: Box<str>,
    /// The uid of the Job that controls it, and of the last one that did.
    pub(super) owner: Option<Box<str>>,
    pub(super) last_owner: Option<Box<str>>,
    pub(super) phase: Phase,
    pub(super) is_ready: bool,
    pub(super) is_deleting: bool,
    /// It was asked to go before it had ended by itself.
    pub(super) was_deleted_alive: bool,
    pub(super) is_pinned: bool,
    /// The controller that took the finalizer off it.
    pub(super) unpinned_by: Option<usize>,
    pub(super) is_gone: bool,
    /// Somebody laid hands on what ties it to its Job: a user, or the garbage collector for a user
    /// who deletes a Job and keeps its pods.
    pub(super) is_tampered: bool,
    /// The revision in which it was made, and by which controller.
    pub(super) made_at: Revision,
    pub(super) made_by: Option<usize>,
    pub(super) index: Option<i32>,
    /// How often its index had failed before it, by its own account: counted, ignored.
    pub(super) failures: (i32, i32),
    /// When it first was to be taken for failed, while it had its finalizer.
    pub(super) failed: Option<Failure>,
    /// The whole pod, once it has ended.
    pub(super) ended: Option<Arc<Pod>>,
    /// The revision in which it ended; 0 while it has not.
    pub(super) ended_at: Revision,
    /// The last Job that controlled it when it had ended.
    pub(super) ended_for: Option<Box<str>>,
    pub(super) restarts: i32,
}

/// The failure of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    /// The revision that shows it.
    pub(super) at: Revision,
    /// When the pod ended, as that revision tells it. Later ones may tell of a later moment.
    pub(super) time: Timestamp,
}

impl PodBook {
    pub(super) fn is_active(&self) -> bool {
        !self.is_gone && self.phase == Phase::Alive && !self.is_deleting
    }

    pub(super) fn is_terminating(&self) -> bool {
        !self.is_gone && self.phase == Phase::Alive && self.is_deleting
    }

    /// How often its index had failed before it.
    pub(super) fn failures_before(&self) -> i32 {
        self.failures.0.saturating_add(self.failures.1)
    }
}

impl Checker {
    /// What is known of a pod after `event`.
    pub(super) fn pod_book(
        &self,
        api: &mut Api,
        event: &Event,
        before: Option<&PodBook>,
        author: Author,
    ) -> PodBook {
        let meta = &event.object.meta;
        let phase = match event.object.field(api.resource(Kind::Pod), "status.phase") {
            Some("Succeeded") => Phase::Succeeded,
            Some("Failed") => Phase::Failed,
            _ => Phase::Alive,
        };
        let pod = api.pod(&event.object);
        let owner = meta.owners.iter().find(|owner| owner.controller && &*owner.kind == "Job");
        let owner = owner.map(|owner| owner.uid.clone());
        let job = owner.as_ref().and_then(|owner| self.jobs.get(owner));
        let index = match before {
            Some(before) => before.index,
            None => meta.label(labels::COMPLETION_INDEX).and_then(|index| index.parse().ok()),
        };
        let has_ended = phase != Phase::Alive;
        let last_owner =
            owner.clone().or_else(|| before.and_then(|before| before.last_owner.clone()));
        let ended_for = owner.clone().filter(|_| has_ended);
        let ended_for = ended_for.or_else(|| before.and_then(|before| before.ended_for.clone()));
        let by = match author {
            Author::Controller { number, .. } => Some(number),
            Author::Sets { .. }
            | Author::Queues { .. }
            | Author::Node
            | Author::User
            | Author::Collector => None,
        };
        let is_cut = matches!(author, Author::User | Author::Collector)
            && before.is_some_and(|before| is_cut(before, event));
        let is_pinned = !event.is_deletion && is_pinned(event);
        let is_failed = is_pinned && job.is_some_and(|job| has_failed(job, phase, event));
        let failed = is_failed.then(|| Failure { at: event.revision, time: finish_time(&pod) });
        PodBook {
            name: meta.name.clone(),
            last_owner,
            phase,
            is_ready: condition(&pod, "Ready").is_some_and(|ready| ready.status == "True"),
            is_deleting: meta.is_deleting(),
            was_deleted_alive: before.is_some_and(|before| before.was_deleted_alive)
                || (phase == Phase::Alive && meta.is_deleting()),
            is_pinned,
            unpinned_by: match before {
                Some(before) if before.is_pinned && !is_pinned => by,
                _ => before.and_then(|before| before.unpinned_by),
            },
            is_gone: event.is_deletion,
            is_tampered: is_cut || before.is_some_and(|before| before.is_tampered),
            made_at: before.map_or(event.revision, |before| before.made_at),
            made_by: before.map_or(by, |before| before.made_by),
            index,
            failures: before.map_or_else(|| failures(&pod), |before| before.failures),
            failed: before.and_then(|before| before.failed).or(failed),
            restarts: containers(&pod).map(|status| status.restart_count).sum(),
            ended: has_ended.then_some(pod),
            ended_at: match before.map(|before| before.ended_at) {
                _ if !has_ended => 0,
                None | Some(0) => event.revision,
                Some(known) => known,
            },
            ended_for,
            owner,
        }
    }
}

fn is_pinned(event: &Event) -> bool {
    event.object.meta.finalizers.iter().any(|name| &**name == labels::JOB_TRACKING_FINALIZER)
}

/// Whether a pod was cut off from its Job.
fn is_cut(before: &PodBook, event: &Event) -> bool {
    let meta = &event.object.meta;
    let owner = meta.owners.iter().find(|owner| owner.controller).map(|owner| &owner.uid);
    let labels = event.before.as_ref().map(|before| &before.meta.labels);
    (before.is_pinned && !is_pinned(event))
        || owner != before.owner.as_ref()
        || labels != Some(&meta.labels)
}

fn has_failed(job: &JobBook, phase: Phase, event: &Event) -> bool {
    let is_going = event.object.meta.is_deleting() && !job.waits_for_the_end();
    phase == Phase::Failed || (phase == Phase::Alive && is_going)
}

/// What a pod says of the failures of its index: counted, ignored.
fn failures(pod: &Pod) -> (i32, i32) {
    let number = |key: &str| {
        let text = pod.metadata.annotations.as_ref().and_then(|all| all.get(key));
        text.and_then(|text| text.parse().ok()).unwrap_or_default()
    };
    (number(labels::INDEX_FAILURE_COUNT), number(labels::INDEX_IGNORED_FAILURE_COUNT))
}

/// When a pod ended: its containers, or it was ready no more, or it was asked to go.
pub(super) fn finish_time(pod: &Pod) -> Timestamp {
    let ends: Option<Vec<Timestamp>> = containers(pod)
        .map(|status| Some(status.state.as_ref()?.terminated.as_ref()?.finished_at.as_ref()?.0))
        .collect();
    let last = ends.and_then(|ends| ends.into_iter().max());
    let unready = condition(pod, "Ready").filter(|ready| ready.status == "False");
    let meta = &pod.metadata;
    let grace = SignedDuration::from_secs(meta.deletion_grace_period_seconds.unwrap_or_default());
    last.or_else(|| Some(unready?.last_transition_time.as_ref()?.0))
        .or_else(|| Some(meta.deletion_timestamp.as_ref()?.0 - grace))
        .or_else(|| Some(meta.creation_timestamp.as_ref()?.0))
        .unwrap_or_default()
}

fn containers(pod: &Pod) -> impl Iterator<Item = &ContainerStatus> {
    pod.status.iter().flat_map(|status| status.container_statuses.iter().flatten())
}

fn condition<'a>(pod: &'a Pod, kind: &str) -> Option<&'a PodCondition> {
    pod.status.as_ref()?.conditions.iter().flatten().find(|it| it.type_ == kind)
}
