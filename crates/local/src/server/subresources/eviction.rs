//! POST of an Eviction: a pod is deleted, and says why.

use axum::{body::Body, response::Response};
use bytes::Bytes;
use lockstep_api::{
    Status,
    decode::{self, Gvk},
    json,
};
use serde_json::Value;

use super::done;
use crate::server::{
    call::{Address, Call},
    options::{DeleteRequest, MutationOptions},
    verbs::asked,
};

/// Evictions of `v1beta1` are still sent, and are no others than those of `v1`.
fn as_v1(body: Bytes) -> Bytes {
    match serde_json::from_slice::<Value>(&body) {
        Ok(mut value) if value["apiVersion"] == "policy/v1beta1" => {
            value["apiVersion"] = "policy/v1".into();
            value.to_string().into()
        }
        _ => body,
    }
}

/// Evicts the pod of the path.
pub(crate) async fn evict(call: &Call, address: &Address, body: Body) -> Result<Response, Status> {
    let body = call.json_body(body).await?;
    let options = MutationOptions::read(&call.query, "CreateOptions")?;
    let kind = Gvk { group: "policy", version: "v1", kind: "Eviction" };
    let eviction = decode::kind(kind, &as_v1(body), options.field_validation)?.object;
    if json::text(&eviction, &["metadata", "name"]) != address.name {
        return Err(Status::bad_request("name in URL does not match name in Eviction object"));
    }
    let request = match eviction.get("deleteOptions") {
        None | Some(Value::Null) => DeleteRequest::default(),
        Some(given) => DeleteRequest::from_body(given.to_string().as_bytes())?,
    };
    let mut write = call.write_options(&options);
    write.dry_run |= request.is_dry_run();
    let resource = &address.resource;
    call.app.cluster.evict(resource, address.key(), &asked(&request), &write).await?;
    Ok(done(call))
}
