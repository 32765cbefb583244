//! A whole cluster inside this process: state, API server, controllers and node, started together
//! and stopped together.

mod bootstrap;
mod endpoints;
mod in_place;
mod node;
mod roles;
mod scratch;

use std::{
    net::{IpAddr, SocketAddr},
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use jiff::Timestamp;
use lockstep_api::{Gates, Registry, builtin, refused};
use lockstep_operator::{
    exclusive,
    job::{self, JobOptions},
    jobset::{self, InPlace, JobSetOptions},
    metrics::Metrics,
    process::Door,
    queue::{self, QueueOptions},
};
use tokio::{
    net::TcpListener,
    task::{JoinHandle, JoinSet},
};
use tracing::{info, warn};

use crate::{
    Configuration,
    auth::{
        Token, User,
        signer::{Signer, SignerError},
    },
    cluster::{self, Cluster, OpenError, QueueingPolicy},
    controllers::{self, ControllerOptions},
    feeds::Feeds,
    files::{self, FileError},
    kubeconfig::Kubeconfig,
    node::{
        dirs::NodeDirs,
        fake::{self, FakeOptions},
    },
    scheduler::{self, SchedulerOptions},
    server::{Limits, Parts, Server, register_reviews, register_usage},
    tls::{Authority, TlsError},
};

pub use node::{Killer, NodeOptions};

use bootstrap::Announced;
use node::Node;
use scratch::Scratch;

/// What kind of cluster to start.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where to keep everything; nowhere means in memory only.
    pub data_dir: Option<PathBuf>,
    /// Where to listen; nowhere means that only this process can call.
    pub listen: Option<SocketAddr>,
    /// Whether `listen` may be an address other machines can reach.
    pub allows_remote: bool,
    /// What the kubeconfig calls the cluster.
    pub name: String,
    /// What the node is called.
    pub node_name: String,
    /// What the node is like; without one, pods stay where they are put.
    pub node: Option<NodeOptions>,
    /// Nodes whose pods only pretend.
    pub fake_nodes: Option<FakeOptions>,
    /// How much the API server serves at once.
    pub limits: Limits,
    /// How far back watchers may go.
    pub history: lockstep_store::Limits,
    /// The program that workers which restart in place have around them; without it nobody
    /// restarts there.
    pub agent: Option<PathBuf>,
    /// How the Job controller works.
    pub jobs: JobOptions,
    /// The queue that new jobs are given which name none; without it they start at once.
    pub queue_for_all: Option<String>,
    /// What an administrator decided about the controllers; counts more than anything else.
    pub configuration: Configuration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            data_dir: None,
            listen: None,
            allows_remote: false,
            name: "lockstep".to_owned(),
            node_name: host_name(),
            node: None,
            fake_nodes: None,
            limits: Limits::default(),
            history: lockstep_store::Limits::default(),
            agent: None,
            jobs: JobOptions::default(),
            queue_for_all: None,
            configuration: Configuration::default(),
        }
    }
}

impl Options {
    /// Whether pods have somewhere to go.
    fn has_nodes(&self) -> bool {
        self.node.is_some() || self.fake_nodes.is_some()
    }
}

/// Why a cluster did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The state cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A file beside the state cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// There is no certificate to serve with.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// There is no key for the tokens of service accounts.
    #[error(transparent)]
    Signer(#[from] SignerError),
    /// The address can be reached from other machines and nobody said that is wanted.
    #[error(
        "{0} can be reached from other machines: say that this is wanted, or use a loopback address"
    )]
    Remote(SocketAddr),
    /// The node cannot keep its files or claim its addresses.
    #[error("cannot start the node")]
    Node(#[source] std::io::Error),
    /// The address cannot be listened on.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why not.
        #[source]
        source: std::io::Error,
    },
    /// The objects every cluster has could not be made.
    #[error("cannot create {what}")]
    Bootstrap {
        /// The object.
        what: String,
        /// Why not.
        #[source]
        source: lockstep_api::Status,
    },
}

/// A running cluster. Dropping it stops what runs in this process at once; [`Embedded::shutdown`]
/// lets requests finish first.
pub struct Embedded {
    cluster: Cluster,
    server: Server,
    address: Option<SocketAddr>,
    kubeconfig: Option<String>,
    ready_after: Duration,
    node: Option<Node>,
    /// Controllers, the scheduler and fake nodes: ended first.
    agents: Vec<JoinHandle<()>>,
    tasks: JoinSet<()>,
}

impl Embedded {
    /// Starts a cluster. When this returns, it serves.
    ///
    /// # Errors
    /// When the data folder or the address cannot be used.
    pub async fn start(mut options: Options) -> Result<Self, StartError> {
        let started = Instant::now();
        let now = Timestamp::now();
        let listener = match options.listen {
            Some(address) => Some(bind(address, options.allows_remote).await?),
            None => None,
        };
        let cluster = Cluster::open(cluster::Options {
            registry: served(options.configuration.feature_gates),
            data_dir: options.data_dir.clone(),
            limits: options.history,
            queueing: QueueingPolicy::of(
                &options.configuration.queueing,
                options.queue_for_all.clone(),
            ),
        })?;
        if let Some(folder) = &options.data_dir {
            options.node_name = kept_name(folder, &options.node_name, &host_name())?;
        }
        let Credentials { authority, token, signer } =
            Credentials::of(options.data_dir.as_deref(), now)?;
        let folders = Folders::of(&options)?;
        let metrics = Arc::<Metrics>::default();
        let server = Server::new(Parts {
            cluster: cluster.clone(),
            token: token.clone(),
            signer,
            names: names(&options.node_name),
            limits: options.limits,
            logs: folders.as_ref().map(|folders| folders.dirs.clone()),
            node_name: options.node.is_some().then(|| options.node_name.clone()),
            controllers: Arc::clone(&metrics),
        });
        let port = listener.as_ref().map(|(_, bound)| bound.port());
        // Boxed: it holds the writes of all objects at once, and is over long before the rest.
        // Where no pod runs, nobody needs it.
        let root_ca = options.has_nodes().then(|| authority.pem());
        Box::pin(bootstrap::run(&cluster, port, root_ca)).await?;
        let mut tasks = JoinSet::new();
        let (mut address, mut kubeconfig) = (None, None);
        let bound = listener.as_ref().map(|(_, bound)| *bound);
        let for_pods = listen_for_pods(&cluster, bound).await?;
        endpoints::write(&cluster, bound).await?;
        if let Some((listener, bound)) = listener {
            let hosts = std::slice::from_ref(&options.node_name);
            let mut addresses = reachable(bound.ip());
            addresses.extend(bootstrap::service_address(&cluster));
            let tls = authority.server_config(hosts, &addresses, now)?;
            let config = Kubeconfig {
                name: &options.name,
                address: bound,
                ca_pem: authority.pem(),
                token: token.secret(),
            };
            if let Some(folder) = &options.data_dir {
                config.write(&folder.join("kubeconfig"))?;
            }
            (address, kubeconfig) = (Some(bound), Some(config.to_yaml()));
            for listener in for_pods.into_iter().chain([listener]) {
                let (server, tls) = (server.clone(), Arc::clone(&tls));
                tasks.spawn(async move { server.listen(listener, tls).await });
            }
        }
        let door = in_place::open(&options, (&authority, &token), now)?;
        let around = Around { folders, door, root_ca: authority.pem().into() };
        let (node, mut agents) = start_agents(options, around, &server, &metrics).await?;
        let client = server.client(User::component("apiserver"));
        agents.push(tokio::spawn(bootstrap::keep(cluster.clone(), client, address)));
        let ready_after = started.elapsed();
        info!(address = address.map(display), ?ready_after, "the cluster is ready");
        Ok(Self { cluster, server, address, kubeconfig, ready_after, node, agents, tasks })
    }

    /// A client of this cluster, in-process, as its administrator.
    pub fn client(&self) -> kube::Client {
        self.server.client(User::admin())
    }

    /// The API server.
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// The state.
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// Where the API server listens.
    pub fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// The text of a kubeconfig for other processes.
    pub fn kubeconfig(&self) -> Option<&str> {
        self.kubeconfig.as_deref()
    }

    /// How long it took from the start until the cluster served.
    pub fn ready_after(&self) -> Duration {
        self.ready_after
    }

    /// Why containers share the machine's view of files and names, if they do: user namespaces are
    /// forbidden or cannot be used.
    pub fn lacks_namespaces(&self) -> Option<String> {
        self.node.as_ref().and_then(Node::lacks_namespaces)
    }

    /// What kills all containers at once, for when [`Embedded::shutdown`] takes too long.
    pub fn killer(&self) -> Killer {
        self.node.as_ref().map(Node::killer).unwrap_or_default()
    }

    /// Stops the cluster: containers are asked to end and get the grace of their pods, what is
    /// being answered is answered, watches end, connections close. When this returns, the data
    /// directory is free for another cluster, even if clients of this one are still around.
    pub async fn shutdown(mut self) {
        // Whoever would start something again goes first.
        self.agents.iter().for_each(JoinHandle::abort);
        for agent in std::mem::take(&mut self.agents) {
            let _aborted = agent.await;
        }
        if let Some(node) = self.node.take() {
            node.stop(&self.cluster).await;
        }
        self.server.stop();
        while self.tasks.join_next().await.is_some() {}
        let cluster = self.cluster.clone();
        let _panicked = tokio::task::spawn_blocking(move || cluster.close()).await;
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        self.agents.iter().for_each(JoinHandle::abort);
        self.server.stop();
    }
}

/// Where the node keeps its files.
struct Folders {
    dirs: NodeDirs,
    /// Removed at the end, when nothing is to stay.
    scratch: Option<Scratch>,
}

impl Folders {
    fn of(options: &Options) -> Result<Option<Self>, StartError> {
        if options.node.is_none() {
            return Ok(None);
        }
        if let Some(folder) = &options.data_dir {
            return Ok(Some(Self { dirs: NodeDirs::new(resolve(folder)?), scratch: None }));
        }
        let scratch = Scratch::new()?;
        Ok(Some(Self { dirs: NodeDirs::new(resolve(scratch.path())?), scratch: Some(scratch) }))
    }
}

/// The one path of a folder, whatever links lead to it: what is hidden by its path must not be
/// found by another.
fn resolve(folder: &Path) -> Result<PathBuf, StartError> {
    files::private_folder(folder)?;
    folder.canonicalize().map_err(StartError::Node)
}

/// What those that make pods run find around them.
struct Around {
    folders: Option<Folders>,
    /// How workers restart in place.
    door: Option<Door>,
    /// The certificate of the cluster's authority.
    root_ca: Arc<str>,
}

/// Starts what makes pods run: the scheduler, controllers, fake nodes, the node.
async fn start_agents(
    options: Options,
    Around { folders, door, root_ca }: Around,
    server: &Server,
    metrics: &Arc<Metrics>,
) -> Result<(Option<Node>, Vec<JoinHandle<()>>), StartError> {
    let has_nodes = options.has_nodes();
    let fake_client = server.client(User::component("node:fake"));
    let fake_count = options.fake_nodes.as_ref().map_or(0, |fake| fake.count);
    if has_nodes {
        fake::retire(&fake_client, fake_count).await;
    }
    let feeds = Feeds::start(&server.client(User::component("kube-controller-manager")));
    let claims = folders.as_ref().map(|folders| folders.dirs.claims());
    let node = match (options.node, folders) {
        (Some(node), Some(folders)) => {
            Some(Node::start(&options.node_name, folders, server, &feeds, node).await?)
        }
        _ => None,
    };
    let mut agents = Vec::new();
    if let Some(fake) = options.fake_nodes {
        agents.push(fake::spawn(fake_client, (&feeds.pods, &feeds.nodes), fake));
    }
    // The scheduler comes when there is somewhere to place pods: whatever it says about them before
    // would be wrong a moment later.
    if has_nodes {
        let client = server.client(User::component("kube-scheduler"));
        agents.push(scheduler::spawn(client, &feeds, SchedulerOptions::default()));
        let client = server.client(User::component("kube-controller-manager"));
        let wanted = ControllerOptions { claims, root_ca, ..ControllerOptions::default() };
        agents.extend(controllers::spawn(&client, &feeds, &wanted));
        let gates = options.configuration.feature_gates;
        let jobs = options.jobs.with_gates(gates);
        let followed = job::Feeds { jobs: feeds.jobs.clone(), pods: feeds.pods.clone() };
        agents.extend(job::spawn(&client, &followed, metrics, jobs));
        let client = server.client(User::component("jobset-controller"));
        let followed = jobset::Feeds {
            jobsets: feeds.jobsets.clone(),
            jobs: feeds.jobs.clone(),
            services: feeds.services.clone(),
        };
        let mut jobsets = JobSetOptions::default().with_gates(gates);
        if let Some(Door { place, keys, wiring, serving }) = door {
            agents.extend(serving);
            jobsets.in_place = Some(InPlace { place, keys, wiring, pods: feeds.pods.clone() });
        }
        agents.push(jobset::spawn(&client, &followed, metrics, jobsets));
        agents.push(exclusive::spawn(&client, &feeds.pods, &feeds.nodes));
        let client = server.client(User::component("kueue"));
        let queues = QueueOptions::default().configured(&options.configuration.queueing);
        agents.push(queue::spawn(&client, &feeds.of_queues(), metrics, queues));
    }
    Ok((node, agents))
}

async fn bind(
    address: SocketAddr,
    allows_remote: bool,
) -> Result<(TcpListener, SocketAddr), StartError> {
    if !address.ip().is_loopback() && !allows_remote {
        return Err(StartError::Remote(address));
    }
    let failed = |source| StartError::Listen { address, source };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let bound = listener.local_addr().map_err(failed)?;
    Ok((listener, bound))
}

/// Listens on the address of the service `kubernetes` too, which pods are told, and says there when
/// that cannot be. All of 127.0.0.0/8 is free to be listened on with Linux.
async fn listen_for_pods(
    cluster: &Cluster,
    bound: Option<SocketAddr>,
) -> Result<Option<TcpListener>, StartError> {
    let Some(bound) = bound else {
        bootstrap::announce(cluster, Announced::Nowhere).await?;
        return Ok(None);
    };
    if bound.ip().is_unspecified() {
        // Whoever listens everywhere listens there.
        bootstrap::announce(cluster, Announced::AtService).await?;
        return Ok(None);
    }
    let listened = match bootstrap::service_address(cluster) {
        Some(address) => TcpListener::bind((address, bound.port())).await,
        None => Err(std::io::ErrorKind::AddrNotAvailable.into()),
    };
    let announced = match &listened {
        Ok(_) => Announced::AtService,
        Err(error) => {
            warn!(%error, "cannot listen on the address of the service kubernetes");
            Announced::At(bound)
        }
    };
    bootstrap::announce(cluster, announced).await?;
    Ok(listened.ok())
}

/// What a cluster shows that it is itself, and knows others by.
struct Credentials {
    authority: Authority,
    token: Token,
    signer: Signer,
}

impl Credentials {
    /// Those of a data folder, made if there are none.
    fn of(data_dir: Option<&Path>, now: Timestamp) -> Result<Self, StartError> {
        let Some(folder) = data_dir else {
            let (token, signer) = (Token::generate(), Signer::ephemeral()?);
            return Ok(Self { authority: Authority::ephemeral(now)?, token, signer });
        };
        files::private_folder(folder)?;
        let authority = Authority::open(&folder.join("pki"), now)?;
        let token = Token::open(&folder.join("pki/token"))?;
        let signer = Signer::open(&folder.join("pki/sa.key"))?;
        Ok(Self { authority, token, signer })
    }
}

/// The name the node had when the cluster was first started. The pods that are bound to it stay its
/// own when the machine is called something else later. A name that somebody chose wins.
fn kept_name(folder: &Path, wanted: &str, machine: &str) -> Result<String, StartError> {
    let path = folder.join("node-name");
    let kept = files::read_if_present(&path)?.map(|text| text.trim().to_owned());
    if let Some(kept) = kept.filter(|kept| !kept.is_empty() && wanted == machine) {
        return Ok(kept);
    }
    files::private_folder(folder)?;
    files::write_private(&path, wanted.as_bytes())?;
    Ok(wanted.to_owned())
}

/// Names beside `localhost` under which requests may come in.
fn names(node_name: &str) -> Vec<String> {
    let fixed = ["kubernetes", "kubernetes.default", "kubernetes.default.svc"];
    let long = "kubernetes.default.svc.cluster.local";
    fixed.into_iter().chain([long, node_name]).map(str::to_owned).collect()
}

/// The addresses the certificate must name beside the loopback ones.
fn reachable(bound: IpAddr) -> Vec<IpAddr> {
    if bound.is_unspecified() { Vec::new() } else { vec![bound] }
}

/// The machine's name in the form a Node's name must have.
pub fn host_name() -> String {
    let name = rustix::system::uname().nodename().to_string_lossy().to_ascii_lowercase();
    let clean: String = name
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || matches!(c, '-' | '.') { c } else { '-' })
        .collect();
    let clean = clean.trim_matches(['-', '.']);
    if clean.is_empty() { "localhost".to_owned() } else { clean.chars().take(63).collect() }
}

/// All that is served: what is stored, what is only answered, and what is known by name only.
fn served(gates: Gates) -> Registry {
    let mut registry = builtin::registry_with(gates);
    register_reviews(&mut registry);
    register_usage(&mut registry);
    refused::register(&mut registry);
    registry
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_keeps_its_name_when_the_machine_is_renamed() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(kept_name(folder.path(), "first", "first").unwrap(), "first");
        assert_eq!(kept_name(folder.path(), "second", "second").unwrap(), "first");
        assert_eq!(kept_name(folder.path(), "chosen", "second").unwrap(), "chosen");
    }
}
