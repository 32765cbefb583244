//! What happens when the node goes away or comes back.

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Api;
use serde_json::json;

use super::support::{Cluster, status};

#[tokio::test]
async fn a_restarted_agent_takes_over_what_runs() {
    let mut cluster = Cluster::start().await;
    let script = "echo $$ > /tmp/ignored; while :; do sleep 0.05; done";
    cluster.run("p", script, json!({"restartPolicy": "Always"})).await;
    let before = cluster.until_phase("p", "Running").await;
    cluster.stop_node().await;
    cluster.start_node(true);
    tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    let after = cluster.until_phase("p", "Running").await;
    let of = |pod| status(pod, "c").cloned().unwrap();
    assert_eq!(of(&before).restart_count, of(&after).restart_count);
    assert_eq!(of(&before).state, of(&after).state, "it is the same instance");
    cluster.delete("p").await;
    cluster.until_gone("p").await;
}

#[tokio::test]
async fn addresses_stay_with_their_pods_when_the_agent_is_restarted() {
    let mut cluster = Cluster::start().await;
    let ip = |pod: &Pod| pod.status.as_ref().and_then(|it| it.pod_ip.clone()).unwrap_or_default();
    let mut before = Vec::new();
    for name in ["a", "b", "c"] {
        cluster.run(name, "sleep 100", json!({"restartPolicy": "Always"})).await;
        before.push(ip(&cluster.until_phase(name, "Running").await));
    }
    cluster.delete("a").await;
    cluster.until_gone("a").await;
    cluster.stop_node().await;
    cluster.start_node(true);
    // Its address is given away only after those of the others are known.
    cluster.run("d", "getent hosts b c > /dev/termination-log", json!({})).await;
    let d = cluster.until_phase("d", "Succeeded").await;
    assert!(!before[1..].contains(&ip(&d)), "{before:?}");
    for (name, address) in ["b", "c"].into_iter().zip(&before[1..]) {
        assert_eq!(ip(&cluster.until_phase(name, "Running").await), *address, "{name}");
    }
    let said = status(&d, "c").unwrap().state.clone().unwrap().terminated.unwrap().message;
    let said = said.unwrap_or_default();
    assert!(before[1..].iter().all(|address| said.contains(address)), "{said}");
}

#[tokio::test]
async fn a_node_without_heartbeat_is_marked_and_tainted() {
    let mut cluster = Cluster::start().await;
    cluster.run("p", "sleep 100", json!({})).await;
    cluster.until_phase("p", "Running").await;
    cluster.stop_node().await;
    let nodes: Api<Node> = Api::all(cluster.client.clone());
    let limit = std::time::Instant::now() + std::time::Duration::from_secs(20);
    loop {
        let node = nodes.get("here").await.unwrap();
        let taints = node.spec.and_then(|spec| spec.taints).unwrap_or_default();
        if taints.iter().any(|it| it.key == "node.kubernetes.io/unreachable") {
            break;
        }
        assert!(std::time::Instant::now() < limit, "{:?}", node.status);
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    cluster.start_node(true);
    cluster.run("q", "true", json!({})).await;
    cluster.until_phase("q", "Succeeded").await;
}
