//! Following objects of the API: every change, and every disappearance, also across broken watches.

mod feed;

use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use futures::{Stream, StreamExt};
use jiff::Timestamp;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tracing::{debug, warn};

pub use feed::{Feed, Listening};

/// What happened to an object.
#[derive(Clone, Debug)]
pub enum Change<K> {
    /// A watch begins, or begins anew: all objects are told, then that they are
    /// [`Change::Synced`].
    Listing,
    /// It is new or has changed.
    Put(Arc<K>),
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
    K: Resource + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
{
    let kind = std::any::type_name::<K>().rsplit("::").next().unwrap_or_default();
    attempt(api, config).filter_map(move |change| {
        let change = change.inspect_err(|error| match is_ending(error) {
            true => debug!(kind, %error, "watch ended with its server"),
            false => warn!(kind, %error, "watch failed, trying again"),
        });
        futures::future::ready(change.ok())
    })
}

/// Whether a server in this process is on its way out: it says so, or is gone with its tasks. That
/// is how every orderly stop ends, and nothing to warn of.
fn is_ending(error: &watcher::Error) -> bool {
    let why = error.to_string();
    why.contains("the server is shutting down") || why.contains("buffer's worker closed")
}

/// Like [`follow`], for those who want to give up one day: tells of each attempt that failed. A
/// watch that only ends, as servers end watches now and then, is no failure.
pub fn attempt<K>(
    api: Api<K>,
    config: watcher::Config,
) -> impl Stream<Item = Result<Change<K>, watcher::Error>> + Send
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
{
    let mut known: HashMap<(String, String), String> = HashMap::new();
    let mut listed: HashMap<(String, String), String> = HashMap::new();
    let events = watcher(api, config).default_backoff();
    events.flat_map(move |event| {
        let mut changes = Vec::new();
        match event {
            Ok(watcher::Event::Init) => {
                listed.clear();
                changes.push(Change::Listing);
            }
            Ok(watcher::Event::InitApply(object)) => {
                put(&mut known, &mut changes, &object);
                let key = ObjectKey::of(&object);
                listed.insert((key.namespace, key.name), key.uid);
                changes.push(Change::Put(Arc::new(object)));
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
                changes.push(Change::Put(Arc::new(object)));
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

/// A watch that ends when this is dropped.
pub struct Watch(JoinHandle<()>);

impl Watch {
    /// Ends it.
    pub fn abort(self) {
        drop(self);
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Follows objects in a task of its own, turning each change into a message for `sender`.
pub fn forward<K, M>(
    api: Api<K>,
    config: watcher::Config,
    sender: mpsc::Sender<M>,
    into: impl Fn(Change<K>) -> M + Send + 'static,
) -> Watch
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
    M: Send + 'static,
{
    Watch(tokio::spawn(async move {
        let mut changes = std::pin::pin!(follow(api, config));
        while let Some(change) = changes.next().await {
            if sender.send(into(change)).await.is_err() {
                return;
            }
        }
    }))
}

/// How many messages an [`Inbox`] holds before whoever tells more has to wait.
const WAITING_MAX: usize = 4096;

/// How many messages are handed over together.
const BATCH_MAX: usize = 1024;

/// What a controller hears: the changes of everything it watches, and what its own tasks tell it,
/// in one row. The watches end when it is dropped.
pub struct Inbox<M> {
    sender: mpsc::Sender<Heard<M>>,
    receiver: mpsc::Receiver<Heard<M>>,
    batch: Vec<Heard<M>>,
    watches: Vec<Watch>,
    listening: Vec<Listening>,
    /// Of each watch, whether it has told everything there was when it began.
    synced: Vec<bool>,
}

struct Heard<M> {
    message: M,
    /// The watch that has told everything with this message.
    completes: Option<usize>,
}

impl<M: Send + 'static> Inbox<M> {
    /// An inbox into which nobody tells anything yet.
    pub fn new() -> Self {
        let (sender, receiver) = mpsc::channel(WAITING_MAX);
        Self {
            sender,
            receiver,
            batch: Vec::new(),
            watches: Vec::new(),
            listening: Vec::new(),
            synced: Vec::new(),
        }
    }

    /// Follows objects in a task of its own, turning each change into a message.
    pub fn watch<K>(
        &mut self,
        api: Api<K>,
        config: watcher::Config,
        into: impl Fn(Change<K>) -> M + Send + 'static,
    ) where
        K: Resource + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
    {
        let note = self.completing(into);
        self.watches.push(forward(api, config, self.sender.clone(), note));
    }

    /// Listens to a watch that others listen to as well, turning each change of what `wants`
    /// selects into a message.
    pub fn listen<K>(
        &mut self,
        feed: &Feed<K>,
        wants: impl Fn(&K) -> bool + Send + 'static,
        into: impl Fn(Change<K>) -> M + Send + 'static,
    ) where
        K: Resource + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
    {
        let note = self.completing(into);
        self.listening.push(feed.forward(wants, self.sender.clone(), note));
    }

    /// Makes messages of the changes of one more source, and notes when it has told everything.
    fn completing<K>(
        &mut self,
        into: impl Fn(Change<K>) -> M + Send + 'static,
    ) -> impl Fn(Change<K>) -> Heard<M> + Send + 'static {
        let index = self.synced.len();
        self.synced.push(false);
        move |change| {
            let completes = matches!(change, Change::Synced).then_some(index);
            Heard { message: into(change), completes }
        }
    }

    /// What a task of the controller tells it through.
    pub fn teller(&self) -> Teller<M> {
        Teller(self.sender.clone())
    }

    /// Whether every watch has told everything there was when it began. One that begins anew does
    /// not count for another.
    pub fn is_synced(&self) -> bool {
        self.synced.iter().all(|is_synced| *is_synced)
    }

    /// Waits until something is heard or `due` has come, and returns what was heard, in order.
    /// Nothing is lost when the waiting is given up.
    pub async fn next(&mut self, due: Option<Timestamp>) -> Vec<M> {
        let wait = due
            .map(|at| Duration::try_from(at.duration_since(Timestamp::now())).unwrap_or_default());
        tokio::select! {
            _ = self.receiver.recv_many(&mut self.batch, BATCH_MAX) => {}
            () = tokio::time::sleep(wait.unwrap_or_default()), if wait.is_some() => {}
        }
        let mut messages = Vec::with_capacity(self.batch.len());
        for heard in self.batch.drain(..) {
            if let Some(index) = heard.completes {
                self.synced[index] = true;
            }
            messages.push(heard.message);
        }
        messages
    }
}

impl<M: Send + 'static> Default for Inbox<M> {
    fn default() -> Self {
        Self::new()
    }
}

/// Tells something to the owner of an [`Inbox`].
pub struct Teller<M>(mpsc::Sender<Heard<M>>);

impl<M> Teller<M> {
    /// Tells it, unless the owner has ended.
    pub async fn tell(&self, message: M) {
        let _nobody_hears = self.0.send(Heard { message, completes: None }).await;
    }
}

impl<M> Clone for Teller<M> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    use http::{Request, Response};
    use k8s_openapi::api::core::v1::{Node, Pod};
    use kube::Client;
    use kube::client::Body;

    use super::*;

    /// A server whose pods are listed at once and whose nodes never are; counts requests.
    fn client(count: &Arc<AtomicUsize>) -> Client {
        let count = Arc::clone(count);
        let has_begun = Arc::new(AtomicBool::new(false));
        let service = tower::service_fn(move |request: Request<Body>| {
            count.fetch_add(1, Ordering::Relaxed);
            let (path, query) = (request.uri().path(), request.uri().query().unwrap_or_default());
            let is_expired =
                query.contains("watch=true") && !has_begun.swap(true, Ordering::Relaxed);
            let answer = if path.ends_with("/nodes") {
                None
            } else if is_expired {
                Some(r#"{"type":"ERROR","object":{"code":410,"reason":"Expired"}}"#)
            } else if query.contains("watch=true") {
                Some("")
            } else {
                Some(
                    r#"{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[]}"#,
                )
            };
            async move {
                match answer {
                    Some(text) => Ok(Response::new(Body::from(text.as_bytes().to_vec()))),
                    None => std::future::pending::<Result<_, std::convert::Infallible>>().await,
                }
            }
        });
        Client::new(service, "default")
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_that_begins_anew_does_not_count_for_another() {
        let count = Arc::default();
        let client = client(&count);
        let mut inbox = Inbox::new();
        let config = watcher::Config::default;
        inbox.watch(Api::<Pod>::all(client.clone()), config(), |change| {
            matches!(change, Change::Synced)
        });
        inbox.watch(Api::<Node>::all(client), config(), |_| false);
        let mut synced = 0;
        while synced < 2 {
            synced += inbox.next(None).await.into_iter().filter(|is_synced| *is_synced).count();
        }
        assert!(!inbox.is_synced(), "the nodes were never listed");
    }

    #[tokio::test(start_paused = true)]
    async fn watches_end_with_whoever_listens() {
        let count = Arc::default();
        let mut inbox = Inbox::new();
        inbox.watch(Api::<Pod>::all(client(&count)), watcher::Config::default(), drop);
        inbox.next(None).await;
        drop(inbox);
        tokio::task::yield_now().await;
        let before = count.load(Ordering::Relaxed);
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert_eq!(count.load(Ordering::Relaxed), before);
    }
}
