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
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tracing::{debug, info};

use crate::feeds::Feeds;
use crate::observe::{Change, Inbox, ObjectKey, Teller};
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
pub fn spawn(client: Client, feeds: &Feeds, options: SchedulerOptions) -> JoinHandle<()> {
    let feeds = feeds.clone();
    tokio::spawn(async move {
        let mut inbox = Inbox::new();
        inbox.listen(&feeds.pods, |_| true, Message::Pod);
        inbox.listen(&feeds.nodes, |_| true, Message::Node);
        inbox.watch(Api::all(client.clone()), watcher::Config::default(), Message::Namespace);
        let recorder = Recorder::spawn(client.clone(), &options.name, "");
        let permits = Arc::new(Semaphore::new(options.writes_max));
        let scheduler = Scheduler {
            client,
            options,
            recorder,
            permits,
            teller: inbox.teller(),
            cluster: Cluster::default(),
            queue: Queue::default(),
            pending: HashMap::new(),
        };
        scheduler.run(inbox).await;
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
    teller: Teller<Message>,
    cluster: Cluster,
    queue: Queue,
    /// Pods that are not bound, by uid, with what was last said about them.
    pending: HashMap<String, Pending>,
}

struct Pending {
    pod: Arc<Pod>,
    wanted: Wanted,
    /// The condition we last wrote, until the watch shows it.
    told: Option<String>,
}

impl Scheduler {
    async fn run(mut self, mut inbox: Inbox<Message>) {
        loop {
            let due = self.queue.next_due().filter(|_| inbox.is_synced());
            for message in inbox.next(due).await {
                self.hear(message);
            }
            if inbox.is_synced() {
                self.place_some().await;
            }
        }
    }

    fn hear(&mut self, message: Message) {
        match message {
            Message::Pod(Change::Put(pod)) => self.put_pod(pod),
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
            // The inbox keeps count of these.
            Message::Pod(Change::Listing | Change::Synced)
            | Message::Node(Change::Listing | Change::Synced)
            | Message::Namespace(Change::Listing | Change::Synced) => {}
            Message::BindFailed { uid, is_gone } => self.bind_failed(&uid, is_gone),
        }
    }

    /// Takes back what was assumed, unless the watch has told meanwhile what is true: an answer may
    /// be lost, or somebody else may have bound the pod.
    fn bind_failed(&mut self, uid: &str, is_gone: bool) {
        let Some(pending) = self.pending.get(uid) else { return };
        self.cluster.remove_pod(uid);
        if !is_gone {
            let wanted = &pending.wanted;
            self.queue.add(uid, wanted.priority, wanted.created_at);
            self.queue.retry(uid, Timestamp::now());
        }
    }

    fn put_pod(&mut self, pod: Arc<Pod>) {
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

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn scheduler() -> Scheduler {
        let service = tower::service_fn(|_: http::Request<kube::client::Body>| {
            std::future::pending::<
                Result<http::Response<kube::client::Body>, std::convert::Infallible>,
            >()
        });
        let client = Client::new(service, "default");
        Scheduler {
            recorder: Recorder::spawn(client.clone(), "s", ""),
            client,
            options: SchedulerOptions::default(),
            permits: Arc::new(Semaphore::new(1)),
            teller: Inbox::new().teller(),
            cluster: Cluster::default(),
            queue: Queue::default(),
            pending: HashMap::new(),
        }
    }

    fn pod(uid: &str, node: Value) -> Pod {
        serde_json::from_value(json!({
            "metadata": {"namespace": "d", "name": uid, "uid": uid},
            "spec": {"nodeName": node, "schedulerName": "default-scheduler", "containers": [
                {"name": "c", "resources": {"requests": {"cpu": "1"}}}]},
        }))
        .unwrap()
    }

    #[tokio::test]
    async fn a_binding_that_failed_takes_back_only_what_was_assumed() {
        let node: Node = serde_json::from_value(json!({
            "metadata": {"name": "n"},
            "status": {"allocatable": {"cpu": "1", "pods": "9"},
                "conditions": [{"type": "Ready", "status": "True"}]},
        }))
        .unwrap();
        for (name, is_told_bound) in [("the watch was faster", true), ("nothing was bound", false)]
        {
            let mut scheduler = scheduler();
            scheduler.hear(Message::Node(Change::Put(Arc::new(node.clone()))));
            let free = pod("a", Value::Null);
            scheduler.hear(Message::Pod(Change::Put(Arc::new(free.clone()))));
            scheduler.cluster.assume(&Wanted::of(&free), "n");
            if is_told_bound {
                scheduler.hear(Message::Pod(Change::Put(Arc::new(pod("a", json!("n"))))));
            }
            scheduler.hear(Message::BindFailed { uid: "a".to_owned(), is_gone: false });
            let other = scheduler.cluster.place(&Wanted::of(&pod("b", Value::Null)));
            let is_full = matches!(other, Placement::Unschedulable { .. });
            assert_eq!(is_full, is_told_bound, "{name}");
            assert_eq!(scheduler.queue.contains("a"), !is_told_bound, "{name}");
        }
    }
}
