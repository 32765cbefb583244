//! The planners, one room per subject, and what all of them speak of.

pub mod cronjob;
pub mod disruption;
mod event;
pub mod exclusive;
pub mod job;
pub mod jobset;
mod key;
pub mod place;
pub mod pod;
pub mod queue;
pub mod queued;
mod refusal;
pub mod restart;
pub mod workload;

pub use event::Event;
pub use key::Key;
pub use refusal::{Refusal, RefusalKind};
