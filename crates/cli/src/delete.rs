//! `lockstep delete`.

use anyhow::{Result, bail};
use serde_json::{Value, json};

use crate::{
    apply::Place,
    args::{Connection, Selectors},
    catalog::{Catalog, Resource, query},
    cluster::{Cluster, Content},
    exit::{Ending, Exit},
    manifest, output, targets,
    waiting::{self, Deadline},
};

/// Options of `lockstep delete`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  lockstep delete pod hello               one pod; waits until it has stopped
  lockstep delete -f pod.yaml             what a manifest names
  lockstep delete pods -l app=train       all of a label
  lockstep delete pods --all              all of the namespace
  lockstep delete pod hello --now         with one second of grace
  lockstep delete pod hello --force --grace-period=0
                                          at once, without waiting for the process to end")]
pub(crate) struct Options {
    /// TYPE NAME..., TYPE/NAME..., or TYPE with --all or -l
    #[arg(
        value_name = "TYPE[/NAME]",
        required_unless_present = "filename",
        conflicts_with = "filename"
    )]
    targets: Vec<String>,
    /// A file, a folder, or - for standard input, that names what to delete
    #[arg(short, long = "filename", value_name = "FILE")]
    filename: Vec<String>,
    /// Also look into folders inside folders
    #[arg(short = 'R', long)]
    recursive: bool,
    /// All objects of the type in the namespace
    #[arg(long, conflicts_with = "selector")]
    all: bool,
    #[command(flatten)]
    selectors: Selectors,
    /// What becomes of objects that belong to it
    #[arg(long, value_enum, default_value = "background", value_name = "HOW")]
    cascade: Cascade,
    /// Seconds to stop in; -1 for what the object says
    #[arg(long, value_name = "SECONDS", default_value_t = -1, allow_negative_numbers = true)]
    grace_period: i64,
    /// One second to stop in
    #[arg(long, conflicts_with_all = ["grace_period", "force"])]
    now: bool,
    /// Remove the object without waiting for its processes to end
    #[arg(long)]
    force: bool,
    /// Wait until the objects are gone
    #[arg(long, default_value_t = true, action = clap::ArgAction::Set, num_args = 0..=1,
          default_missing_value = "true", value_name = "BOOL")]
    wait: bool,
    /// How long to wait at most: 30s, 5m [default: as long as it takes]
    #[arg(long, value_name = "DURATION", value_parser = crate::logs::duration)]
    timeout: Option<i64>,
    /// Say nothing about objects that do not exist
    #[arg(long)]
    ignore_not_found: bool,
    /// Only the names: `pod/hello`
    #[arg(short, long, value_parser = ["name"], value_name = "FORMAT")]
    output: Option<String>,
    #[command(flatten)]
    connection: Connection,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Cascade {
    /// They go afterwards
    Background,
    /// They go first
    Foreground,
    /// They stay
    Orphan,
}

impl Cascade {
    fn policy(self) -> &'static str {
        match self {
            Self::Background => "Background",
            Self::Foreground => "Foreground",
            Self::Orphan => "Orphan",
        }
    }
}

/// One object to delete.
struct Doomed<'a> {
    resource: &'a Resource,
    namespace: String,
    name: String,
}

/// Deletes, says so, and waits until all are gone.
pub(crate) async fn run(options: &Options) -> Result<()> {
    if options.grace_period == 0 && !options.force {
        bail!(
            "error: --grace-period=0 leaves processes no time to stop: use --now for one second, or \
             add --force to remove the object at once"
        );
    }
    let cluster = Cluster::find(&options.connection).await?;
    let catalog = Catalog::read(&cluster).await?;
    let manifests = manifest::read(&options.filename, options.recursive)?;
    let mut doomed = named(&cluster, &catalog, options).await?;
    for manifest in &manifests {
        let wanted = options.connection.namespace.as_deref();
        let place = Place::of(&cluster, &catalog, manifest, wanted)?;
        let Place { resource, name, namespace, .. } = place;
        doomed.push(Doomed { resource, namespace, name });
    }
    if doomed.is_empty() {
        output::note("No resources found");
        return Ok(());
    }
    if options.force {
        output::note(
            "Warning: Immediate deletion does not wait for confirmation that the running resource \
             has been terminated. The resource may continue to run on the cluster indefinitely.",
        );
    }
    let mut going: Vec<(&Doomed<'_>, String)> = Vec::new();
    let mut has_failed = false;
    for object in &doomed {
        let path = object.resource.object(&object.namespace, &object.name);
        match delete(&cluster, &path, options).await {
            Ok(uid) => {
                output::line(options.said(object))?;
                going.push((object, uid));
            }
            Err(refusal) if refusal.is_not_found() && options.is_forgiving() => {}
            Err(refusal) => {
                output::note(refusal.explain(None));
                has_failed = true;
            }
        }
    }
    if options.wait && !options.force {
        let deadline = Deadline::after(options.timeout);
        for (object, uid) in &going {
            let collection = object.resource.collection(Some(&object.namespace));
            waiting::until_gone(&cluster, &collection, &object.name, uid, deadline).await?;
        }
    }
    if has_failed { Err(Ending::silent(Exit::Failed)) } else { Ok(()) }
}

impl Options {
    /// Objects chosen by a query may go away by themselves in between.
    fn is_forgiving(&self) -> bool {
        self.ignore_not_found || self.all || self.selectors.selector.is_some()
    }

    fn said(&self, object: &Doomed<'_>) -> String {
        if self.output.is_some() {
            return format!("{}/{}", object.resource.prefix(), object.name);
        }
        let how = if self.force { "force deleted" } else { "deleted" };
        let place = if object.resource.is_namespaced {
            format!(" from {} namespace", object.namespace)
        } else {
            String::new()
        };
        format!("{} {:?} {how}{place}", object.resource.prefix(), object.name)
    }

    fn body(&self) -> Value {
        let mut body = json!({
            "apiVersion": "v1", "kind": "DeleteOptions",
            "propagationPolicy": self.cascade.policy()});
        match (self.now, self.grace_period) {
            (true, _) => body["gracePeriodSeconds"] = 1.into(),
            (false, seconds) if seconds >= 0 => body["gracePeriodSeconds"] = seconds.into(),
            (false, _) if self.force => body["gracePeriodSeconds"] = 0.into(),
            (false, _) => {}
        }
        body
    }
}

async fn delete(
    cluster: &Cluster,
    path: &str,
    options: &Options,
) -> Result<String, crate::refusal::Refusal> {
    let body = options.body();
    let answer = cluster.call("DELETE", path, "application/json", Content::Json(&body)).await?;
    // Kinds that go at once answer with a Status, others with the object.
    let uid = answer["metadata"]["uid"].as_str().or_else(|| answer["details"]["uid"].as_str());
    Ok(uid.unwrap_or_default().to_owned())
}

async fn named<'a>(
    cluster: &Cluster,
    catalog: &'a Catalog,
    options: &Options,
) -> Result<Vec<Doomed<'a>>> {
    let mut doomed = Vec::new();
    if options.targets.is_empty() {
        return Ok(doomed);
    }
    for target in targets::parse(catalog, &options.targets)? {
        let resource = target.resource;
        if let Some(name) = target.name {
            doomed.push(Doomed { resource, namespace: cluster.namespace.clone(), name });
            continue;
        }
        let by_query =
            options.selectors.selector.is_some() || options.selectors.field_selector.is_some();
        if !options.all && !by_query {
            bail!("error: resource(s) were provided, but no name was specified");
        }
        let pairs = [
            ("labelSelector", options.selectors.selector.clone()),
            ("fieldSelector", options.selectors.field_selector.clone()),
        ];
        let path = resource.collection(Some(&cluster.namespace)) + &query(&pairs);
        let list = cluster.get(&path).await?;
        for item in list["items"].as_array().into_iter().flatten() {
            let name = item["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            doomed.push(Doomed { resource, namespace: cluster.namespace.clone(), name });
        }
    }
    Ok(doomed)
}
