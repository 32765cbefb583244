//! The parts of a control loop that need no IO: which key is due, and how long to wait after a
//! failure.

mod backoff;
mod queue;

pub use backoff::Backoff;
pub use queue::WorkQueue;
