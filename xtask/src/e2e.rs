//! End-to-end checks: the real binary, real kubectl, real processes.

use anyhow::Result;

/// Options of `cargo xtask e2e`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Which suites; all when none is named.
    #[arg(value_enum)]
    suites: Vec<Suite>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Suite {
    /// Unmodified kubectl, two versions of it.
    Kubectl,
    /// kill -9 under load, damaged files, full disks.
    Crash,
    /// Pods as an unprivileged user, with user namespaces and without.
    Unprivileged,
}

/// Runs the suites asked for.
pub(crate) fn run(options: &Options) -> Result<()> {
    println!("no suite yet: {:?}", options.suites);
    Ok(())
}
