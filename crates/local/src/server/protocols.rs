//! What is spoken on connections that were HTTP before, without the connections: bytes go in, and
//! what they mean comes out. Nothing here waits or panics, whatever it is told.

pub mod channels;
pub mod spdy;
pub mod streams;
