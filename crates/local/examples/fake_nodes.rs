//! Adds fake nodes to the cluster of the current kubeconfig and plays them until it is interrupted.
//!
//! `cargo xtask kubernetes --fake-nodes N` runs it beside a real control plane.

use std::error::Error;

use kube::runtime::watcher;
use kube::{Api, Client, Config};
use lockstep_local::node::fake::{self, FakeOptions};
use lockstep_local::observe::Feed;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    let count = std::env::args().nth(1).ok_or("how many nodes? The first argument says it")?;
    let mut options = FakeOptions::new(count.parse()?);
    options.gives_heartbeats = true;
    let client = Client::try_from(Config::infer().await?)?;
    let config = || watcher::Config::default().page_size(500);
    let pods = Feed::start(Api::all(client.clone()), config());
    let nodes = Feed::start(Api::all(client.clone()), config());
    let playing = fake::spawn(client, (&pods, &nodes), options);
    tokio::select! {
        ended = playing => ended?,
        interrupted = tokio::signal::ctrl_c() => interrupted?,
    }
    Ok(())
}
