//! What lies below an object.

use axum::{body::Body, response::Response};
use lockstep_api::Status;
use tokio::sync::OwnedSemaphorePermit;

use super::{
    call::{Address, Call},
    error::wrong_method,
    request::Verb,
    verbs,
};

/// Answers a request about the subresource `sub` of an object.
pub(crate) async fn answer(
    call: &Call,
    address: Address,
    sub: &str,
    verb: Verb,
    body: Body,
    _permit: Option<OwnedSemaphorePermit>,
) -> Result<Response, Status> {
    match (sub, verb) {
        ("status", Verb::Get) => verbs::get(call, &address),
        ("status" | "finalize", Verb::Update) => {
            verbs::update(call, &address, Some(sub), body).await
        }
        ("status", Verb::Patch) => verbs::patch(call, &address, Some(sub), body).await,
        _ => Err(wrong_method()),
    }
}
