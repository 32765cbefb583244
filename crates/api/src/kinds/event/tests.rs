use proptest::prelude::{prop, prop_assert_eq, proptest};
use serde_json::{Value, json};

use super::*;

fn texts(errors: &ErrorList) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

/// An event that events.k8s.io/v1 accepts.
fn newer() -> Value {
    json!({
        "metadata": {"name": "e", "namespace": "n"},
        "eventTime": "2026-11-15T12:00:00.000001Z",
        "reportingController": "example.com/c",
        "reportingInstance": "c-1",
        "action": "Start",
        "reason": "Started",
        "type": "Normal",
        "regarding": {"kind": "Pod", "namespace": "n", "name": "p"},
        "note": "it runs",
    })
}

fn with(mut event: Value, changes: Value) -> Json {
    let Value::Object(changes) = changes else { panic!("changes are an object") };
    for (key, value) in changes {
        event[key] = value;
    }
    event.as_object().unwrap().clone()
}

#[test]
fn old_events_live_with_their_object() {
    let cases = [("n", "n", true), ("n", "m", false), ("default", "", true), ("n", "", false)];
    for (namespace, about, is_fine) in cases {
        let event = json!({
            "metadata": {"namespace": namespace},
            "involvedObject": {"namespace": about},
        });
        let errors = CoreEventStrategy.validate_create(event.as_object().unwrap());
        let want = format!(
            "involvedObject.namespace: Invalid value: {about:?}: does not match event.namespace"
        );
        let want = if is_fine { vec![] } else { vec![want] };
        assert_eq!(texts(&errors), want, "{event}");
    }
}

#[test]
fn new_events_are_complete() {
    let long = "x".repeat(129);
    let cases = [
        (json!({}), vec![]),
        (json!({"reportingController": "-"}), vec!["reportingController: Invalid value: \"-\""]),
        (json!({"action": ""}), vec!["action: Required value"]),
        (
            json!({"reason": long}),
            vec!["reason: Invalid value: \"\": can have at most 128 characters"],
        ),
        (
            json!({"note": "x".repeat(1025)}),
            vec!["message: Invalid value: \"\": can have at most 1024 characters"],
        ),
        (json!({"type": "Odd"}), vec!["type: Invalid value: \"\": has invalid value: Odd"]),
        (
            json!({"deprecatedCount": 1, "deprecatedSource": {"host": "h"}}),
            vec![
                "count: Invalid value: \"\": needs to be unset",
                "source: Invalid value: \"\": needs to be unset",
            ],
        ),
        (
            json!({"series": {"count": 1}}),
            vec![
                "series.count: Invalid value: \"\": should be at least 2",
                "series.lastObservedTime: Required value",
            ],
        ),
        (json!({"eventTime": null}), vec!["eventTime: Required value"]),
    ];
    for (changes, want) in cases {
        let got = texts(&EventStrategy.validate_create(&with(newer(), changes.clone())));
        assert_eq!(got.len(), want.len(), "{changes}: {got:?}");
        assert!(got.iter().zip(&want).all(|(got, want)| got.starts_with(want)), "{got:?}");
    }
}

#[test]
fn only_the_series_changes_through_the_newer_version() {
    let old = with(newer(), json!({}));
    let series = json!({"count": 2, "lastObservedTime": "2026-11-15T12:00:01.000000Z"});
    let cases = [
        (json!({"series": series}), vec![]),
        (json!({"eventTime": "2026-11-15T13:00:00.000001+01:00"}), vec![]),
        (json!({"note": "other"}), vec!["message: Invalid value: \"other\": field is immutable"]),
        (
            json!({"reportingInstance": "c-2"}),
            vec!["reportingInstance: Invalid value: \"c-2\": field is immutable"],
        ),
    ];
    for (changes, want) in cases {
        let new = with(newer(), changes);
        assert_eq!(texts(&EventStrategy.validate_update(&new, &old)), want);
    }
    let core = |event: Json| EventStrategy.to_stored(event);
    let changed = core(with(newer(), json!({"note": "other"})));
    assert!(CoreEventStrategy.validate_update(&changed, &core(old)).is_empty());
}

#[test]
fn a_row_says_what_happened_when() {
    let now = "2026-11-15T12:10:00Z".parse().unwrap();
    let old = json!({
        "metadata": {"name": "e"},
        "involvedObject": {"kind": "Pod", "name": "p", "fieldPath": "spec.containers{c}"},
        "source": {"component": "kubelet", "host": "n"},
        "firstTimestamp": "2026-11-15T12:00:00Z",
        "lastTimestamp": "2026-11-15T12:09:55Z",
        "count": 3,
        "type": "Normal",
        "reason": "Started",
        "message": " it runs\n",
    });
    assert_eq!(
        CoreEventStrategy.row(old.as_object().unwrap(), now),
        json!([
            "5s",
            "Normal",
            "Started",
            "pod/p",
            "spec.containers{c}",
            "kubelet, n",
            "it runs",
            "10m",
            3,
            "e"
        ])
        .as_array()
        .unwrap()
        .as_slice()
    );
    let cells = EventStrategy.row(&with(newer(), json!({})), now);
    assert_eq!(cells[0], "9m59s");
    assert_eq!(cells[5], "example.com/c, c-1");
    assert_eq!(cells[8], 1);
}

#[test]
fn selectors_fall_back_to_the_reporting_component() {
    let event = json!({"reportingComponent": "c", "involvedObject": {"uid": "u"}});
    let event = event.as_object().unwrap();
    assert_eq!(CoreEventStrategy.field_value(event, "source"), "c");
    assert_eq!(CoreEventStrategy.field_value(event, "involvedObject.uid"), "u");
    let newer = EventStrategy.from_stored(event.clone());
    assert_eq!(EventStrategy.field_value(&newer, "regarding.uid"), "u");
    assert_eq!(EventStrategy.field_value(&newer, "reportingController"), "c");
}

proptest! {
    #[test]
    fn conversion_loses_nothing(fields in prop::collection::btree_set(
        prop::sample::select(vec![
            "involvedObject", "message", "source", "firstTimestamp", "lastTimestamp", "count",
            "reportingComponent", "reportingInstance", "series", "metadata", "reason", "type",
        ]),
        0..12,
    )) {
        let event: Json = fields.iter().map(|f| ((*f).to_owned(), Value::from(*f))).collect();
        let there = EventStrategy.from_stored(event.clone());
        prop_assert_eq!(EventStrategy.to_stored(there), event);
    }
}
