//! Clients that watch while others write.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use futures::{AsyncBufRead, AsyncBufReadExt, TryStreamExt, future::try_join_all};
use http::Request;
use kube::Client;
use serde::Deserialize;
use tokio::time::timeout;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// How many clients watch.
const WATCHES: usize = 200;

/// How many objects are made, and how many clients make them.
const OBJECTS: usize = 1_000;
const WRITERS: usize = 16;

/// How long a watch may be without an event that is to come.
const PATIENCE: Duration = Duration::from_secs(60);

/// What is read of an object.
#[derive(Deserialize)]
struct Object {
    metadata: Metadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    resource_version: String,
}

impl Object {
    fn version(&self) -> Result<u64> {
        let version = &self.metadata.resource_version;
        version.parse().with_context(|| format!("{version:?} is no version"))
    }
}

/// What is read of an event.
#[derive(Deserialize)]
struct Event {
    #[serde(rename = "type")]
    kind: String,
    object: Object,
}

/// Watches, writes, and compares what was seen with what was written. What it took is returned.
pub(super) async fn run(client: &Client) -> Result<String> {
    let list = client.request_text(Request::get(MAPS).body(Vec::new())?).await?;
    let since = serde_json::from_str::<Object>(&list)?.version()?;
    let watch = || async move {
        let uri = format!("{MAPS}?watch=true&resourceVersion={since}");
        anyhow::Ok(client.request_stream(Request::get(uri).body(Vec::new())?).await?)
    };
    let streams = try_join_all((0..WATCHES).map(|_| watch())).await?;
    let watching: Vec<_> = streams.into_iter().map(|stream| tokio::spawn(follow(stream))).collect();
    let began = Instant::now();
    let next = Arc::new(AtomicUsize::new(0));
    let writing: Vec<_> =
        (0..WRITERS).map(|_| tokio::spawn(write(client.clone(), Arc::clone(&next)))).collect();
    let (mut versions, mut took) = (Vec::new(), Vec::new());
    for writer in writing {
        for (version, time) in writer.await?? {
            versions.push(version);
            took.push(time);
        }
    }
    let written = began.elapsed();
    versions.sort_unstable();
    for (number, watch) in watching.into_iter().enumerate() {
        let seen = watch.await?.with_context(|| format!("watch {number}"))?;
        compare(&seen, &versions).with_context(|| format!("watch {number}"))?;
    }
    let seen = began.elapsed();
    took.sort_unstable();
    let (median, worst) = (took[took.len() / 2], took[took.len() * 99 / 100]);
    Ok(format!(
        "{OBJECTS} creates by {WRITERS} clients in {written:.1?}: half of them within {median:.1?}, \
         99 % within {worst:.1?}; {WATCHES} watches had all of them after {seen:.1?}"
    ))
}

/// Makes objects, as long as there are any to make: their versions, and how long each took.
async fn write(client: Client, next: Arc<AtomicUsize>) -> Result<Vec<(u64, Duration)>> {
    let mut made = Vec::new();
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        if number >= OBJECTS {
            return Ok(made);
        }
        let body =
            format!(r#"{{"metadata":{{"name":"many-{number}"}},"data":{{"n":"{number}"}}}}"#);
        let request = Request::post(MAPS).header("content-type", "application/json");
        let began = Instant::now();
        let text = client.request_text(request.body(body.into_bytes())?).await?;
        made.push((serde_json::from_str::<Object>(&text)?.version()?, began.elapsed()));
    }
}

/// Reads a watch until it has an event for each object.
async fn follow(stream: impl AsyncBufRead) -> Result<Vec<u64>> {
    let mut lines = Box::pin(stream.lines());
    let mut seen = Vec::new();
    while seen.len() < OBJECTS {
        let line = timeout(PATIENCE, lines.try_next()).await;
        let line =
            line.map_err(|_| anyhow::anyhow!("nothing comes after {} events", seen.len()))?;
        let line = line?.with_context(|| format!("it ended after {} events", seen.len()))?;
        let event: Event =
            serde_json::from_str(&line).with_context(|| format!("{line:?} is no event"))?;
        ensure!(event.kind == "ADDED", "{line}");
        seen.push(event.object.version()?);
    }
    Ok(seen)
}

/// That all versions were seen, each once, in order.
fn compare(seen: &[u64], written: &[u64]) -> Result<()> {
    if let Some(pair) = seen.windows(2).find(|pair| pair[0] >= pair[1]) {
        bail!("{} came after {}", pair[1], pair[0]);
    }
    let missing = written.iter().find(|version| seen.binary_search(version).is_err());
    match missing {
        Some(version) => bail!("{version} is missing"),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_or_out_of_order_is_found() {
        let said = |seen: &[u64]| compare(seen, &[3, 5, 9]).err().map(|error| error.to_string());
        assert_eq!(said(&[3, 5, 9]), None);
        assert_eq!(said(&[3, 9]).as_deref(), Some("5 is missing"));
        assert_eq!(said(&[3, 9, 5]).as_deref(), Some("5 came after 9"));
        assert_eq!(said(&[3, 5, 5, 9]).as_deref(), Some("5 came after 5"));
    }
}
