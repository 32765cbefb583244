//! The node of an embedded cluster, and what places pods on it.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use lockstep_control::plan::pod;
use lockstep_store::Snapshot;
use tokio::task::JoinHandle;

use super::{Folders, StartError};
use crate::{
    auth::User,
    cluster::Cluster,
    node::{
        agent::{Agent, AgentOptions},
        network::Network,
        process::{ProcessBackend, ProcessOptions},
        runtime::{ContainerId, Runtime, RuntimeOptions},
        status::{self, NodeDescription},
    },
    server::Server,
};

const HOST_IP: &str = "127.0.0.1";
const SIGTERM: i32 = 15;
/// What a pod gets that does not say how long it may take to end.
const GRACE_SECONDS: i64 = 30;
const POLL_INTERVAL: Duration = Duration::from_millis(10);

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

/// A running node.
pub(super) struct Node {
    runtime: Arc<Runtime>,
    tasks: Vec<JoinHandle<()>>,
    /// Removed at the end, when nothing is to stay.
    scratch: Option<PathBuf>,
}

impl Node {
    /// Starts the node and its agent.
    pub(super) async fn start(
        name: &str,
        Folders { dirs, scratch }: Folders,
        server: &Server,
        options: NodeOptions,
    ) -> Result<Self, StartError> {
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
            host_ip: HOST_IP.to_owned(),
            allocatable: description.capacity.clone(),
            image_commands: options.image_commands,
            allows_inherit: options.allows_inherit,
        };
        let handle = Arc::clone(&runtime.0);
        let (backend, ends) = ProcessBackend::new(client.clone(), runtime, network, &dirs, process);
        let agent = AgentOptions { pods: options.pods, ..AgentOptions::for_node(name) };
        let tasks = vec![
            status::spawn(client.clone(), description),
            Agent::spawn(client, backend, ends, agent),
        ];
        Ok(Self { runtime: handle, tasks, scratch })
    }

    /// Ends the agent, then every container: asked to, and killed when its pod's grace is over.
    pub(super) async fn stop(mut self, cluster: &Cluster) {
        self.tasks.iter().for_each(JoinHandle::abort);
        for task in std::mem::take(&mut self.tasks) {
            let _aborted = task.await;
        }
        let started = Instant::now();
        let snapshot = cluster.snapshot();
        let mut left: Vec<(ContainerId, Duration)> = self
            .runtime
            .running()
            .into_iter()
            .map(|id| {
                let grace = grace(cluster, &snapshot, &id.pod_uid);
                (id, grace)
            })
            .collect();
        for (id, _) in &left {
            self.runtime.terminate(id, SIGTERM);
        }
        while !left.is_empty() {
            tokio::time::sleep(POLL_INTERVAL).await;
            left.retain(|(id, _)| self.runtime.is_running(id));
            for (id, _) in left.iter().filter(|(_, grace)| started.elapsed() >= *grace) {
                self.runtime.kill(id);
            }
        }
        if let Some(scratch) = self.scratch.take() {
            // What cannot be removed was put there by pods; it is theirs to clean up.
            let _left_behind = std::fs::remove_dir_all(scratch);
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

/// How long the containers of a pod may take to end.
fn grace(cluster: &Cluster, snapshot: &Snapshot, uid: &str) -> Duration {
    let pods = cluster.registry().get("", "v1", "pods");
    let pod = pods.and_then(|pods| {
        snapshot.range(&pods.table, None, None).find(|(_, pod)| &*pod.meta.uid == uid)
    });
    let seconds = pod.and_then(|(_, pod)| {
        lockstep_api::json::integer(&pod.json(), &["spec", "terminationGracePeriodSeconds"])
    });
    Duration::from_secs(u64::try_from(seconds.unwrap_or(GRACE_SECONDS)).unwrap_or_default())
}
