//! kube-rs on a cluster, one line for each check: over TCP with KUBECONFIG, or in-process with
//! `--in-process`, where the cluster is in this very program. The numbers are those of the
//! acceptance suite in the API server's specification.
#![expect(clippy::print_stdout, reason = "what it prints is counted by xtask")]

mod definitions;
mod objects;
mod pods;
mod report;
mod watches;

use std::{error::Error, path::PathBuf, process::ExitCode};

use kube::{Client, Config};
use lockstep_local::{
    embedded::{Embedded, NodeOptions, Options},
    node::runtime::RuntimeOptions,
};

use self::report::Report;

#[tokio::main]
async fn main() -> Result<ExitCode, Box<dyn Error>> {
    let is_in_process = std::env::args().any(|argument| argument == "--in-process");
    let (embedded, client) = if is_in_process {
        let embedded = cluster().await?;
        let client = embedded.client();
        (Some(embedded), client)
    } else {
        (None, Client::try_from(Config::infer().await?)?)
    };
    let mut report = Report::default();
    objects::checks(&mut report, &client).await;
    watches::checks(&mut report, &client).await;
    definitions::checks(&mut report, &client).await;
    pods::checks(&mut report, &client).await;
    // Upgraded connections need a connection to upgrade.
    if !is_in_process {
        pods::connections(&mut report, &client).await;
    }
    if let Some(embedded) = embedded {
        embedded.shutdown().await;
    }
    Ok(report.end())
}

/// A cluster in this process, with a node and without a socket.
async fn cluster() -> Result<Embedded, Box<dyn Error>> {
    let mut shim: PathBuf = std::env::current_exe()?;
    // Examples lie in a folder below the one of programs.
    shim.pop();
    shim.pop();
    shim.push("lockstep-shim");
    let runtime = RuntimeOptions { shim: Some(shim), ..RuntimeOptions::from_env() };
    let node = NodeOptions { runtime, ..NodeOptions::default() };
    Ok(Embedded::start(Options { node: Some(node), ..Options::default() }).await?)
}
