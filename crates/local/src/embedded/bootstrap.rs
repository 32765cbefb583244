//! The objects every cluster has from its first moment.

use futures::future;
use lockstep_api::{Resource, strategy::Json};
use serde_json::{Value, json};

use super::StartError;
use crate::cluster::{Cluster, WriteOptions};

const NAMESPACES: [&str; 4] = ["default", "kube-system", "kube-public", "kube-node-lease"];

/// Makes the objects that are not there yet.
pub(super) async fn run(cluster: &Cluster) -> Result<(), StartError> {
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
    let classes = priority_classes()
        .map(|object| ensure(cluster, ("scheduling.k8s.io", "v1", "priorityclasses"), "", object));
    let service = ensure(cluster, ("", "v1", "services"), "default", kubernetes_service());
    future::try_join3(future::try_join_all(accounts), future::try_join_all(classes), service)
        .await?;
    Ok(())
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

fn kubernetes_service() -> Value {
    let labels = json!({ "component": "apiserver", "provider": "kubernetes" });
    json!({
        "metadata": { "name": "kubernetes", "labels": labels },
        "spec": {
            "type": "ClusterIP",
            "ports": [{ "name": "https", "protocol": "TCP", "port": 443, "targetPort": 6443 }],
        },
    })
}

async fn ensure(
    cluster: &Cluster,
    (group, version, plural): (&str, &str, &str),
    namespace: &str,
    object: Value,
) -> Result<(), StartError> {
    let resource: &Resource = cluster
        .registry()
        .get(group, version, plural)
        .expect("the kinds of a new cluster's objects are built in");
    let object: Json = match object {
        Value::Object(object) => object,
        _ => Json::new(),
    };
    let name = lockstep_api::json::text(&object, &["metadata", "name"]).to_owned();
    if cluster.get(resource, namespace, &name).is_ok() {
        return Ok(());
    }
    let options = WriteOptions { user: "system:apiserver".to_owned(), ..WriteOptions::default() };
    match cluster.create(resource, namespace, object, &options).await {
        Ok(_) => Ok(()),
        Err(status) if status.reason == "AlreadyExists" => Ok(()),
        Err(source) => {
            let what = format!("{} {name:?}", resource.group_resource());
            Err(StartError::Bootstrap { what, source })
        }
    }
}
