//! Tables for changes of pods.

use serde_json::{Value, json};

use super::{super::tests::shown, *};
use crate::pod::{admit, fill_pod};

fn pod(spec: Value) -> Json {
    let mut pod = json!({"metadata": {"name": "p"}, "spec": spec}).as_object().unwrap().clone();
    fill_pod(&mut pod);
    admit(&mut pod);
    pod
}

fn base() -> Value {
    json!({"containers": [{"name": "c", "image": "i"}]})
}

fn with(changes: Value) -> Value {
    let mut spec = base();
    for (key, value) in changes.as_object().unwrap() {
        spec[key] = value.clone();
    }
    spec
}

fn errors(old: Value, new: Value) -> Vec<String> {
    shown(&validate_update(&pod(new), &pod(old)))
}

#[test]
fn a_few_things_may_change() {
    let cases = [
        ("nothing", base(), base()),
        (
            "the image",
            base(),
            json!({"containers": [{"name": "c", "image": "j", "imagePullPolicy": "Always"}]}),
        ),
        ("a deadline", base(), with(json!({"activeDeadlineSeconds": 5}))),
        (
            "a closer deadline",
            with(json!({"activeDeadlineSeconds": 5})),
            with(json!({"activeDeadlineSeconds": 4})),
        ),
        (
            "a toleration more",
            base(),
            with(json!({"tolerations": [{"key": "a", "operator": "Exists"}]})),
        ),
        (
            "an open gate",
            with(json!({"schedulingGates": [{"name": "x/a"}, {"name": "x/b"}]})),
            with(json!({"schedulingGates": [{"name": "x/b"}]})),
        ),
        (
            "a narrower choice while gated",
            with(json!({"schedulingGates": [{"name": "x/a"}], "nodeSelector": {"a": "b"}})),
            with(
                json!({"nodeSelector": {"a": "b", "c": "d"}, "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "k", "operator": "Exists"}]}]}}}}),
            ),
        ),
        (
            "what means nothing",
            base(),
            with(json!({"hostNetwork": false, "volumes": [], "affinity": null, "subdomain": ""})),
        ),
    ];
    for (name, old, new) in cases {
        assert_eq!(errors(old, new), Vec::<String>::new(), "{name}");
    }
}

#[test]
fn most_things_may_not() {
    let cases = [
        (
            "containers",
            base(),
            json!({"containers": [{"name": "c", "image": "i"}, {"name": "d", "image": "i"}]}),
            "spec.containers: Forbidden: pod updates may not add or remove containers",
        ),
        (
            "a later deadline",
            with(json!({"activeDeadlineSeconds": 5})),
            with(json!({"activeDeadlineSeconds": 6})),
            "spec.activeDeadlineSeconds: Invalid value: 6: must be less than or equal to previous value",
        ),
        (
            "no deadline any more",
            with(json!({"activeDeadlineSeconds": 5})),
            base(),
            "spec.activeDeadlineSeconds: Invalid value: null: must not update from a positive integer to nil value",
        ),
        (
            "another toleration instead",
            with(json!({"tolerations": [{"key": "a", "operator": "Exists"}]})),
            with(json!({"tolerations": [{"key": "b", "operator": "Exists"}]})),
            "spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds",
        ),
        (
            "a new gate",
            with(json!({"schedulingGates": [{"name": "x/a"}]})),
            with(json!({"schedulingGates": [{"name": "x/b"}]})),
            "spec.schedulingGates[0].name: Forbidden: only deletion is allowed, but found new scheduling gate 'x/b'",
        ),
        (
            "another node selector while gated",
            with(json!({"schedulingGates": [{"name": "x/a"}], "nodeSelector": {"a": "b"}})),
            with(json!({"schedulingGates": [{"name": "x/a"}], "nodeSelector": {"a": "c"}})),
            "spec.nodeSelector: Invalid value: {\"a\":\"c\"}: only additions to spec.nodeSelector are allowed (no mutations or deletions)",
        ),
    ];
    for (name, old, new, want) in cases {
        assert_eq!(errors(old, new), [want], "{name}");
    }
}

#[test]
fn the_refusal_shows_the_change() {
    let got = errors(base(), with(json!({"subdomain": "s"})));
    assert_eq!(got.len(), 1);
    assert!(
        got[0].starts_with("spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)\n@@ -"),
        "{got:?}"
    );
    assert!(got[0].contains("\n+ \"subdomain\": \"s\",\n"), "{}", got[0]);
    let got = errors(base(), with(json!({"nodeSelector": {"gpu": ""}})));
    assert!(got[0].contains("\n+  \"gpu\": \"\"\n"), "an empty value is a value: {got:?}");
}

#[test]
fn some_annotations_stay() {
    let annotated = |annotations: Value| {
        let mut pod = pod(with(json!({"nodeName": "n"})));
        pod["metadata"]["annotations"] = annotations;
        pod
    };
    let mirror = annotated(json!({"kubernetes.io/config.mirror": "x"}));
    let plain = annotated(json!({}));
    assert_eq!(
        shown(&validate_update(&plain, &mirror)),
        [
            "metadata.annotations[kubernetes.io/config.mirror]: Forbidden: may not remove or update mirror pod annotation"
        ]
    );
    assert_eq!(
        shown(&validate_update(&mirror, &plain)),
        [
            "metadata.annotations[kubernetes.io/config.mirror]: Forbidden: may not add mirror pod annotation"
        ]
    );
}
