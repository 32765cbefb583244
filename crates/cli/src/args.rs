//! What can be typed.

use std::{ffi::OsString, path::PathBuf};

use clap::{ArgAction, Args, CommandFactory, Parser, Subcommand};

use crate::{
    agent, apply, create, delete, describe, down, events, get, logs, manifests, operator, queues,
    run, up, validate, version, wait, why,
};

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
  lockstep run job.yaml           run a job in a cluster of its own, follow it, end with its result
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
    /// Run JobSets, Jobs and Pods in a cluster of their own and end with their result
    Run(Box<run::Options>),
    /// Start a cluster on this machine
    Up(Box<up::Options>),
    /// Stop a cluster started with `up`
    Down(down::Options),
    /// Create or update what manifests say
    Apply(apply::Options),
    /// Create what manifests say, and refuse what is there already
    Create(create::Options),
    /// Show objects
    Get(Box<get::Options>),
    /// Show one object in full, with its events
    Describe(describe::Options),
    /// Print what containers wrote
    Logs(logs::Options),
    /// Show what happened
    Events(events::Options),
    /// Say why a job waits, and what would let it go on
    Why(why::Options),
    /// Show the queues: what they have, what is used, who waits
    Queues(queues::Options),
    /// Delete objects
    Delete(delete::Options),
    /// Wait until objects are as they should be
    Wait(wait::Options),
    /// Run JobSets and queues on a Kubernetes cluster
    Operator(Box<operator::Options>),
    /// Print what a Kubernetes cluster needs to run the operator
    Manifests(manifests::Options),
    /// Run a worker of a gang that restarts in place
    Agent(Box<agent::Options>),
    /// Say what the API would say about manifests, without a cluster
    Validate(validate::Options),
    /// Print a completion script for a shell
    #[command(visible_alias = "completion")]
    Completions(Completions),
    /// Print versions
    Version(version::Options),
}

/// The words of a command line in the form the parser wants, from the forms people type.
///
/// Two habits are common to all programs built like kubectl: a flag may say `=true` or `=false`,
/// and options about the cluster may stand before the command.
pub(crate) fn tidy(words: Vec<OsString>) -> Vec<OsString> {
    let mut words = words.into_iter();
    let mut tidied: Vec<OsString> = words.by_ref().take(1).collect();
    let mut words = words.peekable();
    let mut early: Vec<OsString> = Vec::new();
    while let Some(word) = words.next_if(is_connection) {
        let has_value = word.to_string_lossy().contains('=');
        early.push(word);
        if !has_value {
            early.extend(words.next());
        }
    }
    let Some(name) = words.next() else {
        tidied.extend(early);
        return tidied;
    };
    let switches = switches(&name.to_string_lossy());
    tidied.push(name);
    tidied.extend(early);
    let mut is_plain = false;
    for word in words {
        is_plain |= word == "--";
        match word.to_str().and_then(|word| word.split_once('=')) {
            Some((flag, "true")) if !is_plain && switches.iter().any(|known| known == flag) => {
                tidied.push(flag.into());
            }
            Some((flag, "false")) if !is_plain && switches.iter().any(|known| known == flag) => {}
            _ => tidied.push(word),
        }
    }
    tidied
}

/// Whether a word is an option of [`Connection`].
fn is_connection(word: &OsString) -> bool {
    let word = word.to_string_lossy();
    let name = word.split('=').next().unwrap_or_default();
    matches!(name, "-n" | "--namespace" | "--kubeconfig" | "--context" | "--data-dir")
}

/// The flags of a command that take no value, `--watch` and `-w` alike.
fn switches(command: &str) -> Vec<String> {
    let cli = Cli::command();
    let Some(command) = cli.find_subcommand(command) else { return Vec::new() };
    let flags =
        command.get_arguments().filter(|arg| matches!(arg.get_action(), ArgAction::SetTrue));
    let names = |flag: &clap::Arg| {
        let long = flag.get_long().map(|name| format!("--{name}"));
        long.into_iter().chain(flag.get_short().map(|name| format!("-{name}"))).collect::<Vec<_>>()
    };
    flags.flat_map(names).collect()
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
The folder a shell looks into must exist; a new shell then knows the commands.

Examples:
  mkdir -p ~/.local/share/bash-completion/completions
  lockstep completions bash > ~/.local/share/bash-completion/completions/lockstep
  lockstep completions zsh > \"${fpath[1]}/_lockstep\"
  lockstep completions fish > ~/.config/fish/completions/lockstep.fish
  source <(lockstep completions bash)     only this shell")]
pub(crate) struct Completions {
    /// Which shell
    pub(crate) shell: clap_complete::Shell,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn habits_of_kubectl_users_are_understood() {
        for (typed, want) in [
            ("get pods", "get pods"),
            ("-n kube-system get pods", "get -n kube-system pods"),
            ("--namespace=a --context b get pods", "get --namespace=a --context b pods"),
            ("get pods --watch=true -A=false", "get pods --watch"),
            ("logs p --all-containers=true --follow=false", "logs p --all-containers"),
            ("delete pod p --wait=false", "delete pod p --wait=false"),
            ("get pods -o=json", "get pods -o=json"),
            ("run x.yaml -- prog --watch=true", "run x.yaml -- prog --watch=true"),
            ("--help", "--help"),
            ("", ""),
        ] {
            let line = |text: &str| {
                let words = text.split(' ').filter(|word| !word.is_empty()).map(OsString::from);
                std::iter::once(OsString::from("lockstep")).chain(words).collect::<Vec<_>>()
            };
            assert_eq!(tidy(line(typed)), line(want), "{typed}");
        }
    }
}
