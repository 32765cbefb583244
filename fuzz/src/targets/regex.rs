//! Expressions that Go reads, which are read and tried here.

use std::time::Duration;

use lockstep_api::re2::Pattern;

use crate::{
    bound::{bounded, stretched},
    parts::line,
};

/// How long an expression may be, and how long it may take to be read. The crate `regex` ends at
/// 10 MB, for which it takes the better part of a second where it is not optimised.
const LONGEST: (usize, Duration) = (8 << 10, Duration::from_secs(3));

/// The first line is an expression, the rest is what it is looked for in.
pub fn feed(bytes: &[u8]) {
    let (pattern, rest) = line(bytes);
    let parse = |bytes: &[u8]| Pattern::new(&String::from_utf8_lossy(bytes)).map(drop);
    let _ = stretched(pattern.as_bytes(), LONGEST, parse);
    let Ok(pattern) = Pattern::new(pattern) else { return };
    let text = String::from_utf8_lossy(rest);
    bounded(|| pattern.is_found_in(&text));
    bounded(|| pattern.is_found_in(&text.repeat(1 + 4096 / (text.len() + 1))));
}
