//! What must never happen to Workloads and the queues they wait in.

mod order;
mod quota;
mod ready;
mod rest;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jiff::Timestamp;
use lockstep_api::{
    kueue::{ClusterQueue, LocalQueue, ResourceFlavor, WaitForPodsReady, Workload, WorkloadStatus},
    labels::kueue::QUEUE_NAME,
    reasons::kueue::workload as kinds,
};
use lockstep_store::{Event, Revision};

use super::{Author, Checker, JobBook, PodBook, Violation, ensure};
use crate::watch::Seen;

/// Everything that is known of queues and those who wait in them.
#[derive(Debug)]
pub(super) struct QueueBook {
    /// Whether and how pods are waited for.
    wait: Option<WaitForPodsReady>,
    workloads: BTreeMap<Box<str>, WorkBook>,
    clusters: BTreeMap<String, Arc<ClusterQueue>>,
    locals: BTreeMap<String, Arc<LocalQueue>>,
    flavors: BTreeMap<String, Arc<ResourceFlavor>>,
    /// Pods that were stopped because their Job was suspended.
    stopped: BTreeSet<Box<str>>,
    /// The revision in which a Job last began to run, and the queue controller that started it.
    started: BTreeMap<Box<str>, (Revision, Option<usize>)>,
    /// Since when Jobs run that nobody has admitted.
    unadmitted: BTreeMap<Box<str>, Timestamp>,
}

/// Everything that is known of one Workload.
#[derive(Debug)]
struct WorkBook {
    name: Box<str>,
    workload: Arc<Workload>,
    is_gone: bool,
    /// The uid of its job.
    owner: Option<Box<str>>,
    /// How it was given quota.
    admitted: Option<Admitted>,
    /// The last revision in which it held quota.
    held_until: Revision,
    /// The revision from which on its pods were not ready any more, after they had been.
    unready_at: Revision,
}

/// How a Workload was given quota: by whom, as which of the things it has asked for, and the
/// revision that says so.
#[derive(Clone, Copy, Debug)]
struct Admitted {
    by: usize,
    turn: u64,
    at: Revision,
}

/// Who admits, as which of the things it asks for, and what it had seen.
#[derive(Clone, Copy, Debug)]
struct Admitter {
    number: usize,
    turn: u64,
    seen: Seen,
}

impl Admitter {
    /// Whether it could know of an admission when it decided on its own. What it has decided
    /// earlier it knows; requests may overtake each other.
    fn knows(&self, other: Admitted) -> bool {
        let is_earlier = other.by == self.number && other.turn < self.turn;
        is_earlier || other.at <= self.seen.workloads
    }
}

impl QueueBook {
    pub(super) fn new(wait: Option<WaitForPodsReady>) -> Self {
        Self {
            wait,
            workloads: BTreeMap::new(),
            clusters: BTreeMap::new(),
            locals: BTreeMap::new(),
            flavors: BTreeMap::new(),
            stopped: BTreeSet::new(),
            started: BTreeMap::new(),
            unadmitted: BTreeMap::new(),
        }
    }

    pub(super) fn observe_cluster_queue(&mut self, queue: Arc<ClusterQueue>) {
        self.clusters.insert(queue.metadata.name.clone().unwrap_or_default(), queue);
    }

    pub(super) fn observe_local_queue(&mut self, queue: Arc<LocalQueue>) {
        self.locals.insert(queue.metadata.name.clone().unwrap_or_default(), queue);
    }

    pub(super) fn observe_flavor(&mut self, flavor: Arc<ResourceFlavor>) {
        self.flavors.insert(flavor.metadata.name.clone().unwrap_or_default(), flavor);
    }

    /// Notes that a Job that did not run does now, if it does.
    pub(super) fn note_start(
        &mut self,
        job: &JobBook,
        (uid, at): (&str, Revision),
        author: Author,
    ) {
        let runs = job.spec.suspend != Some(true) || job.status.active.unwrap_or_default() > 0;
        let mut by = None;
        if let Author::Queues { number, .. } = author {
            by = Some(number);
        }
        if runs && (is_queued(job) || job.place.is_some()) {
            self.started.insert(uid.into(), (at, by));
        }
    }

    /// The Workloads that are there.
    fn there(&self) -> impl Iterator<Item = &WorkBook> {
        self.workloads.values().filter(|book| !book.is_gone)
    }

    /// Those that hold quota.
    fn holders(&self) -> impl Iterator<Item = &WorkBook> {
        self.there().filter(|book| holds(&book.workload))
    }

    /// The Workload of a job.
    fn of_job(&self, uid: &str) -> Option<&WorkBook> {
        self.there().find(|book| book.owner.as_deref() == Some(uid))
    }

    /// The name of the ClusterQueue behind the LocalQueue of a Workload.
    fn queue_of(&self, workload: &Workload) -> Option<&str> {
        self.locals.get(&workload.spec.queue_name).map(|local| local.spec.cluster_queue.as_str())
    }
}

impl WorkBook {
    fn is(&self, kind: &str) -> bool {
        is(&self.workload, kind)
    }

    /// Whether a condition is said to be false.
    fn says_no(&self, kind: &str) -> bool {
        let mut conditions = self.workload.status.iter().flat_map(|status| &status.conditions);
        conditions.any(|condition| condition.type_ == kind && condition.status == "False")
    }

    /// What is said under a condition.
    fn reason(&self, kind: &str) -> &str {
        let conditions = self.workload.status.iter().flat_map(|status| &status.conditions);
        let mut found = conditions.filter(|condition| condition.type_ == kind);
        found.next().map_or("", |condition| condition.reason.as_str())
    }

    fn is_active(&self) -> bool {
        self.workload.spec.active != Some(false)
    }
}

fn is(workload: &Workload, kind: &str) -> bool {
    let conditions = workload.status.iter().flat_map(|status| &status.conditions);
    conditions.into_iter().any(|condition| condition.type_ == kind && condition.status == "True")
}

/// Whether quota is reserved for a Workload, and nobody else may have it.
fn holds(workload: &Workload) -> bool {
    let has_admission = workload.status.as_ref().is_some_and(|status| status.admission.is_some());
    has_admission && is(workload, kinds::QUOTA_RESERVED) && !is(workload, kinds::FINISHED)
}

fn count(status: Option<&WorkloadStatus>) -> Option<i32> {
    status?.requeue_state.as_ref()?.count
}

impl Checker {
    pub(super) fn observe_workload(
        &mut self,
        event: &Event,
        workload: Arc<Workload>,
        author: Author,
    ) -> Result<(), Violation> {
        let meta = &event.object.meta;
        let owner = meta.owners.iter().find(|owner| owner.controller);
        let owner = owner.map(|owner| owner.uid.clone());
        let old = self.queues.workloads.remove(&meta.uid);
        let was = old.as_ref().map(|old| Arc::clone(&old.workload));
        let mut book = old.unwrap_or_else(|| WorkBook {
            name: meta.name.clone(),
            workload: Arc::clone(&workload),
            is_gone: false,
            owner: owner.clone(),
            admitted: None,
            held_until: 0,
            unready_at: 0,
        });
        if let Some(was) = &was {
            check_history(&book.name, was, &workload)?;
        }
        let (held, now_holds) = (was.as_ref().is_some_and(|was| holds(was)), holds(&workload));
        let was_ready = was.as_ref().is_some_and(|was| is(was, kinds::PODS_READY));
        if was_ready && !is(&workload, kinds::PODS_READY) {
            book.unready_at = event.revision;
        }
        book.workload = workload;
        book.is_gone = event.is_deletion;
        if held {
            book.held_until = event.revision;
        }
        if held && !now_holds && !book.is_gone {
            self.check_released(&book, author)?;
        }
        if now_holds && !held {
            let Author::Queues { number, seen, turn } = author else {
                return Err(Violation(format!("{author:?} gave {} quota", book.name)));
            };
            book.admitted = Some(Admitted { by: number, turn, at: event.revision });
            let admitter = Admitter { number, turn, seen };
            self.check_quota(&book, admitter)?;
            self.check_block(&book, admitter)?;
        }
        self.queues.workloads.insert(meta.uid.clone(), book);
        Ok(())
    }

    /// Quota is given back when nothing runs any more that needs it.
    fn check_released(&self, book: &WorkBook, author: Author) -> Result<(), Violation> {
        let Author::Queues { number, seen, .. } = author else { return Ok(()) };
        if book.is(kinds::FINISHED) {
            return Ok(());
        }
        let Some(owner) = &book.owner else { return Ok(()) };
        let is_its = |uid: &str, job: &JobBook| uid == &**owner || job.is_of_set(owner);
        for (uid, job) in self.jobs.iter().filter(|(uid, job)| !job.is_gone && is_its(uid, job)) {
            // Of a start that it has not heard of nobody waits for the end, unless it was its own.
            let started = self.queues.started.get(uid);
            let is_unheard = started.is_some_and(|(at, by)| *at > seen.jobs && *by != Some(number));
            if job.is_finished() || job.is_deleting || is_unheard {
                continue;
            }
            let told = job.status.active.unwrap_or_default();
            ensure(told == 0, || {
                format!("{} gives its quota back, {told} pods of {} run", book.name, job.name)
            })?;
        }
        Ok(())
    }

    /// Who starts a job has seen that it was admitted.
    pub(super) fn check_started(&self, uid: &str, seen: Seen) -> Result<(), Violation> {
        let mut of_job = self.queues.workloads.values();
        let is_fine = of_job.any(|book| {
            book.owner.as_deref() == Some(uid)
                && (book.is(kinds::ADMITTED) || book.held_until > seen.workloads)
        });
        ensure(is_fine, || {
            let name = self.jobs.get(uid).map(|job| &job.name);
            let name = name.or_else(|| self.sets.get(uid).map(|set| &set.name));
            format!("{name:?} is started, and nobody has admitted it")
        })
    }

    /// Notes a pod that is asked to go because its Job is to stand still.
    pub(super) fn note_stop(&mut self, uid: &str, pod: &PodBook) {
        let owner = pod.owner.as_ref().and_then(|owner| self.jobs.get(owner));
        // The pods of one that has failed go because of that, and count.
        let is_stopped = owner.is_some_and(|job| {
            self.may_be_evicted(job) && job.spec.suspend == Some(true) && !job.has("FailureTarget")
        });
        let was = self.queues.stopped.contains(uid);
        if is_stopped && !was && pod.is_terminating() && !pod.is_pinned {
            self.queues.stopped.insert(uid.into());
        }
    }

    /// An eviction is no failure.
    pub(super) fn check_stops_uncounted(&self, uid: &str) -> Result<(), Violation> {
        let Some(job) = self.jobs.get(uid).filter(|job| self.may_be_evicted(job)) else {
            return Ok(());
        };
        let uncounted = job.status.uncounted_terminated_pods.as_ref();
        let failed = uncounted.and_then(|pods| pods.failed.as_ref()).into_iter().flatten();
        let mut failed = failed.chain(&job.failed);
        let stopped = failed.find(|uid| self.queues.stopped.contains(uid.as_str()));
        ensure(stopped.is_none(), || {
            format!("{} counts a pod as failed that an eviction has stopped", job.name)
        })
    }
}

impl Checker {
    /// Whether a Job, or the set it is of, waits in a queue.
    fn may_be_evicted(&self, job: &JobBook) -> bool {
        let mut sets = self.sets.iter();
        is_queued(job) || sets.any(|(uid, set)| set.is_queued() && job.is_of_set(uid))
    }
}

/// Whether a Job waits in a queue.
fn is_queued(job: &JobBook) -> bool {
    let labels = job.spec.0.metadata.labels.as_ref();
    labels.is_some_and(|labels| labels.contains_key(QUEUE_NAME))
}

/// What was said stays said.
fn check_history(name: &str, was: &Workload, now: &Workload) -> Result<(), Violation> {
    let finished = |workload: &Workload| {
        let mut conditions = workload.status.iter().flat_map(|status| &status.conditions);
        conditions.find(|it| it.type_ == kinds::FINISHED && it.status == "True").cloned()
    };
    if let Some(end) = finished(was) {
        let is_kept = finished(now).is_some_and(|now| {
            (now.reason, now.message, now.last_transition_time)
                == (end.reason, end.message, end.last_transition_time)
        });
        ensure(is_kept, || format!("the end of {name} was changed"))?;
    }
    let (before, after) = (count(was.status.as_ref()), count(now.status.as_ref()));
    let is_cleared = after.is_none() && now.spec.active == Some(false);
    ensure(after >= before || is_cleared, || {
        format!("{name} came back {before:?} times, then {after:?}")
    })
}
