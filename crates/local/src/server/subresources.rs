//! What lies below an object.

mod attach;
mod binding;
mod eviction;
mod exec;
mod log;
mod pod;
mod portforward;
mod remote;
mod scale;
mod token;

pub(crate) use binding::bind_by_body;

use axum::{body::Body, response::Response};
use http::StatusCode;
use lockstep_api::Status;
use tokio::sync::OwnedSemaphorePermit;

use super::{
    call::{Address, Call},
    error::{self, wrong_method},
    request::{ResourcePath, Verb},
    verbs,
};

/// Whether a request is for a connection to a pod rather than about an object.
pub(crate) fn is_connection(path: &ResourcePath) -> bool {
    let is_pod = path.group.is_empty() && path.resource == "pods";
    let sub = path.subresource.as_deref();
    is_pod && matches!(sub, Some("exec" | "attach" | "portforward"))
}

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
        ("status", Verb::Get) => verbs::get(call, address).await,
        ("status" | "finalize", Verb::Update) => {
            verbs::update(call, address, Some(sub), body).await
        }
        ("status", Verb::Patch) => verbs::patch(call, address, Some(sub), body).await,
        ("scale", Verb::Get) => scale::get(call, address).await,
        ("scale", Verb::Update) => scale::update(call, address, body).await,
        ("scale", Verb::Patch) => scale::patch(call, address, body).await,
        ("binding", Verb::Create) => binding::bind(call, address, body).await,
        ("eviction", Verb::Create) => eviction::evict(call, address, body).await,
        ("token", Verb::Create) => token::issue(call, address, body).await,
        ("log", Verb::Get) => log::log(call, address, permit),
        ("exec", Verb::Get | Verb::Create) => exec::exec(call, address, permit),
        ("attach", Verb::Get | Verb::Create) => attach::attach(call, address, permit),
        ("portforward", Verb::Get | Verb::Create) => portforward::open(call, address, permit),
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
