mod bad_input;
mod create;
mod update;

use serde_json::{Value, json};

use crate::{
    field::ErrorList,
    gates::Gates,
    job::JobStrategy,
    strategy::{Json, Strategy, WriteContext},
};

const JOB: JobStrategy = JobStrategy::new(Gates::ALL);

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
    JOB.fill_defaults(&mut job);
    JOB.prepare_create(&mut job, &context());
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

// rule: job 1.1
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

// rule: job 1.3
#[test]
fn what_users_put_on_the_template_is_kept_and_refused_where_it_does_not_fit() {
    let template = |labels: Value| {
        json!({"metadata": {"labels": labels}, "spec": {
            "restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}],
        }})
    };
    let job = created(json!({"template": template(json!({"a": "b", "job-name": "j"}))}));
    assert_eq!(texts(&JOB.validate_create(&job)), [""; 0]);
    assert_eq!(job["spec"]["template"]["metadata"]["labels"].as_object().unwrap().len(), 5);
    assert_eq!(job["metadata"]["labels"], job["spec"]["template"]["metadata"]["labels"]);
    let job = created(json!({"template": template(json!({"controller-uid": "other"}))}));
    let got = texts(&JOB.validate_create(&job));
    assert_eq!(got.len(), 1, "{got:?}");
    assert!(got[0].starts_with("spec.template.metadata.labels[controller-uid]: Invalid value: {"));
    assert!(got[0].ends_with("}: must be 'u-1'"), "{got:?}");
    // A selector for another uid selects none of the pods.
    let wrong = json!({"matchLabels": {"batch.kubernetes.io/controller-uid": "other"}});
    let got = texts(&JOB.validate_create(&created(json!({"selector": wrong}))));
    assert!(got[0].ends_with("`selector` not auto-generated"), "{got:?}");
    assert!(got[1].ends_with("`selector` does not match template `labels`"), "{got:?}");
    // Labels of the Job itself are left alone.
    let mut labelled = created(json!({}));
    labelled["metadata"]["labels"] = json!({"mine": "x"});
    JOB.prepare_create(&mut labelled, &context());
    assert_eq!(labelled["metadata"]["labels"], json!({"mine": "x"}));
}

// rule: job 1.3
#[test]
fn a_manual_selector_must_be_there_and_fit() {
    let mut job = created(json!({"manualSelector": true}));
    let got = texts(&JOB.validate_create(&job));
    let unmatched = "spec.template.metadata.labels: Invalid value: null: `selector` does not match \
                     template `labels`";
    assert_eq!(got, ["spec.selector: Required value", unmatched]);
    job["spec"]["selector"] = json!({"matchLabels": {"a": "b"}});
    job["spec"]["template"]["metadata"] = json!({"labels": {"y": "z"}});
    assert_eq!(
        texts(&JOB.validate_create(&job)),
        ["spec.template.metadata.labels: Invalid value: {\"y\":\"z\"}: `selector` does not match \
          template `labels`"]
    );
}

#[test]
fn defaulting_twice_changes_nothing() {
    for spec in [json!({}), json!({"parallelism": 2, "backoffLimitPerIndex": 1})] {
        let once = created(spec);
        let mut twice = once.clone();
        JOB.fill_defaults(&mut twice);
        assert_eq!(once, twice);
    }
}

// rule: job 1.1, job 1.3, job 6.1.5
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
    assert_eq!(texts(&JOB.validate_create(&job)), [""; 0]);
}

// rule: job 1.3
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
    assert_eq!(texts(&JOB.validate_create(&job)), [""; 0]);
}

// rule: job 1.3
#[test]
fn wrong_labels_and_selectors_are_refused() {
    let mut job = created(json!({}));
    job["spec"]["template"]["metadata"]["labels"] =
        json!({"job-name": "other", "batch.kubernetes.io/controller-uid": "u-1"});
    let shown = "{\"batch.kubernetes.io/controller-uid\":\"u-1\",\"job-name\":\"other\"}";
    let label = "spec.template.metadata.labels";
    assert_eq!(
        texts(&JOB.validate_create(&job)),
        [
            format!("{label}[controller-uid]: Required value: must be 'u-1'"),
            format!("{label}[job-name]: Invalid value: {shown}: must be 'j'"),
            format!("{label}[batch.kubernetes.io/job-name]: Required value: must be 'j'"),
        ]
    );
    let mut job = created(json!({}));
    job["spec"]["selector"] = json!({"matchLabels": {"a": "b"}});
    let got = texts(&JOB.validate_create(&job));
    assert_eq!(
        got[0],
        "spec.selector: Invalid value: {\"matchLabels\":{\"a\":\"b\"}}: `selector` not \
         auto-generated"
    );
    assert!(got[1].ends_with("`selector` does not match template `labels`"), "{got:?}");
}

// rule: job 1.1
#[test]
fn users_are_warned() {
    let job = created(json!({}));
    assert_eq!(JOB.warnings(&job, None), [""; 0]);
    let mut dotted = job.clone();
    dotted["metadata"]["name"] = "a.b".into();
    assert_eq!(
        JOB.warnings(&dotted, None),
        ["metadata.name: this is used in Pod names and hostnames, which can result in surprising \
          behavior; a DNS label is recommended: [must not contain dots]"]
    );
    assert_eq!(JOB.warnings(&dotted, Some(&dotted)), [""; 0]);
    let huge = created(json!({"completionMode": "Indexed", "completions": 100_001,
        "parallelism": 10_001, "successPolicy": {"rules": [{"succeededCount": 0}]}}));
    let warnings = JOB.warnings(&huge, None);
    assert!(warnings[0].starts_with("spec: In Indexed Jobs with a number of completions"));
    assert!(warnings[1].starts_with("spec.successPolicy.rules[0].succeededCount: 0 is met"));
}
