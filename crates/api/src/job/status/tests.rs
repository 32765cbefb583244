mod rules;

use serde_json::{Value, json};

use super::validate;

const START: &str = "2026-11-15T12:00:00Z";
const END: &str = "2026-11-15T13:00:00Z";

fn conditions(kinds: &[&str]) -> Value {
    kinds.iter().map(|kind| json!({"type": kind, "status": "True"})).collect()
}

fn complete() -> Value {
    json!({"startTime": START, "completionTime": END, "succeeded": 1,
        "conditions": conditions(&["SuccessCriteriaMet", "Complete"])})
}

fn with(mut status: Value, changes: Value) -> Value {
    let Value::Object(changes) = changes else { panic!("changes are an object") };
    for (key, value) in changes {
        status[key] = value;
    }
    status
}

/// What is said about a change of the status of a Job with this spec, without the leading
/// `status.`.
fn said(spec: &Value, old: &Value, new: &Value) -> Vec<String> {
    let job = |status: &Value| {
        json!({"spec": spec, "status": status}).as_object().expect("an object").clone()
    };
    let errors = validate(&job(new), &job(old));
    errors.iter().map(|e| e.to_string().replacen("status.", "", 1)).collect()
}

// rule: job 1.6.1, job 1.6.2, job 1.6.9, job 1.6.10, job 1.6.28
#[test]
fn counters_are_counters() {
    let plain = json!({});
    let elastic = json!({"completionMode": "Indexed", "completions": 3, "parallelism": 3});
    let cases = [
        (
            &plain,
            json!({}),
            json!({"active": -1, "ready": -1, "terminating": -1}),
            vec![
                "active: Invalid value: -1: must be greater than or equal to 0",
                "ready: Invalid value: -1: must be greater than or equal to 0",
                "terminating: Invalid value: -1: must be greater than or equal to 0",
            ],
        ),
        (
            &plain,
            json!({}),
            json!({"uncountedTerminatedPods": {"succeeded": ["a", ""], "failed": ["a"]}}),
            vec![
                "uncountedTerminatedPods.succeeded[1]: Invalid value: \"\": must not be empty",
                "uncountedTerminatedPods.failed[0]: Duplicate value: \"a\"",
            ],
        ),
        (
            &plain,
            json!({"succeeded": 2, "failed": 2}),
            json!({"succeeded": 1, "failed": 1}),
            vec![
                "failed: Invalid value: 1: cannot decrease the failed counter",
                "succeeded: Invalid value: 1: cannot decrease the succeeded counter",
            ],
        ),
        (&elastic, json!({"succeeded": 2}), json!({"succeeded": 1}), vec![]),
        (
            &plain,
            json!({}),
            json!({"active": 1, "ready": 2}),
            vec!["ready: Invalid value: 2: cannot set more ready pods than active"],
        ),
        (&plain, json!({"active": 1, "ready": 2}), json!({"active": 1, "ready": 2}), vec![]),
    ];
    for (spec, old, new, want) in cases {
        assert_eq!(said(spec, &old, &new), want, "{old} -> {new}");
    }
}

// rule: job 1.6.3, job 1.6.4, job 1.6.5, job 1.6.12, job 1.6.13, job 1.6.17, job 1.6.18, job 4.2
#[test]
fn conditions_exclude_each_other() {
    let started = json!({"startTime": START});
    let set = |kinds: &[&str]| with(started.clone(), json!({"conditions": conditions(kinds)}));
    let cases = [
        (set(&["FailureTarget"]), vec![]),
        (set(&["FailureTarget", "Failed"]), vec![]),
        (set(&["Custom"]), vec![]),
        (
            set(&["Failed"]),
            vec![
                "conditions: Invalid value: cannot set Failed=True condition without the \
                 FailureTarget=true condition",
            ],
        ),
        (
            set(&["Complete", "Failed", "FailureTarget"]),
            vec![
                "conditions: Invalid value: cannot set Complete=True and Failed=true conditions",
                "conditions: Invalid value: cannot set Complete=True and FailureTarget=true \
                 conditions",
                "completionTime: Required value: completionTime is required for Complete jobs",
                "conditions: Invalid value: cannot set Complete=True condition without the \
                 SuccessCriteriaMet=true condition",
            ],
        ),
        (
            set(&["SuccessCriteriaMet", "Failed", "FailureTarget"]),
            vec![
                "conditions: Invalid value: cannot set SuccessCriteriaMet=True and Failed=true \
                 conditions",
                "conditions: Invalid value: cannot set SuccessCriteriaMet=True and \
                 FailureTarget=true conditions",
            ],
        ),
    ];
    for (new, want) in cases {
        assert_eq!(said(&json!({}), &started, &new), want, "{new}");
    }
    let policy = json!({"completionMode": "Indexed", "completions": 1,
        "successPolicy": {"rules": []}});
    let mut unmet = complete();
    unmet["conditions"] = conditions(&["Complete"]);
    assert_eq!(
        said(&policy, &unmet, &unmet),
        ["conditions: Invalid value: cannot set Complete=True for Job with SuccessPolicy unless \
          SuccessCriteriaMet=True"]
    );
}

// rule: job 1.6.6, job 1.6.7, job 1.6.8, job 1.6.11, job 4.2
#[test]
fn a_decision_is_final() {
    let cases = [
        (complete(), complete(), vec![]),
        (
            complete(),
            with(complete(), json!({"conditions": [], "completionTime": null})),
            vec![
                "conditions: Invalid value: cannot disable the terminal Complete=True condition",
                "conditions: Invalid value: cannot disable the SuccessCriteriaMet=True condition",
            ],
        ),
        (
            with(complete(), json!({"conditions": conditions(&["Complete"])})),
            complete(),
            vec![
                "conditions: Invalid value: cannot set SuccessCriteriaMet=True for Job already has \
                 Complete=true conditions",
            ],
        ),
        (
            complete(),
            with(complete(), json!({"completionTime": "2026-11-15T14:00:00Z"})),
            vec!["completionTime: Invalid value: \"2026-11-15T14:00:00Z\": field is immutable"],
        ),
        (
            json!({"conditions": conditions(&["FailureTarget"])}),
            json!({}),
            vec![
                "conditions: Invalid value: cannot disable the terminal FailureTarget=True \
                 condition",
            ],
        ),
    ];
    for (old, new, want) in cases {
        assert_eq!(said(&json!({}), &old, &new), want, "{old} -> {new}");
    }
}

// rule: job 1.6.14, job 1.6.15, job 1.6.16, job 1.6.19, job 1.6.20, job 1.6.21, job 1.6.27
#[test]
fn a_finished_job_has_nothing_left() {
    let cases = [
        (json!({}), vec![]),
        (
            json!({"active": 1}),
            vec!["active: Invalid value: 1: active>0 is invalid for finished job"],
        ),
        (
            json!({"terminating": 1}),
            vec!["terminating: Invalid value: 1: terminating>0 is invalid for finished job"],
        ),
        (
            json!({"startTime": null}),
            vec!["startTime: Required value: startTime is required for finished job"],
        ),
        (
            json!({"uncountedTerminatedPods": {"failed": ["a"]}}),
            vec![
                "uncountedTerminatedPods: Invalid value: {\"Succeeded\":null,\"Failed\":[\"a\"]}: \
                 must be empty for finished job",
            ],
        ),
        (
            json!({"completionTime": "2026-11-15T11:00:00Z"}),
            vec![
                "completionTime: Invalid value: \"2026-11-15T11:00:00Z\": must be equal to or \
                 after `startTime`",
            ],
        ),
        (
            json!({"completionTime": null}),
            vec!["completionTime: Required value: completionTime is required for Complete jobs"],
        ),
    ];
    for (changes, want) in cases {
        let new = with(complete(), changes);
        assert_eq!(said(&json!({}), &json!({}), &new), want, "{new}");
        // What was so before is not held against an update of something else.
        let again = with(new.clone(), json!({"failed": 1}));
        assert_eq!(said(&json!({}), &new, &again), [""; 0], "{new}");
    }
    let idle = json!({"suspend": true, "completions": 0});
    let new = with(complete(), json!({"startTime": null}));
    assert_eq!(said(&idle, &json!({}), &new), [""; 0]);
    assert_eq!(
        said(&json!({}), &json!({}), &json!({"completionTime": END})),
        [
            "completionTime: Invalid value: \"2026-11-15T13:00:00Z\": cannot set completionTime when \
          there is no Complete=True condition"
        ]
    );
}

// rule: job 1.6.22, job 1.6.23, job 1.6.24, job 1.6.25, job 1.6.26
#[test]
fn indexes_are_lists_below_completions() {
    let indexed = json!({"completionMode": "Indexed", "completions": 3, "backoffLimitPerIndex": 1});
    let unlimited = json!({"completionMode": "Indexed", "completions": 3});
    let cases = [
        (&indexed, json!({"completedIndexes": "0-1", "failedIndexes": "2"}), vec![]),
        (
            &indexed,
            json!({"completedIndexes": "0-3", "failedIndexes": "x"}),
            vec![
                "completedIndexes: Invalid value: \"0-3\": error parsing completedIndexes: too \
                 large index: \"3\"",
                "failedIndexes: Invalid value: \"x\": error parsing failedIndexes: cannot convert \
                 string to integer for index: \"x\"",
            ],
        ),
        (
            &indexed,
            json!({"completedIndexes": "0-1", "failedIndexes": "1"}),
            vec![
                "failedIndexes: Invalid value: \"1\": failedIndexes and completedIndexes overlap \
                 at index: 1",
            ],
        ),
        (
            &unlimited,
            json!({"failedIndexes": ""}),
            vec![
                "failedIndexes: Invalid value: \"\": cannot set non-null failedIndexes when \
                 backoffLimitPerIndex is null",
            ],
        ),
    ];
    for (spec, new, want) in cases {
        assert_eq!(said(spec, &json!({}), &new), want, "{new}");
        assert_eq!(said(spec, &new, &new), [""; 0], "{new}");
    }
    assert_eq!(
        said(&json!({}), &json!({}), &json!({"completedIndexes": "0"})),
        ["completedIndexes: Invalid value: \"0\": cannot set non-empty completedIndexes when \
          non-indexed completion mode"]
    );
}

// rule: job 1.6.29
#[test]
fn the_start_moves_only_by_suspension() {
    let started = json!({"startTime": START});
    let moved = json!({"startTime": END});
    let error = "startTime: Invalid value: \"2026-11-15T13:00:00Z\": field is immutable for \
                 unsuspended job once set";
    let suspended = with(started.clone(), json!({"conditions": conditions(&["Suspended"])}));
    let resumed =
        with(moved.clone(), json!({"conditions": [{"type": "Suspended", "status": "False"}]}));
    assert_eq!(said(&json!({}), &started, &moved), [error]);
    assert_eq!(said(&json!({"suspend": true}), &started, &moved), [""; 0]);
    assert_eq!(said(&json!({}), &json!({}), &moved), [""; 0]);
    assert_eq!(said(&json!({}), &suspended, &resumed), [""; 0]);
    let error = "startTime: Invalid value: null: field is immutable for unsuspended job once set";
    assert_eq!(said(&json!({}), &started, &json!({})), [error]);
    assert_eq!(said(&json!({"suspend": true}), &started, &json!({})), [""; 0]);
}
