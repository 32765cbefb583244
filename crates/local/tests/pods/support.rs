//! A cluster to test with.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::{ContainerStatus, Event, Pod};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::{Api, Client};
use lockstep_control::plan::pod;
use lockstep_local::controllers::node_lifecycle::NodeLifecycleOptions;
use lockstep_local::controllers::{self, ControllerOptions};
use lockstep_local::embedded::{Embedded, Options};
use lockstep_local::feeds::Feeds;
use lockstep_local::node::agent::{Agent, AgentOptions};
use lockstep_local::node::dirs::NodeDirs;
use lockstep_local::node::fake::{self, FakeOptions};
use lockstep_local::node::network::Network;
use lockstep_local::node::process::{ProcessBackend, ProcessOptions};
use lockstep_local::node::runtime::{Runtime, RuntimeOptions};
use lockstep_local::node::status::{self, NodeDescription};
use lockstep_local::scheduler::{self, SchedulerOptions};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

const LEVEL: tracing::Level = tracing::Level::WARN;

/// A whole cluster. Everything ends with it.
pub(crate) struct Cluster {
    pub(crate) client: Client,
    feeds: Feeds,
    pub(crate) dir: tempfile::TempDir,
    tasks: Vec<JoinHandle<()>>,
    /// The tasks of the process node, apart so that it can be lost.
    node: Vec<JoinHandle<()>>,
    _embedded: Embedded,
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for task in self.tasks.iter().chain(&self.node) {
            task.abort();
        }
    }
}

impl Cluster {
    /// A cluster with a node of processes called `here`.
    pub(crate) async fn start() -> Self {
        let mut cluster = Self::without_nodes().await;
        cluster.start_node(true);
        cluster
    }

    /// A cluster with so many fake nodes and no other.
    pub(crate) async fn with_fake_nodes(count: usize) -> Self {
        let mut cluster = Self::without_nodes().await;
        cluster.start_fake_nodes(FakeOptions::new(count));
        cluster
    }

    pub(crate) fn start_fake_nodes(&mut self, options: FakeOptions) {
        let feeds = (&self.feeds.pods, &self.feeds.nodes);
        self.tasks.push(fake::spawn(self.client.clone(), feeds, options));
    }

    pub(crate) async fn without_nodes() -> Self {
        // Shown with the output of a test that fails.
        let _ = tracing_subscriber::fmt().with_test_writer().with_max_level(LEVEL).try_init();
        let options = Options { listen: None, ..Options::default() };
        let embedded = Embedded::start(options).await.unwrap();
        let client = embedded.client();
        let feeds = Feeds::start(&client);
        let nodes = NodeLifecycleOptions {
            heartbeat_max: Duration::from_secs(2),
            orphan_after: Duration::from_millis(200),
        };
        let mut tasks = controllers::spawn(
            &client,
            &feeds,
            &ControllerOptions { nodes, ..ControllerOptions::default() },
        );
        tasks.push(scheduler::spawn(client.clone(), &feeds, SchedulerOptions::default()));
        let dir = tempfile::tempdir().unwrap();
        Self { client, feeds, dir, tasks, node: Vec::new(), _embedded: embedded }
    }

    /// Starts the process node, with or without its heartbeat.
    pub(crate) fn start_node(&mut self, has_heartbeat: bool) {
        let dirs = NodeDirs::new(self.dir.path());
        let shim = Some(PathBuf::from(env!("CARGO_BIN_EXE_lockstep-shim")));
        let options = RuntimeOptions { shim, die_with_parent: true, ..RuntimeOptions::from_env() };
        let runtime = Runtime::new(&dirs, options);
        let network = Network::claim(&dirs).unwrap();
        let overrides = [("cpu", "4"), ("nvidia.com/gpu", "1")];
        let overrides =
            overrides.map(|(name, count)| (name.to_owned(), Quantity(count.to_owned())));
        let overrides = BTreeMap::from(overrides);
        let description = NodeDescription::of_machine("here", "127.0.0.1", &overrides);
        let options = ProcessOptions {
            node_name: "here".to_owned(),
            host_ip: "127.0.0.1".to_owned(),
            allocatable: description.capacity.clone(),
            ..ProcessOptions::default()
        };
        let (backend, ends) =
            ProcessBackend::new(self.client.clone(), runtime, network, &dirs, options);
        let agent = AgentOptions {
            pods: pod::Options {
                backoff_base: Duration::from_millis(100),
                retry: Duration::from_millis(100),
                ..pod::Options::default()
            },
            ..AgentOptions::for_node("here")
        };
        self.node.push(Agent::spawn(
            self.client.clone(),
            self.feeds.pods.clone(),
            backend,
            ends,
            agent,
        ));
        if has_heartbeat {
            self.node.push(status::spawn(self.client.clone(), description));
        }
    }

    /// Ends the process node without a word.
    pub(crate) async fn stop_node(&mut self) {
        for task in self.node.drain(..) {
            task.abort();
            let _ = task.await;
        }
    }

    pub(crate) fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.client.clone(), "default")
    }

    /// Creates a pod that runs a shell script; `extra` is merged into its spec.
    pub(crate) async fn run(&self, name: &str, script: &str, extra: Value) -> Pod {
        let mut spec = json!({
            "containers": [{"name": "c", "image": "none", "command": ["sh", "-c", script]}],
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 5,
        });
        merge(&mut spec, &extra);
        self.create(json!({"metadata": {"name": name}, "spec": spec})).await
    }

    pub(crate) async fn create(&self, pod: Value) -> Pod {
        let pod: Pod = serde_json::from_value(pod).unwrap();
        self.pods().create(&PostParams::default(), &pod).await.unwrap()
    }

    pub(crate) async fn delete(&self, name: &str) {
        self.pods().delete(name, &DeleteParams::default()).await.unwrap();
    }

    /// Waits until the pod is as wanted; fails with the pod as it is when that takes too long.
    pub(crate) async fn until(&self, name: &str, what: &str, is: impl Fn(&Pod) -> bool) -> Pod {
        let limit = Instant::now() + Duration::from_secs(20);
        loop {
            let pod = self.pods().get_opt(name).await.unwrap();
            if let Some(pod) = &pod
                && is(pod)
            {
                return pod.clone();
            }
            if Instant::now() > limit {
                let status = pod.and_then(|pod| pod.status);
                panic!("{name} is not {what}: {}", serde_json::to_string_pretty(&status).unwrap());
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    pub(crate) async fn until_phase(&self, name: &str, wanted: &str) -> Pod {
        self.until(name, wanted, |pod| phase(pod) == wanted).await
    }

    pub(crate) async fn until_gone(&self, name: &str) {
        let limit = Instant::now() + Duration::from_secs(20);
        while self.pods().get_opt(name).await.unwrap().is_some() {
            assert!(Instant::now() < limit, "{name} is still there");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// `reason: message` of all events on a pod, once one of them has this reason.
    pub(crate) async fn events(&self, name: &str, reason: &str) -> Vec<String> {
        let api: Api<Event> = Api::namespaced(self.client.clone(), "default");
        let limit = Instant::now() + Duration::from_secs(10);
        loop {
            let all = api.list(&ListParams::default()).await.unwrap();
            let about = all
                .items
                .into_iter()
                .filter(|event| event.involved_object.name.as_deref() == Some(name));
            let shown: Vec<String> = about
                .map(|event| {
                    format!(
                        "{}: {}",
                        event.reason.unwrap_or_default(),
                        event.message.unwrap_or_default()
                    )
                })
                .collect();
            if shown.iter().any(|event| event.starts_with(&format!("{reason}: "))) {
                return shown;
            }
            assert!(Instant::now() < limit, "no event {reason} on {name}: {shown:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

pub(crate) fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
}

pub(crate) fn status<'a>(pod: &'a Pod, container: &str) -> Option<&'a ContainerStatus> {
    let status = pod.status.as_ref()?;
    let mut all = status.container_statuses.iter().chain(&status.init_container_statuses).flatten();
    all.find(|status| status.name == container)
}

/// Status, reason and message of a condition.
pub(crate) fn condition(pod: &Pod, kind: &str) -> (String, String, String) {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_deref());
    let found = conditions.unwrap_or_default().iter().find(|it| it.type_ == kind);
    let found = found.cloned().unwrap_or_default();
    (found.status, found.reason.unwrap_or_default(), found.message.unwrap_or_default())
}

fn merge(into: &mut Value, from: &Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (Value::Array(into), Value::Array(from)) if into.len() == 1 && from.len() == 1 => {
            merge(&mut into[0], &from[0]);
        }
        (into, from) => *into = from.clone(),
    }
}
