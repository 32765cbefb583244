//! The options of the node inside `up` and `run`.

use anyhow::Result;
use lockstep_local::{embedded, node::runtime::RuntimeOptions};

/// What the node is like.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Node")]
pub(crate) struct NodeOptions {
    /// What the node is called [default: the machine's name]
    #[arg(long, value_name = "NAME")]
    node_name: Option<String>,
}

impl NodeOptions {
    /// The options of a cluster with such a node.
    pub(crate) fn embedded(&self) -> Result<embedded::Options> {
        let node = embedded::NodeOptions {
            runtime: RuntimeOptions::from_env(),
            ..embedded::NodeOptions::default()
        };
        let mut options = embedded::Options { node: Some(node), ..embedded::Options::default() };
        if let Some(name) = &self.node_name {
            options.node_name.clone_from(name);
        }
        Ok(options)
    }
}
