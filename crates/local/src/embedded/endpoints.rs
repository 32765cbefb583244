//! What the service `kubernetes` leads to: Endpoints and an EndpointSlice with the address that the
//! server listens on. Upstream too the API server writes them itself and puts them right again
//! every ten seconds, whatever somebody has made of them.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use futures::future;
use lockstep_api::{Resource, Status, json::object_mut, strategy::Json};
use lockstep_store::rest::DeleteOptions;
use serde_json::{Value, json};
use tokio::time::{MissedTickBehavior, interval};
use tracing::warn;

use super::{
    StartError,
    bootstrap::{create, options},
};
use crate::cluster::Cluster;

/// How long what somebody has made of them stays.
const EVERY: Duration = Duration::from_secs(10);

const NAMESPACE: &str = "default";
const NAME: &str = "kubernetes";

/// Makes them say where the server listens, or that it does not.
pub(super) async fn write(cluster: &Cluster, at: Option<SocketAddr>) -> Result<(), StartError> {
    let at = at.map(reached);
    // Boxed: each holds all that a write takes.
    let of_endpoints = Box::pin(put(cluster, ("", "v1", "endpoints"), endpoints(at), at.is_some()));
    let kind = ("discovery.k8s.io", "v1", "endpointslices");
    let of_slice = Box::pin(put(cluster, kind, slice(at), at.is_some()));
    future::try_join(of_endpoints, of_slice).await.map(drop)
}

/// Keeps them so. Never ends.
pub(super) async fn keep(cluster: &Cluster, at: Option<SocketAddr>) {
    let mut ticks = interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        if let Err(error) = write(cluster, at).await {
            warn!(%error, "the endpoints of the API server are not written, trying again");
        }
    }
}

/// An address to reach the server at: who listens everywhere listens on the loopback one.
fn reached(bound: SocketAddr) -> SocketAddr {
    let address = match bound.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(address, bound.port())
}

fn endpoints(at: Option<SocketAddr>) -> Value {
    // Whoever mirrors Endpoints into slices leaves these alone: they have one.
    let labels = json!({ "endpointslice.kubernetes.io/skip-mirror": "true" });
    let subsets = at.map(|at| {
        json!([{
            "addresses": [{ "ip": at.ip().to_string() }],
            "ports": [{ "name": "https", "port": at.port(), "protocol": "TCP" }],
        }])
    });
    let mut wanted = json!({ "metadata": { "name": NAME, "labels": labels } });
    if let Some(subsets) = subsets {
        wanted["subsets"] = subsets;
    }
    wanted
}

fn slice(at: Option<SocketAddr>) -> Value {
    let labels = json!({ "kubernetes.io/service-name": NAME });
    let family = if at.is_some_and(|at| at.is_ipv6()) { "IPv6" } else { "IPv4" };
    let endpoints = at
        .iter()
        .map(|at| json!({ "addresses": [at.ip().to_string()], "conditions": { "ready": true } }));
    let ports =
        at.iter().map(|at| json!({ "name": "https", "port": at.port(), "protocol": "TCP" }));
    json!({
        "metadata": { "name": NAME, "labels": labels },
        "addressType": family,
        "endpoints": Vec::from_iter(endpoints),
        "ports": Vec::from_iter(ports),
    })
}

/// Makes an object what it should be. Nothing is written when it is that already, and nothing is
/// made that `is_needed` says nobody needs.
async fn put(
    cluster: &Cluster,
    (group, version, plural): (&str, &str, &str),
    wanted: Value,
    is_needed: bool,
) -> Result<(), StartError> {
    let catalog = cluster.catalog();
    let kind = catalog.registry().get(group, version, plural).map(Arc::clone);
    let kind = kind.expect("endpoints are built in");
    let failed = |source: Status| {
        let what = format!("{} {NAME:?}", kind.group_resource());
        StartError::Bootstrap { what, source }
    };
    let Value::Object(wanted) = wanted else { return Ok(()) };
    let Ok(old) = cluster.get(&kind, NAMESPACE, NAME) else {
        return if is_needed { create(cluster, &kind, NAMESPACE, wanted).await } else { Ok(()) };
    };
    let old = old.json();
    if old.get("addressType") != wanted.get("addressType") {
        // A slice has addresses of one family for all its life.
        delete(cluster, &kind).await.map_err(failed)?;
        return create(cluster, &kind, NAMESPACE, wanted).await;
    }
    let next = changed(old, wanted);
    cluster.update(&kind, None, (NAMESPACE, NAME), next, &options()).await.map_err(failed)?;
    Ok(())
}

/// `old` with what `wanted` says: its own metadata but for the labels, and nothing else of its own.
fn changed(old: Json, mut wanted: Json) -> Json {
    let labels = wanted.get_mut("metadata").map(|meta| meta["labels"].take());
    let metadata = old.into_iter().filter(|(name, _)| name == "metadata");
    let mut next: Json = wanted.into_iter().filter(|(name, _)| name != "metadata").collect();
    next.extend(metadata);
    object_mut(&mut next, "metadata").insert("labels".to_owned(), labels.unwrap_or_default());
    next
}

async fn delete(cluster: &Cluster, kind: &Resource) -> Result<(), Status> {
    let deletion = DeleteOptions::default();
    cluster.delete(kind, (NAMESPACE, NAME), &deletion, &options()).await.map(drop)
}
