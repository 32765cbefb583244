//! What must never happen to JobSets.

mod order;
mod rest;
mod restarts;
mod rules;

use std::{collections::BTreeSet, sync::Arc};

use k8s_openapi::api::batch::v1::Job;
use lockstep_api::{
    jobset::{JobSet, JobSetStatus},
    labels::{
        jobset::{JOB_INDEX, JOB_RESTART_ATTEMPT, REPLICATED_JOB_NAME, RESTART_ATTEMPT},
        kueue::QUEUE_NAME,
    },
};
use lockstep_store::{Event, Revision};

use super::{Author, Checker, JobBook, Violation, counts::indexes, ensure};

/// Everything that is known of one JobSet.
#[derive(Debug)]
pub(super) struct SetBook {
    pub(super) name: Box<str>,
    set: Arc<JobSet>,
    status: JobSetStatus,
    is_deleting: bool,
    is_gone: bool,
    /// The revision that counted the last restart.
    restarted_at: Revision,
    /// The revision that wrote the status.
    told_at: Revision,
}

/// Which Job of which set a Job is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    set: Box<str>,
    group: Box<str>,
    index: usize,
    /// How often the whole set had been restarted when it was made.
    attempt: i32,
    /// How often this Job alone had been.
    job_attempt: i32,
}

impl Place {
    /// The place a Job says it has.
    pub(super) fn of(event: &Event) -> Option<Self> {
        let meta = &event.object.meta;
        let owner =
            meta.owners.iter().find(|owner| owner.controller && &*owner.kind == "JobSet")?;
        let number = |key: &str| meta.label(key).and_then(|text| text.parse::<i32>().ok());
        Some(Self {
            set: owner.uid.clone(),
            group: meta.label(REPLICATED_JOB_NAME)?.into(),
            index: usize::try_from(number(JOB_INDEX)?).ok()?,
            attempt: number(RESTART_ATTEMPT)?,
            job_attempt: number(JOB_RESTART_ATTEMPT).unwrap_or_default(),
        })
    }
}

impl Place {
    /// Whether it is a place in the set with this uid.
    pub(super) fn is_of(&self, uid: &str) -> bool {
        *self.set == *uid
    }
}

/// Whether the Job is as ready as it gets, or over.
pub(super) fn has_started(job: &Job) -> bool {
    is_ready(job) || is_over(job, "Complete") || is_over(job, "Failed")
}

/// Whether as many pods as there should be are ready or have succeeded.
fn is_ready(job: &Job) -> bool {
    let (Some(spec), Some(status)) = (&job.spec, &job.status) else { return false };
    let parallelism = spec.parallelism.unwrap_or(1);
    let wanted = spec.completions.map_or(parallelism, |most| parallelism.min(most));
    status.succeeded.unwrap_or_default() + status.ready.unwrap_or_default() >= wanted
}

fn is_over(job: &Job, condition: &str) -> bool {
    job.status.as_ref().is_some_and(|status| super::has(status, condition))
}

impl SetBook {
    fn is_ours(&self) -> bool {
        let by = self.set.spec.managed_by.as_deref();
        by.is_none_or(|by| by == "jobset.sigs.k8s.io/jobset-controller")
    }

    /// Whether it waits in a queue.
    pub(super) fn is_queued(&self) -> bool {
        let labels = self.set.metadata.labels.as_ref();
        labels.is_some_and(|labels| labels.contains_key(QUEUE_NAME))
    }

    /// Whether it is there, not on its way out, not over, and not suspended.
    pub(super) fn runs(&self) -> bool {
        let is_there = !self.is_gone && !self.is_deleting && !self.is_finished();
        is_there && self.set.spec.suspend != Some(true)
    }

    pub(super) fn is_gone(&self) -> bool {
        self.is_gone
    }

    pub(super) fn is_finished(&self) -> bool {
        has(&self.status, "Completed") || has(&self.status, "Failed")
    }

    /// How often the Job at an index of a replicated job was restarted by itself.
    fn job_restarts(&self, group: &str, index: usize) -> i32 {
        let mut entries = self.status.replicated_jobs_status.iter();
        let entry = entries.find(|entry| entry.name == group);
        entry.and_then(|entry| entry.job_restarts.get(index).copied()).unwrap_or_default()
    }

    /// Whether a Job belongs to what runs now.
    fn is_current(&self, place: &Place) -> bool {
        place.attempt >= self.status.restarts
            && place.job_attempt >= self.job_restarts(&place.group, place.index)
    }

    /// The Jobs of a replicated job that are remembered to have ended in this attempt.
    fn ended(&self, group: &str, is_complete: bool) -> BTreeSet<usize> {
        ended(&self.status, group, is_complete)
    }

    fn replicas(&self, group: &str) -> usize {
        let mut jobs = self.set.spec.replicated_jobs.iter();
        let job = jobs.find(|job| job.name == group);
        job.and_then(|job| usize::try_from(job.replicas).ok()).unwrap_or_default()
    }
}

fn ended(status: &JobSetStatus, group: &str, is_complete: bool) -> BTreeSet<usize> {
    let mut entries = status.lockstep.iter().flat_map(|kept| &kept.ended_jobs);
    let entry = entries.find(|entry| entry.name == group);
    let list = entry.map(|it| if is_complete { &it.succeeded } else { &it.failed });
    let list = list.map(|list| indexes(list)).unwrap_or_default();
    list.into_iter().filter_map(|index| usize::try_from(index).ok()).collect()
}

fn has(status: &JobSetStatus, condition: &str) -> bool {
    status.conditions.iter().any(|it| it.type_ == condition && it.status == "True")
}

impl Checker {
    /// Looks at a new version of a JobSet.
    pub(super) fn observe_set(
        &mut self,
        event: &Event,
        set: Arc<JobSet>,
        author: Author,
    ) -> Result<(), Violation> {
        let meta = &event.object.meta;
        let status = set.status.clone().unwrap_or_default();
        let book = self.sets.entry(meta.uid.clone()).or_insert_with(|| SetBook {
            name: meta.name.clone(),
            set: Arc::clone(&set),
            status: JobSetStatus::default(),
            is_deleting: false,
            is_gone: false,
            restarted_at: 0,
            told_at: 0,
        });
        let was_suspended = book.set.spec.suspend == Some(true);
        book.set = set;
        book.is_deleting = meta.is_deleting();
        book.is_gone = event.is_deletion;
        let is_resumed = was_suspended && book.set.spec.suspend != Some(true);
        if let (true, Author::Queues { seen, .. }) = (is_resumed, author) {
            self.check_started(&meta.uid, seen)?;
        }
        let Some(book) = self.sets.get(&meta.uid) else { return Ok(()) };
        if book.status == status {
            return Ok(());
        }
        if author != Author::User {
            self.check_set_status(&meta.uid, &status, author)?;
        }
        let book = self.sets.get_mut(&meta.uid).expect("just put there");
        if restarts::all(&book.status) != restarts::all(&status) {
            book.restarted_at = event.revision;
        }
        book.status = status;
        book.told_at = event.revision;
        Ok(())
    }

    fn check_set_status(
        &self,
        uid: &str,
        new: &JobSetStatus,
        author: Author,
    ) -> Result<(), Violation> {
        let Some(set) = self.sets.get(uid) else { return Ok(()) };
        let name = &set.name;
        let Author::Sets { seen, .. } = author else {
            return Err(Violation(format!("{author:?} wrote the status of set {name}")));
        };
        ensure(set.is_ours(), || format!("set {name} belongs to another controller"))?;
        let is_decided = |status: &JobSetStatus| {
            (has(status, "Completed"), has(status, "Failed"), status.terminal_state.clone())
        };
        let (was, is) = (is_decided(&set.status), is_decided(new));
        ensure(!(is.0 && is.1), || format!("set {name} is both completed and failed"))?;
        let state = match (is.0, is.1) {
            (true, _) => "Completed",
            (false, true) => "Failed",
            (false, false) => "",
        };
        ensure(is.2 == state, || format!("set {name} is {state:?}, but says {:?}", is.2))?;
        if set.is_finished() {
            let is_kept = was == is
                && set.status.conditions == new.conditions
                && restarts::all(&set.status) == restarts::all(new);
            return ensure(is_kept, || format!("the end of set {name} was changed"));
        }
        self.check_restart(uid, set, new)?;
        self.check_ended(uid, set, new)?;
        if is.0 {
            self.check_completed(uid, set, seen.jobs)?;
        }
        if is.1 {
            self.check_failed(uid, set, new)?;
        }
        Ok(())
    }

    /// The Jobs of a set, with their places.
    fn children<'a>(&'a self, uid: &'a str) -> impl Iterator<Item = (&'a Place, &'a JobBook)> {
        self.jobs.values().filter_map(move |job| {
            job.place.as_ref().filter(|place| *place.set == *uid).map(|place| (place, job))
        })
    }

    /// The Jobs of what runs now.
    fn current<'a>(
        &'a self,
        uid: &'a str,
        set: &'a SetBook,
    ) -> impl Iterator<Item = (&'a Place, &'a JobBook)> {
        self.children(uid).filter(|(place, _)| set.is_current(place))
    }
}
