//! Addresses and names of pods on one machine.

mod names;

pub use names::Names;
