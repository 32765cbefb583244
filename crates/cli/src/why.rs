//! `lockstep why`: what a job waits for, and what would let it go on.

mod gather;
mod place;
mod pods;
mod report;
#[cfg(test)]
mod tests;
mod text;

use anyhow::Result;
use jiff::Timestamp;
use serde_json::{Value, json};

use self::{gather::Seen, report::Report};
use crate::{
    args::Connection,
    catalog::{Catalog, Resource},
    cluster::Cluster,
    exit::usage,
    output,
    refusal::Refusal,
    targets,
};

/// Options of `lockstep why`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Says in which queue a job waits, for what, in which place, who holds what it asks for, when it is
tried again, and the smallest change that would let it go on. Of one that was admitted it says which
pods are not ready and why; of one that was evicted or deactivated, why, how often, and how to go on.

Examples:
  lockstep why train                      the Job or JobSet of that name
  lockstep why jobset/train -n research   one kind, in another namespace
  lockstep why pod/train-0-x2b7q          the job that a pod is of
  lockstep why train -o json              the same for programs")]
pub(crate) struct Options {
    /// NAME, TYPE/NAME or TYPE NAME; TYPE is job, jobset, workload or pod
    #[arg(required = true, value_name = "[TYPE/]NAME", num_args = 1..=2)]
    target: Vec<String>,
    /// How to print it
    #[arg(short, long, value_name = "FORMAT", value_enum)]
    output: Option<Format>,
    #[command(flatten)]
    connection: Connection,
}

/// How it is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// One JSON text
    Json,
}

/// The kinds that can be asked about.
const KINDS: [(&str, &str); 4] =
    [("batch", "Job"), ("jobset.x-k8s.io", "JobSet"), ("kueue.x-k8s.io", "Workload"), ("", "Pod")];

/// Explains what was asked about.
pub(crate) async fn run(options: &Options) -> Result<()> {
    let cluster = Cluster::find(&options.connection).await?;
    let catalog = Catalog::read(&cluster).await?;
    let now = Timestamp::now();
    let mut reports = Vec::new();
    for (resource, object) in find(&cluster, &catalog, &options.target).await? {
        let seen = Seen::of(&cluster, &catalog, resource, object).await?;
        reports.push(Report::of(&seen, now));
    }
    match options.output {
        Some(Format::Json) => {
            let items: Vec<Value> = reports.iter().map(Report::json).collect();
            let value = match items.as_slice() {
                [one] => one.clone(),
                all => json!({ "items": all }),
            };
            output::data(format!("{value:#}\n"))?;
        }
        None => {
            let texts: Vec<String> =
                reports.iter().map(|report| text::render(report, now)).collect();
            output::data(texts.join("\n"))?;
        }
    }
    Ok(())
}

/// The objects that are meant. A name alone may be that of a Job, of a JobSet, or of both.
async fn find<'a>(
    cluster: &Cluster,
    catalog: &'a Catalog,
    words: &[String],
) -> Result<Vec<(&'a Resource, Value)>> {
    let is_typed = words.len() > 1 || words.iter().any(|word| word.contains('/'));
    if is_typed {
        let mut found = Vec::new();
        for target in targets::parse(catalog, words)? {
            let resource = target.resource;
            if !KINDS.contains(&(resource.group.as_str(), resource.kind.as_str())) {
                return Err(usage(format!(
                    "error: {} wait for nothing that `why` knows of: ask about a job, a jobset, a \
                     workload or a pod",
                    resource.plural
                )));
            }
            let name = target.name.unwrap_or_default();
            found.push((resource, cluster.get(&resource.object(&cluster.namespace, &name)).await?));
        }
        return Ok(found);
    }
    let name = words.first().map(String::as_str).unwrap_or_default();
    let mut found = Vec::new();
    let mut missing = None;
    for (group, kind) in KINDS {
        // Those that are of others are asked about only when there is nothing else of that name.
        if !found.is_empty() && matches!(kind, "Workload" | "Pod") {
            break;
        }
        let word = if group.is_empty() { kind.to_owned() } else { format!("{kind}.{group}") };
        let Ok(resource) = catalog.one(&word) else { continue };
        match cluster.get(&resource.object(&cluster.namespace, name)).await {
            Ok(object) => found.push((resource, object)),
            Err(refusal) if refusal.is_not_found() => {
                missing.get_or_insert_with(|| Refusal::gone(resource, name));
            }
            Err(refusal) => return Err(refusal.into()),
        }
    }
    match (found.is_empty(), missing) {
        (true, Some(refusal)) => Err(refusal.into()),
        _ => Ok(found),
    }
}
