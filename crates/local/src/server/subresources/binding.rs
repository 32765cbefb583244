//! POST of a Binding: a pod gets its node.

use axum::{body::Body, response::Response};
use lockstep_api::{
    Status,
    decode::{self, Gvk},
    json,
    strategy::Json,
};

use super::done;
use crate::server::{
    call::{Address, Call},
    options::MutationOptions,
};

/// Binds the pod of the path.
pub(crate) async fn bind(call: &Call, address: &Address, body: Body) -> Result<Response, Status> {
    let (binding, options) = read(call, body).await?;
    let write = call.write_options(&options);
    call.app.cluster.bind(&address.resource, address.key(), &binding, &write).await?;
    Ok(done(call))
}

/// Binds the pod named in the body: `POST /api/v1/namespaces/{namespace}/bindings`.
pub(crate) async fn bind_by_body(
    call: &Call,
    namespace: &str,
    body: Body,
) -> Result<Response, Status> {
    let (binding, options) = read(call, body).await?;
    let write = call.write_options(&options);
    let name = json::text(&binding, &["metadata", "name"]);
    let cluster = &call.app.cluster;
    let catalog = cluster.catalog();
    let pods = catalog.registry().get("", "v1", "pods").ok_or_else(Status::no_such_resource)?;
    cluster.bind(pods, (namespace, name), &binding, &write).await?;
    Ok(done(call))
}

async fn read(call: &Call, body: Body) -> Result<(Json, MutationOptions), Status> {
    let body = call.json_body(body).await?;
    let options = MutationOptions::read(&call.query, "CreateOptions")?;
    let kind = Gvk { group: "", version: "v1", kind: "Binding" };
    let decoded = decode::kind(kind, &body, options.field_validation)?;
    Ok((decoded.object, options))
}
