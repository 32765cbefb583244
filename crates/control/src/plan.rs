//! The planners, one room per subject, and what all of them speak of.

mod event;
pub mod exclusive;
pub mod job;
pub mod jobset;
mod key;
pub mod place;
pub mod pod;
mod refusal;
pub mod restart;

pub use event::Event;
pub use key::Key;
pub use refusal::{Refusal, RefusalKind};
