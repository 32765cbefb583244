//! Many pods at once.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use futures::StreamExt;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{ListParams, Patch, PatchParams};
use kube::runtime::watcher;
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
async fn a_fake_pod_costs_one_write_to_run_and_one_to_end() {
    const PODS: usize = 100;
    let cluster = Cluster::with_fake_nodes(4).await;
    let mut writes: HashMap<String, HashSet<String>> = HashMap::new();
    let watch = watcher(cluster.pods(), watcher::Config::default());
    let mut watch = std::pin::pin!(watch);
    for index in 0..PODS {
        cluster
            .create(json!({
                "metadata": {
                    "name": format!("p{index}"),
                    "annotations": {
                        "lockstep.dev/fake-run-seconds": "1",
                        "lockstep.dev/fake-exit-code": if usize::is_multiple_of(index, 2) { "0" } else { "7" },
                    },
                },
                "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "none"}]},
            }))
            .await;
    }
    let mut ended = HashSet::new();
    let limit = tokio::time::sleep(Duration::from_secs(60));
    let mut limit = std::pin::pin!(limit);
    while ended.len() < PODS {
        let event = tokio::select! {
            event = watch.next() => event.unwrap().unwrap(),
            () = &mut limit => panic!("{} of {PODS} pods have ended", ended.len()),
        };
        let (watcher::Event::Apply(pod) | watcher::Event::InitApply(pod)) = event else { continue };
        let version = pod.resource_version().unwrap();
        writes.entry(pod.name_any()).or_default().insert(version);
        if matches!(phase(&pod), "Succeeded" | "Failed") {
            let exit = super::support::status(&pod, "c").unwrap().state.clone().unwrap();
            let ended_at = exit.terminated.unwrap();
            let index: usize = pod.name_any()[1..].parse().unwrap();
            assert_eq!(ended_at.exit_code, if usize::is_multiple_of(index, 2) { 0 } else { 7 });
            ended.insert(pod.name_any());
        }
    }
    // Created, bound, running and ready, ended; what was listed only at its second version is one
    // short.
    let most = writes.values().map(HashSet::len).max();
    assert_eq!(most, Some(4), "{writes:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fake_pod_that_runs_can_be_told_to_end() {
    let cluster = Cluster::with_fake_nodes(1).await;
    cluster.run("p", "unused", json!({})).await;
    cluster.until_phase("p", "Running").await;
    let annotations = json!({
        "lockstep.dev/fake-run-seconds": "0",
        "lockstep.dev/fake-exit-code": "42",
    });
    let patch = Patch::Merge(json!({"metadata": {"annotations": annotations}}));
    cluster.pods().patch("p", &PatchParams::default(), &patch).await.unwrap();
    let pod = cluster.until_phase("p", "Failed").await;
    let state = super::support::status(&pod, "c").unwrap().state.clone().unwrap();
    let ended = state.terminated.unwrap();
    assert_eq!(ended.exit_code, 42);
    assert!(ended.finished_at >= ended.started_at);
}

#[tokio::test(flavor = "multi_thread")]
async fn fake_nodes_give_heartbeats_where_they_are_wanted() {
    let mut cluster = Cluster::without_nodes().await;
    let options = FakeOptions { gives_heartbeats: true, ..FakeOptions::new(2) };
    cluster.start_fake_nodes(options);
    let leases: Api<Lease> = Api::namespaced(cluster.client.clone(), "kube-node-lease");
    let limit = Instant::now() + Duration::from_secs(30);
    for name in ["fake-0", "fake-1"] {
        while leases.get_opt(name).await.unwrap().is_none() {
            assert!(Instant::now() < limit, "{name} gives no heartbeat");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pods_of_fake_nodes_are_no_business_of_the_real_one() {
    let mut cluster = Cluster::with_fake_nodes(1).await;
    cluster.start_node(true);
    let only = |label: &str| json!({"nodeSelector": {label: "true"}});
    cluster.run("fake", "exit 3", only("lockstep.dev/fake-node")).await;
    let fake = cluster.until_phase("fake", "Running").await;
    cluster.run("real", "exit 3", json!({"nodeName": "here"})).await;
    let real = cluster.until_phase("real", "Failed").await;
    let fake_after = cluster.until_phase("fake", "Running").await;
    assert_eq!(fake.status, fake_after.status);
    let folder = |pod: &Pod| {
        lockstep_local::node::dirs::NodeDirs::new(cluster.dir.path()).pod(&pod.uid().unwrap())
    };
    assert!(folder(&real).exists() && !folder(&fake).exists());
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
