//! Success policies nobody should write: each is refused with its path and the words of Kubernetes.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{JOB, changed, created, object, texts};
use crate::strategy::Strategy as _;

const TOO_LONG: &str = "spec.successPolicy.rules[0].succeededIndexes: Too long: may not be more \
                        than 65536 bytes";

/// What is said about a Job of five indexes with this success policy.
fn said(policy: &Value) -> Vec<String> {
    let spec = json!({
        "completionMode": "Indexed", "completions": 5, "parallelism": 5, "successPolicy": policy,
    });
    texts(&JOB.validate_create(&created(spec)))
}

fn rule(rule: &Value) -> Vec<String> {
    said(&json!({"rules": [rule]}))
}

// rule: job 1.2.1, job 1.2.5
#[test]
fn lists_that_are_none_are_refused() {
    let cases = [
        ("5", "too large index: \"5\""),
        ("0-5", "too large index: \"5\""),
        ("4294967296", "too large index: \"4294967296\""),
        (
            "99999999999999999999",
            "cannot convert string to integer for index: \"99999999999999999999\"",
        ),
        ("1,1", "non-increasing order, previous: 1, current: 1"),
        ("0-2,2", "non-increasing order, previous: 2, current: 2"),
        ("0-2,1-3", "non-increasing order, previous: 2, current: 1"),
        ("3-1", "non-increasing order, previous: 3, current: 1"),
        ("3-3", "non-increasing order, previous: 3, current: 3"),
        ("1,,2", "cannot convert string to integer for index: \"\""),
        (",", "cannot convert string to integer for index: \"\""),
        ("1,", "cannot convert string to integer for index: \"\""),
        ("-1", "cannot convert string to integer for index: \"\""),
        ("1-", "cannot convert string to integer for index: \"\""),
        ("0, 1", "cannot convert string to integer for index: \" 1\""),
        ("one", "cannot convert string to integer for index: \"one\""),
        ("invalid-format", "cannot convert string to integer for index: \"invalid\""),
        ("1\u{200b}", "cannot convert string to integer for index: \"1\\u200b\""),
        ("٣", "cannot convert string to integer for index: \"٣\""),
        (
            "1--3",
            "the fragment \"1--3\" violates the requirement that an index interval can have at \
             most two parts separated by '-'",
        ),
    ];
    for (list, why) in cases {
        let shown = crate::quote::quoted(list);
        let want = format!(
            "spec.successPolicy.rules[0].succeededIndexes: Invalid value: {shown}: error parsing \
             succeededIndexes: {why}"
        );
        assert_eq!(rule(&json!({"succeededIndexes": list})), [want], "{list}");
    }
}

// rule: job 1.2.1
#[test]
fn a_list_has_at_most_64_kib() {
    let zeros = |bytes: usize| format!("{}1", "0".repeat(bytes - 1));
    assert_eq!(rule(&json!({"succeededIndexes": zeros(65_536)})), [""; 0]);
    assert_eq!(rule(&json!({"succeededIndexes": zeros(65_537)})), [TOO_LONG]);
    // Its format is looked at all the same.
    let list = "1".repeat(65_537);
    let got = rule(&json!({"succeededIndexes": list}));
    assert_eq!(got[0], TOO_LONG);
    assert!(got[1].ends_with(&format!("cannot convert string to integer for index: {list:?}")));
}

// rule: job 1.2.1
#[test]
#[expect(clippy::too_many_lines, reason = "a table, one row per rule")]
fn rules_say_what_they_count_and_no_more_than_there_is() {
    let at = "spec.successPolicy.rules";
    let counts = |count: i32| json!({"succeededCount": count});
    let cases = [
        (
            json!({"rules": []}),
            vec![
                ": Required value: at least one rules must be specified when the successPolicy is \
                 specified",
            ],
        ),
        (
            json!({}),
            vec![
                ": Required value: at least one rules must be specified when the successPolicy is \
                 specified",
            ],
        ),
        (json!({"rules": vec![counts(5); 21]}), vec![": Too many: 21: must have at most 20 items"]),
        (json!({"rules": vec![counts(5); 20]}), vec![]),
        (
            json!({"rules": [{}]}),
            vec![
                "[0]: Required value: at least one of succeededCount or succeededIndexes must be \
                 specified",
            ],
        ),
        (
            json!({"rules": [counts(1), {}]}),
            vec![
                "[1]: Required value: at least one of succeededCount or succeededIndexes must be \
                 specified",
            ],
        ),
        (
            json!({"rules": [counts(-1)]}),
            vec!["[0].succeededCount: Invalid value: -1: must be greater than or equal to 0"],
        ),
        (
            json!({"rules": [counts(6)]}),
            vec![
                "[0].succeededCount: Invalid value: 6: must be less than or equal to 5 (the number \
                 of specified completions)",
            ],
        ),
        (
            json!({"rules": [{"succeededCount": 4, "succeededIndexes": "0-2"}]}),
            vec![
                "[0].succeededCount: Invalid value: 4: must be less than or equal to 3 (the number \
                 of indexes in the specified succeededIndexes field)",
            ],
        ),
        (
            json!({"rules": [{"succeededCount": 6, "succeededIndexes": "0-2"}]}),
            vec![
                "[0].succeededCount: Invalid value: 6: must be less than or equal to 5 (the number \
                 of specified completions)",
                "[0].succeededCount: Invalid value: 6: must be less than or equal to 3 (the number \
                 of indexes in the specified succeededIndexes field)",
            ],
        ),
        (
            json!({"rules": [{"succeededCount": 1, "succeededIndexes": ""}]}),
            vec![
                "[0].succeededCount: Invalid value: 1: must be less than or equal to 0 (the number \
                 of indexes in the specified succeededIndexes field)",
            ],
        ),
    ];
    for (policy, want) in cases {
        let want: Vec<String> = want.iter().map(|text| format!("{at}{text}")).collect();
        assert_eq!(said(&policy), want, "{policy}");
    }
}

// rule: job 1.2.1, job 4.3
#[test]
fn only_indexed_jobs_with_completions_have_a_success_policy() {
    let policy = json!({"rules": [{"succeededIndexes": "0", "succeededCount": 1}]});
    let shown = r#"{"Rules":[{"SucceededIndexes":"0","SucceededCount":1}]}"#;
    let refused =
        [format!("spec.successPolicy: Invalid value: {shown}: requires indexed completion mode")];
    let job = |spec: Value| {
        let mut spec = object(spec);
        spec.insert("successPolicy".to_owned(), policy.clone());
        texts(&JOB.validate_create(&created(spec.into())))
    };
    assert_eq!(job(json!({})), refused);
    assert_eq!(job(json!({"completionMode": "NonIndexed", "completions": 5})), refused);
    // Nothing inside is looked at then.
    let job_of_empty = created(json!({"successPolicy": {"rules": []}}));
    assert_eq!(
        texts(&JOB.validate_create(&job_of_empty)),
        ["spec.successPolicy: Invalid value: {\"Rules\":[]}: requires indexed completion mode"]
    );
    assert_eq!(
        job(json!({"completionMode": "Indexed", "parallelism": 5})),
        ["spec.completions: Required value: when completion mode is Indexed"]
    );
}

// rule: job 1.2.1, job 1.5
#[test]
fn a_success_policy_stays_as_it_was_created() {
    let indexed = json!({"completionMode": "Indexed", "completions": 5, "parallelism": 5});
    let with = |policy: Value| {
        let mut spec = object(indexed.clone());
        spec.insert("successPolicy".to_owned(), policy);
        created(spec.into())
    };
    let zero = json!({"rules": [{"succeededIndexes": "0"}]});
    let none = created(indexed.clone());
    let cases = [
        (
            "added",
            &none,
            zero.clone(),
            r#"{"Rules":[{"SucceededIndexes":"0","SucceededCount":null}]}"#,
        ),
        (
            "changed",
            &with(zero.clone()),
            json!({"rules": [{"succeededCount": 2}]}),
            r#"{"Rules":[{"SucceededIndexes":null,"SucceededCount":2}]}"#,
        ),
        ("removed", &with(zero), Value::Null, "null"),
    ];
    for (name, old, policy, shown) in cases {
        let new = changed(old, json!({"successPolicy": policy}));
        let want = format!("spec.successPolicy: Invalid value: {shown}: field is immutable");
        assert_eq!(texts(&JOB.validate_update(&new, old)), [want], "{name}");
    }
    // A Job that shrinks may not leave a rule behind that cannot be met.
    let old = with(json!({"rules": [{"succeededIndexes": "4"}, {"succeededCount": 4}]}));
    let new = changed(&old, json!({"completions": 3, "parallelism": 3}));
    assert_eq!(
        texts(&JOB.validate_update(&new, &old)),
        [
            "spec.successPolicy.rules[0].succeededIndexes: Invalid value: \"4\": error parsing \
             succeededIndexes: too large index: \"4\"",
            "spec.successPolicy.rules[1].succeededCount: Invalid value: 4: must be less than or \
             equal to 3 (the number of specified completions)",
        ]
    );
}

// rule: job 1.2.1, job 4.3
#[test]
fn rules_that_kubernetes_accepts_and_users_may_not_mean_are_warned_about() {
    let job = created(json!({
        "completionMode": "Indexed", "completions": 5,
        "successPolicy": {"rules": [
            {"succeededIndexes": ""},
            {"succeededCount": 0},
            {"succeededIndexes": "1", "succeededCount": 1},
            {"succeededIndexes": "", "succeededCount": 0},
        ]},
    }));
    assert_eq!(texts(&JOB.validate_create(&job)), [""; 0]);
    let never = "an empty list names no index, so that this rule is never met";
    assert_eq!(
        JOB.warnings(&job, None),
        [
            format!("spec.successPolicy.rules[0].succeededIndexes: {never}"),
            "spec.successPolicy.rules[1].succeededCount: 0 is met as soon as one index has \
             succeeded"
                .to_owned(),
            format!("spec.successPolicy.rules[3].succeededIndexes: {never}"),
        ]
    );
}

fn number() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        (-2..7_i32).prop_map(Value::from),
        prop_oneof![Just(i32::MIN), Just(i32::MAX), Just(100_000), Just(100_001)]
            .prop_map(Value::from),
    ]
}

fn list() -> impl Strategy<Value = Value> {
    prop_oneof![Just(Value::Null), "[0-9,+ -]{0,12}|.{0,8}".prop_map(Value::from)]
}

fn spec() -> impl Strategy<Value = Value> {
    let rules = prop::collection::vec(
        (list(), number())
            .prop_map(|(list, count)| json!({"succeededIndexes": list, "succeededCount": count})),
        0..3,
    );
    let mode = prop_oneof![Just("Indexed"), Just("NonIndexed"), Just(""), Just("x")];
    let numbers = prop::array::uniform8(number());
    (mode, numbers, rules, any::<bool>(), list()).prop_map(
        |(mode, n, rules, is_suspended, text)| {
            json!({
                "completionMode": mode, "completions": n[0], "parallelism": n[1],
                "backoffLimit": n[2], "backoffLimitPerIndex": n[3], "maxFailedIndexes": n[4],
                "activeDeadlineSeconds": n[5], "ttlSecondsAfterFinished": n[6],
                "suspend": is_suspended, "managedBy": text, "podReplacementPolicy": text,
                "successPolicy": {"rules": rules},
                "podFailurePolicy": {"rules": [
                    {"action": text, "onExitCodes": {"operator": "In", "values": [n[7]]}},
                ]},
            })
        },
    )
}

fn status() -> impl Strategy<Value = Value> {
    let condition = (prop_oneof![
        Just("Complete"),
        Just("Failed"),
        Just("Suspended"),
        Just("FailureTarget"),
        Just("SuccessCriteriaMet")
    ], any::<bool>())
        .prop_map(|(kind, is_true)| {
            json!({"type": kind, "status": if is_true { "True" } else { "False" }})
        });
    let time = prop_oneof![Just(Value::Null), Just(json!("2026-11-15T12:00:00Z"))];
    let numbers = prop::array::uniform5(number());
    (numbers, list(), list(), prop::collection::vec(condition, 0..4), time).prop_map(
        |(n, completed, failed, conditions, time)| {
            json!({
                "active": n[0], "ready": n[1], "terminating": n[2], "succeeded": n[3],
                "failed": n[4], "completedIndexes": completed, "failedIndexes": failed,
                "conditions": conditions, "startTime": time,
            })
        },
    )
}

proptest! {
    // rule: job 1.2.1
    #[test]
    fn no_job_makes_validation_panic(
        first in spec(), second in spec(), before in status(), after in status(),
    ) {
        let without_null = |mut value: Value| {
            value.as_object_mut().unwrap().retain(|_, value| !value.is_null());
            value
        };
        let mut old = created(without_null(first));
        let mut new = created(without_null(second));
        let _ = (JOB.validate_create(&old), JOB.warnings(&old, None));
        old.insert("status".to_owned(), without_null(before));
        new.insert("status".to_owned(), without_null(after));
        let _ = (JOB.validate_update(&new, &old), JOB.warnings(&new, Some(&old)));
        let _ = JOB.validate_status_update(&new, &old);
        let _ = JOB.row(&new, "2026-11-15T12:00:00Z".parse().unwrap());
    }
}
