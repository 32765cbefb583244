use std::sync::Arc;

use lockstep_api::{Resource, strategy::Json};
use lockstep_store::{
    Limits, Selectors,
    rest::DeleteOptions,
    watch::{EventType, Filter, WatchStart},
};
use serde_json::json;

use super::{Cluster, ListOptions, Options, WriteOptions};

fn cluster() -> Cluster {
    let registry = lockstep_api::builtin::registry();
    Cluster::open(Options { registry, data_dir: None, limits: Limits::default() }).unwrap()
}

fn resource(cluster: &Cluster, plural: &str) -> Arc<Resource> {
    Arc::clone(cluster.registry().get("", "v1", plural).unwrap())
}

fn object(value: serde_json::Value) -> Json {
    value.as_object().unwrap().clone()
}

async fn with_namespace(cluster: &Cluster) {
    let namespaces = resource(cluster, "namespaces");
    let namespace = object(json!({"metadata": {"name": "default"}}));
    cluster.create(&namespaces, "", namespace, &WriteOptions::default()).await.unwrap();
}

#[tokio::test]
async fn what_is_written_can_be_read_listed_and_watched() {
    let cluster = cluster();
    with_namespace(&cluster).await;
    let maps = resource(&cluster, "configmaps");
    let options = WriteOptions::default();
    let filter = Filter::new(&maps, None, Selectors::default());
    let mut watch = cluster.watch(filter.clone(), WatchStart::Now).unwrap();

    let map = object(json!({"metadata": {"name": "a"}, "data": {"k": "v"}}));
    let created = cluster.create(&maps, "default", map, &options).await.unwrap();
    assert!(created.is_created);
    let mut changed = created.object.json();
    changed.insert("data".to_owned(), json!({"k": "w"}));
    let updated =
        cluster.update(&maps, None, ("default", "a"), changed.clone(), &options).await.unwrap();
    assert!(updated.object.revision() > created.object.revision());
    let stale = cluster.update(&maps, None, ("default", "a"), changed, &options).await.unwrap_err();
    assert_eq!(stale.code, 409);
    let page = cluster.list(&filter, &ListOptions::default()).await.unwrap();
    assert_eq!(page.items.len(), 1);
    let gone =
        cluster.delete(&maps, ("default", "a"), &DeleteOptions::default(), &options).await.unwrap();
    assert!(gone.is_gone);
    let mut kinds = Vec::new();
    while kinds.len() < 3 {
        kinds.extend(watch.next().await.unwrap().into_iter().map(|notice| notice.kind));
    }
    assert_eq!(kinds, [EventType::Added, EventType::Modified, EventType::Deleted]);
}
