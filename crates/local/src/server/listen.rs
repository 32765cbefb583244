//! Connections: TLS, HTTP/1.1 and HTTP/2, and what becomes of clients that do not keep up.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use axum::{
    Router,
    body::{Body, HttpBody},
};
use futures::{FutureExt, StreamExt};
use hyper::body::Incoming;
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream},
    sync::{
        Semaphore,
        mpsc::{self, error::SendTimeoutError},
        watch,
    },
    time::{Instant, Sleep},
};
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt;
use tracing::{debug, warn};

const HANDSHAKE_TIME_MAX: Duration = Duration::from_secs(10);
const HEADER_TIME_MAX: Duration = Duration::from_secs(30);
/// How long a client may leave what was sent to it unread before its connection is closed.
const UNREAD_TIME_MAX: Duration = Duration::from_secs(60);
const PING_INTERVAL: Duration = Duration::from_secs(30);
/// How long open requests may go on after the server was asked to stop.
const DRAIN_TIME_MAX: Duration = Duration::from_secs(2);
/// client-go puts all its watches on one connection.
const STREAMS_PER_CONNECTION_MAX: u32 = 4096;

/// Serves `router` to every connection until `stop` says so, then lets open requests finish.
pub(crate) async fn serve(
    listener: TcpListener,
    tls: Arc<rustls::ServerConfig>,
    router: Router,
    connections_max: usize,
    mut stop: watch::Receiver<bool>,
) {
    let acceptor = TlsAcceptor::from(tls);
    let slots = Arc::new(Semaphore::new(connections_max));
    let mut connections = tokio::task::JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stopped(&mut stop) => break,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                // Out of file descriptors, most likely: those that end give some back.
                warn!(%error, "cannot accept a connection");
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let Ok(slot) = Arc::clone(&slots).try_acquire_owned() else {
            warn!(connections_max, "connection refused, too many are open");
            continue;
        };
        let connection = connection(stream, acceptor.clone(), router.clone(), stop.clone());
        connections.spawn(async move {
            connection.await;
            drop(slot);
        });
    }
    drop(listener);
    let drained = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(DRAIN_TIME_MAX, drained).await.is_err() {
        connections.shutdown().await;
    }
}

/// Ends when the server is asked to stop, or when nobody is left to ask.
pub(crate) async fn stopped(stop: &mut watch::Receiver<bool>) {
    drop(stop.wait_for(|&stopped| stopped).await);
}

async fn connection(
    stream: TcpStream,
    acceptor: TlsAcceptor,
    router: Router,
    mut stop: watch::Receiver<bool>,
) {
    // Watch events are small and urgent; Nagle would hold them back.
    if let Err(error) = stream.set_nodelay(true) {
        debug!(%error, "cannot set TCP_NODELAY");
    }
    let stream = Impatient::new(stream, UNREAD_TIME_MAX);
    let stream = match tokio::time::timeout(HANDSHAKE_TIME_MAX, acceptor.accept(stream)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return debug!(%error, "TLS handshake failed"),
        Err(_) => return debug!("TLS handshake took too long"),
    };
    let service = hyper::service::service_fn(move |request: http::Request<Incoming>| {
        let answer = router.clone().oneshot(request.map(Body::new));
        async move { answer.await.map(|answer| answer.map(|body| read_ahead(body, UNREAD_TIME_MAX))) }
    });
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HEADER_TIME_MAX);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(PING_INTERVAL)
        .max_concurrent_streams(STREAMS_PER_CONNECTION_MAX);
    let serving = builder.serve_connection_with_upgrades(TokioIo::new(stream), service);
    tokio::pin!(serving);
    let ended = tokio::select! {
        ended = serving.as_mut() => ended,
        () = stopped(&mut stop) => {
            serving.as_mut().graceful_shutdown();
            serving.await
        }
    };
    if let Err(error) = ended {
        debug!(%error, "connection ended");
    }
}

/// Reads a body in a task of its own that gives up when nobody takes what it has read. One stuck
/// stream of an HTTP/2 connection stops neither the connection nor its pings, and is not asked for
/// more: left to itself it would never come to its deadline, and keep what it holds for ever.
fn read_ahead(body: Body, patience: Duration) -> Body {
    if body.size_hint().exact().is_some() {
        // It is in memory, whole: there is nothing to give up.
        return body;
    }
    let (sender, mut receiver) = mpsc::channel(1);
    let reader = tokio::spawn(async move {
        let mut chunks = body.into_data_stream();
        loop {
            let chunk = tokio::select! {
                chunk = chunks.next() => chunk,
                () = sender.closed() => None,
            };
            let Some(chunk) = chunk else { return Ok(()) };
            if let Err(SendTimeoutError::Timeout(_)) = sender.send_timeout(chunk, patience).await {
                return Err(axum::Error::new(unread()));
            }
        }
    });
    let chunks = futures::stream::poll_fn(move |context| receiver.poll_recv(context));
    // A body that was given up must not look like one that is complete.
    let end = reader.map(|ended| ended.map_err(axum::Error::new).flatten().err().map(Err));
    let end = futures::stream::once(end).filter_map(std::future::ready);
    Body::from_stream(chunks.chain(end))
}

fn unread() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "the client stopped reading")
}

/// A stream that fails when the other side leaves what was written unread for too long: a stuck
/// watcher must not keep its buffers for ever.
struct Impatient<S> {
    stream: S,
    patience: Duration,
    deadline: Pin<Box<Sleep>>,
    is_waiting: bool,
}

impl<S> Impatient<S> {
    fn new(stream: S, patience: Duration) -> Self {
        let deadline = Box::pin(tokio::time::sleep(patience));
        Self { stream, patience, deadline, is_waiting: false }
    }

    fn check<T>(
        &mut self,
        context: &mut Context<'_>,
        result: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if result.is_ready() {
            self.is_waiting = false;
            return result;
        }
        if !self.is_waiting {
            self.is_waiting = true;
            self.deadline.as_mut().reset(Instant::now() + self.patience);
        }
        ready!(self.deadline.as_mut().poll(context));
        Poll::Ready(Err(unread()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Impatient<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Impatient<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write(context, buffer);
        self.check(context, result)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let result = Pin::new(&mut self.stream).poll_flush(context);
        self.check(context, result)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let result = Pin::new(&mut self.stream).poll_shutdown(context);
        self.check(context, result)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write_vectored(context, buffers);
        self.check(context, result)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn writers_give_up_on_readers_that_stopped() {
        let (near, mut far) = tokio::io::duplex(16);
        let mut stream = Impatient::new(near, Duration::from_secs(60));
        stream.write_all(&[1; 16]).await.unwrap();
        // A reader that comes back in time is forgiven, however often it is late.
        for _ in 0..3 {
            let write = stream.write_all(&[1; 16]);
            let read = async {
                tokio::time::sleep(Duration::from_secs(50)).await;
                far.read_exact(&mut [0; 16]).await
            };
            let (written, read) = tokio::join!(write, read);
            written.unwrap();
            read.unwrap();
        }
        let error = stream.write_all(&[1; 16]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test(start_paused = true)]
    async fn streams_nobody_reads_are_given_up() {
        let held = Arc::new(());
        let stream = |chunks: usize| {
            let held = Arc::clone(&held);
            let chunks = futures::stream::iter(0..chunks).map(move |_| {
                let _held = &held;
                Ok::<_, io::Error>("chunk")
            });
            read_ahead(Body::from_stream(chunks), Duration::from_secs(60))
        };
        let read = stream(3).collect().await.unwrap().to_bytes();
        assert_eq!(read, "chunkchunkchunk");
        let stuck = stream(1000);
        let gone = stream(1000);
        tokio::time::sleep(Duration::from_secs(50)).await;
        assert_eq!(Arc::strong_count(&held), 3);
        drop(gone);
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(Arc::strong_count(&held), 2);
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert_eq!(Arc::strong_count(&held), 1);
        let error = stuck.collect().await.unwrap_err();
        assert_eq!(error.to_string(), "the client stopped reading");
    }
}
