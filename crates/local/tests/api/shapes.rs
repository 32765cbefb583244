//! Tables, metadata, discovery, health: what is not an object as it is stored.

use serde_json::json;

use super::support::{Api, CONFIG_MAPS, PODS, config_map, pod};

const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";

#[tokio::test]
async fn tables_have_rows_for_objects_and_lists() {
    let api = Api::start().await;
    api.post(PODS, &pod("p")).await;
    let headers = [("accept", TABLE)];
    for path in [PODS.to_owned(), format!("{PODS}/p")] {
        let table = api.with("GET", &path, &headers, "").await.json();
        assert_eq!(
            (&table["kind"], &table["apiVersion"]),
            (&json!("Table"), &json!("meta.k8s.io/v1"))
        );
        assert_eq!(table["rows"].as_array().unwrap().len(), 1, "{path}");
        let columns = table["columnDefinitions"].as_array().unwrap();
        let cells = table["rows"][0]["cells"].as_array().unwrap();
        assert_eq!(columns.len(), cells.len());
        assert_eq!(cells[2], "Pending");
        assert_eq!(table["rows"][0]["object"]["metadata"]["name"], "p");
    }
    for (include, kind) in [("None", json!(null)), ("Object", json!("Pod"))] {
        let path = format!("{PODS}?includeObject={include}");
        let table = api.with("GET", &path, &headers, "").await.json();
        assert_eq!(table["rows"][0]["object"]["kind"], kind, "{include}");
    }
    let bad = api.with("GET", &format!("{PODS}?includeObject=All"), &headers, "").await;
    assert_eq!(bad.code, 400);
    let missing = api.with("GET", &format!("{PODS}/none"), &headers, "").await.json();
    assert_eq!(missing["kind"], "Status", "errors are never tables");
}

#[tokio::test]
async fn metadata_comes_alone_when_asked_for() {
    let api = Api::start().await;
    api.config_maps(&["a"]).await;
    let list = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
    let one = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
    let answer = api.with("GET", CONFIG_MAPS, &[("accept", list)], "").await.json();
    assert_eq!(answer["kind"], "PartialObjectMetadataList");
    assert_eq!(answer["items"][0]["kind"], "PartialObjectMetadata");
    assert_eq!(answer["items"][0].get("data"), None);
    let path = format!("{CONFIG_MAPS}/a");
    let answer = api.with("GET", &path, &[("accept", one)], "").await.json();
    assert_eq!((&answer["kind"], answer.get("data")), (&json!("PartialObjectMetadata"), None));
    assert_eq!(api.with("GET", CONFIG_MAPS, &[("accept", one)], "").await.code, 406);
    assert_eq!(api.with("GET", &path, &[("accept", list)], "").await.code, 406);
}

#[tokio::test]
async fn what_cannot_be_shown_is_not_done() {
    let api = Api::start().await;
    api.config_maps(&["a"]).await;
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
    let list = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";
    let one = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";
    let a = &format!("{CONFIG_MAPS}/a");
    let new = config_map("b").to_string();
    let changed = json!({"data": {"k": "changed"}}).to_string();
    let merge = "application/merge-patch+json";
    let cases = [
        ("POST", CONFIG_MAPS, list, new.as_str(), 406),
        ("POST", &format!("{CONFIG_MAPS}?includeObject=x"), table, &new, 400),
        ("PATCH", a, list, &changed, 406),
        ("DELETE", a, list, "", 406),
        ("DELETE", CONFIG_MAPS, one, "", 406),
        ("DELETE", &format!("{CONFIG_MAPS}?includeObject=x"), table, "", 400),
    ];
    for (method, path, accept, body, code) in cases {
        let content_type = if method == "PATCH" { merge } else { "application/json" };
        let headers = [("accept", accept), ("content-type", content_type)];
        let answer = api.with(method, path, &headers, body).await;
        assert_eq!(answer.code, code, "{method} {path}: {}", answer.text);
    }
    let left = api.get(CONFIG_MAPS).await;
    assert_eq!(left.names(), ["a"]);
    assert_eq!(left.json()["items"][0]["data"]["k"], "v");
}

#[tokio::test]
async fn pretty_answers_are_indented() {
    let api = Api::start().await;
    api.config_maps(&["a"]).await;
    for path in [format!("{CONFIG_MAPS}/a?pretty=true"), format!("{CONFIG_MAPS}?pretty=1")] {
        assert!(api.get(&path).await.text.contains("\n  \"metadata\": {"), "{path}");
    }
}

#[tokio::test]
async fn both_views_of_events_share_their_objects() {
    let api = Api::start().await;
    let event = json!({
        "metadata": {"name": "e"},
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "regarding": {"kind": "Pod", "namespace": "default", "name": "p"},
        "reason": "Started", "action": "Start", "type": "Normal", "note": "it began",
        "reportingController": "test", "reportingInstance": "test-1",
    });
    let new = "/apis/events.k8s.io/v1/namespaces/default/events";
    let created = api.post(new, &event).await;
    assert_eq!(created.code, 201, "{}", created.text);
    assert_eq!(created.json()["note"], "it began");
    let core = api.get("/api/v1/namespaces/default/events/e").await.json();
    assert_eq!(
        (&core["message"], &core["involvedObject"]["name"]),
        (&json!("it began"), &json!("p"))
    );
    let listed = api.get(new).await.json();
    assert_eq!(listed["items"][0]["note"], "it began");
    let selected = api.get("/api/v1/events?fieldSelector=involvedObject.name%3Dp").await.names();
    assert_eq!(selected, ["e"]);
}

#[tokio::test]
async fn discovery_speaks_both_generations() {
    let api = Api::start().await;
    let v2 = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    for path in ["/api", "/apis"] {
        let answer = api.with("GET", path, &[("accept", v2)], "").await;
        assert_eq!(answer.header("content-type"), v2);
        assert_eq!(answer.json()["kind"], "APIGroupDiscoveryList");
    }
    for (path, kind) in [
        ("/api", "APIVersions"),
        ("/apis", "APIGroupList"),
        ("/api/v1", "APIResourceList"),
        ("/api/v1/", "APIResourceList"),
        ("/apis/batch", "APIGroup"),
        ("/apis/batch/v1", "APIResourceList"),
    ] {
        assert_eq!(api.get(path).await.json()["kind"], kind, "{path}");
    }
    for path in ["/api/v2", "/apis/batch/v9"] {
        let answer = api.get(path).await;
        assert_eq!(answer.code, 404, "{path}");
        assert_eq!(answer.message(), "the server could not find the requested resource");
    }
}

#[tokio::test]
async fn openapi_documents_can_be_kept_for_a_year() {
    let api = Api::start().await;
    let index = api.get("/openapi/v3").await.json();
    let url = index["paths"]["apis/batch/v1"]["serverRelativeURL"].as_str().unwrap().to_owned();
    let document = api.get(&url).await;
    assert_eq!(document.header("cache-control"), "public, immutable");
    assert!(document.header("expires").ends_with(" GMT"), "{}", document.header("expires"));
    assert!(document.json()["components"]["schemas"].is_object());
    let tag = document.header("etag").to_owned();
    assert!(tag.starts_with('"'));
    let known = api.with("GET", &url, &[("if-none-match", &tag)], "").await;
    assert_eq!((known.code, known.text.as_str()), (304, ""));
    let unpinned = api.get("/openapi/v3/apis/batch/v1").await;
    assert_eq!((unpinned.code, unpinned.header("expires")), (200, ""));
    assert_eq!(unpinned.header("cache-control"), "no-cache, private");
    let old = api.get("/openapi/v3/apis/batch/v1?hash=OLD").await;
    assert_eq!((old.code, old.header("location")), (301, url.as_str()));
    assert_eq!(api.get("/openapi/v3/apis/none/v1").await.code, 404);
}

#[tokio::test]
async fn the_older_openapi_document_comes_in_both_forms() {
    let api = Api::start().await;
    let json = api.get("/openapi/v2").await;
    assert_eq!((json.code, json.header("content-type")), (200, "application/json"));
    assert_eq!(json.json()["swagger"], "2.0");
    let pod = &json.json()["definitions"]["io.k8s.api.core.v1.Pod"];
    assert_eq!(pod["properties"]["spec"]["$ref"], "#/definitions/io.k8s.api.core.v1.PodSpec");
    let asked = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
    let protobuf = api.with("GET", "/openapi/v2", &[("accept", asked)], "").await;
    assert_eq!(
        (protobuf.code, protobuf.header("content-type")),
        (200, "application/com.github.proto-openapi.spec.v2.v1.0+protobuf")
    );
    assert_ne!(protobuf.header("etag"), json.header("etag"));
    assert!(protobuf.text.contains("#/definitions/io.k8s.api.core.v1.PodSpec"));
}

#[tokio::test]
async fn health_version_and_metrics_answer() {
    let api = Api::start().await;
    for path in ["/healthz", "/livez", "/readyz", "/readyz/ping", "/healthz/"] {
        assert_eq!(api.get(path).await.text, "ok", "{path}");
    }
    let verbose = api.get("/readyz?verbose&exclude=ping").await.text;
    assert_eq!(verbose, "[+]ping excluded: ok\n[+]journal ok\nreadyz check passed\n");
    assert_eq!(api.get("/readyz/none").await.code, 404);
    for path in ["/version", "/version/", "/version?timeout=32s"] {
        let version = api.get(path).await.json();
        assert_eq!((&version["major"], &version["minor"]), (&json!("1"), &json!("36")));
    }
    api.get(CONFIG_MAPS).await;
    let metrics = api.get("/metrics").await.text;
    let line = "apiserver_request_total{verb=\"list\",group=\"\",resource=\"configmaps\",\
                code=\"200\"} 1";
    assert!(metrics.contains(line), "{metrics}");
    assert!(metrics.contains("process_resident_memory_bytes "));
    let head = api.with("HEAD", "/version", &[], "").await;
    assert_eq!((head.code, head.text.as_str()), (200, ""));
    assert!(api.get("/").await.json()["paths"].is_array());
}
