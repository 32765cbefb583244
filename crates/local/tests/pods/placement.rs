//! Where pods go.

use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

use super::support::{Cluster, condition, phase};

fn asks(cpu: &str) -> Value {
    json!({"containers": [{"resources": {"requests": {"cpu": cpu}}}]})
}

fn node(pod: &Pod) -> &str {
    pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).unwrap_or_default()
}

#[tokio::test]
async fn what_fits_nowhere_says_why_until_it_does() {
    let cluster = Cluster::with_fake_nodes(2).await;
    cluster.run("big", "", asks("33")).await;
    let want = "0/2 nodes are available: 2 Insufficient cpu. preemption: 0/2 nodes are available: \
                2 Preemption is not helpful for scheduling.";
    let said = |pod: &Pod| condition(pod, "PodScheduled");
    cluster
        .until("big", "unschedulable", |pod| {
            said(pod) == ("False".into(), "Unschedulable".into(), want.into())
        })
        .await;
    let events = cluster.events("big", "FailedScheduling").await;
    assert!(events.contains(&format!("FailedScheduling: {want}")), "{events:?}");
    cluster.run("fill-0", "", asks("32")).await;
    cluster.run("fill-1", "", asks("32")).await;
    cluster.until_phase("fill-0", "Running").await;
    cluster.until_phase("fill-1", "Running").await;
    cluster.run("next", "", asks("1")).await;
    cluster.until("next", "waiting", |pod| said(pod).1 == "Unschedulable").await;
    cluster.delete("fill-0").await;
    cluster.until_phase("next", "Running").await;
}

#[tokio::test]
async fn gates_hold_a_pod_back() {
    let cluster = Cluster::with_fake_nodes(1).await;
    cluster.run("p", "", json!({"schedulingGates": [{"name": "example.com/wait"}]})).await;
    let pod = cluster
        .until("p", "gated", |pod| condition(pod, "PodScheduled").1 == "SchedulingGated")
        .await;
    let want = "Scheduling is blocked due to non-empty scheduling gates";
    assert_eq!(condition(&pod, "PodScheduled").2, want);
    let patch = json!([{"op": "remove", "path": "/spec/schedulingGates"}]);
    let patch: kube::api::Patch<()> =
        kube::api::Patch::Json(serde_json::from_value(patch).unwrap());
    cluster.pods().patch("p", &Default::default(), &patch).await.unwrap();
    cluster.until_phase("p", "Running").await;
}

#[tokio::test]
async fn important_pods_displace_others() {
    let cluster = Cluster::with_fake_nodes(1).await;
    let class = |name: &str, value: i32| -> k8s_openapi::api::scheduling::v1::PriorityClass {
        serde_json::from_value(json!({"metadata": {"name": name}, "value": value})).unwrap()
    };
    let classes = kube::Api::all(cluster.client.clone());
    classes.create(&Default::default(), &class("high", 1000)).await.unwrap();
    cluster.run("low", "", asks("32")).await;
    cluster.until_phase("low", "Running").await;
    let mut spec = asks("8");
    spec["priorityClassName"] = json!("high");
    cluster.run("high", "", spec).await;
    let pod = cluster.until_phase("high", "Running").await;
    assert_eq!(node(&pod), "fake-0");
    cluster.until_gone("low").await;
    cluster.events("low", "Preempted").await;
}

#[tokio::test]
async fn pods_of_a_lost_node_are_evicted_and_collected() {
    let cluster = Cluster::with_fake_nodes(1).await;
    cluster
        .create(json!({
            "metadata": {"name": "p", "finalizers": ["example.com/keep"]},
            "spec": {"containers": [{"name": "c", "image": "none", "command": ["true"]}]},
        }))
        .await;
    cluster.until_phase("p", "Running").await;
    let nodes: kube::Api<k8s_openapi::api::core::v1::Node> = kube::Api::all(cluster.client.clone());
    let lost = json!({"metadata": {"annotations": {"lockstep.dev/fake-node-lost": "true"}}});
    nodes.patch("fake-0", &Default::default(), &kube::api::Patch::Merge(lost)).await.unwrap();
    cluster.until("p", "not ready", |pod| condition(pod, "Ready").0 == "False").await;
    nodes.delete("fake-0", &Default::default()).await.unwrap();
    let pod = cluster.until_phase("p", "Failed").await;
    assert_eq!(phase(&pod), "Failed");
    let (status, reason, _) = condition(&pod, "DisruptionTarget");
    assert_eq!(status, "True");
    assert!(["DeletionByPodGC", "DeletionByTaintManager"].contains(&reason.as_str()), "{reason}");
}
