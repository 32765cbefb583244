//! The queue of the machine: a ClusterQueue that has what the nodes have, and a LocalQueue for it
//! in every namespace, all called `machine`. Jobs that name it are admitted when they fit as a
//! whole; jobs that do not are none of its business.
//!
//! What the queue has follows the nodes for as long as it says so in an annotation; whoever takes
//! that away decides for oneself.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Namespace, Node};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Text;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use kube::api::{Patch, PatchParams};
use kube::{Api, Client, Resource, ResourceExt};
use lockstep_api::kueue::{
    ClusterQueue, ClusterQueueSpec, FlavorQuotas, LocalQueue, LocalQueueSpec, ResourceFlavor,
    ResourceGroup, ResourceQuota,
};
use lockstep_api::labels::kueue::SIZED_FROM;
use lockstep_api::quantity::Quantity;
use lockstep_operator::write::create_custom;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use tokio::task::JoinHandle;
use tracing::{debug, warn};

use crate::feeds::Feeds;
use crate::observe::{Change, Inbox, ObjectKey};

/// What the queues and the flavor are called.
pub const NAME: &str = "machine";

const NODES: &str = "nodes";

/// How many resources a ClusterQueue can have quota of in one group.
const RESOURCES_MAX: usize = 64;

/// How long to wait before a write that failed is tried again.
const RETRY: Duration = Duration::from_millis(500);

enum Message {
    Node(Change<Node>),
    Namespace(Change<Namespace>),
    ClusterQueue(Change<ClusterQueue>),
}

/// Starts the controller.
pub fn spawn(client: Client, feeds: &Feeds) -> JoinHandle<()> {
    let mut inbox = Inbox::new();
    inbox.listen(&feeds.nodes, |_| true, Message::Node);
    inbox.listen(&feeds.namespaces, |_| true, Message::Namespace);
    inbox.listen(&feeds.cluster_queues, is_ours, Message::ClusterQueue);
    let controller = Controller { client, nodes: BTreeMap::new(), known: None };
    tokio::spawn(controller.run(inbox))
}

fn is_ours(queue: &ClusterQueue) -> bool {
    queue.metadata.name.as_deref() == Some(NAME)
}

struct Controller {
    client: Client,
    /// What each node has.
    nodes: BTreeMap<String, BTreeMap<String, Quantity>>,
    /// The queue as it was seen last.
    known: Option<Arc<ClusterQueue>>,
}

impl Controller {
    async fn run(mut self, mut inbox: Inbox<Message>) {
        let mut is_made = false;
        loop {
            for message in inbox.next(None).await {
                match message {
                    Message::Node(Change::Put(node)) => {
                        self.nodes.insert(node.name_any(), offered(&node));
                    }
                    Message::Node(Change::Gone(ObjectKey { name, .. })) => {
                        self.nodes.remove(&name);
                    }
                    Message::Namespace(Change::Put(namespace))
                        if namespace.metadata.deletion_timestamp.is_none() =>
                    {
                        self.ensure_local(&namespace.name_any()).await;
                    }
                    Message::ClusterQueue(Change::Put(queue)) => self.known = Some(queue),
                    Message::ClusterQueue(Change::Gone(_)) => self.known = None,
                    _ => {}
                }
            }
            if !inbox.is_synced() || self.nodes.is_empty() {
                continue;
            }
            // It is made once. Whoever deletes it does not want it.
            if self.known.is_none() && !is_made {
                self.make().await;
            }
            is_made = true;
            self.resize().await;
        }
    }

    async fn make(&mut self) {
        let flavor = ResourceFlavor { metadata: named(NAME), ..ResourceFlavor::default() };
        create(&self.client, &Api::all(self.client.clone()), &flavor).await;
        let mut metadata = named(NAME);
        metadata.annotations = Some([(SIZED_FROM.to_owned(), NODES.to_owned())].into());
        let spec = ClusterQueueSpec {
            resource_groups: groups(&self.nodes),
            namespace_selector: Some(LabelSelector::default()),
            ..ClusterQueueSpec::default()
        };
        let queue = ClusterQueue { metadata, spec, status: None };
        let api = Api::<ClusterQueue>::all(self.client.clone());
        self.known = create(&self.client, &api, &queue).await.map(Arc::new);
    }

    async fn ensure_local(&self, namespace: &str) {
        let spec = LocalQueueSpec { cluster_queue: NAME.to_owned(), ..LocalQueueSpec::default() };
        let metadata = ObjectMeta { namespace: Some(namespace.to_owned()), ..named(NAME) };
        let queue = LocalQueue { metadata, spec, status: None };
        let api = Api::namespaced(self.client.clone(), namespace);
        create(&self.client, &api, &queue).await;
    }

    /// Gives the queue what the nodes have.
    async fn resize(&mut self) {
        let Some(known) = self.known.clone() else { return };
        if known.annotations().get(SIZED_FROM).map(String::as_str) != Some(NODES) {
            return;
        }
        let wanted = groups(&self.nodes);
        if known.spec.resource_groups == wanted {
            return;
        }
        let patch = json!({
            "metadata": {
                "uid": known.metadata.uid,
                "resourceVersion": known.metadata.resource_version,
            },
            "spec": {"resourceGroups": wanted},
        });
        let api = Api::<ClusterQueue>::all(self.client.clone());
        match api.patch(NAME, &PatchParams::default(), &Patch::Merge(patch)).await {
            Ok(queue) => self.known = Some(Arc::new(queue)),
            // Its news, or the next of a node, will be the occasion to try again.
            Err(error) => debug!(%error, "quota of the machine not written"),
        }
    }
}

fn named(name: &str) -> ObjectMeta {
    ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() }
}

/// What a node offers to new pods: nothing while it takes none.
fn offered(node: &Node) -> BTreeMap<String, Quantity> {
    let is_closed = node.spec.as_ref().is_some_and(|spec| spec.unschedulable == Some(true));
    let Some(status) = node.status.as_ref().filter(|_| !is_closed) else { return BTreeMap::new() };
    let conditions = status.conditions.iter().flatten();
    let is_lost = |one: &&k8s_openapi::api::core::v1::NodeCondition| {
        one.type_ == "Ready" && one.status != "True"
    };
    if conditions.clone().any(|one| is_lost(&one)) {
        return BTreeMap::new();
    }
    let amounts = status.allocatable.iter().flatten();
    amounts
        .filter_map(|(name, Text(amount))| Some((name.clone(), Quantity::parse(amount).ok()?)))
        .filter(|(_, amount)| amount.sign() > 0)
        .collect()
}

/// What all nodes have together, as quota of one flavor.
fn groups(nodes: &BTreeMap<String, BTreeMap<String, Quantity>>) -> Vec<ResourceGroup> {
    let mut total: BTreeMap<&str, Quantity> = BTreeMap::new();
    for (name, amount) in nodes.values().flatten() {
        let sum = total.entry(name).or_insert(Quantity::ZERO);
        *sum = sum.plus(amount);
    }
    let total: Vec<(&str, Quantity)> = total.into_iter().take(RESOURCES_MAX).collect();
    if total.is_empty() {
        return Vec::new();
    }
    let resources = total.iter().map(|(name, amount)| ResourceQuota {
        name: (*name).to_owned(),
        nominal_quota: Text(amount.to_string()),
        ..ResourceQuota::default()
    });
    let flavor = FlavorQuotas { name: NAME.to_owned(), resources: resources.collect() };
    vec![ResourceGroup {
        covered_resources: total.iter().map(|(name, _)| (*name).to_owned()).collect(),
        flavors: vec![flavor],
    }]
}

/// Creates an object unless it is there, or its namespace is going away.
async fn create<K>(client: &Client, api: &Api<K>, object: &K) -> Option<K>
where
    K: Resource<DynamicType = ()> + Clone + Serialize + DeserializeOwned + std::fmt::Debug,
{
    for _ in 0..5 {
        match create_custom(client, object).await {
            Ok(created) => return Some(created),
            Err(kube::Error::Api(status)) if status.code == 409 => {
                return api.get_opt(NAME).await.ok().flatten();
            }
            Err(kube::Error::Api(status)) if matches!(status.code, 403 | 404) => return None,
            Err(error) => {
                warn!(kind = %K::kind(&()), %error, "not created, trying again");
                tokio::time::sleep(RETRY).await;
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(cpu: &str, is_ready: bool, is_closed: bool) -> Node {
        serde_json::from_value(json!({
            "metadata": {"name": "n"},
            "spec": {"unschedulable": is_closed},
            "status": {
                "allocatable": {"cpu": cpu, "memory": "1Gi", "hugepages-2Mi": "0"},
                "conditions": [{"type": "Ready", "status": if is_ready { "True" } else { "False" }}],
            },
        }))
        .unwrap()
    }

    #[test]
    fn the_queue_has_what_the_nodes_offer() {
        let nodes = [node("500m", true, false), node("2", true, false), node("8", true, true)];
        let offers = nodes.iter().enumerate();
        let mut nodes: BTreeMap<String, _> =
            offers.map(|(at, node)| (at.to_string(), offered(node))).collect();
        let quota = |nodes: &BTreeMap<_, _>| {
            let group = groups(nodes).remove(0);
            let resources = group.flavors[0].resources.clone();
            assert_eq!(group.covered_resources.len(), resources.len());
            resources.into_iter().map(|one| (one.name, one.nominal_quota.0)).collect::<Vec<_>>()
        };
        let want = [("cpu", "2500m"), ("memory", "2Gi")].map(|(a, b)| (a.to_owned(), b.to_owned()));
        assert_eq!(quota(&nodes), want);
        nodes.insert("1".to_owned(), offered(&node("2", false, false)));
        assert_eq!(quota(&nodes)[0].1, "500m", "a node that is not ready offers nothing");
        assert_eq!(groups(&BTreeMap::new()), Vec::new());
    }
}
