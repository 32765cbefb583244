//! Services with a selector get EndpointSlices (and Endpoints) that list their pods.

mod slices;
mod write;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Pod, Service};
use kube::{Client, ResourceExt};
use lockstep_control::engine::WorkQueue;
use tokio::task::JoinHandle;
use tracing::warn;

use self::slices::{Slices, endpoint_of};
use crate::feeds::Feeds;
use crate::observe::{Change, Inbox, ObjectKey};

/// Changes that come this close together are written together.
const COALESCE: Duration = Duration::from_millis(50);

/// The same for services with many pods, of which each write tells a hundred.
const COALESCE_LARGE: Duration = Duration::from_secs(1);

/// How long to wait after a write that failed.
const RETRY: Duration = Duration::from_secs(1);

/// A service: namespace and name.
type Key = (String, String);

/// Starts the controller.
pub fn spawn(client: Client, feeds: &Feeds) -> JoinHandle<()> {
    let (pods, services) = (feeds.pods.clone(), feeds.services.clone());
    tokio::spawn(async move {
        let mut inbox = Inbox::new();
        inbox.listen(&pods, |_| true, Message::Pod);
        inbox.listen(&services, |_| true, Message::Service);
        let controller = Controller {
            client,
            services: HashMap::new(),
            pods: HashMap::new(),
            queue: WorkQueue::new(),
        };
        controller.run(inbox).await;
    })
}

enum Message {
    Pod(Change<Pod>),
    Service(Change<Service>),
}

struct Controller {
    client: Client,
    services: HashMap<Key, Entry>,
    /// What matters of each pod, by namespace and uid.
    pods: HashMap<String, HashMap<String, Arc<Pod>>>,
    queue: WorkQueue<Key>,
}

struct Entry {
    service: Arc<Service>,
    slices: Slices,
    /// Pods that have changed since the last write, by uid.
    dirty: HashSet<String>,
    /// Whether all pods have to be looked at.
    is_new: bool,
}

impl Entry {
    /// When a change of now is written.
    fn due(&self, now: Timestamp) -> Timestamp {
        let wait = if self.slices.is_large() { COALESCE_LARGE } else { COALESCE };
        now.checked_add(wait).unwrap_or(now)
    }
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
                self.sync(&key).await;
            }
        }
    }

    fn hear(&mut self, message: Message) {
        match message {
            Message::Service(Change::Put(service)) => {
                let key = (service.namespace().unwrap_or_default(), service.name_any());
                let old = self.services.remove(&key);
                if selector(&service).is_empty() {
                    return;
                }
                let slices = old.map(|old| old.slices).unwrap_or_default();
                let entry = Entry { service, slices, dirty: HashSet::new(), is_new: true };
                self.services.insert(key.clone(), entry);
                self.queue.add(key, Timestamp::now());
            }
            Message::Service(Change::Gone(key)) => {
                // The slices go with the service that owns them.
                self.services.remove(&(key.namespace, key.name));
            }
            Message::Pod(Change::Put(pod)) => self.put_pod(pod),
            Message::Pod(Change::Gone(key)) => self.remove_pod(&key),
            // The inbox keeps count of these.
            Message::Service(Change::Listing | Change::Synced)
            | Message::Pod(Change::Listing | Change::Synced) => {}
        }
    }

    fn put_pod(&mut self, pod: Arc<Pod>) {
        let (namespace, uid) = (pod.namespace().unwrap_or_default(), pod.uid().unwrap_or_default());
        let old = self.pods.entry(namespace.clone()).or_default().insert(uid.clone(), pod);
        let Some(new) = self.pods.get(&namespace).and_then(|all| all.get(&uid)) else { return };
        let now = Timestamp::now();
        for (key, entry) in self.services.iter_mut().filter(|(key, _)| key.0 == namespace) {
            let is_about = |pod: &Pod| matches(&entry.service, pod);
            let was = old.as_ref().filter(|old| is_about(old));
            let is = Some(new).filter(|new| is_about(new));
            let endpoint = |pod: &Arc<Pod>| endpoint_of(&entry.service, pod);
            if was.and_then(endpoint) != is.and_then(endpoint) {
                entry.dirty.insert(uid.clone());
                self.queue.add(key.clone(), entry.due(now));
            }
        }
    }

    fn remove_pod(&mut self, key: &ObjectKey) {
        let Some(all) = self.pods.get_mut(&key.namespace) else { return };
        let Some(old) = all.remove(&key.uid) else { return };
        let now = Timestamp::now();
        for (service, entry) in self.services.iter_mut() {
            if service.0 == key.namespace && matches(&entry.service, &old) {
                entry.dirty.insert(key.uid.clone());
                self.queue.add(service.clone(), entry.due(now));
            }
        }
    }

    async fn sync(&mut self, key: &Key) {
        let Some(entry) = self.services.get_mut(key) else { return };
        let empty = HashMap::new();
        let pods = self.pods.get(&key.0).unwrap_or(&empty);
        let find = |uid: &str| {
            let pod = pods.get(uid).filter(|pod| matches(&entry.service, pod))?;
            endpoint_of(&entry.service, pod)
        };
        if entry.is_new {
            let mut uids: Vec<(&str, &str)> = pods
                .iter()
                .map(|(uid, pod)| (pod.metadata.name.as_deref().unwrap_or_default(), uid.as_str()))
                .collect();
            uids.sort_unstable();
            for (_, uid) in uids {
                entry.slices.put(uid, find(uid));
            }
            let gone: Vec<String> =
                entry.slices.uids().filter(|uid| !pods.contains_key(*uid)).cloned().collect();
            for uid in gone {
                entry.slices.put(&uid, None);
            }
            entry.slices.touch_all();
        } else {
            for uid in &entry.dirty {
                entry.slices.put(uid, find(uid));
            }
        }
        let written = async {
            if entry.is_new {
                write::sweep(&self.client, &entry.service, &entry.slices).await?;
            }
            write::write(&self.client, &entry.service, &mut entry.slices).await
        };
        match written.await {
            Ok(()) => {
                entry.dirty.clear();
                entry.is_new = false;
            }
            Err(error) => {
                warn!(service = %key.1, namespace = %key.0, %error, "endpoints not written");
                let now = Timestamp::now();
                self.queue.add(key.clone(), now.checked_add(RETRY).unwrap_or(now));
            }
        }
    }
}

fn selector(service: &Service) -> BTreeMap<String, String> {
    let spec = service.spec.as_ref();
    let is_external = spec.and_then(|spec| spec.type_.as_deref()) == Some("ExternalName");
    let selector = spec.filter(|_| !is_external).and_then(|spec| spec.selector.clone());
    selector.unwrap_or_default()
}

fn matches(service: &Service, pod: &Pod) -> bool {
    let Some(selector) = service.spec.as_ref().and_then(|spec| spec.selector.as_ref()) else {
        return false;
    };
    !selector.is_empty() && selector.iter().all(|(key, value)| pod.labels().get(key) == Some(value))
}
