//! What is served: the legacy lists, and all of it at once for clients that ask for that.

use std::collections::BTreeMap;

use axum::response::Response;
use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use lockstep_api::{Registry, Resource};
use serde_json::{Map, Value, json};

use super::{
    App,
    negotiate::{self, Output},
    respond,
};

/// Answers `/api`, `/api/v1`, `/apis`, `/apis/{group}` and `/apis/{group}/{version}`; nothing when
/// there is no such group or version.
pub(crate) fn answer(
    app: &App,
    headers: &HeaderMap,
    segments: &[&str],
    output: Output,
) -> Option<Response> {
    let registry = app.cluster.registry();
    let is_core = segments[0] == "api";
    if segments.len() == 1
        && let Some(version) = negotiate::aggregated_discovery(headers)
    {
        return Some(aggregated(registry, is_core, version));
    }
    let value = match segments {
        ["api"] => json!({
            "kind": "APIVersions",
            "versions": ["v1"],
            "serverAddressByClientCIDRs": [],
        }),
        ["api", version] => resources(registry, "", version)?,
        ["apis"] => {
            let groups = groups(registry);
            let groups: Vec<Value> =
                groups.iter().map(|(name, versions)| group(name, versions)).collect();
            json!({ "kind": "APIGroupList", "apiVersion": "v1", "groups": groups })
        }
        ["apis", name] => {
            let mut value = group(name, groups(registry).get(name)?);
            let object = value.as_object_mut()?;
            object.insert("kind".to_owned(), "APIGroup".into());
            object.insert("apiVersion".to_owned(), "v1".into());
            value
        }
        ["apis", group, version] if !group.is_empty() => resources(registry, group, version)?,
        _ => return None,
    };
    Some(respond::value(StatusCode::OK, &value, output))
}

/// The named groups and their versions, the preferred one first.
fn groups(registry: &Registry) -> BTreeMap<&str, Vec<&str>> {
    let mut groups: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for resource in registry.iter().filter(|resource| !resource.group.is_empty()) {
        let versions = groups.entry(&resource.group).or_default();
        if !versions.contains(&&*resource.version) {
            versions.push(&resource.version);
        }
    }
    groups
}

fn group(name: &str, versions: &[&str]) -> Value {
    let listed: Vec<Value> = versions
        .iter()
        .map(|version| json!({ "groupVersion": format!("{name}/{version}"), "version": version }))
        .collect();
    json!({ "name": name, "versions": listed, "preferredVersion": listed.first() })
}

fn resources(registry: &Registry, group: &str, version: &str) -> Option<Value> {
    let mut listed = Vec::new();
    let mut group_version = String::new();
    for resource in registry.iter().filter(|r| r.group == group && r.version == version) {
        group_version = resource.api_version();
        if !resource.verbs.is_empty() {
            listed.push(legacy_resource(resource));
        }
        for sub in &resource.subresources {
            let mut entry = Map::new();
            entry.insert("name".to_owned(), format!("{}/{}", resource.plural, sub.name).into());
            entry.insert("singularName".to_owned(), "".into());
            entry.insert("namespaced".to_owned(), resource.is_namespaced().into());
            let mut kind = &resource.kind;
            if let Some((group, version, other)) = &sub.kind {
                entry.insert("group".to_owned(), group.to_string().into());
                entry.insert("version".to_owned(), version.to_string().into());
                kind = other;
            }
            entry.insert("kind".to_owned(), kind.to_string().into());
            entry.insert("verbs".to_owned(), sub.verbs.to_vec().into());
            listed.push(entry.into());
        }
    }
    (!listed.is_empty()).then(|| {
        json!({
            "kind": "APIResourceList",
            "apiVersion": "v1",
            "groupVersion": group_version,
            "resources": listed,
        })
    })
}

fn legacy_resource(resource: &Resource) -> Value {
    let mut entry = json!({
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.is_namespaced(),
        "kind": resource.kind,
        "verbs": resource.verbs,
    });
    if !resource.short_names.is_empty() {
        entry["shortNames"] = resource.short_names.iter().map(|name| name.to_string()).collect();
    }
    if !resource.categories.is_empty() {
        entry["categories"] = resource.categories.iter().map(|name| name.to_string()).collect();
    }
    entry
}

/// `APIGroupDiscoveryList`: the core group under `/api`, all others under `/apis`.
fn aggregated(registry: &Registry, is_core: bool, version: &'static str) -> Response {
    let mut groups: BTreeMap<&str, BTreeMap<&str, Vec<Value>>> = BTreeMap::new();
    for resource in registry.iter().filter(|resource| resource.group.is_empty() == is_core) {
        let versions = groups.entry(&resource.group).or_default();
        versions.entry(&resource.version).or_default().push(aggregated_resource(resource));
    }
    let items: Vec<Value> = groups
        .into_iter()
        .map(|(name, versions)| {
            let versions: Vec<Value> = versions
                .into_iter()
                .map(|(version, resources)| {
                    json!({ "version": version, "freshness": "Current", "resources": resources })
                })
                .collect();
            let metadata = if name.is_empty() { json!({}) } else { json!({ "name": name }) };
            json!({ "metadata": metadata, "versions": versions })
        })
        .collect();
    let value = json!({
        "kind": "APIGroupDiscoveryList",
        "apiVersion": format!("apidiscovery.k8s.io/{version}"),
        "metadata": {},
        "items": items,
    });
    let content_type = match version {
        "v2" => "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
        _ => "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList",
    };
    respond::typed(StatusCode::OK, content_type, Bytes::from(value.to_string()))
}

fn aggregated_resource(resource: &Resource) -> Value {
    let kind = |(group, version, kind): (&str, &str, &str)| json!({ "group": group, "version": version, "kind": kind });
    let own = kind((&resource.group, &resource.version, &resource.kind));
    let mut entry = json!({
        "resource": resource.plural,
        "responseKind": own,
        "scope": if resource.is_namespaced() { "Namespaced" } else { "Cluster" },
        "singularResource": resource.singular,
        "verbs": resource.verbs,
    });
    if !resource.short_names.is_empty() {
        entry["shortNames"] = resource.short_names.iter().map(|name| name.to_string()).collect();
    }
    if !resource.categories.is_empty() {
        entry["categories"] = resource.categories.iter().map(|name| name.to_string()).collect();
    }
    if !resource.subresources.is_empty() {
        entry["subresources"] = resource
            .subresources
            .iter()
            .map(|sub| {
                let response = match &sub.kind {
                    Some((group, version, name)) => kind((group, version, name)),
                    None => own.clone(),
                };
                json!({ "subresource": sub.name, "responseKind": response, "verbs": sub.verbs })
            })
            .collect();
    }
    entry
}
