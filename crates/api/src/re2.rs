//! Regular expressions as Go's package `regexp` reads them (RE2).
//!
//! An expression is read by Go's rules and written anew as one that means the same to the crate
//! `regex`. What is asked is only whether it is found somewhere: groups, their names and who is
//! greedy do not matter, and are not kept.

mod class;
mod escape;
#[cfg(test)]
mod tests;
mod translate;
mod unicode;

use std::fmt;

use regex::Regex;

/// No expression may be longer. The crate `regex` has a limit for what it makes of one, but none
/// for what it reads: `\pL` has three letters, and more than six hundred ranges.
const LENGTH_MAX: usize = 8 << 10;

/// A regular expression, ready to be looked for.
#[derive(Clone, Debug)]
pub struct Pattern {
    regex: Regex,
}

impl Pattern {
    /// Compiles an expression; an error is what Go would say of it.
    pub fn new(pattern: &str) -> Result<Self, Fault> {
        if pattern.len() > LENGTH_MAX {
            return Err(Fault::new("expression too large", pattern));
        }
        let translated = translate::translate(pattern)?;
        // Whatever was written anew is well formed; left are the limits of the crate.
        let regex = Regex::new(&translated).map_err(|error| {
            let is_large = matches!(error, regex::Error::CompiledTooBig(_));
            let what =
                if is_large { "expression too large" } else { "expression nests too deeply" };
            Fault::new(what, pattern)
        })?;
        Ok(Self { regex })
    }

    /// Whether it is found somewhere in a text.
    pub fn is_found_in(&self, text: &str) -> bool {
        // Not `is_match`: it ends at the earliest sign of a match, which for `\B` may be inside of
        // a character; it is then thrown away together with the match that began before it.
        self.regex.find(text).is_some()
    }
}

/// Why a text is no regular expression.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Fault {
    what: &'static str,
    part: String,
}

impl Fault {
    fn new(what: &'static str, part: &str) -> Self {
        Self { what, part: part.to_owned() }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: `{}`", self.what, self.part)
    }
}
