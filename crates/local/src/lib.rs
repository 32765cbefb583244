//! Works on this machine: the API server, its state and its journal, and the node.

pub mod cluster;
pub mod journal;

pub use cluster::Cluster;
