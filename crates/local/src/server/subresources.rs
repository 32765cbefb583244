//! What lies below an object.

mod binding;
mod eviction;
mod log;
mod token;

pub(crate) use binding::bind_by_body;

use axum::{body::Body, response::Response};
use http::StatusCode;
use lockstep_api::{Resource, Status};
use tokio::sync::OwnedSemaphorePermit;

use super::{
    call::{Address, Call},
    error::{self, wrong_method},
    request::Verb,
    verbs,
};

/// What is below a pod in Kubernetes and not here yet, and what to do instead.
const LATER: [(&str, &str); 3] = [
    ("exec", "run the command on this machine, where the pod's processes are"),
    ("attach", "follow the container's output with `kubectl logs -f`"),
    ("portforward", "connect to the pod's own address, status.podIP, from this machine"),
];

/// Says of a subresource that it will come, when a client asks for one that will.
pub(crate) fn later(
    call: &Call,
    resource: &Resource,
    (namespace, name): (&str, &str),
    sub: &str,
) -> Option<Status> {
    let is_pod = resource.group.is_empty() && resource.plural == "pods";
    let (_, instead) = LATER.iter().find(|(later, _)| is_pod && *later == sub)?;
    if let Err(absent) = call.app.cluster.get(resource, namespace, name) {
        return Some(absent);
    }
    let message = format!(
        "{sub} is not served in this version of Lockstep, it comes with a later one; until then \
         {instead}"
    );
    Some(error::failure(StatusCode::NOT_IMPLEMENTED.as_u16(), "NotImplemented", message))
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
        ("status", Verb::Get) => verbs::get(call, address),
        ("status" | "finalize", Verb::Update) => {
            verbs::update(call, address, Some(sub), body).await
        }
        ("status", Verb::Patch) => verbs::patch(call, address, Some(sub), body).await,
        ("binding", Verb::Create) => binding::bind(call, address, body).await,
        ("eviction", Verb::Create) => eviction::evict(call, address, body).await,
        ("token", Verb::Create) => token::issue(call, address, body).await,
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
