//! The life and death of nodes: a node without heartbeat is lost, its pods are marked and evicted,
//! and pods whose node no longer exists are collected.

mod decide;
mod write;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::runtime::watcher;
use kube::{Api, Client, ResourceExt};
use lockstep_control::engine::WorkQueue;
use tokio::task::JoinHandle;
use tracing::{info, warn};

use crate::feeds::Feeds;
use crate::node::fake::{FAKE_NODE, LOST};
use crate::node::status::LEASE_NAMESPACE;
use crate::observe::{Change, Inbox};
use crate::recorder::Recorder;

/// When nodes count as lost and what follows.
#[derive(Clone, Debug)]
pub struct NodeLifecycleOptions {
    /// How long a node may go without a heartbeat.
    pub heartbeat_max: Duration,
    /// How long a pod whose node does not exist is left alone.
    pub orphan_after: Duration,
}

impl Default for NodeLifecycleOptions {
    fn default() -> Self {
        Self { heartbeat_max: Duration::from_secs(50), orphan_after: Duration::from_secs(40) }
    }
}

/// Starts the controller.
pub fn spawn(client: Client, feeds: &Feeds, options: NodeLifecycleOptions) -> JoinHandle<()> {
    let feeds = feeds.clone();
    tokio::spawn(async move {
        let mut inbox = Inbox::new();
        let config = watcher::Config::default().page_size(5_000);
        let leases: Api<Lease> = Api::namespaced(client.clone(), LEASE_NAMESPACE);
        inbox.listen(&feeds.nodes, |_| true, Message::Node);
        inbox.watch(leases, config, Message::Lease);
        inbox.listen(&feeds.pods, is_bound, Message::Pod);
        let controller = Controller {
            recorder: Recorder::spawn(client.clone(), "node-controller", ""),
            client,
            options,
            nodes: HashMap::new(),
            beats: HashMap::new(),
            pods: HashMap::new(),
            by_node: HashMap::new(),
            missing: HashMap::new(),
            queue: WorkQueue::new(),
        };
        controller.run(inbox).await;
    })
}

/// Whether a pod has its node.
fn is_bound(pod: &Pod) -> bool {
    let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
    node.is_some_and(|node| !node.is_empty())
}

enum Message {
    Node(Change<Node>),
    Lease(Change<Lease>),
    Pod(Change<Pod>),
}

/// What a pass is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    /// A node, by name: is it alive?
    Node(String),
    /// A pod, by uid: must it leave?
    Pod(String),
}

struct Controller {
    client: Client,
    recorder: Recorder,
    options: NodeLifecycleOptions,
    nodes: HashMap<String, Arc<Node>>,
    /// The last heartbeat of each node: what it said, and when we saw it. Only our own clock
    /// counts, and one that stands still with the machine: waking up must not look like a lost
    /// node.
    beats: HashMap<String, (Option<Timestamp>, Instant)>,
    pods: HashMap<String, Arc<Pod>>,
    by_node: HashMap<String, BTreeSet<String>>,
    /// Nodes that pods are bound to but that do not exist, and since when we know.
    missing: HashMap<String, Timestamp>,
    queue: WorkQueue<Key>,
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
                self.queue.done(&key);
                match key {
                    Key::Node(name) => self.look_at_node(&name).await,
                    Key::Pod(uid) => self.look_at_pod(&uid).await,
                }
            }
        }
    }

    fn hear(&mut self, message: Message) {
        let now = Timestamp::now();
        match message {
            Message::Node(Change::Put(node)) => {
                let name = node.name_any();
                self.missing.remove(&name);
                let beat = self.beats.entry(name.clone()).or_insert_with(|| (None, Instant::now()));
                let reported_at = decide::reported_at(&node);
                let old = self.nodes.insert(name.clone(), node);
                // A report counts as a heartbeat: a node that comes back reports before it renews
                // its lease, and must not be taken for lost in between.
                if old.is_some_and(|old| decide::reported_at(&old) != reported_at) {
                    beat.1 = Instant::now();
                }
                self.touch_node(name, now);
            }
            Message::Node(Change::Gone(key)) => {
                info!(node = %key.name, "node is gone");
                self.nodes.remove(&key.name);
                self.beats.remove(&key.name);
                self.touch_node(key.name, now);
            }
            Message::Lease(Change::Put(lease)) => {
                let said = lease.spec.as_ref().and_then(|spec| spec.renew_time.as_ref());
                let said = said.map(|time| time.0);
                let beat =
                    self.beats.entry(lease.name_any()).or_insert_with(|| (None, Instant::now()));
                if beat.0 != said {
                    *beat = (said, Instant::now());
                    self.queue.add(Key::Node(lease.name_any()), now);
                }
            }
            Message::Pod(Change::Put(pod)) => {
                let uid = pod.uid().unwrap_or_default();
                let node = pod.spec.as_ref().and_then(|spec| spec.node_name.clone());
                let node = node.unwrap_or_default();
                self.by_node.entry(node.clone()).or_default().insert(uid.clone());
                self.pods.insert(uid.clone(), pod);
                // Most pods are on nodes with which nothing is wrong.
                let is_fine = self.nodes.get(&node).is_some_and(|node| !decide::evicts(node));
                if !is_fine {
                    self.queue.add(Key::Pod(uid), now);
                }
            }
            Message::Pod(Change::Gone(key)) => {
                if let Some(pod) = self.pods.remove(&key.uid) {
                    let node = pod.spec.as_ref().and_then(|spec| spec.node_name.clone());
                    let node = node.unwrap_or_default();
                    if let Some(all) = self.by_node.get_mut(&node) {
                        all.remove(&key.uid);
                        if all.is_empty() {
                            self.by_node.remove(&node);
                        }
                    }
                }
            }
            // The inbox keeps count of what is synced.
            Message::Lease(Change::Gone(_) | Change::Listing | Change::Synced)
            | Message::Node(Change::Listing | Change::Synced)
            | Message::Pod(Change::Listing | Change::Synced) => {}
        }
    }

    /// Looks at a node again, and at its pods if something may be wrong with it.
    fn touch_node(&mut self, name: String, now: Timestamp) {
        let is_fine = self.nodes.get(&name).is_some_and(|node| !decide::evicts(node));
        if !is_fine {
            for uid in self.by_node.get(&name).into_iter().flatten() {
                self.queue.add(Key::Pod(uid.clone()), now);
            }
        }
        self.queue.add(Key::Node(name), now);
    }

    async fn look_at_node(&mut self, name: &str) {
        let now = Timestamp::now();
        let Some(node) = self.nodes.get(name) else { return };
        let is_fake = node.labels().contains_key(FAKE_NODE);
        let silence = self.beats.get(name).map(|(_, seen)| seen.elapsed()).unwrap_or_default();
        let left = self.options.heartbeat_max.saturating_sub(silence);
        let is_lost = if is_fake {
            node.annotations().get(LOST).is_some_and(|value| value == "true")
        } else {
            left.is_zero()
        };
        let came_back = is_fake && !is_lost && decide::is_unknown(node);
        let marked = match (is_lost, came_back) {
            (true, _) => decide::lost(node, now),
            (_, true) => decide::ready_again(node, now),
            _ => None,
        };
        if is_lost && marked.is_some() {
            warn!(node = name, "node is lost: no heartbeat");
        }
        let current = marked.as_ref().unwrap_or(node).clone();
        if let Some(marked) = marked
            && !write::conditions(&self.client, &marked).await
        {
            return self.retry(Key::Node(name.to_owned()), now);
        }
        if let Some(taints) = decide::taints(&current, now)
            && !write::taints(&self.client, &current, taints).await
        {
            return self.retry(Key::Node(name.to_owned()), now);
        }
        if is_lost {
            for uid in self.by_node.get(name).cloned().unwrap_or_default() {
                if let Some(pod) = self.pods.get(&uid) {
                    write::not_ready(&self.client, pod, now).await;
                }
            }
        } else if !is_fake {
            self.queue.add(Key::Node(name.to_owned()), now.checked_add(left).unwrap_or(now));
        }
    }

    async fn look_at_pod(&mut self, uid: &str) {
        let now = Timestamp::now();
        let Some(pod) = self.pods.get(uid) else { return };
        let node = pod.spec.as_ref().and_then(|spec| spec.node_name.clone()).unwrap_or_default();
        if let Some(node) = self.nodes.get(&node) {
            match decide::eviction(pod, node) {
                Some(at) if at > now => self.queue.add(Key::Pod(uid.to_owned()), at),
                Some(_) => {
                    let is_done = write::evict(&self.client, &self.recorder, pod, now).await;
                    if !is_done {
                        self.retry(Key::Pod(uid.to_owned()), now);
                    }
                }
                None => {}
            }
            return;
        }
        let since = *self.missing.entry(node).or_insert(now);
        let due = since.checked_add(self.options.orphan_after).unwrap_or(Timestamp::MAX);
        if due > now {
            return self.queue.add(Key::Pod(uid.to_owned()), due);
        }
        if !write::collect(&self.client, pod, now).await {
            self.retry(Key::Pod(uid.to_owned()), now);
        }
    }

    fn retry(&mut self, key: Key, now: Timestamp) {
        self.queue.add(key, now.checked_add(Duration::from_secs(1)).unwrap_or(now));
    }
}
