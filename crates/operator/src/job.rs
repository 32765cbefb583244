//! The Job controller: hears of Jobs and pods, asks the driver of `lockstep-control` what to do,
//! and has it done. All that is decided is decided there.

mod carry_out;
mod ttl;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use lockstep_control::plan::job::{COMPONENT, Jobs, Key, Options, PodRef, Refusal};
use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, JoinSet};
use tracing::{debug, warn};

use crate::config::FeatureGates;
use crate::metrics::Metrics;
use crate::observe::{Change, Feed, Inbox, ObjectKey, Teller};
use crate::passes::{Limits, News, Passes, Tools};
use crate::recorder::{Recorder, reference};

use carry_out::{Answer, OfJobs};

/// How many pods may lose their finalizer at the same time because their Job is gone.
const ORPHANS_MAX: usize = 32;

/// How the Job controller works.
#[derive(Clone, Debug)]
pub struct JobOptions {
    /// What may be set about Jobs.
    pub jobs: Options,
    /// How many passes, and how much of each.
    pub limits: Limits,
}

impl Default for JobOptions {
    fn default() -> Self {
        let pass_time_max = Duration::from_secs(5);
        let limits = Limits { passes_max: 16, requests_max: 64, pass_time_max };
        Self { jobs: Options::default(), limits }
    }
}

impl JobOptions {
    /// The same, with these features.
    #[must_use]
    pub fn with_gates(mut self, gates: FeatureGates) -> Self {
        self.jobs.job_success_policy = gates.job_success_policy;
        self
    }
}

/// What the controller follows.
#[derive(Clone)]
pub struct Feeds {
    /// All Jobs.
    pub jobs: Feed<Job>,
    /// All pods.
    pub pods: Feed<Pod>,
}

/// Starts the Job controller and the one that deletes finished Jobs after a while.
pub fn spawn(
    client: &Client,
    feeds: &Feeds,
    metrics: &Arc<Metrics>,
    options: JobOptions,
) -> Vec<JoinHandle<()>> {
    let ttl = ttl::spawn(client.clone(), &feeds.jobs, Arc::clone(metrics), &options.jobs);
    let mut inbox = Inbox::new();
    inbox.listen(&feeds.jobs, |_| true, Message::Job);
    inbox.listen(&feeds.pods, |_| true, Message::Pod);
    let tools = Tools {
        client: client.clone(),
        recorder: Recorder::spawn(client.clone(), COMPONENT, ""),
        metrics: Arc::clone(metrics),
        teller: inbox.teller(),
        limits: options.limits,
        shared: (),
    };
    let controller = Controller {
        client: client.clone(),
        metrics: Arc::clone(metrics),
        jobs: Jobs::new(options.jobs),
        teller: inbox.teller(),
        passes: Passes::new(tools),
        orphans: Arc::new(Semaphore::new(ORPHANS_MAX)),
        clean_ups: JoinSet::new(),
    };
    vec![tokio::spawn(controller.run(inbox)), ttl]
}

enum Message {
    Job(Change<Job>),
    Pod(Change<Pod>),
    Pass(News<OfJobs>),
    Orphan(PodRef, Option<Refusal>),
}

impl From<News<OfJobs>> for Message {
    fn from(news: News<OfJobs>) -> Self {
        Self::Pass(news)
    }
}

struct Controller {
    client: Client,
    metrics: Arc<Metrics>,
    jobs: Jobs,
    teller: Teller<Message>,
    passes: Passes<OfJobs>,
    orphans: Arc<Semaphore>,
    /// They end with the controller.
    clean_ups: JoinSet<()>,
}

impl Controller {
    async fn run(mut self, mut inbox: Inbox<Message>) {
        loop {
            // What nobody has a hand free for is not waited for: an answer frees one.
            let pass = self.jobs.next_pass_due().filter(|_| self.passes.has_room());
            let orphan =
                self.jobs.next_orphan_due().filter(|_| self.orphans.available_permits() > 0);
            for message in inbox.next(pass.into_iter().chain(orphan).min()).await {
                self.hear(message);
            }
            self.clean_up();
            self.begin_passes();
            self.count();
        }
    }

    fn hear(&mut self, message: Message) {
        let now = Timestamp::now();
        match message {
            Message::Job(Change::Put(job)) => self.jobs.job_seen(&job, now),
            Message::Job(Change::Gone(ObjectKey { namespace, name, uid })) => {
                self.jobs.job_gone(&Key { namespace, name }, &uid, now);
            }
            Message::Job(Change::Listing) => self.jobs.jobs_listing(),
            Message::Job(Change::Synced) => self.jobs.jobs_listed(now),
            Message::Pod(Change::Put(pod)) => self.jobs.pod_seen(&pod, now),
            Message::Pod(Change::Gone(ObjectKey { namespace, name, uid })) => {
                self.jobs.pod_gone(&PodRef::new(&namespace, &name, &uid), now);
            }
            Message::Pod(Change::Listing) => self.jobs.pods_listing(),
            Message::Pod(Change::Synced) => self.jobs.pods_listed(now),
            Message::Pass(News::Answer(key, answer)) => self.take_in(&key, *answer, now),
            Message::Pass(News::Done(key)) => self.end_pass(&key, now),
            Message::Orphan(pod, refusal) => {
                if let Some(refusal) = &refusal {
                    self.metrics.orphan_queue.retried();
                    warn!(pod = %pod.name, namespace = %pod.namespace, error = %refusal,
                        "finalizer of a pod without its Job not removed, trying again");
                }
                self.jobs.orphan_done(&pod, refusal.as_ref(), now);
            }
        }
    }

    /// Tells the driver what became of a request, and users what they should know.
    fn take_in(&mut self, key: &Key, answer: Answer, now: Timestamp) {
        let jobs = &mut self.jobs;
        let event = match answer {
            Answer::StatusWritten(job) => {
                jobs.status_written(key, &job);
                None
            }
            Answer::Created(pod) => Some(jobs.created(key, &pod)),
            Answer::NotCreated { wanted, refusal, found } => {
                debug!(job = %key, pod = %wanted.name, error = %refusal, "pod not created");
                jobs.create_failed(key, &wanted, &refusal, found.as_ref())
            }
            Answer::Patched(pod) => {
                jobs.patched(key, &pod);
                None
            }
            Answer::NotPatched(pod, refusal) => jobs.patch_failed(key, &pod, &refusal),
            Answer::Deleted(pod, answer) => Some(jobs.deleted(key, &pod, answer.as_ref())),
            Answer::NotDeleted(pod, refusal) => jobs.delete_failed(key, &pod, &refusal),
            Answer::Relisted(uids, pods) => {
                jobs.relisted(key, &uids, &pods);
                None
            }
            Answer::Failed(refusal) => {
                debug!(job = %key, error = %refusal, "step failed");
                jobs.failed(key, &refusal, now);
                None
            }
        };
        if let Some(event) = event {
            self.passes.record(key, event);
        }
    }

    /// Starts passes over what is due, as many as may run at the same time.
    fn begin_passes(&mut self) {
        while self.passes.has_room() {
            let now = Timestamp::now();
            let due = self.jobs.next_pass_due();
            let Some((key, plan)) = self.jobs.next(now) else { return };
            let Some(view) = self.jobs.view(&key) else { continue };
            if let Some(waiting) = &plan.waiting {
                debug!(job = %key, %waiting, "nothing to do");
            }
            if !self.passes.begin(&key, reference(view.job()), due, plan.steps) {
                self.end_pass(&key, now);
            }
        }
    }

    fn end_pass(&mut self, key: &Key, now: Timestamp) {
        let done = self.jobs.done(key, now);
        let Some(running) = self.passes.end(key) else { return };
        if let Some(done) = done {
            if done.result == "error" {
                self.metrics.job_queue.retried();
            }
            self.metrics.jobs.synced(&done, running.took());
        }
    }

    /// Lets pods go whose Jobs are gone.
    fn clean_up(&mut self) {
        while self.clean_ups.try_join_next().is_some() {}
        while let Ok(permit) = Arc::clone(&self.orphans).try_acquire_owned() {
            let Some(orphan) = self.jobs.next_orphan(Timestamp::now()) else { return };
            let ticket = self.metrics.orphan_queue.started(0.0);
            let (client, teller) = (self.client.clone(), self.teller.clone());
            let metrics = Arc::clone(&self.metrics);
            self.clean_ups.spawn(async move {
                let outcome = carry_out::let_go(&client, &orphan).await;
                drop(permit);
                metrics.orphan_queue.finished(ticket);
                teller.tell(Message::Orphan(orphan.pod, outcome.err())).await;
            });
        }
    }

    fn count(&mut self) {
        for fact in self.jobs.take_facts() {
            self.metrics.jobs.note(&fact);
        }
        self.metrics.job_queue.depth(self.jobs.queue_len());
    }
}
