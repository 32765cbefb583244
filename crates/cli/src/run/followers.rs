//! Reading the logs of all containers: so many at once, those of one container in order.

use std::{collections::BTreeMap, sync::Arc};

use futures::{AsyncBufRead, AsyncReadExt, FutureExt, future::BoxFuture};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use super::{lines::take_lines, model::LogSource};
use crate::{cluster::Cluster, refusal::Refusal};

/// How many logs are read at the same time. The others wait until one of these ends.
pub(crate) const OPEN_MAX: usize = 256;

/// How many pieces may wait to be printed before reading pauses.
const WAITING_MAX: usize = 64;

const PIECE: usize = 32 * 1024;

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
    slots: Arc<Semaphore>,
    queues: BTreeMap<[String; 3], mpsc::UnboundedSender<Asked>>,
    sender: Option<mpsc::Sender<Piece>>,
    receiver: mpsc::Receiver<Piece>,
}

type Asked = (Arc<LogSource>, BoxFuture<'static, Result<Opened, Refusal>>);

struct Opened {
    log: Box<dyn AsyncBufRead + Send + Unpin>,
    _slot: OwnedSemaphorePermit,
}

impl Followers {
    /// Follows nothing yet.
    pub(crate) fn new(cluster: Cluster, is_raw: bool) -> Self {
        let (sender, receiver) = mpsc::channel(WAITING_MAX);
        let slots = Arc::new(Semaphore::new(OPEN_MAX));
        let (queues, sender) = (BTreeMap::new(), Some(sender));
        Self { cluster, is_raw, slots, queues, sender, receiver }
    }

    /// Asks for a log now, since later another run may be meant, and reads it when the earlier ones
    /// of its container are through.
    pub(crate) fn begin(&mut self, source: LogSource) {
        let Some(sender) = &self.sender else { return };
        let (source, cluster) = (Arc::new(source), self.cluster.clone());
        let (slots, path) = (Arc::clone(&self.slots), source.path.clone());
        let asked = tokio::spawn(async move {
            let slot = slots.acquire_owned().await;
            let slot = slot.map_err(|error| Refusal::Garbled(error.to_string()))?;
            let log = cluster.stream(&path, "*/*").await?;
            Ok(Opened { log: Box::new(log), _slot: slot })
        });
        let opened = asked
            .map(|joined| joined.unwrap_or_else(|error| Err(Refusal::Garbled(error.to_string()))));
        let (sender, is_raw) = (sender.clone(), self.is_raw);
        let queue = self.queues.entry(source.container.clone()).or_insert_with(|| {
            let (queue, receiver) = mpsc::unbounded_channel();
            tokio::spawn(read_all(receiver, sender, is_raw));
            queue
        });
        // Whoever reads has ended when nobody listens any more.
        let _unread = queue.send((source, opened.boxed()));
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

async fn read_all(
    mut queue: mpsc::UnboundedReceiver<Asked>,
    sender: mpsc::Sender<Piece>,
    is_raw: bool,
) {
    while let Some((source, opened)) = queue.recv().await {
        let done = match opened.await {
            Ok(opened) => read(opened, &source, &sender, is_raw).await,
            Err(refusal) => Err(refusal.explain(None)),
        };
        if let Err(why) = done
            && sender.send(Piece::Unreadable(source, why)).await.is_err()
        {
            return;
        }
    }
}

/// Reads one log to its end, or until nobody listens.
async fn read(
    mut opened: Opened,
    source: &Arc<LogSource>,
    sender: &mpsc::Sender<Piece>,
    is_raw: bool,
) -> Result<(), String> {
    let mut pending = Vec::new();
    let mut buffer = vec![0; PIECE];
    loop {
        let count = opened.log.read(&mut buffer).await;
        let count = count.map_err(|error| format!("error: the log ended too early: {error}"))?;
        pending.extend_from_slice(&buffer[..count]);
        let is_end = count == 0;
        if is_end && !is_raw && !pending.is_empty() && pending.last() != Some(&b'\n') {
            pending.push(b'\n');
        }
        let piece = if is_raw { std::mem::take(&mut pending) } else { take_lines(&mut pending) };
        let piece = Piece::Written(Arc::clone(source), piece);
        let is_empty = matches!(&piece, Piece::Written(_, bytes) if bytes.is_empty());
        if is_end && is_empty {
            return Ok(());
        }
        if !is_empty && sender.send(piece).await.is_err() {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        convert::Infallible,
        sync::atomic::{AtomicUsize, Ordering},
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
        LogSource {
            container: ["d", &at.to_string(), "c"].map(ToOwned::to_owned),
            path: format!("/api/v1/namespaces/d/pods/{at}/log"),
            label: String::new(),
            worker: 0,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn only_so_many_logs_are_open_at_once_and_all_are_read() {
        let (end, asked) = (Arc::new(Notify::new()), Arc::new(AtomicUsize::new(0)));
        let mut followers = Followers::new(cluster(&end, &asked), false);
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
}
