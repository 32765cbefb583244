//! PodDisruptionBudgets are told how many pods may go. What that is, is decided in
//! `control::plan::disruption`.

mod scales;
mod write;

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use jiff::Timestamp;
use k8s_openapi::api::{core::v1::Pod, policy::v1::PodDisruptionBudget};
use kube::{Api, Client, ResourceExt, runtime::watcher};
use lockstep_api::selector::LabelSelector;
use lockstep_control::{
    engine::{Backoff, WorkQueue, after},
    plan::{
        Event, Key,
        disruption::{Owner, Plan, Seen, Tally, View, needs_scales, plan},
    },
};
use tokio::task::JoinHandle;
use tracing::{debug, warn};

use crate::{
    feeds::Feeds,
    observe::{Change, Inbox, ObjectKey},
    recorder::{Note, Recorder, pod_reference, reference},
};

/// Changes of pods that come this close together are counted together.
const COALESCE: Duration = Duration::from_millis(50);
const RETRY_BASE: Duration = Duration::from_millis(500);
const RETRY_MAX: Duration = Duration::from_secs(60);

/// Starts the controller.
pub fn spawn(client: Client, feeds: &Feeds) -> JoinHandle<()> {
    let pods = feeds.pods.clone();
    tokio::spawn(async move {
        let mut inbox = Inbox::new();
        inbox.listen(&pods, |_| true, Message::Pod);
        let budgets: Api<PodDisruptionBudget> = Api::all(client.clone());
        inbox.watch(budgets, watcher::Config::default(), Message::Budget);
        let controller = Controller {
            recorder: Recorder::spawn(client.clone(), "controllermanager", ""),
            client,
            budgets: BTreeMap::new(),
            pods: HashMap::new(),
            queue: WorkQueue::new(),
            backoff: Backoff::new(RETRY_BASE, RETRY_MAX),
        };
        controller.run(inbox).await;
    })
}

enum Message {
    Pod(Change<Pod>),
    Budget(Change<PodDisruptionBudget>),
}

struct Controller {
    client: Client,
    recorder: Recorder,
    budgets: BTreeMap<Key, Entry>,
    /// All pods by namespace and name, for budgets that are still to come.
    pods: HashMap<String, HashMap<String, Arc<Pod>>>,
    queue: WorkQueue<Key>,
    backoff: Backoff<Key>,
}

/// A budget and what it is over.
struct Entry {
    budget: Arc<PodDisruptionBudget>,
    selector: LabelSelector,
    tally: Tally,
}

impl Entry {
    fn new(budget: Arc<PodDisruptionBudget>) -> Self {
        let selector = LabelSelector::from_meta(selector(&budget));
        let selector = selector.unwrap_or_else(|_| LabelSelector::nothing());
        Self { budget, selector, tally: Tally::default() }
    }

    /// Notes a pod; whether that changes anything.
    fn put(&mut self, pod: &Pod) -> bool {
        let name = pod.metadata.name.as_deref().unwrap_or_default();
        match self.selector.matches_map(pod.labels()) {
            true => self.tally.put(name, seen(pod)),
            false => self.tally.remove(name, pod.metadata.uid.as_deref().unwrap_or_default()),
        }
    }
}

fn selector(
    budget: &PodDisruptionBudget,
) -> Option<&k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector> {
    budget.spec.as_ref().and_then(|spec| spec.selector.as_ref())
}

/// What matters of a pod.
fn seen(pod: &Pod) -> Seen {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    let owner = pod.owner_references().iter().find(|owner| owner.controller == Some(true));
    Seen {
        uid: pod.uid().unwrap_or_default(),
        is_ready: conditions.is_some_and(|conditions| {
            conditions
                .iter()
                .any(|condition| condition.type_ == "Ready" && condition.status == "True")
        }),
        is_leaving: pod.metadata.deletion_timestamp.is_some(),
        owner: owner.map(|owner| Owner {
            uid: owner.uid.clone(),
            api_version: owner.api_version.clone(),
            kind: owner.kind.clone(),
            name: owner.name.clone(),
        }),
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
                let again = self.settle(&key).await;
                self.queue.done(&key);
                if let Some(at) = again {
                    self.queue.add(key, at);
                }
            }
        }
    }

    fn hear(&mut self, message: Message) {
        match message {
            Message::Budget(Change::Put(budget)) => self.put_budget(budget),
            Message::Budget(Change::Gone(ObjectKey { namespace, name, uid })) => {
                let key = Key { namespace, name };
                let known = self.budgets.get(&key);
                if known.is_some_and(|entry| entry.budget.uid().as_deref() == Some(&*uid)) {
                    self.budgets.remove(&key);
                    self.backoff.succeeded(&key);
                    self.queue.remove(&key);
                }
            }
            Message::Pod(Change::Put(pod)) => self.put_pod(pod),
            Message::Pod(Change::Gone(gone)) => self.remove_pod(&gone),
            Message::Budget(Change::Listing | Change::Synced)
            | Message::Pod(Change::Listing | Change::Synced) => {}
        }
    }

    fn put_budget(&mut self, budget: Arc<PodDisruptionBudget>) {
        let key = Key::of(&budget.metadata);
        match self.budgets.get_mut(&key) {
            Some(entry) if selector(&entry.budget) == selector(&budget) => entry.budget = budget,
            _ => {
                let mut entry = Entry::new(budget);
                for pod in self.pods.get(&key.namespace).into_iter().flat_map(HashMap::values) {
                    entry.put(pod);
                }
                self.budgets.insert(key.clone(), entry);
            }
        }
        self.queue.add(key, Timestamp::now());
    }

    fn put_pod(&mut self, pod: Arc<Pod>) {
        let (namespace, name) = (pod.namespace().unwrap_or_default(), pod.name_any());
        let due = after(Timestamp::now(), COALESCE);
        for (key, entry) in in_namespace(&mut self.budgets, &namespace) {
            if entry.put(&pod) {
                self.queue.add(key.clone(), due);
            }
        }
        self.pods.entry(namespace).or_default().insert(name, pod);
    }

    fn remove_pod(&mut self, gone: &ObjectKey) {
        if let Some(pods) = self.pods.get_mut(&gone.namespace) {
            if pods.get(&gone.name).is_some_and(|pod| pod.uid().as_deref() == Some(&*gone.uid)) {
                pods.remove(&gone.name);
            }
            if pods.is_empty() {
                self.pods.remove(&gone.namespace);
            }
        }
        let due = after(Timestamp::now(), COALESCE);
        for (key, entry) in in_namespace(&mut self.budgets, &gone.namespace) {
            if entry.tally.remove(&gone.name, &gone.uid) {
                self.queue.add(key.clone(), due);
            }
        }
    }

    /// One pass over a budget; when to look again.
    async fn settle(&mut self, key: &Key) -> Option<Timestamp> {
        let entry = self.budgets.get(key).filter(|entry| !is_leaving(&entry.budget))?;
        let budget = Arc::clone(&entry.budget);
        let scales = match needs_scales(&budget) {
            true => scales::of(&self.client, &key.namespace, &entry.tally).await,
            false => Ok(BTreeMap::new()),
        };
        let outcome = match scales {
            Ok(scales) => {
                let view = View { budget: &budget, pods: &entry.tally, scales: &scales };
                let plan = plan(view, Timestamp::now());
                debug!(budget = %key, writes = plan.status.is_some(), "planned");
                self.carry_out(&budget, key, plan).await
            }
            Err(error) => Err(error),
        };
        match outcome {
            Ok(wake_at) => {
                self.backoff.succeeded(key);
                wake_at
            }
            Err(error) => {
                let wait = self.backoff.failed(key);
                warn!(budget = %key, %error, ?wait, "budget not settled, trying again");
                Some(after(Timestamp::now(), wait))
            }
        }
    }

    async fn carry_out(
        &self,
        budget: &PodDisruptionBudget,
        key: &Key,
        plan: Plan,
    ) -> kube::Result<Option<Timestamp>> {
        if let Some(status) = &plan.status {
            write::status(&self.client, budget, status).await?;
        }
        for event in plan.events {
            self.recorder.record(note(reference(budget), event));
        }
        let pods = self.pods.get(&key.namespace);
        for stayed in plan.stayed {
            if let Some(pod) = pods.and_then(|pods| pods.get(&stayed.pod)) {
                self.recorder.record(note(pod_reference(pod, None), stayed.event));
            }
        }
        Ok(plan.wake_at)
    }
}

fn is_leaving(budget: &PodDisruptionBudget) -> bool {
    budget.metadata.deletion_timestamp.is_some()
}

/// The budgets of one namespace.
fn in_namespace<'a>(
    budgets: &'a mut BTreeMap<Key, Entry>,
    namespace: &'a str,
) -> impl Iterator<Item = (&'a Key, &'a mut Entry)> {
    let first = Key { namespace: namespace.to_owned(), name: String::new() };
    budgets.range_mut(first..).take_while(move |(key, _)| key.namespace == namespace)
}

fn note(regarding: k8s_openapi::api::core::v1::ObjectReference, event: Event) -> Note {
    Note { regarding, is_warning: event.is_warning, reason: event.reason, message: event.message }
}
