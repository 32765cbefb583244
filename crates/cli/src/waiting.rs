//! Waiting for one object to become something else, by watching it.

use std::{
    future::Future,
    time::{Duration, Instant},
};

use anyhow::Result;
use futures::{AsyncBufReadExt, TryStreamExt};
use serde_json::Value;

use crate::{
    catalog::{escape, query},
    cluster::Cluster,
    exit::{Ending, Exit},
};

/// When waiting ends, if ever.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline(Option<Instant>);

impl Deadline {
    /// So many seconds from now; never when there is no number.
    pub(crate) fn after(seconds: Option<i64>) -> Self {
        let seconds = seconds.and_then(|seconds| u64::try_from(seconds).ok());
        Self(seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds)))
    }

    /// Waits for `work`; an error that says `what` timed out when the time is up first.
    pub(crate) async fn limit<T>(
        self,
        what: &str,
        work: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        match self.0 {
            None => work.await,
            Some(at) => match tokio::time::timeout_at(at.into(), work).await {
                Ok(done) => done,
                Err(_) => {
                    let message = format!("error: timed out waiting for {what}");
                    Err(Ending::error(Exit::TimedOut, message))
                }
            },
        }
    }
}

/// Waits until the object `name` with `uid` is gone. One of the same name that was made since does
/// not count as the same object.
pub(crate) async fn until_gone(
    cluster: &Cluster,
    collection: &str,
    name: &str,
    uid: &str,
    deadline: Deadline,
) -> Result<()> {
    let is_gone = |object: Option<&Value>| {
        object.is_none_or(|object| !uid.is_empty() && object["metadata"]["uid"] != uid)
    };
    let watching = until(cluster, collection, name, is_gone);
    deadline.limit(&format!("{name:?} to be deleted"), watching).await?;
    Ok(())
}

/// Watches one object until `is_done` holds for it (`None`: it does not exist) and returns it.
pub(crate) async fn until(
    cluster: &Cluster,
    collection: &str,
    name: &str,
    mut is_done: impl FnMut(Option<&Value>) -> bool,
) -> Result<Option<Value>> {
    loop {
        let current = match cluster.get(&format!("{collection}/{}", escape(name))).await {
            Ok(object) => Some(object),
            Err(refusal) if refusal.is_not_found() => None,
            Err(refusal) => return Err(refusal.into()),
        };
        if is_done(current.as_ref()) {
            return Ok(current);
        }
        let from = current.as_ref().and_then(|o| o["metadata"]["resourceVersion"].as_str());
        let path = collection.to_owned()
            + &query(&[
                ("fieldSelector", Some(format!("metadata.name={name}"))),
                ("resourceVersion", from.map(ToOwned::to_owned)),
                ("watch", Some("true".to_owned())),
            ]);
        let mut lines = cluster.stream(&path, "application/json").await?.lines();
        // A watch may end at any time, and does when its history is gone: look again from the
        // start.
        while let Ok(Some(line)) = lines.try_next().await {
            let change: Value = serde_json::from_str(&line)?;
            let object = Some(&change["object"]);
            match change["type"].as_str() {
                Some("DELETED") if is_done(None) => return Ok(None),
                Some("ADDED" | "MODIFIED") if is_done(object) => return Ok(object.cloned()),
                Some("ERROR") => break,
                _ => {}
            }
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
