//! Nodes whose pods only pretend, played over the API by the same code that plays those of
//! `lockstep up --fake-nodes`.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use k8s_openapi::api::core::v1::Node;
use kube::{Api, api::ListParams};

use super::control_plane::client;
use crate::shell;

/// How long the nodes may take until pods can be placed on them.
const PATIENCE: Duration = Duration::from_secs(120);

/// Nodes at play. They stay, and nobody plays them any more, when this is dropped.
#[derive(Debug)]
pub(crate) struct FakeNodes {
    child: Child,
    log: PathBuf,
}

impl FakeNodes {
    /// Builds what plays them.
    pub(crate) fn build(profile: &str) -> Result<()> {
        let profile = if profile == "debug" { "dev" } else { profile };
        // With what is tested or measured beside it: built apart, it would share nothing with it.
        let build = "build --quiet --locked -p lockstep -p lockstep-bench --profile";
        shell::run(shell::cargo(build.split(' ')).arg(profile))
    }

    /// Adds `count` nodes to a cluster and waits until all of them are ready.
    pub(crate) fn start(
        kubeconfig: &Path,
        count: usize,
        log: &Path,
        profile: &str,
    ) -> Result<Self> {
        let file = File::create(log).with_context(|| format!("cannot write {}", log.display()))?;
        let child = Command::new(shell::target().join(profile).join("lockstep-bench"))
            .arg("nodes")
            .arg(count.to_string())
            .env("KUBECONFIG", kubeconfig)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(file)
            .spawn()
            .context("cannot start the fake nodes; were they built?")?;
        let mut nodes = Self { child, log: log.to_path_buf() };
        nodes.await_ready(kubeconfig, count)?;
        Ok(nodes)
    }

    fn await_ready(&mut self, kubeconfig: &Path, count: usize) -> Result<()> {
        let deadline = Instant::now() + PATIENCE;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let api: Api<Node> = Api::all(runtime.block_on(client(kubeconfig))?);
        loop {
            let nodes = runtime.block_on(api.list(&ListParams::default()))?;
            let ready = nodes.items.iter().filter(|node| takes_pods(node)).count();
            if ready >= count {
                return Ok(());
            }
            let is_over = Instant::now() > deadline || self.child.try_wait()?.is_some();
            if is_over {
                let said = fs::read_to_string(&self.log).unwrap_or_default();
                bail!("{ready} of {count} fake nodes are ready; they said:\n{said}");
            }
            thread::sleep(Duration::from_millis(100));
        }
    }
}

impl Drop for FakeNodes {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Whether nothing keeps pods away: a node is tainted until somebody has seen that it is ready.
fn takes_pods(node: &Node) -> bool {
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_ref());
    let is_tainted = taints.is_some_and(|taints| !taints.is_empty());
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_deref());
    let is_ready =
        |it: &k8s_openapi::api::core::v1::NodeCondition| it.type_ == "Ready" && it.status == "True";
    !is_tainted && conditions.unwrap_or_default().iter().any(is_ready)
}
