//! One writer, a thousand watchers.

use std::time::Instant;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api,
    api::{PostParams, WatchEvent, WatchParams},
};

use super::measure::{cluster, over_tls, resident_mib};
use futures::StreamExt;

const WATCHERS: usize = 1_000;
const EVENTS: usize = 200;

pub(crate) async fn run() {
    let embedded = cluster(None).await;
    for is_tls in [false, true] {
        let client = if is_tls { over_tls(&embedded).await } else { embedded.client() };
        let maps: Api<ConfigMap> = Api::default_namespaced(client);
        let prefix = if is_tls { "tls" } else { "local" };
        let from = maps.list(&Default::default()).await.unwrap().metadata.resource_version.unwrap();
        let before = resident_mib();
        let mut watchers = Vec::new();
        for _ in 0..WATCHERS {
            let params = WatchParams::default().timeout(60);
            let mut stream = maps.watch(&params, &from).await.unwrap().boxed();
            watchers.push(tokio::spawn(async move {
                let mut seen = 0;
                while seen < EVENTS {
                    if let WatchEvent::Added(_) = stream.next().await.unwrap().unwrap() {
                        seen += 1;
                    }
                }
            }));
        }
        let started = Instant::now();
        for count in 0..EVENTS {
            let mut map = ConfigMap::default();
            map.metadata.name = Some(format!("{prefix}-{count}"));
            maps.create(&PostParams::default(), &map).await.unwrap();
        }
        for watcher in watchers {
            watcher.await.unwrap();
        }
        let took = started.elapsed().as_secs_f64();
        println!(
            "watch, {}: {} events to {WATCHERS} watchers in {took:.2} s, {:.0} deliveries/s, \
             {} MiB more",
            if is_tls { "HTTP and TLS, one connection" } else { "in-process" },
            EVENTS,
            (EVENTS * WATCHERS) as f64 / took,
            resident_mib().saturating_sub(before)
        );
    }
    embedded.shutdown().await;
}
