//! What is wrong with a text that is not YAML, in words that help.
//!
//! The parser knows where it stopped. Why it stopped is better told from the text itself: people
//! make few kinds of mistakes.

use serde_saphyr::Error;

use super::YamlError;

/// What is said of numbers that JSON does not know.
pub(super) const NOT_FINITE: &str =
    "infinite and undefined numbers cannot be used; put the word in quotes if it is a text";

/// The mistake behind `error`, which the parser found in `text`.
pub(super) fn explain(text: &str, error: &Error) -> YamlError {
    let error = error.without_snippet();
    let line = error.location().map_or(0, |at| at.line()).max(1);
    let lines: Vec<&str> = text.lines().collect();
    let stopped = Stopped { lines: &lines, at: usize::try_from(line).unwrap_or(1) };
    let (line, what) = match error {
        Error::DuplicateMappingKey { key, .. } => {
            let key = key.clone().unwrap_or_default();
            (line, format!("the key {key:?} is given twice: keep one of them"))
        }
        Error::NonFiniteFloat { .. } => (line, NOT_FINITE.to_owned()),
        Error::Message { msg, .. } if msg.contains(NOT_FINITE) => (line, NOT_FINITE.to_owned()),
        Error::UnknownAnchor { .. } => (line, ANCHOR.to_owned()),
        Error::Budget { .. }
        | Error::AliasReplayLimitExceeded { .. }
        | Error::AliasExpansionLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. } => {
            (line, "too deeply nested, or too many aliases, to be a manifest".to_owned())
        }
        other => stopped.mistake(&other.to_string()),
    };
    YamlError { line, what }
}

const ANCHOR: &str = "a value that begins with * stands for an anchor (&), and there is none of \
                      this name: put the value in quotes if it is a text";

/// Where the parser stopped.
struct Stopped<'a> {
    lines: &'a [&'a str],
    /// The line, from 1; may be one past the end.
    at: usize,
}

impl Stopped<'_> {
    fn mistake(&self, told: &str) -> (u64, String) {
        let line = u64::try_from(self.at).unwrap_or(u64::MAX);
        let here = self.line(self.at);
        if let Some(at) = self.tab() {
            let what = "indented with a tab: YAML wants spaces".to_owned();
            return (u64::try_from(at).unwrap_or(line), what);
        }
        if let Some((at, bracket)) = self.open_bracket() {
            let what = format!("the {bracket} is not closed, or a comma is missing after it");
            return (u64::try_from(at).unwrap_or(line), what);
        }
        let what = if told.contains("anchor") {
            ANCHOR.to_owned()
        } else if told.contains("escape") {
            "a backslash in double quotes begins an escape, and this is none: double it, or use \
             single quotes"
                .to_owned()
        } else if told.contains("quote") {
            "a quote is not closed, or something follows it: close it, and put what belongs \
             together between one pair"
                .to_owned()
        } else if let Some(what) = special_start(here) {
            what
        } else if let Some(bracket) = closing(here) {
            format!("the {bracket} closes nothing that is open: take it away, or open it before")
        } else if let Some(what) = colons(here) {
            what
        } else if told.contains("bracket") || told.contains("flow") {
            "a bracket does not fit: look for a comma too many or too few".to_owned()
        } else if let Some(what) = self.indentation() {
            what
        } else if is_bare_word(here) {
            format!("there is no colon after {:?}: a key looks like `key: value`", here.trim())
        } else {
            "this does not fit what stands above it: look at the indentation, colons, brackets and \
             quotes of this line and the one before"
                .to_owned()
        };
        (line, what)
    }

    fn line(&self, at: usize) -> &str {
        self.lines.get(at.wrapping_sub(1)).copied().unwrap_or_default()
    }

    /// A bracket of a line above, or of this one, that nothing closes up to here.
    fn open_bracket(&self) -> Option<(usize, char)> {
        let mut open: Vec<(usize, char)> = Vec::new();
        for at in 1..=self.at.min(self.lines.len()) {
            let line = self.line(at);
            // In a plain text brackets mean nothing; they count where a value begins with one.
            let text = if open.is_empty() { value(line) } else { line };
            if open.is_empty() && !text.starts_with(['[', '{']) {
                continue;
            }
            for letter in brackets(text) {
                match letter {
                    '[' | '{' => open.push((at, letter)),
                    _ => drop(open.pop()),
                }
            }
        }
        open.first().copied()
    }

    /// The line with a tab in its indentation, here or just around.
    fn tab(&self) -> Option<usize> {
        let near = [self.at, self.at + 1, self.at.saturating_sub(1)];
        near.into_iter().find(|&at| {
            let line = self.line(at);
            line[..line.len() - line.trim_start().len()].contains('\t')
        })
    }

    /// What is wrong with how far the line is indented.
    fn indentation(&self) -> Option<String> {
        let own = indent(self.line(self.at))?;
        // The lines this one may belong to: each less indented than the one found before.
        let mut open: Vec<usize> = Vec::new();
        let mut least = usize::MAX;
        for at in (1..self.at).rev() {
            let Some(depth) = indent(self.line(at)) else { continue };
            if depth < least {
                least = depth;
                open.push(depth);
                // A list item's fields are indented as the first of them, after the dash.
                let trimmed = self.line(at).trim_start();
                let inner = trimmed.trim_start_matches(['-', ' ']);
                if inner.len() < trimmed.len() {
                    open.push(depth + trimmed.len() - inner.len());
                }
            }
        }
        if open.is_empty() || open.contains(&own) {
            return None;
        }
        open.sort_unstable();
        open.dedup();
        let steps: Vec<String> = open.iter().map(ToString::to_string).collect();
        Some(format!(
            "indented by {own} spaces, which fits no line above: those are at {}",
            steps.join(", ")
        ))
    }
}

/// How many spaces a line begins with; nothing for blank lines and comments.
fn indent(line: &str) -> Option<usize> {
    let trimmed = line.trim_start_matches(' ');
    let says_something = !trimmed.is_empty() && !trimmed.starts_with('#') && trimmed != "---";
    says_something.then(|| line.len() - trimmed.len())
}

/// The value of a line: what stands after its first `key: ` or `- `, up to a comment.
fn value(line: &str) -> &str {
    let rest = line.trim_start().trim_start_matches("- ").trim_start();
    // Between brackets there are values only.
    let found = if rest.starts_with(['[', '{']) { None } else { after_key(rest) };
    let value = found.unwrap_or(rest).trim();
    let is_quoted = value.starts_with(['"', '\'']);
    let text = if is_quoted { value } else { value.split(" #").next().unwrap_or(value) };
    text.trim_end()
}

/// What stands after the key a line begins with, if it begins with one. A key in quotes may have
/// colons of its own.
fn after_key(rest: &str) -> Option<&str> {
    let quote = rest.chars().next().filter(|first| matches!(first, '"' | '\''));
    let past = quote.and_then(|quote| rest[1..].find(quote)).map_or(0, |end| end + 2);
    rest[past..].split_once(": ").map(|(_, value)| value)
}

/// The brackets of a text, but for those in quotes and comments.
fn brackets(text: &str) -> Vec<char> {
    let mut found = Vec::new();
    let mut quote = None;
    for letter in text.chars() {
        match (quote, letter) {
            (Some(begun), letter) if begun == letter => quote = None,
            (None, '"' | '\'') => quote = Some(letter),
            (None, '[' | '{' | ']' | '}') => found.push(letter),
            (None, '#') => break,
            _ => {}
        }
    }
    found
}

/// A bracket at the end of a value that closes more than the value opens, or something else.
fn closing(line: &str) -> Option<char> {
    let text = value(line);
    if !text.starts_with(['[', '{']) {
        return None;
    }
    let mut open = Vec::new();
    brackets(text).into_iter().find(|letter| match letter {
        '[' | '{' => {
            open.push(*letter);
            false
        }
        ']' => open.pop() != Some('['),
        _ => open.pop() != Some('{'),
    })
}

/// A value that begins with what YAML reserves.
fn special_start(line: &str) -> Option<String> {
    let first = value(line).chars().next()?;
    matches!(first, '@' | '`' | '%').then(|| {
        format!("a value cannot begin with {first}: put it in quotes, as in '{}'", value(line))
    })
}

/// Colons where none may stand, or without the blank they need.
fn colons(line: &str) -> Option<String> {
    if line.trim_start().starts_with(['[', '{']) {
        return None;
    }
    let rest = line.trim_start().trim_start_matches("- ");
    let value = value(line);
    let is_plain = !value.starts_with(['"', '\'', '[', '{', '|', '>', '#']);
    if is_plain && after_key(rest).is_some() && (value.contains(": ") || value.ends_with(':')) {
        return Some(format!(
            "a second colon in one line: put the value in quotes, as in '{}', or what belongs \
             below the key on lines of its own",
            value.trim_end_matches(':')
        ));
    }
    let (key, after) = rest.split_once(':')?;
    let is_word = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric());
    let is_glued = after.starts_with(|c: char| !c.is_whitespace() && c != '/');
    (is_word && is_glued)
        .then(|| format!("there is no blank after the colon: write `{key}: {}`", after.trim()))
}

fn is_bare_word(line: &str) -> bool {
    let text = line.trim();
    !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_are_told_in_words_that_help() {
        let mut wrong = Vec::new();
        for (text, line, want) in [
            ("a:\n\tb: 1\n", 2, "indented with a tab"),
            ("a:\n  b: 1\n\tc: 2\n", 3, "indented with a tab"),
            ("a: b: c\n", 1, "a second colon in one line"),
            ("spec:\n  command: echo: hello\n", 2, "a second colon in one line"),
            ("a:\n    b: 1\n  c: 2\n", 3, "indented by 2 spaces"),
            ("a:\n  b: 1\n   c: 2\n", 3, "indented by 3 spaces, which fits no line above"),
            ("l:\n- a: 1\n   b: 2\n", 3, "indented by 3 spaces"),
            ("s:\n  a: true\n   b:\n     c: 1\n", 3, "indented by 3 spaces, which fits no line"),
            ("s:\n  a: true\n   b: 1 # c: d\n", 3, "indented by 3 spaces, which fits no line"),
            ("s:\n  a: 1\n   'b: c': d\n", 3, "indented by 3 spaces, which fits no line"),
            ("l:\n- {a: b, c: d}}\n", 2, "the } closes nothing that is open"),
            ("l: [{a: b, c: d}}]\n", 1, "the } closes nothing that is open"),
            ("a: b:\n", 1, "a second colon in one line"),
            ("l:\n- {a: b\n- c\n", 2, "the { is not closed"),
            ("a: 1\nb: [1, 2\nc: 3\n", 2, "the [ is not closed"),
            ("a: {b: 1\n", 1, "the { is not closed"),
            ("a: [\n", 1, "the [ is not closed"),
            ("a: x[1\nb: [1]\nc:\n\t- d\n", 4, "indented with a tab"),
            ("a: \"b\nc: 1\n", 0, "a quote is not closed"),
            ("a: 'b' c\n", 1, "a quote is not closed, or something follows it"),
            ("a: \"\\d\"\n", 1, "a backslash in double quotes"),
            ("a: @b\n", 1, "a value cannot begin with @"),
            ("a: `b`\n", 1, "a value cannot begin with `"),
            ("a: %b\n", 1, "a value cannot begin with %"),
            ("a: *b\n", 1, "a value that begins with * stands for an anchor"),
            ("a: 1\nb\nc: 2\n", 2, "there is no colon after \"b\""),
            ("a: 1\nb:2\nc: 3\n", 2, "there is no blank after the colon: write `b: 2`"),
            ("a: .inf\n", 1, "infinite and undefined numbers"),
            ("- a\nb: 1\n", 2, ""),
            ("{\"a\": 1,, \"b\": 2}", 1, "a bracket does not fit: look for a comma"),
        ] {
            let results = super::super::parse(text);
            let errors: Vec<YamlError> = results.into_iter().filter_map(Result::err).collect();
            // Where a quote is missing, nobody can say on which line.
            let is_right = |error: &YamlError| {
                error.what.starts_with(want) && (line == 0 || error.line == line)
            };
            if errors.len() != 1 || !is_right(&errors[0]) {
                wrong.push(format!("{text:?}: {errors:?}"));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn the_parsers_own_words_are_never_shown() {
        let words = ["simple key", "scalar", "flow", "indicator", "context", "while parsing"];
        for text in [
            "a: [}",
            "a: }",
            "]",
            "? a\n- b",
            "a:\n- b\n c",
            "%YAML 9",
            "--- a: b",
            "a: !!int x",
            "a: |1x\n b",
            "&a",
            "!<x",
            "a: \"\\ud800\"",
            "\u{0}",
            "a:\n  - b\n -c: d\n",
        ] {
            for error in super::super::parse(text).into_iter().filter_map(Result::err) {
                let told = words.iter().find(|word| error.what.contains(*word));
                assert!(told.is_none(), "{text:?}: {error:?}");
            }
        }
    }
}
