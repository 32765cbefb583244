//! Expressions that Go reads, which are read and tried here.

use lockstep_api::re2::Pattern;

use crate::{
    bound::{bounded, bounded_and_stretched},
    parts::line,
};

/// The first line is an expression, the rest is what it is looked for in.
pub fn feed(bytes: &[u8]) {
    let (pattern, rest) = line(bytes);
    let parse = |bytes: &[u8]| Pattern::new(&String::from_utf8_lossy(bytes)).map(drop);
    let _ = bounded_and_stretched(pattern.as_bytes(), parse);
    let Ok(pattern) = Pattern::new(pattern) else { return };
    let text = String::from_utf8_lossy(rest);
    bounded(|| pattern.is_found_in(&text));
    bounded(|| pattern.is_found_in(&text.repeat(1 + 4096 / (text.len() + 1))));
}
