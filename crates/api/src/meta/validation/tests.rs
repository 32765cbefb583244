//! Tables for metadata.

use serde_json::{Value, json};

use super::*;

fn object(meta: Value) -> Json {
    json!({"metadata": meta}).as_object().expect("an object").clone()
}

fn shown(errors: &ErrorList) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

fn on_create(meta: Value) -> Vec<String> {
    shown(&validate_create(&object(meta), true, names::name_is_dns_subdomain))
}

#[test]
fn creation_is_refused_in_upstream_words() {
    let reference = |name: &str| json!({"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": "u", "controller": true});
    let cases = [
        (json!({"name": "a", "namespace": "d"}), vec![]),
        (
            json!({}),
            vec![
                "metadata.name: Required value: name or generateName is required",
                "metadata.namespace: Required value",
            ],
        ),
        (
            json!({"name": "a", "namespace": "a.b", "generation": -1}),
            vec![
                "metadata.namespace: Invalid value: \"a.b\": must not contain dots",
                "metadata.generation: Invalid value: -1: must be greater than or equal to 0",
            ],
        ),
        (
            json!({"name": "a", "namespace": "d", "labels": {"/x": "1"}, "annotations": {"A/B": "", "/": ""}}),
            vec![
                "metadata.labels: Invalid value: \"/x\": prefix part must be non-empty",
                "metadata.annotations: Invalid value: \"/\": prefix part must be non-empty",
                "metadata.annotations: Invalid value: \"/\": name part must be non-empty",
                "metadata.annotations: Invalid value: \"/\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
            ],
        ),
        (
            json!({"name": "a", "namespace": "d", "annotations": {"a": "x".repeat(256 << 10)}}),
            vec!["metadata.annotations: Too long: may not be more than 262144 bytes"],
        ),
        (
            json!({"name": "a", "namespace": "d", "ownerReferences": [{"apiVersion": "batch/", "kind": "Job"}]}),
            vec![
                "metadata.ownerReferences.apiVersion: Invalid value: \"batch/\": version must not be empty",
                "metadata.ownerReferences.name: Invalid value: \"\": must not be empty",
                "metadata.ownerReferences.uid: Invalid value: \"\": must not be empty",
            ],
        ),
        (
            json!({"name": "a", "namespace": "d", "finalizers": ["orphan", "foregroundDeletion"]}),
            vec![
                "metadata.finalizers: Invalid value: [\"orphan\",\"foregroundDeletion\"]: finalizer orphan and foregroundDeletion cannot be both set",
            ],
        ),
        (
            json!({"name": "a", "namespace": "d", "managedFields": [{"operation": "X", "fieldsType": "Y"}]}),
            vec![
                "metadata.managedFields[0].operation: Invalid value: \"X\": must be `Apply` or `Update`",
                "metadata.managedFields[0].fieldsType: Invalid value: \"Y\": must be `FieldsV1`",
            ],
        ),
    ];
    for (meta, want) in cases {
        assert_eq!(on_create(meta.clone()), want, "{meta}");
    }
    let two = on_create(
        json!({"name": "a", "namespace": "d", "ownerReferences": [reference("x"), reference("y")]}),
    );
    assert_eq!(two.len(), 1);
    assert!(
        two[0].ends_with("Only one reference can have Controller set to true. Found \"true\" in references for Job/x and Job/y"),
        "{two:?}"
    );
}

#[test]
fn cluster_scoped_objects_have_no_namespace() {
    let errors = validate_create(
        &object(json!({"name": "a", "namespace": "d"})),
        false,
        names::name_is_dns_subdomain,
    );
    assert_eq!(shown(&errors), ["metadata.namespace: Forbidden: not allowed on this type"]);
}

#[test]
fn identity_does_not_change() {
    let old = object(json!({
        "name": "a", "namespace": "d", "uid": "u", "resourceVersion": "1", "generation": 2,
        "creationTimestamp": "2026-11-15T10:00:00Z", "deletionTimestamp": "2026-11-15T10:00:00Z",
        "deletionGracePeriodSeconds": 0, "finalizers": ["x/a"],
    }));
    let new = object(json!({
        "name": "b", "namespace": "e", "uid": "v", "generation": 1,
        "creationTimestamp": "2026-11-15T10:00:01Z", "finalizers": ["x/a", "x/c", "x/b"],
    }));
    let change = |new: &Json| shown(&of_change(new, &old, &Path::new("metadata")));
    assert_eq!(
        change(&new),
        [
            "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{\"x/b\", \"x/c\"}",
            "metadata.resourceVersion: Invalid value: \"\": must be specified for an update",
            "metadata.generation: Invalid value: 1: must not be decremented",
            "metadata.name: Invalid value: \"b\": field is immutable",
            "metadata.namespace: Invalid value: \"e\": field is immutable",
            "metadata.uid: Invalid value: \"v\": field is immutable",
            "metadata.creationTimestamp: Invalid value: \"2026-11-15T10:00:01Z\": field is immutable",
            "metadata.deletionTimestamp: Invalid value: null: field is immutable",
            "metadata.deletionGracePeriodSeconds: Invalid value: null: field is immutable",
        ]
    );
    assert_eq!(change(&old), Vec::<String>::new());
    assert_eq!(validate_update(&old, &old, MetadataCheck::Both, true), ErrorList::new());
}

#[test]
fn what_is_wrong_is_listed_for_each_look() {
    let meta = |finalizers: Value, label: &str| {
        object(json!({"name": "a", "namespace": "d", "resourceVersion": "1",
            "finalizers": finalizers, "labels": {"l": label}}))
    };
    let old = meta(json!([]), "a");
    let cases = [
        // (what is wrong, how often for each way to check)
        (
            meta(json!([]), "a b"),
            "metadata.labels: Invalid value: \"a b\": a valid label",
            [3, 3, 4],
        ),
        (
            meta(json!(["example.com/a b"]), "a"),
            "metadata.finalizers: Invalid value: \"example.com/a b\": name part must consist of",
            [1, 2, 2],
        ),
        (
            meta(json!(["orphan", "foregroundDeletion"]), "a"),
            "metadata.finalizers: Invalid value: [\"orphan\",\"foregroundDeletion\"]: finalizer \
             orphan and foregroundDeletion cannot be both set",
            [1, 2, 2],
        ),
        (
            meta(json!(["plain"]), "a"),
            "metadata.finalizers[0]: Invalid value: \"plain\": name is neither a standard",
            [1, 1, 2],
        ),
    ];
    for (new, want, counts) in cases {
        let checks = [MetadataCheck::Change, MetadataCheck::New, MetadataCheck::Both];
        for (check, count) in checks.into_iter().zip(counts) {
            let errors = shown(&validate_update(&new, &old, check, true));
            assert!(errors.iter().all(|error| error.starts_with(want)), "{errors:?}");
            assert_eq!(errors.len(), count, "{check:?}: {want}");
        }
    }
    let plain = validate_update(&meta(json!(["plain"]), "a"), &old, MetadataCheck::Both, false);
    assert_eq!(plain, ErrorList::new());
}

#[test]
fn selectors_are_checked() {
    let selector: LabelSelector = serde_json::from_value(json!({
        "matchLabels": {"a": "b c"},
        "matchExpressions": [
            {"key": "k", "operator": "In"},
            {"key": "k", "operator": "Exists", "values": ["v"]},
            {"key": "k", "operator": "Like", "values": ["-"]},
        ],
    }))
    .unwrap();
    let got = shown(&validate_label_selector(&selector, &Path::new("s")));
    assert_eq!(got.len(), 5);
    assert!(got[0].starts_with("s.matchLabels: Invalid value: \"b c\": a valid label must be"));
    assert_eq!(
        got[1],
        "s.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'"
    );
    assert_eq!(
        got[2],
        "s.matchExpressions[1].values: Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
    );
    assert_eq!(
        got[3],
        "s.matchExpressions[2].operator: Invalid value: \"Like\": not a valid selector operator"
    );
    assert!(got[4].starts_with("s.matchExpressions[2].values[0]: Invalid value: \"-\""));
}
