//! Many pods at once.

use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
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
