//! Writes under quotas, and what is counted when something ends.

use serde_json::{Value, json};

use crate::{
    rest::{self, DeleteOptions},
    testing::{World, map},
};

fn world(spec: &Value) -> World {
    let mut world = World::new();
    let quota = json!({"metadata": {"name": "q"}, "spec": spec});
    world.create("resourcequotas", "n", quota).unwrap();
    world.collect();
    world
}

fn pod(name: &str, cpu: &str) -> Value {
    let resources = json!({"requests": {"cpu": cpu}});
    json!({
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "c", "image": "i:1", "resources": resources}]},
    })
}

fn config(name: &str) -> Value {
    json!({"metadata": {"name": name}})
}

fn used(world: &World) -> Value {
    world.get("resourcequotas", "n/q").unwrap()["status"]["used"].clone()
}

fn now() -> DeleteOptions {
    DeleteOptions { grace_period_seconds: Some(0), ..DeleteOptions::default() }
}

#[test]
fn a_new_quota_counts_what_is_there() {
    let mut world = World::new();
    world.create("configmaps", "n", config("a")).unwrap();
    world.create("pods", "n", pod("p", "300m")).unwrap();
    let hard = json!({"configmaps": "5", "count/jobs.batch": "1", "pods": "2", "cpu": "1"});
    let quota = json!({"metadata": {"name": "q"}, "spec": {"hard": hard},
        "status": {"used": {"pods": "9"}}});
    let made = world.create("resourcequotas", "n", quota).unwrap().json();
    assert_eq!(made.get("status"), Some(&json!({})), "it is counted later");
    world.collect();
    let status = world.get("resourcequotas", "n/q").unwrap()["status"].clone();
    assert_eq!(status["hard"], hard);
    let want = json!({"configmaps": "1", "count/jobs.batch": "0", "cpu": "300m", "pods": "1"});
    assert_eq!(status["used"], want);
}

#[test]
fn the_last_there_is_goes_to_one() {
    let mut world = world(&json!({"hard": {"pods": "2", "cpu": "1"}}));
    world.create("pods", "n", pod("a", "600m")).unwrap();
    assert_eq!(used(&world), json!({"cpu": "600m", "pods": "1"}));
    // Two see the same room, and plan on it.
    let plans: Vec<_> = ["b", "c"]
        .map(|name| {
            let object = map(pod(name, "400m"));
            world.planned("pods", "n", |scene| rest::create(scene, object)).unwrap()
        })
        .into();
    let [first, second] = plans.try_into().expect("two plans");
    let staged = world.store.stage(first.change).expect("nobody was faster");
    world.store.publish(staged.revision, world.now);
    assert!(world.store.stage(second.change).is_err(), "the quota is not what it was");
    assert_eq!(used(&world), json!({"cpu": "1", "pods": "2"}));
    let refused = world.create("pods", "n", pod("c", "400m")).unwrap_err();
    assert_eq!(refused.code, 403);
    assert_eq!(
        refused.message,
        "pods \"c\" is forbidden: exceeded quota: q, requested: cpu=400m,pods=1, used: \
         cpu=1,pods=2, limited: cpu=1,pods=2"
    );
}

#[test]
fn what_ends_is_given_back() {
    let mut world = world(&json!({"hard": {"pods": "2", "count/pods": "9", "cpu": "9"}}));
    world.create("pods", "n", pod("a", "1")).unwrap();
    world.create("pods", "n", pod("b", "2")).unwrap();
    assert_eq!(used(&world), json!({"count/pods": "2", "cpu": "3", "pods": "2"}));
    let mut done = world.get("pods", "n/a").unwrap();
    done["status"]["phase"] = json!("Succeeded");
    world.update("pods", Some("status"), ("n", "a"), done).unwrap();
    world.collect();
    assert_eq!(used(&world), json!({"count/pods": "2", "cpu": "2", "pods": "1"}));
    world.delete("pods", ("n", "b"), &now()).unwrap();
    world.collect();
    assert_eq!(used(&world), json!({"count/pods": "1", "cpu": "0", "pods": "0"}));
}

#[test]
fn a_count_does_not_lose_what_was_charged_meanwhile() {
    let mut world = world(&json!({"hard": {"configmaps": "5"}}));
    world.create("configmaps", "n", config("a")).unwrap();
    world.delete("configmaps", ("n", "a"), &DeleteOptions::default()).unwrap();
    let candidate = ("resourcequotas".into(), "n/q".into());
    let count = world.plans(&candidate).pop().expect("one is gone");
    world.create("configmaps", "n", config("b")).unwrap();
    assert!(world.store.stage(count).is_err(), "another was charged");
    world.collect();
    assert_eq!(used(&world), json!({"configmaps": "1"}));
}

#[test]
fn a_first_count_does_not_overlook_anything() {
    let mut world = World::new();
    let quota = json!({"metadata": {"name": "q"}, "spec": {"hard": {"configmaps": "5"}}});
    world.create("resourcequotas", "n", quota).unwrap();
    let candidate = ("resourcequotas".into(), "n/q".into());
    let count = world.plans(&candidate).pop().expect("it was never counted");
    world.create("configmaps", "n", config("b")).unwrap();
    assert!(world.store.stage(count).is_err(), "something came in between");
    world.collect();
    assert_eq!(used(&world), json!({"configmaps": "1"}));
}

#[test]
fn another_limit_holds_when_it_is_counted() {
    let mut world = world(&json!({"hard": {"configmaps": "1"}}));
    world.create("configmaps", "n", config("a")).unwrap();
    world.create("configmaps", "n", config("b")).unwrap_err();
    let mut quota = world.get("resourcequotas", "n/q").unwrap();
    quota["spec"]["hard"] = json!({"configmaps": "2", "secrets": "0"});
    world.update("resourcequotas", None, ("n", "q"), quota).unwrap();
    world.collect();
    assert_eq!(used(&world), json!({"configmaps": "1", "secrets": "0"}));
    world.create("configmaps", "n", config("b")).unwrap();
    let refused = world.create("secrets", "n", config("s")).unwrap_err();
    assert_eq!(
        refused.message,
        "secrets \"s\" is forbidden: exceeded quota: q, requested: secrets=1, used: secrets=0, \
         limited: secrets=0"
    );
}

#[test]
fn a_service_that_grows_is_charged_and_one_that_shrinks_gives_back() {
    let mut world = world(&json!({"hard": {"services": "1", "services.nodeports": "1"}}));
    let ports = json!([{"name": "a", "port": 1}]);
    let service = json!({"metadata": {"name": "s"}, "spec": {"ports": ports}});
    let mut service = world.create("services", "n", service).unwrap().json();
    assert_eq!(used(&world), json!({"services": "1", "services.nodeports": "0"}));
    service["spec"]["type"] = json!("NodePort");
    service = world.update("services", None, ("n", "s"), service).unwrap().json();
    assert_eq!(used(&world), json!({"services": "1", "services.nodeports": "1"}));
    let mut larger = service.clone();
    larger["spec"]["ports"].as_array_mut().unwrap().push(json!({"name": "b", "port": 2}));
    let refused = world.update("services", None, ("n", "s"), larger).unwrap_err();
    assert!(refused.message.contains("requested: services.nodeports=1"), "{}", refused.message);
    service["spec"]["type"] = json!("ClusterIP");
    service["spec"]["ports"] = ports;
    world.update("services", None, ("n", "s"), service).unwrap();
    world.collect();
    assert_eq!(used(&world), json!({"services": "1", "services.nodeports": "0"}));
}

#[test]
fn a_quota_goes_with_its_namespace() {
    let mut world = world(&json!({"hard": {"configmaps": "9"}}));
    world.create("configmaps", "n", config("a")).unwrap();
    world.delete("namespaces", ("", "n"), &DeleteOptions::default()).unwrap();
    world.collect();
    assert!(world.get("resourcequotas", "n/q").is_none());
    assert!(world.get("namespaces", "n").is_none());
}

#[test]
fn other_namespaces_and_events_are_not_counted() {
    let mut world = world(&json!({"hard": {"count/events": "0", "pods": "0"}}));
    world.create("namespaces", "", json!({"metadata": {"name": "m"}})).unwrap();
    world.create("pods", "m", pod("a", "1")).unwrap();
    let event = json!({"metadata": {"name": "e"}, "involvedObject": {"namespace": "n"},
        "reason": "R"});
    world.create("events", "n", event).unwrap();
    assert_eq!(used(&world), json!({"pods": "0"}));
    world.create("pods", "n", pod("a", "1")).unwrap_err();
}
