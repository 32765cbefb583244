//! The planners, one room per subject.

pub mod job;
pub mod place;
pub mod pod;
