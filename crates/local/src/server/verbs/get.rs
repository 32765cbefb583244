//! GET of one object.

use axum::response::Response;
use http::StatusCode;
use lockstep_api::Status;

use crate::server::{
    call::{Address, Call},
    present::Presenter,
    verbs::shown,
};

/// Shows one object. Reads are always of the latest published state, so `resourceVersion` asks for
/// nothing that is not given.
pub(crate) fn get(call: &Call, address: &Address) -> Result<Response, Status> {
    let presenter = Presenter::of_one(call, &address.resource)?;
    let (namespace, name) = address.key();
    let object = call.app.cluster.get(&address.resource, namespace, name)?;
    Ok(shown(call, &presenter, StatusCode::OK, &object, &[]))
}
