//! JobSets as clients write and read them. Each is managed by somebody else, so that no controller
//! of ours answers.

use serde_json::{Value, json};

use super::support::{Api, CONFIG_MAPS};

const JOBSETS: &str = "/apis/jobset.x-k8s.io/v1alpha2/namespaces/default/jobsets";
const NOTHING: (&Value, &Value) = (&Value::Null, &Value::Null);

fn jobset(name: &str, spec: &Value) -> Value {
    let pod = json!({"spec": {"containers": [{"name": "c", "image": "i"}]}});
    let mut jobset = json!({
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": name},
        "spec": {
            "managedBy": "example.com/nobody",
            "replicatedJobs": [
                {"name": "workers", "replicas": 2, "template": {"spec": {"template": pod}}},
            ],
        },
        "status": {"restarts": 7},
    });
    for (field, value) in spec.as_object().unwrap() {
        jobset["spec"][field] = value.clone();
    }
    jobset
}

// rule: jobset 1.1, jobset 1.9
#[tokio::test]
async fn spec_and_status_are_written_apart() {
    let api = Api::start().await;
    let created = api.post(JOBSETS, &jobset("js", &json!({}))).await;
    assert_eq!(created.code, 201, "{}", created.text);
    let created = created.json();
    assert_eq!((&created["metadata"]["generation"], &created["status"]), (&json!(1), &Value::Null));
    assert_eq!(created["spec"]["successPolicy"], json!({"operator": "All"}));
    assert_eq!(created["spec"]["replicatedJobs"][0]["groupName"], "default");
    let path = format!("{JOBSETS}/js");
    let mut changed = created.clone();
    changed["spec"]["suspend"] = true.into();
    changed["status"] = json!({"restarts": 3});
    let updated = api.put(&path, &changed).await.json();
    assert_eq!((&updated["metadata"]["generation"], &updated["status"]), (&json!(2), &Value::Null));
    let status = json!({"spec": {"suspend": false}, "status": {"restarts": 1}}).to_string();
    let updated = api.patch(&format!("{path}/status"), "merge", &status).await.json();
    assert_eq!(updated["status"], json!({"restarts": 1}));
    assert_eq!(updated["spec"]["suspend"], true);
    let scale = api.get(&format!("{path}/scale")).await;
    assert_eq!(scale.code, 404);
    // Only built-in kinds say how their lists are merged.
    let strategic = api.patch(&path, "strategic", "{}").await;
    assert_eq!(strategic.code, 415, "{}", strategic.text);
    assert!(strategic.message().contains("application/merge-patch+json"), "{}", strategic.text);
}

// rule: jobset 1.1
#[tokio::test]
async fn tables_have_the_columns_of_the_definition() {
    let api = Api::start().await;
    api.post(JOBSETS, &jobset("js", &json!({"suspend": true}))).await;
    let accept = [("accept", "application/json;as=Table;v=v1;g=meta.k8s.io")];
    let table = api.with("GET", JOBSETS, &accept, "").await.json();
    let columns: Vec<&str> = table["columnDefinitions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|column| column["name"].as_str().unwrap())
        .collect();
    assert_eq!(columns, ["Name", "TerminalState", "Restarts", "Completed", "Suspended", "Age"]);
    let cells = table["rows"][0]["cells"].as_array().unwrap();
    assert_eq!(Value::from(&cells[..5]), json!(["js", null, null, null, "true"]));
}

// rule: jobset 1.5, jobset 1.8
#[tokio::test]
async fn what_is_refused_is_refused_with_path_and_words() {
    let api = Api::start().await;
    let policy = json!({"successPolicy": {"operator": "Any", "targetReplicatedJobs": ["x"]}});
    let refused = api.post(JOBSETS, &jobset("js", &policy)).await;
    assert_eq!(refused.code, 422, "{}", refused.text);
    assert_eq!(
        refused.message(),
        "JobSet.jobset.x-k8s.io \"js\" is invalid: <nil>: Internal error: invalid replicatedJob \
         name 'x' does not appear in .spec.ReplicatedJobs"
    );
    api.post(JOBSETS, &jobset("js", &json!({}))).await;
    // A client that applies its manifest replaces lists as a whole.
    let again = json!({"spec": jobset("js", &json!({}))["spec"]});
    let path = format!("{JOBSETS}/js");
    let applied = api.patch(&path, "merge", &again.to_string()).await;
    assert_eq!(applied.code, 200, "{}", applied.text);
    assert_eq!(applied.json()["metadata"]["generation"], 1);
    let order = json!({"spec": {"startupPolicy": {"startupPolicyOrder": "InOrder"}}});
    let refused = api.patch(&path, "merge", &order.to_string()).await;
    assert_eq!(
        refused.message(),
        "JobSet.jobset.x-k8s.io \"js\" is invalid: spec.startupPolicy: Invalid value: Value is \
         immutable"
    );
}

// rule: jobset 1.4
#[tokio::test]
async fn an_expression_that_does_not_compile_comes_back_with_a_warning() {
    let api = Api::start().await;
    let rules = json!({"failurePolicy": {"rules": [
        {"name": "a", "action": "FailJobSet", "onJobFailureMessagePatterns": ["("]}]}});
    let created = api.post(JOBSETS, &jobset("js", &rules)).await;
    assert_eq!(created.code, 201, "{}", created.text);
    let warning = created.header("warning");
    let path = "spec.failurePolicy.rules[0].onJobFailureMessagePatterns[0]";
    assert!(warning.contains(path), "{warning}");
}

// rule: jobset 1.1
#[tokio::test]
async fn clients_learn_what_the_fields_mean() {
    let api = Api::start().await;
    let document = api.get("/openapi/v3/apis/jobset.x-k8s.io/v1alpha2").await.json();
    let schemas = &document["components"]["schemas"];
    let spec = &schemas["io.x-k8s.jobset.v1alpha2.JobSetSpec"]["properties"];
    assert!(spec["failurePolicy"]["description"].is_string());
    let mark = &schemas["io.x-k8s.jobset.v1alpha2.JobSet"]["x-kubernetes-group-version-kind"];
    let kind = json!([{"group": "jobset.x-k8s.io", "kind": "JobSet", "version": "v1alpha2"}]);
    assert_eq!(*mark, kind);
    assert!(schemas["io.k8s.api.core.v1.PodSpec"].is_object());
}

#[tokio::test]
async fn what_lists_hold_says_what_it_is_as_elsewhere() {
    let api = Api::start().await;
    api.post(JOBSETS, &jobset("js", &json!({}))).await;
    api.config_maps(&["a"]).await;
    let listed = api.get(JOBSETS).await.json();
    let one = &listed["items"][0];
    let kind = (&json!("jobset.x-k8s.io/v1alpha2"), &json!("JobSet"));
    assert_eq!((&one["apiVersion"], &one["kind"]), kind);
    // Those of built-in kinds do not.
    let listed = api.get(CONFIG_MAPS).await.json();
    assert_eq!((&listed["items"][0]["apiVersion"], &listed["items"][0]["kind"]), NOTHING);
}

#[tokio::test]
async fn what_is_not_there_is_said_in_the_words_for_custom_kinds() {
    let api = Api::start().await;
    api.post(JOBSETS, &jobset("js", &json!({}))).await;
    let below = api.get(&format!("{JOBSETS}/js/scale")).await;
    let words = "jobsets.jobset.x-k8s.io \"js\" not found".to_owned();
    assert_eq!((below.code, below.message()), (404, words));
    let version = api.get("/apis/jobset.x-k8s.io/v1/namespaces/default/jobsets").await;
    assert_eq!((version.code, version.text.as_str()), (404, "404 page not found\n"));
    let built_in = api.get(&format!("{CONFIG_MAPS}/js/scale")).await;
    let words = "the server could not find the requested resource".to_owned();
    assert_eq!((built_in.code, built_in.message()), (404, words));
}

#[tokio::test]
async fn a_new_version_says_what_it_is_made_of() {
    let api = Api::start().await;
    api.post(JOBSETS, &jobset("js", &json!({}))).await;
    let path = format!("{JOBSETS}/js");
    for path in [path.clone(), format!("{path}/status")] {
        let refused = api.put(&path, &jobset("js", &json!({}))).await;
        assert_eq!(refused.code, 422, "{path}: {}", refused.text);
        assert_eq!(
            refused.message(),
            "jobsets.jobset.x-k8s.io \"js\" is invalid: metadata.resourceVersion: Invalid value: \
             0: must be specified for an update"
        );
    }
    let known = api.get(&path).await.json();
    assert_eq!(api.put(&path, &known).await.code, 200);
    let refused = api.get(&format!("{JOBSETS}?fieldSelector=spec.suspend%3Dtrue")).await;
    let words = "field label not supported: spec.suspend".to_owned();
    assert_eq!((refused.code, refused.message()), (400, words));
}
