//! DELETE of one object.

use axum::{body::Body, response::Response};
use bytes::Bytes;
use http::StatusCode;
use lockstep_api::Status;
use lockstep_store::rest::DeleteOptions;

use crate::{
    cluster::WriteOptions,
    server::{
        call::{Address, Call},
        options::DeleteRequest,
        respond,
        verbs::written,
    },
};

/// Deletes an object, or begins to.
pub(crate) async fn delete(call: &Call, address: &Address, body: Body) -> Result<Response, Status> {
    let request = options(call, body).await?;
    let deleted = call
        .app
        .cluster
        .delete(&address.resource, address.key(), &asked(&request), &write_options(call, &request))
        .await?;
    let code = match request.expects_accepted() && !deleted.is_gone {
        true => StatusCode::ACCEPTED,
        false => StatusCode::OK,
    };
    if !deleted.is_gone || address.resource.strategy.delete_returns_object() {
        return written(call, address, code, &deleted.object, &[]);
    }
    let status = Status::deleted(&address.resource, &address.name, &deleted.object.meta.uid);
    let status = serde_json::to_vec(&status).unwrap_or_default();
    Ok(respond::json(code, Bytes::from(status), call.output))
}

/// The options of a delete: in the body, or else in the query.
pub(crate) async fn options(call: &Call, body: Body) -> Result<DeleteRequest, Status> {
    let body = call.json_body(body).await?;
    if body.is_empty() {
        DeleteRequest::from_query(&call.query)
    } else {
        DeleteRequest::from_body(&body)
    }
}

fn asked(request: &DeleteRequest) -> DeleteOptions {
    DeleteOptions {
        grace_period_seconds: request.grace_period_seconds,
        propagation: request.propagation(),
        orphan_dependents: None,
        uid: request.uid().map(str::to_owned),
        resource_version: request.resource_version().map(str::to_owned),
    }
}

fn write_options(call: &Call, request: &DeleteRequest) -> WriteOptions {
    WriteOptions {
        dry_run: request.is_dry_run(),
        user: call.user.name.clone(),
        ..WriteOptions::default()
    }
}

/// Deletes a collection.
pub(crate) async fn delete_collection(
    _call: &Call,
    _address: &Address,
    _body: Body,
) -> Result<Response, Status> {
    Err(crate::server::error::wrong_method())
}
