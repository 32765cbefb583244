//! `lockstep delete`.

use anyhow::Result;
use serde_json::{Value, json};

use crate::{
    apply::DryRun,
    args::Connection,
    catalog::Catalog,
    chosen::{Choice, Chosen},
    cluster::{Cluster, Content},
    exit::{Failures, usage},
    output,
    refusal::Refusal,
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
  lockstep delete jobs --all -A --dry-run=client
                                          what would go, in all namespaces
  lockstep delete pod hello --now         with one second of grace
  lockstep delete pod hello --force --grace-period=0
                                          at once, without waiting for the process to end
  lockstep delete job train --cascade=orphan
                                          the job, but not its pods")]
pub(crate) struct Options {
    #[command(flatten)]
    choice: Choice,
    /// What becomes of objects that belong to it
    #[arg(long, value_enum, default_value = "background", value_name = "HOW", num_args = 0..=1,
          require_equals = true, default_missing_value = "background")]
    cascade: Cascade,
    /// Change nothing; `server` asks the server what it would do
    #[arg(long, value_enum, default_value = "none", num_args = 0..=1, require_equals = true,
          default_missing_value = "client")]
    dry_run: DryRun,
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
          require_equals = true, default_missing_value = "true", value_name = "BOOL")]
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
    #[value(alias = "true")]
    Background,
    /// They go first
    Foreground,
    /// They stay
    #[value(alias = "false")]
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

/// Deletes, says so, and waits until all are gone.
pub(crate) async fn run(options: &Options) -> Result<()> {
    if options.force && options.grace_period > 0 {
        return Err(usage(
            "error: --force and a --grace-period greater than 0 cannot be combined: leave out one",
        ));
    }
    let cluster = Cluster::find(&options.connection).await?;
    let catalog = Catalog::read(&cluster).await?;
    let wanted = options.connection.namespace.as_deref();
    let doomed = options.choice.resolve(&cluster, &catalog, wanted).await?;
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
    let mut going: Vec<(&Chosen<'_>, String)> = Vec::new();
    let mut failures = Failures::default();
    for object in &doomed {
        match delete(&cluster, object, options).await {
            Ok(uid) => {
                output::line(options.said(object))?;
                going.push((object, uid));
            }
            Err(refusal) if refusal.is_not_found() && options.is_forgiving() => {}
            Err(refusal) => failures.note(&refusal.into()),
        }
    }
    if options.wait && !options.force && options.dry_run == DryRun::None {
        // No time at all means all the time in the world, as for kubectl.
        let deadline = Deadline::after(options.timeout.filter(|&seconds| seconds > 0));
        for (object, uid) in &going {
            let collection = object.collection();
            waiting::until_gone(&cluster, &collection, &object.name, uid, deadline).await?;
        }
    }
    failures.end()
}

impl Options {
    /// Objects chosen by a query may go away by themselves in between.
    fn is_forgiving(&self) -> bool {
        self.ignore_not_found || self.choice.is_query()
    }

    fn said(&self, object: &Chosen<'_>) -> String {
        if self.output.is_some() {
            return format!("{}/{}", object.resource.prefix(), object.name);
        }
        let how = if self.force { "force deleted" } else { "deleted" };
        let place = if object.resource.is_namespaced {
            format!(" from {} namespace", object.namespace)
        } else {
            String::new()
        };
        let suffix = self.dry_run.suffix();
        format!("{} {:?} {how}{place}{suffix}", object.resource.prefix(), object.name)
    }

    fn body(&self) -> Value {
        let mut body = json!({
            "apiVersion": "v1", "kind": "DeleteOptions",
            "propagationPolicy": self.cascade.policy()});
        let grace = match (self.now, self.grace_period) {
            (true, _) => Some(1),
            _ if self.force => Some(0),
            // Without --force nothing is removed before its processes have ended: kubectl's rule.
            (false, 0) => Some(1),
            (false, seconds) => (seconds > 0).then_some(seconds),
        };
        if let Some(seconds) = grace {
            body["gracePeriodSeconds"] = seconds.into();
        }
        // In the body, because a server that is sent one does not look at the query.
        if let Some(dry_run) = self.dry_run.parameter() {
            body["dryRun"] = json!([dry_run]);
        }
        body
    }
}

async fn delete(
    cluster: &Cluster,
    object: &Chosen<'_>,
    options: &Options,
) -> Result<String, Refusal> {
    let path = object.path();
    if options.dry_run == DryRun::Client {
        cluster.get(&path).await?;
        return Ok(String::new());
    }
    let body = options.body();
    let answer = cluster.call("DELETE", &path, "application/json", Content::Json(&body)).await?;
    // Kinds that go at once answer with a Status, others with the object.
    let uid = answer["metadata"]["uid"].as_str().or_else(|| answer["details"]["uid"].as_str());
    Ok(uid.unwrap_or_default().to_owned())
}
