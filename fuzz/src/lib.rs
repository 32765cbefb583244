//! Feeds nonsense to whatever reads what others write, and says what must hold of it.
//!
//! A target is a function of some bytes. It panics when something is not as it must be, which is
//! more than that nothing panics: what was read and written is read again as the same, what was
//! applied once can be applied again, and no few bytes take long. `cargo xtask fuzz` runs targets
//! under libFuzzer; the tests run all of them with their seeds.
#![expect(
    clippy::panic,
    clippy::exit,
    reason = "a target that finds something has no other way to say so, and programs are small"
)]

pub mod bound;
mod kinds;
pub mod parts;
pub mod seeds;
mod targets;
mod world;

/// Something that is fed.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// What it goes by; its program and its seeds have the same name.
    pub name: &'static str,
    /// Takes one input.
    pub feed: fn(&[u8]),
}

/// All targets.
pub const TARGETS: [Target; 16] = [
    Target { name: "apply", feed: targets::apply::feed },
    Target { name: "create", feed: targets::create::feed },
    Target { name: "cron", feed: targets::cron::feed },
    Target { name: "frames", feed: targets::frames::feed },
    Target { name: "json", feed: targets::json::feed },
    Target { name: "json_patch", feed: targets::patches::feed_json },
    Target { name: "jsonpath", feed: targets::jsonpath::feed },
    Target { name: "merge_patch", feed: targets::patches::feed_merge },
    Target { name: "numbers", feed: targets::numbers::feed },
    Target { name: "pages", feed: targets::pages::feed },
    Target { name: "protobuf", feed: targets::protobuf::feed },
    Target { name: "regex", feed: targets::regex::feed },
    Target { name: "requests", feed: targets::requests::feed },
    Target { name: "selectors", feed: targets::selectors::feed },
    Target { name: "strategic_patch", feed: targets::patches::feed_strategic },
    Target { name: "yaml", feed: targets::yaml::feed },
];

/// Where a program writes its seeds to, instead of being fed.
pub const SEEDS: &str = "LOCKSTEP_FUZZ_SEEDS";

/// Writes the seeds of a target and ends, if that is what is asked for.
pub fn write_seeds_if_asked(target: &str) {
    if let Some(folder) = std::env::var_os(SEEDS) {
        seeds::write(target, folder.as_ref()).expect("seeds can be written");
        std::process::exit(0);
    }
}

/// The program of a target, by its function in [`feeds`].
#[macro_export]
macro_rules! program {
    ($target:ident) => {
        libfuzzer_sys::fuzz_target!(
            init: $crate::write_seeds_if_asked(stringify!($target)),
            |bytes: &[u8]| $crate::feeds::$target(bytes)
        );
    };
}

/// The functions of the targets by name: a program that names one has the code of no other in it.
pub mod feeds {
    pub use crate::targets::{
        apply::feed as apply,
        create::feed as create,
        cron::feed as cron,
        frames::feed as frames,
        json::feed as json,
        jsonpath::feed as jsonpath,
        numbers::feed as numbers,
        pages::feed as pages,
        patches::{
            feed_json as json_patch, feed_merge as merge_patch, feed_strategic as strategic_patch,
        },
        protobuf::feed as protobuf,
        regex::feed as regex,
        requests::feed as requests,
        selectors::feed as selectors,
        yaml::feed as yaml,
    };
}
