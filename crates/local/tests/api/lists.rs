//! Lists: selectors, pages, revisions.

use lockstep_local::embedded::Options;
use lockstep_store::Limits;
use serde_json::json;

use super::support::{Api, CONFIG_MAPS, PODS, pod};

#[tokio::test]
async fn lists_are_stored_bytes_in_the_order_of_keys() {
    let api = Api::start().await;
    let empty = api.get(PODS).await.json();
    assert_eq!(empty["kind"], "PodList");
    assert_eq!(empty["items"], json!([]));
    api.config_maps(&["b", "a", "c"]).await;
    let list = api.get(CONFIG_MAPS).await;
    assert_eq!(list.names(), ["a", "b", "c"]);
    assert_eq!(list.header("content-type"), "application/json");
    let list = list.json();
    assert_eq!(list["items"][0].get("kind"), None, "the list says what its items are");
    assert!(list["metadata"]["resourceVersion"].as_str().unwrap().parse::<u64>().unwrap() > 3);
}

#[tokio::test]
async fn long_lists_come_in_chunks_and_whole() {
    let api = Api::start().await;
    let big = "x".repeat(10_000);
    for n in 0..30 {
        let body = json!({"metadata": {"name": format!("m{n:02}")}, "data": {"k": big}});
        assert_eq!(api.post(CONFIG_MAPS, &body).await.code, 201);
    }
    let list = api.get(CONFIG_MAPS).await;
    assert_eq!(list.names().len(), 30);
    assert!(list.text.len() > 300_000);
}

#[tokio::test]
async fn selectors_pick_exactly() {
    let api = Api::start().await;
    for (name, labels) in
        [("a", json!({"x": "1"})), ("b", json!({"x": "2", "z": ""})), ("c", json!({}))]
    {
        let mut body = pod(name);
        body["metadata"]["labels"] = labels;
        assert_eq!(api.post(PODS, &body).await.code, 201);
    }
    let cases = [
        ("labelSelector=x", vec!["a", "b"]),
        ("labelSelector=x%3D1", vec!["a"]),
        ("labelSelector=x!%3D1", vec!["b", "c"]),
        ("labelSelector=x+in+(1,2),!z", vec!["a"]),
        ("fieldSelector=metadata.name%3Dc", vec!["c"]),
        ("fieldSelector=status.phase%3DPending,metadata.name!%3Da", vec!["b", "c"]),
        ("fieldSelector=status.phase%3DRunning", vec![]),
        ("&labelSelector=&fieldSelector=&", vec!["a", "b", "c"]),
    ];
    for (query, want) in cases {
        assert_eq!(api.get(&format!("{PODS}?{query}")).await.names(), want, "{query}");
    }
    for bad in ["labelSelector=%3D", "labelSelector=a+in", "fieldSelector=spec.x%3D1"] {
        let answer = api.get(&format!("{PODS}?{bad}")).await;
        assert_eq!(answer.code, 400, "{bad}: {}", answer.text);
    }
    // Kinds with fields of their own list the namespace only if they have one.
    let by_namespace = "fieldSelector=metadata.namespace%3Dx";
    for (plural, code) in [("nodes", 400), ("namespaces", 400), ("configmaps", 200)] {
        let answer = api.get(&format!("/api/v1/{plural}?{by_namespace}")).await;
        assert_eq!(answer.code, code, "{plural}: {}", answer.text);
    }
    let message = api.get(&format!("{PODS}?fieldSelector=foo%3Dbar")).await.message();
    assert!(message.ends_with("field label not supported: foo"), "{message}");
}

#[tokio::test]
async fn pages_show_one_moment() {
    let api = Api::start().await;
    api.config_maps(&["a", "b", "c", "d", "e"]).await;
    let first = api.get(&format!("{CONFIG_MAPS}?limit=2")).await;
    assert_eq!(first.names(), ["a", "b"]);
    let meta = first.json()["metadata"].clone();
    assert_eq!(meta["remainingItemCount"], 3);
    api.delete(&format!("{CONFIG_MAPS}/d"), "").await;
    api.config_maps(&["bb"]).await;
    let token = meta["continue"].as_str().unwrap();
    let second = api.get(&format!("{CONFIG_MAPS}?limit=2&continue={token}")).await;
    assert_eq!(second.names(), ["c", "d"]);
    assert_eq!(second.json()["metadata"]["resourceVersion"], meta["resourceVersion"]);
    let token = second.json()["metadata"]["continue"].as_str().unwrap().to_owned();
    let third = api.get(&format!("{CONFIG_MAPS}?limit=2&continue={token}")).await;
    assert_eq!(third.names(), ["e"]);
    assert_eq!(third.json()["metadata"].get("continue"), None);
    assert_eq!(api.get(&format!("{CONFIG_MAPS}?continue=garbage")).await.code, 400);
}

#[tokio::test]
async fn a_page_of_a_moment_that_is_gone_comes_with_a_way_to_go_on() {
    let history = Limits { events_max: 2, ..Limits::default() };
    let api = Api::with_options(Options { history, ..Options::default() }).await;
    api.config_maps(&["a", "b", "c", "d"]).await;
    let first = api.get(&format!("{CONFIG_MAPS}?limit=2")).await.json();
    let token = first["metadata"]["continue"].as_str().unwrap().to_owned();
    // A few moments are kept for those who read in pages, and no more.
    for name in ["e", "f", "g", "h", "i", "j", "k", "l", "m"] {
        api.config_maps(&[name]).await;
        assert_eq!(api.get(&format!("{CONFIG_MAPS}?limit=1")).await.names(), ["a"]);
    }
    let gone = api.get(&format!("{CONFIG_MAPS}?limit=2&continue={token}")).await;
    assert_eq!(gone.code, 410, "{}", gone.text);
    let gone = gone.json();
    assert_eq!(gone["reason"], "Expired");
    let words = "The provided continue parameter is too old to display a consistent list result.";
    assert!(gone["message"].as_str().unwrap().starts_with(words), "{gone}");
    let token = gone["metadata"]["continue"].as_str().unwrap();
    let on = api.get(&format!("{CONFIG_MAPS}?limit=4&continue={token}")).await;
    assert_eq!(on.code, 200, "{}", on.text);
    assert_eq!(on.names(), ["c", "d", "e", "f"]);
    // From here on it is one moment again.
    let token = on.json()["metadata"]["continue"].as_str().unwrap().to_owned();
    api.config_maps(&["ff"]).await;
    let rest = api.get(&format!("{CONFIG_MAPS}?continue={token}")).await;
    assert_eq!(rest.names(), ["g", "h", "i", "j", "k", "l", "m"]);
}

#[tokio::test]
async fn one_object_is_waited_for_too() {
    let api = Api::start().await;
    api.config_maps(&["a"]).await;
    let path = format!("{CONFIG_MAPS}/a");
    let version = api.get(&path).await.json()["metadata"]["resourceVersion"].clone();
    let version: u64 = version.as_str().unwrap().parse().unwrap();
    for known in [0, 1, version] {
        assert_eq!(api.get(&format!("{path}?resourceVersion={known}")).await.code, 200);
    }
    let next = format!("{path}?resourceVersion={}", version + 1);
    let (waited, _) = tokio::join!(api.get(&next), api.config_maps(&["b"]));
    assert_eq!(waited.code, 200, "{}", waited.text);
    for (text, why) in [
        ("abc", "invalid syntax"),
        ("%2B1", "invalid syntax"),
        ("-1", "invalid syntax"),
        ("18446744073709551616", "value out of range"),
    ] {
        let refused = api.get(&format!("{path}?resourceVersion={text}")).await;
        assert_eq!(refused.code, 400, "{}", refused.text);
        assert!(refused.message().ends_with(why), "{text}: {}", refused.text);
    }
    tokio::time::pause();
    let started = tokio::time::Instant::now();
    for name in ["a", "none"] {
        let path = format!("{CONFIG_MAPS}/{name}?resourceVersion=999999");
        let refused = api.get(&path).await;
        assert_eq!((refused.code, refused.header("retry-after")), (504, "1"));
        let words = "Timeout: Too large resource version: 999999, current: ";
        assert!(refused.message().starts_with(words), "{}", refused.text);
        let details = &refused.json()["details"];
        assert_eq!(details["causes"][0]["reason"], "ResourceVersionTooLarge");
        assert_eq!(details["retryAfterSeconds"], 1);
    }
    assert_eq!(started.elapsed().as_secs(), 6);
}

#[tokio::test]
async fn revisions_are_waited_for_or_refused() {
    let api = Api::start().await;
    api.config_maps(&["a"]).await;
    let version = api.get(CONFIG_MAPS).await.json()["metadata"]["resourceVersion"].clone();
    let version: u64 = version.as_str().unwrap().parse().unwrap();
    api.config_maps(&["b"]).await;
    let exact = format!("{CONFIG_MAPS}?resourceVersionMatch=Exact&resourceVersion={version}");
    assert_eq!(api.get(&exact).await.names(), ["a"]);
    let at_least = format!("{CONFIG_MAPS}?resourceVersion={version}");
    assert_eq!(api.get(&at_least).await.names(), ["a", "b"]);
    assert_eq!(api.get(&format!("{CONFIG_MAPS}?resourceVersion=0")).await.names(), ["a", "b"]);
    assert_eq!(api.get(&format!("{CONFIG_MAPS}?resourceVersion=x")).await.code, 400);
    tokio::time::pause();
    let future = api.get(&format!("{CONFIG_MAPS}?resourceVersion=999999")).await;
    assert_eq!(future.code, 504);
    assert_eq!(future.header("retry-after"), "1");
    assert_eq!(future.json()["details"]["causes"][0]["reason"], "ResourceVersionTooLarge");
}
