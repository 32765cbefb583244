//! `lockstep logs`: what containers wrote.

use anyhow::{Result, anyhow};
use futures::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt, StreamExt, stream::FuturesUnordered};
use lockstep_api::{jobset, labels::jobset::JOBSET_NAME};
use serde_json::Value;

use crate::{
    args::Connection,
    catalog::{Catalog, escape, query},
    cluster::Cluster,
    exit::{Ending, Exit, usage},
    output, refusal, targets,
};

/// Options of `lockstep logs`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  lockstep logs hello                     everything the pod wrote
  lockstep logs -f hello -c worker        follow one container
  lockstep logs hello worker              the same container, by place
  lockstep logs hello --all-containers --prefix
  lockstep logs hello --previous          the run before the last restart
  lockstep logs -l app=train --tail=5     the last lines of every pod with a label
  lockstep logs job/train                 a pod of a job
  lockstep logs job/train --all-pods -f   all pods of a job, as they write
  lockstep logs jobset/train --all-pods   all pods of a JobSet")]
pub(crate) struct Options {
    /// A pod, or TYPE/NAME of something that has pods
    #[arg(value_name = "POD | TYPE/NAME", required_unless_present = "selector")]
    target: Option<String>,
    /// Which container
    #[arg(value_name = "CONTAINER", conflicts_with = "container")]
    container_word: Option<String>,
    /// Which container
    #[arg(short, long, value_name = "NAME", conflicts_with = "all_containers")]
    container: Option<String>,
    /// All containers, init containers too
    #[arg(long)]
    all_containers: bool,
    /// All pods of TYPE/NAME, each line with its pod and container before it
    #[arg(long, conflicts_with = "selector")]
    all_pods: bool,
    /// The pods whose labels match
    #[arg(short = 'l', long, value_name = "QUERY", conflicts_with = "target")]
    selector: Option<String>,
    /// Go on as more is written
    #[arg(short, long)]
    follow: bool,
    /// The run before the last restart
    #[arg(short, long)]
    previous: bool,
    /// Only so many lines from the end; -1 for all [default: all, or 10 with --selector]
    #[arg(long, value_name = "LINES", allow_negative_numbers = true)]
    tail: Option<i64>,
    /// Only what is newer than this: 5s, 2m, 3h
    #[arg(long, value_name = "DURATION", value_parser = duration, conflicts_with = "since_time")]
    since: Option<i64>,
    /// Only what is newer than this moment (RFC 3339)
    #[arg(long, value_name = "TIME")]
    since_time: Option<jiff::Timestamp>,
    /// Put the time before each line
    #[arg(long)]
    timestamps: bool,
    /// Stop after so many bytes
    #[arg(long, value_name = "BYTES")]
    limit_bytes: Option<u64>,
    /// Put pod and container before each line
    #[arg(long)]
    prefix: bool,
    #[command(flatten)]
    connection: Connection,
}

/// A log to read.
struct Source {
    path: String,
    prefix: String,
}

/// Prints the logs, one source after another, or all at once when following.
pub(crate) async fn run(options: &Options) -> Result<()> {
    let cluster = Cluster::find(&options.connection).await?;
    let pods = pods(&cluster, options).await?;
    let mut sources = Vec::new();
    for pod in &pods {
        for container in containers(pod, options)? {
            sources.push(options.source(pod, &container));
        }
    }
    if !options.follow {
        for source in &sources {
            print(&cluster, source).await?;
        }
        return Ok(());
    }
    let mut followed: FuturesUnordered<_> =
        sources.iter().map(|source| print(&cluster, source)).collect();
    while let Some(done) = followed.next().await {
        done?;
    }
    Ok(())
}

impl Options {
    fn source(&self, pod: &Value, container: &str) -> Source {
        let metadata = |field: &str| pod["metadata"][field].as_str().unwrap_or_default();
        let (name, namespace) = (metadata("name"), metadata("namespace"));
        let flag = |is_set: bool| is_set.then(|| "true".to_owned());
        let tail =
            self.tail.or_else(|| self.selector.is_some().then_some(10)).filter(|&lines| lines >= 0);
        let parameters = query(&[
            ("container", Some(container.to_owned())),
            ("follow", flag(self.follow)),
            ("previous", flag(self.previous)),
            ("timestamps", flag(self.timestamps)),
            ("tailLines", tail.map(|lines| lines.to_string())),
            ("sinceSeconds", self.since.map(|seconds| seconds.to_string())),
            ("sinceTime", self.since_time.map(|moment| moment.to_string())),
            ("limitBytes", self.limit_bytes.map(|bytes| bytes.to_string())),
        ]);
        let has_prefix = self.prefix || self.all_pods;
        let prefix = if has_prefix { format!("[pod/{name}/{container}] ") } else { String::new() };
        Source { path: log_path(namespace, name) + &parameters, prefix }
    }
}

/// The path of a pod's log.
pub(crate) fn log_path(namespace: &str, pod: &str) -> String {
    format!("/api/v1/namespaces/{}/pods/{}/log", escape(namespace), escape(pod))
}

async fn print(cluster: &Cluster, source: &Source) -> Result<()> {
    copy(cluster.stream(&source.path, "*/*").await?, &source.prefix).await
}

/// Copies a log to stdout as it comes, `prefix` before each line.
pub(crate) async fn copy(mut log: impl AsyncBufRead + Unpin, prefix: &str) -> Result<()> {
    if prefix.is_empty() {
        let mut chunk = vec![0; 64 * 1024];
        loop {
            match log.read(&mut chunk).await.map_err(|error| broken(&error))? {
                0 => return Ok(()),
                read => output::data(&chunk[..read])?,
            }
        }
    }
    let mut line = prefix.as_bytes().to_vec();
    while log.read_until(b'\n', &mut line).await.map_err(|error| broken(&error))? > 0 {
        if line.last() != Some(&b'\n') {
            line.push(b'\n');
        }
        output::data(&line)?;
        line.truncate(prefix.len());
    }
    Ok(())
}

/// The end of a log before its end.
fn broken(error: &std::io::Error) -> anyhow::Error {
    let message = format!("error: the log ended too early: {}", refusal::innermost(error));
    Ending::error(Exit::Cluster, message)
}

async fn pods(cluster: &Cluster, options: &Options) -> Result<Vec<Value>> {
    let target = match (&options.selector, &options.target) {
        (Some(selector), _) => return list(cluster, selector).await,
        (None, Some(target)) => target,
        (None, None) => {
            return Err(usage("error: expected 'logs (POD | TYPE/NAME) [-c CONTAINER]'"));
        }
    };
    let name = match target.split_once('/') {
        None => target,
        Some(("pod" | "pods" | "po", name)) => name,
        Some(_) => return owned(cluster, target, options.all_pods).await,
    };
    let path = format!("/api/v1/namespaces/{}/pods/{}", escape(&cluster.namespace), escape(name));
    Ok(vec![cluster.get(&path).await?])
}

/// The pods of something that selects pods by label, or only the one whose log says most.
async fn owned(cluster: &Cluster, target: &str, wants_all: bool) -> Result<Vec<Value>> {
    let catalog = Catalog::read(cluster).await?;
    let target = targets::one(&catalog, target)?;
    let name = target.name.clone().unwrap_or_default();
    let object = cluster.get(&target.resource.object(&cluster.namespace, &name)).await?;
    let pairs = labels(&object);
    if pairs.is_empty() {
        let message = format!(
            "error: {}/{name} does not say which pods are its own: name a pod, or use -l",
            target.resource.prefix()
        );
        return Err(Ending::error(Exit::Failed, message));
    }
    let mut pods = list(cluster, &pairs.join(",")).await?;
    pods.sort_by_cached_key(usefulness);
    if pods.len() > 1 && !wants_all {
        let found = pods.len();
        pods.truncate(1);
        let chosen = pods[0]["metadata"]["name"].as_str().unwrap_or_default();
        output::note(format!("Found {found} pods, using pod/{chosen}"));
    }
    Ok(pods)
}

/// The labels of the pods of `object`, each as `key=value`. JobSets do not spell them out.
fn labels(object: &Value) -> Vec<String> {
    if object["kind"] == jobset::KIND && object["apiVersion"] == jobset::API_VERSION {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        return vec![format!("{JOBSET_NAME}={name}")];
    }
    let selector = &object["spec"]["selector"];
    let labels = selector.get("matchLabels").unwrap_or(selector).as_object();
    let pairs = labels.into_iter().flatten();
    pairs.filter_map(|(key, value)| Some(format!("{key}={}", value.as_str()?))).collect()
}

/// Pods in the order in which their logs are of interest: those that run, those that are ready,
/// those that were restarted, the oldest.
fn usefulness(pod: &Value) -> (u8, bool, i64, String) {
    let status = &pod["status"];
    let phase = match status["phase"].as_str() {
        Some("Pending") | None => 2,
        Some("Unknown") => 1,
        Some(_) => 0,
    };
    let conditions = status["conditions"].as_array().into_iter().flatten();
    let is_ready = conditions.into_iter().any(|c| c["type"] == "Ready" && c["status"] == "True");
    let containers = status["containerStatuses"].as_array().into_iter().flatten();
    let restarts: i64 = containers.filter_map(|c| c["restartCount"].as_i64()).sum();
    let created = pod["metadata"]["creationTimestamp"].as_str().unwrap_or_default().to_owned();
    (phase, !is_ready, -restarts, created)
}

async fn list(cluster: &Cluster, selector: &str) -> Result<Vec<Value>> {
    let path = format!(
        "/api/v1/namespaces/{}/pods{}",
        escape(&cluster.namespace),
        query(&[("labelSelector", Some(selector.to_owned()))])
    );
    let answer = cluster.get(&path).await?;
    let pods = answer["items"].as_array().cloned().unwrap_or_default();
    if pods.is_empty() {
        output::note(format!("No resources found in {} namespace.", cluster.namespace));
        return Err(Ending::silent(Exit::Success));
    }
    Ok(pods)
}

/// The containers to read: the one named, all, or the one a reader most likely means.
fn containers(pod: &Value, options: &Options) -> Result<Vec<String>> {
    let named = |field: &str| -> Vec<String> {
        let list = pod["spec"][field].as_array().into_iter().flatten();
        list.filter_map(|c| c["name"].as_str().map(ToOwned::to_owned)).collect()
    };
    let regular = named("containers");
    let mut all = regular.clone();
    all.extend(named("initContainers").into_iter().map(|name| format!("{name} (init)")));
    if let Some(container) = options.container.as_ref().or(options.container_word.as_ref()) {
        let is_there = regular.contains(container) || named("initContainers").contains(container);
        if !is_there {
            let pod = pod["metadata"]["name"].as_str().unwrap_or_default();
            return Err(usage(format!(
                "error: container {container} is not valid for pod {pod} out of: {}",
                all.join(", ")
            )));
        }
        return Ok(vec![container.clone()]);
    }
    if options.all_containers {
        let mut all = named("initContainers");
        all.extend(regular);
        return Ok(all);
    }
    let default =
        pod["metadata"]["annotations"]["kubectl.kubernetes.io/default-container"].as_str();
    if let Some(default) = default.filter(|name| regular.iter().any(|known| known == name)) {
        return Ok(vec![default.to_owned()]);
    }
    let first = regular.first().ok_or_else(|| anyhow!("error: the pod has no containers"))?;
    if all.len() > 1 && !options.all_pods {
        output::note(format!("Defaulted container {first:?} out of: {}", all.join(", ")));
    }
    Ok(vec![first.clone()])
}

/// Whole seconds of a duration such as `90s`, `2m` or `1h30m`, rounded up.
pub(crate) fn duration(text: &str) -> Result<i64, String> {
    let parsed: jiff::SignedDuration = text
        .parse()
        .map_err(|_| format!("{text:?} is no duration; one looks like 5s, 2m or 1h30m"))?;
    if parsed.is_negative() {
        return Err("a duration must not be negative".to_owned());
    }
    Ok(parsed.as_secs().saturating_add(i64::from(parsed.subsec_nanos() > 0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_people_write_them() {
        for (text, want) in [
            ("5s", Some(5)),
            ("2m", Some(120)),
            ("1h30m", Some(5400)),
            ("1500ms", Some(2)),
            ("-1s", None),
            ("x", None),
        ] {
            assert_eq!(duration(text).ok(), want, "{text}");
        }
    }
}
