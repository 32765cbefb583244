//! Acknowledged writes of 2 KB objects by 64 writers.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, Client, api::PostParams};
use lockstep_api::strategy::Json;
use lockstep_local::{cluster::WriteOptions, embedded::Embedded};

use super::measure::{cluster, over_tls, percentile};

const WRITERS: usize = 64;
const SECONDS: u64 = 5;

pub(crate) async fn run() {
    for is_durable in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let embedded = cluster(is_durable.then(|| folder.path())).await;
        let kind = if is_durable { "durable" } else { "in memory" };
        store(&embedded, kind).await;
        let client = embedded.client();
        clients(vec![client; WRITERS], &format!("{kind}, client in-process")).await;
        let mut tls = Vec::new();
        for _ in 0..WRITERS {
            tls.push(over_tls(&embedded).await);
        }
        clients(tls, &format!("{kind}, HTTP and TLS, a connection each")).await;
        let shared = over_tls(&embedded).await;
        clients(vec![shared; WRITERS], &format!("{kind}, HTTP and TLS, one connection")).await;
        embedded.shutdown().await;
    }
}

/// Straight into the cluster, without HTTP.
async fn store(embedded: &Embedded, kind: &str) {
    let cluster = embedded.cluster();
    let resource = cluster.registry().get("", "v1", "configmaps").unwrap();
    let writers = (0..WRITERS).map(|writer| {
        let (cluster, resource) = (cluster.clone(), resource.clone());
        tokio::spawn(async move {
            let mut times = Vec::new();
            let deadline = Instant::now() + Duration::from_secs(SECONDS);
            for count in 0.. {
                let started = Instant::now();
                if started >= deadline {
                    break;
                }
                let object = serde_json::to_value(object(&format!("s{writer}-{count}"))).unwrap();
                let object: Json = serde_json::from_value(object).unwrap();
                let options = WriteOptions::default();
                cluster.create(&resource, "default", object, &options).await.unwrap();
                times.push(started.elapsed());
            }
            times
        })
    });
    report(writers.collect(), &format!("{kind}, cluster in-process")).await;
}

async fn clients(clients: Vec<Client>, kind: &str) {
    let writers = clients.into_iter().enumerate().map(|(writer, client)| {
        let prefix = format!("{}{writer}", kind.replace([' ', ','], "-").to_lowercase());
        tokio::spawn(async move {
            let maps: Api<ConfigMap> = Api::default_namespaced(client);
            let mut times = Vec::new();
            let deadline = Instant::now() + Duration::from_secs(SECONDS);
            for count in 0.. {
                let started = Instant::now();
                if started >= deadline {
                    break;
                }
                let map = object(&format!("{prefix}-{count}"));
                maps.create(&PostParams::default(), &map).await.unwrap();
                times.push(started.elapsed());
            }
            times
        })
    });
    report(writers.collect(), kind).await;
}

async fn report(writers: Vec<tokio::task::JoinHandle<Vec<Duration>>>, kind: &str) {
    let mut times = Vec::new();
    for writer in writers {
        times.extend(writer.await.unwrap());
    }
    times.sort();
    println!(
        "write, {kind}: {}/s, p50 {:.2} ms, p99 {:.2} ms",
        times.len() as u64 / SECONDS,
        percentile(&times, 0.5).as_secs_f64() * 1e3,
        percentile(&times, 0.99).as_secs_f64() * 1e3
    );
}

fn object(name: &str) -> ConfigMap {
    let mut map = ConfigMap::default();
    map.metadata.name = Some(name.to_owned());
    map.data = Some(BTreeMap::from([("k".to_owned(), "x".repeat(1_800))]));
    map
}
