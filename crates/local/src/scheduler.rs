//! The scheduler: watches pods and nodes, asks placement, and binds.
//!
//! One task holds the cluster's picture and takes one pod after the other; the writes that follow
//! from its decisions run beside it, bounded. A decision counts in the picture at once and is taken
//! back if it cannot be written.

mod write;

use std::collections::HashMap;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Namespace, Node, Pod};
use kube::runtime::watcher;
use kube::{Api, Client, ResourceExt};
use lockstep_control::plan::place::{Cluster, GATED_MESSAGE, Placement, Queue, Wanted};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinHandle;
use tracing::{debug, info};

use crate::observe::{Change, ObjectKey, forward};
use crate::recorder::{Note, Recorder, pod_reference};

/// How the scheduler works.
#[derive(Clone, Debug)]
pub struct SchedulerOptions {
    /// The `schedulerName` of the pods it places.
    pub name: String,
    /// How many writes may be on their way at the same time.
    pub writes_max: usize,
}

impl Default for SchedulerOptions {
    fn default() -> Self {
        Self { name: "default-scheduler".to_owned(), writes_max: 64 }
    }
}

/// Starts the scheduler. It runs until the task is aborted or the runtime ends.
pub fn spawn(client: Client, options: SchedulerOptions) -> JoinHandle<()> {
    tokio::spawn(async move {
        let (sender, receiver) = mpsc::channel(4096);
        let everything = || watcher::Config::default().page_size(5_000);
        let watches = [
            forward(Api::<Pod>::all(client.clone()), everything(), sender.clone(), Message::Pod),
            forward(Api::<Node>::all(client.clone()), everything(), sender.clone(), Message::Node),
            forward(
                Api::<Namespace>::all(client.clone()),
                everything(),
                sender.clone(),
                Message::Namespace,
            ),
        ];
        let recorder = Recorder::spawn(client.clone(), &options.name, "");
        let permits = Arc::new(Semaphore::new(options.writes_max));
        let scheduler = Scheduler {
            client,
            options,
            recorder,
            permits,
            sender,
            cluster: Cluster::default(),
            queue: Queue::default(),
            pending: HashMap::new(),
            synced: 0,
        };
        scheduler.run(receiver).await;
        for watch in watches {
            watch.abort();
        }
    })
}

/// What the scheduler hears.
enum Message {
    Pod(Change<Pod>),
    Node(Change<Node>),
    Namespace(Change<Namespace>),
    /// A binding could not be written.
    BindFailed {
        uid: String,
        is_gone: bool,
    },
}

struct Scheduler {
    client: Client,
    options: SchedulerOptions,
    recorder: Recorder,
    permits: Arc<Semaphore>,
    sender: mpsc::Sender<Message>,
    cluster: Cluster,
    queue: Queue,
    /// Pods that are not bound, by uid, with what was last said about them.
    pending: HashMap<String, Pending>,
    /// How many of the three watches have told everything.
    synced: u8,
}

struct Pending {
    pod: Pod,
    wanted: Wanted,
    /// The condition we last wrote, until the watch shows it.
    told: Option<String>,
}

impl Scheduler {
    async fn run(mut self, mut receiver: mpsc::Receiver<Message>) {
        let mut batch = Vec::new();
        loop {
            let due = self.queue.next_due().filter(|_| self.is_synced());
            let sleep = due.map(|at| {
                let wait = at.duration_since(Timestamp::now());
                std::time::Duration::try_from(wait).unwrap_or_default()
            });
            tokio::select! {
                count = receiver.recv_many(&mut batch, 1024) => {
                    if count == 0 {
                        return;
                    }
                    for message in batch.drain(..) {
                        self.hear(message);
                    }
                }
                () = tokio::time::sleep(sleep.unwrap_or_default()), if sleep.is_some() => {}
            }
            if self.is_synced() {
                self.place_some().await;
            }
        }
    }

    fn is_synced(&self) -> bool {
        self.synced >= 3
    }

    fn hear(&mut self, message: Message) {
        match message {
            Message::Pod(Change::Put(pod)) => self.put_pod(*pod),
            Message::Pod(Change::Gone(key)) => self.remove_pod(&key),
            Message::Node(Change::Put(node)) => {
                self.cluster.put_node(&node);
                self.queue.wake();
            }
            Message::Node(Change::Gone(key)) => self.cluster.remove_node(&key.name),
            Message::Namespace(Change::Put(namespace)) => {
                self.cluster.put_namespace(&namespace.name_any(), namespace.labels().clone());
            }
            Message::Namespace(Change::Gone(_)) => {}
            Message::Pod(Change::Synced)
            | Message::Node(Change::Synced)
            | Message::Namespace(Change::Synced) => self.synced = self.synced.saturating_add(1),
            Message::BindFailed { uid, is_gone } => {
                self.cluster.remove_pod(&uid);
                if !is_gone && let Some(pending) = self.pending.get(&uid) {
                    let wanted = &pending.wanted;
                    self.queue.add(&uid, wanted.priority, wanted.created_at);
                    self.queue.retry(&uid, Timestamp::now());
                }
            }
        }
    }

    fn put_pod(&mut self, pod: Pod) {
        let wanted = Wanted::of(&pod);
        let uid = wanted.uid.clone();
        if wanted.node.is_some() || wanted.is_over || wanted.is_terminating {
            let is_waiting = self.pending.remove(&uid).is_some();
            if is_waiting {
                self.queue.remove(&uid);
            }
            let had_room = wanted.is_over;
            self.cluster.put_pod(wanted);
            if had_room {
                self.queue.wake();
            }
            return;
        }
        if wanted.scheduler != self.options.name {
            return;
        }
        if wanted.is_gated {
            self.tell_gated(&pod);
            self.queue.remove(&uid);
            self.pending.remove(&uid);
            return;
        }
        let is_new = self.pending.get(&uid).is_none_or(|old| {
            old.pod.spec != pod.spec || old.pod.metadata.labels != pod.metadata.labels
        });
        if let Some(node) = &wanted.nominated {
            self.cluster.nominate(&wanted, node);
        }
        if is_new {
            self.queue.add(&uid, wanted.priority, wanted.created_at);
        }
        let told = self.pending.remove(&uid).and_then(|old| old.told);
        self.pending.insert(uid, Pending { pod, wanted, told });
    }

    fn remove_pod(&mut self, key: &ObjectKey) {
        self.pending.remove(&key.uid);
        self.queue.remove(&key.uid);
        self.cluster.remove_pod(&key.uid);
        self.queue.wake();
    }

    /// Places what is due, as far as writes may be on their way.
    async fn place_some(&mut self) {
        for _ in 0..256 {
            let Some(uid) = self.queue.take(Timestamp::now()) else { return };
            let Some(pending) = self.pending.get(&uid) else { continue };
            let wanted = pending.wanted.clone();
            match self.cluster.place(&wanted) {
                Placement::Bind { node } => {
                    self.cluster.assume(&wanted, &node);
                    self.queue.remove(&uid);
                    self.bind(&uid, node).await;
                }
                Placement::Preempt { node, victims, message } => {
                    info!(pod = %wanted.name, %node, victims = victims.len(), "preempting");
                    self.cluster.nominate(&wanted, &node);
                    self.queue.set_aside(&uid, Timestamp::now());
                    self.preempt(&uid, node, victims, message).await;
                }
                Placement::Unschedulable { message } => {
                    debug!(pod = %wanted.name, %message, "fits nowhere");
                    self.queue.set_aside(&uid, Timestamp::now());
                    self.tell_unschedulable(&uid, &message, None).await;
                }
            }
        }
    }

    fn note(&self, pod: &Pod, is_warning: bool, reason: &str, message: String) {
        let reason = reason.to_owned();
        let regarding = pod_reference(pod, None);
        self.recorder.record(Note { regarding, is_warning, reason, message });
    }

    /// Says that gates hold the pod back, unless it says so already.
    fn tell_gated(&self, pod: &Pod) {
        if write::says(pod, "SchedulingGated", GATED_MESSAGE) {
            return;
        }
        let patch = write::unscheduled_patch(pod, "SchedulingGated", GATED_MESSAGE, None);
        let (client, key) = (self.client.clone(), ObjectKey::of(pod));
        tokio::spawn(async move { write::patch_status(&client, &key, patch).await });
    }
}
