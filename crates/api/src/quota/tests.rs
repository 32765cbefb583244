//! What is counted and who is refused, case by case.

use serde_json::{Value, json};

use super::*;

fn now() -> Timestamp {
    "2026-11-15T12:00:00Z".parse().unwrap()
}

fn map(value: Value) -> Json {
    serde_json::from_value(value).unwrap()
}

fn quota(spec: &Value, used: &Value) -> Quota {
    let status = json!({"hard": spec["hard"], "used": used});
    Quota::read(&map(json!({"metadata": {"name": "q"}, "spec": spec, "status": status})))
}

fn pod(spec: &Value) -> Json {
    map(json!({"metadata": {"name": "p"}, "spec": spec}))
}

fn plain(resources: &Value) -> Value {
    json!({"containers": [{"name": "c", "resources": resources}]})
}

fn counted(plural: &str) -> Counted {
    Counted::of("", plural).unwrap()
}

/// What a new object comes to, as a text, or why it is refused.
fn tried(quota: &Quota, counted: &Counted, object: &Json) -> String {
    let request = Request { counted, object, old: None, is_status: false, now: now() };
    match charge(std::slice::from_ref(quota), &request) {
        Ok(charges) => {
            let used = charges.first().map(|charge| amounts::written(&charge.used));
            used.map_or_else(|| "free".to_owned(), |used| used.to_string())
        }
        Err(why) => why,
    }
}

/// A case: its name, the spec of a quota, what is used of it, the spec of a pod, what comes of it.
type Case = (&'static str, Value, Value, Value, &'static str);

fn check(cases: &[Case]) {
    for (name, spec, used, object, want) in cases {
        let found = tried(&quota(spec, used), &counted("pods"), &pod(object));
        assert_eq!(found, *want, "{name}");
    }
}

#[test]
fn new_objects_are_charged_or_refused() {
    let cpu = |amount: &str| plain(&json!({"requests": {"cpu": amount}}));
    check(&[
        (
            "there is room",
            json!({"hard": {"pods": "2"}}),
            json!({"pods": "1"}),
            plain(&json!({})),
            r#"{"pods":"2"}"#,
        ),
        (
            "there is none",
            json!({"hard": {"pods": "2"}}),
            json!({"pods": "2"}),
            plain(&json!({})),
            "exceeded quota: q, requested: pods=1, used: pods=2, limited: pods=2",
        ),
        (
            "two things are too much, in order",
            json!({"hard": {"requests.cpu": "1", "count/pods": "1", "pods": "9"}}),
            json!({"requests.cpu": "800m", "count/pods": "1", "pods": "1"}),
            cpu("500m"),
            "exceeded quota: q, requested: count/pods=1,requests.cpu=500m, used: \
             count/pods=1,requests.cpu=800m, limited: count/pods=1,requests.cpu=1",
        ),
        (
            "nothing is said of what is counted",
            json!({"hard": {"cpu": "1", "limits.memory": "1Gi"}}),
            json!({"cpu": "0", "limits.memory": "0"}),
            json!({"containers": [{"name": "b"}, {"name": "a"}],
                "initContainers": [{"name": "i", "resources": {"requests": {"cpu": "1"}}}]}),
            "failed quota: q: must specify cpu for: a,b; limits.memory for: a,b,i",
        ),
    ]);
}

#[test]
fn what_is_asked_for_is_counted_by_its_name() {
    check(&[
        (
            "what the pod says itself is enough",
            json!({"hard": {"cpu": "4"}}),
            json!({"cpu": "0"}),
            json!({"containers": [{"name": "a"}], "resources": {"requests": {"cpu": "3"}}}),
            r#"{"cpu":"3"}"#,
        ),
        (
            "storage need not be mentioned",
            json!({"hard": {"requests.ephemeral-storage": "1Gi", "pods": "5"}}),
            json!({"requests.ephemeral-storage": "0", "pods": "0"}),
            plain(&json!({})),
            r#"{"pods":"1","requests.ephemeral-storage":"0"}"#,
        ),
        (
            "devices",
            json!({"hard": {"requests.nvidia.com/gpu": "4"}}),
            json!({"requests.nvidia.com/gpu": "3"}),
            plain(&json!({"requests": {"nvidia.com/gpu": "2"}})),
            "exceeded quota: q, requested: requests.nvidia.com/gpu=2, used: \
             requests.nvidia.com/gpu=3, limited: requests.nvidia.com/gpu=4",
        ),
        (
            "nobody has counted yet",
            json!({"hard": {"pods": "2"}}),
            json!({}),
            plain(&json!({})),
            "status unknown for quota: q, resources: pods",
        ),
        (
            "other things are counted",
            json!({"hard": {"secrets": "2"}}),
            json!({"secrets": "2"}),
            plain(&json!({})),
            "free",
        ),
    ]);
}

#[test]
fn scopes_say_which_pods_are_meant() {
    let select = |operator: &str, values: &[&str]| {
        let one = json!({"scopeName": "PriorityClass", "operator": operator, "values": values});
        json!({"hard": {"pods": "1"}, "scopeSelector": {"matchExpressions": [one]}})
    };
    let scope = |name: &str| json!({"hard": {"pods": "1"}, "scopes": [name]});
    let plain_pod = plain(&json!({}));
    let with = |key: &str, value: Value| {
        let mut spec = plain(&json!({}));
        spec[key] = value;
        spec
    };
    let burst = plain(&json!({"requests": {"cpu": "1"}}));
    let high = with("priorityClassName", json!("high"));
    let ends = with("activeDeadlineSeconds", json!(5));
    let near = json!({"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
        [{"topologyKey": "k", "namespaces": ["other"]}]}});
    let cases = [
        (scope("Terminating"), &ends, true),
        (scope("Terminating"), &plain_pod, false),
        (scope("NotTerminating"), &ends, false),
        (scope("NotTerminating"), &plain_pod, true),
        (scope("BestEffort"), &plain_pod, true),
        (scope("BestEffort"), &burst, false),
        (scope("NotBestEffort"), &burst, true),
        (scope("PriorityClass"), &high, true),
        (scope("PriorityClass"), &plain_pod, false),
        (scope("CrossNamespacePodAffinity"), &with("affinity", near), true),
        (scope("CrossNamespacePodAffinity"), &plain_pod, false),
        (select("In", &["high"]), &high, true),
        (select("In", &["low"]), &high, false),
        (select("NotIn", &["low"]), &high, true),
        (select("NotIn", &["low"]), &plain_pod, true),
        (select("DoesNotExist", &[]), &plain_pod, true),
        (select("DoesNotExist", &[]), &high, false),
    ];
    for (spec, object, is_meant) in cases {
        let found = tried(&quota(&spec, &json!({"pods": "0"})), &counted("pods"), &pod(object));
        let want = if is_meant { r#"{"pods":"1"}"# } else { "free" };
        assert_eq!(found, want, "{spec} {object}");
    }
    let by_scope = quota(&json!({"hard": {"secrets": "1"}, "scopes": ["BestEffort"]}), &json!({}));
    assert_eq!(tried(&by_scope, &counted("secrets"), &Json::new()), "free");
}

#[test]
fn services_and_claims_have_more_than_a_number() {
    let hard = json!({"services": "9", "services.nodeports": "9", "services.loadbalancers": "9"});
    let services = quota(
        &json!({"hard": hard}),
        &json!({"services": "0",
        "services.nodeports": "0", "services.loadbalancers": "0"}),
    );
    let service = |spec: Value| map(json!({"spec": spec}));
    let ports = json!([{"port": 1}, {"port": 2, "nodePort": 30000}]);
    let cases = [
        (json!({"type": "ClusterIP", "ports": ports}), (0, 0)),
        (json!({"type": "NodePort", "ports": ports}), (0, 2)),
        (json!({"type": "LoadBalancer", "ports": ports}), (1, 2)),
        (
            json!({"type": "LoadBalancer", "ports": ports, "allocateLoadBalancerNodePorts": false}),
            (1, 1),
        ),
    ];
    for (spec, (balancers, node_ports)) in cases {
        let want = json!({"services": "1", "services.loadbalancers": balancers.to_string(),
            "services.nodeports": node_ports.to_string()});
        let found = tried(&services, &counted("services"), &service(spec.clone()));
        assert_eq!(found, want.to_string(), "{spec}");
    }
    let hard = json!({"persistentvolumeclaims": "2", "requests.storage": "10Gi",
        "gold.storageclass.storage.k8s.io/requests.storage": "5Gi"});
    let used = json!({"persistentvolumeclaims": "0", "requests.storage": "0",
        "gold.storageclass.storage.k8s.io/requests.storage": "0"});
    let claims = quota(&json!({"hard": hard}), &used);
    let claim = |class: &str| {
        map(json!({"spec": {"storageClassName": class,
            "resources": {"requests": {"storage": "6Gi"}}}}))
    };
    let mut want = used.clone();
    want["persistentvolumeclaims"] = json!("1");
    want["requests.storage"] = json!("6Gi");
    let found = tried(&claims, &counted("persistentvolumeclaims"), &claim("tin"));
    assert_eq!(found, want.to_string());
    assert_eq!(
        tried(&claims, &counted("persistentvolumeclaims"), &claim("gold")),
        "exceeded quota: q, requested: gold.storageclass.storage.k8s.io/requests.storage=6Gi, \
         used: gold.storageclass.storage.k8s.io/requests.storage=0, limited: \
         gold.storageclass.storage.k8s.io/requests.storage=5Gi"
    );
}

#[test]
fn a_change_is_charged_what_it_adds() {
    let services = counted("services");
    let spec = json!({"hard": {"services": "1", "services.nodeports": "3"}});
    let full = quota(&spec, &json!({"services": "1", "services.nodeports": "1"}));
    let of =
        |ports: usize| map(json!({"spec": {"type": "NodePort", "ports": vec![json!({}); ports]}}));
    let changed = |new: usize| {
        let (old, object) = (of(1), of(new));
        let request = Request {
            counted: &services,
            object: &object,
            old: Some(&old),
            is_status: false,
            now: now(),
        };
        charge(std::slice::from_ref(&full), &request)
            .map(|charges| charges.first().map(|one| amounts::written(&one.used).to_string()))
    };
    assert_eq!(changed(1), Ok(None));
    assert_eq!(changed(0), Ok(None), "what is given back is counted later");
    let more = r#"{"services":"1","services.nodeports":"3"}"#;
    assert_eq!(changed(3), Ok(Some(more.to_owned())));
    assert_eq!(
        changed(4),
        Err("exceeded quota: q, requested: services.nodeports=3, used: services.nodeports=1, \
             limited: services.nodeports=3"
            .to_owned())
    );
}

#[test]
fn pods_that_have_ended_take_no_room_but_are_there() {
    let spec = json!({"hard": {"pods": "9", "count/pods": "9", "requests.cpu": "9"}});
    let counting = quota(&spec, &json!({}));
    let cpu = plain(&json!({"requests": {"cpu": "1"}}));
    let of = |meta: Value, phase: &str| {
        map(json!({"metadata": meta, "spec": cpu, "status": {"phase": phase}}))
    };
    let deleted = |at: &str| json!({"deletionTimestamp": at, "deletionGracePeriodSeconds": 30});
    let all = [
        of(json!({}), "Running"),
        of(json!({}), "Succeeded"),
        of(json!({}), "Failed"),
        of(deleted("2026-11-15T11:59:55Z"), "Running"),
        of(deleted("2026-11-15T11:00:00Z"), "Running"),
    ];
    let pods = counted("pods");
    let mut recount = counting.recount();
    assert!(recount.begin(&pods) && !recount.is_number(&pods));
    for pod in &all {
        recount.add(&pods, pod, now());
    }
    let want = json!({"count/pods": "5", "pods": "2", "requests.cpu": "2"});
    assert_eq!(amounts::written(&recount.finish()), want);
}

#[test]
fn what_nobody_counts_stays_as_it_was() {
    let spec = json!({"hard": {"count/things.example.com": "3", "secrets": "5", "cpu": "1"}});
    let counting = quota(&spec, &json!({"count/things.example.com": "2", "pods": "9"}));
    let mut recount = counting.recount();
    let secrets = counted("secrets");
    assert!(recount.begin(&secrets) && recount.is_number(&secrets));
    recount.add_number(&secrets, 4);
    assert!(!recount.begin(&counted("configmaps")));
    assert!(recount.begin(&counted("pods")));
    let want = json!({"count/things.example.com": "2", "secrets": "4", "cpu": "0"});
    assert_eq!(amounts::written(&recount.finish()), want);
}

#[test]
fn events_and_reviews_are_left_alone() {
    assert_eq!(Counted::of("", "events"), None);
    assert_eq!(Counted::of("events.k8s.io", "events"), None);
    assert_eq!(Counted::of("", "bindings"), None);
    assert!(Counted::of("batch", "jobs").unwrap().has("count/jobs.batch"));
}
