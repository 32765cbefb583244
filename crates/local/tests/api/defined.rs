//! Rules of definitions, what is told of those that are not enforced, and kinds that are built in.

use serde_json::{Value, json};

use super::support::Api;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const GAUGES: &str = "/apis/example.org/v1/namespaces/default/gauges";

fn definition(spec: &Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "gauges.example.org"},
        "spec": {
            "group": "example.org", "scope": "Namespaced",
            "names": {"plural": "gauges", "kind": "Gauge"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}}],
        },
    })
}

fn gauge(name: &str, spec: &Value) -> Value {
    let metadata = json!({"name": name});
    json!({"apiVersion": "example.org/v1", "kind": "Gauge", "metadata": metadata, "spec": spec})
}

/// Asks until an answer is as wanted.
async fn until(api: &Api, path: &str, is_so: impl Fn(u16, &Value) -> bool) -> Value {
    for _ in 0..1000 {
        let answer = api.get(path).await;
        let body = serde_json::from_str(&answer.text).unwrap_or_default();
        if is_so(answer.code, &body) {
            return body;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("{path}: {}", api.get(path).await.text);
}

#[tokio::test]
async fn rules_are_kept() {
    let api = Api::start().await;
    let spec = json!({"type": "object", "properties": {
        "low": {"type": "integer"}, "high": {"type": "integer"},
        "unit": {"type": "string", "x-kubernetes-validations": [
            {"rule": "self == oldSelf", "message": "the unit never changes"}]},
    }, "x-kubernetes-validations": [
        {"rule": "self.low <= self.high", "messageExpression": "'low is ' + string(self.low)"}]});
    let made = api.post(DEFINITIONS, &definition(&spec)).await;
    assert_eq!((made.code, made.header("warning")), (201, ""), "{}", made.text);
    let refused = api.post(GAUGES, &gauge("a", &json!({"low": 3, "high": 2}))).await;
    assert_eq!(
        (refused.code, &*refused.message()),
        (422, "Gauge.example.org \"a\" is invalid: spec: Invalid value: low is 3")
    );
    let taken = api.post(GAUGES, &gauge("a", &json!({"low": 1, "high": 2, "unit": "m"}))).await;
    assert_eq!(taken.code, 201, "{}", taken.text);
    let refused = api.patch(&format!("{GAUGES}/a"), "merge", r#"{"spec":{"unit":"s"}}"#).await;
    assert_eq!(
        (refused.code, &*refused.message()),
        (
            422,
            "Gauge.example.org \"a\" is invalid: spec.unit: Invalid value: \"s\": the unit never \
               changes"
        )
    );
}

#[tokio::test]
async fn what_is_not_enforced_is_told() {
    let api = Api::start().await;
    let spec = json!({"type": "object", "x-kubernetes-validations": [{"rule": "self.fly()"}]});
    let mut given = definition(&spec);
    given["spec"]["conversion"] = json!({"strategy": "Webhook", "webhook": {
        "conversionReviewVersions": ["v1"], "clientConfig": {"url": "https://example.org/"}}});
    let made = api.post(DEFINITIONS, &given).await;
    assert_eq!(made.code, 201, "{}", made.text);
    let warnings: Vec<&str> =
        made.headers.get_all("warning").iter().map(|it| it.to_str().unwrap()).collect();
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    assert!(warnings[0].contains("the function fly is not supported"), "{warnings:?}");
    assert!(warnings[1].contains("Webhook is not supported"), "{warnings:?}");
    let broken = json!({"type": "object", "x-kubernetes-validations": [{"rule": "self ="}]});
    let refused = api.post(&format!("{DEFINITIONS}?dryRun=All"), &definition(&broken)).await;
    assert_eq!(refused.code, 422);
}

#[tokio::test]
async fn objects_go_with_their_owners_and_with_their_namespace() {
    let api = Api::start().await;
    let spec = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    assert_eq!(api.post(DEFINITIONS, &definition(&spec)).await.code, 201);
    let owner = api.post(GAUGES, &gauge("owner", &json!({"any": {"thing": [1]}}))).await.json();
    assert_eq!(owner["spec"], json!({"any": {"thing": [1]}}));
    let mut owned = gauge("owned", &json!({}));
    owned["metadata"]["ownerReferences"] = json!([{"apiVersion": "example.org/v1", "kind": "Gauge",
        "name": "owner", "uid": owner["metadata"]["uid"]}]);
    assert_eq!(api.post(GAUGES, &owned).await.code, 201);
    assert_eq!(api.delete(&format!("{GAUGES}/owner"), "").await.code, 200);
    until(&api, &format!("{GAUGES}/owned"), |code, _| code == 404).await;
    let space = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}});
    assert_eq!(api.post("/api/v1/namespaces", &space).await.code, 201);
    let inside = "/apis/example.org/v1/namespaces/n/gauges";
    assert_eq!(api.post(inside, &gauge("a", &json!({}))).await.code, 201);
    assert_eq!(api.delete("/api/v1/namespaces/n", "").await.code, 200);
    until(&api, "/api/v1/namespaces/n", |code, _| code == 404).await;
    assert_eq!(api.get(&format!("{inside}/a")).await.code, 404);
}

#[tokio::test]
async fn built_in_kinds_are_listed_as_definitions() {
    let api = Api::start().await;
    let all = |_: u16, list: &Value| list["items"].as_array().is_some_and(|it| it.len() == 6);
    until(&api, DEFINITIONS, all).await;
    let path = format!("{DEFINITIONS}/jobsets.jobset.x-k8s.io");
    let listed = api.get(&path).await.json();
    assert_eq!(listed["status"]["conditions"][1]["status"], "True");
    let sets = "/apis/jobset.x-k8s.io/v1alpha2/namespaces/default/jobsets";
    assert_eq!(api.get(sets).await.code, 200);
    let others = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "jobsets.jobset.x-k8s.io"},
        "spec": {"group": "jobset.x-k8s.io", "scope": "Namespaced",
            "names": {"plural": "jobsets", "kind": "JobSet", "singular": "jobset",
                      "listKind": "JobSetList"},
            // An earlier one, which knows nothing of the version that is stored.
            "versions": [{"name": "v1alpha1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object"}}}]},
    });
    let apply = "application/apply-patch+yaml";
    let applied =
        api.patch(&format!("{path}?fieldManager=x&force=true"), apply, &others.to_string()).await;
    assert_eq!(applied.code, 200, "{}", applied.text);
    assert!(applied.header("warning").contains("jobsets.jobset.x-k8s.io is built in"));
    let refused = json!({"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet",
                         "metadata": {"name": "a"}, "spec": {"nonsense": 1}});
    let strict = api.post(&format!("{sets}?fieldValidation=Strict"), &refused).await;
    assert_eq!(strict.code, 400, "the built-in kind is served as before");
    assert_eq!(api.delete(&path, "").await.code, 403);
}
