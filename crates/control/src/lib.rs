//! Everything that decides: plans, and the engine that orders the work.
//!
//! A plan is a plain function from a view (what was seen, already stale) to steps so specific that
//! carrying them out needs no further choice. Nothing here reads a clock, a file or a socket: time
//! comes in as an argument, deadlines go out as values.
#![forbid(unsafe_code)]
#![warn(clippy::wildcard_enum_match_arm, clippy::iter_over_hash_type)]

pub mod engine;
pub mod plan;
