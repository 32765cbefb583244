//! The node: runs pods as processes of this machine.

pub mod agent;
pub mod devices;
pub mod dirs;
pub mod env;
pub mod fake;
pub(crate) mod limits;
pub mod logs;
pub mod network;
pub mod probe;
pub mod process;
pub mod runtime;
pub mod shim;
pub mod sources;
pub mod status;
pub(crate) mod usage;
pub mod volumes;
