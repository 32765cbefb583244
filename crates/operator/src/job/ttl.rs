//! Deletes finished Jobs when they have been kept long enough.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use kube::{Api, Client};
use lockstep_control::plan::job::ttl::{Expiry, Ttls, expiry};
use lockstep_control::plan::job::{Key, Options};
use tokio::task::{JoinHandle, JoinSet};
use tracing::{info, warn};

use crate::metrics::Metrics;
use crate::observe::{Change, Feed, Inbox, ObjectKey, Teller};
use crate::write;

/// How many Jobs may be on their way out at the same time.
const DELETIONS_MAX: usize = 16;

enum Message {
    Job(Change<Job>),
    Tried(Key, Result<(), String>),
}

/// Starts the controller.
pub(super) fn spawn(
    client: Client,
    jobs: &Feed<Job>,
    metrics: Arc<Metrics>,
    options: &Options,
) -> JoinHandle<()> {
    let mut inbox = Inbox::new();
    inbox.listen(jobs, |_| true, Message::Job);
    let controller = Controller {
        client,
        metrics,
        teller: inbox.teller(),
        ttls: Ttls::new(options),
        deletions: BTreeMap::new(),
        tasks: JoinSet::new(),
    };
    tokio::spawn(controller.run(inbox))
}

struct Controller {
    client: Client,
    metrics: Arc<Metrics>,
    teller: Teller<Message>,
    ttls: Ttls,
    /// What is being deleted, with its ticket.
    deletions: BTreeMap<Key, u64>,
    tasks: JoinSet<()>,
}

impl Controller {
    async fn run(mut self, mut inbox: Inbox<Message>) {
        loop {
            let due = self.ttls.next_due().filter(|_| self.deletions.len() < DELETIONS_MAX);
            for message in inbox.next(due).await {
                self.hear(message);
            }
            while self.tasks.try_join_next().is_some() {}
            self.begin_deletions();
        }
    }

    fn hear(&mut self, message: Message) {
        let now = Timestamp::now();
        match message {
            Message::Job(Change::Put(job)) => self.ttls.job_seen(&job, now),
            Message::Job(Change::Gone(ObjectKey { namespace, name, .. })) => {
                self.ttls.job_gone(&Key { namespace, name });
            }
            Message::Job(Change::Listing | Change::Synced) => {}
            Message::Tried(key, outcome) => {
                if let Some(ticket) = self.deletions.remove(&key) {
                    self.metrics.ttl_queue.finished(ticket);
                }
                match outcome {
                    Ok(()) => self.ttls.done(&key),
                    Err(error) => {
                        warn!(job = %key, %error, "finished job not deleted, trying again");
                        self.metrics.ttl_queue.retried();
                        self.ttls.failed(&key, now);
                    }
                }
            }
        }
    }

    fn begin_deletions(&mut self) {
        while self.deletions.len() < DELETIONS_MAX {
            let now = Timestamp::now();
            let Some((key, due)) = self.ttls.next(now) else { return };
            let waited = now.duration_since(due).as_secs_f64().max(0.0);
            self.deletions.insert(key.clone(), self.metrics.ttl_queue.started(waited));
            let (client, teller) = (self.client.clone(), self.teller.clone());
            let metrics = Arc::clone(&self.metrics);
            self.tasks.spawn(async move {
                let outcome = delete(&client, &metrics, &key).await;
                teller.tell(Message::Tried(key, outcome)).await;
            });
        }
    }
}

/// Deletes the Job, unless it is to stay after all.
async fn delete(client: &Client, metrics: &Metrics, key: &Key) -> Result<(), String> {
    let api: Api<Job> = Api::namespaced(client.clone(), &key.namespace);
    let job = api.get_opt(&key.name).await.map_err(|error| error.to_string())?;
    let Some(job) = job else { return Ok(()) };
    let late = match expiry(&job) {
        Expiry::Never => return Ok(()),
        Expiry::Unknown => return Err("it does not say when it ended".to_owned()),
        Expiry::At(at) => Timestamp::now().duration_since(at),
    };
    if late.is_negative() {
        // The watch is about to tell of the version that says so.
        return Ok(());
    }
    let uid = job.metadata.uid.unwrap_or_default();
    match write::delete_whole::<Job>(client, (&key.namespace, &key.name, &uid)).await {
        Ok(_) => {
            info!(job = %key, "finished job deleted");
            metrics.jobs.ttl_deletion.observe(late.as_secs_f64());
            Ok(())
        }
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}
