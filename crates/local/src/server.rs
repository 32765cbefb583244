//! The API server: Kubernetes' REST API over the cluster's store.

mod error;
mod limits;
mod listen;
mod negotiate;
mod options;
mod query;
mod request;
mod respond;

pub use limits::Limits;
