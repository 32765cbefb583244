//! Evictions under budgets.

use serde_json::{Value, json};

use crate::{
    rest::{self, DeleteOptions},
    testing::World,
};

fn pod(name: &str) -> Value {
    json!({
        "metadata": {"name": name, "labels": {"app": "a"}},
        "spec": {"nodeName": "node", "containers": [{"name": "c", "image": "i:1"}]},
    })
}

/// A world with two pods that run, the first of them ready.
fn world() -> World {
    let mut world = World::new();
    for (name, ready) in [("ready", "True"), ("unready", "False")] {
        world.create("pods", "n", pod(name)).unwrap();
        let status =
            json!({"phase": "Running", "conditions": [{"type": "Ready", "status": ready}]});
        set_status(&mut world, "pods", name, status);
    }
    world
}

fn set_status(world: &mut World, plural: &str, name: &str, status: Value) {
    let mut object = world.get(plural, &format!("n/{name}")).unwrap();
    object.insert("status".to_owned(), status);
    let write = |scene: &rest::Scene<'_>| rest::update(scene, Some("status"), name, object.clone());
    world.write(plural, "n", write).unwrap();
}

fn budget(world: &mut World, name: &str, spec: &Value, status: Value) {
    let mut spec = spec.clone();
    spec["selector"] = json!({"matchLabels": {"app": "a"}});
    let object = json!({"metadata": {"name": name}, "spec": spec});
    world.create("poddisruptionbudgets", "n", object).unwrap();
    set_status(world, "poddisruptionbudgets", name, status);
}

fn status(allowed: i64, current: i64, desired: i64) -> Value {
    json!({"observedGeneration": 1, "disruptionsAllowed": allowed, "currentHealthy": current,
        "desiredHealthy": desired, "expectedPods": 2})
}

fn evict(world: &mut World, name: &str) -> Result<(), (u16, String)> {
    let options = DeleteOptions::default();
    let evicted = world.write("pods", "n", |scene| rest::evict(scene, name, &options));
    evicted.map(drop).map_err(|status| {
        let cause = status.details.as_ref().and_then(|details| details.causes.first());
        (status.code, cause.map_or_else(|| status.message.clone(), |cause| cause.message.clone()))
    })
}

fn is_leaving(world: &World, name: &str) -> bool {
    let pod = world.get("pods", &format!("n/{name}"));
    pod.is_none_or(|pod| !pod["metadata"]["deletionTimestamp"].is_null())
}

#[test]
fn an_eviction_is_charged_until_nothing_is_left() {
    let mut world = world();
    budget(&mut world, "b", &json!({"minAvailable": 1}), status(1, 2, 1));
    evict(&mut world, "ready").unwrap();
    assert!(is_leaving(&world, "ready"));
    let after = world.get("poddisruptionbudgets", "n/b").unwrap()["status"].clone();
    assert_eq!(after["disruptionsAllowed"], 0);
    assert!(after["disruptedPods"]["ready"].is_string(), "{after}");
    let condition = &after["conditions"][0];
    assert_eq!(condition["type"], "DisruptionAllowed");
    assert_eq!(
        (&condition["status"], &condition["reason"]),
        (&json!("False"), &json!("InsufficientPods"))
    );
    world.create("pods", "n", pod("other")).unwrap();
    let running = json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]});
    set_status(&mut world, "pods", "other", running);
    let refused = evict(&mut world, "other").unwrap_err();
    let why = "The disruption budget b does not allow evicting pods currently";
    assert_eq!(refused, (429, why.to_owned()));
    assert!(!is_leaving(&world, "other"));
    // What goes already goes on going.
    evict(&mut world, "ready").unwrap();
}

#[test]
fn why_a_budget_refuses_is_said() {
    let needs = "The disruption budget b needs 2 healthy pods and has 2 currently";
    let failed = json!({"observedGeneration": 1, "disruptionsAllowed": 0, "currentHealthy": 3,
        "desiredHealthy": 2, "expectedPods": 3, "conditions": [{"type": "DisruptionAllowed",
        "status": "False", "reason": "SyncFailed", "message": "no scale",
        "lastTransitionTime": "2026-11-15T12:00:00Z"}]});
    let mut unseen = status(1, 2, 1);
    unseen["observedGeneration"] = json!(0);
    let cases = [
        (status(0, 2, 2), 429, needs),
        (
            failed,
            429,
            "The disruption budget b does not allow evicting pods currently because it failed \
             sync: no scale",
        ),
        (unseen, 429, "The disruption budget b is still being processed by the server."),
    ];
    for (status, code, why) in cases {
        let mut world = world();
        budget(&mut world, "b", &json!({"minAvailable": 2}), status);
        assert_eq!(evict(&mut world, "ready").unwrap_err(), (code, why.to_owned()));
        assert!(!is_leaving(&world, "ready"), "{why}");
    }
}

#[test]
fn what_is_not_ready_may_go_when_nothing_depends_on_it() {
    let cases = [
        ("all that must be there are", json!({"minAvailable": 1}), status(0, 1, 1), true),
        ("fewer are", json!({"minAvailable": 2}), status(0, 1, 2), false),
        (
            "they may always",
            json!({"minAvailable": 2, "unhealthyPodEvictionPolicy": "AlwaysAllow"}),
            status(0, 1, 2),
            true,
        ),
    ];
    for (name, spec, status, may_go) in cases {
        let mut world = world();
        budget(&mut world, "b", &spec, status.clone());
        assert_eq!(evict(&mut world, "unready").is_ok(), may_go, "{name}");
        let after = world.get("poddisruptionbudgets", "n/b").unwrap()["status"].clone();
        assert_eq!(after["disruptionsAllowed"], status["disruptionsAllowed"], "{name}");
        assert!(after.get("disruptedPods").is_none(), "{name}: nothing is charged");
    }
}

#[test]
fn pods_that_have_not_begun_or_have_ended_are_not_guarded() {
    for phase in ["Pending", "Succeeded", "Failed"] {
        let mut world = world();
        budget(&mut world, "b", &json!({"minAvailable": 2}), status(0, 2, 2));
        set_status(&mut world, "pods", "ready", json!({"phase": phase}));
        evict(&mut world, "ready").unwrap();
    }
}

#[test]
fn two_budgets_over_one_pod_are_too_many() {
    let mut world = world();
    for name in ["a", "b"] {
        budget(&mut world, name, &json!({"minAvailable": 0}), status(2, 2, 0));
    }
    let (code, why) = evict(&mut world, "ready").unwrap_err();
    assert_eq!(code, 500);
    assert!(why.starts_with("This pod has more than one PodDisruptionBudget"), "{why}");
}

#[test]
fn two_evictions_cannot_both_have_the_last() {
    let mut world = world();
    set_status(
        &mut world,
        "pods",
        "unready",
        json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}),
    );
    budget(&mut world, "b", &json!({"minAvailable": 1}), status(1, 2, 1));
    let options = DeleteOptions::default();
    let [first, second] = ["ready", "unready"].map(|name| {
        world.planned("pods", "n", |scene| rest::evict(scene, name, &options)).unwrap()
    });
    let staged = world.store.stage(first.change).expect("nobody was faster");
    world.store.publish(staged.revision, world.now);
    assert!(world.store.stage(second.change).is_err(), "the budget is not what it was");
    assert_eq!(evict(&mut world, "unready").unwrap_err().0, 429);
}
