//! What can be typed.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::{apply, delete, describe, down, events, get, logs, run, up, validate, version};

/// A whole small Kubernetes cluster in one binary: pods run as processes on this machine.
#[derive(Debug, Parser)]
#[command(
    name = "lockstep",
    version,
    propagate_version = false,
    subcommand_required = true,
    arg_required_else_help = true,
    max_term_width = 100,
    after_help = "\
Images are not pulled: a container is a process, started from its `command`.

Examples:
  lockstep run pod.yaml           run a pod in a cluster of its own, follow it, end with its result
  lockstep up --detach            start a cluster that stays
  lockstep apply -f pod.yaml      create or update what a manifest says
  lockstep get pods -w            watch pods
  lockstep down                   stop it; what it stored stays

`lockstep help COMMAND` says more about each, with examples."
)]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The commands, in the order people meet them.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a Pod manifest in a cluster of its own and end with its result
    Run(run::Options),
    /// Start a cluster on this machine
    Up(Box<up::Options>),
    /// Stop a cluster started with `up`
    Down(down::Options),
    /// Create or update what manifests say
    Apply(apply::Options),
    /// Show objects
    Get(get::Options),
    /// Show one object in full, with its events
    Describe(describe::Options),
    /// Print what containers wrote
    Logs(logs::Options),
    /// Show what happened
    Events(events::Options),
    /// Delete objects
    Delete(delete::Options),
    /// Say what the API would say about manifests, without a cluster
    Validate(validate::Options),
    /// Print a completion script for a shell
    Completions(Completions),
    /// Print versions
    Version(version::Options),
}

/// Which cluster, and where in it.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Cluster")]
pub(crate) struct Connection {
    /// The kubeconfig to use [default: $KUBECONFIG, a running `lockstep up`, ~/.kube/config]
    #[arg(long, value_name = "FILE", conflicts_with = "data_dir")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig to use
    #[arg(long, value_name = "NAME")]
    pub(crate) context: Option<String>,
    /// The namespace to work in
    #[arg(short, long, value_name = "NAME")]
    pub(crate) namespace: Option<String>,
    /// The data directory of the `lockstep up` to use
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
}

/// Which objects, beside their names.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Selectors {
    /// Only objects whose labels match: `a=b`, `a!=b`, `a in (b,c)`, `a`, `!a`
    #[arg(short = 'l', long, value_name = "QUERY")]
    pub(crate) selector: Option<String>,
    /// Only objects whose fields match: `status.phase=Running`
    #[arg(long, value_name = "QUERY")]
    pub(crate) field_selector: Option<String>,
}

/// Options of `lockstep completions`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lockstep completions bash > ~/.local/share/bash-completion/completions/lockstep
  lockstep completions zsh > \"${fpath[1]}/_lockstep\"
  lockstep completions fish > ~/.config/fish/completions/lockstep.fish")]
pub(crate) struct Completions {
    /// Which shell
    pub(crate) shell: clap_complete::Shell,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
