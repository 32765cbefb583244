//! Commands in pods, their main processes and their ports, over WebSockets as clients open them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Status;
use kube::api::{AttachParams, AttachedProcess, PostParams, TerminalSize};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config, ResourceExt};
use lockstep_local::embedded::{Embedded, NodeOptions, Options};
use lockstep_local::node::runtime::RuntimeOptions;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Longer than anything here takes on a busy machine.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// A cluster with a node and a socket, and a client that uses it.
pub(super) struct Cluster {
    pods: Api<Pod>,
    pub(super) client: Client,
    pub(super) embedded: Embedded,
}

impl Cluster {
    pub(super) async fn start() -> Self {
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
    pub(super) async fn run(&self, name: &str, script: &str, more: Value) -> Pod {
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
    futures::SinkExt::send(&mut sizes, TerminalSize { width: 91, height: 33 }).await.unwrap();
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
