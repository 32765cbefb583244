//! batch/v1 Job.

mod strategy;
mod table;

pub use strategy::JobStrategy;
