//! Following the pods of a run until nothing can happen to them any more.

use std::{collections::BTreeMap, pin::pin, time::Duration};

use anyhow::Result;
use futures::{
    AsyncBufRead, FutureExt, StreamExt, TryStreamExt, future::BoxFuture, stream::FuturesUnordered,
};
use k8s_openapi::api::core::v1::Pod;
use kube::{Api, runtime::watcher};
use lockstep_local::observe::{self, Change};
use tokio::sync::mpsc;

use super::progress::{LogSource, Progress, State};
use crate::{
    cluster::Cluster,
    exit::{Ending, Exit},
    logs, output,
    refusal::Refusal,
};

/// How often in a row looking at the pods may fail.
const FAILURES_MAX: u32 = 3;

/// How long pods without a place wait for something to change.
const PATIENCE: Duration = Duration::from_secs(15);

/// Prints notes and logs as they come, and returns how the run ended.
pub(super) async fn follow(
    cluster: &Cluster,
    mut progress: Progress,
    is_quiet: bool,
) -> Result<Exit> {
    let pods: Api<Pod> = Api::all(cluster.client().clone());
    let mut changes = pin!(observe::attempt(pods, watcher::Config::default()));
    let mut logs = Logs::default();
    let mut failures = 0;
    loop {
        if let State::Over(exit) = progress.state() {
            logs.finish().await?;
            return Ok(exit);
        }
        let is_unplaced = progress.state() == State::Unplaced;
        tokio::select! {
            Some(change) = changes.next() => match change {
                Ok(change) => {
                    failures = 0;
                    for source in hear(&mut progress, change, is_quiet)? {
                        logs.begin(cluster, source);
                    }
                }
                Err(error) => {
                    failures += 1;
                    if failures >= FAILURES_MAX {
                        let why = anyhow::Error::new(error);
                        let message = format!("error: the cluster failed during the run: {why:#}");
                        return Err(Ending::error(Exit::Cluster, message));
                    }
                }
            },
            Some(printed) = logs.printing.next() => printed?,
            () = tokio::time::sleep(PATIENCE), if is_unplaced => return Ok(Exit::Failed),
        }
    }
}

/// Takes note of a change and returns the logs to print from now on.
fn hear(progress: &mut Progress, change: Change<Pod>, is_quiet: bool) -> Result<Vec<LogSource>> {
    match change {
        Change::Put(pod) => {
            let seen = progress.see(&serde_json::to_value(&*pod)?);
            seen.notes.iter().filter(|_| !is_quiet).for_each(output::note);
            return Ok(seen.logs);
        }
        Change::Gone(key) => progress.gone(&key.namespace, &key.name),
        Change::Synced => {}
    }
    Ok(Vec::new())
}

/// The logs that are being printed: of all containers at once, of each in order.
#[derive(Default)]
struct Logs {
    queues: BTreeMap<String, mpsc::UnboundedSender<Opened>>,
    printing: FuturesUnordered<BoxFuture<'static, Result<()>>>,
}

/// A log that is asked for, and what to put before each line.
type Opened = (BoxFuture<'static, Result<Log, Refusal>>, String);
type Log = Box<dyn AsyncBufRead + Send + Unpin>;

impl Logs {
    /// Asks for a log now, since later another run may be meant, and prints it when the earlier
    /// ones of its container are through.
    fn begin(&mut self, cluster: &Cluster, LogSource { container, path, prefix }: LogSource) {
        let cluster = cluster.clone();
        let asked = tokio::spawn(async move { cluster.stream(&path, "*/*").await });
        let opened = async move {
            match asked.await {
                Ok(log) => log.map(|log| Box::new(log) as Log),
                Err(error) => Err(Refusal::Garbled(error.to_string())),
            }
        };
        let queue = self.queues.entry(container).or_insert_with(|| {
            let (sender, receiver) = mpsc::unbounded_channel();
            self.printing.push(print(receiver).boxed());
            sender
        });
        // Whoever prints has ended when nobody reads our output any more.
        let _unread = queue.send((opened.boxed(), prefix));
    }

    /// Prints the last lines, which may still be on their way.
    async fn finish(mut self) -> Result<()> {
        self.queues.clear();
        self.printing.try_collect().await
    }
}

async fn print(mut queue: mpsc::UnboundedReceiver<Opened>) -> Result<()> {
    while let Some((opened, prefix)) = queue.recv().await {
        match opened.await {
            Ok(log) => match logs::copy(log, &prefix).await {
                // Nobody wants to read on; how the run ends still counts.
                Err(error) if output::is_closed_pipe(&error) => return Ok(()),
                copied => copied?,
            },
            // The container may be gone before its log was asked for.
            Err(refusal) => output::note(refusal.explain(None)),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    };

    use bytes::Bytes;
    use http::{Request, Response};
    use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
    use kube::{Client, client::Body};
    use serde_json::{Value, json};

    use super::*;

    fn pod(status: &Value) -> Value {
        let metadata = json!({"namespace": "default", "name": "p", "uid": "u",
            "resourceVersion": "2"});
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "status": status})
    }

    type Answer = UnsyncBoxBody<Bytes, std::io::Error>;

    fn answer(text: String) -> Answer {
        Full::from(text).map_err(|never| match never {}).boxed_unsync()
    }

    /// A cluster with one pod whose n-th watch answers with `watch(n)`.
    fn cluster(
        status: Value,
        watch: impl Fn(usize) -> Answer + Clone + Send + Sync + 'static,
    ) -> Cluster {
        let count = Arc::new(AtomicUsize::new(0));
        let service = tower::service_fn(move |request: Request<Body>| {
            let is_watch = request.uri().query().is_some_and(|query| query.contains("watch=true"));
            let body = if is_watch {
                watch(count.fetch_add(1, Ordering::Relaxed))
            } else {
                let list = json!({"apiVersion": "v1", "kind": "PodList",
                    "metadata": {"resourceVersion": "1"}, "items": [pod(&status)]});
                answer(list.to_string())
            };
            async move { Ok::<_, std::convert::Infallible>(Response::new(body)) }
        });
        Cluster::inside(Client::new(service, "default"), "default")
    }

    async fn ending(cluster: &Cluster) -> Result<Exit> {
        let progress = Progress::new(&[("default".to_owned(), "p".to_owned())], false);
        follow(cluster, progress, true).await
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_that_ends_is_begun_again() {
        let cluster = cluster(json!({"phase": "Running"}), |count| {
            if count < 5 {
                return answer(String::new());
            }
            let change = json!({"type": "MODIFIED", "object": pod(&json!({"phase": "Succeeded"}))});
            answer(format!("{change}\n"))
        });
        assert_eq!(ending(&cluster).await.unwrap(), Exit::Success);
    }

    #[tokio::test(start_paused = true)]
    async fn a_cluster_that_cannot_be_watched_has_failed() {
        let garbage = |_| answer("no JSON\n".to_owned());
        let error = ending(&cluster(json!({"phase": "Running"}), garbage)).await.unwrap_err();
        assert_eq!(crate::exit::of(&error), Exit::Cluster, "{error}");
    }

    #[tokio::test(start_paused = true)]
    async fn pods_without_a_place_are_given_up_only_when_nothing_changes() {
        let unplaced = json!({"phase": "Pending", "conditions":
            [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]});
        let silence = |_| StreamBody::new(futures::stream::pending()).boxed_unsync();
        let begun = tokio::time::Instant::now();
        assert_eq!(ending(&cluster(unplaced, silence)).await.unwrap(), Exit::Failed);
        assert!(begun.elapsed() >= PATIENCE);
    }
}
