//! A real Kubernetes control plane on this machine, for as long as somebody wants it.
//!
//! etcd, kube-apiserver, kube-controller-manager and kube-scheduler listen on loopback only. There
//! is no node; `--fake-nodes` adds some whose pods only pretend.

mod certificates;
mod control_plane;
mod fake_nodes;
mod programs;

use std::{
    process::{Command, ExitStatus},
    time::Duration,
};

use anyhow::{Context, Result, bail};

pub(crate) use self::{
    control_plane::{ControlPlane, client, client_without_retries},
    fake_nodes::FakeNodes,
    programs::{Programs, VERSION},
};

/// How often it is looked whether all programs still run.
const LOOK: Duration = Duration::from_millis(200);

/// Options of `cargo xtask kubernetes`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Which release.
    #[arg(long, default_value = VERSION)]
    version: String,
    /// How many nodes to add whose pods only pretend.
    #[arg(long, value_name = "COUNT", default_value_t = 0)]
    fake_nodes: usize,
    /// Only build what is not in the cache yet, and print where it is.
    #[arg(long, conflicts_with = "command")]
    build: bool,
    /// A command to run with KUBECONFIG set; the control plane ends with it. Without one it runs
    /// until it is interrupted.
    #[arg(last = true)]
    command: Vec<String>,
}

/// Runs a control plane in the foreground.
pub(crate) fn run(options: &Options) -> Result<()> {
    let programs = Programs::of(options.version.trim_start_matches('v'))?;
    if options.build {
        let Programs { etcd, apiserver, controller_manager, scheduler } = programs;
        for program in [etcd, apiserver, controller_manager, scheduler] {
            println!("{}", program.display());
        }
        return Ok(());
    }
    let mut control_plane = ControlPlane::start(&programs)?;
    let kubeconfig = control_plane.kubeconfig();
    let _fake_nodes = match options.fake_nodes {
        0 => None,
        count => {
            FakeNodes::build("debug")?;
            let log = control_plane.path().join("nodes.log");
            Some(FakeNodes::start(&kubeconfig, count, &log, "debug")?)
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let [program, arguments @ ..] = options.command.as_slice() else {
        println!("export KUBECONFIG={}", kubeconfig.display());
        eprintln!("Kubernetes v{} runs until Ctrl-C", options.version.trim_start_matches('v'));
        for (name, pid) in control_plane.pids() {
            eprintln!("  {name}: pid {pid}, {}/{name}.log", control_plane.path().display());
        }
        return runtime.block_on(until_interrupted(&mut control_plane));
    };
    let mut command = Command::new(program);
    command.args(arguments).env("KUBECONFIG", kubeconfig);
    let status = runtime.block_on(beside(&mut control_plane, command))?;
    if !status.success() {
        bail!("`{program}` ended with {status}");
    }
    Ok(())
}

async fn until_interrupted(control_plane: &mut ControlPlane) -> Result<()> {
    let mut stop = Signals::listen()?;
    loop {
        tokio::select! {
            () = stop.next() => return Ok(()),
            () = tokio::time::sleep(LOOK) => {}
        }
        if let Some(ended) = control_plane.ended() {
            bail!("{ended}");
        }
    }
}

/// Runs a command to its end. An interrupt from the keyboard reaches it too, and it is waited for.
async fn beside(control_plane: &mut ControlPlane, mut command: Command) -> Result<ExitStatus> {
    let mut stop = Signals::listen()?;
    let shown = crate::shell::shown(&command);
    let mut child = command.spawn().with_context(|| format!("cannot start `{shown}`"))?;
    let mut is_stopping = false;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        tokio::select! {
            () = stop.next(), if !is_stopping => is_stopping = true,
            () = tokio::time::sleep(LOOK) => {}
        }
        if !is_stopping && let Some(ended) = control_plane.ended() {
            drop(child.kill());
            drop(child.wait());
            bail!("{ended}");
        }
    }
}

/// The signals that ask to stop.
struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

impl Signals {
    fn listen() -> Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
