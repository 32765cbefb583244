//! Acknowledged writes per second.

use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client,
    api::{ObjectMeta, Patch, PatchParams, PostParams},
};
use lockstep_local::embedded::{Embedded, Options};

use super::process::Up;
use crate::report::{Budget, Report, percentile};

const WRITERS: usize = 64;
const LASTS: Duration = Duration::from_secs(5);

/// Measures in-process and through HTTP, durable and in memory.
pub(crate) async fn measure(report: &mut Report) {
    let folder = tempfile::tempdir().unwrap();
    let durable = Options { data_dir: Some(folder.path().join("data")), ..Options::default() };
    let embedded = Embedded::start(durable).await.unwrap();
    let (rate, p99) = run(&embedded.client(), 1..=WRITERS).await;
    embedded.shutdown().await;
    report.add("durable writes, 64 writers, in-process", rate, "/s", Budget::AtLeast(5000.0));
    report.add("… 99 % within", p99, "ms", Budget::None);

    let embedded = Embedded::start(Options::default()).await.unwrap();
    let (rate, _) = run(&embedded.client(), 1..=WRITERS).await;
    embedded.shutdown().await;
    report.add("in-memory writes, 64 writers, in-process", rate, "/s", Budget::AtLeast(15_000.0));

    let up = Up::start(&[]);
    let client = up.client().await;
    let (rate, p99) = run(&client, 1..=WRITERS).await;
    report.add("durable writes, 64 writers, HTTP and TLS", rate, "/s", Budget::AtLeast(3000.0));
    report.add("… 99 % within", p99, "ms", Budget::None);
    let (rate, _) = run(&client, 1..=1).await;
    report.add("durable writes, one writer, HTTP and TLS", rate, "/s", Budget::None);
    drop(up);

    let up = Up::start(&["--in-memory"]);
    let (rate, _) = run(&up.client().await, 1..=WRITERS).await;
    report.add("in-memory writes, 64 writers, HTTP and TLS", rate, "/s", Budget::None);
}

/// The rate, and the milliseconds within which 99 of 100 writes were acknowledged.
async fn run(client: &Client, writers: std::ops::RangeInclusive<usize>) -> (f64, f64) {
    let started = Instant::now();
    let tasks: Vec<_> =
        writers.map(|nth| tokio::spawn(write(client.clone(), nth, started))).collect();
    let mut latencies = Vec::new();
    for task in tasks {
        latencies.extend(task.await.unwrap());
    }
    let rate = f64::from(u32::try_from(latencies.len()).unwrap()) / started.elapsed().as_secs_f64();
    (rate, percentile(&mut latencies, 99))
}

/// Creates ten objects, then overwrites them in turn until the time is up.
async fn write(client: Client, nth: usize, started: Instant) -> Vec<f64> {
    let api: Api<ConfigMap> = Api::namespaced(client, "default");
    let mut latencies = Vec::new();
    let mut count = 0_usize;
    let run = uuid::Uuid::new_v4().simple().to_string();
    while started.elapsed() < LASTS {
        let name = format!("w{nth}-{}-{}", count % 10, &run[..6]);
        let begun = Instant::now();
        if count < 10 {
            api.create(&PostParams::default(), &config(&name, count)).await.unwrap();
        } else {
            let data = config(&name, count).data;
            let patch = serde_json::json!({"data": data});
            api.patch(&name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
        }
        latencies.push(begun.elapsed().as_secs_f64() * 1000.0);
        count += 1;
    }
    latencies
}

/// An object of about 2 KB.
pub(crate) fn config(name: &str, count: usize) -> ConfigMap {
    let data = [("n".to_owned(), count.to_string()), ("padding".to_owned(), "x".repeat(1700))];
    ConfigMap {
        metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
        data: Some(data.into()),
        ..ConfigMap::default()
    }
}
