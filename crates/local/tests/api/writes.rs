//! Create, update, patch and delete.

use lockstep_local::{embedded::Options, node::fake::FakeOptions};
use serde_json::json;

use super::support::{Api, CONFIG_MAPS, PODS, config_map, pod};

#[tokio::test]
async fn objects_live_from_post_to_delete() {
    let api = Api::start().await;
    let created = api.post(CONFIG_MAPS, &config_map("a")).await;
    assert_eq!(created.code, 201);
    let object = created.json();
    assert_eq!((&object["kind"], &object["apiVersion"]), (&json!("ConfigMap"), &json!("v1")));
    assert_eq!(object["metadata"]["namespace"], "default");
    assert!(object["metadata"]["uid"].as_str().unwrap().len() == 36);
    let path = format!("{CONFIG_MAPS}/a");
    assert_eq!(api.get(&path).await.json(), object);
    let mut changed = object.clone();
    changed["data"]["k"] = "w".into();
    let updated = api.put(&path, &changed).await;
    assert_eq!((updated.code, &updated.json()["data"]["k"]), (200, &json!("w")));
    let again = api.put(&path, &updated.json()).await.json();
    let version = &updated.json()["metadata"]["resourceVersion"];
    assert_eq!(&again["metadata"]["resourceVersion"], version, "a no-op writes nothing");
    let stale = api.put(&path, &object).await;
    assert_eq!(stale.code, 409);
    assert_eq!(
        stale.message(),
        "Operation cannot be fulfilled on configmaps \"a\": the object has been modified; please \
         apply your changes to the latest version and try again"
    );
    let deleted = api.delete(&path, r#"{"propagationPolicy":"Background"}"#).await.json();
    assert_eq!(deleted["status"], "Success");
    assert_eq!(deleted["details"]["uid"], object["metadata"]["uid"]);
    assert_eq!(deleted["details"]["kind"], "configmaps");
    let gone = api.get(&path).await;
    assert_eq!((gone.code, gone.message().as_str()), (404, "configmaps \"a\" not found"));
}

#[tokio::test]
async fn generated_names_have_a_suffix() {
    let api = Api::start().await;
    let body = json!({"metadata": {"generateName": "x-"}});
    let name = api.post(CONFIG_MAPS, &body).await.json()["metadata"]["name"].clone();
    let name = name.as_str().unwrap();
    let suffix = name.strip_prefix("x-").unwrap();
    assert_eq!(suffix.len(), 5);
    assert!(suffix.chars().all(|c| "bcdfghjklmnpqrstvwxz2456789".contains(c)), "{name}");
}

#[tokio::test]
async fn every_kind_of_patch_applies() {
    let api = Api::start().await;
    api.post(PODS, &pod("p")).await;
    let path = format!("{PODS}/p");
    let cases = [
        ("merge", r#"{"metadata":{"labels":{"m":"1"}}}"#, "m"),
        ("json", r#"[{"op":"add","path":"/metadata/labels/j","value":"1"}]"#, "j"),
        ("strategic", r#"{"metadata":{"labels":{"s":"1"}}}"#, "s"),
    ];
    for (kind, body, label) in cases {
        let patched = api.patch(&path, kind, body).await;
        assert_eq!(patched.code, 200, "{kind}: {}", patched.text);
        assert_eq!(patched.json()["metadata"]["labels"][label], "1", "{kind}");
    }
    let image = r#"{"spec":{"containers":[{"name":"c","image":"other"}]}}"#;
    let patched = api.patch(&path, "strategic", image).await.json();
    assert_eq!(patched["spec"]["containers"][0]["image"], "other");
    assert_eq!(patched["spec"]["containers"][0]["command"], json!(["true"]), "merged by name");
    // A client that names no type means the kind's own way.
    let untyped = api.with("PATCH", &path, &[], r#"{"metadata":{"labels":{"u":"1"}}}"#).await;
    assert_eq!(untyped.code, 200);
    let failed = api.patch(&path, "json", r#"[{"op":"test","path":"/kind","value":"x"}]"#).await;
    assert_eq!(failed.code, 422, "{}", failed.text);
    let refused = api.patch(&path, "application/x", "{}").await;
    assert_eq!(refused.code, 415);
    assert_eq!(refused.message(), "415: Unsupported Media Type");
    let forced = api.patch(&format!("{path}?force=true"), "merge", "{}").await;
    assert_eq!(forced.code, 422);
}

#[tokio::test]
async fn status_and_the_rest_are_written_apart() {
    let api = Api::start().await;
    api.post(PODS, &pod("p")).await;
    let path = format!("{PODS}/p");
    let main = api.patch(&path, "merge", r#"{"status":{"phase":"Running"}}"#).await.json();
    assert_eq!(main["status"]["phase"], "Pending", "status is not the main resource's");
    let both = r#"{"status":{"phase":"Running"},"metadata":{"labels":{"x":"y"}}}"#;
    let status = api.patch(&format!("{path}/status"), "merge", both).await;
    assert_eq!(status.code, 200, "{}", status.text);
    assert_eq!(status.json()["status"]["phase"], "Running");
    assert_eq!(api.get(&format!("{path}/status")).await.json()["status"]["phase"], "Running");
}

#[tokio::test]
async fn dry_runs_leave_nothing_behind() {
    let api = Api::start().await;
    let created = api.post(&format!("{CONFIG_MAPS}?dryRun=All"), &config_map("a")).await;
    assert_eq!(created.code, 201);
    assert_eq!(api.get(&format!("{CONFIG_MAPS}/a")).await.code, 404);
    api.config_maps(&["a"]).await;
    let path = format!("{CONFIG_MAPS}/a");
    let before = api.get(&path).await.json();
    let dry = api.patch(&format!("{path}?dryRun=All"), "merge", r#"{"data":{"k":"w"}}"#).await;
    assert_eq!(dry.json()["data"]["k"], "w");
    let deleted = api.delete(&format!("{path}?dryRun=All"), "").await;
    assert_eq!(deleted.code, 200);
    let in_body = api.delete(&path, r#"{"dryRun":["All"]}"#).await;
    assert_eq!(in_body.code, 200);
    assert_eq!(api.get(&path).await.json(), before);
}

#[tokio::test]
async fn unknown_fields_are_refused_warned_about_or_dropped() {
    let api = Api::start().await;
    let body = |name: &str| {
        let mut body = config_map(name);
        body["foo"] = 1.into();
        body
    };
    let strict = api.post(&format!("{CONFIG_MAPS}?fieldValidation=Strict"), &body("a")).await;
    assert_eq!(strict.code, 400);
    assert_eq!(
        strict.message(),
        "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: strict decoding error: \
         unknown field \"foo\""
    );
    let warned = api.post(CONFIG_MAPS, &body("b")).await;
    assert_eq!((warned.code, warned.header("warning")), (201, r#"299 - "unknown field \"foo\"""#));
    assert_eq!(warned.json().get("foo"), None);
    let ignored = api.post(&format!("{CONFIG_MAPS}?fieldValidation=Ignore"), &body("c")).await;
    assert_eq!((ignored.code, ignored.header("warning")), (201, ""));
}

#[tokio::test]
async fn yaml_is_read_and_written() {
    let api = Api::start().await;
    let yaml = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: why\ndata:\n  k: \"1\"\n";
    let headers = [("content-type", "application/yaml"), ("accept", "application/yaml")];
    let created = api.with("POST", CONFIG_MAPS, &headers, yaml).await;
    assert_eq!((created.code, created.header("content-type")), (201, "application/yaml"));
    assert!(created.text.contains("name: why"), "{}", created.text);
    let broken = api.with("POST", CONFIG_MAPS, &headers[..1], "a: [").await;
    assert_eq!(broken.code, 400, "{}", broken.text);
    let error = api.with("GET", &format!("{CONFIG_MAPS}/none"), &headers[1..], "").await;
    assert!(error.text.contains("reason: NotFound"), "{}", error.text);
}

#[tokio::test]
async fn deletes_take_options_and_honour_preconditions() {
    let api = Api::start().await;
    api.config_maps(&["a", "b", "c"]).await;
    let path = format!("{CONFIG_MAPS}/a");
    let refused = api.delete(&path, r#"{"preconditions":{"uid":"other"}}"#).await;
    assert_eq!(refused.code, 409, "{}", refused.text);
    assert_eq!(api.delete(&path, r#"{"propagationPolicy":"Sideways"}"#).await.code, 422);
    assert_eq!(api.delete(&path, "[]").await.code, 400);
    assert_eq!(api.delete(&format!("{path}?gracePeriodSeconds=0"), "").await.code, 200);
    let finalized = json!({"metadata": {"name": "f", "finalizers": ["x.y/z"]}});
    api.post(CONFIG_MAPS, &finalized).await;
    let path = format!("{CONFIG_MAPS}/f");
    let begun = api.delete(&path, "").await.json();
    assert_eq!(begun["kind"], "ConfigMap");
    assert!(begun["metadata"]["deletionTimestamp"].is_string());
    api.patch(&path, "merge", r#"{"metadata":{"finalizers":null}}"#).await;
    assert_eq!(api.get(&path).await.code, 404);
}

#[tokio::test]
async fn collections_are_deleted_by_selector() {
    let api = Api::start().await;
    for name in ["a", "b", "c"] {
        let mut body = config_map(name);
        body["metadata"]["labels"] = json!({"keep": if name == "b" { "yes" } else { "no" }});
        api.post(CONFIG_MAPS, &body).await;
    }
    let deleted = api.delete(&format!("{CONFIG_MAPS}?labelSelector=keep%3Dno"), "").await;
    assert_eq!(deleted.code, 200, "{}", deleted.text);
    assert_eq!(deleted.json()["kind"], "ConfigMapList");
    assert_eq!(deleted.names(), ["a", "c"]);
    assert_eq!(api.get(CONFIG_MAPS).await.names(), ["b"]);
    let everywhere = api.delete("/api/v1/configmaps", "").await;
    assert_eq!(everywhere.code, 405);
}

#[tokio::test]
async fn finalizers_of_built_in_kinds_are_qualified() {
    let api = Api::start().await;
    let mut body = config_map("a");
    body["metadata"]["finalizers"] = json!(["example.com/x", "hold"]);
    let refused = api.post(CONFIG_MAPS, &body).await;
    let fault = "metadata.finalizers[1]: Invalid value: \"hold\": name is neither a standard \
                 finalizer name nor is it fully qualified";
    assert_eq!(
        (refused.code, refused.message()),
        (422, format!("ConfigMap \"a\" is invalid: {fault}"))
    );
    api.config_maps(&["a"]).await;
    let patch = r#"{"metadata":{"finalizers":["example.com/x","hold"]}}"#;
    let refused = api.patch(&format!("{CONFIG_MAPS}/a"), "merge", patch).await;
    assert_eq!(refused.message(), format!("ConfigMap \"a\" is invalid: {fault}"));
}

#[tokio::test]
async fn no_two_services_have_a_port_of_the_nodes() {
    let api = Api::start().await;
    let path = "/api/v1/namespaces/default/services";
    let service = |name: &str, port: &serde_json::Value| {
        let metadata = json!({"name": name});
        json!({"metadata": metadata, "spec": {"type": "NodePort", "ports": [port]}})
    };
    let first = api.post(path, &service("a", &json!({"port": 80}))).await.json();
    let given = first["spec"]["ports"][0]["nodePort"].as_i64().unwrap();
    assert!((30_086..=32_767).contains(&given), "{given}");
    let same = json!({"port": 80, "nodePort": given});
    let refused = api.post(path, &service("b", &same)).await;
    assert_eq!(
        (refused.code, refused.message()),
        (
            422,
            format!(
                "Service \"b\" is invalid: spec.ports[0].nodePort: Invalid value: {given}: \
                 provided port is already allocated"
            )
        )
    );
    // A service that is written again keeps its own.
    let again = api.put(&format!("{path}/a"), &service("a", &json!({"port": 81}))).await.json();
    assert_eq!(again["spec"]["ports"][0]["nodePort"], given);
    assert_eq!(api.delete(&format!("{path}/a"), "").await.code, 200);
    assert_eq!(api.post(path, &service("b", &same)).await.code, 201);
}

/// A slice that was left behind lists nobody, and would be believed for ever.
#[tokio::test]
async fn slices_left_behind_go_when_their_service_is_seen() {
    let fake_nodes = Some(FakeOptions::new(1));
    let api = Api::with_options(Options { fake_nodes, ..Options::default() }).await;
    let slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
    let slice = |name: &str, manager: &str| {
        let labels = json!({
            "kubernetes.io/service-name": "web",
            "endpointslice.kubernetes.io/managed-by": manager,
        });
        let metadata = json!({"name": name, "labels": labels});
        json!({"metadata": metadata, "addressType": "IPv4", "endpoints": [], "ports": []})
    };
    for (name, manager) in [
        ("web-7", "endpointslice-controller.k8s.io"),
        ("web-odd", "endpointslice-controller.k8s.io"),
        ("web-8", "somebody.example.com"),
    ] {
        let created = api.post(slices, &slice(name, manager)).await;
        assert_eq!(created.code, 201, "{}", created.text);
    }
    let service = json!({"metadata": {"name": "web"},
        "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}});
    assert_eq!(api.post("/api/v1/namespaces/default/services", &service).await.code, 201);
    while api.get("/api/v1/namespaces/default/endpoints/web").await.code != 200 {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    let left = api.get(slices).await.names();
    assert!(!left.contains(&"web-7".to_owned()) && !left.contains(&"web-odd".to_owned()));
    assert!(left.contains(&"web-8".to_owned()), "what others manage is theirs: {left:?}");
}
