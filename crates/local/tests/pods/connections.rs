//! Commands in pods, their main processes and their ports, over WebSockets as clients open them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use futures::{SinkExt, Stream, StreamExt};
use hyper_util::rt::TokioIo;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Status;
use kube::api::{AttachParams, AttachedProcess, PostParams, TerminalSize};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config, ResourceExt};
use lockstep_local::embedded::{Embedded, NodeOptions, Options};
use lockstep_local::node::runtime::RuntimeOptions;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{self, Message, protocol::Role},
};

/// Longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// A cluster with a node and a socket, and a client that uses it.
struct Cluster {
    pods: Api<Pod>,
    client: Client,
    embedded: Embedded,
}

impl Cluster {
    async fn start() -> Self {
        let shim = Some(PathBuf::from(env!("CARGO_BIN_EXE_lockstep-shim")));
        let runtime = RuntimeOptions { shim, ..RuntimeOptions::from_env() };
        let options = Options {
            listen: Some("127.0.0.1:0".parse().unwrap()),
            node: Some(NodeOptions { runtime, ..NodeOptions::default() }),
            ..Options::default()
        };
        let embedded = Embedded::start(options).await.unwrap();
        let kubeconfig = Kubeconfig::from_yaml(embedded.kubeconfig().unwrap()).unwrap();
        let options = KubeConfigOptions::default();
        let config = Config::from_custom_kubeconfig(kubeconfig, &options).await.unwrap();
        let client = Client::try_from(config).unwrap();
        Self { pods: Api::default_namespaced(client.clone()), client, embedded }
    }

    /// Runs a script as a pod of one container with some fields more, and waits until it runs.
    async fn run(&self, name: &str, script: &str, more: Value) -> Pod {
        let mut container = json!({"name": "c", "image": "i", "command": ["sh", "-c", script]});
        let fields = more.as_object().unwrap().clone();
        container.as_object_mut().unwrap().extend(fields);
        let pod = json!({
            "metadata": {"name": name},
            "spec": {
                "containers": [container],
                "restartPolicy": "Never",
                "terminationGracePeriodSeconds": 1,
            },
        });
        let pod: Pod = serde_json::from_value(pod).unwrap();
        self.pods.create(&PostParams::default(), &pod).await.unwrap();
        self.until_phase(name, "Running").await
    }

    async fn until_phase(&self, name: &str, wanted: &str) -> Pod {
        let wait = async {
            loop {
                let pod = self.pods.get(name).await.unwrap();
                let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
                if phase == Some(wanted) {
                    return pod;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(PATIENCE, wait).await.expect("the pod gets there")
    }

    async fn exec(&self, pod: &str, command: &[&str], params: &AttachParams) -> AttachedProcess {
        let opened = self.pods.exec(pod, command.to_vec(), params);
        tokio::time::timeout(PATIENCE, opened).await.unwrap().unwrap()
    }

    /// Runs a command to its end: what it wrote, what it complained of, its exit code.
    async fn outcome(&self, pod: &str, command: &[&str], input: &str) -> (String, String, i32) {
        let params = AttachParams::default().stdin(!input.is_empty());
        let mut process = self.exec(pod, command, &params).await;
        let (mut out, mut err) = (process.stdout().unwrap(), process.stderr().unwrap());
        let status = process.take_status().unwrap();
        if let Some(mut stdin) = process.stdin() {
            stdin.write_all(input.as_bytes()).await.unwrap();
            stdin.shutdown().await.unwrap();
        }
        let (mut wrote, mut complained) = (String::new(), String::new());
        let read = async {
            out.read_to_string(&mut wrote).await.unwrap();
            err.read_to_string(&mut complained).await.unwrap();
            status.await.unwrap()
        };
        let status = tokio::time::timeout(PATIENCE, read).await.expect("the command ends");
        (wrote, complained, code(&status))
    }
}

/// The exit code in a status; -1 for other failures.
fn code(status: &Status) -> i32 {
    match (status.status.as_deref(), status.reason.as_deref()) {
        (Some("Success"), _) => 0,
        (_, Some("NonZeroExitCode")) => {
            let causes = status.details.as_ref().and_then(|details| details.causes.as_ref());
            causes.unwrap()[0].message.as_ref().unwrap().parse().unwrap()
        }
        _ => -1,
    }
}

async fn read_until(from: &mut (impl AsyncReadExt + Unpin), wanted: &str) -> String {
    let mut seen = String::new();
    let read = async {
        while !seen.contains(wanted) {
            let mut chunk = [0; 1024];
            let count = from.read(&mut chunk).await.unwrap();
            assert!(count > 0, "it ended with {seen:?}");
            seen += &String::from_utf8_lossy(&chunk[..count]);
        }
    };
    let in_time = tokio::time::timeout(PATIENCE, read).await.is_ok();
    assert!(in_time, "no {wanted:?} in {seen:?}");
    seen
}

#[tokio::test]
async fn commands_run_in_the_container_and_end_as_they_end() {
    let cluster = Cluster::start().await;
    let more = json!({"env": [{"name": "GREETING", "value": "hello"}], "workingDir": "/tmp"});
    cluster.run("p", "sleep 1000", more).await;
    let said = cluster.outcome("p", &["sh", "-c", "echo $GREETING; pwd; echo no >&2"], "").await;
    assert_eq!(said, ("hello\n/tmp\n".to_owned(), "no\n".to_owned(), 0));
    let failed = cluster.outcome("p", &["sh", "-c", "exit 7"], "").await;
    assert_eq!(failed.2, 7);
    let killed = cluster.outcome("p", &["sh", "-c", "kill -9 $$"], "").await;
    assert_eq!(killed.2, 137);
    // What is read ends when the client says so.
    let counted = cluster.outcome("p", &["wc", "-c"], &"x".repeat(3 << 20)).await;
    assert_eq!((counted.0.trim(), counted.2), ("3145728", 0));
    // What is left behind holds nobody up.
    let left = cluster.outcome("p", &["sh", "-c", "setsid sleep 100 & echo done"], "").await;
    assert_eq!((left.0.as_str(), left.2), ("done\n", 0));
    let many = cluster.outcome("p", &["sh", "-c", "seq 200000"], "").await;
    assert_eq!(many.0.lines().count(), 200_000);
    let process = cluster.exec("p", &["not-a-program"], &AttachParams::default()).await;
    let mut process = process;
    let status = process.take_status().unwrap().await.unwrap();
    let message = status.message.unwrap();
    assert!(message.contains("exec: \"not-a-program\": executable file not found in $PATH"));
    cluster.embedded.shutdown().await;
}

#[tokio::test]
async fn commands_end_with_their_connection_and_with_their_container() {
    let cluster = Cluster::start().await;
    cluster.run("p", "sleep 1000", json!({})).await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pid");
    let script = format!("sleep 1000 & echo $! >{}; sleep 1000", file.display());
    let params = AttachParams::default();
    let process = cluster.exec("p", &["sh", "-c", &script], &params).await;
    let pid = until_written(&file).await;
    process.abort();
    drop(process);
    until_ended(&pid).await;
    std::fs::remove_file(&file).unwrap();
    let mut process = cluster.exec("p", &["sh", "-c", &script], &params).await;
    let pid = until_written(&file).await;
    cluster.pods.delete("p", &kube::api::DeleteParams::default()).await.unwrap();
    let status = tokio::time::timeout(PATIENCE, process.take_status().unwrap()).await;
    assert_eq!(code(&status.unwrap().unwrap()), 137);
    until_ended(&pid).await;
    cluster.embedded.shutdown().await;
}

#[tokio::test]
async fn what_a_command_leaves_running_goes_on_until_the_container_ends() {
    let cluster = Cluster::start().await;
    cluster.run("p", "sleep 1000", json!({})).await;
    let script = "sleep 1000 >/dev/null 2>&1 & echo $!";
    let (pid, _, code) = cluster.outcome("p", &["sh", "-c", script], "").await;
    assert_eq!(code, 0);
    let pid = pid.trim();
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(Path::new("/proc").join(pid).exists(), "it was left running");
    let (seen, _, code) = cluster.outcome("p", &["sh", "-c", &format!("kill -0 {pid}")], "").await;
    assert_eq!((seen.as_str(), code), ("", 0));
    cluster.pods.delete("p", &kube::api::DeleteParams::default()).await.unwrap();
    until_ended(pid).await;
    cluster.embedded.shutdown().await;
}

async fn until_written(file: &Path) -> String {
    for _ in 0..1000 {
        match std::fs::read_to_string(file) {
            Ok(text) if text.ends_with('\n') => return text.trim().to_owned(),
            _ => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    }
    panic!("nothing was written to {}", file.display());
}

async fn until_ended(pid: &str) {
    for _ in 0..1000 {
        if !Path::new("/proc").join(pid).exists() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("process {pid} goes on");
}

#[tokio::test]
async fn terminals_are_real_and_have_a_size() {
    let cluster = Cluster::start().await;
    cluster.run("p", "sleep 1000", json!({})).await;
    let params = AttachParams::interactive_tty();
    let mut process = cluster.exec("p", &["sh"], &params).await;
    let (mut stdin, mut out) = (process.stdin().unwrap(), process.stdout().unwrap());
    let mut sizes = process.terminal_size().unwrap();
    sizes.send(TerminalSize { width: 91, height: 33 }).await.unwrap();
    // The size comes on a channel of its own, and may come later than what is typed.
    let resized = b"until stty size | grep -q '33 91'; do sleep 0.05; done\n";
    stdin.write_all(resized).await.unwrap();
    stdin.write_all(b"tty; stty size; echo term=$TERM\n").await.unwrap();
    let seen = read_until(&mut out, "term=xterm").await;
    assert!(seen.contains("/dev/pts/") && seen.contains("33 91"), "{seen:?}");
    // Ctrl-C is for whoever is in the foreground, not for the shell.
    stdin.write_all(b"sh -c 'echo number $((40 + 2)); exec sleep 1000'\n").await.unwrap();
    read_until(&mut out, "number 42").await;
    stdin.write_all(b"\x03").await.unwrap();
    stdin.write_all(b"exit 5\n").await.unwrap();
    let status = tokio::time::timeout(PATIENCE, process.take_status().unwrap()).await;
    assert_eq!(code(&status.unwrap().unwrap()), 5);
    cluster.embedded.shutdown().await;
}

#[tokio::test]
async fn main_processes_are_seen_and_talked_to() {
    let cluster = Cluster::start().await;
    let script = "while read line; do echo got $line; echo bad $line >&2; done; exit 3";
    cluster.run("p", script, json!({"stdin": true, "stdinOnce": true})).await;
    let params = AttachParams::default().stdin(true);
    let mut process = cluster.pods.attach("p", &params).await.unwrap();
    let (mut out, mut err) = (process.stdout().unwrap(), process.stderr().unwrap());
    let mut stdin = process.stdin().unwrap();
    stdin.write_all(b"one\n").await.unwrap();
    assert_eq!(read_until(&mut out, "\n").await, "got one\n");
    assert_eq!(read_until(&mut err, "\n").await, "bad one\n");
    stdin.shutdown().await.unwrap();
    let status = tokio::time::timeout(PATIENCE, process.take_status().unwrap()).await;
    assert_eq!(code(&status.unwrap().unwrap()), 0);
    let pod = cluster.until_phase("p", "Failed").await;
    let statuses = pod.status.unwrap().container_statuses.unwrap();
    assert_eq!(statuses[0].state.as_ref().unwrap().terminated.as_ref().unwrap().exit_code, 3);
    // A terminal shows what no log has: the beginning of a line.
    cluster.run("t", "sh -i", json!({"stdin": true, "tty": true})).await;
    let mut process = cluster.pods.attach("t", &AttachParams::interactive_tty()).await.unwrap();
    let (mut stdin, mut out) = (process.stdin().unwrap(), process.stdout().unwrap());
    stdin.write_all(b"PS1=ready-; tty\n").await.unwrap();
    let seen = read_until(&mut out, "\nready-").await;
    assert!(seen.contains("/dev/pts/"), "{seen:?}");
    cluster.embedded.shutdown().await;
}

#[tokio::test]
async fn input_that_stays_open_is_for_all_who_come() {
    let cluster = Cluster::start().await;
    let script = "while read line; do echo got $line; done";
    cluster.run("p", script, json!({"stdin": true})).await;
    for word in ["one", "two"] {
        let params = AttachParams::default().stdin(true);
        let mut process = cluster.pods.attach("p", &params).await.unwrap();
        let (mut stdin, mut out) = (process.stdin().unwrap(), process.stdout().unwrap());
        stdin.write_all(format!("{word}\n").as_bytes()).await.unwrap();
        assert_eq!(read_until(&mut out, "\n").await, format!("got {word}\n"));
        process.abort();
    }
    cluster.embedded.shutdown().await;
}

#[tokio::test]
async fn ports_are_forwarded() {
    let cluster = Cluster::start().await;
    let script = "import socket, os\n\
        s = socket.create_server((os.environ['IP'], 7777))\n\
        while True:\n\
        \x20 c, _ = s.accept()\n\
        \x20 c.sendall(b'you said ' + c.recv(100)); c.close()";
    let env = json!([{"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}]);
    let more = json!({"command": ["python3", "-c", script], "env": env});
    cluster.run("p", "", more).await;
    let ask = async || {
        let mut forwarder = cluster.pods.portforward("p", &[7777]).await.unwrap();
        let mut stream = forwarder.take_stream(7777).unwrap();
        stream.write_all(b"hi").await.ok()?;
        let mut said = String::new();
        stream.read_to_string(&mut said).await.ok()?;
        Some(said).filter(|said| !said.is_empty())
    };
    let mut said = None;
    for _ in 0..100 {
        said = tokio::time::timeout(PATIENCE, ask()).await.unwrap();
        if said.is_some() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(said.as_deref(), Some("you said hi"));
    let mut forwarder = cluster.pods.portforward("p", &[7778]).await.unwrap();
    let error = forwarder.take_error(7778).unwrap();
    let error = tokio::time::timeout(PATIENCE, error).await.unwrap().unwrap();
    assert!(error.starts_with("error forwarding port 7778 to pod p_default, uid "), "{error}");
    assert!(error.ends_with(":7778: connect: connection refused"), "{error}");
    cluster.embedded.shutdown().await;
}

/// Who may write a status could otherwise reach whatever this machine does.
#[tokio::test]
async fn ports_are_those_of_the_pod_whatever_its_status_says() {
    let cluster = Cluster::start().await;
    cluster.run("p", "sleep 60", json!({})).await;
    let elsewhere = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = elsewhere.local_addr().unwrap().port();
    let lie = json!({"status": {"podIP": "127.0.0.1", "podIPs": [{"ip": "127.0.0.1"}]}});
    let lie = kube::api::Patch::Merge(lie);
    let told = cluster.pods.patch_status("p", &kube::api::PatchParams::default(), &lie).await;
    assert_eq!(told.unwrap().status.unwrap().pod_ip.as_deref(), Some("127.0.0.1"));
    let mut forwarder = cluster.pods.portforward("p", &[port]).await.unwrap();
    let error = forwarder.take_error(port).unwrap();
    let error = tokio::time::timeout(PATIENCE, error).await.unwrap().unwrap();
    assert!(error.ends_with("connect: connection refused"), "{error}");
    let reached = tokio::time::timeout(Duration::from_millis(100), elsewhere.accept()).await;
    assert!(reached.is_err(), "nobody comes there");
    cluster.embedded.shutdown().await;
}

#[tokio::test]
async fn what_cannot_be_opened_is_refused_in_known_words() {
    let cluster = Cluster::start().await;
    let pod = cluster.run("p", "sleep 1", json!({})).await;
    let path = format!("/api/v1/namespaces/default/pods/{}", pod.name_any());
    cluster.until_phase("p", "Succeeded").await;
    let ask = async |sub: &str| {
        let request = http::Request::get(format!("{path}/{sub}")).body(Vec::new()).unwrap();
        match cluster.client.request::<Value>(request).await.unwrap_err() {
            kube::Error::Api(status) => (status.code, status.message),
            other => panic!("{other}"),
        }
    };
    let required = (400, "Upgrade request required".to_owned());
    assert_eq!(ask("exec?command=date&stdout=1").await, required);
    assert_eq!(ask("attach?stdout=1").await, required);
    assert_eq!(ask("portforward").await, required);
    let unknown = (400, "container x is not valid for pod p".to_owned());
    assert_eq!(ask("exec?command=date&container=x&stdout=1").await, unknown);
    let mut process = cluster.exec("p", &["date"], &AttachParams::default()).await;
    let status = process.take_status().unwrap().await.unwrap();
    let message = "Internal error occurred: unable to upgrade connection: container not found \
                   (\"c\")";
    assert_eq!(status.message.as_deref(), Some(message));
    cluster.embedded.shutdown().await;
}

/// Opens a WebSocket as a client that is no kube-rs.
async fn opened(
    cluster: &Cluster,
    path: &str,
    protocol: &str,
) -> WebSocketStream<TokioIo<hyper::upgrade::Upgraded>> {
    let mut request = http::Request::get(path)
        .header("connection", "Upgrade")
        .header("upgrade", "websocket")
        .header("origin", "http://localhost")
        .header("sec-websocket-version", "13")
        .header("sec-websocket-key", "AAAAAAAAAAAAAAAAAAAAAA==");
    if !protocol.is_empty() {
        request = request.header("sec-websocket-protocol", protocol);
    }
    let request = request.body(kube::client::Body::empty()).unwrap();
    let response = cluster.client.send(request).await.unwrap();
    assert_eq!(response.status(), 101, "{path}");
    let spoken = response.headers().get("sec-websocket-protocol");
    assert_eq!(spoken.map_or("", |value| value.to_str().unwrap()), protocol);
    let upgraded = hyper::upgrade::on(response).await.unwrap();
    let socket = TokioIo::new(upgraded);
    WebSocketStream::from_raw_socket(socket, Role::Client, None).await
}

/// Opens a WebSocket and reads it to its end.
async fn heard(cluster: &Cluster, path: &str, protocol: &str) -> Vec<Message> {
    read_to_end(opened(cluster, path, protocol).await).await
}

async fn read_to_end(
    socket: impl Stream<Item = tungstenite::Result<Message>> + Unpin,
) -> Vec<Message> {
    let messages = socket.filter_map(|message| async { message.ok() });
    let is_said = |message: &Message| matches!(message, Message::Binary(_) | Message::Text(_));
    let read = messages.filter(|message| futures::future::ready(is_said(message))).collect();
    tokio::time::timeout(PATIENCE, read).await.expect("it ends")
}

/// What most clients spoke before 1.30, and some still do.
#[tokio::test]
async fn the_fourth_protocol_says_in_json_how_it_ended() {
    let cluster = Cluster::start().await;
    cluster.run("p", "exec sleep 1000", json!({})).await;
    let exec = |script: &str| {
        let command = format!("command=sh&command=-c&command={script}");
        format!(
            "/api/v1/namespaces/default/pods/p/exec?stdin=1&stdout=1&stderr=1&container=c&{command}"
        )
    };
    for (script, code) in
        [("read+it%3Becho+got+$it%3Becho+bad+$it+%3E%262%3Bexit+3", 3), ("read+it", 0)]
    {
        let mut socket = opened(&cluster, &exec(script), "v4.channel.k8s.io").await;
        // That input ends cannot be said in it: this means nothing.
        for said in [&b"\xff\x00"[..], b"\x00h", b"\x00i\n"] {
            socket.send(Message::Binary(said.into())).await.unwrap();
        }
        let messages = read_to_end(socket).await;
        let channel = |number: u8| -> Vec<u8> {
            let of = messages.iter().filter_map(|message| match message {
                Message::Binary(bytes) => bytes.strip_prefix(&[number]),
                _ => None,
            });
            of.flatten().copied().collect()
        };
        let (out, err) = if code == 0 { ("", "") } else { ("got hi\n", "bad hi\n") };
        assert_eq!((channel(1), channel(2)), (out.into(), err.into()), "{messages:?}");
        let status: Value = serde_json::from_slice(&channel(3)).unwrap();
        if code == 0 {
            assert_eq!(status["status"], "Success");
            continue;
        }
        let words = "command terminated with non-zero exit code";
        assert!(status["message"].as_str().unwrap().starts_with(words), "{status}");
        assert_eq!(status["reason"], "NonZeroExitCode");
        let cause = json!({"reason": "ExitCode", "message": code.to_string()});
        assert_eq!(status["details"]["causes"], json!([cause]));
    }
    Box::pin(cluster.embedded.shutdown()).await;
}

#[tokio::test]
async fn the_oldest_protocols_are_spoken_too() {
    let cluster = Cluster::start().await;
    cluster.run("p", "echo first; exec sleep 1000", json!({})).await;
    let pod = "/api/v1/namespaces/default/pods/p";
    let exec = |script: &str| {
        let command = format!("command=sh&command=-c&command={script}");
        format!("{pod}/exec?stdout=1&stderr=1&container=c&{command}")
    };
    let binary = |bytes: &'static [u8]| Message::Binary(bytes.into());
    for protocol in ["channel.k8s.io", ""] {
        // What ended well is said by an end without a word.
        let messages = heard(&cluster, &exec("echo+hi"), protocol).await;
        assert_eq!(messages, [binary(b"\x01"), binary(b"\x01hi\n")], "{protocol}");
    }
    let messages = heard(&cluster, &exec("exit+3"), "channel.k8s.io").await;
    let words = binary(b"\x03command terminated with non-zero exit code");
    assert_eq!(messages, [binary(b"\x01"), words]);
    let messages = heard(&cluster, &exec("echo+hi"), "base64.channel.k8s.io").await;
    assert_eq!(messages, [Message::Text("1".into()), Message::Text("1aGkK".into())]);
    let messages = heard(&cluster, &exec("echo+hi"), "v4.base64.channel.k8s.io").await;
    assert_eq!(messages.len(), 3, "{messages:?}");
    let log = format!("{pod}/log?container=c");
    for (protocol, want) in [
        ("", binary(b"first\n")),
        ("binary.k8s.io", binary(b"first\n")),
        ("base64.binary.k8s.io", Message::Text("Zmlyc3QK".into())),
    ] {
        let messages = heard(&cluster, &log, protocol).await;
        assert_eq!(messages.last(), Some(&want), "{protocol}");
        assert!(messages[..messages.len() - 1].iter().all(|it| it.is_empty()), "{messages:?}");
    }
    let watch = "/api/v1/namespaces/default/pods?watch=1&timeoutSeconds=1";
    let messages = heard(&cluster, watch, "").await;
    let Some(Message::Text(text)) = messages.first() else { panic!("{messages:?}") };
    let event: Value = serde_json::from_str(text).unwrap();
    assert_eq!(
        (&event["type"], &event["object"]["metadata"]["name"]),
        (&json!("ADDED"), &json!("p"))
    );
    Box::pin(cluster.embedded.shutdown()).await;
}
