//! The controllers a cluster needs beside the scheduler and the node: service accounts and their
//! tokens, endpoints, volume claims, cron jobs, budgets of pods, the life and death of nodes, the
//! queue of the machine. Each follows what it needs through a client and runs until it is aborted.

pub mod cron_job;
pub mod disruption;
pub mod endpoints;
pub mod machine_queue;
pub mod node_lifecycle;
pub mod role_aggregation;
pub mod service_account;
pub mod token_secrets;
pub mod volume_claims;

use kube::Client;
use tokio::task::JoinHandle;

use crate::feeds::Feeds;

/// How the controllers work.
#[derive(Clone, Debug, Default)]
pub struct ControllerOptions {
    /// When nodes count as lost and what follows.
    pub nodes: node_lifecycle::NodeLifecycleOptions,
    /// Where the volumes of claims are, if there is a node that has any.
    pub claims: Option<std::path::PathBuf>,
    /// The certificate by which programs in pods know the API server.
    pub root_ca: std::sync::Arc<str>,
}

/// Starts all controllers.
pub fn spawn(client: &Client, feeds: &Feeds, options: &ControllerOptions) -> Vec<JoinHandle<()>> {
    vec![
        service_account::spawn(client.clone(), options.root_ca.clone()),
        token_secrets::spawn(client.clone(), options.root_ca.clone()),
        cron_job::spawn(client.clone(), feeds),
        disruption::spawn(client.clone(), feeds),
        endpoints::spawn(client.clone(), feeds),
        node_lifecycle::spawn(client.clone(), feeds, options.nodes.clone()),
        machine_queue::spawn(client.clone(), feeds),
        role_aggregation::spawn(client.clone()),
        volume_claims::spawn(client.clone(), feeds, options.claims.clone()),
    ]
}
