//! Classes of characters: `[a-z]`, `[[:alpha:]]`, `\d`, `\pL`.

use std::fmt::Write;

use super::{Fault, escape, unicode};

/// A class that no character is in.
pub(super) const NOTHING: &str = r"[^\x{0}-\x{10FFFF}]";
/// All characters, as an item of a class.
pub(super) const EVERYTHING: &str = r"\x{0}-\x{10FFFF}";

/// A class: its items as the crate `regex` reads them, and whether it is all but these.
pub(super) struct Class {
    items: String,
    is_negated: bool,
}

impl Class {
    pub(super) fn write(&self, fold: bool) -> String {
        let class = match (self.items.as_str(), self.is_negated) {
            ("", false) => return NOTHING.to_owned(),
            ("", true) => format!("[{EVERYTHING}]"),
            (items, false) => format!("[{items}]"),
            (items, true) => format!("[^{items}]"),
        };
        if fold { format!("(?i:{class})") } else { class }
    }
}

/// Writes a character as its number.
pub(super) fn write_char(out: &mut String, code: u32) {
    write!(out, r"\x{{{code:X}}}").expect("a string takes all");
}

/// Reads a class that is an escape, if there is one at the beginning of a text.
pub(super) fn escaped(text: &str) -> Result<Option<(Class, &str)>, Fault> {
    Ok(escaped_item(text)?.map(|(items, rest)| (Class { items, is_negated: false }, rest)))
}

/// Where the last `:]` of an expression is, as the length of the text from there to the end. What
/// could be the beginning of a name, and has no end, is then not looked through to the end of the
/// expression for each of them.
#[derive(Clone, Copy)]
pub(super) struct LastName(Option<usize>);

impl LastName {
    pub(super) fn of(pattern: &str) -> Self {
        Self(pattern.rfind(":]").map(|at| pattern.len() - at))
    }

    /// Splits what follows `[:` at the end of the name.
    fn split(self, text: &str) -> Option<(&str, &str)> {
        let is_there = self.0.is_some_and(|last| last <= text.len());
        is_there.then(|| text.split_once(":]")).flatten()
    }
}

/// Reads a class in brackets at the beginning of a text, which ends where the expression does.
///
/// There are no classes in classes, and nothing is taken away from one or cut with another.
pub(super) fn bracketed(text: &str, last: LastName) -> Result<(Class, &str), Fault> {
    let inside = text.strip_prefix('[').unwrap_or(text);
    let (is_negated, mut rest) = match inside.strip_prefix('^') {
        Some(rest) => (true, rest),
        None => (false, inside),
    };
    let mut items = String::new();
    let mut is_first = true;
    loop {
        if !is_first && let Some(rest) = rest.strip_prefix(']') {
            return Ok((Class { items, is_negated }, rest));
        }
        is_first = false;
        let item = match named_item(rest, last)? {
            Some(item) => Some(item),
            None => escaped_item(rest)?,
        };
        if let Some((item, after)) = item {
            items.push_str(&item);
            rest = after;
        } else {
            rest = range(&mut items, rest, text)?;
        }
    }
}

/// Reads one character or a range of them. `whole` is the text from where the class begins.
fn range<'a>(items: &mut String, text: &'a str, whole: &str) -> Result<&'a str, Fault> {
    let (low, mut rest) = class_char(text, whole)?;
    let mut high = low;
    let upper = rest.strip_prefix('-').filter(|upper| !upper.is_empty());
    if let Some(upper) = upper.filter(|upper| !upper.starts_with(']')) {
        (high, rest) = class_char(upper, whole)?;
        if high < low {
            let part = &text[..text.len() - rest.len()];
            return Err(Fault::new("invalid character class range", part));
        }
    }
    // Halves of surrogate pairs are numbers, but no characters.
    let is_half = |code: u32| char::from_u32(code).is_none();
    let low = if is_half(low) { 0xE000 } else { low };
    let high = if is_half(high) { 0xD7FF } else { high };
    if low <= high {
        write_char(items, low);
        items.push('-');
        write_char(items, high);
    }
    Ok(rest)
}

fn class_char<'a>(text: &'a str, whole: &str) -> Result<(u32, &'a str), Fault> {
    let mut chars = text.chars();
    match chars.next() {
        None => Err(Fault::new("missing closing ]", whole)),
        Some('\\') => escape::character(text),
        Some(char) => Ok((u32::from(char), chars.as_str())),
    }
}

/// Reads `[:name:]`.
fn named_item(text: &str, last: LastName) -> Result<Option<(String, &str)>, Fault> {
    let Some((name, rest)) = text.strip_prefix("[:").and_then(|text| last.split(text)) else {
        return Ok(None);
    };
    let (is_negated, name) = match name.strip_prefix('^') {
        Some(name) => (true, name),
        None => (false, name),
    };
    let items = match name {
        "alnum" => "0-9A-Za-z",
        "alpha" => "A-Za-z",
        "ascii" => r"\x{0}-\x{7F}",
        "blank" => r"\x{9}\x{20}",
        "cntrl" => r"\x{0}-\x{1F}\x{7F}",
        "digit" => "0-9",
        "graph" => r"\x{21}-\x{7E}",
        "lower" => "a-z",
        "print" => r"\x{20}-\x{7E}",
        "punct" => r"\x{21}-\x{2F}\x{3A}-\x{40}\x{5B}-\x{60}\x{7B}-\x{7E}",
        "space" => r"\x{9}-\x{D}\x{20}",
        "upper" => "A-Z",
        "word" => "0-9A-Za-z_",
        "xdigit" => "0-9A-Fa-f",
        _ => {
            let part = &text[..text.len() - rest.len()];
            return Err(Fault::new("invalid character class range", part));
        }
    };
    Ok(Some((item(items, is_negated), rest)))
}

/// Reads `\d`, `\pL` and the like.
fn escaped_item(text: &str) -> Result<Option<(String, &str)>, Fault> {
    let Some(escape) = text.strip_prefix('\\') else { return Ok(None) };
    let mut chars = escape.chars();
    let items = match chars.next() {
        Some('p' | 'P') => return unicode::item(text).map(Some),
        Some('d' | 'D') => "0-9",
        Some('s' | 'S') => r"\x{9}\x{A}\x{C}\x{D}\x{20}",
        Some('w' | 'W') => "0-9A-Za-z_",
        _ => return Ok(None),
    };
    let is_negated = escape.starts_with(|char: char| char.is_ascii_uppercase());
    Ok(Some((item(items, is_negated), chars.as_str())))
}

fn item(items: &str, is_negated: bool) -> String {
    if is_negated { format!("[^{items}]") } else { items.to_owned() }
}
