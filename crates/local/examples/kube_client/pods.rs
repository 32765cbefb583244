//! Pods: their logs, commands in them, connections to them.

use futures::{AsyncBufReadExt, FutureExt, TryStreamExt};
use k8s_openapi::api::{batch::v1::Job, core::v1::Pod};
use kube::{
    Api, Client, ResourceExt,
    api::{AttachParams, DeleteParams, EvictParams, LogParams, PostParams},
    runtime::wait::{await_condition, conditions},
};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::report::{Outcome, Report, same};

/// A server that says what it was told.
const ECHO: &str = "
import os, socket
s = socket.create_server((os.environ['IP'], 7733))
while True:
    c = s.accept()[0]
    while True:
        b = c.recv(65536)
        if not b: break
        c.sendall(b)
    c.close()
";

/// What needs no connection of its own.
pub(crate) async fn checks(report: &mut Report, client: &Client) {
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    report.check("15 a Job completes", job(client).boxed()).await;
    report.check("47-48 logs", logs(&pods).boxed()).await;
    report.check("65 evict", evict(&pods).boxed()).await;
}

/// What needs an upgraded one.
pub(crate) async fn connections(report: &mut Report, client: &Client) {
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    report.check("65 exec", exec(&pods).boxed()).await;
    report.check("65 attach", attach(&pods).boxed()).await;
    report.check("65 port-forward", forward(&pods).boxed()).await;
}

fn pod(name: &str, script: &str, more: Value) -> Pod {
    let mut container =
        json!({"name": "main", "image": "busybox", "command": ["sh", "-c", script]});
    let more = more.as_object().cloned().unwrap_or_default();
    container.as_object_mut().expect("an object").extend(more);
    let pod = json!({
        "metadata": {"name": name},
        "spec": {
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 1,
            "containers": [container],
        },
    });
    serde_json::from_value(pod).expect("a pod")
}

/// Makes a pod, and waits until it runs. A short one may have ended before anybody looks.
async fn running(pods: &Api<Pod>, pod: &Pod) -> Outcome {
    pods.create(&PostParams::default(), pod).await?;
    let has_begun = |pod: Option<&Pod>| {
        let phase = pod.and_then(|pod| pod.status.as_ref()?.phase.as_deref());
        matches!(phase, Some("Running" | "Succeeded" | "Failed"))
    };
    await_condition(pods.clone(), &pod.name_any(), has_begun).await?;
    Ok(())
}

async fn job(client: &Client) -> Outcome {
    let jobs: Api<Job> = Api::default_namespaced(client.clone());
    let spec = pod("", "true", json!({})).spec;
    let job = json!({"metadata": {"name": "kube-job"}, "spec": {"template": {"spec": spec}}});
    jobs.create(&PostParams::default(), &serde_json::from_value(job)?).await?;
    await_condition(jobs.clone(), "kube-job", conditions::is_job_completed()).await?;
    jobs.delete("kube-job", &DeleteParams::background()).await?;
    Ok(())
}

async fn logs(pods: &Api<Pod>) -> Outcome {
    let said = pod("kube-said", "for i in 1 2 3; do echo $i; sleep 0.2; done", json!({}));
    running(pods, &said).await?;
    let follow = LogParams { follow: true, ..LogParams::default() };
    let lines = pods.log_stream("kube-said", &follow).await?.lines();
    let lines: Vec<String> = lines.try_collect().await?;
    same(lines, ["1", "2", "3"].map(ToOwned::to_owned).to_vec())?;
    let last = LogParams { tail_lines: Some(1), ..LogParams::default() };
    same(pods.logs("kube-said", &last).await?.as_str(), "3\n")
}

async fn evict(pods: &Api<Pod>) -> Outcome {
    running(pods, &pod("kube-evicted", "sleep 60", json!({}))).await?;
    let uid = pods.get("kube-evicted").await?.uid().unwrap_or_default();
    pods.evict("kube-evicted", &EvictParams::default()).await?;
    await_condition(pods.clone(), "kube-evicted", conditions::is_deleted(&uid)).await?;
    Ok(())
}

async fn exec(pods: &Api<Pod>) -> Outcome {
    running(pods, &pod("kube-shell", "sleep 120", json!({}))).await?;
    let params = AttachParams::default().stdin(true).stdout(true).stderr(true);
    let command = ["sh", "-c", "cat; echo err >&2; exit 7"];
    let mut process = pods.exec("kube-shell", command, &params).await?;
    let mut stdin = process.stdin().ok_or("no stdin")?;
    stdin.write_all(b"in and out").await?;
    stdin.shutdown().await?;
    drop(stdin);
    let (mut out, mut err) = (String::new(), String::new());
    process.stdout().ok_or("no stdout")?.read_to_string(&mut out).await?;
    process.stderr().ok_or("no stderr")?.read_to_string(&mut err).await?;
    same((out.as_str(), err.as_str()), ("in and out", "err\n"))?;
    let status = process.take_status().ok_or("no status")?.await.ok_or("no end")?;
    let causes = status.details.and_then(|details| details.causes).unwrap_or_default();
    same(causes.first().and_then(|cause| cause.message.as_deref()), Some("7"))?;
    pods.delete("kube-shell", &DeleteParams::default()).await?;
    Ok(())
}

async fn attach(pods: &Api<Pod>) -> Outcome {
    let script = "while read line; do echo got $line; done";
    running(pods, &pod("kube-talk", script, json!({"stdin": true}))).await?;
    let params = AttachParams::default().stdin(true).stderr(false);
    let mut process = pods.attach("kube-talk", &params).await?;
    process.stdin().ok_or("no stdin")?.write_all(b"you\n").await?;
    let mut said = [0; 8];
    process.stdout().ok_or("no stdout")?.read_exact(&mut said).await?;
    same(&said, b"got you\n")?;
    pods.delete("kube-talk", &DeleteParams::default()).await?;
    Ok(())
}

async fn forward(pods: &Api<Pod>) -> Outcome {
    let more = json!({
        "env": [
            {"name": "ECHO", "value": ECHO},
            {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        ],
        "readinessProbe": {"tcpSocket": {"port": 7733}, "periodSeconds": 1},
    });
    running(pods, &pod("kube-server", "exec python3 -c \"$ECHO\"", more)).await?;
    let ready = |pod: Option<&Pod>| {
        let status = pod.and_then(|pod| pod.status.as_ref());
        let mut conditions = status.iter().flat_map(|status| status.conditions.iter().flatten());
        conditions.any(|condition| condition.type_ == "Ready" && condition.status == "True")
    };
    await_condition(pods.clone(), "kube-server", ready).await?;
    let mut forwarder = pods.portforward("kube-server", &[7733]).await?;
    let mut stream = forwarder.take_stream(7733).ok_or("no stream")?;
    let sent: Vec<u8> = (0..=250_u8).cycle().take(100_000).collect();
    let mut back = vec![0; sent.len()];
    let (mut reading, mut writing) = tokio::io::split(&mut stream);
    let (wrote, read) = tokio::join!(writing.write_all(&sent), reading.read_exact(&mut back));
    wrote?;
    read?;
    same(back == sent, true)?;
    drop(stream);
    forwarder.join().await?;
    pods.delete("kube-server", &DeleteParams::default()).await?;
    Ok(())
}
