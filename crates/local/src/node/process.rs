//! The backend of a real node: containers are processes of this machine.

mod assemble;
mod credentials;
mod gather;
mod honour;
mod tokens;

use std::collections::{BTreeMap, HashMap};
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::{Client, ResourceExt};
use lockstep_control::plan::pod::{
    Exit, HookKind, Known, KnownState, ProbeKind, ProbeOutcome, StartFailure, containers, spec_of,
};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tracing::{debug, warn};

pub(crate) use self::credentials::{Rights, fs_group};
use super::agent::{Backend, Ended, Launched};
use super::devices::Devices;
use super::dirs::NodeDirs;
use super::network::{Network, PodAddresses};
use super::probe::{self, Target};
use super::runtime::{ContainerId, Exited, RecoveredState, Runtime, RuntimeEvent};
use super::sources::references_of_volumes;
use super::volumes::{self, PreparedVolume};

/// How often volumes that show objects of the API are brought up to date.
const REFRESH: Duration = Duration::from_secs(30);

/// What a node of processes is told.
#[derive(Clone, Debug, Default)]
pub struct ProcessOptions {
    /// The name of the node: pods of others are not its business.
    pub node_name: String,
    /// The address of the node.
    pub host_ip: String,
    /// Where the addresses of its pods are noted, for those who connect to them.
    pub addresses: PodAddresses,
    /// What the node can give: the default of limits that pods ask about.
    pub allocatable: BTreeMap<String, Quantity>,
    /// Commands of images, for containers that have none.
    pub image_commands: BTreeMap<String, Vec<String>>,
    /// Whether pods may ask, by annotation, for the environment and folder of this process.
    pub allows_inherit: bool,
}

/// Runs pods as processes.
pub struct ProcessBackend {
    inner: Arc<Inner>,
    /// What passes ends on and keeps volumes up to date: ends with the backend.
    _tasks: JoinSet<()>,
}

struct Inner {
    client: Client,
    runtime: Arc<Runtime>,
    network: Network,
    dirs: NodeDirs,
    options: ProcessOptions,
    services: gather::Services,
    rights: Rights,
    devices: Mutex<Devices>,
    tokens: tokens::Tokens,
    pods: Mutex<HashMap<String, SetUp>>,
}

/// A pod that has been set up.
#[derive(Clone)]
struct SetUp {
    pod: Arc<Pod>,
    volumes: Vec<PreparedVolume>,
    pod_ip: String,
}

impl ProcessBackend {
    /// A backend over `runtime`, and where it tells of containers that end. `events` are those of
    /// the
    /// runtime.
    pub fn new(
        client: Client,
        (runtime, mut events): (Arc<Runtime>, mpsc::UnboundedReceiver<RuntimeEvent>),
        network: Network,
        dirs: &NodeDirs,
        options: ProcessOptions,
    ) -> (Arc<Self>, mpsc::UnboundedReceiver<Ended>) {
        let services = gather::Services::follow(&client, network.clone());
        let devices = Mutex::new(assemble::devices(&options.allocatable));
        let inner = Arc::new(Inner {
            client,
            runtime,
            network,
            dirs: dirs.clone(),
            options,
            services,
            rights: Rights::own(),
            devices,
            tokens: tokens::Tokens::default(),
            pods: Mutex::default(),
        });
        let (sender, receiver) = mpsc::unbounded_channel();
        let mut tasks = JoinSet::new();
        let of = Arc::clone(&inner);
        tasks.spawn(async move {
            while let Some(RuntimeEvent::Exited(exited)) = events.recv().await {
                // Before the end is told: whoever waits for devices starts because of it.
                of.take_devices_back(&exited.id);
                if sender.send(ended(exited)).is_err() {
                    return;
                }
            }
        });
        let of = Arc::clone(&inner);
        tasks.spawn(async move {
            loop {
                tokio::time::sleep(REFRESH).await;
                of.refresh_all().await;
            }
        });
        (Arc::new(Self { inner, _tasks: tasks }), receiver)
    }
}

impl Backend for ProcessBackend {
    fn owns(&self, node: &str) -> bool {
        self.inner.options.node_name == node
    }

    fn host_ip(&self, _node: &str) -> String {
        self.inner.options.host_ip.clone()
    }

    fn set_up(&self, pod: Arc<Pod>) -> BoxFuture<'static, Result<String, String>> {
        let inner = Arc::clone(&self.inner);
        async move { inner.set_up(pod).await }.boxed()
    }

    fn start(
        &self,
        pod: Arc<Pod>,
        container: String,
        attempt: u32,
    ) -> BoxFuture<'static, Result<Launched, StartFailure>> {
        let inner = Arc::clone(&self.inner);
        async move { inner.start(&pod, &container, attempt).await }.boxed()
    }

    fn run_hook(
        &self,
        pod: Arc<Pod>,
        container: String,
        attempt: u32,
        kind: HookKind,
        within: Option<Duration>,
    ) -> BoxFuture<'static, bool> {
        let inner = Arc::clone(&self.inner);
        async move {
            let Some((_, spec)) = containers(&pod).find(|(_, it)| it.name == container) else {
                return true;
            };
            let lifecycle = spec.lifecycle.as_ref();
            let hook = lifecycle.and_then(|it| match kind {
                HookKind::PostStart => it.post_start.as_ref(),
                HookKind::PreStop => it.pre_stop.as_ref(),
            });
            let Some(hook) = hook else { return true };
            let id = id(&pod, &container, attempt);
            let pod_ip = inner.pod_ip(&pod);
            let target = Target { id: &id, container: spec, pod_ip: &pod_ip };
            probe::hook(&inner.runtime, &target, hook, within).await
        }
        .boxed()
    }

    fn probe(
        &self,
        pod: Arc<Pod>,
        container: String,
        attempt: u32,
        kind: ProbeKind,
    ) -> BoxFuture<'static, ProbeOutcome> {
        let inner = Arc::clone(&self.inner);
        async move {
            let spec = containers(&pod).find(|(_, it)| it.name == container);
            let Some((spec, wanted)) =
                spec.and_then(|(_, it)| spec_of(it, kind).map(|wanted| (it, wanted)))
            else {
                return ProbeOutcome::Success;
            };
            let id = id(&pod, &container, attempt);
            let pod_ip = inner.pod_ip(&pod);
            let target = Target { id: &id, container: spec, pod_ip: &pod_ip };
            probe::probe(&inner.runtime, &target, wanted).await
        }
        .boxed()
    }

    fn terminate(&self, pod_uid: &str, container: &str, attempt: u32, signal: i32) {
        self.inner.runtime.terminate(&container_id(pod_uid, container, attempt), signal);
    }

    fn kill(&self, pod_uid: &str, container: &str, attempt: u32) {
        self.inner.runtime.kill(&container_id(pod_uid, container, attempt));
    }

    fn tear_down(&self, pod_uid: &str) {
        self.inner.release(pod_uid);
        let (dirs, uid) = (self.inner.dirs.clone(), pod_uid.to_owned());
        tokio::task::spawn_blocking(move || volumes::remove(&dirs, &uid));
    }

    fn forget(&self, pod_uid: &str) {
        self.inner.release(pod_uid);
        let (runtime, uid) = (Arc::clone(&self.inner.runtime), pod_uid.to_owned());
        // Removing a tree of files takes as long as it takes.
        tokio::task::spawn_blocking(move || runtime.forget_pod(&uid));
    }

    fn recover_pod(&self, pod: &Pod) -> Vec<Known> {
        self.inner.adopt_address(pod);
        Vec::new()
    }

    fn recovered(&self) {
        self.inner.network.pods_known();
    }

    fn recover(&self) -> Vec<(String, Vec<Known>)> {
        let runtime = &self.inner.runtime;
        let mut pods: BTreeMap<String, Vec<Known>> =
            runtime.pods().into_iter().map(|uid| (uid, Vec::new())).collect();
        for it in runtime.recover() {
            let state = match it.state {
                RecoveredState::Running(started) => {
                    self.inner.adopt_devices(&it.id, started.pid);
                    KnownState::Running { since: started.at }
                }
                RecoveredState::Exited(exited) => KnownState::Exited(ended(exited).exit),
                RecoveredState::Lost => KnownState::Lost,
            };
            let (container, attempt) = (it.id.container, it.id.attempt);
            pods.entry(it.id.pod_uid).or_default().push(Known { container, attempt, state });
        }
        pods.into_iter().collect()
    }
}

impl Inner {
    /// Takes back what a pod had while it ran, except for its files.
    fn release(&self, pod_uid: &str) {
        self.lock().remove(pod_uid);
        self.devices.lock().unwrap_or_else(PoisonError::into_inner).release(pod_uid);
        self.network.release(pod_uid);
        self.options.addresses.forget(pod_uid);
        self.tokens.forget(pod_uid);
    }

    async fn set_up(&self, pod: Arc<Pod>) -> Result<String, String> {
        let uid = pod.uid().unwrap_or_default();
        let pod_ip = self.give_address(&pod)?;
        let wanted = references_of_volumes(&pod);
        let sources = self.gather(&pod, wanted, &pod_ip).await;
        let sources = sources.map_err(|error| error.to_string())?;
        let (dirs, shared) = (self.dirs.clone(), Arc::clone(&pod));
        let volumes =
            tokio::task::spawn_blocking(move || volumes::prepare(&shared, &sources, &dirs))
                .await
                .map_err(|error| error.to_string())?
                .map_err(|error| error.to_string())?;
        let set_up = SetUp { pod, volumes, pod_ip: pod_ip.clone() };
        self.lock().insert(uid, set_up);
        Ok(pod_ip)
    }

    fn give_address(&self, pod: &Pod) -> Result<String, String> {
        let spec = pod.spec.as_ref();
        if spec.is_some_and(|spec| spec.host_network == Some(true)) {
            if let Ok(address) = self.options.host_ip.parse() {
                self.options.addresses.note(&pod.uid().unwrap_or_default(), address);
            }
            return Ok(self.options.host_ip.clone());
        }
        let uid = pod.uid().unwrap_or_default();
        let name = assemble::pod_name(pod);
        self.adopt_address(pod);
        let address = self.network.address(&uid, &name).map_err(|error| error.to_string())?;
        self.network.publish(&uid, &name, address);
        self.options.addresses.note(&uid, address.into());
        Ok(address.to_string())
    }

    /// Leaves a pod the address it had before this process started.
    fn adopt_address(&self, pod: &Pod) {
        let Some(status) = &pod.status else { return };
        let is_over = matches!(status.phase.as_deref(), Some("Succeeded" | "Failed"));
        let has_own = pod.spec.as_ref().is_some_and(|spec| spec.host_network != Some(true));
        let address = status.pod_ip.as_deref().and_then(|ip| ip.parse::<Ipv4Addr>().ok());
        let Some(address) = address.filter(|_| has_own && !is_over) else { return };
        let uid = pod.uid().unwrap_or_default();
        if self.network.adopt(&uid, address) {
            self.options.addresses.note(&uid, address.into());
            // Others resolve it before it is set up again.
            self.network.publish(&uid, &assemble::pod_name(pod), address);
            if self.dirs.pod_hosts(&uid).exists()
                && let Err(error) = self.hosts_file(pod)
            {
                warn!(pod = %pod.name_any(), %error, "its hosts file stays as it is");
            }
        } else {
            warn!(pod = %pod.name_any(), %address, "it cannot keep the address; it gets a new one");
        }
    }

    fn pod_ip(&self, pod: &Pod) -> String {
        let uid = pod.uid().unwrap_or_default();
        let known = self.lock().get(&uid).map(|set_up| set_up.pod_ip.clone());
        let written = pod.status.as_ref().and_then(|status| status.pod_ip.clone());
        known.or(written).unwrap_or_else(|| "127.0.0.1".to_owned())
    }

    /// Brings volumes that show objects of the API up to date.
    async fn refresh_all(&self) {
        let pods: Vec<SetUp> = self.lock().values().cloned().collect();
        for set_up in pods {
            let wanted = references_of_volumes(&set_up.pod);
            if wanted.is_empty() {
                continue;
            }
            let gathered = self.gather(&set_up.pod, wanted, &set_up.pod_ip).await;
            let Ok(sources) = gathered else { continue };
            let dirs = self.dirs.clone();
            let outcome =
                tokio::task::spawn_blocking(move || volumes::refresh(&set_up.pod, &sources, &dirs))
                    .await;
            if let Ok(Err(error)) = outcome {
                // An object that is gone leaves what was there: so does a kubelet.
                debug!(%error, "volume not refreshed");
            }
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, SetUp>> {
        // No code that can panic runs while the lock is held.
        self.pods.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn container_id(pod_uid: &str, container: &str, attempt: u32) -> ContainerId {
    ContainerId { pod_uid: pod_uid.to_owned(), container: container.to_owned(), attempt }
}

fn id(pod: &Pod, container: &str, attempt: u32) -> ContainerId {
    container_id(&pod.uid().unwrap_or_default(), container, attempt)
}

fn ended(exited: Exited) -> Ended {
    let reason = Exit::ordinary_reason(exited.code, exited.oom_killed).to_owned();
    Ended {
        pod_uid: exited.id.pod_uid,
        container: exited.id.container,
        attempt: exited.id.attempt,
        exit: Exit {
            code: exited.code,
            signal: exited.signal,
            reason,
            message: exited.message,
            started_at: Some(exited.started_at),
            finished_at: Some(exited.finished_at),
        },
    }
}
