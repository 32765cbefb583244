//! Statuses about requests rather than objects, and how a Status becomes an answer.

use axum::{body::Body, response::Response};
use http::{HeaderValue, StatusCode, header};
use lockstep_api::{ErrorList, Status, status::Details};

use super::respond;
use crate::server::negotiate::Output;

/// 422 about the options of a request: `ListOptions.meta.k8s.io "" is invalid: ...`.
pub(crate) fn invalid_options(kind: &str, errors: &ErrorList) -> Status {
    Status::invalid_kind(("meta.k8s.io", kind), "", errors)
}

/// 405 for a path that is there and a method it has no use for.
pub(crate) fn wrong_method() -> Status {
    let message = "the server does not allow this method on the requested resource";
    failure(405, "MethodNotAllowed", message).with_details(Details::default())
}

/// 408: the client did not send its body in time.
pub(crate) fn body_too_slow() -> Status {
    failure(408, "Timeout", "the body of the request did not arrive in time")
}

/// A failure with nothing but its words.
pub(crate) fn failure(code: u16, reason: &str, message: impl Into<String>) -> Status {
    let mut status = Status::default();
    (status.code, status.reason, status.message) = (code, reason.to_owned(), message.into());
    status
}

/// The answer that says a Status.
pub(crate) fn response(status: &Status, output: Output) -> Response {
    let code = StatusCode::from_u16(status.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let value = serde_json::to_value(status).unwrap_or_default();
    // An error is never a table, whatever was asked for.
    let mut response = respond::value(code, &value, output);
    let retry_after = status.details.as_ref().map_or(0, |details| details.retry_after_seconds);
    if retry_after > 0 {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(retry_after));
    }
    response
}

/// 404 outside of the API: plain text, as Go's server gives it.
pub(crate) fn page_not_found() -> Response {
    let mut response = Response::new(Body::from("404 page not found\n"));
    *response.status_mut() = StatusCode::NOT_FOUND;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}
