//! The planners, one room per subject.

pub mod place;
pub mod pod;
