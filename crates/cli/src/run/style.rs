//! Colours, and how wide a text is on a terminal.

use std::io::IsTerminal;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// When to use colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Color {
    /// On a terminal, unless the variable `NO_COLOR` is set
    #[default]
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

impl Color {
    /// Whether what goes to `stream` is coloured.
    pub(crate) fn is_wanted(self, stream: &impl IsTerminal) -> bool {
        let is_off = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
            || std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        match self {
            Self::Always => true,
            Self::Never => false,
            Self::Auto => !is_off && stream.is_terminal(),
        }
    }
}

/// What a piece of text is, for the eye.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    /// It went well.
    Good,
    /// It went wrong.
    Bad,
    /// It goes on.
    Going,
    /// It waits.
    Waiting,
    /// It is there to be overlooked.
    Dim,
    /// It is what the rest is about.
    Strong,
    /// It is of this worker.
    Worker(u32),
}

/// Colours of workers: those that are readable on black and on white.
const WORKERS: [u8; 12] = [36, 33, 35, 32, 34, 96, 93, 95, 92, 94, 31, 91];

/// Writes with or without colours.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Paint {
    is_on: bool,
}

impl Paint {
    /// Colours only when `is_on`.
    pub(crate) fn new(is_on: bool) -> Self {
        Self { is_on }
    }

    /// `text` in `tone`.
    pub(crate) fn text(self, tone: Tone, text: &str) -> String {
        if !self.is_on || text.is_empty() {
            return text.to_owned();
        }
        let code = match tone {
            Tone::Good => 32,
            Tone::Bad => 31,
            Tone::Going => 36,
            Tone::Waiting => 33,
            Tone::Dim => 2,
            Tone::Strong => 1,
            Tone::Worker(number) => WORKERS[number as usize % WORKERS.len()],
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }
}

/// Cuts `text` to `width` columns, with `...` where something is missing. It must hold no colours.
pub(crate) fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let dots = "...";
    let room = width.saturating_sub(dots.len());
    let mut used = 0;
    let kept: String = text
        .chars()
        .take_while(|letter| {
            used += letter.width().unwrap_or_default();
            used <= room
        })
        .collect();
    if width < dots.len() { ".".repeat(width) } else { kept + dots }
}

/// How many columns a text takes that may hold colours.
pub(crate) fn columns(text: &str) -> usize {
    let mut plain = String::with_capacity(text.len());
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        if letter == '\x1b' {
            letters.by_ref().find(char::is_ascii_alphabetic);
        } else {
            plain.push(letter);
        }
    }
    plain.width()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_cut_by_what_it_takes_on_the_screen() {
        for (text, width, want) in [
            ("hello", 5, "hello"),
            ("hello!", 5, "he..."),
            ("日本語です", 10, "日本語です"),
            ("日本語です", 9, "日本語..."),
            ("日本語です", 8, "日本..."),
            ("hello", 2, ".."),
            ("", 0, ""),
        ] {
            let cut = cut(text, width);
            assert_eq!(cut, want);
            assert!(cut.width() <= width, "{text}");
        }
    }

    #[test]
    fn colours_take_no_room() {
        let painted = Paint::new(true).text(Tone::Worker(3), "abc");
        assert_eq!(painted, "\x1b[32mabc\x1b[0m");
        assert_eq!(columns(&painted), 3);
        assert_eq!(Paint::new(false).text(Tone::Bad, "abc"), "abc");
    }
}
