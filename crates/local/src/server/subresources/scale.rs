//! How many replicas an object wants, of whatever kind it is.

use axum::{body::Body, response::Response};
use http::StatusCode;
use lockstep_api::{Status, decode, definition::scale, strategy::Json};
use lockstep_store::{Object, patch::Patch, rest::Scaling};
use serde_json::Value;

use crate::{
    cluster::WriteOptions,
    server::{
        body::configuration,
        call::{Address, Call},
        limits::read_body,
        negotiate::content_type,
        options::MutationOptions,
        respond, verbs,
    },
};

/// Shows how an object is scaled.
pub(crate) async fn get(call: &Call, address: &Address) -> Result<Response, Status> {
    let object = verbs::fresh(call, address).await?;
    let (scale, is_said) = scale_of(address, &object)?;
    if !is_said {
        let path = address.resource.strategy.scale().map_or("", scale::Scale::spec_path);
        let why = format!("the spec replicas field {path:?} does not exist");
        return Err(Status::internal(why));
    }
    Ok(shown(call, scale, &[]))
}

/// Replaces what is wanted.
pub(crate) async fn update(call: &Call, address: &Address, body: Body) -> Result<Response, Status> {
    let body = call.json_body(body).await?;
    let options = MutationOptions::read(&call.query, "UpdateOptions")?;
    let decoded = decode::object(&scale::resource(), &body, options.field_validation)?;
    let write = call.write_options(&options);
    let mut response = change(call, address, Scaling::Replaced(&decoded.object), &write).await?;
    respond::add_warnings(response.headers_mut(), &decoded.warnings);
    Ok(response)
}

/// Changes what is wanted.
pub(crate) async fn patch(call: &Call, address: &Address, body: Body) -> Result<Response, Status> {
    let kind = content_type(&call.headers);
    let kind = kind.as_deref().unwrap_or(verbs::MERGE);
    if ![verbs::JSON, verbs::MERGE, verbs::APPLY].contains(&kind) {
        let accepted = &[verbs::JSON, verbs::MERGE, verbs::APPLY];
        return Err(Status::unsupported_media_type(accepted));
    }
    let body = read_body(body).await?;
    if kind == verbs::APPLY {
        let options = MutationOptions::read(&call.query, "ApplyOptions")?;
        let config = configuration(&body, call.query.flag("force"))?;
        let write = call.write_options(&options);
        return change(call, address, Scaling::Applied(&config), &write).await;
    }
    let options = MutationOptions::read(&call.query, "PatchOptions")?;
    let is_json = kind == verbs::JSON;
    let patch = if is_json { Patch::json(&body) } else { Patch::merge(&body) }?;
    let write = call.write_options(&options);
    change(call, address, Scaling::Patched(&patch), &write).await
}

async fn change(
    call: &Call,
    address: &Address,
    scaling: Scaling<'_>,
    write: &WriteOptions,
) -> Result<Response, Status> {
    let cluster = &call.app.cluster;
    let written = cluster.scale(&address.resource, address.key(), scaling, write).await?;
    let (scale, _) = scale_of(address, &written.object)?;
    Ok(shown(call, scale, &written.warnings))
}

fn scale_of(address: &Address, object: &Object) -> Result<(Json, bool), Status> {
    let strategy = &address.resource.strategy;
    let scale = strategy.scale().ok_or_else(Status::no_such_resource)?;
    scale.of(&strategy.from_stored(object.json())).map_err(Status::bad_request)
}

fn shown(call: &Call, mut scale: Json, warnings: &[String]) -> Response {
    scale.insert("apiVersion".to_owned(), "autoscaling/v1".into());
    scale.insert("kind".to_owned(), "Scale".into());
    let mut response = respond::value(StatusCode::OK, &Value::Object(scale), call.output);
    respond::add_warnings(response.headers_mut(), warnings);
    response
}
