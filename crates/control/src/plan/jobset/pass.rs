//! One pass over a JobSet: what is known, the status as it will be, and the steps so far.

use jiff::Timestamp;
use lockstep_api::jobset::{
    JobSet, JobSetSpec, JobSetStatus, ReplicatedJob, ReplicatedJobStatus, StartupOrder,
};

use super::{Bucket, Event, Fact, Options, Plan, StatusWrite, Step, View, Waiting, group};

/// One pass over a set that is ours.
pub(super) struct Pass<'a> {
    pub(super) view: &'a View,
    pub(super) options: &'a Options,
    pub(super) now: Timestamp,
    pub(super) steps: Vec<Step>,
    pub(super) next: Option<Timestamp>,
    /// Why nothing can be decided, if that is so.
    pub(super) problem: Option<String>,
    status: JobSetStatus,
    events: Vec<Event>,
    facts: Vec<Fact>,
}

impl<'a> Pass<'a> {
    /// A pass, with everything counted.
    pub(super) fn new(view: &'a View, options: &'a Options, now: Timestamp) -> Self {
        let mut status = view.status().clone();
        let mut counted: Vec<ReplicatedJobStatus> = view
            .jobset()
            .spec
            .replicated_jobs
            .iter()
            .map(|job| count(view, options, job))
            .collect();
        counted.sort_by(|a, b| b.name.cmp(&a.name));
        let mut stored = status.replicated_jobs_status.clone();
        stored.sort_by(|a, b| b.name.cmp(&a.name));
        // The order of what is stored is nobody's business, as long as nothing else changes.
        if stored != counted {
            status.replicated_jobs_status = counted;
        }
        Self {
            view,
            options,
            now,
            status,
            steps: Vec::new(),
            events: Vec::new(),
            facts: Vec::new(),
            next: None,
            problem: None,
        }
    }

    pub(super) fn jobset(&self) -> &'a JobSet {
        self.view.jobset()
    }

    pub(super) fn spec(&self) -> &'a JobSetSpec {
        &self.view.jobset().spec
    }

    /// The status as it will be.
    pub(super) fn status(&self) -> &JobSetStatus {
        &self.status
    }

    pub(super) fn status_mut(&mut self) -> &mut JobSetStatus {
        &mut self.status
    }

    pub(super) fn is_suspended(&self) -> bool {
        self.spec().suspend == Some(true)
    }

    pub(super) fn is_in_order(&self) -> bool {
        let policy = self.spec().startup_policy.as_ref();
        policy.is_some_and(|policy| policy.startup_policy_order == StartupOrder::InOrder)
    }

    /// Whether all Jobs are ready, or have succeeded.
    pub(super) fn is_all_ready(&self) -> bool {
        let spec = self.spec();
        let there = spec.replicated_jobs.iter().map(|job| {
            let counts = self.view.counts(&job.name);
            i64::from(counts.ready) + i64::from(counts.succeeded)
        });
        group::total(spec) == there.sum::<i64>()
    }

    /// How many Jobs of a replicated job have started, whatever became of them. One that is
    /// suspended has not, even if nobody has told yet that its pods are not ready any more.
    pub(super) fn started(&self, job: &ReplicatedJob) -> i32 {
        let counts = self.view.counts(&job.name);
        counts.failed + counts.ready - counts.halted + counts.succeeded
    }

    pub(super) fn is_started(&self, job: &ReplicatedJob) -> bool {
        self.started(job) == job.replicas
    }

    /// Deletes the Jobs of a bucket that are not being deleted already.
    pub(super) fn delete_jobs(&mut self, bucket: Bucket) {
        let jobs = self.view.bucket(bucket).filter(|child| !child.is_deleting());
        let jobs: Vec<_> = jobs.map(super::Child::reference).collect();
        if !jobs.is_empty() {
            self.steps.push(Step::DeleteJobs(jobs));
        }
    }

    pub(super) fn emit(&mut self, event: Event) {
        self.events.push(event);
    }

    pub(super) fn note(&mut self, fact: Fact) {
        self.facts.push(fact);
    }

    /// The steps so far and nothing else, or why there are none.
    pub(super) fn hold(self, waiting: Waiting) -> Plan {
        let waiting = self.steps.is_empty().then_some(waiting);
        Plan { steps: self.steps, next: None, waiting }
    }

    /// The outcome; `waiting` says why nothing happens if nothing does.
    pub(super) fn plan(mut self, waiting: Waiting) -> Plan {
        if let Some(why) = self.problem {
            return Plan::wait(Waiting::Invalid(why));
        }
        if !self.view.keeps_beyond() {
            self.status.lockstep.clone_from(&self.view.status().lockstep);
        }
        if self.status != *self.view.status() {
            let meta = &self.view.jobset().metadata;
            self.steps.push(Step::WriteStatus(Box::new(StatusWrite {
                uid: meta.uid.clone().unwrap_or_default(),
                resource_version: meta.resource_version.clone().unwrap_or_default(),
                status: self.status,
            })));
            self.steps.extend(self.events.into_iter().map(Step::Emit));
            self.steps.extend(self.facts.into_iter().map(Step::Note));
        }
        let waiting = self.steps.is_empty().then_some(waiting);
        Plan { steps: self.steps, next: self.next, waiting }
    }
}

/// The entry of one replicated job. What is stored of restarts of single Jobs is carried over.
fn count(view: &View, options: &Options, job: &ReplicatedJob) -> ReplicatedJobStatus {
    let counts = view.counts(&job.name);
    let stored = group::stored(view.status(), &job.name).filter(|_| options.gates.restart_job);
    ReplicatedJobStatus {
        name: job.name.clone(),
        ready: counts.ready,
        succeeded: counts.succeeded,
        failed: counts.failed,
        active: counts.active,
        suspended: counts.suspended,
        job_restarts: stored.map(|entry| entry.job_restarts.clone()).unwrap_or_default(),
        job_restarts_count_towards_max: stored
            .map(|entry| entry.job_restarts_count_towards_max.clone())
            .unwrap_or_default(),
    }
}
