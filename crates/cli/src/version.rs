//! `lockstep version`.

use anyhow::Result;
use serde_json::json;

use crate::{args::Connection, cluster::Cluster, output};

/// Options of `lockstep version`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  lockstep version                        here, and of the cluster if there is one
  lockstep version --client               only here
  lockstep version -o json                for programs")]
pub(crate) struct Options {
    /// Only this program, without asking a cluster
    #[arg(long)]
    client: bool,
    /// As JSON
    #[arg(short, long, value_parser = ["json"], value_name = "FORMAT")]
    output: Option<String>,
    #[command(flatten)]
    connection: Connection,
}

/// Prints what runs here and there. A cluster that cannot be asked is no error: this program's own
/// version is known in any case.
pub(crate) async fn run(options: &Options) -> Result<()> {
    let own = env!("CARGO_PKG_VERSION");
    let server = if options.client { None } else { server(&options.connection).await };
    if options.output.is_some() {
        let all = json!({
            "lockstep": own, "kubernetes": lockstep_api::KUBERNETES_VERSION, "server": server});
        output::line(format!("{all:#}"))?;
        return Ok(());
    }
    output::line(format!(
        "lockstep {own} (serves Kubernetes {})",
        lockstep_api::KUBERNETES_VERSION
    ))?;
    if let Some(server) = server {
        output::line(format!("Server Version: {server}"))?;
    }
    Ok(())
}

async fn server(connection: &Connection) -> Option<String> {
    let cluster = Cluster::find(connection).await.ok()?;
    let answer = cluster.get("/version").await.ok()?;
    answer["gitVersion"].as_str().map(ToOwned::to_owned)
}
