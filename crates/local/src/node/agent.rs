//! The node agent: watches the pods of one or more nodes and makes them happen.
//!
//! One task holds what is known of every pod, plans, and hands steps out; whatever takes time
//! (starting
//! a process, a probe, a write) runs in a task of its own and reports back as a message. What a
//! container is made of is the business of a [`Backend`].

mod backend;
mod found;
mod handle;
mod patch;
mod steps;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::{Client, ResourceExt};
use lockstep_control::engine::{Backoff, WorkQueue};
use lockstep_control::plan::pod::{self, Memory, NodeFacts, Options};
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::task::JoinHandle;
use tracing::{debug, warn};

pub use backend::{Backend, Ended, Launched, Outcome, Told};
pub use handle::AgentHandle;

use found::Found;

use crate::observe::{Change, Feed, ObjectKey};
use crate::recorder::Recorder;

/// The first and the longest wait between two tries of a write.
const RETRY_FIRST: Duration = Duration::from_millis(200);
const RETRY_MAX: Duration = Duration::from_secs(10);

/// How long to wait for the watch to tell what a pod is by now that was not what we thought. To
/// write the same again before that would be refused again.
const STALE_PATIENCE: Duration = Duration::from_secs(2);

/// How many messages are heard before the pods they are about are looked at.
const BATCH_MAX: usize = 1024;

/// How often pods of a silent node are looked at.
const SILENCE: Duration = Duration::from_secs(1);

/// How an agent works.
#[derive(Clone, Debug)]
pub struct AgentOptions {
    /// Who speaks in its events.
    pub host: String,
    /// What may be changed about the life of pods.
    pub pods: Options,
    /// How many writes to the API may be on their way at the same time.
    pub writes_max: usize,
    /// How many containers may be starting at the same time.
    pub starts_max: usize,
}

impl AgentOptions {
    /// Options for the agent of one node.
    pub fn for_node(name: &str) -> Self {
        Self { host: name.to_owned(), pods: Options::default(), writes_max: 64, starts_max: 64 }
    }
}

/// An agent at work.
pub struct Agent<B> {
    client: Client,
    backend: Arc<B>,
    options: AgentOptions,
    recorder: Recorder,
    sender: mpsc::Sender<Message>,
    writes: Arc<Semaphore>,
    starts: Arc<Semaphore>,
    pods: HashMap<String, Entry>,
    queue: WorkQueue<String>,
    /// How long to wait with writes that failed, by pod.
    backoff: Backoff<String>,
    found: Found,
    /// Whom to tell when everything has ended, once the node is to go.
    leaving: Option<oneshot::Sender<()>>,
}

/// A pod and what is known of it.
struct Entry {
    pod: Arc<Pod>,
    memory: Memory,
    /// Whether the last write failed.
    is_failing: bool,
    /// The version our last write made, until the watch tells of it. What the watch tells is shared
    /// by all who listen; an answer of our own would be one more copy for as long as the pod is
    /// there.
    awaited: Option<u64>,
}

/// What an agent hears.
pub(super) enum Message {
    /// The API changed.
    Pod(Change<Pod>),
    /// An instance of a container ended.
    Ended(Ended),
    /// A step was carried out.
    Done { uid: String, outcome: Outcome },
    /// The node is about to go.
    Leave(oneshot::Sender<()>),
}

impl<B: Backend> Agent<B> {
    /// Starts an agent. `ends` tells it of containers that end. It works until its task is aborted.
    pub fn spawn(
        client: Client,
        pods: Feed<Pod>,
        backend: Arc<B>,
        ends: mpsc::UnboundedReceiver<Ended>,
        options: AgentOptions,
    ) -> JoinHandle<()> {
        Self::start(client, pods, backend, ends, options).into_task()
    }

    /// As [`Agent::spawn`], for a node that can shut down in good order.
    pub fn start(
        client: Client,
        pods: Feed<Pod>,
        backend: Arc<B>,
        ends: mpsc::UnboundedReceiver<Ended>,
        options: AgentOptions,
    ) -> AgentHandle {
        let (sender, receiver) = mpsc::channel(4096);
        let messages = sender.clone();
        let task = tokio::spawn(async move {
            let owner = Arc::clone(&backend);
            let is_ours = move |pod: &Pod| {
                let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
                node.is_some_and(|node| owner.owns(node))
            };
            let _listening = pods.forward(is_ours, sender.clone(), Message::Pod);
            let recovering = Arc::clone(&backend);
            // It asks every process that was left, and waits for the answers.
            let recovered = tokio::task::spawn_blocking(move || recovering.recover()).await;
            let recovered = recovered.unwrap_or_else(|error| {
                warn!(%error, "cannot find out what still runs");
                Vec::new()
            });
            let agent = Self {
                recorder: Recorder::spawn(client.clone(), "kubelet", &options.host),
                client,
                backend,
                writes: Arc::new(Semaphore::new(options.writes_max)),
                starts: Arc::new(Semaphore::new(options.starts_max)),
                options,
                sender,
                pods: HashMap::new(),
                queue: WorkQueue::new(),
                backoff: Backoff::new(RETRY_FIRST, RETRY_MAX),
                found: Found::new(recovered),
                leaving: None,
            };
            agent.run(receiver, ends).await;
        });
        AgentHandle::new(task, messages)
    }

    async fn run(
        mut self,
        mut receiver: mpsc::Receiver<Message>,
        mut ends: mpsc::UnboundedReceiver<Ended>,
    ) {
        let (mut batch, mut ended) = (Vec::new(), Vec::new());
        loop {
            let due = self.queue.next_due().filter(|_| self.found.is_closed());
            let wait = due.map(|at| {
                Duration::try_from(at.duration_since(Timestamp::now())).unwrap_or_default()
            });
            tokio::select! {
                count = receiver.recv_many(&mut batch, BATCH_MAX) => {
                    if count == 0 {
                        return;
                    }
                }
                count = ends.recv_many(&mut ended, BATCH_MAX), if !ends.is_closed() => {
                    debug!(count, "containers ended");
                }
                () = tokio::time::sleep(wait.unwrap_or_default()), if wait.is_some() => {}
            }
            let ended = ended.drain(..).map(Message::Ended);
            for message in batch.drain(..).chain(ended) {
                self.hear(message);
            }
            if !self.found.is_closed() {
                // What pods had before, addresses above all, must be known before anything new is
                // given away.
                continue;
            }
            let now = Timestamp::now();
            while let Some(uid) = self.queue.take_due(now) {
                self.queue.done(&uid);
                self.pass(&uid, now);
            }
            if self.may_leave()
                && let Some(waiting) = self.leaving.take()
            {
                // Nobody hears it who has given up waiting.
                let _ = waiting.send(());
                return;
            }
        }
    }

    fn hear(&mut self, message: Message) {
        let now = Timestamp::now();
        match message {
            Message::Pod(Change::Put(pod)) => self.put(pod, now),
            Message::Pod(Change::Gone(key)) => self.gone(&key, now),
            Message::Pod(Change::Listing) => {}
            Message::Pod(Change::Synced) => self.synced(),
            Message::Ended(ended) => match self.pods.get_mut(&ended.pod_uid) {
                Some(entry) => {
                    entry.memory.exited(&ended.container, ended.attempt, ended.exit);
                    self.queue.add(ended.pod_uid, now);
                }
                None => self.found.ended(ended),
            },
            Message::Done { uid, outcome } => self.done(uid, outcome, now),
            Message::Leave(waiting) => {
                self.leaving = Some(waiting);
                for uid in self.pods.keys() {
                    self.queue.add(uid.clone(), now);
                }
            }
        }
    }

    /// Whether the node is to go and nothing runs or waits to be written any more.
    fn may_leave(&self) -> bool {
        self.leaving.is_some()
            && self.found.is_closed()
            && self.pods.values().all(|entry| entry.memory.is_at_rest() && !entry.is_failing)
    }

    fn put(&mut self, pod: Arc<Pod>, now: Timestamp) {
        let Some(uid) = pod.uid() else { return };
        match self.pods.get_mut(&uid) {
            Some(entry) => {
                if version(&pod) <= version(&entry.pod) {
                    return;
                }
                if pod.annotations() != entry.pod.annotations() {
                    self.backend.annotated(&pod);
                }
                entry.pod = pod;
                if entry.awaited.is_some_and(|awaited| awaited <= version(&entry.pod)) {
                    entry.awaited = None;
                    entry.memory.status_written();
                }
            }
            None => {
                let mut known = self.found.take(&uid);
                known.extend(self.backend.recover_pod(&pod));
                let memory = Memory::recover(&pod, &known);
                let entry = Entry { pod, memory, is_failing: false, awaited: None };
                self.pods.insert(uid.clone(), entry);
            }
        }
        self.queue.add(uid, now);
    }

    fn gone(&mut self, key: &ObjectKey, now: Timestamp) {
        if let Some(entry) = self.pods.get_mut(&key.uid) {
            entry.memory.gone();
            self.queue.add(key.uid.clone(), now);
        }
    }

    /// All pods are known: what the backend found of others belongs to nobody.
    fn synced(&mut self) {
        if self.found.is_closed() {
            return;
        }
        for uid in self.found.close() {
            warn!(%uid, "clearing away a pod that no longer exists");
            self.backend.forget(&uid);
        }
        self.backend.recovered();
    }

    /// Plans one pass over a pod and hands out the steps.
    fn pass(&mut self, uid: &str, now: Timestamp) {
        let Some(entry) = self.pods.get_mut(uid) else { return };
        let pod = Arc::clone(&entry.pod);
        let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).unwrap_or_default();
        if self.backend.is_silent(node) {
            return self.queue.add(uid.to_owned(), now.checked_add(SILENCE).unwrap_or(now));
        }
        let facts = NodeFacts {
            host_ip: self.backend.host_ip(node),
            is_shutting_down: self.leaving.is_some(),
        };
        let plan = pod::plan(&pod, &mut entry.memory, &facts, &self.options.pods, now);
        if let Some(waiting) = &plan.waiting {
            debug!(pod = %pod.name_any(), %waiting, steps = plan.steps.len(), "planned");
        }
        if let Some(at) = plan.next {
            self.queue.add(uid.to_owned(), at);
        }
        for step in plan.steps {
            if let Some(outcome) = self.carry_out(uid, &pod, step) {
                self.done(uid.to_owned(), outcome, now);
            }
        }
    }
}

/// The version of an object as a number; versions of one server only grow.
fn version(pod: &Pod) -> u64 {
    pod.metadata.resource_version.as_deref().map_or(0, number)
}

fn number(version: &str) -> u64 {
    version.parse().unwrap_or(0)
}
