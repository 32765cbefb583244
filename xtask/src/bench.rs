//! Measurements against the budgets of the design.

mod api;
mod kubernetes;

use std::process::Command;

use anyhow::{Context, Result};

use crate::shell;

/// Options of `cargo xtask bench`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// What to measure.
    #[arg(value_enum)]
    subject: Subject,
    /// Passed on to the benchmark.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Subject {
    /// The one-machine cluster: start-up, memory, writes, watches, pods.
    Cluster,
    /// Large Jobs: from creation to end, per pod, with a slow client, success policies.
    Jobs,
    /// Restarts of large JobSets: from the failure of a pod until all run again.
    Jobset,
    /// The same with `lockstep operator` on a real control plane, of 1,000 and 5,000 pods.
    JobsetKubernetes,
    /// Queues: admissions of thousands of workloads, in-process and over HTTP; what a cycle costs.
    Queue,
    /// The API server against a real one: how long kubectl takes, what requests cost.
    Api,
    /// Restarts in place: thousands of agents over real sockets.
    Restart,
}

/// Runs one benchmark in release mode.
pub(crate) fn run(options: &Options) -> Result<()> {
    let subject = match options.subject {
        Subject::Cluster => "cluster",
        Subject::Jobs => "jobs",
        Subject::Jobset => "jobset",
        Subject::Queue => "queue",
        Subject::Restart => "restart",
        Subject::Api => return api::run(&options.arguments),
        Subject::JobsetKubernetes => {
            let parse = |size: &String| size.parse().with_context(|| format!("{size} is no size"));
            let sizes = options.arguments.iter().map(parse).collect::<Result<Vec<usize>>>()?;
            return kubernetes::restarts(if sizes.is_empty() { &[1_000, 5_000] } else { &sizes });
        }
    };
    shell::run(program()?.arg(subject).args(&options.arguments))
}

/// Builds `lockstep`, which is measured as well, and the program that measures.
fn program() -> Result<Command> {
    let packages = ["-p", "lockstep", "-p", "lockstep-bench"];
    shell::run(shell::cargo(["build", "--release", "--locked"]).args(packages))?;
    Ok(Command::new(shell::target().join("release/lockstep-bench")))
}
