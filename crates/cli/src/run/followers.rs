//! Reading the logs of all containers: so many at once, those of one container in order.

mod reading;

use std::{collections::BTreeMap, sync::Arc};

use futures::{FutureExt, future::BoxFuture};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use self::reading::{Log, Reading};
use super::model::{ContainerId, LogSource};
use crate::{cluster::Cluster, refusal::Refusal};

/// How many logs are read at the same time. The others wait until one of these ends.
pub(crate) const OPEN_MAX: usize = 256;

/// How many pieces may wait to be printed before reading pauses.
const WAITING_MAX: usize = 64;

/// A piece of a log.
#[derive(Debug)]
pub(crate) enum Piece {
    /// What was written.
    Written(Arc<LogSource>, Vec<u8>),
    /// It cannot be read, or not to its end.
    Unreadable(Arc<LogSource>, String),
}

/// The logs that are being read.
pub(crate) struct Followers {
    cluster: Cluster,
    /// Whether pieces need not be whole lines, because nothing else is written between them.
    is_raw: bool,
    /// Whether the server can go away while this program stays, so that logs are read again.
    is_remote: bool,
    slots: Arc<Semaphore>,
    queues: BTreeMap<ContainerId, mpsc::UnboundedSender<Asked>>,
    sender: Option<mpsc::Sender<Piece>>,
    receiver: mpsc::Receiver<Piece>,
}

type Asked = (Reading, Arc<LogSource>, BoxFuture<'static, Opened>);

/// The place among the logs that are open, and the log or why there is none.
type Opened = (Option<OwnedSemaphorePermit>, Result<Log, Refusal>);

impl Followers {
    /// Follows nothing yet.
    pub(crate) fn new(cluster: Cluster, is_raw: bool, is_remote: bool) -> Self {
        let (sender, receiver) = mpsc::channel(WAITING_MAX);
        let slots = Arc::new(Semaphore::new(OPEN_MAX));
        let (queues, sender) = (BTreeMap::new(), Some(sender));
        Self { cluster, is_raw, is_remote, slots, queues, sender, receiver }
    }

    /// Asks for a log now, since later another run may be meant, and reads it when the earlier ones
    /// of its container are through.
    pub(crate) fn begin(&mut self, source: LogSource) {
        let Some(sender) = &self.sender else { return };
        let (source, cluster) = (Arc::new(source), self.cluster.clone());
        let (slots, path) = (Arc::clone(&self.slots), source.path.clone());
        let asked = tokio::spawn(async move {
            let slot = slots.acquire_owned().await.ok();
            let log = cluster.stream(&path, "*/*").await;
            (slot, log.map(|log| Box::new(log) as Log))
        });
        let opened = asked.map(|joined| {
            joined.unwrap_or_else(|error| (None, Err(Refusal::Garbled(error.to_string()))))
        });
        let manner = (self.is_raw, self.is_remote);
        let reading =
            Reading::new(self.cluster.clone(), Arc::clone(&source), sender.clone(), manner);
        let sender = sender.clone();
        let queue = self.queues.entry(source.container.clone()).or_insert_with(|| {
            let (queue, receiver) = mpsc::unbounded_channel();
            tokio::spawn(read_all(receiver, sender));
            queue
        });
        // Whoever reads has ended when nobody listens any more.
        let _unread = queue.send((reading, source, opened.boxed()));
    }

    /// The next piece; nothing when all is read after [`Followers::close`].
    pub(crate) async fn next(&mut self) -> Option<Piece> {
        self.receiver.recv().await
    }

    /// What can be had without waiting.
    pub(crate) fn ready(&mut self) -> Option<Piece> {
        self.receiver.try_recv().ok()
    }

    /// Begins nothing more, so that there is an end to wait for.
    pub(crate) fn close(&mut self) {
        self.queues.clear();
        self.sender = None;
    }
}

async fn read_all(mut queue: mpsc::UnboundedReceiver<Asked>, sender: mpsc::Sender<Piece>) {
    while let Some((reading, source, opened)) = queue.recv().await {
        let (_slot, log) = opened.await;
        if let Err(why) = reading.read_whole(log).await
            && sender.send(Piece::Unreadable(source, why)).await.is_err()
        {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        collections::VecDeque,
        convert::Infallible,
        sync::{
            Mutex,
            atomic::{AtomicUsize, Ordering},
        },
    };

    use http::{Request, Response};
    use http_body_util::{BodyExt, StreamBody, combinators::UnsyncBoxBody};
    use kube::{Client, client::Body};
    use tokio::sync::Notify;

    use super::*;

    /// A cluster whose logs end when they are told to, and how many were asked for.
    fn cluster(end: &Arc<Notify>, asked: &Arc<AtomicUsize>) -> Cluster {
        let (end, asked) = (Arc::clone(end), Arc::clone(asked));
        let service = tower::service_fn(move |_: Request<Body>| {
            asked.fetch_add(1, Ordering::Relaxed);
            let end = Arc::clone(&end);
            let last = futures::stream::once(async move {
                end.notified().await;
                Ok::<_, std::io::Error>(http_body::Frame::data(bytes::Bytes::from("bye")))
            });
            let body: UnsyncBoxBody<bytes::Bytes, std::io::Error> =
                StreamBody::new(last).boxed_unsync();
            async move { Ok::<_, Infallible>(Response::new(body)) }
        });
        Cluster::inside(Client::new(service, "default"), "default")
    }

    fn source(at: usize) -> LogSource {
        let container = ContainerId {
            namespace: "d".to_owned(),
            pod: at.to_string(),
            uid: "u".to_owned(),
            name: "c".to_owned(),
        };
        let path = format!("/api/v1/namespaces/d/pods/{at}/log");
        LogSource { container, run: 0, path, label: String::new(), worker: 0 }
    }

    #[tokio::test(start_paused = true)]
    async fn only_so_many_logs_are_open_at_once_and_all_are_read() {
        let (end, asked) = (Arc::new(Notify::new()), Arc::new(AtomicUsize::new(0)));
        let mut followers = Followers::new(cluster(&end, &asked), false, false);
        for at in 0..1_000 {
            followers.begin(source(at));
        }
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        assert_eq!(asked.load(Ordering::Relaxed), OPEN_MAX);
        followers.close();
        let ending = tokio::spawn(async move {
            loop {
                end.notify_one();
                tokio::task::yield_now().await;
            }
        });
        let mut read = 0;
        while let Some(piece) = followers.next().await {
            assert!(matches!(piece, Piece::Written(_, bytes) if bytes == b"bye\n"));
            read += 1;
        }
        ending.abort();
        assert_eq!(read, 1_000);
    }

    /// A cluster that goes away in the middle of a log: its answers in order, `None` for an outage.
    fn unsteady(logs: Vec<(&'static str, bool)>, pods: Vec<Option<&'static str>>) -> Cluster {
        let (logs, pods) = (Mutex::new(VecDeque::from(logs)), Mutex::new(VecDeque::from(pods)));
        let state = Arc::new((logs, pods));
        let service = tower::service_fn(move |request: Request<Body>| {
            type Frames = Vec<Result<http_body::Frame<bytes::Bytes>, std::io::Error>>;
            let data = |text: String| Ok(http_body::Frame::data(bytes::Bytes::from(text)));
            let broken = || Err(std::io::Error::other("connection reset"));
            let mut code = 200;
            let frames: Frames = if request.uri().path().ends_with("/log") {
                let next = state.0.lock().expect("a lock").pop_front();
                let (text, is_whole) = next.expect("no more reads than planned");
                let text = data(text.to_owned());
                if is_whole { vec![text] } else { vec![text, broken()] }
            } else {
                let next = state.1.lock().expect("a lock").pop_front();
                match next.expect("no more looks than planned") {
                    Some(state) => {
                        let status = serde_json::json!({"containerStatuses": [
                            {"name": "c", "restartCount": 0, "state": {state: {}}}]});
                        let pod = serde_json::json!({"metadata": {"uid": "u"}, "status": status});
                        vec![data(pod.to_string())]
                    }
                    None => {
                        code = 503;
                        vec![data("later".to_owned())]
                    }
                }
            };
            let stream = futures::stream::iter(frames);
            let body: UnsyncBoxBody<bytes::Bytes, std::io::Error> =
                StreamBody::new(stream).boxed_unsync();
            let response = Response::builder().status(code).body(body).expect("a response");
            async move { Ok::<_, Infallible>(response) }
        });
        Cluster::inside(Client::new(service, "default"), "default")
    }

    async fn all_of(cluster: Cluster) -> (String, Vec<String>) {
        let mut followers = Followers::new(cluster, false, true);
        followers.begin(source(0));
        followers.close();
        let (mut text, mut refused) = (String::new(), Vec::new());
        while let Some(piece) = followers.next().await {
            match piece {
                Piece::Written(_, bytes) => text.push_str(&String::from_utf8_lossy(&bytes)),
                Piece::Unreadable(_, why) => refused.push(why),
            }
        }
        (text, refused)
    }

    #[tokio::test(start_paused = true)]
    async fn a_log_that_breaks_off_is_read_on_and_nothing_comes_twice() {
        let whole = "one\ntwo\nthree";
        let cases = [
            (
                "the server is killed and comes back",
                vec![("one\ntw", false), (whole, true)],
                vec![None, None, Some("running"), Some("terminated")],
            ),
            (
                "the server stops in an orderly way, and the container ends meanwhile",
                vec![("one\n", true), (whole, true)],
                vec![None, Some("terminated"), Some("terminated")],
            ),
            (
                "the status of the pod is late",
                vec![(whole, true)],
                vec![Some("running"), Some("running"), Some("terminated")],
            ),
        ];
        for (name, logs, pods) in cases {
            let (text, refused) = all_of(unsteady(logs, pods)).await;
            assert_eq!((text.as_str(), refused.len()), ("one\ntwo\nthree\n", 0), "{name}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_log_that_breaks_off_for_good_is_told() {
        // Another pod has its name: what that one writes is not for this reader.
        let cluster = unsteady(vec![("one\n", false)], vec![Some("running")]);
        let mut followers = Followers::new(cluster, false, true);
        let mut replaced = source(0);
        replaced.container.uid = "older".to_owned();
        followers.begin(replaced);
        followers.close();
        assert!(matches!(followers.next().await, Some(Piece::Written(_, _))));
        let last = followers.next().await;
        let Some(Piece::Unreadable(_, why)) = last else { panic!("{last:?}") };
        assert!(why.contains("the log ended too early: connection reset"), "{why}");
    }
}
