//! `lockstep queues`: what each queue has, what is used of it, and who waits.

mod screen;

use std::collections::BTreeSet;

use anyhow::Result;
use serde_json::{Value, json};

use crate::{
    args::Connection,
    catalog::Catalog,
    cluster::Cluster,
    output,
    queueing::queue::{ClusterQueue, LocalQueue},
};

/// Options of `lockstep queues`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A bar has a # for what is used of the queue's own quota, a > for what is borrowed, and a dot for
what is free. LocalQueues of other namespaces in which nobody is are left out, but for -o wide.

Examples:
  lockstep queues                         all ClusterQueues, and who waits in which LocalQueue
  lockstep queues -n research             the LocalQueues of a namespace, and where they lead
  lockstep queues -o wide                 every LocalQueue with what is used through it
  lockstep queues -o json                 the same for programs")]
pub(crate) struct Options {
    /// How to show it
    #[arg(short, long, value_name = "FORMAT", value_enum)]
    output: Option<Format>,
    #[command(flatten)]
    connection: Connection,
}

/// How it is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// More columns, and all LocalQueues
    Wide,
    /// One JSON text
    Json,
}

/// A ClusterQueue and the doors to it.
#[derive(Debug)]
struct Pool {
    queue: ClusterQueue,
    doors: Vec<LocalQueue>,
}

/// Shows the queues.
pub(crate) async fn run(options: &Options) -> Result<()> {
    let cluster = Cluster::find(&options.connection).await?;
    let catalog = Catalog::read(&cluster).await?;
    let items = async |word: &str, namespace: Option<&str>| -> Result<Vec<Value>> {
        let resource = catalog.one(word)?;
        let list = cluster.get(&resource.collection(namespace)).await?;
        Ok(list["items"].as_array().cloned().unwrap_or_default())
    };
    let only = options.connection.namespace.as_deref();
    let queues = items("clusterqueues.kueue.x-k8s.io", None).await?;
    let doors = items("localqueues.kueue.x-k8s.io", only).await?;
    let pools = pools(&queues, &doors, only.is_some());
    if options.output == Some(Format::Json) {
        return Ok(output::data(format!("{:#}\n", to_json(&pools)))?);
    }
    if pools.is_empty() {
        output::note(match only {
            Some(namespace) => format!("No queues found in {namespace} namespace."),
            None => "No queues found.".to_owned(),
        });
        return Ok(());
    }
    let is_wide = options.output == Some(Format::Wide);
    Ok(output::data(screen::render(&pools, is_wide, &cluster.namespace))?)
}

/// Each ClusterQueue with its LocalQueues; those at last that lead nowhere. With `is_partial` only
/// those with LocalQueues.
fn pools(queues: &[Value], doors: &[Value], is_partial: bool) -> Vec<Pool> {
    let mut queues: Vec<ClusterQueue> = queues.iter().map(ClusterQueue::read).collect();
    queues.sort_by(|a, b| (&a.cohort, &a.name).cmp(&(&b.cohort, &b.name)));
    let mut doors: Vec<LocalQueue> = doors.iter().map(LocalQueue::read).collect();
    doors.sort_by(|a, b| (&a.namespace, &a.name).cmp(&(&b.namespace, &b.name)));
    let mut pools: Vec<Pool> = queues
        .into_iter()
        .map(|queue| {
            let its = |door: &&LocalQueue| door.cluster_queue == queue.name;
            let doors = doors.iter().filter(its).cloned().collect();
            Pool { queue, doors }
        })
        .collect();
    let known: BTreeSet<String> = pools.iter().map(|pool| pool.queue.name.clone()).collect();
    let lost: BTreeSet<String> = doors.iter().map(|door| door.cluster_queue.clone()).collect();
    for name in lost.difference(&known) {
        // One that is not there has nothing, which is what is to be shown.
        let queue = ClusterQueue::missing(name);
        let doors = doors.iter().filter(|door| door.cluster_queue == *name).cloned().collect();
        pools.push(Pool { queue, doors });
    }
    if is_partial {
        pools.retain(|pool| !pool.doors.is_empty());
    }
    pools
}

fn to_json(pools: &[Pool]) -> Value {
    let pools = pools.iter().map(|pool| {
        let mut value = pool.queue.json();
        value["localQueues"] = pool.doors.iter().map(LocalQueue::json).collect();
        value
    });
    json!({ "clusterQueues": pools.collect::<Vec<_>>() })
}
