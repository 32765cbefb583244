//! Imagines: what plans and store do together when time is virtual and everything goes wrong that
//! can.
//!
//! A world is one small cluster: the real store behind the real rules of the API, controllers
//! driven by the real planners, nodes and users that are made up. What happens is drawn from a seed
//! and from nothing else, so that a seed is a history: it can be printed, kept and replayed.
#![forbid(unsafe_code)]
#![warn(clippy::wildcard_enum_match_arm, clippy::iter_over_hash_type)]

pub mod api;
pub mod chance;
pub mod check;
pub mod cluster;
mod controller;
pub mod faults;
pub mod jobs;
pub mod manifest;
pub mod node;
pub mod parsed;
pub mod queues;
pub mod restart;
pub mod sets;
pub mod shrink;
pub mod trace;
pub mod user;
pub mod watch;
pub mod world;

pub use shrink::shrink;
pub use world::{Outcome, Setup, Sort, run};
