//! Jobs as clients write and read them. Each is managed by somebody else, so that no controller of
//! ours answers.

use lockstep_local::embedded::Options;
use serde_json::{Value, json};

use super::support::{Api, PODS, pod};

const JOBS: &str = "/apis/batch/v1/namespaces/default/jobs";

fn job(name: &str, spec: &Value) -> Value {
    let mut job = json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {
            "managedBy": "example.com/nobody",
            "template": {"spec": {
                "restartPolicy": "Never",
                "containers": [{"name": "c", "image": "i", "command": ["true"]}],
            }},
        },
        "status": {"succeeded": 7},
    });
    for (field, value) in spec.as_object().unwrap() {
        job["spec"][field] = value.clone();
    }
    job
}

fn indexed(policy: &Value) -> Value {
    json!({"completionMode": "Indexed", "completions": 5, "parallelism": 5, "successPolicy": policy})
}

// rule: job 1, job 1.1, job 1.3
#[tokio::test]
async fn a_new_job_has_labels_a_selector_and_no_status() {
    let api = Api::start().await;
    let mut body = job("x", &json!({}));
    body["metadata"] = json!({"generateName": "train-"});
    let created = api.post(JOBS, &body).await;
    assert_eq!(created.code, 201, "{}", created.text);
    let created = created.json();
    let (name, uid) = (&created["metadata"]["name"], &created["metadata"]["uid"]);
    assert!(name.as_str().unwrap().starts_with("train-"));
    let labels = json!({
        "batch.kubernetes.io/controller-uid": uid, "batch.kubernetes.io/job-name": name,
        "controller-uid": uid, "job-name": name,
    });
    assert_eq!(created["spec"]["template"]["metadata"]["labels"], labels);
    assert_eq!(created["metadata"]["labels"], labels);
    let selector = json!({"matchLabels": {"batch.kubernetes.io/controller-uid": uid}});
    assert_eq!(created["spec"]["selector"], selector);
    assert_eq!((&created["metadata"]["generation"], &created["status"]), (&json!(1), &json!({})));
    assert_eq!(created["spec"]["backoffLimit"], 6);
}

// rule: job 1
#[tokio::test]
async fn spec_and_status_are_written_apart() {
    let api = Api::start().await;
    let created = api.post(JOBS, &job("j", &json!({}))).await.json();
    let path = format!("{JOBS}/j");
    let mut changed = created.clone();
    changed["spec"]["suspend"] = true.into();
    changed["status"]["active"] = 3.into();
    let updated = api.put(&path, &changed).await.json();
    assert_eq!((&updated["metadata"]["generation"], &updated["status"]), (&json!(2), &json!({})));
    let status = json!({
        "metadata": {"annotations": {"a": "b"}},
        "spec": {"suspend": false},
        "status": {"active": 3},
    });
    let updated = api.patch(&format!("{path}/status"), "merge", &status.to_string()).await.json();
    assert_eq!(updated["status"]["active"], 3);
    assert_eq!(updated["spec"]["suspend"], true);
    assert_eq!(updated["metadata"]["annotations"]["a"], "b");
    assert_eq!(updated["metadata"]["generation"], 2);
    // A PUT makes nothing, and needs no version.
    let absent = api.put(&format!("{JOBS}/other"), &job("other", &json!({}))).await;
    assert_eq!(absent.code, 404, "{}", absent.text);
    let mut unconditional = updated.clone();
    unconditional["metadata"].as_object_mut().unwrap().remove("resourceVersion");
    unconditional["spec"]["parallelism"] = 4.into();
    assert_eq!(api.put(&path, &unconditional).await.json()["spec"]["parallelism"], 4);
}

// rule: job 1
#[tokio::test]
async fn jobs_are_selected_by_how_many_pods_succeeded() {
    let api = Api::start().await;
    for (name, succeeded) in [("a", 0), ("b", 2)] {
        api.post(JOBS, &job(name, &json!({}))).await;
        let status = json!({"status": {"succeeded": succeeded}}).to_string();
        api.patch(&format!("{JOBS}/{name}/status"), "merge", &status).await;
    }
    let selected = |selector: &'static str| {
        let path = format!("{JOBS}?fieldSelector={selector}");
        let api = &api;
        async move { api.get(&path).await }
    };
    assert_eq!(selected("status.successful%3D2").await.names(), ["b"]);
    assert_eq!(selected("status.successful%3D0").await.names(), ["a"]);
    assert_eq!(selected("metadata.name%3Da,metadata.namespace%3Ddefault").await.names(), ["a"]);
    let refused = selected("spec.suspend%3Dtrue").await;
    assert_eq!(refused.code, 400);
    assert!(
        refused.message().contains("field label \"spec.suspend\" not supported for Job"),
        "{}",
        refused.text
    );
}

// rule: job 1, job 6.1.16
#[tokio::test]
async fn pods_stay_when_a_client_does_not_say_what_becomes_of_them() {
    let api = Api::start().await;
    for (name, options, stays) in
        [("kept", "", true), ("asked", r#"{"propagationPolicy":"Background"}"#, false)]
    {
        let job = api.post(JOBS, &job(name, &json!({}))).await.json();
        let mut owned = pod(name);
        owned["metadata"]["ownerReferences"] = json!([{
            "apiVersion": "batch/v1", "kind": "Job", "name": name,
            "uid": job["metadata"]["uid"], "controller": true, "blockOwnerDeletion": true,
        }]);
        assert_eq!(api.post(PODS, &owned).await.code, 201);
        let deleted = api.delete(&format!("{JOBS}/{name}"), options).await;
        assert_eq!(deleted.code, 200, "{}", deleted.text);
        let path = format!("{PODS}/{name}");
        loop {
            let pod = api.get(&path).await;
            let is_alone = pod.code == 200 && pod.json()["metadata"]["ownerReferences"].is_null();
            let is_gone =
                pod.code == 404 || pod.json()["metadata"]["deletionTimestamp"].is_string();
            if is_alone || is_gone {
                assert_eq!(is_alone, stays, "{name}: {}", pod.text);
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    }
}

// rule: job 1.2.1
#[tokio::test]
async fn a_bad_success_policy_is_refused_with_path_and_words() {
    let api = Api::start().await;
    let policy = json!({"rules": [{}, {"succeededIndexes": "3-1", "succeededCount": 1}]});
    let refused = api.post(JOBS, &job("j", &indexed(&policy))).await;
    assert_eq!(refused.code, 422);
    let status = refused.json();
    assert_eq!(status["reason"], "Invalid");
    let causes = json!([
        {
            "reason": "FieldValueRequired",
            "message": "Required value: at least one of succeededCount or succeededIndexes must be \
                        specified",
            "field": "spec.successPolicy.rules[0]",
        },
        {
            "reason": "FieldValueInvalid",
            "message": "Invalid value: \"3-1\": error parsing succeededIndexes: non-increasing \
                        order, previous: 3, current: 1",
            "field": "spec.successPolicy.rules[1].succeededIndexes",
        },
        {
            "reason": "FieldValueInvalid",
            "message": "Invalid value: 1: must be less than or equal to 0 (the number of indexes \
                        in the specified succeededIndexes field)",
            "field": "spec.successPolicy.rules[1].succeededCount",
        },
    ]);
    assert_eq!(status["details"]["causes"], causes);
    assert!(refused.message().starts_with("Job.batch \"j\" is invalid: ["), "{}", refused.text);
    // What upstream's API server cannot survive is an ordinary mistake here.
    let mut body = job("j", &indexed(&json!({"rules": [{"succeededIndexes": "0"}]})));
    body["spec"].as_object_mut().unwrap().remove("completions");
    let refused = api.post(JOBS, &body).await;
    assert_eq!(
        (refused.code, refused.message().as_str()),
        (
            422,
            "Job.batch \"j\" is invalid: spec.completions: Required value: when completion mode is \
             Indexed"
        )
    );
    // A policy that is there stays as it is.
    let policy = json!({"rules": [{"succeededIndexes": "0"}]});
    assert_eq!(api.post(JOBS, &job("j", &indexed(&policy))).await.code, 201);
    let patch = r#"{"spec":{"successPolicy":{"rules":[{"succeededCount":2}]}}}"#;
    let refused = api.patch(&format!("{JOBS}/j"), "merge", patch).await;
    assert_eq!(
        (refused.code, refused.message().as_str()),
        (
            422,
            "Job.batch \"j\" is invalid: spec.successPolicy: Invalid value: \
             {\"Rules\":[{\"SucceededIndexes\":null,\"SucceededCount\":2}]}: field is immutable"
        )
    );
}

// rule: job 1.2.1
#[tokio::test]
async fn without_the_feature_new_jobs_have_no_success_policy() {
    let mut options = Options::default();
    options.configuration.feature_gates.job_success_policy = false;
    let api = Api::with_options(options).await;
    let policy = json!({"rules": [{"succeededCount": 1}]});
    let created = api.post(JOBS, &job("j", &indexed(&policy))).await;
    assert_eq!((created.code, created.json()["spec"].get("successPolicy")), (201, None));
}

// rule: job 1.2.1, job 4.3
#[tokio::test]
async fn a_rule_of_nothing_is_accepted_with_a_warning() {
    let api = Api::start().await;
    let policy = json!({"rules": [{"succeededCount": 0}, {"succeededIndexes": ""}]});
    let created = api.post(JOBS, &job("j", &indexed(&policy))).await;
    assert_eq!(created.code, 201, "{}", created.text);
    let warnings: Vec<&str> =
        created.headers.get_all("warning").iter().map(|v| v.to_str().unwrap()).collect();
    assert_eq!(
        warnings,
        [
            "299 - \"spec.successPolicy.rules[0].succeededCount: 0 is met as soon as one index has \
             succeeded\"",
            "299 - \"spec.successPolicy.rules[1].succeededIndexes: an empty list names no index, so \
             that this rule is never met\"",
        ]
    );
    assert_eq!(created.json()["spec"]["successPolicy"], policy);
}
