//! Works on this machine: the API server, persistence, the process node and who may call.

pub mod auth;
pub mod files;
pub mod kubeconfig;
pub mod server;
pub mod tls;
