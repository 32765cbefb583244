use serde_json::{Value, json};

use crate::{
    field::ErrorList,
    job::JobStrategy,
    strategy::{Json, Strategy, WriteContext},
};

fn context() -> WriteContext {
    let now = "2026-11-15T12:00:00Z".parse().unwrap();
    WriteContext { now, uid: "u-1".into(), user: "me".into() }
}

fn object(value: Value) -> Json {
    let Value::Object(object) = value else { panic!("not an object: {value}") };
    object
}

/// A Job as it is after defaulting and preparation, with these fields of its spec.
fn created(spec: Value) -> Json {
    let mut job = json!({
        "metadata": {"name": "j", "namespace": "n", "uid": "u-1"},
        "spec": {"template": {"spec": {
            "restartPolicy": "Never",
            "containers": [{"name": "c", "image": "i"}],
        }}},
    });
    for (field, value) in object(spec) {
        job["spec"][field] = value;
    }
    let mut job = object(job);
    JobStrategy.fill_defaults(&mut job);
    JobStrategy.prepare_create(&mut job, &context());
    job
}

/// The same Job with these fields of its spec changed, as an update would leave it.
fn changed(job: &Json, spec: Value) -> Json {
    let mut job = job.clone();
    for (field, value) in object(spec) {
        job["spec"][field] = value;
    }
    job
}

fn texts(errors: &ErrorList) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

#[test]
fn what_is_left_out_is_filled_in() {
    let cases = [
        (
            json!({}),
            json!({"completions": 1, "parallelism": 1, "backoffLimit": 6,
            "completionMode": "NonIndexed", "suspend": false, "manualSelector": false,
            "podReplacementPolicy": "TerminatingOrFailed"}),
        ),
        (json!({"parallelism": 3}), json!({"completions": null, "parallelism": 3})),
        (json!({"completions": 3}), json!({"completions": 3, "parallelism": 1})),
        (json!({"backoffLimitPerIndex": 1}), json!({"backoffLimit": 2147483647})),
        (
            json!({"podFailurePolicy": {"rules": [
                {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]},
            ]}}),
            json!({"podReplacementPolicy": "Failed"}),
        ),
    ];
    for (given, want) in cases {
        let job = created(given.clone());
        for (field, value) in object(want) {
            let got = job["spec"].get(&field).cloned().unwrap_or_default();
            assert_eq!(got, value, "{given}: {field}");
        }
    }
    let job = created(json!({"podFailurePolicy": {"rules": [
        {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]},
    ]}}));
    let pattern = &job["spec"]["podFailurePolicy"]["rules"][0]["onPodConditions"][0];
    assert_eq!(pattern["status"], "True");
}

#[test]
fn defaulting_twice_changes_nothing() {
    for spec in [json!({}), json!({"parallelism": 2, "backoffLimitPerIndex": 1})] {
        let once = created(spec);
        let mut twice = once.clone();
        JobStrategy.fill_defaults(&mut twice);
        assert_eq!(once, twice);
    }
}

#[test]
fn pods_are_found_by_generated_labels() {
    let job = created(json!({}));
    let labels = json!({
        "job-name": "j",
        "batch.kubernetes.io/job-name": "j",
        "controller-uid": "u-1",
        "batch.kubernetes.io/controller-uid": "u-1",
    });
    assert_eq!(job["spec"]["template"]["metadata"]["labels"], labels);
    assert_eq!(job["metadata"]["labels"], labels);
    assert_eq!(
        job["spec"]["selector"],
        json!({"matchLabels": {"batch.kubernetes.io/controller-uid": "u-1"}})
    );
    assert_eq!(texts(&JobStrategy.validate_create(&job)), [""; 0]);
}

#[test]
fn a_manual_selector_is_left_alone() {
    let job = created(json!({
        "manualSelector": true,
        "selector": {"matchLabels": {"a": "b"}},
        "template": {
            "metadata": {"labels": {"a": "b"}},
            "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]},
        },
    }));
    assert_eq!(job["spec"]["template"]["metadata"]["labels"], json!({"a": "b"}));
    assert_eq!(job["metadata"]["labels"], json!({"a": "b"}));
    assert_eq!(texts(&JobStrategy.validate_create(&job)), [""; 0]);
}

#[test]
fn wrong_labels_and_selectors_are_refused() {
    let mut job = created(json!({}));
    job["spec"]["template"]["metadata"]["labels"] =
        json!({"job-name": "other", "batch.kubernetes.io/controller-uid": "u-1"});
    let shown = "{\"batch.kubernetes.io/controller-uid\":\"u-1\",\"job-name\":\"other\"}";
    let label = "spec.template.metadata.labels";
    assert_eq!(
        texts(&JobStrategy.validate_create(&job)),
        [
            format!("{label}[controller-uid]: Required value: must be 'u-1'"),
            format!("{label}[job-name]: Invalid value: {shown}: must be 'j'"),
            format!("{label}[batch.kubernetes.io/job-name]: Required value: must be 'j'"),
        ]
    );
    let mut job = created(json!({}));
    job["spec"]["selector"] = json!({"matchLabels": {"a": "b"}});
    let got = texts(&JobStrategy.validate_create(&job));
    assert_eq!(
        got[0],
        "spec.selector: Invalid value: {\"matchLabels\":{\"a\":\"b\"}}: `selector` not \
         auto-generated"
    );
    assert!(got[1].ends_with("`selector` does not match template `labels`"), "{got:?}");
}

#[test]
fn numbers_and_modes_are_checked() {
    let cases = [
        (
            json!({"parallelism": -1, "backoffLimit": -2}),
            vec![
                "spec.parallelism: Invalid value: -1: must be greater than or equal to 0",
                "spec.backoffLimit: Invalid value: -2: must be greater than or equal to 0",
            ],
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
            json!({"podReplacementPolicy": ""}),
            vec![
                "spec.podReplacementPolicy: Unsupported value: \"\": supported values: \
                 \"Failed\", \"TerminatingOrFailed\"",
            ],
        ),
    ];
    for (spec, want) in cases {
        assert_eq!(texts(&JobStrategy.validate_create(&created(spec.clone()))), want, "{spec}");
    }
}

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
        assert_eq!(texts(&JobStrategy.validate_create(&created(spec.clone()))), want, "{spec}");
    }
}

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
        assert_eq!(texts(&JobStrategy.validate_create(&job)), want, "{policy}");
    }
    let job = created(json!({
        "podFailurePolicy": {"rules": []},
        "template": {"spec": {
            "restartPolicy": "OnFailure", "containers": [{"name": "c", "image": "i"}],
        }},
    }));
    assert_eq!(
        texts(&JobStrategy.validate_create(&job)),
        ["spec.template.spec.restartPolicy: Invalid value: \"OnFailure\": only \"Never\" is \
          supported when podFailurePolicy is specified"]
    );
}

#[test]
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
            json!({"action": "Count", "onExitCodes": {"operator": "In", "values": []}}),
            vec![".onExitCodes.values: Invalid value: []: at least one value is required"],
        ),
    ];
    for (given, want) in cases {
        let job = created(json!({"podFailurePolicy": {"rules": [given.clone()]}}));
        let want: Vec<String> = want.iter().map(|text| format!("{rule}{text}")).collect();
        assert_eq!(texts(&JobStrategy.validate_create(&job)), want, "{given}");
    }
    let rules: Vec<Value> = (0..21)
        .map(|_| json!({"action": "Count", "onExitCodes": {"operator": "In", "values": [1]}}))
        .collect();
    let job = created(json!({"podFailurePolicy": {"rules": rules}}));
    assert_eq!(
        texts(&JobStrategy.validate_create(&job)),
        ["spec.podFailurePolicy.rules: Too many: 21: must have at most 20 items"]
    );
}

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
        assert_eq!(texts(&JobStrategy.validate_create(&job)), want, "{given}");
    }
    let job = created(json!({"completionMode": "Indexed", "completions": 3,
        "successPolicy": {"rules": []}}));
    assert_eq!(
        texts(&JobStrategy.validate_create(&job)),
        [
            "spec.successPolicy.rules: Required value: at least one rules must be specified when the \
          successPolicy is specified"
        ]
    );
    let job = created(json!({"successPolicy": {"rules": [{"succeededCount": 1}]}}));
    assert_eq!(
        texts(&JobStrategy.validate_create(&job)),
        ["spec.successPolicy: Invalid value: {\"rules\":[{\"succeededCount\":1}]}: requires \
          indexed completion mode"]
    );
    let job = created(json!({"completionMode": "Indexed", "parallelism": 1,
        "successPolicy": {"rules": [{"succeededCount": 1}]}}));
    assert_eq!(
        texts(&JobStrategy.validate_create(&job)),
        ["spec.completions: Required value: when completion mode is Indexed"]
    );
}

#[test]
fn pods_of_indexed_jobs_need_short_hostnames() {
    let mut job = created(json!({"completionMode": "Indexed", "completions": 11}));
    let name = "x".repeat(61);
    job["metadata"]["name"] = name.clone().into();
    for label in ["job-name", "batch.kubernetes.io/job-name"] {
        job["spec"]["template"]["metadata"]["labels"][label] = name.clone().into();
    }
    assert_eq!(
        texts(&JobStrategy.validate_create(&job)),
        [format!(
            "metadata.name: Invalid value: {name:?}: will not able to create pod with invalid DNS \
             label: {name}-10"
        )]
    );
}

#[test]
fn little_of_a_job_may_change() {
    let plain = created(json!({"completions": 2, "parallelism": 2}));
    let indexed = created(json!({"completionMode": "Indexed", "completions": 2, "parallelism": 2}));
    let cases = [
        (
            &plain,
            json!({"parallelism": 5, "suspend": true, "backoffLimit": 1,
            "activeDeadlineSeconds": 3, "ttlSecondsAfterFinished": 3}),
            vec![],
        ),
        (
            &plain,
            json!({"completions": 3}),
            vec!["spec.completions: Invalid value: 3: field is immutable"],
        ),
        (&indexed, json!({"completions": 3, "parallelism": 3}), vec![]),
        (
            &indexed,
            json!({"completions": 3}),
            vec![
                "spec.completions: Invalid value: 3: can only be modified in tandem with \
                 spec.parallelism",
            ],
        ),
        (
            &plain,
            json!({"managedBy": "a.b/c"}),
            vec!["spec.managedBy: Invalid value: \"a.b/c\": field is immutable"],
        ),
        (
            &indexed,
            json!({"backoffLimitPerIndex": 1}),
            vec!["spec.backoffLimitPerIndex: Invalid value: 1: field is immutable"],
        ),
        (
            &indexed,
            json!({"successPolicy": {"rules": [{"succeededCount": 1}]}}),
            vec![
                "spec.successPolicy: Invalid value: {\"rules\":[{\"succeededCount\":1}]}: field is \
                 immutable",
            ],
        ),
    ];
    for (old, spec, want) in cases {
        let new = changed(old, spec.clone());
        assert_eq!(texts(&JobStrategy.validate_update(&new, old)), want, "{spec}");
    }
}

#[test]
fn a_template_changes_only_while_nothing_runs() {
    let running = created(json!({}));
    let suspended = created(json!({"suspend": true}));
    let mut stopping = suspended.clone();
    stopping.insert("status".into(), json!({"active": 1, "startTime": "2026-11-15T12:00:00Z"}));
    let mut stopped = suspended.clone();
    stopped.insert(
        "status".into(),
        json!({"startTime": "2026-11-15T12:00:00Z",
            "conditions": [{"type": "Suspended", "status": "True"}]}),
    );
    let placed = |job: &Json| {
        let mut job = job.clone();
        let template = &mut job["spec"]["template"];
        template["metadata"]["annotations"] = json!({"a": "b"});
        template["spec"]["nodeSelector"] = json!({"a": "b"});
        template["spec"]["affinity"] = json!({"nodeAffinity": {}});
        template["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "1"}});
        job
    };
    let renamed = |job: &Json| {
        let mut job = job.clone();
        job["spec"]["template"]["spec"]["containers"][0]["image"] = "other".into();
        job
    };
    let cases = [
        ("running", placed(&running), &running, "spec.template: Invalid value: "),
        ("suspended", placed(&suspended), &suspended, ""),
        ("stopping", placed(&stopping), &stopping, "spec.template: Invalid value: "),
        ("stopped", placed(&stopped), &stopped, ""),
        ("another image", renamed(&suspended), &suspended, "spec.template.spec: Invalid value: "),
        ("affinity goes", suspended.clone(), &placed(&suspended), ""),
    ];
    for (name, new, old, want) in cases {
        let got = texts(&JobStrategy.validate_update(&new, old));
        match want {
            "" => assert_eq!(got, [""; 0], "{name}"),
            _ => {
                assert_eq!(got.len(), 1, "{name}: {got:?}");
                assert!(got[0].starts_with(want) && got[0].ends_with(": field is immutable"));
            }
        }
    }
}

#[test]
fn users_are_warned() {
    let job = created(json!({}));
    assert_eq!(JobStrategy.warnings(&job, None), [""; 0]);
    let mut dotted = job.clone();
    dotted["metadata"]["name"] = "a.b".into();
    assert_eq!(
        JobStrategy.warnings(&dotted, None),
        ["metadata.name: this is used in Pod names and hostnames, which can result in surprising \
          behavior; a DNS label is recommended: [must not contain dots]"]
    );
    assert_eq!(JobStrategy.warnings(&dotted, Some(&dotted)), [""; 0]);
    let huge = created(json!({"completionMode": "Indexed", "completions": 100_001,
        "parallelism": 10_001, "successPolicy": {"rules": [{"succeededCount": 0}]}}));
    let warnings = JobStrategy.warnings(&huge, None);
    assert!(warnings[0].starts_with("spec: In Indexed Jobs with a number of completions"));
    assert!(warnings[1].starts_with("spec.successPolicy.rules[0].succeededCount: 0 is met"));
}
