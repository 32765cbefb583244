//! `lockstep run`: a manifest, a cluster of its own, and an exit code.

mod progress;

use anyhow::{Context, Result};
use futures::{AsyncBufReadExt, FutureExt, StreamExt, TryStreamExt, stream::FuturesUnordered};
use lockstep_api::builtin;
use lockstep_local::embedded::Embedded;
use serde_json::Value;
use tokio::signal::unix::{Signal, SignalKind, signal};

use self::progress::{LogSource, Progress, State};
use crate::{
    apply::{DryRun, Place},
    catalog::{Catalog, query},
    cluster::{Cluster, Content},
    exit::{Ending, Exit},
    logs,
    manifest::{self, Manifest},
    node::NodeOptions,
    output, up, validate,
    waiting::Deadline,
};

/// Options of `lockstep run`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
The cluster lives only as long as the run, in memory, and nothing is left behind. What the
containers write goes to stdout, everything else to stderr. The exit code is the result:
  0 all pods succeeded      3 timed out
  1 a pod failed            4 the cluster itself failed
  2 invalid manifest      130 interrupted

Examples:
  lockstep run pod.yaml
  lockstep run pod.yaml config.yaml --timeout 10m
  generate | lockstep run -")]
pub(crate) struct Options {
    /// Files or folders with Pods and what they need, or - for standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<String>,
    /// How long the pods may take: 30s, 5m [default: as long as they take]
    #[arg(long, value_name = "DURATION", value_parser = logs::duration)]
    timeout: Option<i64>,
    /// Say nothing on stderr but errors
    #[arg(short, long)]
    quiet: bool,
    #[command(flatten)]
    node: NodeOptions,
    /// What to log to stderr
    #[arg(long, value_name = "FILTER", env = "LOCKSTEP_LOG", default_value = "error")]
    log: String,
}

/// Runs to the end, one way or another, and cleans up.
pub(crate) async fn run(options: &Options) -> Result<Exit> {
    let manifests = manifest::read(&options.files, false)?;
    check(&manifests)?;
    up::start_logging(&options.log)?;
    let mut signals = Signals::listen()?;
    let mut wanted = options.node.embedded();
    if let Some(node) = &mut wanted.node {
        // Nothing outlives a run, not even when it is killed.
        node.runtime.die_with_parent = true;
    }
    let embedded = Embedded::start(wanted).await.map_err(|error| {
        let error = anyhow::Error::new(error);
        Ending::error(Exit::Cluster, format!("error: cannot start: {error:#}"))
    })?;
    let cluster = Cluster::inside(embedded.client(), "default");
    let work = async {
        let result = follow(&cluster, &manifests, options).await;
        stop_pods(&cluster).await;
        result
    };
    let deadline = Deadline::after(options.timeout);
    let result = tokio::select! {
        result = deadline.limit("the pods to finish", work) => result,
        () = signals.next() => {
            output::note("interrupted: stopping the pods (again to stop at once)");
            Ok(Exit::Interrupted)
        }
    };
    // The pods first, then the cluster: whoever stops them must still be there.
    tokio::select! {
        () = stop_pods(&cluster).then(|()| embedded.shutdown()) => {}
        () = signals.next() => {}
    }
    result
}

struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    fn listen() -> Result<Self> {
        let interrupt = signal(SignalKind::interrupt()).context("cannot listen for signals")?;
        let terminate = signal(SignalKind::terminate()).context("cannot listen for signals")?;
        Ok(Self { interrupt, terminate })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

/// Refuses what the API would refuse, and what would never end.
fn check(manifests: &[Manifest]) -> Result<()> {
    let registry = builtin::registry();
    let mut is_valid = true;
    for manifest in manifests {
        for problem in validate::judge(&registry, manifest).problems {
            is_valid = false;
            output::note(format!("{}:{}: {}", manifest.file, problem.line, problem.what));
        }
        if manifest.kind() == "Job" {
            is_valid = false;
            let (file, line) = (&manifest.file, manifest.line("kind"));
            output::note(format!(
                "{file}:{line}: jobs are stored but not run by this version; give the Pod itself"
            ));
        }
    }
    if !is_valid {
        return Err(Ending::silent(Exit::Usage));
    }
    if !manifests.iter().any(|manifest| manifest.kind() == "Pod") {
        let message = "error: there is no Pod in these files, so there is nothing to run";
        return Err(Ending::error(Exit::Usage, message));
    }
    Ok(())
}

async fn follow(cluster: &Cluster, manifests: &[Manifest], options: &Options) -> Result<Exit> {
    let catalog = Catalog::read(cluster).await?;
    let mut pods = Vec::new();
    // What pods may need comes first; among themselves, objects keep their order.
    let (last, first): (Vec<_>, Vec<_>) = manifests.iter().partition(|m| m.kind() == "Pod");
    for manifest in first.into_iter().chain(last) {
        let place = Place::of(cluster, &catalog, manifest, None)?;
        place
            .apply(cluster, DryRun::None)
            .await
            .map_err(|error| Ending::error(Exit::Usage, error.to_string()))?;
        if manifest.kind() == "Pod" {
            pods.push((place.namespace.clone(), place.name.clone()));
        }
    }
    let mut progress = Progress::new(&pods, containers(manifests) > 1);
    let path = "/api/v1/pods".to_owned() + &query(&[("watch", Some("true".to_owned()))]);
    let mut changes = cluster.stream(&path, "application/json").await?.lines();
    let mut logs = FuturesUnordered::new();
    loop {
        tokio::select! {
            change = changes.try_next() => {
                let line = change?.context("the cluster stopped in the middle of the run")?;
                let change: Value = serde_json::from_str(&line)?;
                let seen = progress.see(&change);
                for note in seen.notes.iter().filter(|_| !options.quiet) {
                    output::note(note);
                }
                for source in seen.logs {
                    logs.push(print(cluster, source));
                }
            }
            Some(printed) = logs.next() => { let (): () = printed?; }
        }
        if let State::Over(exit) = progress.state() {
            // The last lines may still be on their way.
            while let Some(printed) = logs.next().await {
                printed?;
            }
            return Ok(exit);
        }
    }
}

fn containers(manifests: &[Manifest]) -> usize {
    let pods = manifests.iter().filter(|manifest| manifest.kind() == "Pod");
    let lists = ["containers", "initContainers"];
    pods.flat_map(|pod| {
        lists.map(|field| lockstep_api::json::list(&pod.object, &["spec", field]).len())
    })
    .sum()
}

async fn print(cluster: &Cluster, source: LogSource) -> Result<()> {
    match cluster.stream(&source.path, "*/*").await {
        Ok(log) => logs::copy(log, &source.prefix).await,
        // The container may be gone before its log was asked for.
        Err(refusal) => {
            output::note(refusal.explain(None));
            Ok(())
        }
    }
}

/// Deletes all pods and waits until their processes have ended.
async fn stop_pods(cluster: &Cluster) {
    let Ok(list) = cluster.get("/api/v1/pods").await else { return };
    for pod in list["items"].as_array().into_iter().flatten() {
        let meta = |field: &str| pod["metadata"][field].as_str().unwrap_or_default();
        let collection = format!("/api/v1/namespaces/{}/pods", meta("namespace"));
        let path = format!("{collection}/{}", meta("name"));
        if cluster.call("DELETE", &path, "application/json", Content::Nothing).await.is_ok() {
            let gone = crate::waiting::until_gone(
                cluster,
                &collection,
                meta("name"),
                meta("uid"),
                Deadline::after(None),
            );
            drop(gone.await);
        }
    }
}
