use lockstep_api::strategy::Propagation;
use serde_json::{Value, json};

use crate::{
    object::Object,
    rest::DeleteOptions,
    snapshot::VISITED,
    testing::{World, map},
};

fn config(name: &str, owners: &[Value], finalizers: &[&str]) -> Value {
    json!({"metadata": {"name": name, "ownerReferences": owners, "finalizers": finalizers}})
}

fn owner(of: &Object, is_blocking: bool) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "name": &*of.meta.name, "uid": &*of.meta.uid,
        "blockOwnerDeletion": is_blocking,
    })
}

fn options(propagation: Propagation) -> DeleteOptions {
    DeleteOptions { propagation: Some(propagation), ..DeleteOptions::default() }
}

fn names(world: &World) -> Vec<String> {
    let snapshot = world.store.published();
    snapshot.range("configmaps", None, None).map(|(_, o)| o.meta.name.to_string()).collect()
}

#[test]
fn dependents_go_when_all_their_owners_are_gone() {
    let mut world = World::new();
    let a = world.create("configmaps", "n", config("a", &[], &[])).unwrap();
    let b = world.create("configmaps", "n", config("b", &[], &[])).unwrap();
    world.create("configmaps", "n", config("of-a", &[owner(&a, false)], &[])).unwrap();
    let both = [owner(&a, false), owner(&b, false)];
    world.create("configmaps", "n", config("of-both", &both, &[])).unwrap();
    world.collect();
    assert_eq!(names(&world), ["a", "b", "of-a", "of-both"]);
    world.delete("configmaps", ("n", "a"), &options(Propagation::Background)).unwrap();
    world.collect();
    assert_eq!(names(&world), ["b", "of-both"]);
    let kept = world.get("configmaps", "n/of-both").unwrap();
    assert_eq!(kept["metadata"]["ownerReferences"].as_array().unwrap().len(), 1);
    world.delete("configmaps", ("n", "b"), &options(Propagation::Background)).unwrap();
    world.collect();
    assert_eq!(names(&world), [""; 0]);
}

#[test]
fn an_owner_is_who_its_uid_says() {
    let mut world = World::new();
    world.create("namespaces", "", json!({"metadata": {"name": "m"}})).unwrap();
    let a = world.create("configmaps", "n", config("a", &[], &[])).unwrap();
    let mut impostor = owner(&a, false);
    impostor["uid"] = json!("somebody-else");
    world.create("configmaps", "n", config("wrong-uid", &[impostor], &[])).unwrap();
    world.create("configmaps", "m", config("other-namespace", &[owner(&a, false)], &[])).unwrap();
    let mut unserved = owner(&a, false);
    unserved["kind"] = json!("Gizmo");
    world.create("configmaps", "n", config("of-unserved", &[unserved], &[])).unwrap();
    world.collect();
    assert_eq!(names(&world), ["a", "of-unserved"]);
}

#[test]
fn foreground_deletion_waits_for_those_that_block_it() {
    let mut world = World::new();
    let a = world.create("configmaps", "n", config("a", &[], &[])).unwrap();
    let held = config("held", &[owner(&a, true)], &["example.com/hold"]);
    world.create("configmaps", "n", held).unwrap();
    world.create("configmaps", "n", config("free", &[owner(&a, true)], &[])).unwrap();
    world.delete("configmaps", ("n", "a"), &options(Propagation::Foreground)).unwrap();
    world.collect();
    assert_eq!(names(&world), ["a", "held"]);
    let mut held = world.get("configmaps", "n/held").unwrap();
    assert!(held["metadata"].get("deletionTimestamp").is_some());
    map(held["metadata"].clone());
    held["metadata"].as_object_mut().unwrap().remove("finalizers");
    world.update("configmaps", None, ("n", "held"), held).unwrap();
    world.collect();
    assert_eq!(names(&world), [""; 0]);
}

#[test]
fn those_that_own_each_other_go_together() {
    for deleted in [&["a"][..], &["a", "c"], &["c", "b", "a"]] {
        let mut world = World::new();
        let a = world.create("configmaps", "n", config("a", &[], &[])).unwrap();
        let b = world.create("configmaps", "n", config("b", &[owner(&a, true)], &[])).unwrap();
        let c = world.create("configmaps", "n", config("c", &[owner(&b, true)], &[])).unwrap();
        let mut ring = a.json();
        ring["metadata"]["ownerReferences"] = json!([owner(&c, true), owner(&a, true)]);
        world.update("configmaps", None, ("n", "a"), ring).unwrap();
        world.collect();
        assert_eq!(names(&world), ["a", "b", "c"]);
        for name in deleted {
            world.delete("configmaps", ("n", name), &options(Propagation::Foreground)).unwrap();
        }
        world.collect();
        assert_eq!(names(&world), [""; 0], "{deleted:?}");
    }
}

#[test]
fn orphans_stay_and_forget_their_owner() {
    let mut world = World::new();
    let a = world.create("configmaps", "n", config("a", &[], &[])).unwrap();
    world.create("configmaps", "n", config("of-a", &[owner(&a, true)], &[])).unwrap();
    world.delete("configmaps", ("n", "a"), &options(Propagation::Orphan)).unwrap();
    assert_eq!(names(&world), ["a", "of-a"]);
    world.collect();
    assert_eq!(names(&world), ["of-a"]);
    let orphan = world.get("configmaps", "n/of-a").unwrap();
    assert!(orphan["metadata"].get("ownerReferences").is_none());
}

#[test]
fn a_namespace_goes_after_its_contents() {
    let mut world = World::new();
    world.create("configmaps", "n", config("a", &[], &["example.com/hold"])).unwrap();
    world.create("configmaps", "n", config("b", &[], &[])).unwrap();
    let gone = world.delete("namespaces", ("", "n"), &DeleteOptions::default()).unwrap();
    assert_eq!(gone.json()["status"]["phase"], "Terminating");
    world.collect();
    assert_eq!(names(&world), ["a"]);
    let held = world.get("namespaces", "n").unwrap();
    let said = |kind: &str| {
        let conditions = held["status"]["conditions"].as_array().unwrap();
        conditions.iter().find(|one| one["type"] == kind).unwrap()["message"].clone()
    };
    assert_eq!(
        said("NamespaceContentRemaining"),
        "Some resources are remaining: configmaps. has 1 resource instances"
    );
    assert_eq!(
        said("NamespaceFinalizersRemaining"),
        "Some content in the namespace has finalizers remaining: example.com/hold in 1 resource \
         instances"
    );
    let refused = world.create("configmaps", "n", config("c", &[], &[])).unwrap_err();
    assert_eq!((refused.code, refused.reason.as_str()), (403, "Forbidden"));
    assert_eq!(refused.details.unwrap().causes[0].reason, "NamespaceTerminating");
    let mut held = world.get("configmaps", "n/a").unwrap();
    held["metadata"].as_object_mut().unwrap().remove("finalizers");
    world.update("configmaps", None, ("n", "a"), held).unwrap();
    world.collect();
    assert!(world.get("namespaces", "n").is_none());
    let missing = world.create("configmaps", "n", config("c", &[], &[])).unwrap_err();
    assert_eq!(missing.message, "namespaces \"n\" not found");
}

#[test]
fn the_pods_of_a_namespace_go_before_all_else_in_it() {
    let mut world = World::new();
    world.create("configmaps", "n", config("a", &[], &[])).unwrap();
    for (name, finalizers) in [("held", &["example.com/hold"][..]), ("free", &[])] {
        let pod = json!({
            "metadata": {"name": name, "finalizers": finalizers},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        });
        world.create("pods", "n", pod).unwrap();
    }
    world.delete("namespaces", ("", "n"), &DeleteOptions::default()).unwrap();
    world.observe_and_collect();
    assert_eq!(world.store.published().len("pods"), 1);
    let mut held = world.get("pods", "n/held").unwrap();
    assert!(held["metadata"].get("deletionTimestamp").is_some());
    let waiting = world.get("configmaps", "n/a").unwrap();
    assert!(waiting["metadata"].get("deletionTimestamp").is_none());
    // Upstream says that all is well as long as it waits for pods.
    let conditions = world.get("namespaces", "n").unwrap()["status"]["conditions"].clone();
    let conditions = conditions.as_array().unwrap();
    assert_eq!(conditions.len(), 5);
    assert!(conditions.iter().all(|one| one["status"] == "False"), "{conditions:?}");
    held["metadata"].as_object_mut().unwrap().remove("finalizers");
    world.update("pods", None, ("n", "held"), held).unwrap();
    world.observe_and_collect();
    assert_eq!(names(&world), [""; 0]);
    assert!(world.get("namespaces", "n").is_none());
}

#[test]
fn a_namespace_somebody_holds_is_emptied_all_the_same() {
    let mut world = World::empty();
    let held = json!({"metadata": {"name": "n", "finalizers": ["example.com/hold"]}});
    world.create("namespaces", "", held).unwrap();
    world.create("configmaps", "n", config("a", &[], &[])).unwrap();
    world.delete("namespaces", ("", "n"), &DeleteOptions::default()).unwrap();
    world.collect();
    assert_eq!(names(&world), [""; 0]);
    let mut held = world.get("namespaces", "n").unwrap();
    assert!(held["spec"].get("finalizers").is_none(), "{held:?}");
    let conditions = held["status"]["conditions"].as_array().unwrap();
    assert!(conditions.iter().all(|one| one["status"] == "False"), "{conditions:?}");
    held["metadata"].as_object_mut().unwrap().remove("finalizers");
    world.update("namespaces", None, ("", "n"), held).unwrap();
    assert!(world.get("namespaces", "n").is_none());
}

/// Takes its finalizer from an object.
fn let_go(world: &mut World, name: &str) {
    let mut held = world.get("configmaps", &format!("n/{name}")).unwrap();
    held["metadata"].as_object_mut().unwrap().remove("finalizers");
    world.update("configmaps", None, ("n", name), held).unwrap();
}

/// How many dependents the collectors look at while `work` is done.
fn visited(work: impl FnOnce()) -> usize {
    let before = VISITED.get();
    work();
    VISITED.get() - before
}

#[test]
fn a_large_namespace_is_emptied_object_by_object() {
    let mut world = World::new();
    for at in 0..500 {
        let held = config(&format!("m{at}"), &[], &["example.com/hold"]);
        world.create("configmaps", "n", held).unwrap();
    }
    world.delete("namespaces", ("", "n"), &DeleteOptions::default()).unwrap();
    let candidate = ("namespaces".into(), "n".into());
    assert!(world.plans(&candidate).is_empty(), "a namespace waits for what is in it");
    world.collect();
    let snapshot = world.store.published();
    let deleting = snapshot.range("configmaps", None, None).filter(|(_, o)| o.meta.is_deleting());
    assert_eq!(deleting.count(), 500);
    for at in 0..500 {
        let_go(&mut world, &format!("m{at}"));
        world.observe_and_collect();
    }
    assert!(world.get("namespaces", "n").is_none());
}

#[test]
fn what_an_owner_costs_grows_with_its_dependents_and_no_faster() {
    let count = 400;
    for (propagation, are_held) in [
        (Propagation::Foreground, true),
        (Propagation::Background, true),
        (Propagation::Orphan, false),
    ] {
        let mut world = World::new();
        let owner_of_all = world.create("configmaps", "n", config("a", &[], &[])).unwrap();
        let finalizers: &[&str] = if are_held { &["example.com/hold"] } else { &[] };
        for at in 0..count {
            let one = config(&format!("m{at}"), &[owner(&owner_of_all, true)], finalizers);
            world.create("configmaps", "n", one).unwrap();
        }
        world.observe_and_collect();
        let cost = visited(|| {
            world.delete("configmaps", ("n", "a"), &options(propagation)).unwrap();
            world.observe_and_collect();
            // One by one, as the pods of a Job go.
            for at in (0..count).filter(|_| are_held) {
                let_go(&mut world, &format!("m{at}"));
                world.observe_and_collect();
            }
        });
        let left = if are_held { 0 } else { count };
        assert_eq!(world.store.published().len("configmaps"), left, "{propagation:?}");
        assert!(cost <= 4 * count, "{propagation:?}: {cost} for {count} dependents");
    }
}

#[test]
fn the_namespaces_of_the_system_stay() {
    let mut world = World::empty();
    for name in ["default", "kube-system", "kube-public"] {
        world.create("namespaces", "", json!({"metadata": {"name": name}})).unwrap();
        let status = world.delete("namespaces", ("", name), &DeleteOptions::default()).unwrap_err();
        assert_eq!(
            status.message,
            format!("namespaces {name:?} is forbidden: this namespace may not be deleted")
        );
    }
}
