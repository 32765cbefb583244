//! batch/v1 Job, and CronJob.

mod cron;
mod defaults;
pub mod indexes;
mod policies;
mod selector;
mod shown;
mod status;
mod strategy;
mod table;
#[cfg(test)]
mod tests;
mod update;
mod validation;

pub use cron::CronJobStrategy;
pub use strategy::JobStrategy;
pub(crate) use validation::validate_manager;

use k8s_openapi::api::batch::v1::JobSpec;

fn is_indexed(spec: &JobSpec) -> bool {
    spec.completion_mode.as_deref() == Some("Indexed")
}
