//! Many writers at once, and what they were promised.

use std::{
    collections::BTreeMap,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use anyhow::{Context, Result};
use futures::TryStreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client, Config, ResourceExt,
    api::{ListParams, ObjectMeta, Patch, PatchParams, PostParams, WatchEvent, WatchParams},
    config::{KubeConfigOptions, Kubeconfig},
};

/// How many write at once.
const WRITERS: usize = 64;

/// The last acknowledged state of one object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Written {
    /// The resourceVersion of the answer.
    pub(super) version: u64,
    /// The value written.
    pub(super) value: u64,
}

/// What came of a round of writing.
#[derive(Debug, Default)]
pub(super) struct Load {
    /// Acknowledged writes by object.
    pub(super) written: BTreeMap<String, Written>,
    /// The highest version seen in an answer.
    pub(super) highest: u64,
    /// The version a watcher had seen last.
    pub(super) watched: u64,
}

/// What the server has.
#[derive(Debug)]
pub(super) struct Found {
    /// All objects of the writers.
    pub(super) objects: BTreeMap<String, Written>,
    /// The version of the list.
    pub(super) version: u64,
}

/// Whether a watcher was treated honestly.
#[derive(Debug)]
pub(super) struct Resumed {
    /// It saw events in order, or 410.
    pub(super) is_honest: bool,
    /// What it saw instead.
    pub(super) what: String,
}

/// Lets all writers write for `lasts`, then calls `kill` and collects what was acknowledged.
pub(super) async fn load(
    kubeconfig: &Path,
    round: usize,
    lasts: Duration,
    kill: impl FnOnce() -> Result<()>,
) -> Result<Load> {
    let client = client(kubeconfig).await?;
    let is_over = Arc::new(AtomicBool::new(false));
    let watcher = tokio::spawn(watch(configs(&client)));
    let writers: Vec<_> = (0..WRITERS)
        .map(|nth| {
            let is_over = Arc::clone(&is_over);
            tokio::spawn(write(configs(&client), format!("r{round}-w{nth}"), is_over))
        })
        .collect();
    tokio::time::sleep(lasts).await;
    kill()?;
    is_over.store(true, Ordering::Relaxed);
    let mut load = Load::default();
    for writer in writers {
        load.written.extend(writer.await?);
    }
    load.highest = load.written.values().map(|written| written.version).max().unwrap_or_default();
    load.watched = tokio::time::timeout(Duration::from_secs(10), watcher)
        .await
        .context("the watch hangs")??;
    Ok(load)
}

/// Reads everything the writers ever wrote.
pub(super) async fn read_back(kubeconfig: &Path) -> Result<Found> {
    let list = configs(&client(kubeconfig).await?).list(&ListParams::default()).await?;
    let version = list.metadata.resource_version.unwrap_or_default().parse()?;
    let objects = list.items.iter().map(|config| (config.name_any(), written(config))).collect();
    Ok(Found { objects, version })
}

/// Goes on with a watch from a version seen before the kill.
pub(super) async fn resume(kubeconfig: &Path, from: u64) -> Result<Resumed> {
    let api = configs(&client(kubeconfig).await?);
    let params = WatchParams::default().timeout(1);
    let events = match api.watch(&params, &from.to_string()).await {
        Ok(events) => events.try_collect::<Vec<_>>().await,
        Err(error) => Err(error),
    };
    let honest = |what: &str| Resumed { is_honest: true, what: what.to_owned() };
    let lie = |what: String| Resumed { is_honest: false, what };
    match events {
        Err(kube::Error::Api(status)) if status.code == 410 => Ok(honest("410")),
        Err(error) => Ok(lie(error.to_string())),
        Ok(events) => {
            let mut last = from;
            for event in events {
                let version = match event {
                    WatchEvent::Added(config)
                    | WatchEvent::Modified(config)
                    | WatchEvent::Deleted(config) => written(&config).version,
                    WatchEvent::Error(status) if status.code == 410 => return Ok(honest("410")),
                    WatchEvent::Error(status) => return Ok(lie(status.message.clone())),
                    WatchEvent::Bookmark(_) => continue,
                };
                if version <= last {
                    return Ok(lie(format!("version {version} after {last}")));
                }
                last = version;
            }
            Ok(honest("resumed"))
        }
    }
}

async fn write(
    api: Api<ConfigMap>,
    prefix: String,
    is_over: Arc<AtomicBool>,
) -> BTreeMap<String, Written> {
    let mut acknowledged = BTreeMap::new();
    let mut count: u64 = 0;
    while !is_over.load(Ordering::Relaxed) {
        count += 1;
        // Every fifth object is new, the others change one that is there.
        let name = format!("{prefix}-{}", count / 5);
        let data = BTreeMap::from([
            ("value".to_owned(), count.to_string()),
            ("padding".to_owned(), "x".repeat(500)),
        ]);
        let answer = if count.is_multiple_of(5) || count < 5 && count == 1 {
            let metadata = ObjectMeta { name: Some(name.clone()), ..ObjectMeta::default() };
            let config = ConfigMap { metadata, data: Some(data), ..ConfigMap::default() };
            api.create(&PostParams::default(), &config).await
        } else {
            let patch = serde_json::json!({"data": data});
            api.patch(&name, &PatchParams::default(), &Patch::Merge(patch)).await
        };
        match answer {
            Ok(config) => drop(acknowledged.insert(name, written(&config))),
            // Whatever was not acknowledged was not promised.
            Err(_) if is_over.load(Ordering::Relaxed) => break,
            Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
        }
    }
    acknowledged
}

/// Watches until the connection breaks and returns the last version seen.
async fn watch(api: Api<ConfigMap>) -> u64 {
    let mut last = 0;
    let Ok(list) = api.list(&ListParams::default()).await else { return last };
    let from = list.metadata.resource_version.unwrap_or_default();
    last = from.parse().unwrap_or_default();
    let Ok(events) = api.watch(&WatchParams::default(), &from).await else { return last };
    let mut events = Box::pin(events);
    while let Ok(Some(event)) = events.try_next().await {
        if let WatchEvent::Added(config) | WatchEvent::Modified(config) = event {
            last = written(&config).version;
        }
    }
    last
}

fn written(config: &ConfigMap) -> Written {
    let version = config.resource_version().unwrap_or_default().parse().unwrap_or_default();
    let value = config.data.as_ref().and_then(|data| data.get("value"));
    Written { version, value: value.and_then(|text| text.parse().ok()).unwrap_or_default() }
}

fn configs(client: &Client) -> Api<ConfigMap> {
    Api::namespaced(client.clone(), "default")
}

async fn client(kubeconfig: &Path) -> Result<Client> {
    let kubeconfig = Kubeconfig::read_from(kubeconfig)?;
    let mut config =
        Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    config.connect_timeout = Some(Duration::from_secs(2));
    Ok(Client::try_from(config)?)
}
