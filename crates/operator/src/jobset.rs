//! The JobSet controller: hears of JobSets, their Jobs and Services, asks the driver of
//! `lockstep-control` what to do, and has it done. All that is decided is decided there.
//!
//! One task holds the driver. Passes run beside it, each in a task of its own; what became of their
//! steps comes back as messages, in the same row as what the watches tell, so that the driver knows
//! of its own writes before it plans again.

mod carry_out;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ObjectReference, Service};
use kube::Client;
use lockstep_api::jobset::JobSet;
use lockstep_control::plan::Key;
use lockstep_control::plan::jobset::{CONTROLLER, Ended, Event, JobSets, Options};
use tokio::task::{JoinHandle, JoinSet};
use tracing::{debug, warn};

use crate::config::FeatureGates;
use crate::lease::Leadership;
use crate::metrics::Metrics;
use crate::observe::{Change, Feed, Inbox, ObjectKey, Teller};
use crate::recorder::{Note, Recorder, Reporter, reference};

use carry_out::{Answer, Pass};

/// How the JobSet controller works.
#[derive(Clone, Debug)]
pub struct JobSetOptions {
    /// What may be set about JobSets.
    pub jobsets: Options,
    /// Where it runs, for events.
    pub instance: String,
    /// Whether anything may be done. Without it everything is followed all the same.
    pub leadership: Leadership,
    /// How many passes may run at the same time.
    pub passes_max: usize,
    /// How many requests of one pass may be on their way at the same time.
    pub requests_max: usize,
    /// A pass that has taken this long begins no more requests; the rest is for the next one.
    pub pass_time_max: Duration,
}

impl Default for JobSetOptions {
    fn default() -> Self {
        Self {
            jobsets: Options::default(),
            instance: CONTROLLER.to_owned(),
            leadership: Leadership::alone(),
            passes_max: 16,
            requests_max: 50,
            pass_time_max: Duration::from_secs(5),
        }
    }
}

impl JobSetOptions {
    /// The same, with these features.
    #[must_use]
    pub fn with_gates(mut self, gates: FeatureGates) -> Self {
        self.jobsets.gates = gates;
        self
    }
}

/// What the controller follows.
#[derive(Clone)]
pub struct Feeds {
    /// All JobSets.
    pub jobsets: Feed<JobSet>,
    /// All Jobs.
    pub jobs: Feed<Job>,
    /// All Services.
    pub services: Feed<Service>,
}

/// Starts the JobSet controller.
pub fn spawn(
    client: &Client,
    feeds: &Feeds,
    metrics: &Arc<Metrics>,
    options: JobSetOptions,
) -> JoinHandle<()> {
    let mut inbox = Inbox::new();
    inbox.listen(&feeds.jobsets, |_| true, Message::JobSet);
    inbox.listen(&feeds.jobs, |_| true, Message::Job);
    inbox.listen(&feeds.services, |_| true, Message::Service);
    let reporter = Reporter {
        component: CONTROLLER.to_owned(),
        instance: options.instance.clone(),
        action: Some("Reconciling"),
    };
    let controller = Controller {
        client: client.clone(),
        recorder: Recorder::spawn_as(client.clone(), reporter),
        metrics: Arc::clone(metrics),
        jobsets: JobSets::new(options.jobsets.clone()),
        teller: inbox.teller(),
        passes: BTreeMap::new(),
        tasks: JoinSet::new(),
        options,
    };
    tokio::spawn(controller.run(inbox))
}

enum Message {
    JobSet(Change<JobSet>),
    Job(Change<Job>),
    Service(Change<Service>),
    Answer(Key, Box<Answer>),
    Done(Key),
}

struct Controller {
    client: Client,
    recorder: Recorder,
    metrics: Arc<Metrics>,
    options: JobSetOptions,
    jobsets: JobSets,
    teller: Teller<Message>,
    passes: BTreeMap<Key, Running>,
    /// Passes; they end with the controller.
    tasks: JoinSet<()>,
}

/// A pass that is under way.
struct Running {
    jobset: Arc<ObjectReference>,
    since: Instant,
    ticket: u64,
    /// Jobs that could not be created so far, and why: told together.
    not_created: Vec<(String, String)>,
}

impl Controller {
    async fn run(mut self, mut inbox: Inbox<Message>) {
        loop {
            // What nobody has a hand free for is not waited for: an answer frees one. And whoever
            // does not lead has nothing to do.
            let is_free = self.passes.len() < self.options.passes_max;
            let may_begin = is_free && self.options.leadership.may_send();
            let due = self.jobsets.next_due().filter(|_| may_begin);
            let messages = tokio::select! {
                messages = inbox.next(due) => messages,
                () = self.options.leadership.changed() => Vec::new(),
            };
            for message in messages {
                self.hear(message);
            }
            while self.tasks.try_join_next().is_some() {}
            if self.options.leadership.may_send() {
                self.begin_passes();
            }
            self.metrics.jobset_queue.depth(self.jobsets.queue_len());
        }
    }

    fn hear(&mut self, message: Message) {
        let now = Timestamp::now();
        let jobsets = &mut self.jobsets;
        match message {
            Message::JobSet(Change::Listing) => {}
            Message::JobSet(Change::Put(jobset)) => {
                jobsets.jobset_seen(&filled_in(JobSet::clone(&jobset)), now);
            }
            Message::JobSet(Change::Gone(object)) => {
                let (key, uid) = parts(object);
                jobsets.jobset_gone(&key, &uid);
            }
            Message::JobSet(Change::Synced) => jobsets.jobsets_listed(),
            Message::Job(Change::Listing) => jobsets.jobs_listing(),
            Message::Job(Change::Put(job)) => jobsets.job_seen(&job, now),
            Message::Job(Change::Gone(object)) => {
                let (key, uid) = parts(object);
                jobsets.job_gone(&key, &uid, now);
            }
            Message::Job(Change::Synced) => jobsets.jobs_listed(now),
            Message::Service(Change::Listing) => jobsets.services_listing(),
            Message::Service(Change::Put(service)) => jobsets.service_seen(&service.metadata),
            Message::Service(Change::Gone(object)) => {
                let (key, uid) = parts(object);
                jobsets.service_gone(&key, &uid, now);
            }
            Message::Service(Change::Synced) => jobsets.services_listed(now),
            Message::Answer(key, answer) => self.take_in(&key, *answer, now),
            Message::Done(key) => self.end_pass(&key, now),
        }
    }

    /// Tells the driver what became of a request, and users what they should know.
    fn take_in(&mut self, key: &Key, answer: Answer, now: Timestamp) {
        let jobsets = &mut self.jobsets;
        let event = match answer {
            Answer::StatusWritten(jobset) => jobsets.status_written(key, &filled_in(*jobset)),
            Answer::JobWritten(job) => {
                jobsets.job_written(key, job, now);
                None
            }
            Answer::JobDeleted(job) => {
                jobsets.job_deleted(&job, now);
                None
            }
            Answer::JobNotCreated { name, refusal, found } => {
                debug!(jobset = %key, job = %name, error = %refusal, "Job not created");
                if jobsets.job_not_created(key, &refusal, found, now)
                    && let Some(running) = self.passes.get_mut(key)
                {
                    running.not_created.push((name, refusal.message));
                }
                None
            }
            Answer::JobNotWritten(job, refusal) => {
                if jobsets.job_not_written(key, &job, &refusal, now) {
                    debug!(jobset = %key, job = %job.name, error = %refusal, "Job not changed");
                }
                None
            }
            Answer::ServiceCreated(service) => {
                jobsets.service_created(&service);
                None
            }
            Answer::ServiceNotCreated(refusal, found) => {
                jobsets.service_not_created(key, &refusal, found.as_deref())
            }
            Answer::ClaimCreated(name) => {
                jobsets.claim_created(key, &name);
                None
            }
            Answer::ClaimNotCreated(refusal) => jobsets.claim_not_created(key, &refusal),
            Answer::Failed(refusal) => {
                debug!(jobset = %key, error = %refusal, "step failed");
                jobsets.failed(key, &refusal, now);
                None
            }
        };
        if let (Some(event), Some(running)) = (event, self.passes.get(key)) {
            self.recorder.record(note(&running.jobset, event));
        }
    }

    /// Starts passes over what is due, as many as may run at the same time.
    fn begin_passes(&mut self) {
        while self.passes.len() < self.options.passes_max {
            let now = Timestamp::now();
            let due = self.jobsets.next_due();
            let Some((key, plan)) = self.jobsets.next(now) else { return };
            let Some(view) = self.jobsets.view(&key) else { continue };
            let jobset = Arc::new(reference(view.jobset()));
            let waited = due.map_or(0.0, |due| now.duration_since(due).as_secs_f64().max(0.0));
            let ticket = self.metrics.jobset_queue.started(waited);
            let running = Running {
                jobset: Arc::clone(&jobset),
                since: Instant::now(),
                ticket,
                not_created: Vec::new(),
            };
            self.passes.insert(key.clone(), running);
            if let Some(waiting) = &plan.waiting {
                debug!(jobset = %key, %waiting, "nothing to do");
            }
            if plan.steps.is_empty() {
                self.end_pass(&key, now);
                continue;
            }
            let pass = Pass {
                client: self.client.clone(),
                recorder: self.recorder.clone(),
                metrics: Arc::clone(&self.metrics),
                teller: self.teller.clone(),
                requests_max: self.options.requests_max,
                until: Instant::now() + self.options.pass_time_max,
                jobset,
                key,
            };
            self.tasks.spawn(pass.run(plan.steps));
        }
    }

    fn end_pass(&mut self, key: &Key, now: Timestamp) {
        let ended = self.jobsets.done(key, now);
        let Some(running) = self.passes.remove(key) else { return };
        if !running.not_created.is_empty() {
            let event = Event::jobs_not_created(&running.not_created);
            warn!(jobset = %key, error = %event.message, "Jobs not created, trying again");
            self.recorder.record(note(&running.jobset, event));
        }
        self.metrics.jobset_queue.finished(running.ticket);
        if let Some(ended) = ended {
            if ended == Ended::Error {
                self.metrics.jobset_queue.retried();
            }
            self.metrics.jobsets.reconciled(ended, running.since.elapsed());
        }
    }
}

/// A set as a webhook would have made it: where there is none, nobody has filled it in.
fn filled_in(mut jobset: JobSet) -> JobSet {
    jobset.fill_in();
    jobset
}

fn parts(object: ObjectKey) -> (Key, String) {
    let ObjectKey { namespace, name, uid } = object;
    (Key { namespace, name }, uid)
}

fn note(jobset: &ObjectReference, event: Event) -> Note {
    let Event { is_warning, reason, message } = event;
    Note { regarding: jobset.clone(), is_warning, reason, message }
}
