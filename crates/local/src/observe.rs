//! Following objects of the API: every change, and every disappearance, also across broken watches.

use std::collections::HashMap;
use std::fmt::Debug;

use futures::{Stream, StreamExt};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use tokio::sync::mpsc;
use tracing::warn;

/// What happened to an object.
#[derive(Clone, Debug)]
pub enum Change<K> {
    /// It is new or has changed.
    Put(Box<K>),
    /// It no longer exists.
    Gone(ObjectKey),
    /// All objects that existed when the watch began have been told.
    Synced,
}

/// Which object.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectKey {
    /// Its namespace; empty when it has none.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
}

impl ObjectKey {
    /// The key of `object`.
    pub fn of<K: ResourceExt>(object: &K) -> Self {
        Self {
            namespace: object.namespace().unwrap_or_default(),
            name: object.name_any(),
            uid: object.uid().unwrap_or_default(),
        }
    }
}

/// Follows all objects of `api` that `config` selects, for ever, trying again when the watch
/// breaks.
pub fn follow<K>(api: Api<K>, config: watcher::Config) -> impl Stream<Item = Change<K>> + Send
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let kind = std::any::type_name::<K>().rsplit("::").next().unwrap_or_default();
    attempt(api, config).filter_map(move |change| {
        let change = change.inspect_err(|error| warn!(kind, %error, "watch failed, trying again"));
        futures::future::ready(change.ok())
    })
}

/// Like [`follow`], for those who want to give up one day: tells of each attempt that failed. A
/// watch that only ends, as servers end watches now and then, is no failure.
pub fn attempt<K>(
    api: Api<K>,
    config: watcher::Config,
) -> impl Stream<Item = Result<Change<K>, watcher::Error>> + Send
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let mut known: HashMap<(String, String), String> = HashMap::new();
    let mut listed: HashMap<(String, String), String> = HashMap::new();
    let events = watcher(api, config).default_backoff();
    events.flat_map(move |event| {
        let mut changes = Vec::new();
        match event {
            Ok(watcher::Event::Init) => listed.clear(),
            Ok(watcher::Event::InitApply(object)) => {
                put(&mut known, &mut changes, &object);
                let key = ObjectKey::of(&object);
                listed.insert((key.namespace, key.name), key.uid);
                changes.push(Change::Put(Box::new(object)));
            }
            Ok(watcher::Event::InitDone) => {
                let before = std::mem::replace(&mut known, std::mem::take(&mut listed));
                for ((namespace, name), uid) in before {
                    if !known.contains_key(&(namespace.clone(), name.clone())) {
                        changes.push(Change::Gone(ObjectKey { namespace, name, uid }));
                    }
                }
                changes.push(Change::Synced);
            }
            Ok(watcher::Event::Apply(object)) => {
                put(&mut known, &mut changes, &object);
                changes.push(Change::Put(Box::new(object)));
            }
            Ok(watcher::Event::Delete(object)) => {
                let key = ObjectKey::of(&object);
                known.remove(&(key.namespace.clone(), key.name.clone()));
                changes.push(Change::Gone(key));
            }
            Err(error) => return futures::stream::iter(vec![Err(error)]),
        }
        futures::stream::iter(changes.into_iter().map(Ok).collect::<Vec<_>>())
    })
}

/// Follows objects in a task of its own, turning each change into a message for `sender`. Ends when
/// nobody listens any more.
pub fn forward<K, M>(
    api: Api<K>,
    config: watcher::Config,
    sender: mpsc::Sender<M>,
    into: impl Fn(Change<K>) -> M + Send + 'static,
) -> tokio::task::JoinHandle<()>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
    M: Send + 'static,
{
    tokio::spawn(async move {
        let mut changes = std::pin::pin!(follow(api, config));
        while let Some(change) = changes.next().await {
            if sender.send(into(change)).await.is_err() {
                return;
            }
        }
    })
}

/// Notes an object; tells the end of another one that had its name.
fn put<K: ResourceExt>(
    known: &mut HashMap<(String, String), String>,
    changes: &mut Vec<Change<K>>,
    object: &K,
) {
    let ObjectKey { namespace, name, uid } = ObjectKey::of(object);
    let place = (namespace.clone(), name.clone());
    if let Some(old) = known.insert(place, uid.clone())
        && old != uid
    {
        changes.push(Change::Gone(ObjectKey { namespace, name, uid: old }));
    }
}
