//! What must never happen, looked for after every write. The checkers see the store itself, know
//! what the controllers cannot know, and share no code with the planners they check.

mod counts;
mod creation;
mod ending;
mod pin;
mod policy;
mod rest;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    ops::Deref,
    sync::Arc,
};

use jiff::Timestamp;
use k8s_openapi::api::{
    batch::v1::{Job, JobSpec, JobStatus},
    core::v1::Pod,
};
use lockstep_api::labels;
use lockstep_store::{Event, Revision};

use crate::{
    api::{Api, Kind},
    controller::Seen,
};

/// Something that must never happen, and did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation(pub String);

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Fails with a violation unless something holds.
fn ensure(holds: bool, otherwise: impl FnOnce() -> String) -> Result<(), Violation> {
    if holds { Ok(()) } else { Err(Violation(otherwise())) }
}

/// Who wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Author {
    /// A controller.
    Controller {
        /// Which one.
        number: usize,
        /// What it had seen when it planned.
        seen: Seen,
        /// Whether it is the only one.
        is_alone: bool,
    },
    /// Nodes.
    Node,
    /// Users.
    User,
    /// The garbage collector.
    Collector,
}

/// Everything that is known of one Job.
#[derive(Debug)]
struct JobBook {
    name: Box<str>,
    spec: Spec,
    status: JobStatus,
    is_deleting: bool,
    is_gone: bool,
    /// The size of the Job, by the revision from which on it was in force.
    sizes: Vec<(Revision, Size)>,
    /// Pods that were moved from the list of uncounted ones into a counter.
    succeeded: BTreeSet<String>,
    failed: BTreeSet<String>,
    /// Indexes of pods that have really succeeded.
    indexes_done: BTreeSet<i32>,
    /// Who wrote that it has ended, and the revision of pods it had seen.
    ended_by: Option<(usize, Revision)>,
}

/// The spec of a Job, which always has one.
#[derive(Clone, Debug)]
struct Spec(Arc<Job>);

impl Deref for Spec {
    type Target = JobSpec;

    fn deref(&self) -> &JobSpec {
        self.0.spec.as_ref().expect("the API accepts no Job without one")
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Size {
    parallelism: i32,
    completions: Option<i32>,
}

impl JobBook {
    fn is_ours(&self) -> bool {
        let by = self.spec.managed_by.as_deref();
        by.is_none_or(|by| by == "kubernetes.io/job-controller")
    }

    fn is_indexed(&self) -> bool {
        self.spec.completion_mode.as_deref() == Some("Indexed")
    }

    fn has(&self, condition: &str) -> bool {
        has(&self.status, condition)
    }

    fn is_finished(&self) -> bool {
        self.has("Complete") || self.has("Failed")
    }

    /// The size a controller saw that had seen Jobs up to `seen`, and all that users have asked
    /// for since.
    fn sizes_since(&self, seen: Revision) -> impl Iterator<Item = &Size> {
        let known = self.sizes.iter().rposition(|(at, _)| *at <= seen).unwrap_or_default();
        self.sizes[known..].iter().map(|(_, size)| size)
    }

    /// Whether pods count as failed only when they have really ended.
    fn waits_for_the_end(&self) -> bool {
        self.spec.pod_failure_policy.is_some()
            || self.spec.pod_replacement_policy.as_deref() == Some("Failed")
    }
}

fn has(status: &JobStatus, condition: &str) -> bool {
    let conditions = status.conditions.as_deref().unwrap_or_default();
    conditions.iter().any(|it| it.type_ == condition && it.status == "True")
}

/// How far a pod has got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Alive,
    Succeeded,
    Failed,
}

/// Everything that is known of one pod.
#[derive(Debug)]
struct PodBook {
    name: Box<str>,
    /// The uid of the Job that controls it, and of the last one that did.
    owner: Option<Box<str>>,
    last_owner: Option<Box<str>>,
    phase: Phase,
    is_deleting: bool,
    /// It was asked to go before it had ended by itself.
    was_deleted_alive: bool,
    is_pinned: bool,
    is_gone: bool,
    /// Somebody laid hands on what ties it to its Job: a user, or the garbage collector for a user
    /// who deletes a Job and keeps its pods.
    is_tampered: bool,
    /// The revision in which it was made, and by which controller.
    made_at: Revision,
    made_by: Option<usize>,
    index: Option<i32>,
    /// The whole pod, once it has ended.
    ended: Option<Arc<Pod>>,
    /// The revision in which it ended; 0 while it has not.
    ended_at: Revision,
    /// The last Job that controlled it when it had ended.
    ended_for: Option<Box<str>>,
    restarts: i32,
}

impl PodBook {
    fn is_active(&self) -> bool {
        !self.is_gone && self.phase == Phase::Alive && !self.is_deleting
    }

    fn is_terminating(&self) -> bool {
        !self.is_gone && self.phase == Phase::Alive && self.is_deleting
    }
}

/// Watches all writes.
#[derive(Debug)]
pub struct Checker {
    /// Whether success policies have an effect.
    has_gate: bool,
    jobs: BTreeMap<Box<str>, JobBook>,
    pods: BTreeMap<Box<str>, PodBook>,
    seen: Revision,
}

impl Checker {
    /// A checker of a cluster where nothing has happened yet.
    pub fn new(has_gate: bool) -> Self {
        Self { has_gate, jobs: BTreeMap::new(), pods: BTreeMap::new(), seen: 0 }
    }

    /// Looks at everything written since the last time, all of it by `author`.
    ///
    /// # Errors
    /// The first thing found that must never happen.
    pub fn observe(
        &mut self,
        api: &mut Api,
        now: Timestamp,
        author: Author,
    ) -> Result<(), Violation> {
        if api.snapshot().revision() == self.seen {
            return Ok(());
        }
        let mut events = Vec::new();
        for kind in [Kind::Job, Kind::Pod] {
            let after = api.events_after(kind, self.seen, usize::MAX).unwrap_or_default();
            events.extend(after.into_iter().map(|event| (event.revision, kind, event)));
        }
        events.sort_by_key(|(revision, ..)| *revision);
        for (revision, kind, event) in events {
            ensure(revision > self.seen, || {
                format!("revision {revision} came after {}", self.seen)
            })?;
            self.seen = revision;
            match kind {
                Kind::Job => {
                    let job = api.job(&event.object);
                    self.observe_job(&event, job, (now, author))?;
                }
                Kind::Pod => self.observe_pod(api, &event, author)?,
            }
        }
        Ok(())
    }

    fn observe_job(
        &mut self,
        event: &Event,
        job: Arc<Job>,
        (now, author): (Timestamp, Author),
    ) -> Result<(), Violation> {
        let meta = &event.object.meta;
        let status = job.status.clone().unwrap_or_default();
        let spec = Spec(job);
        let size = Size {
            parallelism: spec.parallelism.unwrap_or_default(),
            completions: spec.completions,
        };
        let book = self.jobs.entry(meta.uid.clone()).or_insert_with(|| JobBook {
            name: meta.name.clone(),
            spec: spec.clone(),
            status: JobStatus::default(),
            is_deleting: false,
            is_gone: false,
            sizes: Vec::new(),
            succeeded: BTreeSet::new(),
            failed: BTreeSet::new(),
            indexes_done: BTreeSet::new(),
            ended_by: None,
        });
        book.spec = spec;
        book.is_deleting = meta.is_deleting();
        book.is_gone = event.is_deletion;
        if book.sizes.last().is_none_or(|(_, last)| *last != size) {
            book.sizes.push((event.revision, size));
        }
        if book.status != status {
            if author != Author::User {
                self.check_status(&meta.uid, &status, (now, author))?;
            }
            self.jobs.get_mut(&meta.uid).expect("just put there").status = status;
        }
        Ok(())
    }

    fn observe_pod(
        &mut self,
        api: &mut Api,
        event: &Event,
        author: Author,
    ) -> Result<(), Violation> {
        let uid = &event.object.meta.uid;
        let is_new = !self.pods.contains_key(uid);
        let before = self.pods.remove(uid);
        let after = self.pod_book(api, event, before.as_ref(), author);
        let is_let_go = !after.is_pinned && author != Author::User;
        if let Some(before) = before.filter(|before| before.is_pinned && is_let_go) {
            let seen = event.before.as_ref().map(|pod| api.pod(pod));
            self.check_unpin(&before, (event, seen.as_deref()), author)?;
        }
        if after.phase == Phase::Succeeded {
            let owner = after.owner.as_ref().and_then(|owner| self.jobs.get_mut(owner));
            if let (Some(job), Some(index)) = (owner, after.index) {
                job.indexes_done.insert(index);
            }
        }
        if let (true, Author::Controller { number, seen, is_alone }) = (is_new, author) {
            self.check_creation(&after, (number, seen), is_alone)?;
        }
        self.pods.insert(uid.clone(), after);
        Ok(())
    }

    fn pod_book(
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
        let owner = meta.owners.iter().find(|owner| owner.controller && &*owner.kind == "Job");
        let owner = owner.map(|owner| owner.uid.clone());
        let index = match before {
            Some(before) => before.index,
            None => meta.label(labels::COMPLETION_INDEX).and_then(|index| index.parse().ok()),
        };
        let can_restart =
            owner.as_ref().and_then(|owner| self.jobs.get(owner)).is_some_and(|job| {
                let spec = job.spec.template.spec.as_ref();
                spec.and_then(|spec| spec.restart_policy.as_deref()) == Some("OnFailure")
            });
        let has_ended = phase != Phase::Alive;
        let pod = (has_ended || can_restart).then(|| api.pod(&event.object));
        let statuses =
            pod.as_ref().and_then(|pod| pod.status.as_ref()?.container_statuses.as_ref());
        let restarts = statuses.into_iter().flatten().map(|status| status.restart_count).sum();
        let last_owner =
            owner.clone().or_else(|| before.and_then(|before| before.last_owner.clone()));
        let ended_for = owner.clone().filter(|_| has_ended);
        let ended_for = ended_for.or_else(|| before.and_then(|before| before.ended_for.clone()));
        let made_by = match (before, author) {
            (Some(before), _) => before.made_by,
            (None, Author::Controller { number, .. }) => Some(number),
            (None, Author::Node | Author::User | Author::Collector) => None,
        };
        let is_cut = match author {
            Author::User | Author::Collector => before.is_some_and(|before| is_cut(before, event)),
            Author::Controller { .. } | Author::Node => false,
        };
        PodBook {
            name: meta.name.clone(),
            owner,
            last_owner,
            phase,
            is_deleting: meta.is_deleting(),
            was_deleted_alive: before.is_some_and(|before| before.was_deleted_alive)
                || (phase == Phase::Alive && meta.is_deleting()),
            is_pinned: !event.is_deletion
                && meta.finalizers.iter().any(|name| &**name == labels::JOB_TRACKING_FINALIZER),
            is_gone: event.is_deletion,
            is_tampered: is_cut || before.is_some_and(|before| before.is_tampered),
            made_at: before.map_or(event.revision, |before| before.made_at),
            made_by,
            index,
            ended: pod.filter(|_| has_ended),
            ended_at: match before.map(|before| before.ended_at) {
                _ if !has_ended => 0,
                None | Some(0) => event.revision,
                Some(known) => known,
            },
            ended_for,
            restarts,
        }
    }
}

/// Whether a pod was cut off from its Job.
fn is_cut(before: &PodBook, event: &Event) -> bool {
    let meta = &event.object.meta;
    let is_pinned = meta.finalizers.iter().any(|name| &**name == labels::JOB_TRACKING_FINALIZER);
    let owner = meta.owners.iter().find(|owner| owner.controller).map(|owner| &owner.uid);
    let labels = event.before.as_ref().map(|before| &before.meta.labels);
    (before.is_pinned && !is_pinned)
        || owner != before.owner.as_ref()
        || labels != Some(&meta.labels)
}
