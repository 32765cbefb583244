//! Deletes finished Jobs when they have been kept long enough.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::batch::v1::Job;
use kube::{Api, Client};
use lockstep_control::engine::{Backoff, WorkQueue};
use lockstep_control::plan::ttl::expires_at;
use tokio::task::{JoinHandle, JoinSet};
use tracing::{info, warn};

use crate::metrics::Metrics;
use crate::observe::{Change, Feed, Inbox, ObjectKey, Teller};
use crate::write;

/// How many Jobs may be on their way out at the same time.
const DELETIONS_MAX: usize = 16;

const RETRY_BASE: Duration = Duration::from_secs(1);
const RETRY_MAX: Duration = Duration::from_secs(60);

enum Message {
    Job(Change<Job>),
    /// What became of a deletion: when to look again, if at all.
    Tried(ObjectKey, kube::Result<Option<Timestamp>>),
}

/// Starts the controller.
pub(super) fn spawn(client: Client, jobs: &Feed<Job>, metrics: Arc<Metrics>) -> JoinHandle<()> {
    let mut inbox = Inbox::new();
    inbox.listen(jobs, |_| true, Message::Job);
    let teller = inbox.teller();
    let controller = Ttl {
        client,
        metrics,
        teller,
        queue: WorkQueue::new(),
        backoff: Backoff::new(RETRY_BASE, RETRY_MAX),
        deletions: BTreeMap::new(),
        tasks: JoinSet::new(),
    };
    tokio::spawn(controller.run(inbox))
}

struct Ttl {
    client: Client,
    metrics: Arc<Metrics>,
    teller: Teller<Message>,
    queue: WorkQueue<ObjectKey>,
    backoff: Backoff<ObjectKey>,
    /// What is being deleted, with its ticket.
    deletions: BTreeMap<ObjectKey, u64>,
    tasks: JoinSet<()>,
}

impl Ttl {
    async fn run(mut self, mut inbox: Inbox<Message>) {
        loop {
            let due = self.queue.next_due().filter(|_| self.deletions.len() < DELETIONS_MAX);
            for message in inbox.next(due).await {
                self.hear(message);
            }
            while self.tasks.try_join_next().is_some() {}
            self.begin_deletions();
            self.metrics.ttl_queue.depth(self.queue.len());
        }
    }

    fn hear(&mut self, message: Message) {
        match message {
            Message::Job(Change::Put(job)) => {
                let key = ObjectKey::of(&*job);
                // The earliest moment wins in the queue; a later one must replace it.
                self.queue.remove(&key);
                if let Some(at) = expires_at(&job) {
                    self.queue.add(key, at);
                }
            }
            Message::Job(Change::Gone(key)) => {
                self.queue.remove(&key);
                self.backoff.succeeded(&key);
            }
            Message::Job(Change::Synced) => {}
            Message::Tried(key, outcome) => {
                if let Some(ticket) = self.deletions.remove(&key) {
                    self.metrics.ttl_queue.finished(ticket);
                }
                match outcome {
                    Ok(again) => {
                        self.backoff.succeeded(&key);
                        again.into_iter().for_each(|at| self.queue.add(key.clone(), at));
                    }
                    Err(error) => {
                        warn!(job = %key.name, namespace = %key.namespace, %error,
                            "finished job not deleted, trying again");
                        self.metrics.ttl_queue.retried();
                        let wait = SignedDuration::try_from(self.backoff.failed(&key));
                        let at = Timestamp::now().saturating_add(wait.unwrap_or_default());
                        self.queue.add(key.clone(), at.unwrap_or(Timestamp::MAX));
                    }
                }
                self.queue.done(&key);
            }
        }
    }

    fn begin_deletions(&mut self) {
        while self.deletions.len() < DELETIONS_MAX {
            let Some(key) = self.queue.take_due(Timestamp::now()) else { return };
            self.deletions.insert(key.clone(), self.metrics.ttl_queue.started(0.0));
            let (client, teller) = (self.client.clone(), self.teller.clone());
            let metrics = Arc::clone(&self.metrics);
            self.tasks.spawn(async move {
                let outcome = delete(&client, &metrics, &key).await;
                teller.tell(Message::Tried(key, outcome)).await;
            });
        }
    }
}

/// Deletes the Job, unless it has changed its mind meanwhile; when to look again, if at all.
async fn delete(
    client: &Client,
    metrics: &Metrics,
    key: &ObjectKey,
) -> kube::Result<Option<Timestamp>> {
    let api: Api<Job> = Api::namespaced(client.clone(), &key.namespace);
    let Some(job) = api.get_opt(&key.name).await? else { return Ok(None) };
    if job.metadata.uid.as_deref() != Some(&key.uid) {
        return Ok(None);
    }
    let Some(at) = expires_at(&job) else { return Ok(None) };
    let late = Timestamp::now().duration_since(at);
    if late.is_negative() {
        return Ok(Some(at));
    }
    match write::delete_job(client, (&key.namespace, &key.name, &key.uid)).await {
        Ok(()) => {
            info!(job = %key.name, namespace = %key.namespace, "finished job deleted");
            metrics.jobs.ttl_deletion.observe(late.as_secs_f64());
            Ok(None)
        }
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
        Err(error) => Err(error),
    }
}
