//! DELETE of one object, or of a collection.

use axum::{body::Body, response::Response};
use bytes::Bytes;
use futures::StreamExt;
use http::StatusCode;
use lockstep_api::Status;
use lockstep_store::rest::DeleteOptions;

use crate::{
    cluster::{self, WriteOptions},
    server::{
        call::{Address, Call},
        options::{DeleteRequest, ListOptions},
        present::Presenter,
        respond,
        verbs::shown,
    },
};

/// Deletions of a collection that are under way at the same time: they share commits.
const CONCURRENT_DELETIONS: usize = 64;

/// Deletes an object, or begins to.
pub(crate) async fn delete(call: &Call, address: &Address, body: Body) -> Result<Response, Status> {
    let presenter = Presenter::of_one(call, &address.resource)?;
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
        return Ok(shown(call, &presenter, code, &deleted.object, &deleted.warnings));
    }
    let status = Status::deleted(&address.resource, &address.name, &deleted.object.meta.uid);
    let status = serde_json::to_vec(&status).unwrap_or_default();
    let mut response = respond::json(code, Bytes::from(status), call.output);
    respond::add_warnings(response.headers_mut(), &deleted.warnings);
    Ok(response)
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

/// What a request asks of the store.
pub(crate) fn asked(request: &DeleteRequest) -> DeleteOptions {
    DeleteOptions {
        grace_period_seconds: request.grace_period_seconds,
        propagation: request.propagation(),
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

/// Deletes what is selected of a collection, and shows what that was.
pub(crate) async fn delete_collection(
    call: &Call,
    address: &Address,
    body: Body,
) -> Result<Response, Status> {
    let presenter = Presenter::of_list(call, &address.resource)?;
    let listed = ListOptions::read(&call.query, false)?;
    let filter = call.filter(address, &listed)?;
    let request = options(call, body).await?;
    let (delete, write) = (asked(&request), write_options(call, &request));
    let cluster = &call.app.cluster;
    let asked = cluster::ListOptions {
        limit: listed.limit,
        continue_token: Some(listed.continue_token.clone()),
        ..cluster::ListOptions::default()
    };
    let page = cluster.list(&filter, &asked).await?;
    let resource = &address.resource;
    let deletions = page.items.clone().into_iter().map(|object| {
        let (delete, write) = (&delete, &write);
        async move {
            let key = (&*object.meta.namespace, &*object.meta.name);
            match cluster.delete(resource, key, delete, write).await {
                // Somebody else was faster.
                Err(status) if status.code == 404 => Ok(()),
                other => other.map(drop),
            }
        }
    });
    let mut running = futures::stream::iter(deletions).buffer_unordered(CONCURRENT_DELETIONS);
    while let Some(outcome) = running.next().await {
        outcome?;
    }
    drop(running);
    Ok(super::list::shown(call, presenter, page))
}
