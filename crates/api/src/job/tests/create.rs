use serde_json::{Value, json};

use super::{JOB, created, texts};
use crate::strategy::Strategy;

// rule: job 1.1, job 1.2.3
#[test]
#[expect(clippy::too_many_lines, reason = "a table, one row per rule")]
fn numbers_and_modes_are_checked() {
    let cases = [
        (
            json!({"parallelism": -1, "completions": -3, "backoffLimit": -2,
                "activeDeadlineSeconds": -4, "ttlSecondsAfterFinished": -5}),
            vec![
                "spec.parallelism: Invalid value: -1: must be greater than or equal to 0",
                "spec.completions: Invalid value: -3: must be greater than or equal to 0",
                "spec.activeDeadlineSeconds: Invalid value: -4: must be greater than or equal to 0",
                "spec.backoffLimit: Invalid value: -2: must be greater than or equal to 0",
                "spec.ttlSecondsAfterFinished: Invalid value: -5: must be greater than or equal to \
                 0",
            ],
        ),
        (
            json!({"parallelism": 0, "completions": 0, "backoffLimit": 0,
                "activeDeadlineSeconds": 0, "ttlSecondsAfterFinished": 0}),
            vec![],
        ),
        (
            json!({"completionMode": "Indexed", "completions": 2, "backoffLimitPerIndex": -1,
                "maxFailedIndexes": -2}),
            vec![
                "spec.backoffLimitPerIndex: Invalid value: -1: must be greater than or equal to 0",
                "spec.maxFailedIndexes: Invalid value: -2: must be greater than or equal to 0",
            ],
        ),
        (
            json!({"backoffLimitPerIndex": 1}),
            vec!["spec.backoffLimitPerIndex: Invalid value: 1: requires indexed completion mode"],
        ),
        (
            json!({"maxFailedIndexes": 1}),
            vec![
                "spec.backoffLimitPerIndex: Required value: when maxFailedIndexes is specified",
                "spec.maxFailedIndexes: Invalid value: 1: requires indexed completion mode",
            ],
        ),
        (
            json!({"completionMode": "Odd"}),
            vec![
                "spec.completionMode: Unsupported value: \"Odd\": supported values: \
                 \"NonIndexed\", \"Indexed\"",
            ],
        ),
        (
            json!({"completionMode": "Indexed", "parallelism": 100_001}),
            vec![
                "spec.completions: Required value: when completion mode is Indexed",
                "spec.parallelism: Invalid value: 100001: must be less than or equal to 100000 \
                 when completion mode is Indexed",
            ],
        ),
        (
            json!({"completionMode": "Indexed", "completions": 3, "backoffLimitPerIndex": 1,
                "maxFailedIndexes": 4}),
            vec![
                "spec.maxFailedIndexes: Invalid value: 4: must be less than or equal to completions",
            ],
        ),
        (
            json!({"completionMode": "Indexed", "completions": 100_001, "parallelism": 10_001,
                "backoffLimitPerIndex": 1}),
            vec![
                "spec.maxFailedIndexes: Required value: must be specified when completions is \
                 above 100000",
                "spec.parallelism: Invalid value: 10001: must be less than or equal to 10000 when \
                 completions are above 100000 and used with backoff limit per index",
            ],
        ),
        (
            json!({"completionMode": "Indexed", "completions": 200_000, "parallelism": 1,
                "backoffLimitPerIndex": 1, "maxFailedIndexes": 100_001}),
            vec![
                "spec.maxFailedIndexes: Invalid value: 100001: must be less than or equal to 100000",
                "spec.maxFailedIndexes: Invalid value: 100001: must be less than or equal to 10000 \
                 when completions are above 100000 and used with backoff limit per index",
            ],
        ),
        (
            json!({"completionMode": "Indexed", "completions": 100_000, "parallelism": 100_000,
                "backoffLimitPerIndex": 1, "maxFailedIndexes": 100_000}),
            vec![],
        ),
        (
            json!({"completionMode": "Indexed", "completions": 1_000_000_000,
                "parallelism": 10_000, "backoffLimitPerIndex": 1, "maxFailedIndexes": 10_000}),
            vec![],
        ),
        (
            json!({"podReplacementPolicy": "TerminatingOrFailed", "podFailurePolicy": {"rules": []}}),
            vec![
                "spec.podReplacementPolicy: Unsupported value: \"TerminatingOrFailed\": supported \
                 values: \"Failed\"",
            ],
        ),
        (
            json!({"podReplacementPolicy": ""}),
            vec![
                "spec.podReplacementPolicy: Unsupported value: \"\": supported values: \
                 \"Failed\", \"TerminatingOrFailed\"",
            ],
        ),
    ];
    for (spec, want) in cases {
        assert_eq!(texts(&JOB.validate_create(&created(spec.clone()))), want, "{spec}");
    }
}

// rule: job 1.1
#[test]
fn a_manager_is_a_domain_and_a_path() {
    let cases = [
        (
            json!({"managedBy": "x"}),
            vec![
                "spec.managedBy: Invalid value: \"x\": must be a domain-prefixed path (such as \
                 \"acme.io/foo\")",
            ],
        ),
        (json!({"managedBy": ""}), vec!["spec.managedBy: Required value"]),
        (
            json!({"managedBy": "a.b/c d"}),
            vec![
                "spec.managedBy: Invalid value: \"c d\": Invalid path (regex used for validation \
                 is '[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')",
            ],
        ),
        (
            json!({"managedBy": format!("a.b/{}", "c".repeat(60))}),
            vec!["spec.managedBy: Too long: may not be more than 63 bytes"],
        ),
    ];
    for (spec, want) in cases {
        assert_eq!(texts(&JOB.validate_create(&created(spec.clone()))), want, "{spec}");
    }
}

// rule: job 1.2.4
#[test]
fn pods_of_a_job_end() {
    let cases = [
        ("Always", "Required value: valid values: \"OnFailure\", \"Never\""),
        ("", "Required value: valid values: \"OnFailure\", \"Never\""),
        ("OnFailure", ""),
        ("Never", ""),
    ];
    for (policy, want) in cases {
        let job = created(json!({"template": {"spec": {
            "restartPolicy": policy, "containers": [{"name": "c", "image": "i"}],
        }}}));
        let want = if want.is_empty() {
            vec![]
        } else {
            vec![format!("spec.template.spec.restartPolicy: {want}")]
        };
        assert_eq!(texts(&JOB.validate_create(&job)), want, "{policy}");
    }
    let job = created(json!({
        "podFailurePolicy": {"rules": []},
        "template": {"spec": {
            "restartPolicy": "OnFailure", "containers": [{"name": "c", "image": "i"}],
        }},
    }));
    assert_eq!(
        texts(&JOB.validate_create(&job)),
        ["spec.template.spec.restartPolicy: Invalid value: \"OnFailure\": only \"Never\" is \
          supported when podFailurePolicy is specified"]
    );
}

// rule: job 1.2.2
#[test]
#[expect(clippy::too_many_lines, reason = "a table, one row per rule")]
fn failure_rules_are_checked() {
    let rule = "spec.podFailurePolicy.rules[0]";
    let cases = [
        (json!({"action": "FailJob", "onExitCodes": {"operator": "In", "values": [1, 2]}}), vec![]),
        (
            json!({"action": "", "onExitCodes": {"operator": "", "values": [1]}}),
            vec![
                ".action: Required value: valid values: [\"Count\" \"FailIndex\" \"FailJob\" \"Ignore\"]",
                ".onExitCodes.operator: Required value: valid values: [\"In\" \"NotIn\"]",
            ],
        ),
        (
            json!({"action": "FailIndex", "onExitCodes": {"operator": "In", "values": [1]}}),
            vec![
                ".action: Invalid value: \"FailIndex\": requires the backoffLimitPerIndex to be set",
            ],
        ),
        (
            json!({"action": "Odd"}),
            vec![
                ".action: Unsupported value: \"Odd\": supported values: \"Count\", \"FailIndex\", \
                 \"FailJob\", \"Ignore\"",
                ": Invalid value: specifying one of OnExitCodes and OnPodConditions is required",
            ],
        ),
        (
            json!({"action": "Count", "onExitCodes": {"operator": "NotIn", "values": [0]},
                "onPodConditions": [{"type": "a b", "status": "x"}]}),
            vec![
                ".onPodConditions[0].type: Invalid value: \"a b\": name part must consist of \
                 alphanumeric characters, '-', '_' or '.', and must start and end with an \
                 alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used \
                 for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
                ".onPodConditions[0].status: Unsupported value: \"x\": supported values: \
                 \"False\", \"True\", \"Unknown\"",
                ": Invalid value: specifying both OnExitCodes and OnPodConditions is not supported",
            ],
        ),
        (
            json!({"action": "Count", "onExitCodes": {
                "operator": "In", "containerName": "x", "values": [3, 0, 3]}}),
            vec![
                ".onExitCodes.containerName: Invalid value: \"x\": must be one of the container \
                 or initContainer names in the pod template",
                ".onExitCodes.values[1]: Invalid value: 0: must not be 0 for the In operator",
                ".onExitCodes.values[2]: Duplicate value: 3",
                ".onExitCodes.values: Invalid value: [3,0,3]: must be ordered",
            ],
        ),
        (
            json!({"action": "FailJob", "onExitCodes":
                {"operator": "NotIn", "containerName": "c", "values": [-5, -1, 0, 3]}}),
            vec![],
        ),
        (
            json!({"action": "Count", "onExitCodes": {"operator": "Odd", "values": [1]}}),
            vec![
                ".onExitCodes.operator: Unsupported value: \"Odd\": supported values: \"In\", \
                 \"NotIn\"",
            ],
        ),
        (
            json!({"action": "Count", "onExitCodes":
                {"operator": "In", "values": (1..257).collect::<Vec<_>>()}}),
            vec![".onExitCodes.values: Too many: 256: must have at most 255 items"],
        ),
        (
            json!({"action": "Count",
                "onPodConditions": vec![json!({"type": "A", "status": "True"}); 21]}),
            vec![".onPodConditions: Too many: 21: must have at most 20 items"],
        ),
        (
            json!({"action": "Count", "onPodConditions": [{"type": ""}]}),
            vec![
                ".onPodConditions[0].type: Invalid value: \"\": name part must be non-empty",
                ".onPodConditions[0].type: Invalid value: \"\": name part must consist of \
                 alphanumeric characters, '-', '_' or '.', and must start and end with an \
                 alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used \
                 for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
            ],
        ),
        (
            json!({"action": "Count", "onExitCodes": {"operator": "In", "values": []}}),
            vec![".onExitCodes.values: Invalid value: []: at least one value is required"],
        ),
    ];
    for (given, want) in cases {
        let job = created(json!({"podFailurePolicy": {"rules": [given.clone()]}}));
        let want: Vec<String> = want.iter().map(|text| format!("{rule}{text}")).collect();
        assert_eq!(texts(&JOB.validate_create(&job)), want, "{given}");
    }
    let rules: Vec<Value> = (0..21)
        .map(|_| json!({"action": "Count", "onExitCodes": {"operator": "In", "values": [1]}}))
        .collect();
    let job = created(json!({"podFailurePolicy": {"rules": rules}}));
    assert_eq!(
        texts(&JOB.validate_create(&job)),
        ["spec.podFailurePolicy.rules: Too many: 21: must have at most 20 items"]
    );
}

// rule: job 1.2.1
#[test]
fn success_rules_are_checked() {
    let rule = "spec.successPolicy.rules[0]";
    let cases = [
        (json!({"succeededIndexes": "0-1", "succeededCount": 1}), vec![]),
        (json!({"succeededIndexes": ""}), vec![]),
        (json!({"succeededCount": 0}), vec![]),
        (
            json!({}),
            vec![
                ": Required value: at least one of succeededCount or succeededIndexes must be \
                 specified",
            ],
        ),
        (
            json!({"succeededCount": 4}),
            vec![
                ".succeededCount: Invalid value: 4: must be less than or equal to 3 (the number of \
                 specified completions)",
            ],
        ),
        (
            json!({"succeededIndexes": "0,x", "succeededCount": 1}),
            vec![
                ".succeededIndexes: Invalid value: \"0,x\": error parsing succeededIndexes: cannot \
                 convert string to integer for index: \"x\"",
                ".succeededCount: Invalid value: 1: must be less than or equal to 0 (the number of \
                 indexes in the specified succeededIndexes field)",
            ],
        ),
    ];
    for (given, want) in cases {
        let job = created(json!({
            "completionMode": "Indexed", "completions": 3,
            "successPolicy": {"rules": [given.clone()]},
        }));
        let want: Vec<String> = want.iter().map(|text| format!("{rule}{text}")).collect();
        assert_eq!(texts(&JOB.validate_create(&job)), want, "{given}");
    }
}

// rule: job 1.1
#[test]
fn pods_of_indexed_jobs_need_short_hostnames() {
    let mut job = created(json!({"completionMode": "Indexed", "completions": 11}));
    let name = "x".repeat(61);
    job["metadata"]["name"] = name.clone().into();
    for label in ["job-name", "batch.kubernetes.io/job-name"] {
        job["spec"]["template"]["metadata"]["labels"][label] = name.clone().into();
    }
    assert_eq!(
        texts(&JOB.validate_create(&job)),
        [format!(
            "metadata.name: Invalid value: {name:?}: will not able to create pod with invalid DNS \
             label: {name}-10"
        )]
    );
}
