//! CronJobs start Jobs. What is done when is decided in `control::plan::cronjob`.

mod pass;

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    panic::AssertUnwindSafe,
    sync::Arc,
    time::Duration,
};

use futures::FutureExt;
use jiff::Timestamp;
use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::{Api, Client, ResourceExt, runtime::watcher};
use lockstep_control::{
    engine::{Backoff, WorkQueue, after},
    plan::Key,
};
use tokio::task::{JoinHandle, JoinSet};
use tracing::{error, warn};

use self::pass::{Learned, Pass};
use crate::{
    feeds::Feeds,
    observe::{Change, Inbox, ObjectKey},
    recorder::Recorder,
};

const RETRY_BASE: Duration = Duration::from_millis(500);
const RETRY_MAX: Duration = Duration::from_secs(60);
/// How many passes may be under way.
const PASSES_MAX: usize = 16;
/// How long a pass may take before it gives its place to another.
const PASS_TIME_MAX: Duration = Duration::from_secs(30);

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
            passes: JoinSet::new(),
            gone: HashSet::new(),
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
    /// The passes under way.
    passes: JoinSet<Ended>,
    /// Jobs that have gone while passes were under way, by uid: what those learned may be older.
    gone: HashSet<String>,
}

/// What a pass came to.
struct Ended {
    key: Key,
    learned: Learned,
    outcome: Result<Option<Timestamp>, String>,
}

/// The CronJob that controls a Job.
fn owner(job: &Job) -> Option<&OwnerReference> {
    let is_ours = |it: &&OwnerReference| it.controller == Some(true) && it.kind == "CronJob";
    job.owner_references().iter().find(is_ours)
}

impl Controller {
    async fn run(mut self, mut inbox: Inbox<Message>) {
        loop {
            let due = self.queue.next_due().filter(|_| inbox.is_synced() && self.has_room());
            tokio::select! {
                messages = inbox.next(due) => {
                    messages.into_iter().for_each(|message| self.hear(message));
                }
                Some(ended) = self.passes.join_next() => match ended {
                    Ok(ended) => self.end(ended),
                    // Passes are not given up, and what panics in them is caught.
                    Err(error) => error!(%error, "a pass over a cron job was lost"),
                },
            }
            while inbox.is_synced()
                && self.has_room()
                && let Some(key) = self.queue.take_due(Timestamp::now())
            {
                self.begin(key);
            }
        }
    }

    fn has_room(&self) -> bool {
        self.passes.len() < PASSES_MAX
    }

    /// Begins a pass in a task of its own: one that takes long holds up no other.
    fn begin(&mut self, key: Key) {
        let cron = self.crons.get(&key).cloned();
        let version = cron.as_ref().and_then(|cron| cron.resource_version()?.parse::<u64>().ok());
        let Some(cron) = cron.filter(|_| version >= self.written.get(&key).copied()) else {
            // It has gone, or what was written is on its way here.
            self.queue.done(&key);
            return;
        };
        let mut pass = Pass {
            client: self.client.clone(),
            recorder: self.recorder.clone(),
            cron,
            jobs: self.jobs.get(&key).cloned().unwrap_or_default(),
            key,
            learned: Learned::default(),
        };
        self.passes.spawn(async move {
            let run = tokio::time::timeout(PASS_TIME_MAX, pass.run());
            let outcome = match AssertUnwindSafe(run).catch_unwind().await {
                Ok(Ok(outcome)) => outcome.map_err(|error| error.to_string()),
                // What it has done is found by the next one.
                Ok(Err(_)) => Err("it takes too long".to_owned()),
                Err(_) => Err("it panicked".to_owned()),
            };
            Ended { key: pass.key, learned: pass.learned, outcome }
        });
    }

    /// Notes what a pass came to.
    fn end(&mut self, ended: Ended) {
        let Ended { key, learned, outcome } = ended;
        for job in learned.jobs {
            // What was heard of it since is newer.
            let uid = job.uid().unwrap_or_default();
            if !self.owners.contains_key(&uid) && !self.gone.contains(&uid) {
                self.put(job);
            }
        }
        if self.passes.is_empty() {
            self.gone.clear();
        }
        if let Some(version) = learned.written.filter(|_| self.crons.contains_key(&key)) {
            self.written.insert(key.clone(), version);
        }
        let again = match outcome {
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
                if !self.passes.is_empty() {
                    self.gone.insert(gone.uid.clone());
                }
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
}
