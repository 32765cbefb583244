//! Server-side apply and the owners of fields, over HTTP.

use lockstep_local::auth::User;
use serde_json::{Value, json};

use super::support::{Answer, Api, CONFIG_MAPS, PODS, config_map, pod, request};

const APPLY: &str = "application/apply-patch+yaml";

impl Api {
    async fn apply(&self, path: &str, body: &str) -> Answer {
        self.patch(path, APPLY, body).await
    }
}

/// Manager, operation and subresource of each entry.
fn owners(object: &Value) -> Vec<[String; 3]> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let list = object["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
    let shown = ["manager", "operation", "subresource"];
    list.iter().map(|entry| shown.map(|member| text(&entry[member]))).collect()
}

fn owned(names: [&str; 3]) -> [String; 3] {
    names.map(str::to_owned)
}

#[tokio::test]
async fn configurations_are_applied_in_yaml_and_json() {
    let api = Api::start().await;
    let yaml = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  k: v\n";
    let path = format!("{CONFIG_MAPS}/a?fieldManager=me");
    let created = api.apply(&path, yaml).await;
    assert_eq!(created.code, 201, "{}", created.text);
    let entry = created.json()["metadata"]["managedFields"][0].clone();
    assert_eq!(
        (&entry["apiVersion"], &entry["fieldsType"], &entry["fieldsV1"]),
        (&json!("v1"), &json!("FieldsV1"), &json!({"f:data": {"f:k": {}}}))
    );
    assert!(entry["time"].as_str().unwrap().ends_with('Z'), "{entry}");
    let again = api.apply(&path, &config_map("a").to_string()).await;
    assert_eq!((again.code, again.json()), (200, created.json()));
    let other = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"k": "w"}}).to_string();
    let path = format!("{CONFIG_MAPS}/a?fieldManager=you");
    let refused = api.apply(&path, &other).await;
    assert_eq!(refused.code, 409);
    let status = refused.json();
    assert_eq!(status["reason"], "Conflict");
    assert_eq!(status["message"], "Apply failed with 1 conflict: conflict with \"me\": .data.k");
    assert_eq!(
        status["details"]["causes"],
        json!([{
            "reason": "FieldManagerConflict", "message": "conflict with \"me\"", "field": ".data.k",
        }])
    );
    let dry = api.apply(&format!("{path}&force=true&dryRun=All"), &other).await;
    assert_eq!((dry.code, &dry.json()["data"]["k"]), (200, &json!("w")));
    let forced = api.apply(&format!("{path}&force=true"), &other).await.json();
    assert_eq!(owners(&forced), [owned(["you", "Apply", ""])]);
}

#[tokio::test]
async fn applies_that_cannot_be_meant_are_refused() {
    let api = Api::start().await;
    let body = config_map("a").to_string();
    let twice = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata: {}\ndata: {}\n";
    let cases = [
        (
            "",
            body.as_str(),
            422,
            "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: is required \
             for apply patch",
        ),
        (
            "?fieldManager=m",
            "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"x\":1}",
            500,
            "failed to create typed patch object (/; /v1, Kind=ConfigMap): .x: field not declared \
             in schema",
        ),
        ("?fieldManager=m", "{}", 400, "invalid object type: /, Kind="),
        ("?fieldManager=m", "[", 400, "error decoding YAML: "),
        ("?fieldManager=m&fieldValidation=Strict", twice, 400, "error strict decoding YAML: "),
    ];
    for (query, body, code, message) in cases {
        let answer = api.apply(&format!("{CONFIG_MAPS}/a{query}"), body).await;
        let got = answer.message();
        assert_eq!(answer.code, code, "{query} {body}: {got}");
        assert!(got.starts_with(message), "{query} {body}: {got}");
    }
    let cbor = api.patch(&format!("{CONFIG_MAPS}/a"), "application/apply-patch+cbor", "").await;
    assert_eq!(cbor.code, 415);
    let lenient = api.apply(&format!("{CONFIG_MAPS}/a?fieldManager=m"), twice).await;
    assert_eq!(lenient.code, 201, "{}", lenient.text);
    assert!(lenient.header("warning").contains("299"), "{:?}", lenient.headers);
}

#[tokio::test]
async fn every_write_names_its_manager() {
    let api = Api::start().await;
    let json = ("content-type", "application/json");
    let agent = ("user-agent", "curl/8.1 (x)");
    let created = api.with("POST", PODS, &[json, agent], &pod("p").to_string()).await.json();
    assert_eq!(owners(&created), [owned(["curl", "Update", ""])]);
    let path = format!("{PODS}/p");
    let status = r#"{"status":{"phase":"Running"}}"#;
    let patched = api.patch(&format!("{path}/status?fieldManager=me"), "merge", status).await;
    let want = [owned(["curl", "Update", ""]), owned(["me", "Update", "status"])];
    assert_eq!(owners(&patched.json()), want);
    let labelled = api.patch(&path, "merge", r#"{"metadata":{"labels":{"a":"b"}}}"#).await.json();
    assert!(owners(&labelled).contains(&owned(["unknown", "Update", ""])), "{labelled}");
    let listed = api.get(PODS).await.json();
    assert_eq!(listed["items"][0]["metadata"], labelled["metadata"]);
    let partial = ("accept", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1");
    let partial = api.with("GET", &path, &[partial], "").await.json();
    assert_eq!(partial["metadata"], labelled["metadata"]);
}

#[tokio::test]
async fn parts_of_the_server_are_owners_and_are_not_shown_any() {
    let api = Api::start().await;
    let mut post = request(
        "POST",
        CONFIG_MAPS,
        &[("content-type", "application/json")],
        &config_map("a").to_string(),
    );
    post.extensions_mut().insert(User::component("kube-controller-manager"));
    let created = api.send(post).await;
    assert_eq!(created.code, 201);
    assert!(created.json()["metadata"]["managedFields"].is_null(), "{}", created.text);
    let path = format!("{CONFIG_MAPS}/a");
    let shown = api.get(&path).await.json();
    assert_eq!(owners(&shown), [owned(["kube-controller-manager", "Update", ""])]);
    for (path, accept) in [
        (path.as_str(), "application/json"),
        (path.as_str(), "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"),
        (CONFIG_MAPS, "application/json"),
        (CONFIG_MAPS, "application/json;as=Table;v=v1;g=meta.k8s.io"),
    ] {
        let mut get = request("GET", path, &[("accept", accept)], "");
        get.extensions_mut().insert(User::component("node:x"));
        let answer = api.send(get).await;
        assert_eq!(answer.code, 200);
        assert!(!answer.text.contains("managedFields"), "{}", answer.text);
        assert!(answer.json().is_object());
    }
    // Who reads without owners and writes what was read takes nothing from anybody.
    let mut object = created.json();
    object["data"]["k"] = "w".into();
    let mut put =
        request("PUT", &path, &[("content-type", "application/json")], &object.to_string());
    put.extensions_mut().insert(User::component("kueue"));
    assert_eq!(api.send(put).await.code, 200);
    let shown = owners(&api.get(&path).await.json());
    let want = [owned(["kube-controller-manager", "Update", ""]), owned(["kueue", "Update", ""])];
    assert_eq!(shown, want);
}
