//! What must never happen, looked for after every write. The checkers see the store itself, know
//! what the controllers cannot know, and share no code with the planners they check.

mod backoff;
mod counts;
mod creation;
mod ending;
mod indexes;
mod pin;
mod pod;
mod policy;
mod queues;
mod rest;
mod sets;
mod start;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    ops::Deref,
    sync::Arc,
};

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::{Job, JobCondition, JobSpec, JobStatus};
use lockstep_api::kueue::WaitForPodsReady;
use lockstep_store::{Event, Revision};

use crate::{
    api::{Api, Kind},
    watch::Seen,
};
use pod::{Phase, PodBook};
use queues::QueueBook;
use sets::{Place, SetBook};

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
    /// A controller of JobSets.
    Sets {
        /// Which one.
        number: usize,
        /// What it had seen when it planned.
        seen: Seen,
    },
    /// A queue controller.
    Queues {
        /// Which one.
        number: usize,
        /// What it had seen when it planned.
        seen: Seen,
        /// How many things it had asked for before this one.
        turn: u64,
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
    /// Who wrote how it ends, and the revision that says so.
    decided_by: Option<(usize, Revision)>,
    /// Where it belongs, if it is the Job of a JobSet.
    place: Option<Place>,
    /// The revision in which it was made, and by which JobSet controller.
    made_at: Revision,
    made_by: Option<usize>,
    /// It was ready at some time, or is over.
    was_started: bool,
    /// The revision in which it failed.
    failed_at: Option<Revision>,
    /// When it was asked to go, or went.
    went_at: Option<Timestamp>,
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

    /// Whether it is a Job of the JobSet with this uid.
    fn is_of_set(&self, uid: &str) -> bool {
        self.place.as_ref().is_some_and(|place| place.is_of(uid))
    }

    /// The size a controller saw that had seen Jobs up to `seen`, and all that users have asked
    /// for since.
    fn sizes_since(&self, seen: Revision) -> impl Iterator<Item = &Size> {
        let known = self.sizes.iter().rposition(|(at, _)| *at <= seen).unwrap_or_default();
        self.sizes[known..].iter().map(|(_, size)| size)
    }

    /// Notes a new status, and what it is the first to say.
    fn tell(&mut self, status: JobStatus, at: Revision, author: Author) {
        self.status = status;
        let is_decided = self.has("SuccessCriteriaMet") || self.has("FailureTarget");
        if let (true, None, Author::Controller { number, .. }) =
            (is_decided, self.decided_by, author)
        {
            self.decided_by = Some((number, at));
        }
        if self.has("Failed") {
            self.failed_at = self.failed_at.or(Some(at));
        }
    }

    /// Whether pods count as failed only when they have really ended.
    fn waits_for_the_end(&self) -> bool {
        self.spec.pod_failure_policy.is_some()
            || self.spec.pod_replacement_policy.as_deref() == Some("Failed")
    }
}

fn has(status: &JobStatus, condition: &str) -> bool {
    status.conditions.iter().flatten().any(|it| it.type_ == condition && it.status == "True")
}

fn condition_of<'a>(status: &'a JobStatus, condition: &str) -> Option<&'a JobCondition> {
    status.conditions.iter().flatten().find(|it| it.type_ == condition)
}

/// What is looked at.
const KINDS: [Kind; 7] = [
    Kind::JobSet,
    Kind::Job,
    Kind::Pod,
    Kind::Workload,
    Kind::ClusterQueue,
    Kind::LocalQueue,
    Kind::Flavor,
];

/// Watches all writes.
#[derive(Debug)]
pub struct Checker {
    /// Whether success policies have an effect.
    has_gate: bool,
    jobs: BTreeMap<Box<str>, JobBook>,
    pods: BTreeMap<Box<str>, PodBook>,
    sets: BTreeMap<Box<str>, SetBook>,
    queues: QueueBook,
    seen: Revision,
}

impl Checker {
    /// A checker of a cluster where nothing has happened yet.
    /// Where there are queues, `wait` says whether and how pods are waited for.
    pub fn new(has_gate: bool, wait: Option<WaitForPodsReady>) -> Self {
        let (jobs, pods, sets) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Self { has_gate, jobs, pods, sets, queues: QueueBook::new(wait), seen: 0 }
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
        for kind in KINDS {
            let table = &api.resource(kind).table;
            if api.snapshot().table_revision(table) <= self.seen {
                continue;
            }
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
                Kind::Pod => self.observe_pod(api, &event, (now, author))?,
                Kind::JobSet => {
                    let set = api.jobset(&event.object);
                    self.observe_set(&event, set, author)?;
                }
                Kind::Workload => {
                    let workload = api.workload(&event.object);
                    self.observe_workload(&event, workload, author)?;
                }
                Kind::ClusterQueue => {
                    let queue = api.cluster_queue(&event.object);
                    self.queues.observe_cluster_queue(queue);
                }
                Kind::LocalQueue => {
                    let queue = api.local_queue(&event.object);
                    self.queues.observe_local_queue(queue);
                }
                Kind::Flavor => self.queues.observe_flavor(api.flavor(&event.object)),
                Kind::Service => {}
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
        let is_new = !self.jobs.contains_key(&meta.uid);
        let by = match author {
            Author::Sets { number, .. } => Some(number),
            Author::Controller { .. }
            | Author::Queues { .. }
            | Author::Node
            | Author::User
            | Author::Collector => None,
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
            decided_by: None,
            place: Place::of(event),
            made_at: event.revision,
            made_by: by,
            was_started: false,
            failed_at: None,
            went_at: None,
        });
        let was_suspended = book.spec.suspend == Some(true);
        let ran = !was_suspended || book.status.active.unwrap_or_default() > 0;
        let is_resumed = was_suspended && spec.suspend != Some(true);
        book.was_started |= sets::has_started(&spec.0);
        book.spec = spec;
        book.is_deleting = meta.is_deleting();
        book.is_gone = event.is_deletion;
        if book.is_gone || book.is_deleting {
            book.went_at = book.went_at.or(Some(now));
        }
        if book.sizes.last().is_none_or(|(_, last)| *last != size) {
            book.sizes.push((event.revision, size));
        }
        if book.status != status {
            match author {
                Author::User => {}
                Author::Sets { .. } | Author::Queues { .. } => check_cleared(book, &status)?,
                Author::Controller { .. } | Author::Node | Author::Collector => {
                    self.check_status(&meta.uid, &status, (now, author))?;
                }
            }
            let book = self.jobs.get_mut(&meta.uid).expect("just put there");
            book.tell(status, event.revision, author);
        }
        if is_new || !ran {
            self.queues.note_start(&self.jobs[&meta.uid], (&meta.uid, event.revision), author);
        }
        self.check_written(&meta.uid, (is_new, is_resumed), author)
    }

    /// What holds for a Job depends on who wrote it.
    fn check_written(
        &self,
        uid: &str,
        (is_new, is_resumed): (bool, bool),
        author: Author,
    ) -> Result<(), Violation> {
        let Some(book) = self.jobs.get(uid) else { return Ok(()) };
        match author {
            Author::Queues { seen, .. } if is_resumed => self.check_started(uid, seen),
            Author::Controller { .. } => self.check_stops_uncounted(uid),
            Author::Sets { number, seen } if is_new => self.check_child(book, (number, seen)),
            Author::Sets { .. } if is_resumed => self.check_resumed(book),
            Author::Sets { .. }
            | Author::Queues { .. }
            | Author::Node
            | Author::User
            | Author::Collector => Ok(()),
        }
    }

    fn observe_pod(
        &mut self,
        api: &mut Api,
        event: &Event,
        (now, author): (Timestamp, Author),
    ) -> Result<(), Violation> {
        let uid = &event.object.meta.uid;
        let is_new = !self.pods.contains_key(uid);
        let before = self.pods.remove(uid);
        let was_deleting = before.as_ref().is_some_and(|before| before.is_deleting);
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
            self.check_backoff(&after, (number, seen), now)?;
        }
        if let (Author::Controller { .. }, false) = (author, was_deleting) {
            self.note_stop(uid, &after);
        }
        self.pods.insert(uid.clone(), after);
        Ok(())
    }
}

/// All that a JobSet controller may change of the status of a Job: the start of a suspended one.
fn check_cleared(job: &JobBook, new: &JobStatus) -> Result<(), Violation> {
    let is_cleared =
        new.start_time.is_none() && JobStatus { start_time: None, ..job.status.clone() } == *new;
    ensure(is_cleared && job.spec.suspend == Some(true), || {
        format!("another controller wrote the status of {}", job.name)
    })
}
