//! One JobSet of five Jobs on fake nodes: a pod fails, and with it all are made anew.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Pod;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::core::Request;
use kube::{Api, Client, Resource};
use lockstep_api::jobset::JobSet;
use lockstep_local::embedded::{Embedded, Options};
use lockstep_local::node::fake::{EXIT_CODE, FakeOptions, RUN_SECONDS};
use serde_json::json;

use crate::meter::{cpu_seconds, difference, requests, requests_made, resident_bytes, until_nodes};
use crate::report::{Budget, Report};

/// Pods one fake node takes.
const PODS_PER_NODE: usize = 110;

/// How many Jobs the set has.
const JOBS: usize = 5;

/// Where a set runs.
struct Place<'a> {
    name: &'a str,
    client: &'a Client,
    /// The process whose CPU and memory are measured.
    pid: u32,
    /// Where that process tells of the requests it makes.
    metrics: Option<&'a str>,
}

impl Place<'_> {
    fn requests_made(&self) -> BTreeMap<String, f64> {
        self.metrics.map(requests_made).unwrap_or_default()
    }
}

/// Measures a set of so many pods on the embedded cluster.
pub(crate) async fn embedded(report: &mut Report, size: usize) {
    let nodes = size.div_ceil(PODS_PER_NODE);
    let options = Options { fake_nodes: Some(FakeOptions::new(nodes)), ..Options::default() };
    let embedded = Embedded::start(options).await.unwrap();
    let client = embedded.client();
    until_nodes(&client, nodes).await;
    let place = Place { name: "embedded", client: &client, pid: std::process::id(), metrics: None };
    measure(report, size, &place).await;
    embedded.shutdown().await;
}

/// Measures one on the cluster of the current kubeconfig, where the operator is process `pid`, with
/// everything else it needs.
pub(crate) async fn operator(report: &mut Report, size: usize, pid: u32) {
    let client = Client::try_default().await.unwrap();
    let metrics = std::env::var("LOCKSTEP_OPERATOR_METRICS").unwrap();
    let place = Place { name: "Kubernetes", client: &client, pid, metrics: Some(&metrics) };
    measure(report, size, &place).await;
}

/// From the failure of one pod until all of the next attempt run.
async fn measure(report: &mut Report, size: usize, place: &Place<'_>) {
    let &Place { name, client, pid, .. } = place;
    let begun = Instant::now();
    create(client, size / JOBS).await;
    until_ready(client, 0).await;
    let started = begun.elapsed().as_secs_f64();
    let (cpu_before, requests_before) = (cpu_seconds(pid), requests(client).await);
    let made_before = place.requests_made();
    let begun = Instant::now();
    fail_one(client).await;
    until_ready(client, 1).await;
    let took = begun.elapsed().as_secs_f64();
    let cpu = cpu_seconds(pid) - cpu_before;
    let memory = resident_bytes(pid) / 1e6;
    let count = f64::from(u32::try_from(size).unwrap());
    let is_promised = size == 15_000 && pid == std::process::id();
    let budget = if is_promised { Budget::AtMost(20.0) } else { Budget::None };
    let name = format!("{name}, JobSet of {size} pods");
    report.add(&format!("{name}: creation to all ready"), started, "s", Budget::None);
    report.add(&format!("{name}: failure to all of the next attempt ready"), took, "s", budget);
    let per_pod = cpu * 1000.0 / count;
    report.add(&format!("{name}: CPU per pod of the restart"), per_pod, "ms", Budget::None);
    report.add(&format!("{name}: resident memory"), memory, "MB", Budget::None);
    for (what, requests) in difference(&made_before, &place.requests_made()) {
        println!("  by the operator, {what}: {requests}");
    }
    for (what, requests) in difference(&requests_before, &requests(client).await) {
        let each = requests / count;
        println!("  {what}: {requests} ({each:.2} per pod)");
        if what == "all" {
            report.add(&format!("{name}: writes per pod"), each, "", Budget::None);
        }
    }
}

async fn create(client: &Client, pods: usize) {
    let set = json!({
        "apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet",
        "metadata": {"name": "large"},
        "spec": {
            "failurePolicy": {"maxRestarts": 3},
            "replicatedJobs": [{"name": "workers", "replicas": JOBS, "template": {"spec": {
                "completions": pods, "parallelism": pods, "backoffLimit": 0,
                "template": {"spec": {"restartPolicy": "Never", "containers": [
                    {"name": "c", "image": "none", "command": ["true"]}]}},
            }}}],
        },
    });
    // With its kind, which our type does not write and other servers want.
    let request = Request::new(JobSet::url_path(&(), Some("default")));
    let body = serde_json::to_vec(&set).unwrap();
    let request = request.create(&PostParams::default(), body).unwrap();
    client.request::<JobSet>(request).await.unwrap();
}

/// Lets one pod of the first Job fail.
async fn fail_one(client: &Client) {
    let api: Api<Pod> = Api::namespaced(client.clone(), "default");
    let selected = ListParams::default().labels("job-name=large-workers-0").limit(1);
    let name = api.list_metadata(&selected).await.unwrap().items.remove(0).metadata.name.unwrap();
    let annotations = json!({RUN_SECONDS: "0", EXIT_CODE: "1"});
    let patch = Patch::Merge(json!({"metadata": {"annotations": annotations}}));
    api.patch(&name, &PatchParams::default(), &patch).await.unwrap();
}

/// Waits until all Jobs of an attempt have all of their pods ready.
async fn until_ready(client: &Client, attempt: i32) {
    let api: Api<JobSet> = Api::namespaced(client.clone(), "default");
    let limit = Instant::now() + Duration::from_secs(600);
    loop {
        let status = api.get("large").await.unwrap().status.unwrap_or_default();
        let ready: i32 = status.replicated_jobs_status.iter().map(|one| one.ready).sum();
        if status.restarts == attempt && usize::try_from(ready).unwrap() == JOBS {
            return;
        }
        let is_over = !status.terminal_state.is_empty() || Instant::now() > limit;
        assert!(!is_over, "{status:#?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
