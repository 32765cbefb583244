//! The node of an embedded cluster, and what places pods on it.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use lockstep_control::plan::pod;
use tokio::task::JoinHandle;
use tracing::warn;

use super::{Folders, Scratch, StartError};
use crate::feeds::Feeds;
use crate::{
    auth::User,
    cluster::Cluster,
    node::{
        agent::{Agent, AgentHandle, AgentOptions},
        network::Network,
        process::{ProcessBackend, ProcessOptions},
        runtime::{Isolation, Runtime, RuntimeOptions},
        status::{self, NodeDescription},
    },
    server::Server,
};

const HOST_IP: &str = "127.0.0.1";
/// What a pod gets that does not say how long it may take to end.
const GRACE_SECONDS: i64 = 30;
/// How much longer than the longest grace the end of all containers may take.
const SHUTDOWN_SLACK: Duration = Duration::from_secs(10);

/// What the node is like.
#[derive(Clone, Debug, Default)]
pub struct NodeOptions {
    /// What it has, over what is found.
    pub capacity: BTreeMap<String, Quantity>,
    /// Commands of images, for containers that have none.
    pub image_commands: BTreeMap<String, Vec<String>>,
    /// Whether pods may ask, by annotation, for the environment and folder of this process.
    pub allows_inherit: bool,
    /// How containers are run.
    pub runtime: RuntimeOptions,
    /// What may be changed about the life of pods.
    pub pods: pod::Options,
}

/// Kills the containers of a cluster, also while it is shutting down.
#[derive(Default)]
pub struct Killer(Option<Arc<Runtime>>);

impl Killer {
    /// Kills every container that runs.
    pub fn kill_all(&self) {
        if let Some(runtime) = &self.0 {
            runtime.running().iter().for_each(|id| runtime.kill(id));
        }
    }
}

/// A running node.
pub(super) struct Node {
    runtime: Arc<Runtime>,
    agent: Option<AgentHandle>,
    heartbeat: JoinHandle<()>,
    /// Removed at the end, when nothing is to stay.
    scratch: Option<Scratch>,
}

impl Node {
    /// Starts the node and its agent.
    pub(super) async fn start(
        name: &str,
        Folders { dirs, scratch }: Folders,
        server: &Server,
        feeds: &Feeds,
        mut options: NodeOptions,
    ) -> Result<Self, StartError> {
        // Nobody can find what outlives a cluster that is kept nowhere.
        options.runtime.die_with_parent |= scratch.is_some();
        let probing = (dirs.clone(), options.runtime.clone());
        // Finding out what the machine allows starts processes.
        let (runtime, network) = tokio::task::spawn_blocking(move || {
            let (dirs, runtime) = probing;
            (Runtime::new(&dirs, runtime), Network::claim(&dirs))
        })
        .await
        .map_err(|error| StartError::Node(std::io::Error::other(error)))?;
        let network = network.map_err(StartError::Node)?;
        let client = server.client(User::component(&format!("node:{name}")));
        let description = NodeDescription::of_machine(name, HOST_IP, &options.capacity);
        let process = ProcessOptions {
            node_name: name.to_owned(),
            host_ip: HOST_IP.to_owned(),
            addresses: server.addresses().clone(),
            allocatable: description.capacity.clone(),
            image_commands: options.image_commands,
            allows_inherit: options.allows_inherit,
        };
        let handle = Arc::clone(&runtime.0);
        let (backend, ends) = ProcessBackend::new(client.clone(), runtime, network, &dirs, process);
        let agent = AgentOptions { pods: options.pods, ..AgentOptions::for_node(name) };
        // A cluster is ready when its pods have somewhere to go.
        if let Err(error) = status::register(&client, &description).await {
            warn!(node = name, %error, "node not registered, trying again");
        }
        let heartbeat = status::spawn(client.clone(), description);
        let agent = Some(Agent::start(client, feeds.pods.clone(), backend, ends, agent));
        Ok(Self { runtime: handle, agent, heartbeat, scratch })
    }

    /// Why containers share the machine's view of files and names, if they do.
    pub(super) fn lacks_namespaces(&self) -> Option<String> {
        match self.runtime.isolation() {
            (Isolation::None, reason) => Some(reason.unwrap_or("not supported").to_owned()),
            _ => None,
        }
    }

    /// What kills the containers of this node.
    pub(super) fn killer(&self) -> Killer {
        Killer(Some(Arc::clone(&self.runtime)))
    }

    /// Ends every container as a node does that shuts down: its pod is told why, it is asked to,
    /// and killed when its pod's grace is over. Then the agent ends too.
    pub(super) async fn stop(mut self, cluster: &Cluster) {
        self.heartbeat.abort();
        if let Some(agent) = self.agent.take() {
            let limit = longest_grace(cluster).saturating_add(SHUTDOWN_SLACK);
            if tokio::time::timeout(limit, agent.shut_down()).await.is_err() {
                warn!("not all containers ended in time; they are killed");
            }
        }
        self.runtime.close().await;
        // Now that nothing runs in it any more.
        drop(self.scratch.take());
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.heartbeat.abort();
        if self.scratch.is_some() {
            // What is left of it must not write into the folder while that is removed.
            self.runtime.kill_all();
        }
    }
}

/// How long the containers of the most patient pod may take to end.
fn longest_grace(cluster: &Cluster) -> Duration {
    let snapshot = cluster.snapshot();
    let catalog = cluster.catalog();
    let Some(pods) = catalog.registry().get("", "v1", "pods") else { return Duration::ZERO };
    let seconds = snapshot.range(&pods.table, None, None).map(|(_, pod)| {
        let path = ["spec", "terminationGracePeriodSeconds"];
        lockstep_api::json::integer(&pod.json(), &path).unwrap_or(GRACE_SECONDS)
    });
    Duration::from_secs(u64::try_from(seconds.max().unwrap_or(0)).unwrap_or_default())
}
