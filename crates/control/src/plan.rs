//! The planners, one room per subject.

pub mod job;
pub mod jobset;
pub mod place;
pub mod pod;
