//! End-to-end checks: the real binary, real kubectl, real processes.

mod check;
mod clients;
mod conformance;
mod crash;
mod differential;
mod kubectl;
mod pytorch;
mod restart;
mod scale;
mod unprivileged;
pub(crate) mod up;
mod valkey;

use std::path::PathBuf;

use anyhow::{Result, bail};

use self::check::Summary;

/// Options of `cargo xtask e2e`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Which suites; all when none is named.
    #[arg(value_enum)]
    suites: Vec<Suite>,
    /// Check the release build instead of the one for development.
    #[arg(long)]
    release: bool,
    /// Check this program instead of building one.
    #[arg(long)]
    binary: Option<PathBuf>,
    /// Only these parts of the kubectl suite.
    #[arg(long, value_enum)]
    part: Vec<kubectl::Part>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Suite {
    /// Unmodified kubectl, two versions of it.
    Kubectl,
    /// Client libraries: Python's, client-go, kube-rs over TCP and in-process.
    Clients,
    /// kill -9 under load, damaged files, full disks.
    Crash,
    /// `down` and `up`, kill -9 and `up`, again and again while pods run.
    Restart,
    /// A thousand Jobs from one file, two hundred watches at a time.
    Scale,
    /// Pods as an unprivileged user, with user namespaces and without.
    Unprivileged,
    /// A training with PyTorch, where that can be installed.
    Pytorch,
    /// What any cluster that runs JobSets must do: the embedded one, and a real control plane with
    /// `lockstep operator`.
    Conformance,
    /// The same requests to a real API server and to ours: what differs?
    Differential,
    /// Agents that are led through a real Valkey, which is killed, emptied and held up.
    Valkey,
}

/// Runs the suites asked for, all of them to the end, then says how many checks passed.
pub(crate) fn run(options: &Options) -> Result<()> {
    let all = [
        Suite::Kubectl,
        Suite::Clients,
        Suite::Conformance,
        Suite::Differential,
        Suite::Crash,
        Suite::Restart,
        Suite::Scale,
        Suite::Valkey,
        Suite::Unprivileged,
        Suite::Pytorch,
    ];
    let suites = if options.suites.is_empty() { &all[..] } else { &options.suites };
    let binary = match &options.binary {
        Some(binary) => binary.canonicalize()?,
        None => up::build(options.release)?,
    };
    let mut summary = Summary::default();
    for suite in suites {
        let outcome = match suite {
            Suite::Kubectl => kubectl::run(&binary, &options.part),
            Suite::Clients => clients::run(&binary),
            Suite::Crash => crash::run(&binary),
            Suite::Restart => restart::run(&binary),
            Suite::Scale => scale::run(&binary),
            Suite::Unprivileged => unprivileged::run(&binary),
            Suite::Pytorch => pytorch::run(&binary),
            Suite::Conformance => conformance::run(&binary),
            Suite::Differential => differential::run(&binary),
            Suite::Valkey => valkey::run(&binary),
        };
        match outcome {
            Ok(done) => summary.add(done),
            Err(error) => {
                println!("FAIL  {suite:?}: {error:#}");
                summary.failed.push(format!("{suite:?}: {error:#}"));
            }
        }
    }
    println!("\n{} passed, {} failed", summary.passed, summary.failed.len());
    for name in &summary.failed {
        println!("  FAIL  {name}");
    }
    if summary.failed.is_empty() { Ok(()) } else { bail!("not all checks passed") }
}
