//! `lockstep run`: manifests, a cluster of their own, and an exit code.

mod archive;
mod card;
mod causes;
mod check;
mod ends;
mod followers;
mod gang;
mod indexes;
pub(crate) mod job;
pub(crate) mod jobset;
mod launcher;
mod lines;
mod member;
mod model;
pub(crate) mod pod;
mod queue;
mod screen;
mod session;
mod stop;
mod strip;
mod style;
mod submit;
mod view;
mod watches;

use std::{collections::BTreeSet, path::PathBuf, time::Duration};

use anyhow::Result;
use lockstep_local::{
    Configuration,
    embedded::{Embedded, Killer},
};
use serde_json::{Value, json};
use tokio::time::Instant;

use self::{
    archive::Archive,
    card::Evidence,
    followers::Followers,
    gang::GangOptions,
    model::Model,
    screen::{Manner, Screen},
    session::{Session, some_of},
    style::Color,
    submit::Applied,
    watches::About,
};
use crate::{
    args::Connection,
    catalog::{escape, query},
    cluster::Cluster,
    config,
    exit::{self, Ending, Exit},
    logs,
    manifest::{self, Manifest, yaml},
    node::NodeOptions,
    output,
    signals::Signals,
    up,
};

/// How many last lines of a log a card shows.
const LAST_LINES: &str = "10";

/// What is logged unless one asks for more. What happens to the connection is told in words of our
/// own.
const LOG: &str = "error,kube_client=off,kube_runtime=off";

/// Options of `lockstep run`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
The cluster lives only as long as the run, in memory, and nothing is left behind. What the
containers write goes to stdout, everything else to stderr. The exit code is the result:
  0 everything succeeded      3 timed out
  1 something failed          4 the cluster itself failed
  2 invalid manifest        130 interrupted
Ctrl-C once suspends the jobs and ends the pods with their grace period, twice kills them. When
whoever reads stdout goes, as in `lockstep run job.yaml | head`, that counts as Ctrl-C.

With --cluster it runs on a running `lockstep up`, or wherever the kubeconfig points. Then the
objects stay, and an interrupted or timed out job stays suspended.

Examples:
  lockstep run job.yaml
  lockstep run pod.yaml config.yaml --timeout 10m
  lockstep run job.yaml --no-logs -o json > result.json
  lockstep run --workers 4 -- python train.py
  lockstep run --workers 4 --dry-run -- python train.py > job.yaml
  lockstep run --queue machine a.yaml b.yaml    each starts when all of it has room
  generate | lockstep run -")]
pub(crate) struct Options {
    /// Files or folders with JobSets, Jobs, Pods and what they need, or - for standard input
    #[arg(required_unless_present = "command", conflicts_with = "command", value_name = "FILE")]
    files: Vec<String>,
    /// Take the files of folders inside folders too
    #[arg(short = 'R', long, conflicts_with = "command")]
    recursive: bool,
    /// How long all of it may take: 30s, 5m [default: as long as it takes]
    #[arg(long, value_name = "DURATION", value_parser = logs::duration)]
    timeout: Option<i64>,
    /// Do not print what containers write
    #[arg(long)]
    no_logs: bool,
    /// Keep the logs and the final objects in this folder, which must be new or empty
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// Print the final objects as one List on stdout; logs go to stderr then
    #[arg(short, long, value_name = "FORMAT", value_enum)]
    output: Option<Format>,
    /// Say nothing on stderr but errors
    #[arg(short, long)]
    quiet: bool,
    /// When to use colours
    #[arg(long, value_name = "WHEN", value_enum, default_value = "auto")]
    color: Color,
    /// Print what would be applied, and start nothing
    #[arg(long)]
    dry_run: bool,
    /// Run on a running `lockstep up`, or on the cluster of the kubeconfig
    #[arg(long)]
    cluster: bool,
    /// Let Jobs and JobSets that name no queue wait in this LocalQueue; a cluster of the run's own
    /// has `machine`, which is as big as the machine
    #[arg(long, value_name = "NAME", value_parser = queue::name)]
    queue: Option<String>,
    /// A file with the configuration of the JobSet controller, of Kueue, or of both: features that
    /// are on, and how queues work
    #[arg(long, value_name = "FILE", value_parser = config::read, conflicts_with = "cluster")]
    config: Option<Configuration>,
    #[command(flatten)]
    gang: GangOptions,
    #[command(flatten)]
    connection: Connection,
    #[command(flatten)]
    node: NodeOptions,
    /// What to log to stderr
    #[arg(long, value_name = "FILTER", env = "LOCKSTEP_LOG", default_value = LOG)]
    log: String,
}

/// How objects are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// One JSON text
    Json,
    /// YAML
    Yaml,
}

impl Format {
    fn print(self, value: &Value) -> Result<()> {
        let text = match self {
            Self::Json => format!("{value:#}\n"),
            Self::Yaml => yaml::render(value),
        };
        Ok(output::data(text)?)
    }
}

/// Runs to the end, one way or another, and cleans up.
pub(crate) async fn run(options: &Options) -> Result<Exit> {
    let is_private = !options.cluster;
    let mut manifests = options.manifests()?;
    if let Some(queue) = &options.queue {
        queue::join(&mut manifests, queue)?;
    }
    check::check(&manifests, is_private)?;
    if options.dry_run {
        return dry_run(&manifests, options.output);
    }
    let is_kept = options.keep.is_some() || options.output.is_some();
    let archive = is_kept.then(|| Archive::new(options.keep.as_deref())).transpose();
    let archive = archive.map_err(|error| exit::or(error, Exit::Usage))?;
    up::start_logging(&options.log)?;
    if !options.quiet {
        config::warn(options.config.as_ref());
    }
    let mut signals = Signals::listen().map_err(|error| exit::or(error, Exit::Cluster))?;
    let work = Work { options, manifests: &manifests, archive, is_private };
    let result = if is_private {
        // A cluster and a run together are too much for one stack.
        Box::pin(work.run_inside(&mut signals)).await
    } else {
        let found = Cluster::find(&options.connection).await;
        // Not to be mistaken for a job that failed.
        let cluster = found.map_err(|error| Ending::error(Exit::Cluster, format!("{error:#}")))?;
        work.run(cluster, &mut signals, None).await
    };
    result.map_err(|error| exit::or(error, Exit::Cluster))
}

impl Options {
    fn manifests(&self) -> Result<Vec<Manifest>> {
        let Connection { kubeconfig, context, namespace, data_dir } = &self.connection;
        let names_cluster =
            kubeconfig.is_some() || context.is_some() || namespace.is_some() || data_dir.is_some();
        if names_cluster && !self.cluster {
            let message = "error: --kubeconfig, --context, --namespace and --data-dir are for \
                           --cluster; without it the run has a cluster of its own";
            return Err(Ending::error(Exit::Usage, message));
        }
        if !self.gang.command.is_empty() {
            return self.gang.manifests(!self.cluster);
        }
        self.gang.must_be_absent()?;
        manifest::read(&self.files, self.recursive).map_err(|error| exit::or(error, Exit::Usage))
    }
}

fn dry_run(manifests: &[Manifest], format: Option<Format>) -> Result<Exit> {
    let objects: Vec<Value> = manifests.iter().map(|it| Value::Object(it.object.clone())).collect();
    match format {
        Some(Format::Json) => {
            let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
            Format::Json.print(&list)?;
        }
        Some(Format::Yaml) | None => {
            let texts: Vec<String> = objects.iter().map(yaml::render).collect();
            output::data(texts.join("---\n"))?;
        }
    }
    Ok(Exit::Success)
}

/// What is to be run, and how.
struct Work<'a> {
    options: &'a Options,
    manifests: &'a [Manifest],
    archive: Option<Archive>,
    /// Whether the cluster is there for this only.
    is_private: bool,
}

impl Work<'_> {
    /// Runs in a cluster that is there for nothing else.
    async fn run_inside(self, signals: &mut Signals) -> Result<Exit> {
        let mut wanted = self.options.node.embedded();
        wanted.configuration = self.options.config.clone().unwrap_or_default();
        if let Some(node) = &mut wanted.node {
            // Nothing outlives a run, not even when it is killed.
            node.runtime.die_with_parent = true;
            node.allows_inherit = !self.options.gang.command.is_empty();
        }
        let embedded = Embedded::start(wanted).await.map_err(|error| {
            let error = anyhow::Error::new(error);
            Ending::error(Exit::Cluster, format!("error: cannot start: {error:#}"))
        })?;
        let cluster = Cluster::inside(embedded.client(), "default");
        let result = self.run(cluster, signals, Some(embedded.killer())).await;
        // How the run ended is decided; nothing that happens now changes it.
        let killer = embedded.killer();
        signals.or_quickly(embedded.shutdown(), killer).await;
        result
    }

    async fn run(
        self,
        cluster: Cluster,
        signals: &mut Signals,
        killer: Option<Killer>,
    ) -> Result<Exit> {
        let seconds = self.options.timeout.and_then(|seconds| u64::try_from(seconds).ok());
        // What is too far off to be told is never.
        let deadline =
            seconds.and_then(|seconds| Instant::now().checked_add(Duration::from_secs(seconds)));
        let submitted = tokio::select! {
            submitted = submit::submit(&cluster, self.manifests, self.is_private) => submitted?,
            () = signals.next() => {
                if !self.is_private {
                    output::note("interrupted while objects were made: those that are made stay");
                }
                return Ok(Exit::Interrupted);
            }
        };
        let is_private = self.is_private;
        let (format, timeout) = (self.options.output, self.options.timeout);
        let mut session = self.session(cluster, &submitted);
        let exit = session.follow(signals, deadline).await?;
        if exit == Exit::TimedOut {
            session.screen.note(&timed_out(&session.model, timeout.unwrap_or_default()));
        }
        if exit == Exit::Interrupted {
            session.screen.note(&interrupted(&session.model));
        }
        // What it was like before everything was ended is what there is to explain.
        let failed = (exit == Exit::Failed).then(|| session.model.clone());
        if is_private || matches!(exit, Exit::TimedOut | Exit::Interrupted) {
            session.stop(signals, killer).await;
        }
        session.drain().await?;
        session.settle();
        if !is_private {
            tell_what_stays(&mut session);
        }
        if let Some(failed) = failed {
            explain(&mut session, &failed).await;
        }
        report(&mut session, &submitted, format).await?;
        Ok(exit)
    }

    /// Everything that is needed to follow what was submitted.
    fn session(self, cluster: Cluster, submitted: &[Applied]) -> Session {
        let mut model = Model::new(self.is_private);
        submitted.iter().for_each(|applied| model.add(&applied.object));
        let has_prefixes = writers(&model, submitted) > 1;
        model.set_prefixes(has_prefixes);
        let namespaces = if self.is_private {
            BTreeSet::new()
        } else {
            let names = model.sets.keys().chain(model.jobs.keys()).chain(model.pods.keys());
            names.map(|(space, _)| space.clone()).collect()
        };
        let options = self.options;
        let screen = Screen::new(Manner {
            color: options.color,
            is_quiet: options.quiet,
            has_logs: !options.no_logs,
            logs_beside_data: options.output.is_some(),
        });
        let mut wanted = vec![About::Pod, About::Event];
        wanted.extend((!model.sets.is_empty()).then_some(About::JobSet));
        let has_jobs = !model.sets.is_empty() || !model.jobs.is_empty();
        wanted.extend(has_jobs.then_some(About::Job));
        // A cluster without queues has no Workloads to watch.
        let has_queues = self.is_private || submitted.iter().any(|it| queue::may_hold(&it.object));
        wanted.extend((has_jobs && has_queues).then_some(About::Workload));
        let watches = watches::watch(&cluster, &namespaces, &wanted);
        let is_raw = !has_prefixes && !screen.is_shared();
        let followers = Followers::new(cluster.clone(), is_raw, !self.is_private);
        let mut session = Session::new(cluster, model, screen, watches);
        let wants_logs = !options.no_logs || options.keep.is_some();
        session.followers = wants_logs.then_some(followers);
        session.archive = self.archive;
        session
    }
}

/// How many containers may write at the same time or one after the other.
fn writers(model: &Model, submitted: &[Applied]) -> usize {
    let of_jobs = model.jobs.values().map(|job| {
        let pods = if job.is_indexed { job.completions.unwrap_or(1) } else { job.width() };
        job.containers * pods as usize
    });
    let of_sets = model.sets.values().map(|set| {
        let groups = set.spec.replicated_jobs.iter().map(|group| {
            let job = job::Job::read(&json!({"spec": group.template.spec}));
            let pods = if job.is_indexed { job.completions.unwrap_or(1) } else { job.width() };
            job.containers * pods as usize * usize::try_from(group.replicas).unwrap_or_default()
        });
        // Where things start again, each line says in which attempt it was written.
        groups.sum::<usize>() * if set.may_restart() { 2 } else { 1 }
    });
    let lists = ["containers", "initContainers"];
    let pods = submitted.iter().filter(|applied| applied.object["kind"] == "Pod");
    let of_pods = pods.map(|pod| {
        let counts = lists.map(|list| pod.object["spec"][list].as_array().map_or(0, Vec::len));
        counts.iter().sum()
    });
    of_jobs.chain(of_sets).chain(of_pods).sum()
}

fn timed_out(model: &Model, seconds: i64) -> String {
    let mut text = format!("error: timed out after {seconds}s; not finished:");
    let lines = model.unfinished();
    for line in lines.iter().take(10) {
        text.push_str("\n  ");
        text.push_str(line);
    }
    if lines.len() > 10 {
        text.push_str("\n  ...");
    }
    text
}

fn interrupted(model: &Model) -> String {
    let names: Vec<String> = model.running().map(|pod| format!("pod/{}", pod.name)).collect();
    let grace = model.running().map(|pod| pod.grace).max().unwrap_or_default();
    if names.is_empty() {
        return "interrupted".to_owned();
    }
    let names = some_of(&names);
    format!("interrupted: ending {names}, with up to {grace}s of grace (again to kill at once)")
}

/// Says how to go on with Jobs that are suspended now and stay.
fn tell_what_stays(session: &mut Session) {
    let model = &session.model;
    let sets = model.sets.values().filter(|set| set.is_suspended() && !set.has_ended());
    let sets = sets.map(|set| {
        ("jobset", &set.name, &set.namespace, " --type=merge", model.workload_of_set(set))
    });
    let jobs = model.lone_jobs().filter(|job| job.is_suspended && !job.has_ended());
    let jobs = jobs.map(|job| ("job", &job.name, &job.namespace, "", model.workload_of_job(job)));
    let notes: Vec<String> = sets
        .chain(jobs)
        .map(|(kind, name, space, how, workload)| match workload {
            // What is in a queue is started by it, and by nobody else.
            Some(workload) => {
                let how = workload.reactivation();
                format!("{kind}/{name} stays, deactivated; go on with: {how}")
            }
            None => format!(
                "{kind}/{name} stays, suspended; go on with: kubectl patch {kind} {name} -n \
                 {space}{how} -p '{{\"spec\":{{\"suspend\":false}}}}'"
            ),
        })
        .collect();
    notes.iter().for_each(|note| session.screen.note(note));
}

/// Says why the run failed.
async fn explain(session: &mut Session, failed: &Model) {
    for container in card::containers(failed) {
        if session.tails.contains_key(&container) {
            continue;
        }
        let pairs = [("container", container.name.as_str()), ("tailLines", LAST_LINES)];
        let pairs = pairs.map(|(key, value)| (key, Some(value.to_owned())));
        let path = logs::log_path(&container.namespace, &container.pod) + &query(&pairs);
        if let Ok(text) = session.cluster.text(&path).await {
            let lines = text.lines().map(ToOwned::to_owned).collect();
            session.tails.insert(container, lines);
        }
    }
    let mut evidence =
        Evidence { tails: std::mem::take(&mut session.tails), ..Evidence::default() };
    for pod in card::pods(failed) {
        let fields = format!("involvedObject.uid={}", pod.uid);
        let path = format!("/api/v1/namespaces/{}/events", escape(&pod.namespace))
            + &query(&[("fieldSelector", Some(fields))]);
        if let Ok(list) = session.cluster.get(&path).await {
            let events = list["items"].as_array().map(Vec::as_slice).unwrap_or_default();
            evidence.causes.insert(pod.uid.clone(), causes::of(events));
        }
    }
    let paint = session.screen.paint();
    for line in card::lines(failed, &evidence, paint) {
        session.screen.note(&line);
    }
}

/// Prints and keeps the final objects, where that is wanted.
async fn report(
    session: &mut Session,
    submitted: &[Applied],
    format: Option<Format>,
) -> Result<()> {
    let Some(archive) = &session.archive else { return Ok(()) };
    let mut applied = Vec::new();
    for object in submitted {
        // What is gone is shown as it was.
        let now = session.cluster.get(&object.path).await;
        applied.push(now.unwrap_or_else(|_| object.object.clone()));
    }
    let list = archive.list(applied, &session.model);
    archive.store(&list)?;
    match format.map_or(Ok(()), |format| format.print(&list)) {
        Err(error) if output::is_closed_pipe(&error) => {
            // How the run ended still counts.
            session.screen.note("stdout is closed: the objects are not printed");
            Ok(())
        }
        printed => printed,
    }
}
