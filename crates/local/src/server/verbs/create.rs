//! POST of a new object.

use axum::{body::Body, response::Response};
use http::StatusCode;
use lockstep_api::{Status, decode};

use crate::server::{
    call::{Address, Call},
    options::MutationOptions,
    verbs::written,
};

/// Creates an object.
pub(crate) async fn create(call: &Call, address: &Address, body: Body) -> Result<Response, Status> {
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
    written(call, address, StatusCode::CREATED, &created.object, &warnings)
}
