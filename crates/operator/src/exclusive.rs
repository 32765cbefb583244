//! Sends pods away that are not in the domain their Job has for itself: their leader has moved.
//! Which ones is decided in `lockstep-control`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::{Client, ResourceExt};
use lockstep_api::labels::jobset::JOB_KEY;
use lockstep_control::engine::after;
use lockstep_control::plan::{RefusalKind, exclusive};
use tokio::task::{JoinHandle, JoinSet};
use tracing::{info, warn};

use crate::observe::{Change, Feed, Inbox};
use crate::requests::refusal;
use crate::write;

/// How long to wait before what could not be done is tried again.
const RETRY: Duration = Duration::from_secs(1);

/// How many pods are sent away at the same time.
const REQUESTS_MAX: usize = 50;

/// Starts the controller.
pub fn spawn(client: &Client, pods: &Feed<Pod>, nodes: &Feed<Node>) -> JoinHandle<()> {
    let mut inbox = Inbox::new();
    inbox.listen(pods, |pod| exclusive::topology(pod).is_some(), Message::Pod);
    inbox.listen(nodes, |_| true, Message::Node);
    tokio::spawn(Controller::new(client.clone()).run(inbox))
}

enum Message {
    Pod(Change<Pod>),
    Node(Change<Node>),
}

struct Controller {
    client: Client,
    /// Exclusive pods by the key of their Job, then by uid.
    jobs: BTreeMap<String, BTreeMap<String, Arc<Pod>>>,
    /// The key of the Job, by the uid of the pod.
    keys: BTreeMap<String, String>,
    nodes: BTreeMap<String, Arc<Node>>,
    /// Jobs to look at.
    changed: BTreeSet<String>,
    /// When to look at those again that could not be dealt with.
    again: BTreeMap<String, Timestamp>,
}

impl Controller {
    fn new(client: Client) -> Self {
        Self {
            client,
            jobs: BTreeMap::new(),
            keys: BTreeMap::new(),
            nodes: BTreeMap::new(),
            changed: BTreeSet::new(),
            again: BTreeMap::new(),
        }
    }

    async fn run(mut self, mut inbox: Inbox<Message>) {
        loop {
            let due = self.again.values().min().copied();
            for message in inbox.next(due).await {
                self.hear(message);
            }
            if !inbox.is_synced() {
                continue;
            }
            let now = Timestamp::now();
            let due = self.again.extract_if(.., |_, at| *at <= now).map(|(key, _)| key);
            self.changed.extend(due);
            for key in std::mem::take(&mut self.changed) {
                if !self.look_at(&key).await {
                    self.again.insert(key, after(now, RETRY));
                }
            }
        }
    }

    fn hear(&mut self, message: Message) {
        match message {
            Message::Pod(Change::Put(pod)) => {
                let Some(key) = pod.labels().get(JOB_KEY).cloned() else { return };
                let uid = pod.uid().unwrap_or_default();
                self.keys.insert(uid.clone(), key.clone());
                self.jobs.entry(key.clone()).or_default().insert(uid, pod);
                self.changed.insert(key);
            }
            Message::Pod(Change::Gone(object)) => {
                let Some(key) = self.keys.remove(&object.uid) else { return };
                if let Some(pods) = self.jobs.get_mut(&key) {
                    pods.remove(&object.uid);
                    if pods.is_empty() {
                        self.jobs.remove(&key);
                    }
                }
            }
            Message::Node(Change::Put(node)) => drop(self.nodes.insert(node.name_any(), node)),
            Message::Node(Change::Gone(object)) => drop(self.nodes.remove(&object.name)),
            Message::Pod(Change::Listing | Change::Synced)
            | Message::Node(Change::Listing | Change::Synced) => {}
        }
    }

    /// Sends pods of a Job away if they have to go. Says whether that is done.
    async fn look_at(&self, key: &str) -> bool {
        let Some(pods) = self.jobs.get(key) else { return true };
        let mut tasks = JoinSet::new();
        let mut is_done = true;
        for leader in pods.values().filter(|pod| exclusive::is_leader(pod)) {
            let node = leader.spec.as_ref().and_then(|spec| spec.node_name.as_ref());
            let node = node.and_then(|name| self.nodes.get(name)).map(Arc::as_ref);
            match exclusive::astray(leader, node, pods.values().map(Arc::as_ref)) {
                Ok(pods) => {
                    for pod in pods {
                        while tasks.len() >= REQUESTS_MAX {
                            is_done &=
                                tasks.join_next().await.is_some_and(|done| done.is_ok_and(|it| it));
                        }
                        tasks.spawn(send_away(self.client.clone(), pod.clone()));
                    }
                }
                Err(why) => {
                    warn!(leader = %leader.name_any(), error = why, "trying again");
                    is_done = false;
                }
            }
        }
        is_done & tasks.join_all().await.into_iter().all(|is_done| is_done)
    }
}

/// Says why a pod has to go, and deletes it.
async fn send_away(client: Client, pod: Pod) -> bool {
    let (namespace, name) = (pod.namespace().unwrap_or_default(), pod.name_any());
    let uid = pod.uid().unwrap_or_default();
    let gone = |error: &kube::Error| refusal(error).kind == RefusalKind::NotFound;
    if let Some(patch) = exclusive::disrupted(&pod, Timestamp::now())
        && let Err(error) = write::patch_pod_status(&client, (&namespace, &name), patch).await
        && !gone(&error)
    {
        warn!(pod = %name, %namespace, %error, "not told why it has to go");
        return false;
    }
    match write::delete_pod(&client, (&namespace, &name, &uid)).await {
        Ok(_) => {
            info!(pod = %name, %namespace, "sent away: it is not where its leader is");
            true
        }
        Err(error) if gone(&error) => true,
        Err(error) => {
            warn!(pod = %name, %namespace, %error, "not sent away");
            false
        }
    }
}
