//! Pods ask for what their namespace and their class make them ask for.

use k8s_openapi::api::{core::v1::LimitRange, node::v1::RuntimeClass};

use super::*;

impl World {
    fn range(&mut self, namespace: &str, items: &Value) {
        let object = json!({"metadata": {"name": "r", "namespace": namespace},
                            "spec": {"limits": items}});
        let range: LimitRange = serde_json::from_value(object).unwrap();
        self.queues.limit_range_seen(&Arc::new(range), self.now);
    }

    fn pod(&mut self, name: &str, pod: Value) {
        let sets = json!([{"name": "main", "count": 2, "template": {"spec": pod}}]);
        self.add_with(name, "q", 0, json!({"podSets": sets}), 0);
    }

    fn used(&self, name: &str) -> String {
        let status = self.workloads[name].status.as_ref().unwrap();
        let admission = status.admission.as_ref().unwrap();
        admission.pod_set_assignments[0].resource_usage["gpu"].0.clone()
    }
}

// rule: queueing 3.2.6
#[test]
fn what_a_limit_range_has_for_containers_is_asked_for() {
    let mut world = World::new(&[("q", gpus(9, json!({})))]);
    let item = |gpus: &str| json!([{"type": "Container", "defaultRequest": {"gpu": gpus}}]);
    world.range("ns", &item("2"));
    world.range("other", &item("7"));
    world.pod("first", json!({"containers": [{}]}));
    world.pod("second", json!({"containers": [{}, {}]}));
    world.run();
    assert_eq!(world.used("first"), "4");
    assert_eq!(world.quota("second").0, "WaitingForQuota");
    world.range("ns", &item("1"));
    world.run();
    assert_eq!(world.used("second"), "4", "it was looked at again");
    assert_eq!(world.used("first"), "4", "what it holds it goes on holding");
    world.pod("third", json!({"containers": [{}]}));
    world.run();
    assert_eq!(world.quota("third").0, "WaitingForQuota");
    let key = Key { namespace: "ns".to_owned(), name: "r".to_owned() };
    world.queues.limit_range_gone(&key, world.now);
    world.run();
    assert!(world.holding().contains("third"), "it asks for nothing any more");
}

// rule: queueing 4.2.1
#[test]
fn who_is_outside_the_bounds_of_its_namespace_is_told() {
    let mut world = World::new(&[("q", gpus(9, json!({})))]);
    world.range("ns", &json!([{"type": "Container", "max": {"gpu": "1"}}]));
    world.pod("large", json!({"containers": [{"resources": {"requests": {"gpu": "2"}}}]}));
    world.run();
    let want = "resources didn't satisfy LimitRange constraints: \
                spec.podSets[0].template.spec.containers[0]: Invalid value: [\"gpu\"]: requests \
                must not be above the limitRange max";
    assert_eq!(world.quota("large"), ("Misconfigured".to_owned(), want.to_owned()));
    world.range("ns", &json!([{"type": "Container", "max": {"gpu": "2"}}]));
    world.run();
    assert!(world.holding().contains("large"));
}

// rule: queueing 3.2.6
#[test]
fn the_overhead_of_a_runtime_class_is_asked_for() {
    let mut world = World::new(&[("q", gpus(9, json!({})))]);
    let class = |gpus: &str| -> RuntimeClass {
        let overhead = json!({"podFixed": {"gpu": gpus}});
        let object = json!({"metadata": {"name": "heavy"}, "handler": "h", "overhead": overhead});
        serde_json::from_value(object).unwrap()
    };
    world.queues.runtime_class_seen(&class("8"), world.now);
    world.pod("a", json!({"containers": [{}], "runtimeClassName": "heavy"}));
    world.run();
    assert_eq!(world.quota("a").0, "ExceedsMaxQuota");
    world.queues.runtime_class_seen(&class("3"), world.now);
    world.run();
    assert_eq!(world.used("a"), "6");
}

// rule: queueing 3.2.6
#[test]
fn who_has_limits_alone_asks_for_them_whatever_the_range_has_for_others() {
    let mut world = World::new(&[("q", gpus(9, json!({})))]);
    let limited = json!({"containers": [{"resources": {"limits": {"gpu": "4"}}}]});
    for (name, of_range, want) in [("more", "1", "8"), ("less", "5", "8")] {
        world.range("ns", &json!([{"type": "Container", "defaultRequest": {"gpu": of_range}}]));
        world.pod(name, limited.clone());
        world.run();
        assert_eq!(world.used(name), want, "{name}: {:?}", world.condition(name, "QuotaReserved"));
        world.finish(name);
        world.run();
    }
}

#[test]
fn only_those_are_looked_at_again_for_whom_something_changes() {
    let mut world = World::new(&[("q", gpus(9, json!({})))]);
    let asks = |resources: Value| json!({"containers": [{"resources": resources}]});
    world.pod("plain", asks(json!({})));
    world.pod("own", asks(json!({"requests": {"gpu": "1"}})));
    world.run();
    drop(world.queues.take_touched());
    world.range("ns", &json!([{"type": "Container", "defaultRequest": {"gpu": "1"}}]));
    assert_eq!(world.queues.take_touched(), BTreeSet::from([key("plain")]));
}
