//! Nodes that only pretend: their pods run at once, and end when an annotation says so.
//!
//! A pod on a fake node is Running as soon as it is seen. The annotation
//! [`RUN_SECONDS`] makes its main containers end after that many seconds, with the exit code of
//! [`EXIT_CODE`] (0 if absent). With 0 seconds it has ended as soon as it is seen and is never said
//! to run. Without the annotation they run until they are deleted. Both annotations may be set on a
//! pod that runs already. Probes always succeed. One loop serves all fake nodes.
//!
//! All of it goes through the API, so that any cluster can have such nodes.

mod heartbeat;

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::api::{DeleteParams, ListParams};
use kube::{Api, Client, ResourceExt};
use lockstep_control::plan::pod::{
    Exit, HookKind, Known, KnownState, ProbeKind, ProbeOutcome, Role, StartFailure, containers,
};
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::Instant;
use tracing::warn;

use super::agent::{Agent, AgentOptions, Backend, Ended, Launched};
use super::status::{NodeDescription, register};
use crate::observe::Feed;

/// How long the main containers of a pod run, in seconds; fractions are allowed.
pub const RUN_SECONDS: &str = "lockstep.dev/fake-run-seconds";

/// With which code the main containers of a pod end.
pub const EXIT_CODE: &str = "lockstep.dev/fake-exit-code";

/// Marks a fake node. Its heartbeat is taken for granted.
pub const FAKE_NODE: &str = "lockstep.dev/fake-node";

/// On a fake node, `true` makes it look lost.
pub const LOST: &str = "lockstep.dev/fake-node-lost";

/// How many nodes are registered at the same time.
const REGISTER_AT_ONCE: usize = 32;

/// How fake nodes look.
#[derive(Clone, Debug)]
pub struct FakeOptions {
    /// How many there are.
    pub count: usize,
    /// Labels of each; in values, `{i}` is the number of the node and `{i/1000}` that divided.
    pub labels: BTreeMap<String, String>,
    /// What each of them has, over 32 CPUs, 256 Gi of memory and 110 pods.
    pub capacity: BTreeMap<String, Quantity>,
    /// Whether they give heartbeats. Our own controllers take those of fake nodes for granted,
    /// others do not.
    pub gives_heartbeats: bool,
    /// How the agent of all of them works.
    pub agent: AgentOptions,
}

impl FakeOptions {
    /// `count` plain fake nodes.
    pub fn new(count: usize) -> Self {
        let agent = AgentOptions {
            host: "fake".to_owned(),
            writes_max: 128,
            starts_max: 1024,
            ..AgentOptions::for_node("fake")
        };
        Self {
            count,
            labels: BTreeMap::new(),
            capacity: BTreeMap::new(),
            gives_heartbeats: false,
            agent,
        }
    }
}

/// Registers the nodes and runs their pods until the task is aborted.
pub fn spawn(
    client: Client,
    (pods, nodes): (&Feed<Pod>, &Feed<Node>),
    options: FakeOptions,
) -> JoinHandle<()> {
    let (pods, nodes) = (pods.clone(), nodes.clone());
    tokio::spawn(async move {
        let register_all = futures::stream::iter(0..options.count).for_each_concurrent(
            REGISTER_AT_ONCE,
            |index| {
                let (client, node) = (client.clone(), describe(&options, index));
                async move {
                    while let Err(error) = register(&client, &node).await {
                        warn!(node = %node.name, %error, "fake node not registered");
                        tokio::time::sleep(Duration::from_millis(500)).await;
                    }
                }
            },
        );
        register_all.await;
        let (sender, receiver) = mpsc::unbounded_channel();
        let known = heartbeat::Shared::default();
        let nodes = note(&nodes, Arc::clone(&known));
        let (ends, due) = mpsc::unbounded_channel();
        let mut tasks = JoinSet::new();
        tasks.spawn(tell_ends(due, sender));
        if options.gives_heartbeats {
            tasks.spawn(heartbeat::give(client.clone(), options.clone(), Arc::clone(&known)));
        }
        let backend = Arc::new(FakeBackend { count: options.count, ends, known });
        // Ends with this task.
        let _agent = Agent::start(client, pods, backend, receiver, options.agent);
        nodes.await;
    })
}

/// Removes fake nodes of earlier times beyond the first `count`: nobody runs pods on them any more.
pub async fn retire(client: &Client, count: usize) {
    let api: Api<Node> = Api::all(client.clone());
    let nodes = match api.list(&ListParams::default().labels(FAKE_NODE)).await {
        Ok(nodes) => nodes.items,
        Err(error) => return warn!(%error, "fake nodes of earlier times not found out"),
    };
    let left = nodes.iter().filter(|node| !is_served(&node.name_any(), count));
    futures::stream::iter(left)
        .for_each_concurrent(REGISTER_AT_ONCE, |node| {
            let (api, name) = (&api, node.name_any());
            async move {
                if let Err(error) = api.delete(&name, &DeleteParams::default()).await {
                    warn!(node = %name, %error, "fake node of earlier times not removed");
                }
            }
        })
        .await;
}

/// Whether a node is one of the first `count` fake ones.
fn is_served(node: &str, count: usize) -> bool {
    let index = node.strip_prefix("fake-").and_then(|index| index.parse::<usize>().ok());
    index.is_some_and(|index| index < count)
}

/// Notes what becomes of fake nodes.
fn note(nodes: &Feed<Node>, known: heartbeat::Shared) -> impl Future<Output = ()> + use<> {
    let (sender, mut changes) = mpsc::channel(REGISTER_AT_ONCE);
    let is_fake = |node: &Node| node.labels().contains_key(FAKE_NODE);
    let listening = nodes.forward(is_fake, sender, |change| change);
    async move {
        let _listening = listening;
        while let Some(change) = changes.recv().await {
            known.lock().unwrap_or_else(PoisonError::into_inner).note(&change);
        }
    }
}

/// The name of a fake node.
pub fn node_name(index: usize) -> String {
    format!("fake-{index}")
}

fn describe(options: &FakeOptions, index: usize) -> NodeDescription {
    let defaults = [("cpu", "32"), ("memory", "256Gi"), ("pods", "110")];
    let mut capacity: BTreeMap<String, Quantity> = defaults
        .into_iter()
        .map(|(name, amount)| (name.to_owned(), Quantity(amount.to_owned())))
        .collect();
    capacity.extend(options.capacity.clone());
    let mut labels: BTreeMap<String, String> =
        options.labels.iter().map(|(key, value)| (key.clone(), fill_in(value, index))).collect();
    labels.insert(FAKE_NODE.to_owned(), "true".to_owned());
    NodeDescription {
        name: node_name(index),
        ip: address(index),
        capacity,
        labels,
        os_image: "none".to_owned(),
        kernel: "none".to_owned(),
        ..NodeDescription::default()
    }
}

/// `pool-{i/1000}` for node 2345 is `pool-2`; `{i%8}` and `{i}` work likewise.
fn fill_in(template: &str, index: usize) -> String {
    let mut text = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        text.push_str(before);
        let Some((inside, tail)) = after.split_once('}') else {
            text.push('{');
            rest = after;
            continue;
        };
        match evaluate(inside, index) {
            Some(number) => text.push_str(&number.to_string()),
            None => {
                text.push('{');
                text.push_str(inside);
                text.push('}');
            }
        }
        rest = tail;
    }
    text.push_str(rest);
    text
}

fn evaluate(expression: &str, index: usize) -> Option<usize> {
    let rest = expression.trim().strip_prefix('i')?.trim_start();
    let number = |text: &str| text.trim().parse::<usize>().ok().filter(|number| *number > 0);
    match rest.chars().next() {
        None => Some(index),
        Some('/') => Some(index / number(&rest[1..])?),
        Some('%') => Some(index % number(&rest[1..])?),
        Some(_) => None,
    }
}

/// An address nobody has: fake pods and nodes only need to differ.
fn address(index: usize) -> String {
    format!("10.{}.{}.{}", index / 65_536 % 256, index / 256 % 256, index % 256)
}

/// Tells of ends when they are due: one task with one timer for all pods.
async fn tell_ends(
    mut scheduled: mpsc::UnboundedReceiver<(Instant, Ended)>,
    agent: mpsc::UnboundedSender<Ended>,
) {
    let mut waiting: BTreeMap<(Instant, u64), Ended> = BTreeMap::new();
    let mut count = 0;
    loop {
        let next = waiting.first_key_value().map(|((at, _), _)| *at);
        tokio::select! {
            more = scheduled.recv() => {
                let Some((at, ended)) = more else { return };
                count += 1;
                waiting.insert((at, count), ended);
            }
            () = tokio::time::sleep_until(next.unwrap_or_else(Instant::now)), if next.is_some() => {}
        }
        let now = Instant::now();
        while let Some(entry) = waiting.first_entry().filter(|entry| entry.key().0 <= now) {
            // The agent has ended when nobody hears this.
            if agent.send(entry.remove()).is_err() {
                return;
            }
        }
    }
}

struct FakeBackend {
    count: usize,
    ends: mpsc::UnboundedSender<(Instant, Ended)>,
    known: heartbeat::Shared,
}

impl FakeBackend {
    /// Ends a container now.
    fn end(&self, pod_uid: &str, container: &str, attempt: u32, code: i32) {
        let now = Timestamp::now();
        let ended = ended(pod_uid, container, attempt, code, (now, now));
        let _nobody_hears = self.ends.send((Instant::now(), ended));
    }

    /// Starts a container. One that takes no time has ended when this is told, as on a real node
    /// that looks only after it is over.
    fn launch(&self, pod: &Pod, container: &str, attempt: u32) -> Launched {
        let at = Timestamp::now();
        let exit = match run_of(pod, container) {
            Some((Duration::ZERO, code)) => Some(exit(code, (at, at))),
            _ => {
                self.end_later(pod, container, attempt, at);
                None
            }
        };
        Launched { at, notes: Vec::new(), exit }
    }

    /// Ends a container that runs since `since` when its time has come, if it ever does.
    fn end_later(&self, pod: &Pod, container: &str, attempt: u32, since: Timestamp) {
        let Some((wait, code)) = run_of(pod, container) else { return };
        // What was to end before anybody said so ends now.
        let until = since.checked_add(wait).unwrap_or(Timestamp::MAX).max(Timestamp::now());
        let left = Duration::try_from(until.duration_since(Timestamp::now())).unwrap_or_default();
        // What is too far away to be counted never comes.
        let Some(at) = Instant::now().checked_add(left) else { return };
        let uid = pod.uid().unwrap_or_default();
        let ended = ended(&uid, container, attempt, code, (since, until));
        let _nobody_hears = self.ends.send((at, ended));
    }
}

impl Backend for FakeBackend {
    fn owns(&self, node: &str) -> bool {
        is_served(node, self.count)
    }

    fn is_silent(&self, node: &str) -> bool {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).is_silent(node)
    }

    fn host_ip(&self, node: &str) -> String {
        let index = node.strip_prefix("fake-").and_then(|index| index.parse().ok());
        address(index.unwrap_or(0))
    }

    fn set_up_at_once(&self, pod: &Pod) -> Option<Result<String, String>> {
        let uid = pod.uid().unwrap_or_default();
        let mixed = uid.bytes().fold(7_usize, |sum, byte| {
            sum.wrapping_mul(31).wrapping_add(usize::from(byte)) % 16_777_216
        });
        Some(Ok(address(mixed)))
    }

    fn set_up(&self, pod: Arc<Pod>) -> BoxFuture<'static, Result<String, String>> {
        let ready = self.set_up_at_once(&pod).unwrap_or_else(|| Ok(String::new()));
        std::future::ready(ready).boxed()
    }

    fn start_at_once(
        &self,
        pod: &Pod,
        container: &str,
        attempt: u32,
    ) -> Option<Result<Launched, StartFailure>> {
        Some(Ok(self.launch(pod, container, attempt)))
    }

    fn start(
        &self,
        pod: Arc<Pod>,
        container: String,
        attempt: u32,
    ) -> BoxFuture<'static, Result<Launched, StartFailure>> {
        std::future::ready(Ok(self.launch(&pod, &container, attempt))).boxed()
    }

    fn run_hook(
        &self,
        _pod: Arc<Pod>,
        _container: String,
        _attempt: u32,
        _kind: HookKind,
        _within: Option<Duration>,
    ) -> BoxFuture<'static, bool> {
        async { true }.boxed()
    }

    fn probe(
        &self,
        _pod: Arc<Pod>,
        _container: String,
        _attempt: u32,
        _kind: ProbeKind,
    ) -> BoxFuture<'static, ProbeOutcome> {
        async { ProbeOutcome::Success }.boxed()
    }

    fn terminate(&self, pod_uid: &str, container: &str, attempt: u32, signal: i32) {
        self.end(pod_uid, container, attempt, 128 + signal);
    }

    fn kill(&self, pod_uid: &str, container: &str, attempt: u32) {
        self.end(pod_uid, container, attempt, 137);
    }

    fn forget(&self, _pod_uid: &str) {}

    fn recover(&self) -> Vec<(String, Vec<Known>)> {
        Vec::new()
    }

    fn recover_pod(&self, pod: &Pod) -> Vec<Known> {
        // What ran when the cluster stopped goes on running: nothing can have happened to it.
        let recover = |(container, attempt, since): (&str, u32, Timestamp)| {
            self.end_later(pod, container, attempt, since);
            Known { container: container.to_owned(), attempt, state: KnownState::Running { since } }
        };
        running(pod).map(recover).collect()
    }

    fn annotated(&self, pod: &Pod) {
        // An end that was planned before and comes later finds nothing left to end.
        for (container, attempt, since) in running(pod) {
            self.end_later(pod, container, attempt, since);
        }
    }

    fn tells_events(&self) -> bool {
        false
    }
}

/// The containers that a pod's status says are running: name, attempt, and since when.
fn running(pod: &Pod) -> impl Iterator<Item = (&str, u32, Timestamp)> {
    let statuses = pod.status.iter().flat_map(|status| {
        status.container_statuses.iter().chain(&status.init_container_statuses).flatten()
    });
    statuses.filter_map(|status| {
        let running = status.state.as_ref()?.running.as_ref()?;
        let since = running.started_at.as_ref().map_or_else(Timestamp::now, |at| at.0);
        Some((status.name.as_str(), u32::try_from(status.restart_count).unwrap_or(0), since))
    })
}

/// How long a container runs and with which code it ends; `None` when it runs for ever.
fn run_of(pod: &Pod, container: &str) -> Option<(Duration, i32)> {
    let role = containers(pod).find(|(_, it)| it.name == container).map(|(role, _)| role)?;
    let text = |name| pod.annotations().get(name).map(String::as_str);
    let code = text(EXIT_CODE).and_then(|code| code.parse().ok()).unwrap_or(0);
    let seconds = text(RUN_SECONDS).and_then(|seconds| seconds.parse::<f64>().ok());
    let wait = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    match role {
        Role::Init => Some((Duration::ZERO, 0)),
        Role::Sidecar => None,
        Role::Main => wait.map(|wait| (wait, code)),
    }
}

fn ended(
    pod_uid: &str,
    container: &str,
    attempt: u32,
    code: i32,
    times: (Timestamp, Timestamp),
) -> Ended {
    Ended {
        pod_uid: pod_uid.to_owned(),
        container: container.to_owned(),
        attempt,
        exit: exit(code, times),
    }
}

fn exit(code: i32, (started_at, finished_at): (Timestamp, Timestamp)) -> Exit {
    Exit {
        code,
        signal: (code > 128).then(|| code - 128),
        reason: Exit::ordinary_reason(code, false).to_owned(),
        started_at: Some(started_at),
        finished_at: Some(finished_at),
        ..Exit::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_may_depend_on_the_number_of_the_node() {
        let cases = [
            ("pool-{i/1000}", 2345, "pool-2"),
            ("{i%8}", 2345, "1"),
            ("rack-{ i / 10 }-{i}", 25, "rack-2-25"),
            ("plain", 3, "plain"),
            ("{x}", 3, "{x}"),
            ("{i/0}", 3, "{i/0}"),
            ("open{", 3, "open{"),
        ];
        for (template, index, want) in cases {
            assert_eq!(fill_in(template, index), want, "{template}");
        }
    }

    #[test]
    fn annotations_say_when_and_how_a_pod_ends() {
        let pod: Pod = serde_json::from_value(serde_json::json!({
            "metadata": {"annotations": {RUN_SECONDS: "0.5", EXIT_CODE: "3"}},
            "spec": {
                "containers": [{"name": "main"}],
                "initContainers": [{"name": "init"}, {"name": "side", "restartPolicy": "Always"}],
            },
        }))
        .unwrap();
        assert_eq!(run_of(&pod, "main"), Some((Duration::from_millis(500), 3)));
        assert_eq!(run_of(&pod, "init"), Some((Duration::ZERO, 0)));
        assert_eq!(run_of(&pod, "side"), None);
    }
}
