//! The binary as people run it: how soon it is ready, what it holds, how fast it starts pods.

use std::{
    fs,
    io::{BufRead, BufReader, Read},
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, Client, Config,
    api::{PostParams, WatchEvent, WatchParams},
    config::{KubeConfigOptions, Kubeconfig},
};

use super::objects::resident;
use crate::report::{Budget, Report, median};

const PODS: usize = 200;
const PRETENDED: usize = 2000;

/// A running `lockstep up`.
pub(crate) struct Up {
    child: Child,
    folder: tempfile::TempDir,
}

impl Up {
    /// Starts one and waits until it is ready.
    pub(crate) fn start(arguments: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut child = Command::new(binary())
            .args(["up", "--port", "0", "--log", "error", "--data-dir"])
            .arg(folder.path())
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap().contains("export KUBECONFIG=")), "it did not start");
        Self { child, folder }
    }

    /// A client through the socket.
    pub(crate) async fn client(&self) -> Client {
        let kubeconfig = Kubeconfig::read_from(self.folder.path().join("kubeconfig")).unwrap();
        let options = KubeConfigOptions::default();
        let config = Config::from_custom_kubeconfig(kubeconfig, &options).await.unwrap();
        Client::try_from(config).unwrap()
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        // Politely, so that its pods end with it.
        let stop = Command::new("kill").arg(self.child.id().to_string()).status();
        if stop.is_err() {
            let _gone = self.child.kill();
        }
        let _ended = self.child.wait();
    }
}

/// Start-up, idle memory, and the first container of a run.
pub(crate) fn starts(report: &mut Report) {
    let mut ready = Vec::new();
    let mut memory = Vec::new();
    for _ in 0..5 {
        let begun = Instant::now();
        let up = Up::start(&[]);
        ready.push(begun.elapsed().as_secs_f64() * 1000.0);
        std::thread::sleep(Duration::from_secs(2));
        memory.push(resident(&up.child.id().to_string()) / 1e6);
    }
    report.add("`up`, process start to ready", median(ready), "ms", Budget::AtMost(200.0));
    report.add("`up`, idle, resident memory", median(memory), "MB", Budget::AtMost(50.0));
    let folder = tempfile::tempdir().unwrap();
    let manifest = folder.path().join("hello.yaml");
    fs::write(&manifest, pod_text("hello", "echo hello")).unwrap();
    let first = (0..5).map(|_| {
        let begun = Instant::now();
        let mut child = Command::new(binary())
            .args(["run", "--quiet"])
            .arg(&manifest)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut byte = [0];
        child.stdout.take().unwrap().read_exact(&mut byte).unwrap();
        let first = begun.elapsed().as_secs_f64() * 1000.0;
        child.wait().unwrap();
        first
    });
    let first = median(first.collect());
    report.add(
        "`run`, process start to a container's first word",
        first,
        "ms",
        Budget::AtMost(150.0),
    );
}

/// Pods per second, real and pretended, from the first create to the last end.
pub(crate) async fn pods(report: &mut Report) {
    let up = Up::start(&["--capacity", "pods=1000,cpu=1000,memory=1Ti"]);
    let rate = pod_rate(up.client().await, PODS, true).await;
    report.add("pods run to completion, 200 real processes", rate, "/s", Budget::None);
    drop(up);
    let up = Up::start(&["--in-memory", "--fake-nodes", "100"]);
    let rate = pod_rate(up.client().await, PRETENDED, false).await;
    report.add("pods made and Running on 100 fake nodes", rate, "/s", Budget::None);
}

async fn pod_rate(client: Client, count: usize, is_real: bool) -> f64 {
    let api: Api<Pod> = Api::namespaced(client, "default");
    let begun = Instant::now();
    let writer = {
        let api = api.clone();
        tokio::spawn(async move {
            futures::stream::iter(0..count)
                .for_each_concurrent(16, |nth| {
                    let api = api.clone();
                    async move {
                        let text = pod_text(&format!("p{nth}"), "true");
                        let mut pod: serde_json::Value = serde_json::from_str(&text).unwrap();
                        if !is_real {
                            pod["spec"]["affinity"] = on_fake_nodes();
                        }
                        let pod: Pod = serde_json::from_value(pod).unwrap();
                        api.create(&PostParams::default(), &pod).await.unwrap();
                    }
                })
                .await;
        })
    };
    let mut done = std::collections::BTreeSet::new();
    let mut events = api.watch(&WatchParams::default(), "0").await.unwrap().boxed();
    while done.len() < count {
        let event = tokio::time::timeout(Duration::from_secs(120), events.try_next()).await;
        if let Some(WatchEvent::Added(pod) | WatchEvent::Modified(pod)) = event.unwrap().unwrap() {
            let phase = pod.status.and_then(|status| status.phase).unwrap_or_default();
            let is_done = if is_real {
                phase == "Succeeded"
            } else {
                phase == "Running" || phase == "Succeeded"
            };
            if is_done {
                done.insert(pod.metadata.name.unwrap_or_default());
            }
        }
    }
    writer.await.unwrap();
    f64::from(u32::try_from(count).unwrap()) / begun.elapsed().as_secs_f64()
}

/// Anywhere but on the one real node, which carries the machine's name.
fn on_fake_nodes() -> serde_json::Value {
    let real = lockstep_local::embedded::host_name();
    serde_json::json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [{"matchExpressions": [
            {"key": "kubernetes.io/hostname", "operator": "NotIn", "values": [real]}]}]}}})
}

fn pod_text(name: &str, script: &str) -> String {
    serde_json::json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {"restartPolicy": "Never", "containers": [
            {"name": "c", "image": "x", "command": ["sh", "-c", script]}]},
    })
    .to_string()
}

/// The release binary beside this one.
fn binary() -> PathBuf {
    let own = std::env::current_exe().unwrap();
    own.with_file_name("lockstep")
}
