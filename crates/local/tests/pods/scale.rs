//! Many pods at once.

use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::ListParams;
use kube::{Api, ResourceExt};
use lockstep_local::embedded::{Embedded, Options};
use lockstep_local::node::fake::FakeOptions;
use serde_json::json;

use super::support::{Cluster, phase};

/// Waits until so many pods have ended well.
async fn until_succeeded(cluster: &Cluster, count: usize) {
    let limit = Instant::now() + Duration::from_secs(60);
    loop {
        let list = cluster.pods().list(&ListParams::default()).await.unwrap();
        let done = list.items.iter().filter(|pod: &&Pod| phase(pod) == "Succeeded").count();
        if done >= count {
            return;
        }
        assert!(Instant::now() < limit, "{done} of {count} pods have ended");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn many_processes_run_at_once() {
    let cluster = Cluster::start().await;
    let started = Instant::now();
    for index in 0..30 {
        cluster.run(&format!("p{index}"), "true", json!({})).await;
    }
    until_succeeded(&cluster, 30).await;
    println!("30 pods of processes: {:?}", started.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn many_fake_pods_run_on_fake_nodes() {
    let cluster = Cluster::with_fake_nodes(20).await;
    let started = Instant::now();
    for index in 0..200 {
        cluster
            .create(json!({
                "metadata": {
                    "name": format!("p{index}"),
                    "annotations": {"lockstep.dev/fake-run-seconds": "0.01"},
                },
                "spec": {"restartPolicy": "Never", "containers": [
                    {"name": "c", "image": "none", "resources": {"requests": {"cpu": "1"}}}]},
            }))
            .await;
    }
    until_succeeded(&cluster, 200).await;
    println!("200 fake pods: {:?}", started.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn fake_nodes_of_earlier_times_are_gone_before_pods_are_placed() {
    let folder = tempfile::tempdir().unwrap();
    let start = async |count| {
        let data_dir = Some(folder.path().to_path_buf());
        let fake_nodes = Some(FakeOptions::new(count));
        Embedded::start(Options { data_dir, fake_nodes, ..Options::default() }).await.unwrap()
    };
    let names = async |cluster: &Embedded| -> Vec<String> {
        let nodes: Api<Node> = Api::all(cluster.client());
        let list = nodes.list(&ListParams::default()).await.unwrap();
        list.iter().map(ResourceExt::name_any).collect()
    };
    let first = start(3).await;
    let limit = Instant::now() + Duration::from_secs(20);
    while names(&first).await.len() < 3 {
        assert!(Instant::now() < limit, "the nodes do not come");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    first.shutdown().await;
    let second = start(1).await;
    assert_eq!(names(&second).await, ["fake-0"]);
    second.shutdown().await;
}
