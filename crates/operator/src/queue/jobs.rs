//! Jobs that have Workloads: the part of the queue controller that makes Workloads of jobs, starts
//! jobs that are admitted and stops those that are evicted.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Namespace, ObjectReference};
use k8s_openapi::api::scheduling::v1::PriorityClass;
use kube::Client;
use lockstep_api::jobset::JobSet;
use lockstep_api::kueue::{ResourceFlavor, WaitForPodsReady, Workload, WorkloadPriorityClass};
use lockstep_control::plan::Key;
use lockstep_control::plan::queued::{COMPONENT, JobKey, Kind, Object, QueuedJobs, Settings};
use tracing::debug;

use super::carry_out_jobs::{Answer, OfQueuedJobs};
use super::{Message, parts};
use crate::metrics::Metrics;
use crate::observe::{Change, Feed, Inbox};
use crate::passes::{Limits, News, Passes, Tools};
use crate::recorder::{Recorder, reference};

/// What is followed for the sake of jobs.
#[derive(Clone)]
pub struct JobFeeds {
    /// All Jobs.
    pub jobs: Feed<Job>,
    /// All JobSets.
    pub jobsets: Feed<JobSet>,
    /// All classes of priority of Workloads.
    pub classes: Feed<WorkloadPriorityClass>,
    /// All classes of priority of pods.
    pub pod_classes: Feed<PriorityClass>,
}

/// What is heard for the sake of jobs alone.
pub(super) enum Heard {
    Job(Change<Job>),
    JobSet(Change<JobSet>),
    Class(Change<WorkloadPriorityClass>),
    PodClass(Change<PriorityClass>),
    Pass(News<OfQueuedJobs>),
}

impl From<News<OfQueuedJobs>> for Message {
    fn from(news: News<OfQueuedJobs>) -> Self {
        Self::OfJobs(Heard::Pass(news))
    }
}

impl Heard {
    /// The Workload that this tells of, if it does.
    pub(super) fn workload(&self) -> Option<Arc<Workload>> {
        match self {
            Self::Pass(News::Answer(_, answer)) => match &**answer {
                Answer::WorkloadWritten(workload) => Some(Arc::new(Workload::clone(workload))),
                _ => None,
            },
            _ => None,
        }
    }

    /// The Workload that this tells the end of, if it does.
    pub(super) fn deleted(&self) -> Option<(Key, String)> {
        match self {
            Self::Pass(News::Answer(_, answer)) => match &**answer {
                Answer::WorkloadDeleted(key, uid) => Some((key.clone(), uid.clone())),
                _ => None,
            },
            _ => None,
        }
    }
}

/// The driver of jobs, and its passes.
pub(super) struct Jobs {
    metrics: Arc<Metrics>,
    queued: QueuedJobs,
    passes: Passes<OfQueuedJobs>,
}

impl Jobs {
    pub(super) fn new(
        client: &Client,
        inbox: &mut Inbox<Message>,
        feeds: &JobFeeds,
        metrics: &Arc<Metrics>,
        (settings, limits, instance): (Settings, Limits, &str),
    ) -> Self {
        inbox.listen(&feeds.jobs, |_| true, |change| Message::OfJobs(Heard::Job(change)));
        inbox.listen(&feeds.jobsets, |_| true, |change| Message::OfJobs(Heard::JobSet(change)));
        inbox.listen(&feeds.classes, |_| true, |change| Message::OfJobs(Heard::Class(change)));
        inbox.listen(
            &feeds.pod_classes,
            |_| true,
            |change| Message::OfJobs(Heard::PodClass(change)),
        );
        let tools = Tools {
            client: client.clone(),
            recorder: Recorder::spawn(client.clone(), COMPONENT, instance),
            metrics: Arc::clone(metrics),
            teller: inbox.teller(),
            limits,
            shared: (),
        };
        let (metrics, queued) = (Arc::clone(metrics), QueuedJobs::new(settings));
        Self { metrics, queued, passes: Passes::new(tools) }
    }

    pub(super) fn next_due(&self) -> Option<Timestamp> {
        self.queued.next_due().filter(|_| self.passes.has_room())
    }

    pub(super) fn hear(&mut self, heard: Heard, now: Timestamp) {
        let queued = &mut self.queued;
        match heard {
            Heard::Job(Change::Put(job)) => queued.job_seen(&job, now),
            Heard::Job(Change::Gone(object)) => {
                let (key, uid) = parts(object);
                queued.job_gone(&key, &uid, now);
            }
            Heard::Job(Change::Synced) => queued.jobs_listed(),
            Heard::JobSet(Change::Put(jobset)) => queued.jobset_seen(&jobset, now),
            Heard::JobSet(Change::Gone(object)) => {
                let (key, uid) = parts(object);
                queued.jobset_gone(&key, &uid, now);
            }
            Heard::JobSet(Change::Synced) => queued.jobsets_listed(),
            Heard::Class(Change::Put(class)) => queued.priority_class_seen(&class, now),
            Heard::Class(Change::Gone(object)) => queued.priority_class_gone(&object.name),
            Heard::Class(Change::Synced) => queued.priority_classes_listed(),
            Heard::PodClass(Change::Put(class)) => queued.pod_priority_class_seen(&class, now),
            Heard::PodClass(Change::Gone(object)) => queued.pod_priority_class_gone(&object.name),
            Heard::PodClass(Change::Synced) => queued.pod_priority_classes_listed(),
            Heard::Job(Change::Listing)
            | Heard::JobSet(Change::Listing)
            | Heard::Class(Change::Listing)
            | Heard::PodClass(Change::Listing) => {}
            Heard::Pass(News::Answer(key, answer)) => self.take_in(&key, *answer, now),
            Heard::Pass(News::Done(key)) => self.end_pass(&key, now),
        }
    }

    /// Those that are gone without any watch having told of them are returned.
    pub(super) fn workloads(
        &mut self,
        change: &Change<Workload>,
        now: Timestamp,
    ) -> Vec<(Key, String)> {
        match change {
            Change::Listing => self.queued.workloads_listing(),
            Change::Put(workload) => self.queued.workload_seen(workload, now),
            Change::Gone(object) => {
                let (key, uid) = parts(object.clone());
                self.queued.workload_gone(&key, &uid, now);
            }
            Change::Synced => return self.queued.workloads_listed(now),
        }
        Vec::new()
    }

    /// Whether a Workload is there, as far as is known here.
    pub(super) fn knows(&self, workload: &Workload) -> bool {
        let known = self.queued.workload(&Key::of(&workload.metadata));
        known.is_some_and(|known| known.metadata.uid == workload.metadata.uid)
    }

    /// A Workload was written by others of this process.
    pub(super) fn workload_written(&mut self, workload: &Arc<Workload>, now: Timestamp) {
        self.queued.workload_written_elsewhere(workload, now);
    }

    /// How long the pods of a Workload may take.
    pub(super) fn wait_seen(&mut self, key: &Key, wait: Option<WaitForPodsReady>, now: Timestamp) {
        self.queued.wait_seen(key, wait, now);
    }

    pub(super) fn flavors(&mut self, change: &Change<ResourceFlavor>, now: Timestamp) {
        match change {
            Change::Listing => {}
            Change::Put(flavor) => self.queued.flavor_seen(flavor, now),
            Change::Gone(object) => self.queued.flavor_gone(&object.name),
            Change::Synced => self.queued.flavors_listed(),
        }
    }

    pub(super) fn namespaces(&mut self, change: &Change<Namespace>, now: Timestamp) {
        match change {
            Change::Listing => {}
            Change::Put(namespace) => {
                let labels = namespace.metadata.labels.clone().unwrap_or_default();
                let name = namespace.metadata.name.as_deref().unwrap_or_default();
                self.queued.namespace_seen(name, &labels, now);
            }
            Change::Gone(object) => self.queued.namespace_gone(&object.name),
            Change::Synced => self.queued.namespaces_listed(),
        }
    }

    /// Tells the driver what became of a request.
    fn take_in(&mut self, key: &JobKey, answer: Answer, now: Timestamp) {
        let queued = &mut self.queued;
        let event = match answer {
            Answer::WorkloadWritten(workload) => {
                queued.workload_written(key, *workload, now);
                None
            }
            Answer::WorkloadNotCreated(refusal, found) => {
                debug!(job = %key, error = %refusal, "Workload not created");
                queued.workload_not_created(key, &refusal, found.map(|found| *found), now)
            }
            Answer::WorkloadDeleted(workload, uid) => {
                queued.workload_deleted(&workload, &uid, now);
                None
            }
            Answer::JobWritten(job) => {
                queued.job_written(key, *job, now);
                None
            }
            Answer::JobSetWritten(jobset) => {
                queued.jobset_written(key, *jobset, now);
                None
            }
            Answer::Done => None,
            Answer::Failed(refusal) => {
                debug!(job = %key, error = %refusal, "step failed");
                queued.refused(key, &refusal, now)
            }
        };
        if let Some(event) = event {
            self.passes.record(key, event);
        }
    }

    /// Starts passes over jobs that are due, as many as may run at the same time.
    pub(super) fn begin_passes(&mut self) {
        while self.passes.has_room() {
            let now = Timestamp::now();
            let due = self.queued.next_due();
            let Some((key, plan)) = self.queued.next(now) else { break };
            if let Some(waiting) = &plan.waiting {
                debug!(job = %key, %waiting, "nothing to do");
            }
            let object = self.reference(&key);
            if !self.passes.begin(&key, object, due, plan.steps) {
                self.end_pass(&key, now);
            }
        }
        self.metrics.queued_queue.depth(self.queued.queue_len());
    }

    fn end_pass(&mut self, key: &JobKey, now: Timestamp) {
        self.queued.done(key, now);
        self.passes.end(key);
    }

    /// What events of a job refer to.
    fn reference(&self, key: &JobKey) -> ObjectReference {
        match self.queued.job(key) {
            Some(Object::Job(job)) => reference(&**job),
            Some(Object::JobSet(jobset)) => reference(&**jobset),
            None => ObjectReference {
                api_version: Some(key.kind.api_version().to_owned()),
                kind: Some(key.kind.as_str().to_owned()),
                name: Some(key.key.name.clone()),
                namespace: Some(key.key.namespace.clone()),
                uid: self.uid_of_orphan(key),
                ..ObjectReference::default()
            },
        }
    }

    fn uid_of_orphan(&self, key: &JobKey) -> Option<String> {
        let workload = self.queued.workload(&key.key).filter(|_| key.kind == Kind::Orphan);
        workload.and_then(|workload| workload.metadata.uid.clone())
    }
}
