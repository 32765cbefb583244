//! GET of a collection's changes, as they happen.
//!
//! A watch is a cursor that is moved when the client has read what was written: nothing is queued
//! for a client that does not read, and the store tells it when it fell too far behind.

use std::{collections::VecDeque, convert::Infallible, time::Duration};

use axum::{body::Body, response::Response};
use bytes::{BufMut, Bytes, BytesMut};
use http::{HeaderValue, header};
use lockstep_api::{Status, selector::FieldSelector};
use lockstep_store::watch::{Notice, WatchStart};
use tokio::{
    sync::{OwnedSemaphorePermit, watch as signal},
    time::{Instant, sleep_until},
};

use crate::{
    cluster::Watch,
    server::{
        call::{Address, Call},
        listen::stopped,
        metrics::WatchGauge,
        negotiate::Encoding,
        options::ListOptions,
        present::Presenter,
        websocket::{self, Carried, Offer},
    },
};

/// Events that come together are sent together, up to so many bytes.
const CHUNK_BYTES: usize = 64 * 1024;
const BOOKMARK_INTERVAL: Duration = Duration::from_secs(60);
/// Upstream ends watches after half an hour to an hour when the client sets no time.
const DEFAULT_TIMEOUT_MIN_SECONDS: u64 = 1800;
/// How long a watch waits for a revision that is not there yet.
const PATIENCE: Duration = Duration::from_secs(3);

/// Streams the changes of a collection, as the body of the answer or over a WebSocket.
pub(crate) async fn watch(
    call: &Call,
    address: &Address,
    permit: Option<OwnedSemaphorePermit>,
) -> Result<Response, Status> {
    if !websocket::is_asked_for(&call.headers) {
        return events(call, address, permit).await.map(response);
    }
    let offer = Offer::any(call)?;
    let (body, protocol) = (events(call, address, permit).await?, offer.protocol);
    Ok(offer.accept(move |socket| websocket::carry(socket, protocol, body, Carried::Lines)))
}

async fn events(
    call: &Call,
    address: &Address,
    permit: Option<OwnedSemaphorePermit>,
) -> Result<Body, Status> {
    let options = ListOptions::read(&call.query, true)?;
    if call.output.encoding == Encoding::Yaml {
        return Err(Status::not_acceptable(&["application/json;stream=watch"]));
    }
    let mut filter = call.filter(address, &options)?;
    if !address.name.is_empty() {
        let name = format!("metadata.name={}", address.name);
        filter.selectors.fields = FieldSelector::parse(&name, &*address.resource.strategy)?;
    }
    let presenter = Presenter::of_events(call, &address.resource)?;
    let cluster = &call.app.cluster;
    let start = match (options.send_initial_events, options.revision()?) {
        (Some(true), revision) => {
            cluster.wait_for(revision, PATIENCE).await?;
            WatchStart::Now
        }
        (None, 0) => WatchStart::Now,
        (Some(false), 0) => WatchStart::After(cluster.snapshot().revision()),
        (_, revision) => WatchStart::After(revision),
    };
    let allows_bookmarks = options.allows_bookmarks;
    let mut stream = EventStream {
        queue: VecDeque::new(),
        marks_end_of_initial: allows_bookmarks && options.send_initial_events == Some(true),
        deadline: Instant::now() + timeout(&options),
        next_bookmark: allows_bookmarks.then(|| Instant::now() + BOOKMARK_INTERVAL),
        stop: call.app.stop.subscribe(),
        is_first: true,
        watch: None,
        presenter,
        _gauge: call.app.metrics.watching(),
        _permit: permit,
    };
    match cluster.watch(filter, start).await {
        Ok(mut watch) => {
            stream.queue.extend(watch.take_initial());
            stream.watch = Some(watch);
        }
        // Once a watch was understood, what goes wrong is said in the stream.
        Err(status) => return Ok(Body::from(error_event(&status))),
    }
    let chunks = futures::stream::unfold(stream, |mut stream| async move {
        let chunk = stream.next_chunk().await?;
        Some((Ok::<_, Infallible>(chunk), stream))
    });
    Ok(Body::from_stream(chunks))
}

fn response(body: Body) -> Response {
    let mut response = Response::new(body);
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}

/// Clients that set no time come back at different moments.
fn timeout(options: &ListOptions) -> Duration {
    let seconds = options.timeout_seconds.unwrap_or_else(|| {
        let spread = uuid::Uuid::new_v4().as_u64_pair().0 % DEFAULT_TIMEOUT_MIN_SECONDS;
        DEFAULT_TIMEOUT_MIN_SECONDS + spread
    });
    // Longer than a year is for ever, and stays clear of what a clock can hold.
    Duration::from_secs(seconds.min(365 * 24 * 3600))
}

struct EventStream {
    /// Nothing once the stream has said its last.
    watch: Option<Watch>,
    presenter: Presenter,
    queue: VecDeque<Notice>,
    /// Whether the end of what was there at the start is still to be marked.
    marks_end_of_initial: bool,
    deadline: Instant,
    next_bookmark: Option<Instant>,
    stop: signal::Receiver<bool>,
    is_first: bool,
    _gauge: WatchGauge,
    _permit: Option<OwnedSemaphorePermit>,
}

enum Wake {
    Notices(Result<Vec<Notice>, Status>),
    Bookmark,
    Deadline,
    Stopped,
}

impl EventStream {
    /// The next bytes to send, or nothing when the stream is over.
    async fn next_chunk(&mut self) -> Option<Bytes> {
        loop {
            if !self.queue.is_empty() {
                return Some(self.write_queue());
            }
            if std::mem::take(&mut self.marks_end_of_initial) {
                return Some(self.bookmark(true));
            }
            match self.wait().await? {
                Wake::Notices(Ok(notices)) => self.queue.extend(notices),
                Wake::Notices(Err(status)) => {
                    // What is watched looks different from now on: the client is to look again.
                    let is_over = self.watch.take().is_some_and(|watch| watch.is_over());
                    return (!is_over).then(|| error_event(&status));
                }
                Wake::Bookmark => {
                    self.next_bookmark = Some(Instant::now() + BOOKMARK_INTERVAL);
                    match self.watch.as_mut()?.poll_notices() {
                        // A bookmark says that everything before it was sent.
                        Ok(notices) if notices.is_empty() => return Some(self.bookmark(false)),
                        Ok(notices) => self.queue.extend(notices),
                        Err(status) => {
                            self.watch = None;
                            return Some(error_event(&status));
                        }
                    }
                }
                Wake::Deadline => {
                    let last = self.next_bookmark.map(|_| self.bookmark(false));
                    self.watch = None;
                    return last;
                }
                Wake::Stopped => return None,
            }
        }
    }

    async fn wait(&mut self) -> Option<Wake> {
        let watch = self.watch.as_mut()?;
        let bookmark = self.next_bookmark;
        let bookmark_due = async {
            match bookmark {
                Some(at) => sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        Some(tokio::select! {
            notices = watch.next() => Wake::Notices(notices),
            () = bookmark_due => Wake::Bookmark,
            () = sleep_until(self.deadline) => Wake::Deadline,
            () = stopped(&mut self.stop) => Wake::Stopped,
        })
    }

    fn write_queue(&mut self) -> Bytes {
        let mut chunk = BytesMut::with_capacity(4096);
        self.presenter.refresh();
        while chunk.len() < CHUNK_BYTES
            && let Some(notice) = self.queue.pop_front()
        {
            put_type(&mut chunk, notice.kind.name());
            self.presenter.put_element(&mut chunk, &notice.object, self.is_first);
            chunk.put_slice(b"}\n");
            self.is_first = false;
        }
        chunk.freeze()
    }

    fn bookmark(&self, is_end_of_initial: bool) -> Bytes {
        let revision = self.watch.as_ref().map_or(0, Watch::revision);
        let mut chunk = BytesMut::with_capacity(256);
        put_type(&mut chunk, "BOOKMARK");
        self.presenter.put_bookmark(&mut chunk, revision, is_end_of_initial);
        chunk.put_slice(b"}\n");
        chunk.freeze()
    }
}

fn put_type(to: &mut BytesMut, name: &str) {
    to.put_slice(b"{\"type\":\"");
    to.put_slice(name.as_bytes());
    to.put_slice(b"\",\"object\":");
}

fn error_event(status: &Status) -> Bytes {
    let mut chunk = BytesMut::new();
    put_type(&mut chunk, "ERROR");
    chunk.put_slice(&serde_json::to_vec(status).unwrap_or_default());
    chunk.put_slice(b"}\n");
    chunk.freeze()
}
