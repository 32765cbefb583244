//! What one client may take from the others: bytes, time and concurrent requests.

use std::{sync::Arc, time::Duration};

use axum::body::Body;
use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use lockstep_api::Status;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::error;

/// Upstream's limit on the body of a request.
pub(crate) const BODY_BYTES_MAX: usize = 3 * 1024 * 1024;
/// The longest path and query; selectors and continue tokens are far shorter.
pub(crate) const URI_BYTES_MAX: usize = 16 * 1024;
/// How long a client may take to send a body.
const BODY_TIME_MAX: Duration = Duration::from_secs(60);

/// How much is served at once.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Requests of the network that are being answered, watches and followed logs not counted.
    pub requests_max: usize,
    /// Watches and followed logs of the network.
    pub streams_max: usize,
    /// Connections.
    pub connections_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        // Upstream's defaults are 400 reads and 200 writes; a stream costs a cursor and a socket.
        Self { requests_max: 600, streams_max: 20_000, connections_max: 20_000 }
    }
}

/// What is left of the limits.
pub(crate) struct Gate {
    requests: Arc<Semaphore>,
    streams: Arc<Semaphore>,
}

impl Gate {
    /// A gate nobody has passed.
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            requests: Arc::new(Semaphore::new(limits.requests_max)),
            streams: Arc::new(Semaphore::new(limits.streams_max)),
        }
    }

    /// Lets one request in, or says to come back later.
    pub(crate) fn enter(&self, is_stream: bool) -> Result<OwnedSemaphorePermit, Status> {
        let lane = if is_stream { &self.streams } else { &self.requests };
        Arc::clone(lane)
            .try_acquire_owned()
            .map_err(|_| Status::too_many_requests("Too many requests, please try again later.", 1))
    }
}

/// Reads a body whole.
pub(crate) async fn read_body(body: Body) -> Result<Bytes, Status> {
    let collected =
        tokio::time::timeout(BODY_TIME_MAX, Limited::new(body, BODY_BYTES_MAX).collect());
    match collected.await {
        Err(_) => Err(error::body_too_slow()),
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(cause)) if cause.is::<LengthLimitError>() => {
            Err(Status::too_large(format!("Request entity too large: limit is {BODY_BYTES_MAX}")))
        }
        Ok(Err(cause)) => {
            Err(Status::bad_request(format!("the body of the request could not be read: {cause}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn bodies_over_the_limit_are_refused_to_the_byte() {
        let fits = read_body(Body::from(vec![0; BODY_BYTES_MAX])).await.unwrap();
        assert_eq!(fits.len(), BODY_BYTES_MAX);
        let error = read_body(Body::from(vec![0; BODY_BYTES_MAX + 1])).await.unwrap_err();
        assert_eq!(error.code, 413);
        assert_eq!(error.message, "Request entity too large: limit is 3145728");
    }

    #[tokio::test(start_paused = true)]
    async fn bodies_that_never_end_are_given_up() {
        let error = read_body(Body::from_stream(futures::stream::pending::<
            Result<Bytes, std::io::Error>,
        >()))
        .await
        .unwrap_err();
        assert_eq!(error.code, 408);
    }

    #[test]
    fn full_lanes_ask_to_come_back() {
        let gate = Gate::new(Limits { requests_max: 1, streams_max: 1, connections_max: 1 });
        let first = gate.enter(false).unwrap();
        let error = gate.enter(false).unwrap_err();
        assert_eq!((error.code, error.details.unwrap().retry_after_seconds), (429, 1));
        assert!(gate.enter(true).is_ok(), "streams have their own lane");
        drop(first);
        assert!(gate.enter(false).is_ok());
    }
}
