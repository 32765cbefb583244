//! CronJobs start Jobs. What is done when is decided in `control::plan::cronjob`.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::{CronJob, CronJobStatus, Job};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions},
    runtime::watcher,
};
use lockstep_control::{
    engine::{Backoff, WorkQueue, after},
    plan::{
        Event, Key,
        cronjob::{self, Step, View},
    },
};
use serde_json::json;
use tokio::task::JoinHandle;
use tracing::{debug, warn};

use crate::{
    feeds::Feeds,
    observe::{Change, Inbox, ObjectKey},
    recorder::{Note, Recorder, reference},
};

const RETRY_BASE: Duration = Duration::from_millis(500);
const RETRY_MAX: Duration = Duration::from_secs(60);

/// Starts the controller.
pub fn spawn(client: Client, feeds: &Feeds) -> JoinHandle<()> {
    let jobs = feeds.jobs.clone();
    tokio::spawn(async move {
        let mut inbox = Inbox::new();
        inbox.listen(&jobs, |job| owner(job).is_some(), Message::Job);
        let crons: Api<CronJob> = Api::all(client.clone());
        inbox.watch(crons, watcher::Config::default(), Message::Cron);
        let controller = Controller {
            recorder: Recorder::spawn(client.clone(), "cronjob-controller", ""),
            client,
            crons: BTreeMap::new(),
            jobs: BTreeMap::new(),
            owners: HashMap::new(),
            written: BTreeMap::new(),
            queue: WorkQueue::new(),
            backoff: Backoff::new(RETRY_BASE, RETRY_MAX),
        };
        controller.run(inbox).await;
    })
}

enum Message {
    Cron(Change<CronJob>),
    Job(Change<Job>),
}

struct Controller {
    client: Client,
    recorder: Recorder,
    crons: BTreeMap<Key, Arc<CronJob>>,
    /// The Jobs that each one controls, by uid.
    jobs: BTreeMap<Key, BTreeMap<String, Arc<Job>>>,
    /// Who controls a Job, by its uid.
    owners: HashMap<String, Key>,
    /// What was written last: older versions are not planned on.
    written: BTreeMap<Key, u64>,
    queue: WorkQueue<Key>,
    backoff: Backoff<Key>,
}

/// The CronJob that controls a Job.
fn owner(job: &Job) -> Option<&OwnerReference> {
    let is_ours = |it: &&OwnerReference| it.controller == Some(true) && it.kind == "CronJob";
    job.owner_references().iter().find(is_ours)
}

impl Controller {
    async fn run(mut self, mut inbox: Inbox<Message>) {
        loop {
            let due = self.queue.next_due().filter(|_| inbox.is_synced());
            for message in inbox.next(due).await {
                self.hear(message);
            }
            while inbox.is_synced()
                && let Some(key) = self.queue.take_due(Timestamp::now())
            {
                let again = match self.settle(&key).await {
                    Ok(wake_at) => {
                        self.backoff.succeeded(&key);
                        wake_at
                    }
                    Err(error) => {
                        let wait = self.backoff.failed(&key);
                        warn!(cronjob = %key, %error, ?wait, "cron job not settled, trying again");
                        Some(after(Timestamp::now(), wait))
                    }
                };
                self.queue.done(&key);
                if let Some(at) = again {
                    self.queue.add(key, at);
                }
            }
        }
    }

    fn hear(&mut self, message: Message) {
        let touched = match message {
            Message::Cron(Change::Put(cron)) => {
                let key = Key::of(&cron.metadata);
                self.crons.insert(key.clone(), cron);
                Some(key)
            }
            Message::Cron(Change::Gone(ObjectKey { namespace, name, uid })) => {
                let key = Key { namespace, name };
                if self.crons.get(&key).is_some_and(|cron| cron.uid().as_deref() == Some(&*uid)) {
                    self.crons.remove(&key);
                    self.written.remove(&key);
                    self.backoff.succeeded(&key);
                    self.queue.remove(&key);
                }
                None
            }
            Message::Job(Change::Put(job)) => self.put(job),
            Message::Job(Change::Gone(gone)) => {
                let key = self.owners.remove(&gone.uid);
                if let Some(jobs) = key.as_ref().and_then(|key| self.jobs.get_mut(key)) {
                    jobs.remove(&gone.uid);
                }
                key
            }
            Message::Cron(Change::Listing | Change::Synced)
            | Message::Job(Change::Listing | Change::Synced) => None,
        };
        if let Some(key) = touched {
            if self.jobs.get(&key).is_some_and(BTreeMap::is_empty) {
                self.jobs.remove(&key);
            }
            self.queue.add(key, Timestamp::now());
        }
    }

    fn put(&mut self, job: Arc<Job>) -> Option<Key> {
        let name = owner(&job)?.name.clone();
        let key = Key { namespace: job.namespace().unwrap_or_default(), name };
        let uid = job.uid().unwrap_or_default();
        self.owners.insert(uid.clone(), key.clone());
        self.jobs.entry(key.clone()).or_default().insert(uid, job);
        Some(key)
    }

    /// Does what is to be done about a CronJob; when to look again.
    async fn settle(&mut self, key: &Key) -> kube::Result<Option<Timestamp>> {
        let Some(cron) = self.crons.get(key).cloned() else { return Ok(None) };
        let version = cron.resource_version().and_then(|version| version.parse::<u64>().ok());
        if version < self.written.get(key).copied() {
            // What was written is on its way here.
            return Ok(None);
        }
        self.look_for_missing(key, &cron).await?;
        let uid = cron.uid().unwrap_or_default();
        let is_own = |job: &&Job| owner(job).is_some_and(|owner| owner.uid == uid);
        let jobs: Vec<Arc<Job>> = self.jobs.get(key).into_iter().flatten().map(second).collect();
        let jobs: Vec<&Job> = jobs.iter().map(|job| &**job).filter(is_own).collect();
        let plan = cronjob::plan(View { cron: &cron, jobs: &jobs }, Timestamp::now());
        debug!(cronjob = %key, waiting = ?plan.waiting, steps = plan.steps.len(), "planned");
        for event in plan.events {
            self.tell(&cron, event);
        }
        for step in plan.steps {
            self.apply(key, &cron, step).await?;
        }
        Ok(plan.wake_at)
    }

    /// Asks for Jobs that should run and were not heard of: their news may be late.
    async fn look_for_missing(&mut self, key: &Key, cron: &CronJob) -> kube::Result<()> {
        let active = cron.status.iter().flat_map(|status| status.active.iter().flatten());
        for wanted in active {
            let (Some(name), Some(uid)) = (&wanted.name, &wanted.uid) else { continue };
            if self.jobs.get(key).is_some_and(|jobs| jobs.contains_key(uid)) {
                continue;
            }
            if let Some(job) = self.jobs_of(key).get_opt(name).await?
                && job.uid().as_ref() == Some(uid)
            {
                self.put(Arc::new(job));
            }
        }
        Ok(())
    }

    async fn apply(&mut self, key: &Key, cron: &CronJob, step: Step) -> kube::Result<()> {
        match step {
            Step::Delete { name, uid, done } => {
                let exactly = Preconditions { uid: Some(uid), ..Preconditions::default() };
                let how = DeleteParams::background().preconditions(exactly);
                match self.jobs_of(key).delete(&name, &how).await {
                    Ok(_) => self.tell(cron, done),
                    Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => {}
                    Err(error) => {
                        let message = format!("Deleted job: {}", words(&error));
                        self.tell(cron, warning("FailedDelete", message));
                        return Err(error);
                    }
                }
                Ok(())
            }
            Step::Start { job, mut status, done } => {
                let Some(started) = self.start(key, cron, &job, done).await? else {
                    return Ok(());
                };
                status.active.get_or_insert_default().push(cronjob::reference(&started));
                self.put(Arc::new(started));
                self.record(key, cron, &status).await
            }
            Step::Record(status) => self.record(key, cron, &status).await,
        }
    }

    /// Creates a Job; nothing when its name belongs to somebody else, or nothing can be created.
    async fn start(
        &self,
        key: &Key,
        cron: &CronJob,
        job: &Job,
        done: Event,
    ) -> kube::Result<Option<Job>> {
        let api = self.jobs_of(key);
        match api.create(&PostParams::default(), job).await {
            Ok(created) => {
                self.tell(cron, done);
                Ok(Some(created))
            }
            Err(kube::Error::Api(status)) if status.reason == "AlreadyExists" => {
                let there = api.get_opt(&job.name_any()).await?;
                let is_ours = |job: &Job| owner(job).map(|owner| &owner.uid) == cron.uid().as_ref();
                Ok(there.filter(is_ours))
            }
            Err(kube::Error::Api(status)) if is_ending(&status.message) => Ok(None),
            Err(error) => {
                let message = format!("Error creating job: {}", words(&error));
                self.tell(cron, warning("FailedCreate", message));
                Err(error)
            }
        }
    }

    async fn record(
        &mut self,
        key: &Key,
        cron: &CronJob,
        status: &CronJobStatus,
    ) -> kube::Result<()> {
        let api: Api<CronJob> = Api::namespaced(self.client.clone(), &key.namespace);
        // Whoever wrote in between is heard of, and planned on, next.
        let patch = json!({
            "metadata": { "resourceVersion": cron.resource_version(), "uid": cron.uid() },
            "status": {
                "active": status.active,
                "lastScheduleTime": status.last_schedule_time,
                "lastSuccessfulTime": status.last_successful_time,
            },
        });
        match api.patch_status(&key.name, &PatchParams::default(), &Patch::Merge(&patch)).await {
            Ok(written) => {
                let version = written.resource_version().and_then(|version| version.parse().ok());
                if let Some(version) = version {
                    self.written.insert(key.clone(), version);
                }
                Ok(())
            }
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn jobs_of(&self, key: &Key) -> Api<Job> {
        Api::namespaced(self.client.clone(), &key.namespace)
    }

    fn tell(&self, cron: &CronJob, event: Event) {
        let Event { is_warning, reason, message } = event;
        self.recorder.record(Note { regarding: reference(cron), is_warning, reason, message });
    }
}

fn second((_, job): (&String, &Arc<Job>)) -> Arc<Job> {
    Arc::clone(job)
}

fn warning(reason: &str, message: String) -> Event {
    Event { is_warning: true, reason: reason.to_owned(), message }
}

/// What the API server said, if it was the one who spoke.
fn words(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message.clone(),
        other => other.to_string(),
    }
}

/// Whether nothing can be created because the namespace goes.
fn is_ending(message: &str) -> bool {
    message.contains("because it is being terminated")
}
