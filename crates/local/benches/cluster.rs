//! The one-machine cluster against its budgets: start-up, memory, writes, watches.
//!
//! Prints one line per measurement. Arguments name the measurements to take; without any, all are.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark prints, and may fail")]

mod cluster {
    pub(crate) mod measure;
    pub(crate) mod start;
    pub(crate) mod watch;
    pub(crate) mod write;
}

use cluster::{start, watch, write};

fn main() {
    // cargo passes --bench on.
    let wanted: Vec<String> =
        std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let is_wanted = |name: &str| wanted.is_empty() || wanted.iter().any(|word| word == name);
    let runtime = || tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    if is_wanted("start") {
        runtime().block_on(start::run());
    }
    if is_wanted("write") {
        runtime().block_on(write::run());
    }
    if is_wanted("watch") {
        runtime().block_on(watch::run());
    }
}
