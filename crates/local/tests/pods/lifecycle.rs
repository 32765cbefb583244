//! The life of pods on a node of processes.

use std::time::{Duration, Instant};

use serde_json::json;

use super::support::{Cluster, condition, phase, status};

#[tokio::test]
async fn a_pod_runs_to_its_end() {
    let cluster = Cluster::start().await;
    cluster.run("good", "echo bye > /dev/termination-log", json!({})).await;
    cluster.run("bad", "exit 3", json!({})).await;
    let good = cluster.until_phase("good", "Succeeded").await;
    let ended = status(&good, "c").unwrap().state.clone().unwrap().terminated.unwrap();
    assert_eq!((ended.exit_code, ended.reason.as_deref()), (0, Some("Completed")));
    assert_eq!(ended.message.as_deref().map(str::trim), Some("bye"));
    assert_eq!(condition(&good, "Ready").1, "PodCompleted");
    assert_eq!(condition(&good, "PodScheduled").0, "True");
    let bad = cluster.until_phase("bad", "Failed").await;
    let ended = status(&bad, "c").unwrap().state.clone().unwrap().terminated.unwrap();
    assert_eq!((ended.exit_code, ended.reason.as_deref()), (3, Some("Error")));
    let events = cluster.events("good", "Started").await;
    assert!(events.contains(&"Scheduled: Successfully assigned default/good to here".to_owned()));
    assert!(events.contains(&"Created: Container created".to_owned()), "{events:?}");
}

#[tokio::test]
async fn a_failing_container_is_restarted_with_back_off() {
    let cluster = Cluster::start().await;
    cluster.run("loop", "exit 1", json!({"restartPolicy": "Always"})).await;
    let pod = cluster
        .until("loop", "in a crash loop", |pod| {
            let status = status(pod, "c");
            status.is_some_and(|it| {
                let waiting = it.state.as_ref().and_then(|state| state.waiting.as_ref());
                it.restart_count >= 2
                    && waiting.is_some_and(|it| it.reason.as_deref() == Some("CrashLoopBackOff"))
            })
        })
        .await;
    assert_eq!(phase(&pod), "Running");
    let last = status(&pod, "c").unwrap().last_state.clone().unwrap().terminated.unwrap();
    assert_eq!(last.exit_code, 1);
    cluster.events("loop", "BackOff").await;
}

#[tokio::test]
async fn init_containers_run_before_and_sidecars_beside_the_main_one() {
    let cluster = Cluster::start().await;
    let volume = json!([{"name": "v", "mountPath": "/shared"}]);
    let container = |name: &str, script: &str| {
        json!({"name": name, "image": "none", "command": [
        "sh", "-c", script], "volumeMounts": volume})
    };
    let mut side = container(
        "side",
        "trap 'echo side >> /shared/log; exit 0' TERM; while :; do sleep 0.05; done",
    );
    side["restartPolicy"] = json!("Always");
    cluster
        .create(json!({
            "metadata": {"name": "p"},
            "spec": {
                "restartPolicy": "Never",
                "volumes": [{"name": "v", "emptyDir": {}}],
                "initContainers": [container("init", "echo init >> /shared/log"), side],
                "containers": [container("c",
                    "echo main >> /shared/log; cat /shared/log > /dev/termination-log")],
            },
        }))
        .await;
    let pod = cluster.until_phase("p", "Succeeded").await;
    let ended = status(&pod, "c").unwrap().state.clone().unwrap().terminated.unwrap();
    assert_eq!(ended.message.as_deref(), Some("init\nmain\n"));
    let side = status(&pod, "side").unwrap().state.clone().unwrap().terminated.unwrap();
    assert_eq!(side.exit_code, 0, "it was asked to end after the main container had");
}

#[tokio::test]
async fn deletion_is_graceful_and_then_forceful() {
    let cluster = Cluster::start().await;
    let polite = "trap 'exit 0' TERM; while :; do sleep 0.05; done";
    let stubborn = "trap '' TERM; while :; do sleep 0.05; done";
    cluster.run("polite", polite, json!({})).await;
    cluster.run("stubborn", stubborn, json!({"terminationGracePeriodSeconds": 1})).await;
    cluster.until_phase("polite", "Running").await;
    cluster.until_phase("stubborn", "Running").await;
    // The shells need a moment to set their traps.
    tokio::time::sleep(Duration::from_millis(200)).await;
    let started = Instant::now();
    cluster.delete("polite").await;
    cluster.until_gone("polite").await;
    assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
    let started = Instant::now();
    cluster.delete("stubborn").await;
    cluster.until_gone("stubborn").await;
    assert!(started.elapsed() >= Duration::from_secs(1), "{:?}", started.elapsed());
    let events = cluster.events("stubborn", "Killing").await;
    assert!(events.contains(&"Killing: Stopping container c".to_owned()));
}

#[tokio::test]
async fn a_deleted_pod_with_a_finalizer_shows_how_it_ended() {
    let cluster = Cluster::start().await;
    cluster
        .create(json!({
            "metadata": {"name": "p", "finalizers": ["example.com/keep"]},
            "spec": {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "containers": [
                {"name": "c", "image": "none", "command": ["sleep", "100"]}]},
        }))
        .await;
    cluster.until_phase("p", "Running").await;
    cluster.delete("p").await;
    let pod = cluster.until_phase("p", "Failed").await;
    let ended = status(&pod, "c").unwrap().state.clone().unwrap().terminated.unwrap();
    assert_eq!(ended.exit_code, 143);
    assert!(pod.metadata.deletion_timestamp.is_some());
}

#[tokio::test]
async fn probes_decide_on_readiness_and_restarts() {
    let cluster = Cluster::start().await;
    let probe = |script: &str| {
        json!({"exec": {"command": ["sh", "-c", script]},
        "periodSeconds": 1, "failureThreshold": 1})
    };
    let volume = json!([{"name": "v", "mountPath": "/v"}]);
    let ready = json!({
        "volumes": [{"name": "v", "emptyDir": {}}],
        "containers": [{"volumeMounts": volume, "readinessProbe": probe("test -e /v/ready")}],
    });
    cluster.run("ready", "sleep 1; touch /v/ready; sleep 100", ready).await;
    let live = json!({
        "restartPolicy": "Always",
        "containers": [{"livenessProbe": probe("exit 7")}],
    });
    cluster.run("live", "sleep 100", live).await;
    let pod = cluster.until_phase("ready", "Running").await;
    assert_eq!(condition(&pod, "Ready").0, "False");
    assert_eq!(condition(&pod, "ContainersReady").2, "containers with unready status: [c]");
    cluster.until("ready", "ready", |pod| condition(pod, "Ready").0 == "True").await;
    cluster
        .until("live", "restarted", |pod| status(pod, "c").is_some_and(|it| it.restart_count > 0))
        .await;
    let events = cluster.events("live", "Killing").await;
    let want = "Killing: Container c failed liveness probe, will be restarted";
    assert!(events.contains(&want.to_owned()), "{events:?}");
}

#[tokio::test]
async fn what_cannot_run_says_why() {
    let cluster = Cluster::start().await;
    let image_only = json!({"name": "c", "image": "nginx"});
    cluster
        .create(json!({"metadata": {"name": "nocommand"}, "spec": {"containers": [image_only]}}))
        .await;
    cluster
        .run(
            "noconfig",
            "true",
            json!({"containers": [
        {"envFrom": [{"configMapRef": {"name": "missing"}}]}]}),
        )
        .await;
    cluster.run("nofile", "", json!({"containers": [{"command": ["/no/such/file"]}]})).await;
    let waiting = |pod: &k8s_openapi::api::core::v1::Pod| {
        let state = status(pod, "c").and_then(|it| it.state.clone());
        state.and_then(|it| it.waiting).unwrap_or_default()
    };
    for (name, words) in [("nocommand", "command"), ("noconfig", "configmap \"missing\" not found")]
    {
        let pod = cluster
            .until(name, "refused", |pod| {
                waiting(pod).reason.as_deref() == Some("CreateContainerConfigError")
            })
            .await;
        let message = waiting(&pod).message.unwrap_or_default();
        assert!(message.contains(words), "{name}: {message}");
    }
    let pod = cluster.until_phase("nofile", "Failed").await;
    let ended = status(&pod, "c").unwrap().state.clone().unwrap().terminated.unwrap();
    assert_eq!(ended.reason.as_deref(), Some("StartError"));
}

#[tokio::test]
async fn the_active_deadline_fails_the_pod() {
    let cluster = Cluster::start().await;
    cluster.run("late", "sleep 100", json!({"activeDeadlineSeconds": 1})).await;
    let pod = cluster.until_phase("late", "Failed").await;
    assert_eq!(pod.status.unwrap().reason.as_deref(), Some("DeadlineExceeded"));
}

#[tokio::test]
async fn a_finished_container_gives_its_devices_back() {
    let cluster = Cluster::start().await;
    let gpu = json!({"limits": {"nvidia.com/gpu": "1"}});
    let part = |name: &str| {
        let command = json!(["sh", "-c", "test \"$CUDA_VISIBLE_DEVICES\" = 0"]);
        json!({"name": name, "image": "none", "command": command, "resources": gpu})
    };
    for name in ["one", "two"] {
        let spec = json!({
            "initContainers": [part("i")],
            "containers": [part("c")],
            "restartPolicy": "Never",
        });
        cluster.create(json!({"metadata": {"name": name}, "spec": spec})).await;
    }
    for name in ["one", "two"] {
        cluster.until_phase(name, "Succeeded").await;
    }
}
