//! One change, a thousand watchers.

use std::time::{Duration, Instant};

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client,
    api::{ListParams, PostParams, WatchEvent, WatchParams},
};
use lockstep_local::embedded::{Embedded, Options};
use tokio::sync::mpsc;

use super::process::Up;
use super::writes::config;
use crate::report::{Budget, Report, median};

const WATCHERS: usize = 1000;
const CHANGES: usize = 100;

/// Measures in-process and through HTTP.
pub(crate) async fn measure(report: &mut Report) {
    let embedded = Embedded::start(Options::default()).await.unwrap();
    fan_out(report, "in-process", embedded.client()).await;
    embedded.shutdown().await;
    let up = Up::start(&["--in-memory"]);
    fan_out(report, "HTTP and TLS", up.client().await).await;
}

async fn fan_out(report: &mut Report, how: &str, client: Client) {
    let api: Api<ConfigMap> = Api::namespaced(client, "default");
    let list = api.list(&ListParams::default()).await.unwrap();
    let version = list.metadata.resource_version.unwrap();
    let (seen, mut all_seen) = mpsc::unbounded_channel::<()>();
    let (ready, mut all_ready) = mpsc::unbounded_channel::<()>();
    let watchers: Vec<_> = (0..WATCHERS)
        .map(|_| {
            let (api, version, seen, ready) =
                (api.clone(), version.clone(), seen.clone(), ready.clone());
            tokio::spawn(async move {
                let events = api.watch(&WatchParams::default(), &version).await.unwrap();
                ready.send(()).unwrap();
                let mut events = events.boxed();
                while let Some(event) = events.try_next().await.unwrap() {
                    if matches!(event, WatchEvent::Added(_)) && seen.send(()).is_err() {
                        break;
                    }
                }
            })
        })
        .collect();
    for _ in 0..WATCHERS {
        all_ready.recv().await.unwrap();
    }
    let mut latencies = Vec::new();
    for nth in 0..20 {
        let begun = Instant::now();
        api.create(&PostParams::default(), &config(&format!("one-{nth}"), nth)).await.unwrap();
        for _ in 0..WATCHERS {
            all_seen.recv().await.unwrap();
        }
        latencies.push(begun.elapsed().as_secs_f64() * 1000.0);
    }
    let what = format!("one change to the last of 1,000 watchers, {how}");
    report.add(&what, median(latencies), "ms", Budget::None);
    let begun = Instant::now();
    for nth in 0..CHANGES {
        api.create(&PostParams::default(), &config(&format!("many-{nth}"), nth)).await.unwrap();
    }
    for _ in 0..WATCHERS * CHANGES {
        let next = tokio::time::timeout(Duration::from_secs(60), all_seen.recv());
        next.await.unwrap().unwrap();
    }
    let delivered = f64::from(u32::try_from(WATCHERS * CHANGES).unwrap());
    let what = format!("events delivered to 1,000 watchers, {how}");
    report.add(&what, delivered / begun.elapsed().as_secs_f64(), "/s", Budget::None);
    watchers.iter().for_each(tokio::task::JoinHandle::abort);
}
