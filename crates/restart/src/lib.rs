//! In-place restart on the wire.
//!
//! What is decided, and when, is in [`lockstep_control::plan::restart`]: machines without IO. This
//! room gives them sockets, processes and clocks. [`hub`] is where orchestrators listen, [`agent`]
//! is the process around a worker, and [`wire`] what passes between them. Nothing is polled: a
//! failure is a frame, an order is a frame, and what has not been sent is replaced by what is
//! newer. Instead of a hub there may be [`valkey`] between them, for orchestrators that fail over.
#![warn(clippy::wildcard_enum_match_arm)]

pub mod agent;
pub mod children;
mod dial;
pub mod hub;
pub mod place;
pub mod seal;
pub mod ticket;
pub mod valkey;
pub mod wire;
