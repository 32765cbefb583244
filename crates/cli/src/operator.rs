//! `lockstep operator`: the controllers on a Kubernetes cluster.

mod in_place;
mod settings;

use std::{path::PathBuf, sync::Arc};

use anyhow::{Context, Result};
use http::HeaderValue;
use kube::{Client, Config, config::KubeConfigOptions};
use lockstep_local::Configuration;
use lockstep_operator::{
    metrics::Metrics,
    process::{self, Operator, OperatorOptions},
    queue::QueueOptions,
    sender::Pace,
    serve::{self, Readiness},
};
use tokio::{net::TcpListener, task::JoinHandle};
use tracing::info;

use crate::{
    config,
    exit::{self, Ending, Exit},
    signals::Signals,
    up::start_logging,
};

use settings::Settings;

/// Options of `lockstep operator`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
It runs JobSets and queues; Jobs and pods are run by the cluster's own controllers. The cluster must
know JobSets, and queues if there are to be any: `lockstep manifests` prints what it needs.

A cluster is found as kubectl finds it ($KUBECONFIG, ~/.kube/config), else through the service
account of the pod it runs in.

Examples:
  lockstep operator                       on the cluster of the current context
  lockstep operator --leader-elect        beside others, of which one works
  lockstep operator --config jobset.yaml  with the configuration of the JobSet controller")]
pub(crate) struct Options {
    /// The kubeconfig to use [default: $KUBECONFIG, ~/.kube/config, the pod's service account]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig to use
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    /// A file with the configuration of the JobSet controller, of Kueue, or of both; flags count
    /// more than it
    #[arg(long, value_name = "FILE", value_parser = config::read)]
    config: Option<Configuration>,
    /// Where to serve /metrics, over plain HTTP; 0 for nowhere [default: 127.0.0.1:8443]
    #[arg(long, value_name = "ADDRESS")]
    metrics_bind_address: Option<String>,
    /// Where to serve /healthz and /readyz; 0 for nowhere [default: :8081]
    #[arg(long, value_name = "ADDRESS")]
    health_probe_bind_address: Option<String>,
    /// Work only while holding the lease that operators agree by, so that there may be several
    #[arg(long)]
    leader_elect: bool,
    /// How many requests a second may be sent to the cluster; 0 for no limit [default: 500]
    #[arg(long, value_name = "RATE")]
    kube_api_qps: Option<f64>,
    /// How many may be sent at once after a rest [default: 500]
    #[arg(long, value_name = "COUNT")]
    kube_api_burst: Option<u32>,
    /// What to log to stderr: error, warn, info, debug, or a filter such as lockstep_operator=debug
    #[arg(long, value_name = "FILTER", env = "LOCKSTEP_LOG", default_value = "info")]
    log: String,
    #[command(flatten)]
    in_place: in_place::Options,
}

/// Works until a signal comes.
pub(crate) async fn run(options: &Options) -> Result<Exit> {
    let configuration = options.config.clone().unwrap_or_default();
    start_logging(&options.log)?;
    config::warn(options.config.as_ref());
    let settings = Settings::of(options, &configuration);
    let mut signals = Signals::listen()?;
    let readiness = Readiness::default();
    let mut servers = Servers::default();
    // Whether it lives can be asked while it still looks for the cluster.
    if let Some(listener) = listen(&settings.health, "--health-probe-bind-address").await? {
        let paths = (settings.liveness_path.as_str(), settings.readiness_path.as_str());
        servers.0.push(serve::health(listener, readiness.clone(), paths));
    }
    let metrics_listener = listen(&settings.metrics, "--metrics-bind-address").await?;
    let connecting = connect(options);
    let (client, server) = tokio::select! {
        connected = connecting => connected?,
        () = signals.next() => return Ok(Exit::Success),
    };
    let opening = options.in_place.open(&client, &settings.namespace).await;
    let door = opening.map_err(|error| exit::or(error, Exit::Usage))?;
    let queues = queues(&client, &configuration).await?;
    let metrics = Arc::<Metrics>::default();
    let lease = settings.lease.clone();
    let name = lease.as_ref().map(|lease| lease.name.clone());
    let mut queue_lease = None;
    if let Some(lease) = lease.as_ref().filter(|_| queues.is_some()) {
        let found = process::queue_lease(&client, lease).await;
        queue_lease = Some(found.map_err(|error| exit::or(error.into(), Exit::Cluster))?);
    }
    let options = OperatorOptions {
        gates: configuration.feature_gates,
        lease,
        queue_lease,
        pace: Pace::new(settings.qps, settings.burst),
        agent: HeaderValue::from_str(&settings.agent).context("the user agent is not valid")?,
        instance: settings.instance,
        door,
        queues,
    };
    let mut operator = Operator::start(&client, &metrics, options);
    if let Some(listener) = metrics_listener {
        let leadership = name.map(|name| (name, operator.leadership().clone()));
        servers.0.push(serve::metrics(listener, metrics, leadership));
    }
    readiness.set();
    info!(%server, "working");
    tokio::select! {
        () = signals.next() => {}
        () = operator.broken() => {
            return Err(Ending::error(Exit::Failed, "error: a controller ended unexpectedly"));
        }
    }
    info!("stopping");
    operator.stop().await;
    // Signals are the documented way to stop it, so being stopped is no failure.
    Ok(Exit::Success)
}

/// How queues work, on a cluster that knows them.
async fn queues(client: &Client, configuration: &Configuration) -> Result<Option<QueueOptions>> {
    if !process::knows_queues(client)
        .await
        .map_err(|error| exit::or(error.into(), Exit::Cluster))?
    {
        info!("no queues: the cluster does not know their kinds; see `lockstep manifests`");
        return Ok(None);
    }
    let has_runtime_classes = process::knows_runtime_classes(client)
        .await
        .map_err(|error| exit::or(error.into(), Exit::Cluster))?;
    let options = QueueOptions { has_runtime_classes, ..QueueOptions::default() };
    Ok(Some(options.configured(&configuration.queueing)))
}

/// Tasks that serve; they end with this.
#[derive(Default)]
struct Servers(Vec<JoinHandle<()>>);

impl Drop for Servers {
    fn drop(&mut self) {
        self.0.iter().for_each(JoinHandle::abort);
    }
}

/// A client for the cluster, which was found to be one we can work on, and its address.
async fn connect(options: &Options) -> Result<(Client, String)> {
    let config = find(options).await.map_err(|error| exit::or(error, Exit::Usage))?;
    let server = config.cluster_url.to_string();
    let client = Client::try_from(config).with_context(|| format!("cannot talk to {server}"))?;
    let checked = process::check(&client).await;
    checked.map_err(|obstacle| {
        let error = anyhow::Error::new(obstacle).context(format!("cannot work on {server}"));
        exit::or(error, Exit::Cluster)
    })?;
    Ok((client, server))
}

async fn find(options: &Options) -> Result<Config> {
    let Options { kubeconfig, context, .. } = options;
    let wanted = KubeConfigOptions { context: context.clone(), ..KubeConfigOptions::default() };
    if let Some(path) = kubeconfig {
        let read = kube::config::Kubeconfig::read_from(path);
        let read = read.with_context(|| format!("cannot read {}", path.display()))?;
        let config = Config::from_custom_kubeconfig(read, &wanted).await;
        return config.with_context(|| format!("cannot use {}", path.display()));
    }
    if context.is_some() {
        let config = Config::from_kubeconfig(&wanted).await;
        return config.context("the kubeconfig cannot be used");
    }
    Config::infer().await.context(
        "there is no cluster: no kubeconfig that can be used, and this is not a pod of one",
    )
}

/// Listens at an address, unless that is nowhere.
async fn listen(address: &str, flag: &str) -> Result<Option<TcpListener>> {
    if address.is_empty() || address == "0" {
        return Ok(None);
    }
    // As Go has it: no host is every host.
    let full = match address.starts_with(':') {
        true => format!("0.0.0.0{address}"),
        false => address.to_owned(),
    };
    let listener = TcpListener::bind(&full).await;
    let listener = listener.with_context(|| format!("cannot listen on {flag} {address}"));
    listener.map(Some).map_err(|error| exit::or(error, Exit::Usage))
}
