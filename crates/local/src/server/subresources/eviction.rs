//! POST of an Eviction: a pod is deleted, and says why.

use axum::{body::Body, response::Response};
use lockstep_api::{
    Status,
    decode::{self, Gvk},
    json,
};

use super::done;
use crate::server::{
    call::{Address, Call},
    options::{DeleteRequest, MutationOptions},
    verbs::asked,
};

/// Evicts the pod of the path.
pub(crate) async fn evict(call: &Call, address: &Address, body: Body) -> Result<Response, Status> {
    let body = call.json_body(body).await?;
    let options = MutationOptions::read(&call.query, "CreateOptions")?;
    let kind = Gvk { group: "policy", version: "v1", kind: "Eviction" };
    let eviction = decode::kind(kind, &body, options.field_validation)?.object;
    if json::text(&eviction, &["metadata", "name"]) != address.name {
        return Err(Status::bad_request("name in URL does not match name in Eviction object"));
    }
    let request = match eviction.get("deleteOptions") {
        None | Some(serde_json::Value::Null) => DeleteRequest::default(),
        Some(given) => DeleteRequest::from_body(given.to_string().as_bytes())?,
    };
    let mut write = call.write_options(&options);
    write.dry_run |= request.is_dry_run();
    let resource = &address.resource;
    call.app.cluster.evict(resource, address.key(), &asked(&request), &write).await?;
    Ok(done(call))
}
