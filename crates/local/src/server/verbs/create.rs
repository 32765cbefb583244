//! POST of a new object.

use axum::{body::Body, response::Response};
use http::StatusCode;
use lockstep_api::{Status, decode};

use crate::server::{
    call::{Address, Call},
    options::MutationOptions,
    present::Presenter,
    verbs::shown,
};

/// Creates an object.
pub(crate) async fn create(call: &Call, address: &Address, body: Body) -> Result<Response, Status> {
    let presenter = Presenter::of_one(call, &address.resource)?;
    let body = call.json_body(body).await?;
    let options = MutationOptions::read(&call.query, "CreateOptions")?;
    let decoded = decode::object(&address.resource, &body, options.field_validation)?;
    let write = call.write_options(&options);
    let created = call
        .app
        .cluster
        .create(&address.resource, address.namespace(), decoded.object, &write)
        .await?;
    let warnings = [decoded.warnings, created.warnings].concat();
    Ok(shown(call, &presenter, StatusCode::CREATED, &created.object, &warnings))
}
