//! Watching a collection for as long as somebody looks.
//!
//! Servers end watches now and then, and forget old changes. Neither is a reason to stop: the watch
//! goes on from the last version seen, or from a new list where that version is forgotten.

use std::time::Duration;

use anyhow::Result;
use futures::{AsyncBufReadExt, TryStreamExt};
use serde_json::Value;
use tokio::time::Instant;

use crate::{
    catalog::query,
    cluster::{Cluster, Content},
    output,
    refusal::Refusal,
};

/// How long a server may be away before watching ends.
const PATIENCE: Duration = Duration::from_secs(15);

/// The shortest and the longest time between two attempts to reach it.
const PAUSE_MIN: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// What to watch.
pub(crate) struct Watching<'a> {
    /// Where.
    pub(crate) cluster: &'a Cluster,
    /// The path of the collection.
    pub(crate) path: String,
    /// What a list of the same objects is asked with.
    pub(crate) pairs: Vec<(&'static str, Option<String>)>,
    /// How objects are to be sent.
    pub(crate) accept: &'static str,
}

impl Watching<'_> {
    /// Lists what is there now.
    pub(crate) async fn list(&self) -> Result<Value, Refusal> {
        let path = self.path.clone() + &query(&self.pairs);
        self.cluster.call("GET", &path, self.accept, Content::Nothing).await
    }

    /// Hands each change since `version` to `show`, with its type, until `show` fails or the server
    /// stays away. What changed while nobody looked comes as one list with the type `LIST`.
    pub(crate) async fn run(
        &self,
        mut version: String,
        mut show: impl FnMut(&str, &Value) -> Result<()>,
    ) -> Result<()> {
        let mut reached = Instant::now();
        let mut pause = PAUSE_MIN;
        loop {
            match self.once(&mut version, &mut show).await? {
                Ended::AsUsual => {
                    reached = Instant::now();
                    pause = PAUSE_MIN;
                }
                Ended::Forgotten => {
                    let Ok(mut list) = self.list().await else { continue };
                    output::note(
                        "Warning: the server no longer has all changes since the last one shown; \
                         going on with what is there now",
                    );
                    keep_newer(&mut list, &version);
                    if let Some(listed) = list["metadata"]["resourceVersion"].as_str() {
                        listed.clone_into(&mut version);
                    }
                    show("LIST", &list)?;
                }
                Ended::Refused(refusal) => {
                    let may_pass = refusal.code() == 0 || refusal.code() >= 500;
                    if !may_pass || reached.elapsed() > PATIENCE {
                        return Err(refusal.into());
                    }
                }
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    /// One watch, until it ends.
    async fn once(
        &self,
        version: &mut String,
        show: &mut impl FnMut(&str, &Value) -> Result<()>,
    ) -> Result<Ended> {
        let mut pairs = self.pairs.clone();
        pairs.push(("resourceVersion", Some(version.clone())));
        pairs.push(("allowWatchBookmarks", Some("true".to_owned())));
        pairs.push(("watch", Some("true".to_owned())));
        let path = self.path.clone() + &query(&pairs);
        let mut lines = match self.cluster.stream(&path, self.accept).await {
            Ok(stream) => stream.lines(),
            Err(refusal) if refusal.code() == 410 => return Ok(Ended::Forgotten),
            Err(refusal) => return Ok(Ended::Refused(refusal)),
        };
        // A connection that breaks is a watch that ended.
        while let Ok(Some(line)) = lines.try_next().await {
            let Ok(change) = serde_json::from_str::<Value>(&line) else { break };
            let (kind, object) = (change["type"].as_str().unwrap_or_default(), &change["object"]);
            if kind == "ERROR" {
                if object["code"] == 410 {
                    return Ok(Ended::Forgotten);
                }
                break;
            }
            if let Some(seen) = version_of(object) {
                seen.clone_into(version);
            }
            if kind != "BOOKMARK" {
                show(kind, object)?;
            }
        }
        Ok(Ended::AsUsual)
    }
}

enum Ended {
    AsUsual,
    Forgotten,
    Refused(Refusal),
}

/// The version of an object, or of the last row of a Table.
fn version_of(object: &Value) -> Option<&str> {
    let row = object["rows"].as_array().and_then(|rows| rows.last());
    let metadata = row.map_or(&object["metadata"], |row| &row["object"]["metadata"]);
    metadata["resourceVersion"].as_str().filter(|version| !version.is_empty())
}

/// Drops what was seen before from a list or a Table.
fn keep_newer(list: &mut Value, version: &str) {
    let Ok(seen) = version.parse::<u64>() else { return };
    let is_newer = |metadata: &Value| {
        let version = metadata["resourceVersion"].as_str().and_then(|text| text.parse().ok());
        version.is_none_or(|version: u64| version > seen)
    };
    if let Some(Value::Array(items)) = list.get_mut("items") {
        items.retain(|item| is_newer(&item["metadata"]));
    }
    if let Some(Value::Array(rows)) = list.get_mut("rows") {
        rows.retain(|row| is_newer(&row["object"]["metadata"]));
    }
}

#[cfg(test)]
mod tests {
    use std::{
        collections::VecDeque,
        sync::{Arc, Mutex},
    };

    use http::{Request, Response, StatusCode};
    use kube::client::Body;
    use serde_json::json;

    use super::*;

    /// A server that gives its answers one after another, and remembers what it was asked.
    fn scripted(answers: &[(u16, String)]) -> (Cluster, Arc<Mutex<Vec<String>>>) {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let left = Arc::new(Mutex::new(answers.iter().cloned().collect::<VecDeque<_>>()));
        let notes = asked.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            notes.lock().expect("alive").push(request.uri().to_string());
            let (code, body) = left.lock().expect("alive").pop_front().unwrap_or_else(|| {
                (404, json!({"code": 404, "message": "the script is over"}).to_string())
            });
            let code = StatusCode::from_u16(code).expect("a code");
            let answer = Response::builder().status(code).body(Body::from(body.into_bytes()));
            std::future::ready(answer.map_err(std::io::Error::other))
        });
        (Cluster::inside(kube::Client::new(service, "default"), "default"), asked)
    }

    fn change(kind: &str, name: &str, version: &str) -> String {
        let object = json!({"metadata": {"name": name, "resourceVersion": version}});
        json!({"type": kind, "object": object}).to_string() + "\n"
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_goes_on_where_the_last_one_ended() {
        let gone = json!({"type": "ERROR", "object": {"code": 410}}).to_string() + "\n";
        let list = json!({"metadata": {"resourceVersion": "20"}, "items": [
            {"metadata": {"name": "old", "resourceVersion": "7"}},
            {"metadata": {"name": "new", "resourceVersion": "19"}}]});
        let (cluster, asked) = scripted(&[
            (200, change("ADDED", "a", "6") + &change("BOOKMARK", "", "7")),
            (503, json!({"code": 503, "message": "busy"}).to_string()),
            (200, gone),
            (200, list.to_string()),
            (200, change("MODIFIED", "b", "21")),
        ]);
        let watching = Watching {
            cluster: &cluster,
            path: "/api/v1/pods".to_owned(),
            pairs: vec![("labelSelector", Some("a".to_owned()))],
            accept: "application/json",
        };
        let mut shown = Vec::new();
        let ended = watching.run("5".to_owned(), |kind, object| {
            let names = object["items"].as_array().cloned().unwrap_or_else(|| vec![object.clone()]);
            let names = names.iter().map(|o| o["metadata"]["name"].to_string());
            shown.push(format!("{kind} {}", names.collect::<Vec<_>>().join(" ")));
            Ok(())
        });
        let error = ended.await.expect_err("the script is over").to_string();
        assert!(error.contains("the script is over"), "{error}");
        assert_eq!(shown, ["ADDED \"a\"", "LIST \"new\"", "MODIFIED \"b\""]);
        let asked = asked.lock().expect("alive").clone();
        let versions: Vec<&str> = asked
            .iter()
            .map(|path| path.split_once("resourceVersion=").map_or("list", |(_, rest)| rest))
            .map(|rest| rest.split('&').next().unwrap_or_default())
            .collect();
        assert_eq!(versions, ["5", "7", "7", "list", "20", "21"]);
        assert!(asked.iter().all(|path| path.contains("labelSelector=a")), "{asked:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_stays_away_ends_the_watch() {
        let busy = (503, json!({"code": 503, "message": "busy"}).to_string());
        let (cluster, asked) = scripted(&vec![busy; 1000]);
        let watching = Watching {
            cluster: &cluster,
            path: "/api/v1/pods".to_owned(),
            pairs: vec![],
            accept: "application/json",
        };
        let error = watching.run("5".to_owned(), |_, _| Ok(())).await.expect_err("busy");
        assert_eq!(crate::exit::of(&error), crate::exit::Exit::Cluster);
        let attempts = asked.lock().expect("alive").len();
        assert!((10..100).contains(&attempts), "{attempts} attempts");
    }
}
