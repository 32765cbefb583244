//! `lockstep operator` as a process: how it starts, competes, and gives its place to another.

use std::{
    ffi::OsString,
    fs::{self, File},
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};

use super::super::check::{Check, Suite};
use crate::shell;

/// How long a place may stay empty after its holder was killed: the duration of the lease, and some
/// time to look.
const SUCCESSION: Duration = Duration::from_secs(30);

/// The lease operators agree by, where a pod of theirs would have it.
const CONFIGURATION: &str =
    "leaderElection: {leaderElect: true, resourceNamespace: lockstep-system}\n";
const LEASE: &str = "get lease -n lockstep-system 6d4f6a47.jobset.x-k8s.io";

/// An operator that runs; it is killed when this is dropped.
#[derive(Debug)]
pub(super) struct Operator {
    child: Child,
    log: PathBuf,
}

impl Operator {
    fn start(binary: &Path, kubeconfig: &Path, folder: &Path, name: &str) -> Result<Self> {
        // Pods are played on this machine: their agents find the operator and its program here.
        let address = format!("127.0.0.1:{}", free_port()?);
        let hub = ["--restart-address", &address, "--restart-bind-address", &address];
        Self::start_with(binary, kubeconfig, (folder, name), &hub.map(OsString::from))
    }

    /// Starts one with these arguments on how agents find it.
    pub(super) fn start_with(
        binary: &Path,
        kubeconfig: &Path,
        (folder, name): (&Path, &str),
        arguments: &[OsString],
    ) -> Result<Self> {
        let (log, config) = (folder.join(format!("{name}.log")), folder.join("operator.yaml"));
        fs::write(&config, CONFIGURATION)?;
        let mut command = command(binary, kubeconfig);
        command.arg("--config").arg(config).stdin(Stdio::null()).stderr(File::create(&log)?);
        command.args(arguments).arg("--agent-path").arg(binary);
        let child = command.spawn().context("cannot start `lockstep operator`")?;
        Ok(Self { child, log })
    }

    /// What it wrote.
    pub(super) fn said(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    pub(super) fn leads(&self) -> bool {
        self.said().contains("leading")
    }

    /// Asks it to stop; says with which code it did.
    fn stop(mut self) -> Result<Option<i32>> {
        let mut kill = Command::new("kill");
        kill.arg(self.child.id().to_string());
        shell::output(&mut kill)?;
        Ok(self.child.wait()?.code())
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            drop(self.child.kill());
            drop(self.child.wait());
        }
    }
}

/// A port that nobody listens on.
pub(super) fn free_port() -> Result<u16> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).context("there is no free port")?;
    Ok(listener.local_addr()?.port())
}

fn command(binary: &Path, kubeconfig: &Path) -> Command {
    let mut command = Command::new(binary);
    command.arg("operator").arg("--kubeconfig").arg(kubeconfig);
    // Several run on one machine.
    command.args(["--metrics-bind-address", "0", "--health-probe-bind-address", "0"]);
    command
}

/// On a cluster without JobSets, and without a cluster, it says what is missing.
pub(super) fn refuses(suite: &mut Suite, binary: &Path, kubeconfig: &Path) {
    let nowhere = kubeconfig.with_file_name("nowhere.kubeconfig");
    for (name, kubeconfig, want) in [
        ("the operator misses JobSets", kubeconfig, "the cluster does not know JobSets"),
        ("the operator misses its kubeconfig", nowhere.as_path(), "cannot read"),
    ] {
        suite.prove(name, |_| {
            let output = command(binary, kubeconfig).output().map_err(|error| error.to_string())?;
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            let is_met = said.contains(want) && output.status.code().is_some_and(|code| code > 1);
            if is_met { Ok(()) } else { Err(format!("{}: {said}", output.status)) }
        });
    }
}

/// Starts two operators: the first leads, the second waits.
pub(super) fn compete(
    suite: &mut Suite,
    binary: &Path,
    kubeconfig: &Path,
    folder: &Path,
) -> Result<[Operator; 2]> {
    let first = Operator::start(binary, kubeconfig, folder, "first")?;
    suite.prove("an operator leads", |_| await_leader(&first));
    let second = Operator::start(binary, kubeconfig, folder, "second")?;
    let lease = format!("{LEASE} -o jsonpath={{.spec.leaseDurationSeconds}}");
    suite.check("it holds the lease of JobSets", Check::new(&lease).out_is("15"));
    Ok([first, second])
}

/// Kills the leader: the other takes over, and works.
pub(super) fn hand_over(suite: &mut Suite, [first, second]: [Operator; 2]) {
    suite.prove("the second has waited", |_| match second.leads() {
        true => Err(second.said()),
        false => Ok(()),
    });
    drop(first);
    suite.prove("a leader that was killed is followed", |_| await_leader(&second));
    let manifest = super::short_set("after");
    suite.check("another JobSet is made", Check::new("apply -f -").stdin(&manifest).out("created"));
    let wait = "wait --for=condition=Completed jobset/after --timeout=60s";
    suite.check("its follower runs JobSets", Check::new(wait).out("condition met"));
    let said = second.said();
    suite.prove("an operator that is asked to stops with 0", |_| match second.stop() {
        Ok(Some(0)) => Ok(()),
        Ok(code) => Err(format!("it ended with {code:?}: {said}")),
        Err(error) => Err(format!("{error:#}")),
    });
    let holder = format!("{LEASE} -o jsonpath={{.spec.holderIdentity}}");
    suite.check("and gives its lease back", Check::new(&holder).out_is(""));
}

pub(super) fn await_leader(operator: &Operator) -> Result<(), String> {
    let begun = Instant::now();
    while !operator.leads() {
        if begun.elapsed() > SUCCESSION {
            return Err(format!("it does not lead; it said:\n{}", operator.said()));
        }
        thread::sleep(Duration::from_millis(100));
    }
    Ok(())
}
