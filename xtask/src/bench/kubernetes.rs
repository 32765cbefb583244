//! Measurements of the operator on a real control plane.

use std::{
    fs::{self, File},
    net::TcpListener,
    path::Path,
    process::{Child, Command, Stdio},
};

use anyhow::{Context, Result};

use crate::{
    kubectl,
    kubernetes::{ControlPlane, FakeNodes, Programs, VERSION},
    shell,
};

/// Pods one fake node takes.
const PODS_PER_NODE: usize = 110;

/// An operator at work, killed when this is dropped.
struct Operator(Child);

impl Operator {
    fn start(kubeconfig: &Path, metrics: &str, log: &Path) -> Result<Self> {
        let mut command = Command::new(shell::target().join("release/lockstep"));
        command.arg("operator").arg("--kubeconfig").arg(kubeconfig);
        command.args(["--metrics-bind-address", metrics, "--health-probe-bind-address", "0"]);
        command.stdin(Stdio::null()).stderr(File::create(log)?);
        command.spawn().map(Self).context("cannot start `lockstep operator`")
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// Restarts JobSets of these sizes, each on a control plane of its own.
pub(super) fn restarts(sizes: &[usize]) -> Result<()> {
    let program = super::program()?;
    FakeNodes::build("release")?;
    let programs = Programs::of(VERSION)?;
    for &size in sizes {
        let control_plane = ControlPlane::start(&programs)?;
        let kubeconfig = control_plane.kubeconfig();
        let mut apply = Command::new(kubectl::binary(VERSION)?);
        apply.arg("--kubeconfig").arg(&kubeconfig).args(["apply", "--server-side", "-f"]);
        apply.arg(shell::root().join("deploy/crds/jobsets.jobset.x-k8s.io.yaml"));
        shell::run(&mut apply)?;
        let nodes = control_plane.path().join("nodes.log");
        let count = size.div_ceil(PODS_PER_NODE);
        let _nodes = FakeNodes::start(&kubeconfig, count, &nodes, "release")?;
        let log = control_plane.path().join("operator.log");
        // A port that is free now; nobody else is about to take it.
        let metrics = TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string();
        let operator = Operator::start(&kubeconfig, &metrics, &log)?;
        let mut bench = Command::new(program.get_program());
        bench.arg("jobset").arg(size.to_string()).env("KUBECONFIG", &kubeconfig);
        bench.env("LOCKSTEP_OPERATOR_PID", operator.0.id().to_string());
        bench.env("LOCKSTEP_OPERATOR_METRICS", &metrics);
        shell::run(&mut bench).with_context(|| fs::read_to_string(&log).unwrap_or_default())?;
    }
    Ok(())
}
