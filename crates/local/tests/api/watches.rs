//! Watches: from now, from a revision, with bookmarks, with an end.

use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    api::DeleteParams,
    runtime::{WatchStreamExt, watcher},
};
use lockstep_local::embedded::Options;
use lockstep_store::Limits;
use serde_json::json;

use super::support::{Api, CONFIG_MAPS, PODS, config_map};

async fn revision(api: &Api) -> String {
    let list = api.get(CONFIG_MAPS).await.json();
    list["metadata"]["resourceVersion"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn watches_begin_with_what_is_there() {
    let api = Api::start().await;
    api.config_maps(&["a", "b"]).await;
    let mut events = api.watch(&format!("{CONFIG_MAPS}?watch=1"), &[]).await;
    assert_eq!(events.take(2).await, ["ADDED a", "ADDED b"]);
    api.patch(&format!("{CONFIG_MAPS}/a"), "merge", r#"{"data":{"k":"w"}}"#).await;
    api.delete(&format!("{CONFIG_MAPS}/b"), "").await;
    api.config_maps(&["c"]).await;
    assert_eq!(events.take(3).await, ["MODIFIED a", "DELETED b", "ADDED c"]);
}

#[tokio::test]
async fn watches_go_on_from_a_revision_without_a_gap() {
    let api = Api::start().await;
    api.config_maps(&["a"]).await;
    let from = revision(&api).await;
    api.config_maps(&["b"]).await;
    api.delete(&format!("{CONFIG_MAPS}/a"), "").await;
    let path = format!("{CONFIG_MAPS}?watch=true&resourceVersion={from}");
    let mut events = api.watch(&path, &[]).await;
    assert_eq!(events.next().await.unwrap()["object"]["metadata"]["name"], "b");
    let deleted = events.next().await.unwrap();
    assert_eq!(deleted["type"], "DELETED");
    let at: u64 =
        deleted["object"]["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap();
    assert!(at > from.parse::<u64>().unwrap() + 1, "the revision is the deletion's");
}

#[tokio::test]
async fn objects_enter_and_leave_a_selection() {
    let api = Api::start().await;
    let mut events = api.watch(&format!("{CONFIG_MAPS}?watch=1&labelSelector=on%3Dyes"), &[]).await;
    api.config_maps(&["a"]).await;
    let path = format!("{CONFIG_MAPS}/a");
    for labels in [r#"{"on":"yes"}"#, r#"{"more":"1"}"#, r#"{"on":"no"}"#, r#"{"on":"yes"}"#] {
        api.patch(&path, "merge", &format!(r#"{{"metadata":{{"labels":{labels}}}}}"#)).await;
    }
    assert_eq!(events.take(4).await, ["ADDED a", "MODIFIED a", "DELETED a", "ADDED a"]);
}

#[tokio::test]
async fn streaming_lists_mark_the_end_of_what_was_there() {
    let api = Api::start().await;
    api.config_maps(&["a"]).await;
    let path = format!(
        "{CONFIG_MAPS}?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan\
         &allowWatchBookmarks=true"
    );
    let mut events = api.watch(&path, &[]).await;
    assert_eq!(events.take(1).await, ["ADDED a"]);
    let mark = events.next().await.unwrap();
    assert_eq!(mark["type"], "BOOKMARK");
    assert_eq!(mark["object"]["kind"], "ConfigMap");
    assert_eq!(mark["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
    assert_eq!(mark["object"]["metadata"]["resourceVersion"], revision(&api).await.as_str());
    api.config_maps(&["b"]).await;
    assert_eq!(events.take(1).await, ["ADDED b"]);
    let without = api.get(&format!("{CONFIG_MAPS}?watch=1&sendInitialEvents=true")).await;
    assert_eq!(without.code, 422);
}

#[tokio::test]
async fn watches_end_at_their_time_with_a_bookmark() {
    let api = Api::start().await;
    tokio::time::pause();
    let path = format!("{CONFIG_MAPS}?watch=1&timeoutSeconds=90&allowWatchBookmarks=true");
    let started = tokio::time::Instant::now();
    let mut events = api.watch(&path, &[]).await;
    assert_eq!(events.take(1).await, ["BOOKMARK -"]);
    assert_eq!(started.elapsed().as_secs(), 60);
    assert_eq!(events.take(1).await, ["BOOKMARK -"]);
    assert_eq!(events.next().await, None);
    assert_eq!(started.elapsed().as_secs(), 90);
    let mut silent = api.watch(&format!("{CONFIG_MAPS}?watch=1&timeoutSeconds=2"), &[]).await;
    assert_eq!(silent.next().await, None);
    let mut endless = api.watch(&format!("{CONFIG_MAPS}?watch=1"), &[]).await;
    let within = tokio::time::timeout(Duration::from_secs(1799), endless.next()).await;
    assert!(within.is_err(), "without a time it lasts at least half an hour");
    let within = tokio::time::timeout(Duration::from_secs(1802), endless.next()).await;
    assert_eq!(within, Ok(None), "and at most an hour");
}

#[tokio::test]
async fn history_that_is_gone_is_said_in_the_stream() {
    let history = Limits { events_max: 3, ..Limits::default() };
    let api = Api::with_options(Options { history, ..Options::default() }).await;
    api.config_maps(&["a", "b", "c", "d", "e"]).await;
    let mut events = api.watch(&format!("{CONFIG_MAPS}?watch=1&resourceVersion=1"), &[]).await;
    let event = events.next().await.unwrap();
    assert_eq!(event["type"], "ERROR");
    assert_eq!(
        (&event["object"]["code"], &event["object"]["reason"]),
        (&json!(410), &json!("Expired"))
    );
    assert!(
        event["object"]["message"].as_str().unwrap().starts_with("too old resource version: 1")
    );
    assert_eq!(events.next().await, None);
}

#[tokio::test]
async fn a_watcher_that_does_not_read_is_told_so_and_holds_nobody_up() {
    let history = Limits { events_max: 8, ..Limits::default() };
    let api = Api::with_options(Options { history, ..Options::default() }).await;
    api.config_maps(&["first"]).await;
    let path = format!("{CONFIG_MAPS}?watch=1");
    let (mut slow, mut quick) = (api.watch(&path, &[]).await, api.watch(&path, &[]).await);
    assert_eq!(slow.take(1).await, ["ADDED first"]);
    assert_eq!(quick.take(1).await, ["ADDED first"]);
    for number in 0..40 {
        let name = format!("m{number:02}");
        api.config_maps(&[&name]).await;
        assert_eq!(quick.take(1).await, [format!("ADDED {name}")]);
    }
    let mut seen = Vec::new();
    let end = loop {
        let event = slow.next().await.expect("the end is said");
        if event["type"] == "ERROR" {
            break event["object"].clone();
        }
        seen.push(event["object"]["metadata"]["name"].as_str().unwrap().to_owned());
    };
    let wanted: Vec<String> = (0..seen.len()).map(|number| format!("m{number:02}")).collect();
    assert_eq!(seen, wanted, "up to there nothing is left out");
    assert_eq!((&end["code"], &end["reason"]), (&json!(410), &json!("Expired")));
    assert_eq!(slow.next().await, None);
    api.config_maps(&["last"]).await;
    assert_eq!(quick.take(1).await, ["ADDED last"]);
}

#[tokio::test]
async fn the_old_way_to_watch_still_works() {
    let api = Api::start().await;
    api.config_maps(&["a", "b"]).await;
    let mut one = api.watch("/api/v1/watch/namespaces/default/configmaps/b", &[]).await;
    assert_eq!(one.take(1).await, ["ADDED b"]);
    let mut all = api.watch("/api/v1/watch/configmaps", &[]).await;
    assert_eq!(all.take(2).await, ["ADDED a", "ADDED b"]);
}

#[tokio::test]
async fn table_watches_name_their_columns_once() {
    let api = Api::start().await;
    api.config_maps(&["a", "b"]).await;
    let accept = "application/json;as=Table;v=v1;g=meta.k8s.io";
    let mut events = api.watch(&format!("{CONFIG_MAPS}?watch=1"), &[("accept", accept)]).await;
    let first = events.next().await.unwrap()["object"].clone();
    assert_eq!(first["kind"], "Table");
    assert_eq!(first["columnDefinitions"][0]["name"], "Name");
    assert_eq!(first["rows"][0]["cells"][0], "a");
    assert_eq!(first["rows"][0]["object"]["kind"], "PartialObjectMetadata");
    assert_eq!(first["rows"][0]["object"]["metadata"]["name"], "a");
    let second = events.next().await.unwrap()["object"].clone();
    assert_eq!(second["columnDefinitions"], json!(null));
    let accept = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";
    let mut events = api.watch(&format!("{CONFIG_MAPS}?watch=1"), &[("accept", accept)]).await;
    let first = events.next().await.unwrap()["object"].clone();
    assert_eq!(first["kind"], "PartialObjectMetadata");
    assert_eq!(first.get("data"), None);
}

#[tokio::test]
async fn a_stopped_server_ends_its_watches() {
    let api = Api::start().await;
    let mut events = api.watch(&format!("{CONFIG_MAPS}?watch=1"), &[]).await;
    api.post(CONFIG_MAPS, &config_map("a")).await;
    assert_eq!(events.take(1).await, ["ADDED a"]);
    api.embedded.server().stop();
    assert_eq!(events.next().await, None);
    // A stream that ended would be opened again without a pause.
    for path in [&format!("{CONFIG_MAPS}?watch=1"), &format!("{PODS}/p/log?follow=true")] {
        let refused = api.get(path).await;
        assert_eq!(refused.code, 503, "{path}: {}", refused.text);
        assert_eq!(refused.message(), "the server is shutting down");
    }
}

#[tokio::test]
async fn a_cluster_that_was_shut_down_gives_its_directory_back() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options { data_dir: Some(folder.path().to_owned()), ..Options::default() };
    let api = Api::with_options(options.clone()).await;
    api.config_maps(&["kept"]).await;
    let client = api.embedded.client();
    let watcher = tokio::spawn(async move {
        let maps = kube::Api::<ConfigMap>::default_namespaced(client);
        watcher(maps, watcher::Config::default()).default_backoff().count().await
    });
    tokio::task::yield_now().await;
    let client = api.embedded.client();
    api.embedded.shutdown().await;
    let again = Api::with_options(options).await;
    assert_eq!(again.get(CONFIG_MAPS).await.names(), ["kept"]);
    let late = kube::Api::<ConfigMap>::default_namespaced(client);
    let refused = late.delete("kept", &DeleteParams::default()).await.unwrap_err();
    assert!(matches!(&refused, kube::Error::Api(status) if status.code == 503), "{refused}");
    watcher.abort();
}
