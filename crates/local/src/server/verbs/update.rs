//! PUT of an object, or of a part of it.

use axum::{body::Body, response::Response};
use http::StatusCode;
use lockstep_api::{Status, decode};

use crate::server::{
    call::{Address, Call},
    options::MutationOptions,
    present::Presenter,
    verbs::shown,
};

/// Replaces an object, or the part the subresource `sub` stands for.
pub(crate) async fn update(
    call: &Call,
    address: &Address,
    sub: Option<&str>,
    body: Body,
) -> Result<Response, Status> {
    let presenter = Presenter::of_one(call, &address.resource)?;
    let body = call.json_body(body).await?;
    let options = MutationOptions::read(&call.query, "UpdateOptions")?;
    let decoded = decode::object(&address.resource, &body, options.field_validation)?;
    let write = call.write_options(&options);
    let updated = call
        .app
        .cluster
        .update(&address.resource, sub, address.key(), decoded.object, &write)
        .await?;
    let warnings = [decoded.warnings, updated.warnings].concat();
    let code = if updated.is_created { StatusCode::CREATED } else { StatusCode::OK };
    Ok(shown(call, &presenter, code, &updated.object, &warnings))
}
