//! Reads an expression by Go's rules and writes it anew for the crate `regex`.
//!
//! All that is written stands for itself: no flag reaches from one piece into the next, each group
//! is one that does not capture, and each character that could mean something is a number.

use std::fmt::Write;

use super::{
    Fault,
    class::{self, LastName},
    escape,
};

/// No count of repetitions, alone or multiplied with those around it, may be above.
const COPIES_MAX: u32 = 1000;
/// How often one piece may be repeated, by repetitions of repetitions.
const REPETITIONS_MAX: u32 = 1000;

/// The expression as one of the crate `regex` that is found in the same texts.
pub(super) fn translate(pattern: &str) -> Result<String, Fault> {
    let mut translator = Translator {
        all: pattern,
        rest: pattern,
        last_name: LastName::of(pattern),
        out: String::new(),
        flags: Flags::default(),
        groups: Vec::new(),
        last: None,
        copies: 1,
        repetition: None,
    };
    while !translator.rest.is_empty() {
        let repetition = translator.piece()?;
        translator.repetition = repetition;
    }
    if !translator.groups.is_empty() {
        return Err(Fault::new("missing closing )", pattern));
    }
    Ok(translator.out)
}

struct Translator<'a> {
    all: &'a str,
    rest: &'a str,
    last_name: LastName,
    out: String,
    flags: Flags,
    /// The groups that are open.
    groups: Vec<Group>,
    /// What a repetition would repeat.
    last: Option<Piece>,
    /// The largest number of copies of what stands before `last` in this group.
    copies: u32,
    /// From the repetition that was read last to the end, if nothing was read since.
    repetition: Option<&'a str>,
}

/// What holds for the pieces that follow. Who is greedy (`U`) decides nothing.
#[derive(Clone, Copy, Default)]
pub(super) struct Flags {
    pub(super) fold: bool,
    lines: bool,
    dot_all: bool,
}

/// What there was before a group began.
struct Group {
    at: usize,
    flags: Flags,
    copies: u32,
}

/// The last thing that was written.
struct Piece {
    at: usize,
    /// How many copies of the innermost thing its repetitions make.
    copies: u32,
    /// How often it is repeated: flags between two repetitions make both hold.
    repetitions: u32,
}

impl<'a> Translator<'a> {
    /// Reads one piece. If it is a repetition, it gives the text from there to the end.
    fn piece(&mut self) -> Result<Option<&'a str>, Fault> {
        let before = self.rest;
        let mut chars = before.chars();
        let Some(first) = chars.next() else { return Ok(None) };
        let after = chars.as_str();
        match first {
            '(' if after.starts_with('?') => self.group_with_flags()?,
            '\\' => self.escaped()?,
            '[' => {
                let (class, rest) = class::bracketed(before, self.last_name)?;
                self.push(&class.write(self.flags.fold));
                self.rest = rest;
            }
            '*' | '+' | '?' => {
                self.repeat(before, after, 1, first.encode_utf8(&mut [0; 4]))?;
                return Ok(Some(before));
            }
            '{' => {
                if let Some((least, most, after)) = counts(before) {
                    self.repeat_counted(before, after, least, most)?;
                    return Ok(Some(before));
                }
                self.rest = after;
                self.literal(u32::from('{'));
            }
            _ => {
                self.rest = after;
                match first {
                    '(' => self.open(self.flags),
                    ')' => self.close()?,
                    '|' => {
                        self.settle();
                        self.out.push('|');
                    }
                    '^' => self.push(if self.flags.lines { "(?m:^)" } else { r"\A" }),
                    '$' => self.push(if self.flags.lines { "(?m:$)" } else { r"\z" }),
                    '.' => self.push(if self.flags.dot_all { "(?s:.)" } else { "." }),
                    literal => self.literal(u32::from(literal)),
                }
            }
        }
        Ok(None)
    }

    fn escaped(&mut self) -> Result<(), Fault> {
        let before = self.rest;
        let mut chars = before.chars();
        let (_, kind) = (chars.next(), chars.next());
        let after = chars.as_str();
        let whole = match kind {
            Some('A') => r"\A",
            Some('z') => r"\z",
            Some('b') => r"(?-u:\b)",
            Some('B') => r"(?-u:\B)",
            Some('Q') => {
                let (literal, rest) = after.split_once(r"\E").unwrap_or((after, ""));
                literal.chars().for_each(|char| self.literal(u32::from(char)));
                self.rest = rest;
                return Ok(());
            }
            _ => {
                if let Some((class, rest)) = class::escaped(before)? {
                    self.push(&class.write(self.flags.fold));
                    self.rest = rest;
                } else {
                    let (code, rest) = escape::character(before)?;
                    self.literal(code);
                    self.rest = rest;
                }
                return Ok(());
            }
        };
        self.push(whole);
        self.rest = after;
        Ok(())
    }

    /// Reads what begins with `(?`: a named group, a group with flags, or flags alone.
    fn group_with_flags(&mut self) -> Result<(), Fault> {
        let before = self.rest;
        let named = ["(?P<", "(?<"].iter().find_map(|start| before.strip_prefix(start));
        if let Some(named) = named.filter(|named| !named.is_empty()) {
            let wrong = |part| Fault::new("invalid named capture", part);
            let (name, rest) = named.split_once('>').ok_or_else(|| wrong(before))?;
            let is_word = |char: char| char == '_' || char.is_ascii_alphanumeric();
            if name.is_empty() || !name.chars().all(is_word) {
                return Err(wrong(&before[..before.len() - rest.len()]));
            }
            self.open(self.flags);
            self.rest = rest;
            return Ok(());
        }
        let mut flags = self.flags;
        let (mut sets, mut has_flag) = (true, false);
        let mut chars = before[2..].chars();
        while let Some(char) = chars.next() {
            match char {
                'i' => flags.fold = sets,
                'm' => flags.lines = sets,
                's' => flags.dot_all = sets,
                'U' => {}
                '-' if sets => {
                    (sets, has_flag) = (false, false);
                    continue;
                }
                ':' | ')' if sets || has_flag => {
                    if char == ':' {
                        self.open(flags);
                    } else {
                        self.flags = flags;
                    }
                    self.rest = chars.as_str();
                    return Ok(());
                }
                _ => break,
            }
            has_flag = true;
        }
        let part = &before[..before.len() - chars.as_str().len()];
        Err(Fault::new("invalid or unsupported Perl syntax", part))
    }

    fn open(&mut self, inside: Flags) {
        self.settle();
        let at = self.out.len();
        self.groups.push(Group { at, flags: self.flags, copies: self.copies });
        self.out.push_str("(?:");
        self.flags = inside;
        self.copies = 1;
    }

    fn close(&mut self) -> Result<(), Fault> {
        let group = self.groups.pop().ok_or_else(|| Fault::new("unexpected )", self.all))?;
        self.settle();
        self.out.push(')');
        self.last = Some(Piece { at: group.at, copies: self.copies, repetitions: 0 });
        self.flags = group.flags;
        self.copies = group.copies;
        Ok(())
    }

    fn repeat_counted(
        &mut self,
        before: &str,
        after: &'a str,
        least: u32,
        most: Option<u32>,
    ) -> Result<(), Fault> {
        if least > COPIES_MAX || most.is_some_and(|most| most > COPIES_MAX || most < least) {
            let part = &before[..before.len() - after.len()];
            return Err(Fault::new("invalid repeat count", part));
        }
        let most_text = most.map(|most| most.to_string()).unwrap_or_default();
        let operator = format!("{{{least},{most_text}}}");
        self.repeat(before, after, most.unwrap_or_else(|| least.max(1)), &operator)
    }

    /// Repeats what was written last; `copies` is how many of it that makes, as Go counts.
    fn repeat(
        &mut self,
        before: &str,
        after: &'a str,
        copies: u32,
        operator: &str,
    ) -> Result<(), Fault> {
        let after = after.strip_prefix('?').unwrap_or(after);
        let part = |from: &str| from[..from.len() - after.len()].to_owned();
        if let Some(earlier) = self.repetition {
            return Err(Fault::new("invalid nested repetition operator", &part(earlier)));
        }
        let Some(piece) = &mut self.last else {
            return Err(Fault::new("missing argument to repetition operator", &part(before)));
        };
        if piece.repetitions == REPETITIONS_MAX {
            return Err(Fault::new("expression nests too deeply", self.all));
        }
        if piece.repetitions > 0 {
            self.out.insert_str(piece.at, "(?:");
            self.out.push(')');
        }
        piece.repetitions += 1;
        // Of what is there no times at all no copies are made, whatever is in it.
        piece.copies = if copies == 0 { 1 } else { piece.copies * copies };
        if piece.copies > COPIES_MAX {
            return Err(Fault::new("invalid repeat count", &part(before)));
        }
        self.out.push_str(operator);
        self.rest = after;
        Ok(())
    }

    fn literal(&mut self, code: u32) {
        let Some(char) = char::from_u32(code) else {
            // Half of a surrogate pair: no text has it.
            self.push(class::NOTHING);
            return;
        };
        self.settle();
        self.last = Some(Piece { at: self.out.len(), copies: 1, repetitions: 0 });
        let is_plain = char.is_ascii_alphanumeric() || !char.is_ascii();
        match (is_plain, self.flags.fold) {
            (true, true) => write!(self.out, "(?i:{char})").expect("a string takes all"),
            (true, false) => self.out.push(char),
            (false, _) => class::write_char(&mut self.out, code),
        }
    }

    fn push(&mut self, whole: &str) {
        self.settle();
        self.last = Some(Piece { at: self.out.len(), copies: 1, repetitions: 0 });
        self.out.push_str(whole);
    }

    /// What was written last cannot be repeated any more.
    fn settle(&mut self) {
        if let Some(piece) = self.last.take() {
            self.copies = self.copies.max(piece.copies);
        }
    }
}

/// Reads a counted repetition (`{2}`, `{2,}`, `{2,3}`): its numbers, and what follows. Anything
/// else that begins with a brace is text.
fn counts(text: &str) -> Option<(u32, Option<u32>, &str)> {
    let (least, rest) = number(text.strip_prefix('{')?)?;
    if let Some(rest) = rest.strip_prefix('}') {
        return Some((least, Some(least), rest));
    }
    let rest = rest.strip_prefix(',')?;
    if let Some(rest) = rest.strip_prefix('}') {
        return Some((least, None, rest));
    }
    let (most, rest) = number(rest)?;
    Some((least, Some(most), rest.strip_prefix('}')?))
}

/// Reads a number without needless zeros. One that is too large to be written down is as wrong as
/// the largest.
fn number(text: &str) -> Option<(u32, &str)> {
    let rest = text.trim_start_matches(|char: char| char.is_ascii_digit());
    let digits = &text[..text.len() - rest.len()];
    if digits.is_empty() || (digits.len() > 1 && digits.starts_with('0')) {
        return None;
    }
    Some((digits.parse().unwrap_or(u32::MAX), rest))
}
