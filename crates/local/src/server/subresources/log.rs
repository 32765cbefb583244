//! GET of a container's log.

use axum::{body::Body, response::Response};
use http::{HeaderValue, header};
use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;
use lockstep_api::{ErrorList, FieldError, Path, Status};
use tokio::sync::OwnedSemaphorePermit;

use super::pod;
use crate::{
    node::logs::{self, LogOptions, LogStream},
    server::{
        call::{Address, Call},
        query::Query,
        websocket::{self, Carried, Offer, PLAIN_PROTOCOLS},
    },
};

/// Streams a container's log, as the body of the answer or over a WebSocket.
pub(crate) fn log(
    call: &Call,
    address: &Address,
    permit: Option<OwnedSemaphorePermit>,
) -> Result<Response, Status> {
    if !websocket::is_asked_for(&call.headers) {
        return read(call, address, permit).map(text);
    }
    let offer = Offer::of(call, &PLAIN_PROTOCOLS)?;
    let (body, protocol) = (read(call, address, permit)?, offer.protocol);
    Ok(offer.accept(move |socket| websocket::carry(socket, protocol, body, Carried::Chunks)))
}

fn read(
    call: &Call,
    address: &Address,
    permit: Option<OwnedSemaphorePermit>,
) -> Result<Body, Status> {
    let options = options(&call.query, &address.name)?;
    let (namespace, name) = address.key();
    let pod = pod::read(call, address)?;
    let container = pod::container(&pod, call.query.text("container"))?.name.clone();
    let (Some(dirs), Some(_)) = (&call.app.logs, pod::node(&pod)) else {
        // No node has it, so nothing was written.
        return Ok(Body::empty());
    };
    let status = pod::status(&pod, &container);
    let previous = call.query.flag("previous");
    let uid = pod.uid().unwrap_or_default();
    let id = logs::choose(status, &uid, name, &container, previous)
        .map_err(|error| Status::bad_request(error.to_string()))?;
    let stream = logs::read(dirs, namespace, name, &id, options);
    let mut stop = call.app.stop.subscribe();
    let stopped = async move { crate::server::listen::stopped(&mut stop).await };
    let stream = futures::StreamExt::take_until(stream, Box::pin(stopped));
    // The place among the streams is held until the log has been read.
    let stream = futures::StreamExt::map(stream, move |chunk| {
        let _held = &permit;
        chunk
    });
    Ok(Body::from_stream(stream))
}

fn text(body: Body) -> Response {
    let mut response = Response::new(body);
    let plain = HeaderValue::from_static("text/plain");
    response.headers_mut().insert(header::CONTENT_TYPE, plain);
    response
}

fn options(query: &Query, pod: &str) -> Result<LogOptions, Status> {
    let tail_lines = query.integer("tailLines")?;
    let limit_bytes = query.integer("limitBytes")?;
    let since_seconds = query.integer("sinceSeconds")?;
    let since_time = match query.text("sinceTime") {
        "" => None,
        time => Some(time.parse::<Timestamp>().map_err(|_| {
            Status::bad_request(format!("parsing time {time:?} as RFC3339: cannot parse it"))
        })?),
    };
    let stream = query.text("stream");
    let mut errors = ErrorList::new();
    let mut invalid = |field: &str, value: Option<i64>, min: i64, why: &str| {
        if let Some(value) = value.filter(|&value| value < min) {
            errors.push(FieldError::invalid(&Path::new(field), value, why));
        }
    };
    invalid("tailLines", tail_lines, 0, "must be greater than or equal to 0");
    invalid("limitBytes", limit_bytes, 1, "must be greater than 0");
    if since_seconds.is_some() && since_time.is_some() {
        errors.push(FieldError::forbidden(
            &Path::new(""),
            "at most one of `sinceTime` or `sinceSeconds` may be specified",
        ));
    } else {
        invalid("sinceSeconds", since_seconds, 1, "must be greater than 0");
    }
    let stream = match stream {
        "" | "All" => LogStream::All,
        "Stdout" => LogStream::Stdout,
        "Stderr" => LogStream::Stderr,
        other => {
            let supported = ["All", "Stderr", "Stdout"];
            errors.push(FieldError::not_supported(&Path::new("stream"), other, &supported));
            LogStream::All
        }
    };
    if stream != LogStream::All && tail_lines.is_some() {
        errors.push(FieldError::forbidden(
            &Path::new(""),
            "`tailLines` and specific `stream` are mutually exclusive for now",
        ));
    }
    if !errors.is_empty() {
        return Err(Status::invalid_kind(("", "PodLogOptions"), pod, &errors));
    }
    let ago = |seconds: i64| {
        let past = Timestamp::now().saturating_sub(SignedDuration::from_secs(seconds));
        past.unwrap_or(Timestamp::MIN)
    };
    Ok(LogOptions {
        follow: query.flag("follow"),
        tail_lines: tail_lines.and_then(|lines| u64::try_from(lines).ok()),
        since: since_time.or_else(|| since_seconds.map(ago)),
        timestamps: query.flag("timestamps"),
        limit_bytes: limit_bytes.and_then(|bytes| u64::try_from(bytes).ok()),
        stream,
    })
}
