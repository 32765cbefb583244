//! Replicas that are written through `scale`, the name of lists, objects inside of objects, and who
//! owns what the server itself writes.

use serde_json::{Value, json};

use super::support::Api;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const FLEETS: &str = "/apis/example.net/v1/namespaces/default/fleets";
const APPLY: &str = "application/apply-patch+yaml";

/// A cluster that knows fleets, whose lists are called flotillas.
async fn start() -> Api {
    let api = Api::start().await;
    let pod = json!({"type": "object", "x-kubernetes-embedded-resource": true,
                     "x-kubernetes-preserve-unknown-fields": true});
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "size": {"type": "integer"}, "color": {"type": "string"}, "pod": pod}}}});
    let made = api
        .post(
            DEFINITIONS,
            &json!({
                "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                "metadata": {"name": "fleets.example.net"},
                "spec": {
                    "group": "example.net", "scope": "Namespaced",
                    "names": {"plural": "fleets", "kind": "Fleet", "listKind": "Flotilla"},
                    "versions": [{
                        "name": "v1", "served": true, "storage": true,
                        "subresources": {"scale": {"specReplicasPath": ".spec.size",
                                                   "statusReplicasPath": ".status.size"}},
                        "schema": {"openAPIV3Schema": schema},
                    }],
                },
            }),
        )
        .await;
    assert_eq!(made.code, 201, "{}", made.text);
    api
}

fn fleet(name: &str, spec: &Value) -> Value {
    let metadata = json!({"name": name});
    json!({"apiVersion": "example.net/v1", "kind": "Fleet", "metadata": metadata, "spec": spec})
}

fn scale(replicas: u32) -> String {
    json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "a"},
           "spec": {"replicas": replicas}})
    .to_string()
}

#[tokio::test]
async fn lists_have_the_kind_that_the_definition_says() {
    let api = start().await;
    assert_eq!(api.get(FLEETS).await.json()["kind"], "Flotilla");
    let index = api.get("/openapi/v3").await.json();
    let url = index["paths"]["apis/example.net/v1"]["serverRelativeURL"].as_str().unwrap();
    let schemas = &api.get(url).await.json()["components"]["schemas"];
    assert!(schemas["net.example.v1.Flotilla"].is_object());
}

#[tokio::test]
async fn what_leaves_no_room_for_owners_is_scaled_without_them() {
    /// What an object may take as it is stored.
    const SIZE_MAX: usize = 3 << 19;
    let api = start().await;
    let names = (0..15_000).map(|at| format!("a-name-as-long-as-what-is-said-of-its-owners-{at}"));
    let many: Value =
        names.map(|name| (name, "x".into())).collect::<serde_json::Map<_, _>>().into();
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "notes": many});
    let make = async |name: &str, padding: usize| {
        let spec = json!({"size": 1, "color": "x".repeat(padding), "pod": pod});
        let made = api.post(FLEETS, &fleet(name, &spec)).await;
        assert_eq!(made.code, 201, "{}", made.message());
        assert!(made.json()["metadata"].get("managedFields").is_none(), "no room for owners");
        made.text.len()
    };
    let padding = SIZE_MAX - 60 - make("b", 0).await;
    assert_eq!(make("a", padding).await, SIZE_MAX - 60);
    let path = format!("{FLEETS}/a/scale");
    let json = [("content-type", "application/json")];
    let scaled = api.with("PUT", &path, &json, &scale(2)).await;
    assert_eq!(scaled.code, 200, "{}", scaled.message());
    let object = api.get(&format!("{FLEETS}/a")).await.json();
    assert_eq!(object["spec"]["size"], 2);
    assert!(object["metadata"].get("managedFields").is_none(), "no room for owners");
}

#[tokio::test]
async fn whoever_scales_owns_the_replicas() {
    let api = start().await;
    let made = fleet("a", &json!({"size": 1, "color": "red"}));
    api.post(&format!("{FLEETS}?fieldManager=maker"), &made).await;
    let path = format!("{FLEETS}/a/scale");
    let by = |manager: &str| format!("{path}?fieldManager={manager}");
    let scaled = api.patch(&by("scaler"), "merge", r#"{"spec":{"replicas":2}}"#).await;
    assert_eq!(scaled.code, 200, "{}", scaled.text);
    let owners = async || -> Vec<Value> {
        let object = api.get(&format!("{FLEETS}/a")).await.json();
        let entries = object["metadata"]["managedFields"].as_array().unwrap().clone();
        entries.iter().map(|it| json!([it["manager"], it["subresource"], it["fieldsV1"]])).collect()
    };
    let size = json!({"f:spec": {"f:size": {}}});
    let rest = json!({"f:spec": {".": {}, "f:color": {}}});
    assert_eq!(owners().await, [json!(["scaler", "scale", size]), json!(["maker", null, rest])]);
    let refused = api.patch(&by("applier"), APPLY, &scale(3)).await;
    assert_eq!(refused.code, 409);
    let why = "Apply failed with 1 conflict: conflict with \"scaler\" with subresource \"scale\" \
               using autoscaling/v1: .spec.replicas";
    assert_eq!(refused.message(), why);
    let forced = api.patch(&format!("{}&force=true", by("applier")), APPLY, &scale(3)).await;
    assert_eq!((forced.code, &forced.json()["spec"]["replicas"]), (200, &json!(3)));
    assert_eq!(owners().await, [json!(["applier", "scale", size]), json!(["maker", null, rest])]);
}

#[tokio::test]
async fn replicas_that_nobody_has_said_can_be_set_but_not_read() {
    let api = start().await;
    api.post(FLEETS, &fleet("a", &json!({"color": "red"}))).await;
    let path = format!("{FLEETS}/a/scale");
    let missing = api.get(&path).await;
    assert_eq!(missing.code, 500);
    assert!(missing.message().ends_with("the spec replicas field \".spec.size\" does not exist"));
    let unsaid = api.patch(&path, "merge", r#"{"metadata":{"labels":{"a":"b"}}}"#).await;
    assert_eq!(unsaid.code, 400);
    assert_eq!(unsaid.message(), "the spec replicas field \".spec.size\" cannot be empty");
    let set = api.patch(&path, "merge", r#"{"spec":{"replicas":2}}"#).await;
    assert_eq!((set.code, &set.json()["spec"]["replicas"]), (200, &json!(2)));
}

#[tokio::test]
async fn metadata_of_embedded_objects_is_metadata() {
    let api = start().await;
    let pod = |metadata: &Value| {
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "any": 1});
        fleet("a", &json!({"pod": pod}))
    };
    let mistyped = api.post(FLEETS, &pod(&json!({"labels": {"a": 1}}))).await;
    assert_eq!(mistyped.code, 400, "{}", mistyped.text);
    assert!(mistyped.message().contains("spec.pod.metadata: Invalid value"), "{}", mistyped.text);
    let strict = format!("{FLEETS}?fieldValidation=Strict");
    let unknown = api.post(&strict, &pod(&json!({"name": "p", "labls": {}}))).await;
    let why = "strict decoding error: unknown field \"spec.pod.metadata.labls\"";
    assert!(unknown.message().ends_with(why), "{}", unknown.text);
    let invalid = api.post(FLEETS, &pod(&json!({"name": "a/b"}))).await;
    assert_eq!(invalid.code, 422, "{}", invalid.text);
    let made = api.post(FLEETS, &pod(&json!({"labels": {"a": "b"}, "labls": {}}))).await.json();
    assert_eq!(made["spec"]["pod"]["metadata"], json!({"labels": {"a": "b"}}));
    assert_eq!(made["spec"]["pod"]["any"], 1);
}

/// The owners of a status at a path.
async fn owner_of_status(api: &Api, path: &str) -> Option<String> {
    let object = api.get(path).await.json();
    let entries = object["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
    let of_status = |it: &&Value| it["subresource"] == "status";
    let found = entries.iter().find(of_status)?;
    assert!(found["fieldsV1"]["f:status"]["f:conditions"].is_object(), "{found}");
    Some(found["manager"].as_str().unwrap().to_owned())
}

#[tokio::test]
async fn what_the_server_says_of_objects_has_the_owners_it_has_elsewhere() {
    let api = start().await;
    let definition = format!("{DEFINITIONS}/fleets.example.net");
    assert_eq!(owner_of_status(&api, &definition).await.as_deref(), Some("kube-apiserver"));
    let space = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "going"}});
    api.post("/api/v1/namespaces", &space).await;
    let held = json!({"apiVersion": "v1", "kind": "ConfigMap",
                      "metadata": {"name": "held", "finalizers": ["example.com/hold"]}});
    assert_eq!(api.post("/api/v1/namespaces/going/configmaps", &held).await.code, 201);
    api.delete("/api/v1/namespaces/going", "").await;
    for _ in 0..1000 {
        if let Some(owner) = owner_of_status(&api, "/api/v1/namespaces/going").await {
            assert_eq!(owner, "kube-controller-manager");
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("nobody says what the namespace waits for");
}
