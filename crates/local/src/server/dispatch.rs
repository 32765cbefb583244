//! From a path and a method to the verb that answers, or to the words that say there is none.

use std::sync::Arc;

use axum::{body::Body, response::Response};
use lockstep_api::{Resource, Status};
use tokio::sync::OwnedSemaphorePermit;

use super::{
    call::{Address, Call},
    error::{page_not_found, wrong_method},
    negotiate,
    request::{ResourcePath, Verb},
    respond,
    reviews::{self, is_review},
    subresources,
    top::{self, is_usage},
    verbs,
};

/// Answers a request about objects.
pub(crate) async fn resource(
    call: Call,
    path: ResourcePath,
    body: Body,
    permit: Option<OwnedSemaphorePermit>,
) -> Result<Response, Status> {
    let catalog = call.app.cluster.catalog();
    let registry = catalog.registry();
    let Some(resource) = registry.get(&path.group, &path.version, &path.resource) else {
        // Of groups of custom kinds, whatever is not defined is no path at all.
        let is_of_group = |resource: &&Arc<Resource>| resource.group == path.group;
        let mut of_group = registry.iter().filter(is_of_group);
        return match of_group.any(|resource| !resource.strategy.is_custom()) {
            true => Err(Status::no_such_resource()),
            false => Ok(page_not_found()),
        };
    };
    check_path(resource, &path)?;
    check_verb(resource, &path)?;
    refuse(resource, &path, &call)?;
    let deprecation = resource.strategy.deprecation().map(str::to_owned);
    let address = Address {
        resource: resource.clone(),
        namespace: path.namespace,
        name: path.name.unwrap_or_default(),
    };
    let mut response = match path.subresource {
        Some(sub) => subresources::answer(&call, &address, &sub, path.verb, body, permit).await,
        None => answer(&call, &address, path.verb, body, permit).await,
    }?;
    if let Some(text) = deprecation {
        respond::add_warnings(response.headers_mut(), &[text]);
    }
    Ok(response)
}

/// Refuses new objects of kinds that are known by name only. All else about them is answered as
/// for any kind of which there happens to be nothing.
fn refuse(resource: &Resource, path: &ResourcePath, call: &Call) -> Result<(), Status> {
    let Some(instead) = resource.strategy.refusal() else { return Ok(()) };
    let is_creation = match path.verb {
        Verb::Create => true,
        Verb::Patch => negotiate::content_type(&call.headers).as_deref() == Some(verbs::APPLY),
        _ => false,
    };
    if is_creation { Err(Status::refused(resource, instead)) } else { Ok(()) }
}

/// Answers a request about objects themselves.
async fn answer(
    call: &Call,
    address: &Address,
    verb: Verb,
    body: Body,
    permit: Option<OwnedSemaphorePermit>,
) -> Result<Response, Status> {
    match verb {
        Verb::Get if is_usage(&address.resource) => top::one(call, address).await,
        Verb::Get => verbs::get(call, address).await,
        Verb::List if is_usage(&address.resource) => top::all(call, address).await,
        Verb::List => verbs::list(call, address).await,
        Verb::Watch => verbs::watch(call, address, permit).await,
        Verb::Create if is_review(&address.resource) => reviews::answer(call, address, body).await,
        Verb::Create if address.resource.kind == "Binding" => {
            subresources::bind_by_body(call, address.namespace(), body).await
        }
        Verb::Create => verbs::create(call, address, body).await,
        Verb::Update => verbs::update(call, address, None, body).await,
        Verb::Patch => verbs::patch(call, address, None, body).await,
        Verb::Delete => verbs::delete(call, address, body).await,
        Verb::DeleteCollection => verbs::delete_collection(call, address, body).await,
        Verb::Unknown => Err(wrong_method()),
    }
}

/// Whether such a path can exist for the resource at all.
fn check_path(resource: &Resource, path: &ResourcePath) -> Result<(), Status> {
    let is_collection = path.name.is_none();
    let is_scope_right = match (&path.namespace, resource.is_namespaced()) {
        (Some(namespace), true) => !namespace.is_empty(),
        // Only collections can be asked for across namespaces.
        (None, true) => is_collection,
        (None, false) => true,
        (Some(_), false) => false,
    };
    let is_named = path.name.as_deref() != Some("");
    let is_below_known = path
        .subresource
        .as_deref()
        .is_none_or(|sub| resource.subresource(sub).is_some() && !path.is_deeper);
    // A resource without verbs of its own exists only through what is below it.
    // Of one that can only be created there is nothing to name.
    let is_there = match resource.verbs {
        [] => path.subresource.is_some(),
        ["create"] => path.name.is_none(),
        _ => true,
    };
    if is_scope_right && is_named && is_below_known && is_there {
        return Ok(());
    }
    match path.name.as_deref() {
        // Whatever there is not below a custom object, the object is named.
        Some(name) if is_scope_right && is_named && resource.strategy.is_custom() => {
            Err(Status::not_found(resource, name))
        }
        _ => Err(Status::no_such_resource()),
    }
}

fn check_verb(resource: &Resource, path: &ResourcePath) -> Result<(), Status> {
    let allowed = match path.subresource.as_deref().and_then(|sub| resource.subresource(sub)) {
        Some(sub) => sub.verbs,
        None => resource.verbs,
    };
    let is_allowed = allowed.contains(&path.verb.name());
    let is_collection = path.name.is_none();
    let is_placed_right = match path.verb {
        Verb::Create if path.subresource.is_none() => {
            is_collection && path.namespace.is_some() == resource.is_namespaced()
        }
        Verb::DeleteCollection => path.namespace.is_some() == resource.is_namespaced(),
        Verb::Update | Verb::Patch | Verb::Delete | Verb::Get => !is_collection,
        Verb::List | Verb::Watch | Verb::Create | Verb::Unknown => true,
    };
    if is_allowed && is_placed_right { Ok(()) } else { Err(wrong_method()) }
}
