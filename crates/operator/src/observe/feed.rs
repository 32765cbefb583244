//! One watch, heard by many: what a change costs to fetch and decode is paid once per process.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::sync::Arc;

use futures::StreamExt;
use futures::future::BoxFuture;
use kube::runtime::watcher;
use kube::{Api, Resource};
use serde::de::DeserializeOwned;
use tokio::sync::mpsc;
use tokio::task::coop::unconstrained;

use super::{Change, ObjectKey, Watch, follow};

/// All objects of a kind, followed once. Clones share the watch; it ends with the last of them and
/// the last of its listeners' [`Listening`].
pub struct Feed<K> {
    joining: mpsc::UnboundedSender<Listener<K>>,
    watch: Arc<Watch>,
}

/// Keeps a [`Feed`] going for a listener.
pub struct Listening(#[expect(dead_code, reason = "held, not read")] Arc<Watch>);

/// Hands a change over; false when nobody hears it any more.
type Deliver<K> = Box<dyn FnMut(Change<K>) -> BoxFuture<'static, bool> + Send>;

struct Listener<K> {
    wants: Box<dyn Fn(&K) -> bool + Send>,
    deliver: Deliver<K>,
    /// The uids of what it was told of and what has not gone since.
    told: BTreeSet<String>,
}

impl<K> Clone for Feed<K> {
    fn clone(&self) -> Self {
        Self { joining: self.joining.clone(), watch: Arc::clone(&self.watch) }
    }
}

impl<K> Feed<K>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
{
    /// Starts following all objects of `api`.
    pub fn start(api: Api<K>, config: watcher::Config) -> Self {
        let (joining, joins) = mpsc::unbounded_channel();
        let watch = tokio::spawn(async move {
            let hub = Hub {
                known: BTreeMap::new(),
                has_begun: false,
                is_synced: false,
                listeners: Vec::new(),
            };
            // Each change goes to many listeners, so that the turns tokio gives a task would be
            // over after a few: the more there is to tell, the later everybody would hear it.
            unconstrained(hub.run(api, config, joins)).await;
        });
        Self { joining, watch: Arc::new(Watch(watch)) }
    }

    /// Tells `sender` of every object that `wants` selects, those that exist already first. An
    /// object that is no longer selected counts as gone. A listener that falls behind holds the
    /// others up, so it must not wait for one of them.
    pub fn forward<M: Send + 'static>(
        &self,
        wants: impl Fn(&K) -> bool + Send + 'static,
        sender: mpsc::Sender<M>,
        into: impl Fn(Change<K>) -> M + Send + 'static,
    ) -> Listening {
        let deliver: Deliver<K> = Box::new(move |change| {
            let (sender, message) = (sender.clone(), into(change));
            Box::pin(async move { sender.send(message).await.is_ok() })
        });
        let listener = Listener { wants: Box::new(wants), deliver, told: BTreeSet::new() };
        // The hub lives as long as this handle.
        let _ended = self.joining.send(listener);
        Listening(Arc::clone(&self.watch))
    }
}

/// What a feed's task holds.
struct Hub<K> {
    known: BTreeMap<ObjectKey, Arc<K>>,
    has_begun: bool,
    is_synced: bool,
    listeners: Vec<Listener<K>>,
}

impl<K> Hub<K>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
{
    async fn run(
        mut self,
        api: Api<K>,
        config: watcher::Config,
        mut joins: mpsc::UnboundedReceiver<Listener<K>>,
    ) {
        let mut changes = std::pin::pin!(follow(api, config));
        loop {
            tokio::select! {
                Some(listener) = joins.recv() => self.welcome(listener).await,
                change = changes.next() => match change {
                    Some(change) => self.tell(change).await,
                    None => return,
                },
            }
        }
    }

    /// Tells a new listener what there is.
    async fn welcome(&mut self, mut listener: Listener<K>) {
        // Before the watch has begun it hears of that as everybody does.
        if self.has_begun && !listener.hear(Change::Listing).await {
            return;
        }
        for object in self.known.values() {
            if !listener.hear(Change::Put(Arc::clone(object))).await {
                return;
            }
        }
        if !self.is_synced || listener.hear(Change::Synced).await {
            self.listeners.push(listener);
        }
    }

    async fn tell(&mut self, change: Change<K>) {
        match &change {
            Change::Put(object) => {
                self.known.insert(ObjectKey::of(&**object), Arc::clone(object));
            }
            Change::Gone(key) => drop(self.known.remove(key)),
            Change::Listing => self.has_begun = true,
            Change::Synced => self.is_synced = true,
        }
        let mut at = 0;
        while at < self.listeners.len() {
            if self.listeners[at].hear(change.clone()).await {
                at += 1;
            } else {
                self.listeners.swap_remove(at);
            }
        }
    }
}

impl<K: Resource> Listener<K> {
    /// Passes on what this listener wants to know; false when it has ended.
    async fn hear(&mut self, change: Change<K>) -> bool {
        let change = match change {
            Change::Put(object) if (self.wants)(&object) => {
                let uid = object.meta().uid.as_deref().unwrap_or_default();
                if !self.told.contains(uid) {
                    self.told.insert(uid.to_owned());
                }
                Change::Put(object)
            }
            Change::Put(object) => {
                let key = ObjectKey::of(&*object);
                if !self.told.remove(&key.uid) {
                    return true;
                }
                Change::Gone(key)
            }
            Change::Gone(key) if !self.told.remove(&key.uid) => return true,
            other => other,
        };
        (self.deliver)(change).await
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures::stream;
    use http::{Request, Response};
    use http_body_util::{BodyExt, Full, StreamBody};
    use hyper::body::{Bytes, Frame};
    use k8s_openapi::api::core::v1::Pod;
    use kube::client::Body;
    use kube::{Client, ResourceExt};
    use serde_json::{Value, json};

    use super::*;

    fn pod(name: &str, node: &str, version: &str) -> Value {
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": "d", "uid": name, "resourceVersion": version},
            "spec": {"nodeName": node, "containers": []},
        })
    }

    /// A server that lists pod a, then tells what comes in, and counts what it is asked.
    fn client(events: mpsc::UnboundedReceiver<Value>, count: Arc<AtomicUsize>) -> Client {
        let events = Arc::new(std::sync::Mutex::new(Some(events)));
        let service = tower::service_fn(move |request: Request<Body>| {
            count.fetch_add(1, Ordering::Relaxed);
            let body = if request.uri().query().unwrap_or_default().contains("watch=true") {
                let events = events.lock().unwrap().take().unwrap();
                let lines = stream::unfold(events, |mut events| async {
                    let line = Bytes::from(format!("{}\n", events.recv().await?));
                    Some((Ok::<_, Infallible>(Frame::data(line)), events))
                });
                StreamBody::new(lines).boxed_unsync()
            } else {
                let list = json!({
                    "kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "1"},
                    "items": [pod("a", "n", "1")],
                });
                Full::from(list.to_string()).boxed_unsync()
            };
            async move { Ok::<_, Infallible>(Response::new(body)) }
        });
        Client::new(service, "default")
    }

    fn on_n(pod: &Pod) -> bool {
        pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()) == Some("n")
    }

    fn in_words(change: Change<Pod>) -> String {
        match change {
            Change::Put(pod) => format!("put {}", pod.name_any()),
            Change::Gone(key) => format!("gone {}", key.name),
            Change::Listing => "listing".to_owned(),
            Change::Synced => "synced".to_owned(),
        }
    }

    #[tokio::test]
    async fn all_listeners_hear_what_they_want_from_one_watch() {
        let (events, receiver) = mpsc::unbounded_channel();
        let count = Arc::<AtomicUsize>::default();
        let client = client(receiver, Arc::clone(&count));
        let feed = Feed::<Pod>::start(Api::all(client), watcher::Config::default());
        let (sender, mut early) = mpsc::channel(9);
        let _early = feed.forward(|_| true, sender, in_words);
        for wanted in ["listing", "put a", "synced"] {
            assert_eq!(early.recv().await.as_deref(), Some(wanted));
        }
        let (sender, gone) = mpsc::channel(9);
        let _gone = feed.forward(|_| true, sender, in_words);
        drop(gone);
        let (sender, mut late) = mpsc::channel(9);
        let _late = feed.forward(on_n, sender, in_words);
        for wanted in ["listing", "put a", "synced"] {
            assert_eq!(late.recv().await.as_deref(), Some(wanted), "what there was comes first");
        }
        for (what, object) in [
            ("ADDED", pod("b", "elsewhere", "2")),
            ("MODIFIED", pod("a", "elsewhere", "3")),
            ("DELETED", pod("b", "elsewhere", "4")),
            ("ADDED", pod("c", "n", "5")),
        ] {
            events.send(json!({"type": what, "object": object})).unwrap();
        }
        for wanted in ["put b", "put a", "gone b", "put c"] {
            assert_eq!(early.recv().await.as_deref(), Some(wanted));
        }
        for wanted in ["gone a", "put c"] {
            assert_eq!(late.recv().await.as_deref(), Some(wanted), "only what it wants");
        }
        assert_eq!(count.load(Ordering::Relaxed), 2, "one list, one watch");
    }

    #[tokio::test]
    async fn the_watch_goes_on_while_somebody_listens() {
        let (events, receiver) = mpsc::unbounded_channel();
        let client = client(receiver, Arc::default());
        let feed = Feed::<Pod>::start(Api::all(client), watcher::Config::default());
        let (sender, mut heard) = mpsc::channel(9);
        let listening = feed.forward(|_| true, sender, in_words);
        drop(feed);
        for wanted in ["listing", "put a", "synced"] {
            assert_eq!(heard.recv().await.as_deref(), Some(wanted));
        }
        drop(listening);
        assert_eq!(heard.recv().await, None, "nobody keeps it going");
        drop(events);
    }
}
