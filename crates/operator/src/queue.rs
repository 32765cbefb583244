//! The queue controller: hears of queues, flavors and Workloads, asks the drivers of
//! `lockstep-control` who is admitted and what becomes of those who are not, and has it done. All
//! that is decided is decided there.
//!
//! Three drivers live in one task: the scheduler, which decides about all Workloads together, the
//! passes over single ones, and the jobs that have them. What one writes the others hear at once,
//! so none decides on what another has just made untrue.

mod carry_out;
mod carry_out_jobs;
mod decisions;
mod jobs;
mod options;

use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{LimitRange, Namespace};
use k8s_openapi::api::node::v1::RuntimeClass;
use kube::Client;
use lockstep_api::kueue::{ClusterQueue, LocalQueue, ResourceFlavor, Workload};
use lockstep_control::plan::queue::{Decision, Queues, Settings};
use lockstep_control::plan::workload::{CONTROLLER, Ended, Options, Workloads, milestones};
use lockstep_control::plan::{Key, queued};
use tokio::task::JoinHandle;
use tracing::debug;

use crate::lease::Leadership;
use crate::metrics::Metrics;
use crate::observe::{Change, Feed, Inbox, ObjectKey};
use crate::passes::{Limits, News, Passes, Tools};
use crate::recorder::{Recorder, reference};

use carry_out::{Answer, OfWorkloads};
use decisions::{Decisions, Outcome};
use jobs::{Heard, Jobs};

pub use jobs::JobFeeds;

/// How the queue controller works.
#[derive(Clone, Debug)]
pub struct QueueOptions {
    /// What the configuration says about queueing.
    pub settings: Settings,
    /// What the configuration says about jobs.
    pub jobs: queued::Settings,
    /// What may be set about single Workloads.
    pub workloads: Options,
    /// Where it runs, for events.
    pub instance: String,
    /// Whether anything may be done. Without it everything is followed all the same.
    pub leadership: Leadership,
    /// How many passes, and how much of each.
    pub limits: Limits,
    /// How many decisions may be on their way at the same time.
    pub writes_max: usize,
    /// Whether quota and usage of ClusterQueues are among the metrics.
    pub has_resource_metrics: bool,
    /// Whether the cluster has RuntimeClasses.
    pub has_runtime_classes: bool,
}

impl Default for QueueOptions {
    fn default() -> Self {
        let pass_time_max = Duration::from_secs(5);
        Self {
            settings: Settings::default(),
            jobs: queued::Settings::default(),
            workloads: Options::default(),
            instance: String::new(),
            leadership: Leadership::alone(),
            limits: Limits { passes_max: 32, requests_max: 8, pass_time_max },
            writes_max: 64,
            has_resource_metrics: false,
            has_runtime_classes: false,
        }
    }
}

/// What the controller follows.
#[derive(Clone)]
pub struct Feeds {
    /// All ResourceFlavors.
    pub flavors: Feed<ResourceFlavor>,
    /// All ClusterQueues.
    pub cluster_queues: Feed<ClusterQueue>,
    /// All LocalQueues.
    pub local_queues: Feed<LocalQueue>,
    /// All Workloads.
    pub workloads: Feed<Workload>,
    /// All namespaces.
    pub namespaces: Feed<Namespace>,
    /// All LimitRanges, for what they add to pods.
    pub limit_ranges: Feed<LimitRange>,
    /// All RuntimeClasses, for what they add to pods; nothing where there are none.
    pub runtime_classes: Option<Feed<RuntimeClass>>,
    /// What concerns jobs; without it Workloads are somebody else's to make.
    pub jobs: Option<JobFeeds>,
}

/// Starts the queue controller.
pub fn spawn(
    client: &Client,
    feeds: &Feeds,
    metrics: &Arc<Metrics>,
    options: QueueOptions,
) -> JoinHandle<()> {
    metrics.kueue.configure(&options.leadership, options.has_resource_metrics);
    let mut inbox = Inbox::new();
    inbox.listen(&feeds.flavors, |_| true, Message::Flavor);
    inbox.listen(&feeds.cluster_queues, |_| true, Message::ClusterQueue);
    inbox.listen(&feeds.local_queues, |_| true, Message::LocalQueue);
    inbox.listen(&feeds.namespaces, |_| true, Message::Namespace);
    inbox.listen(&feeds.limit_ranges, |_| true, Message::LimitRange);
    inbox.listen(&feeds.workloads, |_| true, Message::Workload);
    let jobs = feeds.jobs.as_ref().map(|feeds| {
        let settings = (options.jobs, options.limits, options.instance.as_str());
        Jobs::new(client, &mut inbox, feeds, metrics, settings)
    });
    let (instance, writes_max) = (&options.instance, options.writes_max);
    let decisions = Decisions::new(client, instance, metrics, inbox.teller(), writes_max);
    let tools = Tools {
        client: client.clone(),
        recorder: Recorder::spawn(client.clone(), CONTROLLER, &options.instance),
        metrics: Arc::clone(metrics),
        teller: inbox.teller(),
        limits: options.limits,
        shared: (),
    };
    let mut queues = Queues::new(options.settings);
    match &feeds.runtime_classes {
        Some(classes) => inbox.listen(classes, |_| true, Message::RuntimeClass),
        None => queues.runtime_classes_listed(),
    }
    let controller = Controller {
        metrics: Arc::clone(metrics),
        queues,
        workloads: Workloads::new(options.workloads),
        leadership: options.leadership,
        decisions,
        passes: Passes::new(tools),
        jobs,
    };
    tokio::spawn(controller.run(inbox))
}

enum Message {
    Flavor(Change<ResourceFlavor>),
    ClusterQueue(Change<ClusterQueue>),
    LocalQueue(Change<LocalQueue>),
    Namespace(Change<Namespace>),
    LimitRange(Change<LimitRange>),
    RuntimeClass(Change<RuntimeClass>),
    Workload(Change<Workload>),
    /// What became of a decision.
    Outcome(Outcome),
    Pass(News<OfWorkloads>),
    OfJobs(Heard),
}

impl From<News<OfWorkloads>> for Message {
    fn from(news: News<OfWorkloads>) -> Self {
        Self::Pass(news)
    }
}

struct Controller {
    metrics: Arc<Metrics>,
    queues: Queues,
    workloads: Workloads,
    leadership: Leadership,
    decisions: Decisions,
    passes: Passes<OfWorkloads>,
    jobs: Option<Jobs>,
}

impl Controller {
    async fn run(mut self, mut inbox: Inbox<Message>) {
        loop {
            let leads = self.leadership.may_send();
            let due = [
                self.queues.next_due().filter(|_| leads && self.decisions.has_room()),
                self.workloads.next_due().filter(|_| leads && self.passes.has_room()),
                self.jobs.as_ref().and_then(Jobs::next_due).filter(|_| leads),
            ];
            let messages = tokio::select! {
                messages = inbox.next(due.into_iter().flatten().min()) => messages,
                () = self.leadership.changed() => Vec::new(),
            };
            for message in messages {
                self.hear(message);
            }
            if self.leadership.may_send() && inbox.is_synced() {
                self.decide();
                self.begin_passes();
                if let Some(jobs) = &mut self.jobs {
                    jobs.begin_passes();
                }
            }
            self.metrics.workload_queue.depth(self.workloads.queue_len());
        }
    }

    fn hear(&mut self, message: Message) {
        let now = Timestamp::now();
        let mut missed = Vec::new();
        if let Some(jobs) = &mut self.jobs {
            match &message {
                Message::Flavor(change) => jobs.flavors(change, now),
                Message::Namespace(change) => jobs.namespaces(change, now),
                Message::Workload(change) => missed = jobs.workloads(change, now),
                _ => {}
            }
        }
        // No watch has told of these, so none tells that they are gone.
        for (key, uid) in missed {
            self.workload_gone(&key, &uid, now);
        }
        let queues = &mut self.queues;
        match message {
            Message::Flavor(Change::Put(flavor)) => queues.flavor_seen(&flavor, now),
            Message::Flavor(Change::Gone(object)) => queues.flavor_gone(&object.name, now),
            Message::Flavor(Change::Synced) => queues.flavors_listed(),
            Message::ClusterQueue(Change::Put(queue)) => {
                queues.cluster_queue_seen(&queue, now);
                self.metrics.kueue.cluster_queue_seen(&queue);
            }
            Message::ClusterQueue(Change::Gone(ObjectKey { name, uid, .. })) => {
                queues.cluster_queue_gone(&name, &uid, now);
                self.metrics.kueue.cluster_queue_gone(&name);
            }
            Message::ClusterQueue(Change::Synced) => queues.cluster_queues_listed(),
            Message::LocalQueue(Change::Put(queue)) => {
                queues.local_queue_seen(&queue, now);
                self.metrics.kueue.local_queue_seen(&queue);
            }
            Message::LocalQueue(Change::Gone(object)) => {
                let (key, uid) = parts(object);
                queues.local_queue_gone(&key, &uid, now);
                self.metrics.kueue.local_queue_gone(&key.namespace, &key.name);
            }
            Message::LocalQueue(Change::Synced) => queues.local_queues_listed(),
            Message::Namespace(Change::Put(namespace)) => {
                let labels = namespace.metadata.labels.clone().unwrap_or_default();
                let name = namespace.metadata.name.as_deref().unwrap_or_default();
                queues.namespace_seen(name, &labels, now);
            }
            Message::Namespace(Change::Gone(object)) => queues.namespace_gone(&object.name, now),
            Message::Namespace(Change::Synced) => queues.namespaces_listed(),
            Message::LimitRange(change) => hear_of_range(queues, change, now),
            Message::RuntimeClass(change) => hear_of_class(queues, change, now),
            Message::Workload(Change::Put(workload)) => self.workload_seen(&workload, now),
            Message::Workload(Change::Gone(object)) => {
                let (key, uid) = parts(object);
                self.workload_gone(&key, &uid, now);
            }
            Message::Workload(Change::Synced) => queues.workloads_listed(),
            Message::Flavor(Change::Listing)
            | Message::ClusterQueue(Change::Listing)
            | Message::LocalQueue(Change::Listing)
            | Message::Namespace(Change::Listing)
            | Message::Workload(Change::Listing) => {}
            Message::Outcome(outcome) => self.take_outcome(outcome, now),
            Message::Pass(News::Answer(key, answer)) => self.take_answer(&key, *answer, now),
            Message::Pass(News::Done(key)) => self.end_pass(&key, now),
            Message::OfJobs(heard) => self.hear_of_jobs(heard, now),
        }
    }

    /// What concerns jobs. What they have written of a Workload concerns the others too, unless it
    /// has gone while the answer was on its way.
    fn hear_of_jobs(&mut self, heard: Heard, now: Timestamp) {
        let Some(jobs) = &mut self.jobs else { return };
        let (written, deleted) = (heard.workload(), heard.deleted());
        match &heard {
            Heard::Class(Change::Put(class)) => self.workloads.priority_class_seen(class, now),
            Heard::Class(Change::Gone(object)) => self.workloads.priority_class_gone(&object.name),
            _ => {}
        }
        jobs.hear(heard, now);
        if let Some(workload) = written.filter(|workload| jobs.knows(workload)) {
            self.workload_seen(&workload, now);
        }
        if let Some((key, uid)) = deleted {
            self.workload_gone(&key, &uid, now);
        }
    }

    fn workload_gone(&mut self, key: &Key, uid: &str, now: Timestamp) {
        self.queues.workload_gone(key, uid, now);
        self.workloads.gone(key, uid, now);
    }

    fn workload_seen(&mut self, workload: &Arc<Workload>, now: Timestamp) {
        // Of several operators the one that works counts.
        let known = self.workloads.get(&Key::of(&workload.metadata));
        if let Some(known) = known.filter(|_| self.leadership.may_send()) {
            for milestone in milestones(known, workload) {
                self.metrics.kueue.reached(milestone, workload);
            }
        }
        self.queues.workload_seen(workload, now);
        self.workloads.seen(workload, now);
        if let Some(jobs) = &mut self.jobs {
            let wait = self.queues.around(workload).wait;
            jobs.wait_seen(&Key::of(&workload.metadata), wait, now);
        }
    }

    /// A Workload was written here: this is it now.
    fn workload_written(&mut self, workload: &Arc<Workload>, now: Timestamp) {
        self.queues.written(workload, now);
        self.workloads.written(workload, now);
        if let Some(jobs) = &mut self.jobs {
            jobs.workload_written(workload, now);
        }
    }

    /// Decides who is admitted, and what is to be said of queues.
    fn decide(&mut self) {
        let now = Timestamp::now();
        if self.queues.next_due().is_some_and(|due| due <= now) && self.decisions.has_room() {
            let began = Instant::now();
            let cycle = self.queues.cycle(now);
            if cycle.visited > 0 {
                let admitted = cycle.decisions.iter();
                let admitted = admitted.filter(|one| matches!(one, Decision::Admit(_))).count();
                self.metrics.kueue.cycle(cycle.visited, admitted, began.elapsed());
                debug!(visited = cycle.visited, admitted, "cycle");
            }
            for decision in cycle.decisions {
                self.decisions.send(decision, |key| self.workloads.get(key).cloned());
            }
            for status in self.queues.take_statuses(now) {
                self.decisions.send_status(status);
            }
            for finalizers in self.queues.take_finalizers(now) {
                self.decisions.send_finalizers(finalizers);
            }
        }
        for (queue, number) in self.queues.take_inadmissible() {
            self.metrics.kueue.inadmissible(&queue, number);
        }
        for key in self.queues.take_touched() {
            self.workloads.touch(&key, now);
            if let (Some(jobs), Some(workload)) = (&mut self.jobs, self.workloads.get(&key)) {
                jobs.wait_seen(&key, self.queues.around(workload).wait, now);
            }
        }
    }

    fn take_outcome(&mut self, outcome: Outcome, now: Timestamp) {
        self.decisions.answered(&outcome);
        match outcome {
            Outcome::Written(_, workload) => self.workload_written(&workload, now),
            Outcome::Refused { key, id, refusal, .. } => {
                debug!(workload = %key, error = %refusal, "decision not written");
                self.queues.refused(&key, id, &refusal, now);
            }
            Outcome::ClusterQueueWritten(queue) => self.queues.cluster_queue_written(&queue, now),
            Outcome::LocalQueueWritten(queue) => self.queues.local_queue_written(&queue, now),
            Outcome::FlavorWritten(flavor) => self.queues.flavor_written(&flavor, now),
            Outcome::ClusterQueueRefused { name, refusal } => {
                debug!(cluster_queue = %name, error = %refusal, "status not written");
                self.queues.cluster_queue_status_refused(&name, now);
            }
            Outcome::LocalQueueRefused { key, refusal } => {
                debug!(local_queue = %key, error = %refusal, "status not written");
                self.queues.local_queue_status_refused(&key, now);
            }
            Outcome::FinalizersRefused { of, refusal } => {
                debug!(?of, error = %refusal, "finalizers not written");
                self.queues.finalizers_refused(&of, now);
            }
        }
    }

    fn take_answer(&mut self, key: &Key, answer: Answer, now: Timestamp) {
        let event = match answer {
            Answer::Written(workload) => {
                self.workload_written(&workload, now);
                None
            }
            Answer::Deleted => None,
            Answer::Failed(refusal) => {
                debug!(workload = %key, error = %refusal, "step failed");
                self.workloads.refused(key, &refusal, now)
            }
        };
        if let Some(event) = event {
            self.passes.record(key, event);
        }
    }

    /// Starts passes over Workloads that are due, as many as may run at the same time.
    fn begin_passes(&mut self) {
        while self.passes.has_room() {
            let now = Timestamp::now();
            let due = self.workloads.next_due();
            let queues = &self.queues;
            let chance = fastrand::f64();
            let next = self.workloads.next((now, chance), |workload| queues.around(workload));
            let Some((key, plan)) = next else { return };
            let Some(workload) = self.workloads.get(&key) else { continue };
            let steps = plan.steps.into_iter().map(|step| (Arc::clone(workload), step)).collect();
            if !self.passes.begin(&key, reference(&**workload), due, steps) {
                self.end_pass(&key, now);
            }
        }
    }

    fn end_pass(&mut self, key: &Key, now: Timestamp) {
        let ended = self.workloads.done(key, now);
        self.passes.end(key);
        if ended == Some(Ended::Error) {
            self.metrics.workload_queue.retried();
        }
    }
}

fn hear_of_range(queues: &mut Queues, change: Change<LimitRange>, now: Timestamp) {
    match change {
        Change::Put(range) => queues.limit_range_seen(&range, now),
        Change::Gone(object) => queues.limit_range_gone(&parts(object).0, now),
        Change::Synced => queues.limit_ranges_listed(),
        Change::Listing => {}
    }
}

fn hear_of_class(queues: &mut Queues, change: Change<RuntimeClass>, now: Timestamp) {
    match change {
        Change::Put(class) => queues.runtime_class_seen(&class, now),
        Change::Gone(object) => queues.runtime_class_gone(&object.name, now),
        Change::Synced => queues.runtime_classes_listed(),
        Change::Listing => {}
    }
}

fn parts(object: ObjectKey) -> (Key, String) {
    let ObjectKey { namespace, name, uid } = object;
    (Key { namespace, name }, uid)
}
