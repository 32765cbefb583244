//! The 29 rules, each with a change it refuses, and whether it is held against objects that were
//! bad already.

use serde_json::{Value, json};

use super::{END, START, complete, conditions, said, with};

/// When a rule looks.
#[derive(PartialEq)]
enum Looks {
    /// At every update.
    Always,
    /// At what is different.
    AtChanges,
}

struct Rule {
    number: usize,
    spec: Value,
    old: Value,
    /// What is changed in `old`.
    change: Value,
    /// The refusal, without the leading `status.`.
    want: &'static str,
    looks: Looks,
}

fn started(change: Value) -> Value {
    with(json!({"startTime": START}), change)
}

fn rule(number: usize, spec: Value, old: Value, change: Value, want: &'static str) -> Rule {
    let looks = if number <= 5 { Looks::Always } else { Looks::AtChanges };
    Rule { number, spec, old, change, want, looks }
}

fn conditions_rule(
    number: usize,
    spec: Value,
    old: &[&str],
    new: &[&str],
    why: &'static str,
) -> Rule {
    let old = started(json!({"conditions": conditions(old)}));
    let has_end = new.contains(&"Complete");
    let end = if has_end { json!(END) } else { Value::Null };
    let change = json!({"conditions": conditions(new), "completionTime": end});
    rule(number, spec, old, change, why)
}

#[expect(clippy::too_many_lines, reason = "a table, one row per rule")]
fn about_conditions() -> Vec<Rule> {
    let none = || json!({});
    let policy = json!({"completionMode": "Indexed", "completions": 1,
        "successPolicy": {"rules": [{"succeededCount": 1}]}});
    vec![
        conditions_rule(
            3,
            none(),
            &["FailureTarget"],
            &["SuccessCriteriaMet", "Failed", "FailureTarget"],
            "conditions: Invalid value: cannot set SuccessCriteriaMet=True and Failed=true conditions",
        ),
        conditions_rule(
            4,
            none(),
            &[],
            &["SuccessCriteriaMet", "FailureTarget"],
            "conditions: Invalid value: cannot set SuccessCriteriaMet=True and FailureTarget=true \
             conditions",
        ),
        conditions_rule(
            5,
            policy,
            &[],
            &["Complete"],
            "conditions: Invalid value: cannot set Complete=True for Job with SuccessPolicy unless \
             SuccessCriteriaMet=True",
        ),
        conditions_rule(
            6,
            none(),
            &["SuccessCriteriaMet"],
            &[],
            "conditions: Invalid value: cannot disable the SuccessCriteriaMet=True condition",
        ),
        conditions_rule(
            8,
            none(),
            &["FailureTarget", "Failed"],
            &["FailureTarget"],
            "conditions: Invalid value: cannot disable the terminal Failed=True condition",
        ),
        conditions_rule(
            8,
            none(),
            &["FailureTarget"],
            &[],
            "conditions: Invalid value: cannot disable the terminal FailureTarget=True condition",
        ),
        conditions_rule(
            12,
            none(),
            &["FailureTarget"],
            &["FailureTarget", "Failed", "Complete"],
            "conditions: Invalid value: cannot set Complete=True and Failed=true conditions",
        ),
        conditions_rule(
            13,
            none(),
            &["FailureTarget"],
            &["FailureTarget", "Complete"],
            "conditions: Invalid value: cannot set Complete=True and FailureTarget=true conditions",
        ),
        conditions_rule(
            17,
            none(),
            &[],
            &["Failed"],
            "conditions: Invalid value: cannot set Failed=True condition without the \
             FailureTarget=true condition",
        ),
        conditions_rule(
            18,
            none(),
            &[],
            &["Complete"],
            "conditions: Invalid value: cannot set Complete=True condition without the \
             SuccessCriteriaMet=true condition",
        ),
        rule(
            7,
            none(),
            with(complete(), json!({"conditions": conditions(&["Complete"])})),
            json!({"conditions": conditions(&["Complete", "SuccessCriteriaMet"])}),
            "conditions: Invalid value: cannot set SuccessCriteriaMet=True for Job already has \
             Complete=true conditions",
        ),
        rule(
            8,
            none(),
            complete(),
            json!({"conditions": conditions(&["SuccessCriteriaMet"]), "completionTime": null}),
            "conditions: Invalid value: cannot disable the terminal Complete=True condition",
        ),
    ]
}

#[expect(clippy::too_many_lines, reason = "a table, one row per rule")]
fn about_numbers() -> Vec<Rule> {
    let none = || json!({});
    let finished = || started(json!({"conditions": conditions(&["FailureTarget", "Failed"])}));
    let uneven = json!({"completionMode": "Indexed", "completions": 3, "parallelism": 2});
    let negative = "must be greater than or equal to 0";
    let mut rules = vec![
        rule(
            2,
            none(),
            none(),
            json!({"uncountedTerminatedPods": {"failed": [""]}}),
            "uncountedTerminatedPods.failed[0]: Invalid value: \"\": must not be empty",
        ),
        rule(
            2,
            none(),
            none(),
            json!({"uncountedTerminatedPods": {"succeeded": ["a"], "failed": ["b", "a"]}}),
            "uncountedTerminatedPods.failed[1]: Duplicate value: \"a\"",
        ),
        rule(
            9,
            none(),
            json!({"failed": 2}),
            json!({"failed": 1}),
            "failed: Invalid value: 1: cannot decrease the failed counter",
        ),
        rule(
            10,
            none(),
            json!({"succeeded": 2}),
            json!({"succeeded": 1}),
            "succeeded: Invalid value: 1: cannot decrease the succeeded counter",
        ),
        rule(
            10,
            uneven,
            json!({"succeeded": 2}),
            json!({"succeeded": null}),
            "succeeded: Invalid value: 0: cannot decrease the succeeded counter",
        ),
        rule(
            19,
            none(),
            finished(),
            json!({"active": 1}),
            "active: Invalid value: 1: active>0 is invalid for finished job",
        ),
        rule(
            21,
            none(),
            finished(),
            json!({"uncountedTerminatedPods": {"succeeded": ["a"]}}),
            "uncountedTerminatedPods: Invalid value: {\"Succeeded\":[\"a\"],\"Failed\":null}: must \
             be empty for finished job",
        ),
        rule(
            27,
            none(),
            finished(),
            json!({"terminating": 1}),
            "terminating: Invalid value: 1: terminating>0 is invalid for finished job",
        ),
        rule(
            28,
            none(),
            json!({"active": 1}),
            json!({"ready": 2}),
            "ready: Invalid value: 2: cannot set more ready pods than active",
        ),
        rule(
            28,
            none(),
            json!({"active": 2, "ready": 2}),
            json!({"active": 1}),
            "ready: Invalid value: 2: cannot set more ready pods than active",
        ),
    ];
    for (field, want) in [
        ("active", "active: Invalid value: -1: must be greater than or equal to 0"),
        ("succeeded", "succeeded: Invalid value: -1: must be greater than or equal to 0"),
        ("failed", "failed: Invalid value: -1: must be greater than or equal to 0"),
        ("ready", "ready: Invalid value: -1: must be greater than or equal to 0"),
        ("terminating", "terminating: Invalid value: -1: must be greater than or equal to 0"),
    ] {
        assert!(want.ends_with(negative));
        rules.push(rule(1, none(), json!({"active": 0}), json!({field: -1}), want));
    }
    rules
}

fn about_times() -> Vec<Rule> {
    let none = || json!({});
    let early = "2026-11-15T11:00:00Z";
    vec![
        rule(
            11,
            none(),
            complete(),
            json!({"completionTime": "2026-11-15T14:00:00Z"}),
            "completionTime: Invalid value: \"2026-11-15T14:00:00Z\": field is immutable",
        ),
        rule(
            14,
            none(),
            started(none()),
            json!({"completionTime": END}),
            "completionTime: Invalid value: \"2026-11-15T13:00:00Z\": cannot set completionTime \
             when there is no Complete=True condition",
        ),
        rule(
            15,
            none(),
            complete(),
            json!({"completionTime": null}),
            "completionTime: Required value: completionTime is required for Complete jobs",
        ),
        rule(
            16,
            none(),
            started(json!({"conditions": conditions(&["SuccessCriteriaMet"])})),
            json!({"completionTime": early,
                "conditions": conditions(&["SuccessCriteriaMet", "Complete"])}),
            "completionTime: Invalid value: \"2026-11-15T11:00:00Z\": must be equal to or after \
             `startTime`",
        ),
        rule(
            20,
            json!({"completions": 0}),
            none(),
            json!({"conditions": conditions(&["FailureTarget", "Failed"])}),
            "startTime: Required value: startTime is required for finished job",
        ),
        rule(
            29,
            none(),
            started(none()),
            json!({"startTime": END}),
            "startTime: Invalid value: \"2026-11-15T13:00:00Z\": field is immutable for unsuspended \
             job once set",
        ),
    ]
}

fn about_indexes() -> Vec<Rule> {
    let limited =
        || json!({"completionMode": "Indexed", "completions": 3, "backoffLimitPerIndex": 1});
    let none = || json!({});
    vec![
        rule(
            22,
            limited(),
            none(),
            json!({"completedIndexes": "2,1"}),
            "completedIndexes: Invalid value: \"2,1\": error parsing completedIndexes: \
             non-increasing order, previous: 2, current: 1",
        ),
        rule(
            23,
            limited(),
            none(),
            json!({"failedIndexes": "3"}),
            "failedIndexes: Invalid value: \"3\": error parsing failedIndexes: too large index: \
             \"3\"",
        ),
        rule(
            24,
            none(),
            none(),
            json!({"completedIndexes": "0"}),
            "completedIndexes: Invalid value: \"0\": cannot set non-empty completedIndexes when \
             non-indexed completion mode",
        ),
        rule(
            25,
            none(),
            none(),
            json!({"failedIndexes": ""}),
            "failedIndexes: Invalid value: \"\": cannot set non-null failedIndexes when \
             backoffLimitPerIndex is null",
        ),
        rule(
            26,
            limited(),
            json!({"completedIndexes": "0-1"}),
            json!({"failedIndexes": "1-2"}),
            "failedIndexes: Invalid value: \"1-2\": failedIndexes and completedIndexes overlap at \
             index: 1",
        ),
    ]
}

// rule: job 1.6, job 1.6.1, job 1.6.2, job 1.6.3, job 1.6.4, job 1.6.5, job 1.6.6, job 1.6.7
// rule: job 1.6.8, job 1.6.9, job 1.6.10, job 1.6.11, job 1.6.12, job 1.6.13, job 1.6.14
// rule: job 1.6.15, job 1.6.16, job 1.6.17, job 1.6.18, job 1.6.19, job 1.6.20, job 1.6.21
// rule: job 1.6.22, job 1.6.23, job 1.6.24, job 1.6.25, job 1.6.26, job 1.6.27, job 1.6.28
// rule: job 1.6.29
#[test]
fn each_rule_refuses_a_change_and_lets_old_faults_be() {
    let rules: Vec<Rule> = [about_conditions(), about_numbers(), about_times(), about_indexes()]
        .into_iter()
        .flatten()
        .collect();
    for number in 1..=29 {
        assert!(rules.iter().any(|rule| rule.number == number), "rule {number} has no case");
    }
    for Rule { number, spec, old, change, want, looks } in rules {
        let new = with(old.clone(), change);
        let got = said(&spec, &old, &new);
        assert!(got.iter().any(|text| text == want), "rule {number}: {got:#?}");
        // An unrelated update of an object that is in that state already.
        let again = with(new.clone(), json!({"conditions": extended(&new)}));
        let got = said(&spec, &new, &again);
        let is_held = got.iter().any(|text| text == want);
        assert_eq!(is_held, looks == Looks::Always, "rule {number}, again: {got:#?}");
    }
}

/// The conditions of a status and one that means nothing to the rules.
fn extended(status: &Value) -> Value {
    let mut conditions = status["conditions"].as_array().cloned().unwrap_or_default();
    conditions.push(json!({"type": "Custom", "status": "True"}));
    conditions.into()
}

// rule: job 1.6
#[test]
fn any_condition_of_a_type_counts_and_unknown_ones_are_accepted() {
    let old = started(json!({}));
    let twice = json!([
        {"type": "Failed", "status": "False"}, {"type": "Failed", "status": "True"},
    ]);
    assert_eq!(
        said(&json!({}), &old, &with(old.clone(), json!({"conditions": twice}))),
        ["conditions: Invalid value: cannot set Failed=True condition without the \
          FailureTarget=true condition"]
    );
    let custom =
        json!([{"type": "Custom", "status": "True"}, {"type": "Custom", "status": "False"}]);
    assert_eq!(said(&json!({}), &old, &with(old.clone(), json!({"conditions": custom}))), [""; 0]);
    // Lifted since KEP-3998 was written: Jobs of any kind meet their criteria.
    let met = conditions(&["SuccessCriteriaMet"]);
    assert_eq!(said(&json!({}), &old, &with(old.clone(), json!({"conditions": met}))), [""; 0]);
}
