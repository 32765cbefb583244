//! Works on any Kubernetes API, through `kube`: follows objects, lets the planners of
//! `lockstep-control` decide, and carries out what they decided. It decides nothing itself.

pub mod config;
pub mod exclusive;
pub mod job;
pub mod jobset;
pub mod lease;
pub mod manifests;
pub mod metrics;
pub mod observe;
mod passes;
pub mod process;
pub mod queue;
pub mod recorder;
mod requests;
pub mod sender;
pub mod serve;
pub mod write;

pub use passes::Limits;
