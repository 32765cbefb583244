//! What lies below an object.

mod binding;
mod eviction;
mod log;

pub(crate) use binding::bind_by_body;

use axum::{body::Body, response::Response};
use http::StatusCode;
use lockstep_api::Status;
use tokio::sync::OwnedSemaphorePermit;

use super::{
    call::{Address, Call},
    error::{self, wrong_method},
    request::Verb,
    verbs,
};

/// Answers a request about the subresource `sub` of an object.
pub(crate) async fn answer(
    call: &Call,
    address: &Address,
    sub: &str,
    verb: Verb,
    body: Body,
    permit: Option<OwnedSemaphorePermit>,
) -> Result<Response, Status> {
    match (sub, verb) {
        ("status", Verb::Get) => verbs::get(call, address),
        ("status" | "finalize", Verb::Update) => {
            verbs::update(call, address, Some(sub), body).await
        }
        ("status", Verb::Patch) => verbs::patch(call, address, Some(sub), body).await,
        ("binding", Verb::Create) => binding::bind(call, address, body).await,
        ("eviction", Verb::Create) => eviction::evict(call, address, body).await,
        ("log", Verb::Get) => log::log(call, address, permit),
        _ => Err(wrong_method()),
    }
}

/// The answer to a request that did something and has nothing to show for it.
fn done(call: &Call) -> Response {
    let mut status = Status::default();
    "Success".clone_into(&mut status.status);
    status.code = StatusCode::CREATED.as_u16();
    error::response(&status, call.output)
}
