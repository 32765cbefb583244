//! `lockstep run`: a manifest, a cluster of its own, and an exit code.

mod follow;
mod progress;

use anyhow::Result;
use futures::{FutureExt, future::join_all};
use lockstep_api::builtin;
use lockstep_local::embedded::Embedded;

use self::progress::Progress;
use crate::{
    apply::{DryRun, Place},
    catalog::{Catalog, escape},
    cluster::{Cluster, Content},
    exit::{self, Ending, Exit},
    logs,
    manifest::{self, Manifest},
    node::NodeOptions,
    output,
    refusal::Refused,
    signals::Signals,
    up, validate,
    waiting::{Deadline, until_gone},
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
    let read = manifest::read(&options.files, false);
    let manifests = read.map_err(|error| exit::or(error, Exit::Usage))?;
    check(&manifests)?;
    up::start_logging(&options.log)?;
    let mut signals = Signals::listen().map_err(|error| exit::or(error, Exit::Cluster))?;
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
        let progress = apply(&cluster, &manifests).await?;
        follow::follow(&cluster, progress, options.quiet).await
    };
    let deadline = Deadline::after(options.timeout);
    let result = tokio::select! {
        result = deadline.limit("the pods to finish", work) => result,
        () = signals.next() => {
            output::note("interrupted: stopping the pods (again to stop at once)");
            Ok(Exit::Interrupted)
        }
    };
    // The pods first, then the cluster: whoever stops them must still be there. How the run ended
    // is decided; nothing that happens now changes it.
    let killer = embedded.killer();
    let ending = stop_pods(&cluster).then(|()| embedded.shutdown());
    signals.or_quickly(ending, killer).await;
    result.map_err(|error| exit::or(error, Exit::Cluster))
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

/// Makes the objects and returns the pods to follow.
async fn apply(cluster: &Cluster, manifests: &[Manifest]) -> Result<Progress> {
    let catalog = Catalog::read(cluster).await?;
    let mut pods = Vec::new();
    // What pods may need comes first; among themselves, objects keep their order.
    let (last, first): (Vec<_>, Vec<_>) = manifests.iter().partition(|m| m.kind() == "Pod");
    for manifest in first.into_iter().chain(last) {
        let place = Place::of(cluster, &catalog, manifest, None)
            .map_err(|error| exit::or(error, Exit::Usage))?;
        place.apply(cluster, DryRun::None).await.map_err(|error| {
            let refused = error.downcast_ref::<Refused>();
            let is_ours = refused.is_some_and(Refused::is_callers_fault);
            exit::or(error, if is_ours { Exit::Usage } else { Exit::Cluster })
        })?;
        if manifest.kind() == "Pod" {
            pods.push((place.namespace.clone(), place.name.clone()));
        }
    }
    Ok(Progress::new(&pods, containers(manifests) > 1))
}

fn containers(manifests: &[Manifest]) -> usize {
    let pods = manifests.iter().filter(|manifest| manifest.kind() == "Pod");
    let lists = ["containers", "initContainers"];
    pods.flat_map(|pod| {
        lists.map(|field| lockstep_api::json::list(&pod.object, &["spec", field]).len())
    })
    .sum()
}

/// Deletes all pods and waits until their processes have ended.
async fn stop_pods(cluster: &Cluster) {
    let Ok(list) = cluster.get("/api/v1/pods").await else { return };
    let pods = list["items"].as_array().into_iter().flatten();
    let gone = pods.map(|pod| async {
        let meta = |field: &str| pod["metadata"][field].as_str().unwrap_or_default();
        let collection = format!("/api/v1/namespaces/{}/pods", escape(meta("namespace")));
        let path = format!("{collection}/{}", escape(meta("name")));
        let (name, uid) = (meta("name"), meta("uid"));
        if cluster.call("DELETE", &path, "application/json", Content::Nothing).await.is_ok() {
            let gone = until_gone(cluster, &collection, name, uid, Deadline::after(None));
            drop(gone.await);
        }
    });
    // All of them at once: the grace of one is not the waiting time of the next.
    join_all(gone).await;
}
