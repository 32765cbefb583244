//! Fewer faults, same violation: what a reader of the story has to look at.

use std::collections::BTreeSet;

use crate::{
    check::Violation,
    world::{Setup, run},
};

/// After so many tries what is left is good enough.
const TRIES_MAX: u32 = 400;

/// The faults of a world that goes wrong which need not happen for it to go wrong: first all at
/// once, then halves, then quarters, down to single ones.
pub fn shrink(setup: &Setup) -> BTreeSet<u32> {
    let whole = run(setup);
    let Some(wanted) = whole.violation.as_ref().map(shape) else { return setup.muted.clone() };
    let goes_wrong = |muted: &BTreeSet<u32>| {
        let outcome = run(&Setup { muted: muted.clone(), ..setup.clone() });
        (outcome.violation.as_ref().map(shape).as_ref() == Some(&wanted), outcome.faults)
    };
    let mut muted = setup.muted.clone();
    let mut tries = 0;
    let mut size = whole.faults.max(1);
    while size > 0 {
        let mut first = 0;
        // Without some faults others may happen: the end is looked up each time.
        while first <= goes_wrong(&muted).1 && tries < TRIES_MAX {
            tries += 1;
            let mut more = muted.clone();
            more.extend(first..first + size);
            if goes_wrong(&more).0 {
                muted = more;
            }
            first += size;
        }
        size /= 2;
    }
    muted
}

/// A violation without the names and numbers in it.
fn shape(violation: &Violation) -> String {
    let is_plain = |word: &&str| !word.contains(|c: char| c.is_ascii_digit() || c == '-');
    violation.0.split(' ').filter(is_plain).collect::<Vec<_>>().join(" ")
}
