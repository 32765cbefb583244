//! Works on this machine: the API server, persistence, the process node and who may call.

pub mod auth;
pub mod cluster;
pub mod controllers;
pub mod embedded;
pub mod feeds;
pub mod files;
pub mod journal;
pub mod kubeconfig;
pub mod node;
pub mod scheduler;
pub mod server;
pub mod tls;

pub use cluster::Cluster;
pub use lockstep_operator::config::Configuration;
pub use lockstep_operator::{observe, recorder};
