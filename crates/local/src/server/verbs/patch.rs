//! PATCH of an object, or of a part of it.

use axum::{body::Body, response::Response};
use http::StatusCode;
use lockstep_api::Status;
use lockstep_store::patch::Patch;

use crate::server::{
    body::configuration,
    call::{Address, Call},
    limits::read_body,
    negotiate::content_type,
    options::MutationOptions,
    present::Presenter,
    verbs::shown,
};

/// A list of operations.
pub(crate) const JSON: &str = "application/json-patch+json";
/// The members that change.
pub(crate) const MERGE: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
/// Server-side apply.
pub(crate) const APPLY: &str = "application/apply-patch+yaml";

/// Changes an object, or the part the subresource `sub` stands for.
pub(crate) async fn patch(
    call: &Call,
    address: &Address,
    sub: Option<&str>,
    body: Body,
) -> Result<Response, Status> {
    let resource = &address.resource;
    let presenter = Presenter::of_one(call, resource)?;
    let is_built_in = resource.takes_strategic_patches();
    let accepted: &[&str] =
        if is_built_in { &[JSON, MERGE, STRATEGIC, APPLY] } else { &[JSON, MERGE, APPLY] };
    let kind = match content_type(&call.headers).as_deref() {
        Some(given) => accepted.iter().copied().find(|&kind| kind == given),
        // The Python client says nothing and means the kind's own way.
        None => Some(if is_built_in { STRATEGIC } else { MERGE }),
    };
    let kind = kind.ok_or_else(|| match is_built_in {
        true => Status::unsupported_patch(),
        false => Status::unsupported_media_type(accepted),
    })?;
    let body = read_body(body).await?;
    let cluster = &call.app.cluster;
    let patched = if kind == APPLY {
        let options = MutationOptions::read(&call.query, "ApplyOptions")?;
        let write = call.write_options(&options);
        let config = configuration(&body, call.query.flag("force"))?;
        cluster.apply(resource, sub, address.key(), &config, &write).await?
    } else {
        let options = MutationOptions::read(&call.query, "PatchOptions")?;
        let patch = match kind {
            JSON => Patch::json(&body)?,
            MERGE => Patch::merge(&body)?,
            _ => Patch::strategic(&body)?,
        };
        let write = call.write_options(&options);
        cluster.patch(resource, sub, address.key(), &patch, &write).await?
    };
    let code = if patched.is_created { StatusCode::CREATED } else { StatusCode::OK };
    Ok(shown(call, &presenter, code, &patched.object, &patched.warnings))
}
