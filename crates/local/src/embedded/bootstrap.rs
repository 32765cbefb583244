//! The objects every cluster has from its first moment.

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use futures::{StreamExt, future};
use k8s_openapi::api::core::v1::Service;
use kube::{Api, Client, runtime::watcher};
use lockstep_api::{
    Resource, custom, definition,
    json::{object_mut, text},
    labels::API_ADDRESS,
    rbac,
    strategy::Json,
};
use serde_json::{Value, json};
use tracing::warn;

use super::{StartError, endpoints, roles};
use crate::{
    cluster::{Cluster, WriteOptions},
    controllers::service_account,
    observe::{self, Change},
};

const NAMESPACES: [&str; 4] = ["default", "kube-system", "kube-public", "kube-node-lease"];

/// The port of the service `kubernetes` when the server does not listen.
const PORT: u16 = 443;

/// Makes the objects that are not there yet, and lets the service `kubernetes` have the port the
/// server listens on.
pub(super) async fn run(
    cluster: &Cluster,
    port: Option<u16>,
    root_ca: Option<&str>,
) -> Result<(), StartError> {
    let port = port.unwrap_or(PORT);
    // Namespaces first; within a stage the writes share a commit.
    let namespaces = NAMESPACES.map(|name| {
        let object = json!({ "metadata": { "name": name } });
        ensure(cluster, ("", "v1", "namespaces"), "", object)
    });
    future::try_join_all(namespaces).await?;
    let accounts = NAMESPACES.map(|namespace| {
        let object = json!({ "metadata": { "name": "default" } });
        ensure(cluster, ("", "v1", "serviceaccounts"), namespace, object)
    });
    let certificates =
        root_ca.into_iter().flat_map(|root_ca| NAMESPACES.map(|place| (root_ca, place)));
    let certificates = certificates.map(|(root_ca, namespace)| {
        let map = service_account::certificate(root_ca);
        let annotations = map.metadata.annotations;
        let metadata = json!({ "name": map.metadata.name, "annotations": annotations });
        let object = json!({ "metadata": metadata, "data": map.data });
        ensure(cluster, ("", "v1", "configmaps"), namespace, object)
    });
    let classes = priority_classes()
        .map(|object| ensure(cluster, ("scheduling.k8s.io", "v1", "priorityclasses"), "", object));
    let service = ensure(cluster, ("", "v1", "services"), "default", kubernetes_service(port));
    let roles = roles::cluster_roles().into_iter().map(|role| renew(cluster, "clusterroles", role));
    let bindings = roles::cluster_role_bindings()
        .into_iter()
        .map(|binding| renew(cluster, "clusterrolebindings", binding));
    let for_pods =
        future::try_join(future::try_join_all(accounts), future::try_join_all(certificates));
    future::try_join5(
        for_pods,
        future::try_join_all(classes),
        service,
        future::try_join_all(roles),
        future::try_join_all(bindings),
    )
    .await?;
    amend(cluster, |service| {
        let spec = object_mut(service, "spec");
        spec.insert("ports".to_owned(), ports(port));
    })
    .await
}

/// Lists the custom kinds that are built in among the definitions of the cluster. A definition that
/// somebody has put there before stays.
async fn define(cluster: &Cluster) {
    for mut definition in custom::definitions() {
        let kind = (definition::GROUP, "v1", definition::PLURAL);
        if let Value::Object(members) = &mut definition {
            members.retain(|name, _| !matches!(name.as_str(), "apiVersion" | "kind"));
        }
        if let Err(error) = ensure(cluster, kind, "", definition).await {
            warn!(%error, "a built-in kind is not listed among the definitions");
        }
    }
}

/// Lists the kinds that are built in, and makes the service `kubernetes` again, as it was, whenever
/// somebody deletes it, and what it leads to, which is where the server listens. Never ends.
pub(super) async fn keep(cluster: Cluster, client: Client, at: Option<SocketAddr>) {
    let service = keep_service(&cluster, client);
    future::join3(define(&cluster), service, endpoints::keep(&cluster, at)).await;
}

async fn keep_service(cluster: &Cluster, client: Client) {
    let services: Api<Service> = Api::namespaced(client, "default");
    let only = watcher::Config::default().fields("metadata.name=kubernetes");
    let mut changes = std::pin::pin!(observe::follow(services, only));
    let mut last = Value::Null;
    while let Some(change) = changes.next().await {
        match change {
            Change::Put(service) => last = template(&service),
            Change::Listing | Change::Synced => {}
            Change::Gone(_) => {
                let again = || ensure(cluster, ("", "v1", "services"), "default", last.clone());
                while let Err(error) = again().await {
                    warn!(%error, "the service of the API server is gone, trying again");
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
            }
        }
    }
}

/// What a service is made of, without what the server adds. Its address stays: the server listens
/// there.
fn template(service: &Service) -> Value {
    let metadata = &service.metadata;
    json!({
        "metadata": {
            "name": metadata.name, "labels": metadata.labels, "annotations": metadata.annotations,
        },
        "spec": service.spec,
    })
}

/// The address of the service `kubernetes`.
pub(super) fn service_address(cluster: &Cluster) -> Option<IpAddr> {
    let services = &services(cluster);
    let service = cluster.get(services, "default", "kubernetes").ok()?;
    service.field(services, "spec.clusterIP")?.parse().ok()
}

/// Says at the service `kubernetes` where pods reach the server: at the service's own address, or
/// elsewhere, or nowhere.
pub(super) async fn announce(cluster: &Cluster, at: Announced) -> Result<(), StartError> {
    amend(cluster, |service| {
        let meta = object_mut(service, "metadata");
        let address = match at {
            Announced::AtService => {
                if let Some(given) = meta.get_mut("annotations").and_then(Value::as_object_mut) {
                    given.remove(API_ADDRESS);
                }
                return;
            }
            Announced::At(address) => address.to_string(),
            Announced::Nowhere => String::new(),
        };
        object_mut(meta, "annotations").insert(API_ADDRESS.to_owned(), address.into());
    })
    .await
}

/// Where pods reach the server.
#[derive(Clone, Copy, Debug)]
pub(super) enum Announced {
    /// At the address of the service.
    AtService,
    /// There.
    At(SocketAddr),
    /// It does not listen.
    Nowhere,
}

fn services(cluster: &Cluster) -> Arc<Resource> {
    let catalog = cluster.catalog();
    Arc::clone(catalog.registry().get("", "v1", "services").expect("services are built in"))
}

/// Changes the service `kubernetes`. Nothing is written when nothing changes.
async fn amend(cluster: &Cluster, change: impl FnOnce(&mut Json)) -> Result<(), StartError> {
    let services = &services(cluster);
    let failed = |source| {
        let what = format!("{} \"kubernetes\"", services.group_resource());
        StartError::Bootstrap { what, source }
    };
    let mut service = cluster.get(services, "default", "kubernetes").map_err(failed)?.json();
    change(&mut service);
    let key = ("default", "kubernetes");
    cluster.update(services, None, key, service, &options()).await.map_err(failed)?;
    Ok(())
}

pub(super) fn options() -> WriteOptions {
    let (user, field_manager) = ("system:apiserver".to_owned(), "kube-apiserver".to_owned());
    WriteOptions { user, field_manager, ..WriteOptions::default() }
}

fn priority_classes() -> [Value; 2] {
    let class = |name: &str, value: i64, description: &str| {
        json!({
            "metadata": { "name": name },
            "value": value,
            "description": description,
            "preemptionPolicy": "PreemptLowerPriority",
        })
    };
    [
        class(
            "system-node-critical",
            2_000_001_000,
            "Used for system critical pods that must not be moved from their current node.",
        ),
        class(
            "system-cluster-critical",
            2_000_000_000,
            "Used for system critical pods that must run in the cluster, but can be moved to \
             another node if necessary.",
        ),
    ]
}

fn ports(port: u16) -> Value {
    json!([{ "name": "https", "protocol": "TCP", "port": port, "targetPort": port }])
}

fn kubernetes_service(port: u16) -> Value {
    let labels = json!({ "component": "apiserver", "provider": "kubernetes" });
    json!({
        "metadata": { "name": "kubernetes", "labels": labels },
        "spec": {
            "type": "ClusterIP",
            "ports": ports(port),
        },
    })
}

/// Makes a role or a binding that is not there, and adds to one that is what it has not: an earlier
/// version may have made it.
async fn renew(cluster: &Cluster, plural: &str, wanted: Value) -> Result<(), StartError> {
    let kind = (rbac::GROUP, "v1", plural);
    let catalog = cluster.catalog();
    let Value::Object(object) = &wanted else { return Ok(()) };
    let name = text(object, &["metadata", "name"]).to_owned();
    let resource = catalog.registry().get(rbac::GROUP, "v1", plural);
    if let Some(resource) = resource
        && let Ok(existing) = cluster.get(resource, "", &name)
    {
        if let Some(renewed) = rbac::renewed(&existing.json(), object)
            && let Err(error) =
                cluster.update(resource, None, ("", &name), renewed, &options()).await
        {
            warn!(%error, plural, name, "what is new in a role was not added");
        }
        return Ok(());
    }
    ensure(cluster, kind, "", wanted).await
}

async fn ensure(
    cluster: &Cluster,
    (group, version, plural): (&str, &str, &str),
    namespace: &str,
    object: Value,
) -> Result<(), StartError> {
    let catalog = cluster.catalog();
    let resource: &Resource = catalog
        .registry()
        .get(group, version, plural)
        .expect("the kinds of a new cluster's objects are built in");
    let object: Json = match object {
        Value::Object(object) => object,
        _ => Json::new(),
    };
    if cluster.get(resource, namespace, text(&object, &["metadata", "name"])).is_ok() {
        return Ok(());
    }
    create(cluster, resource, namespace, object).await
}

/// Makes an object, unless somebody else just did.
pub(super) async fn create(
    cluster: &Cluster,
    resource: &Resource,
    namespace: &str,
    object: Json,
) -> Result<(), StartError> {
    let name = text(&object, &["metadata", "name"]).to_owned();
    match cluster.create(resource, namespace, object, &options()).await {
        Ok(_) => Ok(()),
        Err(status) if status.reason == "AlreadyExists" => Ok(()),
        Err(source) => {
            let what = format!("{} {name:?}", resource.group_resource());
            Err(StartError::Bootstrap { what, source })
        }
    }
}
