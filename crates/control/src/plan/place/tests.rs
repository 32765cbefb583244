//! Tables of placement as a whole.

use k8s_openapi::api::core::v1::{Node, Pod};
use serde_json::{Value, json};

use super::*;

fn node(name: &str, extra: Value) -> Node {
    let mut node = json!({
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}},
    });
    merge(&mut node, &extra);
    serde_json::from_value(node).unwrap()
}

fn pod(name: &str, spec: Value) -> Wanted {
    let mut pod = json!({
        "metadata": {"name": name, "namespace": "ns", "uid": name, "labels": {"app": "a"}},
        "spec": {"containers": [{"name": "c"}]},
    });
    merge(&mut pod["spec"], &spec);
    if let Some(labels) = spec.get("labels") {
        pod["metadata"]["labels"] = labels.clone();
        pod["spec"].as_object_mut().unwrap().remove("labels");
    }
    let pod: Pod = serde_json::from_value(pod).unwrap();
    Wanted::of(&pod)
}

fn merge(into: &mut Value, from: &Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from.clone(),
    }
}

fn asks(cpu: &str) -> Value {
    json!({"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]})
}

fn cluster(nodes: &[Node]) -> Cluster {
    let mut cluster = Cluster::default();
    for node in nodes {
        cluster.put_node(node);
    }
    cluster
}

fn message(placement: Placement) -> String {
    match placement {
        Placement::Unschedulable { message } | Placement::Preempt { message, .. } => message,
        Placement::Bind { node } => panic!("bound to {node}"),
    }
}

fn bound(placement: Placement) -> String {
    match placement {
        Placement::Bind { node } => node,
        Placement::Preempt { message, .. } | Placement::Unschedulable { message } => {
            panic!("not bound: {message}")
        }
    }
}

const NOT_HELPFUL: &str = "preemption: 0/1 nodes are available: 1 Preemption is not helpful for \
                           scheduling.";

#[test]
fn what_does_not_fit_is_said_in_the_words_of_the_scheduler() {
    let taint = json!({"spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}});
    let cases = [
        (
            "cordoned",
            json!({"spec": {"unschedulable": true}}),
            json!({}),
            "node(s) were unschedulable",
        ),
        ("tainted", taint, json!({}), "node(s) had untolerated taint(s)"),
        (
            "selector",
            json!({}),
            json!({"nodeSelector": {"x": "y"}}),
            "node(s) didn't match Pod's node affinity/selector",
        ),
        ("too big", json!({}), asks("5"), "Insufficient cpu"),
        (
            "no GPU",
            json!({}),
            json!({"containers": [{"name": "c", "resources": {"requests": {
                "nvidia.com/gpu": "1"}}}]}),
            "Insufficient nvidia.com/gpu",
        ),
        (
            "near nobody",
            json!({}),
            json!({"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
                {"labelSelector": {"matchLabels": {"app": "b"}},
                    "topologyKey": "kubernetes.io/hostname"}]}}}),
            "node(s) didn't match pod affinity rules",
        ),
        (
            "no such topology",
            json!({}),
            json!({"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone",
                "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}]}),
            "node(s) didn't match pod topology spread constraints (missing required label)",
        ),
    ];
    for (name, node_extra, spec, reason) in cases {
        let mut cluster = cluster(&[node("n", node_extra)]);
        let want = format!("0/1 nodes are available: 1 {reason}. {NOT_HELPFUL}");
        assert_eq!(message(cluster.place(&pod("p", spec))), want, "{name}");
    }
}

#[test]
fn reasons_are_counted_over_nodes_and_sorted() {
    let taint = json!({"spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}});
    let nodes = [node("a", json!({})), node("b", taint.clone()), node("c", taint)];
    let mut cluster = cluster(&nodes);
    cluster.assume(&pod("big", asks("4")), "a");
    assert_eq!(
        message(cluster.place(&pod("p", asks("1")))),
        "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) had untolerated taint(s). \
         preemption: 0/3 nodes are available: 1 No preemption victims found for incoming pod, \
         2 Preemption is not helpful for scheduling."
    );
    assert_eq!(
        message(Cluster::default().place(&pod("p", json!({})))),
        "no nodes available to schedule pods"
    );
}

#[test]
fn room_is_counted_as_pods_come_and_go() {
    let mut cluster = cluster(&[node("n", json!({}))]);
    let first = pod("first", asks("3"));
    assert_eq!(bound(cluster.place(&first)), "n");
    cluster.assume(&first, "n");
    cluster.assume(&first, "n");
    let second = pod("second", asks("2"));
    assert!(message(cluster.place(&second)).contains("Insufficient cpu"));
    cluster.put_pod(Wanted { node: Some("n".into()), is_over: true, ..first });
    assert_eq!(bound(cluster.place(&second)), "n", "what has ended leaves its room");
}

#[test]
fn the_number_of_pods_and_host_ports_are_limits_too() {
    let mut cluster = cluster(&[node("n", json!({"status": {"allocatable": {"pods": "2"}}}))]);
    let port =
        json!({"containers": [{"name": "c", "ports": [{"containerPort": 1, "hostPort": 80}]}]});
    cluster.assume(&pod("a", port.clone()), "n");
    let reason = "node(s) didn't have free ports for the requested pod ports";
    assert!(message(cluster.place(&pod("b", port))).contains(reason));
    cluster.assume(&pod("c", json!({})), "n");
    assert!(message(cluster.place(&pod("d", json!({})))).contains("1 Too many pods"));
}

#[test]
fn affinity_and_tolerations_choose_nodes() {
    let gpu = json!({"metadata": {"labels": {"pool": "gpu"}},
        "spec": {"taints": [{"key": "gpu", "effect": "NoSchedule"}]}});
    let mut cluster = cluster(&[node("cpu", json!({})), node("gpu", gpu)]);
    let wants = json!({
        "tolerations": [{"key": "gpu", "operator": "Exists"}],
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
            {"nodeSelectorTerms": [{"matchExpressions": [{"key": "pool", "operator": "In",
                "values": ["gpu"]}]}]}}},
    });
    assert_eq!(bound(cluster.place(&pod("p", wants))), "gpu");
    assert_eq!(bound(cluster.place(&pod("q", json!({})))), "cpu");
    let by_name = json!({"affinity": {"nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution":
        {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In",
            "values": ["cpu"]}]}]}}}});
    assert_eq!(bound(cluster.place(&pod("r", by_name))), "cpu");
    let prefers = json!({
        "tolerations": [{"operator": "Exists"}],
        "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution":
            [{"weight": 10, "preference": {"matchExpressions": [{"key": "pool",
                "operator": "Exists"}]}}]}},
    });
    assert_eq!(bound(cluster.place(&pod("s", prefers))), "gpu");
}

#[test]
fn pods_keep_apart_whoever_came_first() {
    let apart = json!({"affinity": {"podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
        {"labelSelector": {"matchLabels": {"app": "a"}},
            "topologyKey": "kubernetes.io/hostname"}]}}});
    let mut cluster = cluster(&[node("x", json!({})), node("y", json!({}))]);
    let mut placed = Vec::new();
    for name in ["p", "q"] {
        let next = pod(name, apart.clone());
        let node = bound(cluster.place(&next));
        cluster.assume(&next, &node);
        placed.push(node);
    }
    placed.sort();
    assert_eq!(placed, ["x", "y"]);
    let third = cluster.place(&pod("r", apart));
    assert!(message(third).contains("2 node(s) didn't match pod anti-affinity rules"));
    let plain = cluster.place(&pod("s", json!({})));
    assert!(message(plain).contains("2 node(s) didn't satisfy existing pods anti-affinity rules"));
    cluster.remove_pod("p");
    assert!(matches!(cluster.place(&pod("t", json!({}))), Placement::Bind { .. }));
}

#[test]
fn the_first_of_a_group_that_wants_to_be_together_may_start_it() {
    let near = json!({"affinity": {"podAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
        {"labelSelector": {"matchLabels": {"app": "a"}},
            "topologyKey": "kubernetes.io/hostname"}]}}});
    let mut cluster = cluster(&[node("x", json!({})), node("y", json!({}))]);
    let first = pod("p", near.clone());
    let node = bound(cluster.place(&first));
    cluster.assume(&first, &node);
    for name in ["q", "r", "s"] {
        let next = pod(name, near.clone());
        assert_eq!(bound(cluster.place(&next)), node);
        cluster.assume(&next, &node);
    }
}

#[test]
fn pods_spread_over_domains() {
    let spread = json!({"topologySpreadConstraints": [{"maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": {"app": "a"}}}]});
    let mut cluster = cluster(&[node("x", json!({})), node("y", json!({})), node("z", json!({}))]);
    let mut count = std::collections::BTreeMap::new();
    for index in 0..9 {
        let next = pod(&format!("p{index}"), spread.clone());
        let node = bound(cluster.place(&next));
        cluster.assume(&next, &node);
        *count.entry(node).or_insert(0) += 1;
    }
    assert_eq!(count.into_values().collect::<Vec<i32>>(), [3, 3, 3]);
}

#[test]
fn the_fewest_and_least_important_pods_make_room() {
    let mut cluster = cluster(&[node("x", json!({})), node("y", json!({}))]);
    let ranked = |name: &str, cpu: &str, priority: i32| {
        let mut spec = asks(cpu);
        spec["priority"] = json!(priority);
        pod(name, spec)
    };
    cluster.assume(&ranked("x1", "2", 10), "x");
    cluster.assume(&ranked("x2", "2", 1), "x");
    cluster.assume(&ranked("y1", "4", 5), "y");
    let high = ranked("high", "2", 100);
    let Placement::Preempt { node, victims, message } = cluster.place(&high) else {
        panic!("somebody has to leave");
    };
    assert_eq!((node.as_str(), victims.len(), victims[0].name.as_str()), ("x", 1, "x2"));
    assert_eq!(message, "0/2 nodes are available: 2 Insufficient cpu.");
    cluster.nominate(&high, &node);
    cluster.remove_pod("x2");
    let low = ranked("low", "2", 50);
    assert!(
        !matches!(cluster.place(&low), Placement::Bind { .. }),
        "the room is kept for the one it was made for"
    );
    assert_eq!(bound(cluster.place(&high)), "x");
}

#[test]
fn those_who_may_not_preempt_wait() {
    let mut cluster = cluster(&[node("x", json!({}))]);
    cluster.assume(&pod("a", asks("4")), "x");
    let mut spec = asks("1");
    spec["priority"] = json!(100);
    spec["preemptionPolicy"] = json!("Never");
    assert_eq!(
        message(cluster.place(&pod("p", spec))),
        "0/1 nodes are available: 1 Insufficient cpu. \
         preemption: not eligible due to preemptionPolicy=Never."
    );
}

#[test]
fn a_carried_out_placement_leaves_nothing_to_do() {
    let mut cluster = cluster(&[node("x", json!({}))]);
    let one = pod("p", asks("3"));
    let node = bound(cluster.place(&one));
    cluster.assume(&one, &node);
    let before = format!("{:?}", (&cluster.node("x").unwrap().used, cluster.pod_count()));
    cluster.assume(&one, &node);
    drop(cluster.place(&pod("q", asks("3"))));
    let after = format!("{:?}", (&cluster.node("x").unwrap().used, cluster.pod_count()));
    assert_eq!(before, after);
}

/// Nodes looked at per pod, with three pods for each node of five pools.
fn cost(nodes: usize) -> u64 {
    let mut cluster = Cluster::default();
    for index in 0..nodes {
        let pool = json!({"metadata": {"labels": {"pool": format!("p{}", index * 5 / nodes)}}});
        cluster.put_node(&node(&format!("n{index}"), pool));
    }
    let pods = nodes * 3;
    for index in 0..pods {
        let mut spec = asks("1");
        spec["nodeSelector"] = json!({"pool": format!("p{}", index % 5)});
        let one = pod(&format!("u{index}"), spec);
        let node = bound(cluster.place(&one));
        cluster.assume(&one, &node);
    }
    assert_eq!(cluster.counters.pods_walked, 0);
    for index in 0..100 {
        drop(message(cluster.place(&pod(&format!("x{index}"), asks("4")))));
    }
    assert_eq!(cluster.counters.failures_reused, 99, "pods of one shape fail together");
    cluster.counters.nodes_considered / pods as u64
}

#[test]
fn the_cost_of_a_placement_does_not_grow_with_the_cluster() {
    let (small, large) = (cost(600), cost(1200));
    assert!(small <= 120 && large <= 120, "{small} {large}");
}
