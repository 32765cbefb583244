//! Every kind, from the bytes of a request to a stored object and back through an update: what is
//! accepted once is accepted again, unchanged.

use lockstep_api::{
    ErrorList, builtin,
    decode::{self, FieldValidation},
    meta,
    resource::Resource,
    strategy::{Json, WriteContext},
    table,
};
use proptest::prelude::{Just, Strategy as _, any, prop, prop_oneof, proptest};
use serde_json::{Map, Value, json};

fn context() -> WriteContext {
    let now = "2026-11-15T12:00:00Z".parse().expect("a moment");
    WriteContext { now, uid: "0d9f2c4e-0000-4000-8000-000000000001".into(), user: "me".into() }
}

/// Group, kind and body.
type Sample = (&'static str, &'static str, Value);

/// One small and one full object of every kind.
fn samples() -> Vec<Sample> {
    core_samples().into_iter().chain(group_samples()).collect()
}

fn core_samples() -> Vec<Sample> {
    let pod = json!({"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]});
    vec![
        ("", "ConfigMap", json!({})),
        (
            "",
            "ConfigMap",
            json!({"data": {"a": "b"}, "binaryData": {"c": "eA=="}, "immutable": true}),
        ),
        (
            "",
            "Endpoints",
            json!({"subsets": [{"addresses": [{"ip": "127.33.0.1"}], "ports": [{"port": 1}]}]}),
        ),
        ("", "Event", json!({"involvedObject": {"kind": "Pod", "namespace": "n", "name": "p"}})),
        ("", "Namespace", json!({})),
        ("", "Node", json!({})),
        (
            "",
            "Node",
            json!({
                "spec": {"taints": [{"key": "a", "effect": "NoSchedule"}], "unschedulable": true},
                "status": {"capacity": {"cpu": "4", "memory": "8Gi"}, "addresses": [{"type": "Hostname", "address": "h"}]},
            }),
        ),
        ("", "Pod", json!({"spec": pod})),
        ("", "Secret", json!({"stringData": {"a": "b"}})),
        (
            "",
            "Secret",
            json!({"type": "kubernetes.io/tls", "data": {"tls.crt": "", "tls.key": ""}}),
        ),
        ("", "Service", json!({"spec": {"ports": [{"port": 80}]}})),
        ("", "Service", json!({"spec": {"clusterIP": "None", "selector": {"a": "b"}}})),
        ("", "Service", json!({"spec": {"type": "ExternalName", "externalName": "example.com"}})),
        ("", "ServiceAccount", json!({"secrets": [{"name": "s"}]})),
        ("batch", "Job", json!({"spec": {"template": {"spec": pod}}})),
    ]
}

fn group_samples() -> Vec<Sample> {
    let pod = json!({"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]});
    vec![
        (
            "batch",
            "Job",
            json!({"spec": {
                "completionMode": "Indexed", "completions": 3, "parallelism": 3, "suspend": true,
                "backoffLimitPerIndex": 1, "maxFailedIndexes": 1,
                "podFailurePolicy": {"rules": [
                    {"action": "FailIndex", "onExitCodes": {"operator": "In", "values": [1, 2]}},
                    {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]},
                ]},
                "successPolicy": {"rules": [{"succeededIndexes": "0-1", "succeededCount": 1}]},
                "template": {"metadata": {"labels": {"a": "b"}}, "spec": pod},
            }}),
        ),
        (
            "coordination.k8s.io",
            "Lease",
            json!({"spec": {
                "holderIdentity": "me", "leaseDurationSeconds": 15, "renewTime": "2026-11-15T12:00:00.000001Z",
            }}),
        ),
        (
            "discovery.k8s.io",
            "EndpointSlice",
            json!({
                "addressType": "IPv4", "endpoints": [{"addresses": ["127.33.0.1"]}], "ports": [{"port": 1}],
            }),
        ),
        (
            "events.k8s.io",
            "Event",
            json!({
                "eventTime": "2026-11-15T12:00:00.000001Z", "reportingController": "a.b/c",
                "reportingInstance": "c-0", "action": "Act", "reason": "Why", "type": "Normal",
                "regarding": {"kind": "Pod", "namespace": "n", "name": "p"},
            }),
        ),
        (
            "kueue.x-k8s.io",
            "ClusterQueue",
            json!({"spec": {"cohortName": "c", "namespaceSelector": {}, "resourceGroups": [{
                "coveredResources": ["cpu", "memory"],
                "flavors": [{"name": "f", "resources": [
                    {"name": "cpu", "nominalQuota": "5", "borrowingLimit": 1},
                    {"name": "memory", "nominalQuota": "1Gi", "lendingLimit": "0"},
                ]}],
            }]}}),
        ),
        ("kueue.x-k8s.io", "LocalQueue", json!({"spec": {"clusterQueue": "q"}})),
        (
            "kueue.x-k8s.io",
            "ResourceFlavor",
            json!({"spec": {
                "nodeLabels": {"a": "b"}, "nodeTaints": [{"key": "k", "effect": "NoSchedule"}],
                "tolerations": [{"key": "k", "operator": "Exists"}],
            }}),
        ),
        (
            "kueue.x-k8s.io",
            "Workload",
            json!({"spec": {"queueName": "q", "podSets": [{"template": {"spec": pod}}]}}),
        ),
        ("kueue.x-k8s.io", "WorkloadPriorityClass", json!({"value": -5, "description": "d"})),
        ("scheduling.k8s.io", "PriorityClass", json!({"value": 5})),
    ]
}

fn resource(group: &str, kind: &str) -> Resource {
    let registry = builtin::registry();
    // Of several versions the one that is stored.
    let found = registry.iter().rfind(|one| one.group == group && one.kind == kind);
    (**found.expect(kind)).clone()
}

/// The object as it would be stored, and what is wrong with it.
fn created(resource: &Resource, mut body: Value) -> (Json, ErrorList) {
    body["apiVersion"] = resource.api_version().into();
    body["kind"] = resource.kind.to_string().into();
    body["metadata"]["name"] = "x".into();
    if resource.is_namespaced() {
        body["metadata"]["namespace"] = "n".into();
    }
    let body = serde_json::to_vec(&body).expect("JSON");
    let decoded =
        decode::object(resource, &body, FieldValidation::Strict).expect("fits the schema");
    let mut object = decoded.object;
    object["metadata"]["uid"] = context().uid.into();
    let strategy = &*resource.strategy;
    strategy.fill_defaults(&mut object);
    strategy.prepare_create(&mut object, &context());
    decode::complete(resource, &mut object);
    let mut errors = meta::validate_create(&object, resource.is_namespaced(), |name, prefix| {
        strategy.validate_name(name, prefix)
    });
    errors.extend(strategy.validate_create(&object));
    (object, errors)
}

#[test]
fn what_is_accepted_once_is_accepted_again_unchanged() {
    for (group, kind, body) in samples() {
        let resource = resource(group, kind);
        let strategy = &*resource.strategy;
        let (object, errors) = created(&resource, body.clone());
        assert!(errors.is_empty(), "{kind} {body}: {errors:?}");

        let mut again = object.clone();
        strategy.fill_defaults(&mut again);
        assert_eq!(again, object, "{kind}: defaulting twice");

        strategy.prepare_update(&mut again, &object, &context());
        decode::complete(&resource, &mut again);
        assert_eq!(again, object, "{kind}: an update that changes nothing");
        let errors = strategy.validate_update(&again, &object);
        assert!(errors.is_empty(), "{kind}: {errors:?}");
        let errors = strategy.validate_part_update("status", &again, &object);
        assert!(errors.is_empty(), "{kind}: {errors:?}");

        let stored = strategy.to_stored(object.clone());
        assert_eq!(strategy.from_stored(stored), object, "{kind}: stored and shown");
        let row = table::row(strategy, &object, context().now);
        assert_eq!(row["cells"].as_array().map(Vec::len), Some(strategy.columns().len()));
    }
}

/// Any JSON a careless client might put somewhere.
fn junk() -> impl proptest::strategy::Strategy<Value = Value> {
    prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(Value::from),
        (-3..70_000_i64).prop_map(Value::from),
        "[ -~]{0,8}".prop_map(Value::from),
        Just(json!([])),
        Just(json!({})),
        Just(json!([{}])),
        Just(json!({"": ""})),
    ]
}

/// Replaces the value `steps` lead to, choosing a member at each step.
fn corrupt(value: &mut Value, steps: &[usize], junk: Value) {
    let next = match value {
        Value::Object(members) if !members.is_empty() => {
            let at = steps.first().copied().unwrap_or_default() % members.len();
            members.values_mut().nth(at)
        }
        Value::Array(items) if !items.is_empty() => {
            let at = steps.first().copied().unwrap_or_default() % items.len();
            items.get_mut(at)
        }
        _ => None,
    };
    match (next, steps) {
        (Some(next), [_, rest @ ..]) => corrupt(next, rest, junk),
        _ => *value = junk,
    }
}

proptest! {
    #[test]
    fn nothing_a_client_sends_makes_a_kind_panic(
        sample in 0..40_usize,
        damage in prop::collection::vec((prop::collection::vec(0..8_usize, 1..7), junk()), 1..4),
    ) {
        let samples = samples();
        let (group, kind, body) = &samples[sample % samples.len()];
        let resource = resource(group, kind);
        let strategy = &*resource.strategy;
        let (old, _) = created(&resource, body.clone());
        let mut bad = Value::Object(old.clone());
        for (steps, junk) in damage {
            corrupt(&mut bad, &steps, junk);
        }
        let mut bad: Map<String, Value> = bad.as_object().cloned().unwrap_or_default();
        bad.insert("apiVersion".into(), resource.api_version().into());
        bad.insert("kind".into(), resource.kind.to_string().into());
        let body = serde_json::to_vec(&bad).expect("JSON");
        if let Ok(decoded) = decode::object(&resource, &body, FieldValidation::Ignore) {
            let mut object = decoded.object;
            strategy.fill_defaults(&mut object);
            let mut updated = object.clone();
            strategy.prepare_create(&mut object, &context());
            decode::complete(&resource, &mut object);
            let _ = strategy.validate_create(&object);
            let _ = strategy.warnings(&object, None);
            let _ = strategy.row(&object, context().now);
            strategy.prepare_update(&mut updated, &old, &context());
            decode::complete(&resource, &mut updated);
            let _ = strategy.validate_update(&updated, &old);
            let _ = strategy.validate_part_update("status", &updated, &old);
            let _ = strategy.from_stored(strategy.to_stored(updated));
        }
    }
}
