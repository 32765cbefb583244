//! What becomes of pods when the whole cluster stops and starts again.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::PostParams;
use lockstep_local::embedded::{Embedded, NodeOptions, Options};
use lockstep_local::node::runtime::RuntimeOptions;
use serde_json::json;

async fn start(data_dir: &Path) -> Embedded {
    let shim = Some(PathBuf::from(env!("CARGO_BIN_EXE_lockstep-shim")));
    let runtime = RuntimeOptions { shim, die_with_parent: true, ..RuntimeOptions::from_env() };
    let node = NodeOptions { runtime, ..NodeOptions::default() };
    let options =
        Options { data_dir: Some(data_dir.to_owned()), node: Some(node), ..Options::default() };
    Embedded::start(options).await.unwrap()
}

async fn until(pods: &Api<Pod>, name: &str, is: impl Fn(&Pod) -> bool) -> Pod {
    let limit = Instant::now() + Duration::from_secs(20);
    loop {
        let pod = pods.get(name).await.unwrap();
        if is(&pod) {
            return pod;
        }
        assert!(Instant::now() < limit, "{name}: {:?}", pod.status);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

fn restarts(pod: &Pod) -> Option<i32> {
    let status = pod.status.as_ref()?.container_statuses.as_ref()?.first()?;
    status.state.as_ref()?.running.as_ref().map(|_| status.restart_count)
}

/// Runs `life` in a runtime of its own: what it leaves running ends with it, as with a process.
fn live<T>(life: impl Future<Output = T>) -> T {
    tokio::runtime::Runtime::new().unwrap().block_on(life)
}

#[test]
fn stopping_the_cluster_is_no_success_of_its_pods() {
    let dir = tempfile::tempdir().unwrap();
    live(async {
        let embedded = start(dir.path()).await;
        let pods: Api<Pod> = Api::namespaced(embedded.client(), "default");
        for policy in ["Never", "OnFailure", "Always"] {
            let script = "trap 'exit 0' TERM; while :; do sleep 0.05; done";
            let pod: Pod = serde_json::from_value(json!({
                "metadata": {"name": policy.to_lowercase()},
                "spec": {
                    "containers": [
                        {"name": "c", "image": "none", "command": ["sh", "-c", script]},
                    ],
                    "restartPolicy": policy,
                },
            }))
            .unwrap();
            pods.create(&PostParams::default(), &pod).await.unwrap();
        }
        for name in ["never", "onfailure", "always"] {
            until(&pods, name, |pod| restarts(pod) == Some(0)).await;
        }
        // Until the shells have set their traps.
        tokio::time::sleep(Duration::from_millis(200)).await;
        embedded.shutdown().await;
    });
    live(async {
        let embedded = start(dir.path()).await;
        let pods: Api<Pod> = Api::namespaced(embedded.client(), "default");
        for name in ["onfailure", "always"] {
            until(&pods, name, |pod| restarts(pod) == Some(1)).await;
        }
        let status = pods.get("never").await.unwrap().status.unwrap();
        assert_eq!(status.phase.as_deref(), Some("Failed"));
        assert_eq!(status.reason.as_deref(), Some("Terminated"));
        embedded.shutdown().await;
    });
}
