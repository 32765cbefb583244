//! Answers that come after the news that what they tell of is gone.

use super::*;

/// The object of this kind with a uid of its own, as an answer has it.
fn meta(name: &str, uid: &str, version: u64) -> Value {
    json!({"name": name, "namespace": "ns", "uid": uid, "resourceVersion": version.to_string()})
}

#[test]
fn a_cluster_queue_that_is_gone_does_not_come_back() {
    let mut world = World::new(&[("q", gpus(4, json!({})))]);
    let answer = |uid: &str, version| {
        let object = json!({"metadata": meta("q", uid, version), "spec": gpus(4, json!({}))});
        Arc::new(serde_json::from_value::<ClusterQueue>(object).unwrap())
    };
    world.queues.cluster_queue_written(&answer("uid-q", 1000), world.now);
    let known = world.queues.clusters["q"].object.metadata.resource_version.clone();
    assert_eq!(known.as_deref(), Some("1000"), "while it is there, an answer is news");
    world.queues.cluster_queue_gone("q", "uid-q", world.now);
    world.queues.cluster_queue_written(&answer("uid-q", 1001), world.now);
    assert!(!world.queues.clusters.contains_key("q"));
    world.add("w", "q", 1, 0, 0);
    world.run();
    assert!(world.holding().is_empty(), "nobody is admitted by a ghost");
    // Another of its name is another.
    world.queues.cluster_queue_seen(&answer("second", 1002), world.now);
    world.queues.cluster_queue_written(&answer("uid-q", 1003), world.now);
    assert_eq!(world.queues.clusters["q"].object.metadata.uid.as_deref(), Some("second"));
}

#[test]
fn a_local_queue_that_is_gone_does_not_come_back() {
    let mut world = World::new(&[("q", gpus(4, json!({})))]);
    let answer = |uid: &str, version| {
        let object = json!({"metadata": meta("q", uid, version), "spec": {"clusterQueue": "q"}});
        Arc::new(serde_json::from_value::<LocalQueue>(object).unwrap())
    };
    world.queues.local_queue_written(&answer("uid-q", 1000), world.now);
    let known = world.queues.locals[&key("q")].metadata.resource_version.clone();
    assert_eq!(known.as_deref(), Some("1000"));
    world.queues.local_queue_gone(&key("q"), "uid-q", world.now);
    world.queues.local_queue_written(&answer("uid-q", 1001), world.now);
    assert!(world.queues.locals.is_empty());
    world.queues.local_queue_seen(&answer("second", 1002), world.now);
    world.queues.local_queue_written(&answer("uid-q", 1003), world.now);
    assert_eq!(world.queues.locals[&key("q")].metadata.uid.as_deref(), Some("second"));
}

#[test]
fn a_flavor_that_is_gone_does_not_come_back() {
    let mut world = World::new(&[("q", gpus(4, json!({})))]);
    let answer = |uid: &str, version| {
        let object = json!({"metadata": meta("f", uid, version), "spec": {}});
        Arc::new(serde_json::from_value::<ResourceFlavor>(object).unwrap())
    };
    world.queues.flavor_written(&answer("uid-f", 1000), world.now);
    let known = world.queues.flavors["f"].metadata.resource_version.clone();
    assert_eq!(known.as_deref(), Some("1000"));
    world.queues.flavor_gone("f", world.now);
    world.queues.flavor_written(&answer("uid-f", 1001), world.now);
    assert!(world.queues.flavors.is_empty());
    world.add("w", "q", 1, 0, 0);
    world.run();
    assert!(world.holding().is_empty(), "nobody is given what is not there");
    world.queues.flavor_seen(&answer("second", 1002), world.now);
    world.queues.flavor_written(&answer("uid-f", 1003), world.now);
    assert_eq!(world.queues.flavors["f"].metadata.uid.as_deref(), Some("second"));
}

#[test]
fn who_waits_in_a_local_queue_that_is_being_deleted_is_not_tried() {
    let mut world = World::new(&[("q", gpus(4, json!({})))]);
    let mut object = json!({"metadata": meta("q", "uid-q", 1000), "spec": {"clusterQueue": "q"}});
    object["metadata"]["deletionTimestamp"] = at(1).to_string().into();
    let ending: LocalQueue = serde_json::from_value(object).unwrap();
    world.add("before", "q", 1, 0, 0);
    world.queues.local_queue_seen(&Arc::new(ending), world.now);
    world.add("after", "q", 1, 0, 0);
    world.run();
    assert!(world.holding().is_empty());
    assert_eq!(world.condition("before", "lockstep.dev/Waiting").1, "QueueStopped");
}
