//! The API server against a real one, in one run: how long kubectl takes, and what requests cost.
//!
//! Ours is one process with everything in it and a journal on disk; theirs is kube-apiserver with
//! etcd. Both are on this machine, asked by the same program in turns, so that what else it does
//! falls on both.

mod commands;
mod load;
mod processes;

use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::{
    e2e::up::{self, Up},
    kubernetes::{ControlPlane, Programs, VERSION, client},
};

/// Options of `cargo xtask bench api`.
#[derive(clap::Parser)]
#[command(name = "cargo xtask bench api", no_binary_name = true)]
struct Options {
    /// Measure this program instead of building one.
    #[arg(long)]
    binary: Option<PathBuf>,
    /// How often each kubectl command is run on each server.
    #[arg(long, default_value_t = 15)]
    rounds: usize,
    /// How many requests of each kind are sent to each server.
    #[arg(long, default_value_t = 2_000)]
    requests: usize,
    /// How many of them are under way at a time.
    #[arg(long, default_value_t = 8)]
    workers: usize,
}

/// One of two values measured in turns.
#[derive(Clone, Copy, Debug, Default)]
struct Pair<T> {
    ours: T,
    theirs: T,
}

/// Measures both servers and prints what came out.
pub(super) fn run(arguments: &[String]) -> Result<()> {
    use clap::Parser;
    let options = Options::try_parse_from(arguments)?;
    let binary = match &options.binary {
        Some(binary) => binary.canonicalize()?,
        None => up::build(true)?,
    };
    let control_plane = ControlPlane::start(&Programs::of(VERSION)?)?;
    let folder = tempfile::tempdir()?;
    let up = Up::start(&binary, &folder.path().join("data"), &["--port", "0"])?;
    let kubeconfigs = Pair { ours: up.kubeconfig(), theirs: control_plane.kubeconfig() };
    commands::measure(&kubeconfigs, folder.path(), options.rounds)?;
    let pid = |wanted: &str| {
        let found = control_plane.pids().find(|(name, _)| *name == wanted);
        found.map(|(_, pid)| pid).with_context(|| format!("no {wanted} among the programs"))
    };
    let processes = Pair {
        ours: processes::Group::of(&[up.pid()]),
        theirs: processes::Group::of(&[pid("kube-apiserver")?, pid("etcd")?]),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let clients = Pair {
            ours: client(&kubeconfigs.ours).await?,
            theirs: client(&kubeconfigs.theirs).await?,
        };
        load::measure(&clients, &processes, options.requests, options.workers).await
    })?;
    up.stop()?;
    Ok(())
}
