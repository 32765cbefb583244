//! Adds fake nodes to the cluster of the current kubeconfig and plays them until it is interrupted:
//! `cargo xtask kubernetes --fake-nodes N` runs it beside a real control plane.

use kube::runtime::watcher;
use kube::{Api, Client, Config};
use lockstep_local::node::fake::{self, FakeOptions};
use lockstep_local::observe::Feed;

/// Plays so many nodes.
pub(crate) async fn play(count: usize) {
    let mut options = FakeOptions::new(count);
    options.gives_heartbeats = true;
    let client = Client::try_from(Config::infer().await.unwrap()).unwrap();
    let config = || watcher::Config::default().page_size(500);
    let pods = Feed::start(Api::all(client.clone()), config());
    let nodes = Feed::start(Api::all(client.clone()), config());
    let playing = fake::spawn(client, (&pods, &nodes), options);
    tokio::select! {
        ended = playing => ended.unwrap(),
        interrupted = tokio::signal::ctrl_c() => interrupted.unwrap(),
    }
}
