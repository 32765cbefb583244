//! GET of one object.

use std::sync::Arc;

use axum::response::Response;
use http::StatusCode;
use lockstep_api::Status;
use lockstep_store::Object;

use crate::server::{
    call::{Address, Call},
    options::parse_revision,
    present::Presenter,
    verbs::shown,
};

/// Shows one object.
pub(crate) async fn get(call: &Call, address: &Address) -> Result<Response, Status> {
    let presenter = Presenter::of_one(call, &address.resource)?;
    let object = fresh(call, address).await?;
    Ok(shown(call, &presenter, StatusCode::OK, &object, &[]))
}

/// An object as it is now. Reads are always of the latest published state, so a `resourceVersion`
/// asks for nothing that is not given, unless it is one that has not been reached yet.
pub(crate) async fn fresh(call: &Call, address: &Address) -> Result<Arc<Object>, Status> {
    let (namespace, name) = address.key();
    let asked = call.query.text("resourceVersion");
    let asked = if asked.is_empty() { Ok(0) } else { parse_revision(asked) };
    let cluster = &call.app.cluster;
    match asked.map_err(Status::bad_request)? {
        0 => cluster.get(&address.resource, namespace, name),
        revision => cluster.get_since(revision, &address.resource, namespace, name).await,
    }
}
