//! How many replicas an object wants, of whatever kind it is.

use axum::{body::Body, response::Response};
use http::StatusCode;
use lockstep_api::{
    Resource, Status, decode,
    definition::scale::{self, Scale},
    json::{self, object_mut},
    strategy::Json,
};
use lockstep_store::{Object, patch::Patch};
use serde_json::Value;

use crate::{
    cluster::WriteOptions,
    server::{
        call::{Address, Call},
        limits::read_body,
        negotiate::content_type,
        options::MutationOptions,
        respond,
    },
};

/// How often a write is tried again that says nothing of the version it is based on.
const ATTEMPTS_MAX: usize = 20;

/// Shows how an object is scaled.
pub(crate) fn get(call: &Call, address: &Address) -> Result<Response, Status> {
    let object = call.app.cluster.get(&address.resource, address.namespace(), &address.name)?;
    shown(call, &scale_of(address, &object)?)
}

/// Replaces what is wanted.
pub(crate) async fn update(call: &Call, address: &Address, body: Body) -> Result<Response, Status> {
    let body = call.json_body(body).await?;
    let options = MutationOptions::read(&call.query, "UpdateOptions")?;
    let decoded = decode::object(&scale::resource(), &body, options.field_validation)?;
    let write = call.write_options(&options);
    change(call, address, &write, |_| Ok(decoded.object.clone())).await
}

/// Changes what is wanted.
pub(crate) async fn patch(call: &Call, address: &Address, body: Body) -> Result<Response, Status> {
    let kind = content_type(&call.headers);
    let body = read_body(body).await?;
    let patch = match kind.as_deref() {
        Some("application/json-patch+json") => Patch::json(&body)?,
        Some("application/merge-patch+json") | None => Patch::merge(&body)?,
        Some(_) => return Err(Status::unsupported_patch()),
    };
    let options = MutationOptions::read(&call.query, "PatchOptions")?;
    let write = call.write_options(&options);
    let validation = options.field_validation;
    let resource = scale::resource();
    change(call, address, &write, |current| {
        patch.apply(&resource, current, validation).map(|decoded| decoded.object)
    })
    .await
}

/// Writes what `wanted` makes of the current scale.
async fn change(
    call: &Call,
    address: &Address,
    write: &WriteOptions,
    wanted: impl Fn(&Json) -> Result<Json, Status>,
) -> Result<Response, Status> {
    let cluster = &call.app.cluster;
    let scale = scaling(&address.resource)?;
    for _ in 0..ATTEMPTS_MAX {
        let found = cluster.get(&address.resource, address.namespace(), &address.name)?;
        let current = scale_of(address, &found)?;
        let wanted = wanted(&current)?;
        let based_on = json::text(&wanted, &["metadata", "resourceVersion"]);
        let is_stated = !based_on.is_empty()
            && based_on != json::text(&current, &["metadata", "resourceVersion"]);
        if is_stated {
            return Err(Status::modified(&address.resource, &address.name));
        }
        let mut object = address.resource.strategy.from_stored(found.json());
        scale.apply(&mut object, &wanted);
        let revision = found.revision().to_string();
        object_mut(&mut object, "metadata").insert("resourceVersion".to_owned(), revision.into());
        match cluster.update(&address.resource, None, address.key(), object, write).await {
            Ok(written) => return shown(call, &scale_of(address, &written.object)?),
            // Somebody else was faster, and nothing was said of the version.
            Err(status) if status.reason == "Conflict" => {}
            Err(status) => return Err(status),
        }
    }
    Err(Status::modified(&address.resource, &address.name))
}

fn scaling(resource: &Resource) -> Result<&Scale, Status> {
    resource.strategy.scale().ok_or_else(Status::no_such_resource)
}

fn scale_of(address: &Address, object: &Object) -> Result<Json, Status> {
    let shown = address.resource.strategy.from_stored(object.json());
    let scale = scaling(&address.resource)?;
    let found = scale.of(&shown).map_err(Status::bad_request)?;
    found.ok_or_else(|| {
        let path = scale.spec_keys().join(".");
        Status::internal(format!("the spec replicas field \".{path}\" does not exist"))
    })
}

fn shown(call: &Call, scale: &Json) -> Result<Response, Status> {
    let mut whole = scale.clone();
    whole.insert("apiVersion".to_owned(), "autoscaling/v1".into());
    whole.insert("kind".to_owned(), "Scale".into());
    Ok(respond::value(StatusCode::OK, &Value::Object(whole), call.output))
}
