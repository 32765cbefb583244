//! A control plane at work: etcd, API server, controller manager and scheduler on loopback, in a
//! folder that is removed when they end.

use std::{
    ffi::OsString,
    fs::{self, File},
    net::{Ipv4Addr, TcpListener},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use http::Request;
use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};
use serde_json::json;
use tempfile::TempDir;

use super::{
    certificates::{self, Authority},
    programs::Programs,
};

/// How long all of it may take to get ready on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// What every namespace gets from the controller manager. Where it is, all four work together, and
/// pods can be made.
const LAST_TO_COME: &str = "/api/v1/namespaces/default/serviceaccounts/default";

/// The clients' own limits would hide all others.
const UNLIMITED: [&str; 2] = ["--kube-api-qps=5000", "--kube-api-burst=10000"];

/// A control plane. It ends, and its folder goes, when this is dropped.
#[derive(Debug)]
pub(crate) struct ControlPlane {
    /// In the order they were started.
    processes: Vec<Process>,
    folder: TempDir,
}

/// One of its programs.
#[derive(Debug)]
struct Process {
    name: &'static str,
    child: Child,
    log: PathBuf,
}

impl ControlPlane {
    /// Starts one and waits until it is ready.
    pub(crate) fn start(programs: &Programs) -> Result<Self> {
        Self::start_with(programs, |_| Ok(Vec::new()))
    }

    /// Starts one whose API server is given these arguments too; files of theirs go into its
    /// folder.
    pub(crate) fn start_with(
        programs: &Programs,
        arguments: impl FnOnce(&Path) -> Result<Vec<OsString>>,
    ) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("kubernetes-").tempdir()?;
        let mut started = Self { processes: Vec::new(), folder };
        let ports = free_ports()?;
        let authority = Authority::new(started.path())?;
        authority.serve(started.path())?;
        certificates::service_accounts(started.path())?;
        let users = [
            ("admin", "kubernetes-admin", Some("system:masters")),
            ("controller-manager", "system:kube-controller-manager", None),
            ("scheduler", "system:kube-scheduler", None),
        ];
        for (file, user, group) in users {
            write_kubeconfig(started.path(), &authority, file, (user, group), ports.apiserver)?;
        }
        started.etcd(programs, &ports)?;
        let arguments = arguments(started.path())?;
        started.apiserver(programs, &ports, &arguments)?;
        started.await_answer("/readyz")?;
        started.controller_manager(programs)?;
        started.scheduler(programs)?;
        started.await_answer(LAST_TO_COME)?;
        Ok(started)
    }

    /// The kubeconfig of somebody who may do everything.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.path().join("admin.kubeconfig")
    }

    /// The folder of all its files.
    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The programs and their process ids.
    pub(crate) fn pids(&self) -> impl Iterator<Item = (&'static str, u32)> {
        self.processes.iter().map(|process| (process.name, process.child.id()))
    }

    /// The program that has ended, and the last it said, if one has.
    pub(crate) fn ended(&mut self) -> Option<String> {
        self.processes.iter_mut().find_map(|process| {
            let status = process.child.try_wait().ok().flatten()?;
            Some(format!("{} ended with {status}; it said:\n{}", process.name, process.said()))
        })
    }

    fn etcd(&mut self, programs: &Programs, ports: &Ports) -> Result<()> {
        let (client, peer) = (ports.etcd_url(), format!("http://127.0.0.1:{}", ports.peer));
        let mut etcd = Command::new(&programs.etcd);
        etcd.arg("--data-dir").arg(self.path().join("etcd"));
        etcd.args(["--listen-client-urls", &client, "--advertise-client-urls", &client]);
        etcd.args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer]);
        etcd.args(["--initial-cluster", &format!("default={peer}")]);
        // Nothing here outlives a crash of the machine anyway.
        etcd.args(["--unsafe-no-fsync", "--log-level", "warn"]);
        self.spawn("etcd", etcd)
    }

    fn apiserver(&mut self, programs: &Programs, ports: &Ports, more: &[OsString]) -> Result<()> {
        let file = |name: &str| self.path().join(name);
        let mut server = Command::new(&programs.apiserver);
        server.args(["--etcd-servers", &ports.etcd_url()]);
        server.args(["--bind-address", "127.0.0.1"]);
        server.args(["--secure-port", &ports.apiserver.to_string()]);
        server.args(["--service-cluster-ip-range", "10.0.0.0/16"]);
        server.args(["--authorization-mode", "Node,RBAC"]);
        // Endpoints may not be loopback addresses, and nobody here needs this one.
        server.args(["--endpoint-reconciler-type", "none"]);
        server.arg("--tls-cert-file").arg(file("apiserver.crt"));
        server.arg("--tls-private-key-file").arg(file("apiserver.key"));
        server.arg("--client-ca-file").arg(file("ca.crt"));
        server.args(["--service-account-issuer", "https://kubernetes.default.svc"]);
        server.arg("--service-account-key-file").arg(file("service-accounts.pub"));
        server.arg("--service-account-signing-key-file").arg(file("service-accounts.key"));
        server.args(more);
        self.spawn("kube-apiserver", server)
    }

    fn controller_manager(&mut self, programs: &Programs) -> Result<()> {
        let mut manager = Command::new(&programs.controller_manager);
        manager.arg("--kubeconfig").arg(self.path().join("controller-manager.kubeconfig"));
        manager.arg("--root-ca-file").arg(self.path().join("ca.crt"));
        let key = self.path().join("service-accounts.key");
        manager.arg("--service-account-private-key-file").arg(key);
        // Each controller acts as itself, with the rights it has in every cluster.
        manager.arg("--use-service-account-credentials=true");
        manager.args(["--concurrent-job-syncs=20", "--concurrent-gc-syncs=50"]).args(UNLIMITED);
        manager.args(["--leader-elect=false", "--secure-port=0"]);
        self.spawn("kube-controller-manager", manager)
    }

    fn scheduler(&mut self, programs: &Programs) -> Result<()> {
        let mut scheduler = Command::new(&programs.scheduler);
        scheduler.arg("--kubeconfig").arg(self.path().join("scheduler.kubeconfig"));
        scheduler.args(UNLIMITED).args(["--leader-elect=false", "--secure-port=0"]);
        self.spawn("kube-scheduler", scheduler)
    }

    fn spawn(&mut self, name: &'static str, mut command: Command) -> Result<()> {
        let log = self.path().join(format!("{name}.log"));
        let file = File::create(&log)?;
        command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
        // Away from the folder of whoever calls: programs write core dumps and default folders.
        command.current_dir(self.path());
        let child = command.spawn().with_context(|| format!("cannot start {name}"))?;
        self.processes.push(Process { name, child, log });
        Ok(())
    }

    /// Waits until the API server answers a GET of `path` with success.
    fn await_answer(&mut self, path: &str) -> Result<()> {
        let deadline = Instant::now() + PATIENCE;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let client = runtime.block_on(client(&self.kubeconfig()))?;
        loop {
            let request = Request::get(path).body(Vec::new())?;
            let answer = runtime.block_on(client.request_text(request));
            let Err(error) = answer else { return Ok(()) };
            if let Some(ended) = self.ended() {
                bail!("{ended}");
            }
            if Instant::now() > deadline {
                let said: Vec<String> = self.processes.iter().map(Process::said).collect();
                bail!("GET {path} still fails: {error}; they said:\n{}", said.join("\n"));
            }
            thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        // The last first: nobody then complains about one that is gone.
        for process in self.processes.iter_mut().rev() {
            drop(process.child.kill());
            drop(process.child.wait());
        }
    }
}

impl Process {
    /// The end of what it wrote.
    fn said(&self) -> String {
        let text = fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(20)..].join("\n")
    }
}

/// Where the programs listen.
struct Ports {
    etcd: u16,
    peer: u16,
    apiserver: u16,
}

impl Ports {
    fn etcd_url(&self) -> String {
        format!("http://127.0.0.1:{}", self.etcd)
    }
}

/// Ports nobody listens on. They are held together until all are known, so that they differ.
fn free_ports() -> Result<Ports> {
    let bind = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("there is no free port");
    let (etcd, peer, apiserver) = (bind()?, bind()?, bind()?);
    let port = |listener: &TcpListener| listener.local_addr().map(|address| address.port());
    Ok(Ports { etcd: port(&etcd)?, peer: port(&peer)?, apiserver: port(&apiserver)? })
}

fn write_kubeconfig(
    folder: &Path,
    authority: &Authority,
    file: &str,
    (user, group): (&str, Option<&str>),
    port: u16,
) -> Result<()> {
    let identity = authority.client(user, group)?;
    let (certificate, key) = (format!("{file}.crt"), format!("{file}.key"));
    certificates::write(&folder.join(&certificate), &identity.certificate)?;
    certificates::write(&folder.join(&key), &identity.key)?;
    // Every JSON document is a YAML document.
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "kubernetes", "cluster": {
            "server": format!("https://127.0.0.1:{port}"),
            "certificate-authority": folder.join("ca.crt"),
        }}],
        "users": [{"name": file, "user": {
            "client-certificate": folder.join(certificate),
            "client-key": folder.join(key),
        }}],
        "contexts": [{"name": file, "context": {
            "cluster": "kubernetes", "user": file, "namespace": "default",
        }}],
        "current-context": file,
    });
    certificates::write(&folder.join(format!("{file}.kubeconfig")), &format!("{config:#}\n"))
}

/// A client with the rights that a kubeconfig gives.
pub(crate) async fn client(kubeconfig: &Path) -> Result<Client> {
    Ok(Client::try_from(config(kubeconfig).await?)?)
}

/// The same for somebody who wants to see each answer, also those that say to try again.
pub(crate) async fn client_without_retries(kubeconfig: &Path) -> Result<Client> {
    let mut config = config(kubeconfig).await?;
    config.default_retry = false;
    Ok(Client::try_from(config)?)
}

async fn config(kubeconfig: &Path) -> Result<Config> {
    let read = Kubeconfig::read_from(kubeconfig).context("the kubeconfig cannot be read")?;
    Ok(Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await?)
}
