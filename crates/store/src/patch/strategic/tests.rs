use lockstep_api::schema;
use serde_json::{Value, json};

use super::merge;

fn object(value: &Value) -> lockstep_api::strategy::Json {
    value.as_object().unwrap().clone()
}

/// Merges `patch` into a pod.
fn patched(original: &Value, patch: &Value) -> Result<Value, lockstep_api::Status> {
    let pod = schema::of("", "v1", "Pod");
    assert!(pod.is_some());
    merge(object(original), object(patch), pod).map(Value::Object)
}

fn containers(names: &[&str]) -> Value {
    names.iter().map(|name| json!({"name": name, "image": format!("{name}:1")})).collect()
}

/// Merges each patch into its original: name, original, patch, what is to come out.
fn check(cases: &[(&str, &Value, Value, Value)]) {
    for (name, original, patch, want) in cases {
        assert_eq!(patched(original, patch).expect(name), *want, "{name}");
    }
}

#[test]
fn maps_and_lists_of_values_follow_their_directives() {
    let labels =
        json!({"metadata": {"labels": {"x": "1", "y": "2"}, "finalizers": ["f/a", "f/b"]}});
    let volumes = json!({"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}});
    check(&[
        (
            "maps merge and null removes",
            &labels,
            json!({"metadata": {"labels": {"x": null, "z": "3"}}}),
            json!({"metadata": {"labels": {"y": "2", "z": "3"}, "finalizers": ["f/a", "f/b"]}}),
        ),
        (
            "a map is replaced on demand",
            &labels,
            json!({"metadata": {"labels": {"$patch": "replace", "z": "3"}}}),
            json!({"metadata": {"labels": {"z": "3"}, "finalizers": ["f/a", "f/b"]}}),
        ),
        (
            "a map is emptied on demand",
            &labels,
            json!({"metadata": {"labels": {"$patch": "delete"}}}),
            json!({"metadata": {"labels": {}, "finalizers": ["f/a", "f/b"]}}),
        ),
        (
            "lists of values merge as sets",
            &labels,
            json!({"metadata": {"finalizers": ["f/b", "f/c"]}}),
            json!({"metadata": {"labels": {"x": "1", "y": "2"}, "finalizers": ["f/a", "f/b", "f/c"]}}),
        ),
        (
            "values are deleted from lists",
            &labels,
            json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["f/a"]}}),
            json!({"metadata": {"labels": {"x": "1", "y": "2"}, "finalizers": ["f/b"]}}),
        ),
        (
            "only the retained keys stay",
            &volumes,
            json!({"spec": {"volumes": [
                {"name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/x"}}
            ]}}),
            json!({"spec": {"volumes": [{"name": "v", "hostPath": {"path": "/x"}}]}}),
        ),
        (
            "lists without a merge strategy are replaced",
            &json!({"spec": {"tolerations": [{"key": "a"}]}}),
            json!({"spec": {"tolerations": [{"key": "b"}]}}),
            json!({"spec": {"tolerations": [{"key": "b"}]}}),
        ),
        (
            "nulls and directives in new values vanish",
            &json!({}),
            json!({"spec": {"nodeName": null, "containers": [{"$patch": "delete", "name": "x"}]}}),
            json!({"spec": {"containers": []}}),
        ),
    ]);
}

#[test]
fn lists_of_maps_follow_their_directives() {
    let pod = json!({"spec": {"containers": containers(&["a", "b"])}});
    check(&[
        (
            "lists of maps merge by key",
            &pod,
            json!({"spec": {"containers": [{"name": "b", "image": "b:2"}]}}),
            json!({"spec": {"containers": [{"name": "a", "image": "a:1"}, {"name": "b", "image": "b:2"}]}}),
        ),
        (
            "an element is deleted by key",
            &pod,
            json!({"spec": {"containers": [{"$patch": "delete", "name": "a"}]}}),
            json!({"spec": {"containers": containers(&["b"])}}),
        ),
        (
            "a list is replaced on demand",
            &pod,
            json!({"spec": {"containers": [{"$patch": "replace"}, {"name": "c", "image": "c:1"}]}}),
            json!({"spec": {"containers": containers(&["c"])}}),
        ),
        (
            "the order is as asked for, with what the server added in its place",
            &json!({"spec": {"containers": containers(&["a", "side", "b"])}}),
            json!({"spec": {
                "$setElementOrder/containers": [{"name": "b"}, {"name": "a"}, {"name": "c"}],
                "containers": [{"name": "c", "image": "c:1"}],
            }}),
            json!({"spec": {"containers": containers(&["side", "b", "a", "c"])}}),
        ),
        (
            "an order alone moves elements",
            &pod,
            json!({"spec": {"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}]}}),
            json!({"spec": {"containers": containers(&["b", "a"])}}),
        ),
    ]);
}

#[test]
fn malformed_patches_are_refused_and_never_panic() {
    let pod =
        json!({"spec": {"containers": containers(&["a"])}, "metadata": {"finalizers": ["f/a"]}});
    let cases = [
        (json!({"spec": {"$patch": "explode"}}), 400),
        (json!({"spec": {"containers": [{"image": "x"}]}}), 400),
        (json!({"spec": {"containers": [{"$patch": "merge", "name": "a"}]}}), 400),
        (json!({"spec": {"containers": [{"$patch": "delete"}]}}), 400),
        (json!({"spec": {"containers": ["a"]}}), 400),
        (json!({"spec": {"containers": [["a"]]}}), 422),
        (json!({"spec": {"$setElementOrder/containers": "a"}}), 400),
        (json!({"spec": {"$setElementOrder": []}}), 400),
        (json!({"spec": {"$setElementOrder/containers": [{"x": 1}]}}), 400),
        (json!({"metadata": {"$deleteFromPrimitiveList": ["f/a"]}}), 400),
        (json!({"spec": {"$retainKeys": "x"}}), 400),
        (json!({"spec": {"$retainKeys": ["x"], "nodeName": "n"}}), 400),
        (
            json!({"spec": {
                "$setElementOrder/containers": [{"name": "a"}],
                "containers": [{"name": "b", "image": "b"}],
            }}),
            400,
        ),
    ];
    for (patch, code) in cases {
        assert_eq!(patched(&pod, &patch).map_err(|s| s.code).unwrap_err(), code, "{patch}");
    }
}
