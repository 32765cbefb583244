//! Malformed input, wrong methods, strangers: the right words, never a 500, a hang or a panic.

use axum::body::Body;
use http::Request;
use serde_json::json;

use super::support::{Api, CONFIG_MAPS, PODS, config_map, pod, request};

#[tokio::test]
async fn strangers_are_turned_away() {
    let api = Api::start().await;
    let stranger = |path: &str, headers: &[(&str, &str)]| {
        let mut request = Request::builder().uri(path).header("host", "127.0.0.1:1");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(Body::empty()).unwrap()
    };
    let wrong = &[("authorization", "Bearer wrong")][..];
    for path in ["/version", "/version/", "/healthz", "/livez", "/readyz"] {
        assert_eq!(api.send(stranger(path, &[])).await.code, 200, "{path}");
        assert_eq!(api.send(stranger(path, wrong)).await.code, 401, "{path}");
    }
    for path in ["/api/v1/pods", "/api", "/healthz/ping", "/metrics", "/nowhere"] {
        for headers in [&[][..], wrong] {
            let answer = api.send(stranger(path, headers)).await;
            assert_eq!((answer.code, answer.message().as_str()), (401, "Unauthorized"), "{path}");
            assert_eq!(answer.json()["kind"], "Status");
        }
    }
    let rebound = stranger("/version", &[("host", "evil.example")]);
    let mut rebound = rebound;
    rebound.headers_mut().insert("host", "evil.example".parse().unwrap());
    assert_eq!(api.send(rebound).await.code, 403);
    let page = stranger("/version", &[("origin", "http://evil.example")]);
    assert_eq!(api.send(page).await.code, 403);
}

#[tokio::test]
async fn every_answer_carries_the_usual_headers() {
    let api = Api::start().await;
    for path in ["/version", "/api/v1/pods", "/api/v1/pods?limit=x", "/nowhere"] {
        let answer = api.get(path).await;
        assert_eq!(answer.header("audit-id").len(), 36, "{path}");
        assert_eq!(answer.header("cache-control"), "no-cache, private", "{path}");
    }
}

#[tokio::test]
async fn paths_and_methods_nobody_serves() {
    let api = Api::start().await;
    let method = "the server does not allow this method on the requested resource";
    let missing = "the server could not find the requested resource";
    let cases = [
        ("GET", "/api/v1/nopes", 404, missing),
        ("GET", "/api/v1/pods/p", 404, missing),
        ("GET", "/api/v1/namespaces/default/nodes", 404, missing),
        ("GET", "/api/v1/namespaces/default/pods/p/nope", 404, missing),
        ("GET", "/api/v1/namespaces/default/pods/p/status/deeper", 404, missing),
        ("GET", "/api/v1/namespaces//pods", 404, missing),
        ("POST", "/api/v1/pods", 405, method),
        ("POST", "/api/v1/namespaces/default/pods/p", 405, method),
        ("PUT", "/api/v1/namespaces/default/pods", 405, method),
        ("PATCH", "/api/v1/namespaces/default/pods", 405, method),
        ("DELETE", "/api/v1/namespaces", 405, method),
        ("GET", "/api/v1/namespaces/default/bindings", 405, method),
        ("DELETE", "/api/v1/namespaces/default/pods/p/status", 405, method),
        ("OPTIONS", "/api/v1/pods", 405, method),
        ("BREW", "/api/v1/pods", 405, method),
        ("POST", "/version", 405, method),
        ("GET", "/api/v1/pods/%zz", 400, "the path of the request cannot be decoded"),
    ];
    for (verb, path, code, message) in cases {
        let answer = api.with(verb, path, &[], "").await;
        assert_eq!((answer.code, answer.message().as_str()), (code, message), "{verb} {path}");
    }
    for path in ["/nowhere", "/apis/none", "/apis/none/v1", "/apis/none/v1/pods"] {
        let page = api.get(path).await;
        assert_eq!((page.code, page.text.as_str()), (404, "404 page not found\n"), "{path}");
    }
}

#[tokio::test]
async fn bodies_that_make_no_sense_are_bad_requests() {
    let api = Api::start().await;
    api.config_maps(&["a"]).await;
    let deep = "[".repeat(100_000);
    let deep_object = format!("{}1{}", "{\"a\":".repeat(5_000), "}".repeat(5_000));
    let cases = [
        ("empty", String::new()),
        ("no JSON", "nonsense".to_owned()),
        ("cut off", "{\"metadata\":".to_owned()),
        ("a list", "[]".to_owned()),
        ("null", "null".to_owned()),
        ("a number", "1e999".to_owned()),
        ("deep list", deep),
        ("deep object", deep_object),
        ("another kind", pod("p").to_string()),
        ("another version", json!({"apiVersion": "v2", "kind": "ConfigMap"}).to_string()),
        ("wrong types", json!({"metadata": {"name": 5}, "data": []}).to_string()),
        ("metadata is a list", json!({"metadata": []}).to_string()),
        ("trailing", format!("{}x", config_map("a"))),
        ("NUL", "{\"metadata\":{\"name\":\"a\\u0000\"}}".to_owned()),
        ("lone surrogate", "{\"metadata\":{\"name\":\"\\ud800\"}}".to_owned()),
        ("huge number", json!({"metadata": {"name": "x", "generation": 1e300}}).to_string()),
    ];
    for (name, body) in &cases {
        for (method, path) in
            [("POST", CONFIG_MAPS.to_owned()), ("PUT", format!("{CONFIG_MAPS}/a"))]
        {
            let answer = api.with(method, &path, &[], body).await;
            assert!((400..500).contains(&answer.code), "{name}: {} {}", answer.code, answer.text);
            assert_eq!(answer.json()["kind"], "Status", "{name}");
        }
        for kind in ["json", "merge", "strategic"] {
            let answer = api.patch(&format!("{CONFIG_MAPS}/a"), kind, body).await;
            // What a strategic patch says of the kind does not count; neither null nor a list of
            // nothing has operations.
            let is_taken = matches!(
                (*name, kind),
                ("another version", "strategic") | ("null" | "a list", "json")
            );
            let codes = if is_taken { 200..300 } else { 400..500 };
            assert!(codes.contains(&answer.code), "{name} {kind}: {}", answer.text);
        }
    }
    let huge = format!("{{\"data\":{{\"k\":\"{}\"}}}}", "x".repeat(3 * 1024 * 1024));
    let answer = api.with("POST", CONFIG_MAPS, &[], &huge).await;
    assert_eq!(answer.code, 413);
    assert_eq!(answer.message(), "Request entity too large: limit is 3145728");
    let protobuf = [("content-type", "application/vnd.kubernetes.protobuf")];
    let answer = api.with("POST", CONFIG_MAPS, &protobuf, "k8s").await;
    assert_eq!(answer.code, 400, "{}", answer.text);
    assert!(answer.message().contains("expected prefix [107 56 115 0]"), "{}", answer.text);
    let cbor = [("content-type", "application/cbor")];
    assert_eq!(api.with("POST", CONFIG_MAPS, &cbor, "k8s").await.code, 415);
}

#[tokio::test]
async fn names_in_body_and_path_must_agree() {
    let api = Api::start().await;
    api.config_maps(&["a"]).await;
    let other = api.put(&format!("{CONFIG_MAPS}/a"), &config_map("b")).await;
    assert_eq!(other.code, 400);
    assert_eq!(
        other.message(),
        "the name of the object (b) does not match the name on the URL (a)"
    );
    let mut elsewhere = config_map("c");
    elsewhere["metadata"]["namespace"] = "kube-system".into();
    let answer = api.post(CONFIG_MAPS, &elsewhere).await;
    assert_eq!(answer.code, 400);
    assert_eq!(
        answer.message(),
        "the namespace of the provided object does not match the namespace sent on the request"
    );
    let nowhere = api.post("/api/v1/namespaces/none/configmaps", &config_map("c")).await;
    assert_eq!((nowhere.code, nowhere.message().as_str()), (404, "namespaces \"none\" not found"));
}

#[tokio::test]
async fn clients_in_process_are_not_limited() {
    let api = Api::start().await;
    let calls = (0..1_000).map(|_| api.send(request("GET", PODS, &[], "")));
    let codes = futures::future::join_all(calls).await;
    assert!(codes.iter().all(|answer| answer.code == 200));
}
