//! One large Job on fake nodes, from its creation to its end.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use k8s_openapi::api::batch::v1::Job;
use kube::api::PostParams;
use kube::{Api, Client};
use lockstep_local::embedded::{Embedded, Options};
use lockstep_local::node::fake::{FakeOptions, RUN_SECONDS};
use serde_json::json;

use crate::meter::{cpu_seconds, difference, requests, resident_bytes, until_nodes};
use crate::report::{Budget, Report};

/// Pods one fake node takes.
const PODS_PER_NODE: usize = 110;

/// Milliseconds per pod by size, for [`compare`].
static PER_POD: Mutex<BTreeMap<usize, f64>> = Mutex::new(BTreeMap::new());

/// Measures a Job of so many indexes, all at once.
pub(crate) async fn measure(report: &mut Report, size: usize) {
    let nodes = size.div_ceil(PODS_PER_NODE);
    let options = Options { fake_nodes: Some(FakeOptions::new(nodes)), ..Options::default() };
    let embedded = Embedded::start(options).await.unwrap();
    let client = embedded.client();
    until_nodes(&client, nodes).await;
    let (cpu_before, writes_before) = (cpu_seconds(std::process::id()), requests(&client).await);
    let begun = Instant::now();
    create(&client, size).await;
    until_complete(&client).await;
    let took = begun.elapsed().as_secs_f64();
    let cpu = cpu_seconds(std::process::id()) - cpu_before;
    let memory = resident_bytes(std::process::id()) / 1e6;
    let count = f64::from(u32::try_from(size).unwrap());
    let budget = if size == 10_000 { Budget::AtMost(10.0) } else { Budget::None };
    report.add(&format!("Job of {size} indexes, apply to Complete"), took, "s", budget);
    let per_pod = cpu * 1000.0 / count;
    PER_POD.lock().unwrap().insert(size, per_pod);
    report.add(&format!("Job of {size}: CPU per pod"), per_pod, "ms", Budget::None);
    report.add(&format!("Job of {size}: resident memory"), memory, "MB", Budget::None);
    for (what, writes) in difference(&writes_before, &requests(&client).await) {
        let each = writes / count;
        println!("  {what}: {writes} ({each:.2} per pod)");
        if what == "all" {
            report.add(&format!("Job of {size}: writes per pod"), each, "", Budget::None);
        }
    }
    embedded.shutdown().await;
}

/// Whether a pod costs the same in a large Job as in a small one.
pub(crate) fn compare(report: &mut Report) {
    let per_pod = PER_POD.lock().unwrap();
    if let (Some(small), Some(large)) = (per_pod.get(&1_000), per_pod.get(&50_000)) {
        let what = "CPU per pod at 50,000 pods over that at 1,000";
        report.add(what, large / small, "x", Budget::AtMost(1.25));
    }
}

/// Creates the Job `large`.
pub(crate) async fn create(client: &Client, size: usize) {
    let job = json!({
        "metadata": {"name": "large"},
        "spec": {
            "completions": size, "parallelism": size, "completionMode": "Indexed",
            "template": {
                "metadata": {"annotations": {RUN_SECONDS: "0"}},
                "spec": {"restartPolicy": "Never", "containers": [
                    {"name": "c", "image": "none", "command": ["true"]}]},
            },
        },
    });
    let job: Job = serde_json::from_value(job).unwrap();
    let api: Api<Job> = Api::namespaced(client.clone(), "default");
    api.create(&PostParams::default(), &job).await.unwrap();
}

/// Waits until the Job `large` is complete.
pub(crate) async fn until_complete(client: &Client) {
    let api: Api<Job> = Api::namespaced(client.clone(), "default");
    let limit = Instant::now() + Duration::from_secs(600);
    loop {
        let status = api.get("large").await.unwrap().status.unwrap_or_default();
        let has = |kind: &str| {
            let mut conditions = status.conditions.iter().flatten();
            conditions.any(|it| it.type_ == kind && it.status == "True")
        };
        if has("Complete") {
            return;
        }
        assert!(!has("Failed") && Instant::now() < limit, "{status:#?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
